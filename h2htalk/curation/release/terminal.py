"""What `release build` and `release check` print."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.curation.release.build import Release
from h2htalk.curation.release.gates import GATES
from h2htalk.data.subtasks import in_table_order
from h2htalk.errors import counted

_SHOWN = 20  # findings of a gate


def release_lines(release: Release) -> Iterator[str]:
    """What was accepted, refused and chosen, then what the gates found."""
    accepted = release.accepted
    yield from release.notes
    if accepted is not None:
        total = len(accepted.items) + len(accepted.refused)
        yield f"accepted: {len(accepted.items):,} of {counted(total, 'item')}"
        yield from (f"  refused: {reason}: {count:,}" for reason, count in accepted.reasons().items())
        chosen = {name: [item.scenario.subtask for item in items] for name, items in release.content.splits.items()}
        for subtask in in_table_order({name for names in chosen.values() for name in names}):
            yield f"{subtask}: " + ", ".join(f"{split} {names.count(subtask):,}" for split, names in chosen.items())
    for config, splits in release.content.configs().items():
        yield f"config {config}: " + ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
    for gate in GATES.values():
        found = [one for one in release.findings if one.gate == gate.name]
        if found:
            yield f"gate {gate.name}: {gate.stops}: {counted(len(found), 'finding')}"
            yield from (f"  {one.item}: {one.detail}" if one.item else f"  {one.detail}" for one in found[:_SHOWN])
            if len(found) > _SHOWN:
                yield f"  and {len(found) - _SHOWN:,} more"
