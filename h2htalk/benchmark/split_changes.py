"""What changed between two versions of a split, and which cells of runs the change moves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.run import read_run_data
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS, in_table_order
from h2htalk.errors import DataError, counted
from h2htalk.text.record_diff import RecordDiff, diff_records, differing_fields
from h2htalk.text.tables import Table

# A change of these alone leaves the model's answer valid: only its score changes.
_SCORED_ONLY = {"reference", "references", "risk"}
# What neither a prompt nor a score reads.
_NOTES = {"provenance", "metadata", "licence", "tags"}


def diff_splits(old: str, new: str, runs: Sequence[Path] = ()) -> tuple[RecordDiff, list[Table]]:
    """Compare two splits item by item, and the items that runs of the old one asked with those of the new one.

    Returns the difference, and for each run the cells that it moves: items that differ, to be asked again, and gone.
    """
    before, after = load_split(old), load_split(new)
    diff = diff_records(_records(before), _records(after), (_facts(before), _facts(after)), {})
    return diff, [_moved_cells(path, before, after) for path in runs]


def _records(split: Split) -> dict[str, dict[str, Any]]:
    personas = {f"persona {name}": {"split": "personas", "persona": one} for name, one in split.personas.items()}
    parts = {one.id: one.subtask if isinstance(one, Scenario) else one.study for one in split.items}
    return {item.id: item.to_dict() | {"split": parts[item.id]} for item in split.items} | personas


def _facts(split: Split) -> dict[str, str]:
    names = ("name", "version", "licence", "fingerprint")
    return {name: str(getattr(split, name)) for name in names} | {"items": f"{len(split.items):,}"}


def _moved_cells(path: Path, before: Split, after: Split) -> Table:
    run = read_run_data(path).split
    items, old, new = run.scenarios, {one.id for one in before.scenarios}, {one.id: one for one in after.scenarios}
    if not any(item.id in old or item.id in new for item in items):
        raise DataError(f"{path}: is no run of {before.name}: it holds none of its items")
    cells = defaultdict[str, Counter[str]](Counter)
    for item in items:
        other = new.get(item.id)
        changed = set[str]()
        if other is not None:
            changed |= {*differing_fields(item.to_dict(), other.to_dict())}
            changed |= {"persona"} if run.personas[item.persona] != after.personas[other.persona] else set()
            changed |= {"risk"} if item.tags.risk != other.tags.risk else set()  # a crisis allows longer replies
            changed -= _NOTES
        if other is None or changed:
            cells[item.subtask].update(differ=1, again=not changed <= _SCORED_ONLY, gone=other is None)
    if not cells:
        return Table(f"{path}: no cell moves", ("",), ())
    counts = [(SUBTASKS[name].title, cells[name]) for name in in_table_order(cells)]
    rows = [(title, own["differ"], own["again"], own["gone"]) for title, own in counts]
    averages = [name for name in DIMENSIONS if any(SUBTASKS[one].dimension == name for one in cells)]
    differ = sum(cell["differ"] for cell in cells.values())
    title = f"{path}: {differ:,} of {counted(len(items), 'item')} differ; cells that move:"
    note = f"and the averages: {', '.join((*averages, 'overall'))}"
    return Table(title, ("", "items", "to ask again", "removed"), rows, (note,))
