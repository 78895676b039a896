"""What changed between two versions of a split, and which cells of runs the change moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.run import read_run_data
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS, in_table_order
from h2htalk.errors import DataError, counted
from h2htalk.text.record_diff import RecordDiff, diff_records, differing_fields, format_diff

# A change of these alone leaves the model's answer valid: only its score changes.
_SCORED_ONLY = {"reference", "references", "risk"}
# What neither a prompt nor a score reads.
_NOTES = {"provenance", "metadata", "licence", "tags"}


@dataclass(frozen=True, slots=True)
class RunChange:
    """How a difference of splits moves a run.

    Attributes:
        run: its folder.
        items: number of its items.
        cells: subtask -> (items that differ, those among them to be asked again, those that are gone).
    """

    run: Path
    items: int
    cells: Mapping[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class SplitChanges:
    """The difference of two splits, and of each run the cells that it moves."""

    diff: RecordDiff
    runs: tuple[RunChange, ...]


def diff_splits(old: str, new: str, runs: Sequence[Path] = ()) -> SplitChanges:
    """Compare two splits item by item, and the items that runs of the old one asked with those of the new one."""
    before, after = load_split(old), load_split(new)
    diff = diff_records(_records(before), _records(after), (_facts(before), _facts(after)), {})
    return SplitChanges(diff, tuple(_run_change(path, before, after) for path in runs))


def _records(split: Split) -> dict[str, dict[str, Any]]:
    personas = {f"persona {name}": {"split": "personas", "persona": one} for name, one in split.personas.items()}
    return {item.id: item.to_dict() | {"split": _part(item)} for item in split.items} | personas


def _part(item: Any) -> str:
    return str(item.subtask if isinstance(item, Scenario) else item.study)


def _facts(split: Split) -> dict[str, str]:
    names = ("name", "version", "licence", "fingerprint")
    return {name: str(getattr(split, name)) for name in names} | {"items": f"{len(split.items):,}"}


def _run_change(path: Path, before: Split, after: Split) -> RunChange:
    run = read_run_data(path).split
    items, old, new = run.scenarios, {one.id for one in before.scenarios}, {one.id: one for one in after.scenarios}
    if not any(item.id in old or item.id in new for item in items):
        raise DataError(f"{path}: is no run of {before.name}: it holds none of its items")
    cells: dict[str, list[int]] = {}
    for item in items:
        if (other := new.get(item.id)) is None:
            found = (1, 0, 1)
        elif changed := _changed(item, other, run, after):
            found = (1, int(not changed <= _SCORED_ONLY), 0)
        else:
            continue
        cell = cells.setdefault(item.subtask, [0, 0, 0])
        cells[item.subtask] = [one + more for one, more in zip(cell, found, strict=True)]
    return RunChange(path, len(items), {name: (*cells[name],) for name in in_table_order(cells)})  # type: ignore[misc]


def _changed(one: Scenario, other: Scenario, before: Split, after: Split) -> set[str]:
    changed = set(differing_fields(one.to_dict(), other.to_dict()))
    if before.personas[one.persona] != after.personas[other.persona]:
        changed.add("persona")
    if one.tags.risk != other.tags.risk:  # the contract of a crisis allows longer replies
        changed.add("risk")
    return changed - _NOTES


def format_changes(changes: SplitChanges) -> str:
    """The difference as text, then the cells of each run."""
    lines = [format_diff(changes.diff)]
    for run in changes.runs:
        totals = Counter[str]()
        rows = []
        for name, (differ, again, gone) in run.cells.items():
            totals.update(differ=differ, again=again, gone=gone)
            notes = [f"{again:,} to ask again"] * bool(again) + [f"{gone:,} removed"] * bool(gone)
            rows.append(f"  {SUBTASKS[name].title}: {counted(differ, 'item')}" + f" ({', '.join(notes)})" * bool(notes))
        averages = [name for name in DIMENSIONS if any(SUBTASKS[one].dimension == name for one in run.cells)]
        if rows:
            lines.append(f"{run.run}: {totals['differ']:,} of {counted(run.items, 'item')} differ; cells that move:")
            lines += [*rows, f"  and the averages: {', '.join((*averages, 'overall'))}"]
        else:
            lines.append(f"{run.run}: no cell moves")
    return "\n".join(lines)
