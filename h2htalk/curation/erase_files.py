"""Out of the files: every record of those who are taken out, wherever a stage holds one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2htalk.curation.dedup import LOSERS, WORK
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.parts import AUDIT, KEPT, REJECTED, remove_for_good
from h2htalk.curation.stages import finish
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_jsonl

Change = Callable[[Record], Record | None]  # a line as it is to stand, None where it goes


def take_out(workspace: Workspace, gone: frozenset[str], key: bytes | None) -> dict[str, int]:
    """Rewrite every file that holds a record of these ids, the last stage first, and count anew.

    The index of who was who goes last. Doing it twice, or going on after a kill, ends in the same bytes.

    Args:
        workspace: where; its lock held.
        gone: ids of dialogues and persons.
        key: the workspace's secret, which names them anew in the books; None where it was purged.

    Returns:
        How many records of each stage are gone.
    """
    counts = {stage: _erase_from(workspace, stage, gone, key) for stage in reversed(STAGES)}
    for stage in STAGES:
        folder = workspace.stage(stage)
        if (folder.path / "summary.json").exists():
            finish(folder)
    return {stage: counts[stage] for stage in STAGES}


def _erase_from(workspace: Workspace, stage: str, gone: frozenset[str], key: bytes | None) -> int:
    """The parts of a stage that hold a record of these ids, and what lies beside them; returns how many are gone."""
    folder, count = workspace.stage(stage), 0
    change = _without(gone)
    purged = stage == "gather" and workspace.facts().get("purged")
    following = workspace.stage("anonymize")
    unit = _own_id if stage == "review" else dialogue_of  # review reads candidates, the others dialogues
    for part in folder.parts():
        count += sum(_rewrite(folder.file(kind, part), change) for kind in (KEPT, REJECTED))
        if not purged:
            folder.recount(part, unit)
        elif following.done(part):
            folder.recount_purged(part, following.counts(part).read, gone)
    # What dedup is in the middle of holds texts and ids; the next run makes it anew.
    for name in (LOSERS, WORK):
        remove_for_good(folder.path / name)
    # Model calls, reviews, calibrations: tables whose lines begin with an item's id.
    for path in sorted(folder.path.rglob("*.jsonl")):
        if path.parent.name in ("costs", "batches"):
            _rewrite(path, _renamed(gone, key))
        elif path.parent.name not in (KEPT, REJECTED, AUDIT):
            _rewrite(path, change)
    # Last, as by them a person is found who is only half taken out.
    for part in folder.parts():
        _rewrite(folder.file(AUDIT, part), change)
    return count


def _own_id(record: Record) -> str:
    return str(record["id"])


def _dialogue(name: str) -> str:
    """`DIALOGUE:subtask/pair-1-2/ab`: a candidate and its calls begin with the dialogue's id."""
    return name.split("/", 1)[0].split(":", 1)[0]


def _without(gone: frozenset[str]) -> Change:
    """A line of somebody else without the ids of those who go; of theirs nothing."""

    def change(record: Record) -> Record | None:
        held = record.get("record")
        names = own_ids(record) | (own_ids(held) if isinstance(held, dict) else frozenset())
        if {*names, *map(_dialogue, names)} & gone:
            return None
        evidence = record.get("evidence")
        if isinstance(evidence, dict) and evidence.get("of") in gone:
            record = {**record, "evidence": {**evidence, "of": ""}}
        return _without_copies(record, gone)

    return change


def _without_copies(record: Record, gone: frozenset[str]) -> Record:
    """A record that does not say it stands for those who go; nor does the one it holds, or its scenario."""
    provenance = record.get("provenance")
    if isinstance(provenance, dict) and not gone.isdisjoint(provenance.get("merged", ())):
        left = [name for name in provenance["merged"] if name not in gone]
        record = {**record, "provenance": {**provenance, "merged": left}}
    for name in ("record", "scenario"):
        held = record.get(name)
        if isinstance(held, dict):
            record = {**record, name: _without_copies(held, gone)}
    return record


def _renamed(gone: frozenset[str], key: bytes | None) -> Change:
    """A line of the books with other names for those who go: what was paid stays paid."""

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, str) or _dialogue(value) not in gone:
            return value
        # Two calls stay two; without the key nobody can be led back to.
        return (
            "erased"
            if key is None
            else f"erased-{hashlib.blake2b(value.encode(), key=key, digest_size=8).hexdigest()}"
        )

    def change(record: Record) -> Record:
        names = {name: renamed(record[name]) for name in ("items", "calls") if name in record}
        return {**record, **names}

    return change


def _rewrite(path: Path, change: Change) -> int:
    """Change the lines of a file; returns how many went. A file where nothing changes is not touched."""
    if not path.exists():
        return 0
    records = [record for _, record in read_jsonl(path, torn_tail=True)]
    left = [changed for record in records if (changed := change(record)) is not None]
    if left != records:
        write_jsonl(path, left)
    return len(records) - len(left)
