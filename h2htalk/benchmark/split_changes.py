"""What changed between two versions of a split, and which cells of runs the change moves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.run import read_run_data
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS, in_table_order
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
    before = load_split(old)
    after = load_split(new)
    diff = diff_records(_records(before), _records(after), (_facts(before), _facts(after)), {})
    return diff, [_moved_cells(path, before, after) for path in runs]


def _records(split: Split) -> dict[str, dict[str, Any]]:
    records = {}
    for item in split.items:
        group = item.subtask if isinstance(item, Scenario) else item.study
        records[item.id] = item.to_dict() | {"split": group}
    for name, persona in split.personas.items():
        records[f"persona {name}"] = {"split": "personas", "persona": persona}
    return records


def _facts(split: Split) -> dict[str, str]:
    names = ("name", "version", "licence", "fingerprint")
    return {name: str(getattr(split, name)) for name in names} | {"items": f"{len(split.items):,}"}


def _moved_cells(path: Path, before: Split, after: Split) -> Table:
    run = read_run_data(path).split
    items = run.scenarios
    old_ids = {scenario.id for scenario in before.scenarios}
    new_items = {scenario.id: scenario for scenario in after.scenarios}
    if old_ids.union(new_items).isdisjoint(item.id for item in items):
        raise DataError(f"{path}: is no run of {before.name}: it holds none of its items")
    cells = defaultdict[str, Counter[str]](Counter)
    for item in items:
        new_item = new_items.get(item.id)
        if new_item is None:
            cells[item.subtask].update(differ=1, gone=1)
            continue
        changed = {*differing_fields(item.to_dict(), new_item.to_dict())}
        if run.personas[item.persona] != after.personas[new_item.persona]:
            changed.add("persona")
        if item.tags.risk != new_item.tags.risk:  # a crisis allows longer replies
            changed.add("risk")
        changed -= _NOTES
        if changed:
            cells[item.subtask].update(differ=1, again=int(not changed <= _SCORED_ONLY))
    if not cells:
        return Table(f"{path}: no cell moves", ("",), ())
    rows = []
    averages = dict[str, None]()
    differ = 0
    for name in in_table_order(cells):
        counts = cells[name]
        differ += counts["differ"]
        subtask = SUBTASKS[name]
        averages[subtask.dimension] = None
        rows.append((subtask.title, counts["differ"], counts["again"], counts["gone"]))
    title = f"{path}: {differ:,} of {counted(len(items), 'item')} differ; cells that move:"
    note = f"and the averages: {', '.join((*averages, 'overall'))}"
    return Table(title, ("", "items", "to ask again", "removed"), rows, (note,))
