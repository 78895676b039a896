"""Taking a person out again, and clearing a workspace after a release.

`erase` removes every record of a source through every stage and table, and remembers who it was (`erasures`), so that
they never come back. A near copy of an erased dialogue is the same words, whoever else said them: as far as `dedup`
has found it, it goes too, in all stages and both ways. `purge` removes the raw inputs, the private index of who was
who, and the key that surrogates were made with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.curate import recount
from h2htalk.curation.dedup import LOSERS, WORK
from h2htalk.curation.erase_who import Index, near_copies, who
from h2htalk.curation.erasures import marks_of, source_of
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.parts import AUDIT, KEPT, REJECTED, remove_for_good
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_json, write_jsonl
from h2htalk.data.shard import Shard
from h2htalk.errors import ConfigError, DataError

Change = Callable[[Record], Record | None]  # a line as it is to stand, None where it goes


@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out.

    Attributes:
        ids: of dialogues and persons, near copies among them.
        records: how many of each stage.
        raw: where in the owner's own files the words still stand: `file:line`.
        copies: those of `ids` that went as near copies of others.
    """

    ids: tuple[str, ...]
    records: dict[str, int]
    raw: tuple[str, ...]
    copies: tuple[str, ...] = ()


def erase(workspace: Workspace, source_id: str) -> Erased:
    """Take a dialogue or a person out of every stage and table.

    The ids are remembered first, and the index of who was who goes last, so that a kill in the middle leaves nothing
    that a second call does not find.

    Args:
        workspace: where.
        source_id: a dialogue's id, a person's (`SOURCE-p0003`), or, while the private index is there, the id that the
            raw data use (`SOURCE:ID` where several sources use it).

    Raises:
        ConfigError: several sources use that id.
        DataError: there is no workspace, nobody of that id was gathered, or a file cannot be rewritten.
    """
    _require_workspace(workspace)
    with workspace.locked():
        for stage in STAGES:
            workspace.stage(stage).drop_unfinished()
        index = {str(r["id"]): r.get("raw", {}) for r in workspace.stage("gather").records(AUDIT)}
        asked = who(workspace, source_id, index)
        copies = near_copies(workspace.stage("dedup"), asked)
        _remember(workspace, asked, copies, index)
        # With those whom a kill left half taken out.
        gone = asked | copies | workspace.erased()
        records = {stage: _erase_from(workspace, stage, gone) for stage in reversed(STAGES)}
        recount({stage: workspace.stage(stage) for stage in STAGES})
    ids = asked | copies
    places = (index[name] for name in ids if index.get(name))
    raw = {f"{place.get('file')}:{place.get('line', place.get('row', ''))}" for place in places}
    counts = {stage: records[stage] for stage in STAGES}
    return Erased(tuple(sorted(ids)), counts, tuple(sorted(raw)), tuple(sorted(copies)))


def _require_workspace(workspace: Workspace) -> None:
    # Before the lock, which would make the folder.
    if not any((workspace.path / name).exists() for name in ("workspace.json", *STAGES.values())):
        raise DataError(f"{workspace.path}: no curation has begun here; name the folder of one")


# --- Remembered ---------------------------------------------------------------------------------------------------


def _remember(workspace: Workspace, asked: frozenset[str], copies: frozenset[str], index: Index) -> None:
    """Write down who goes: by id, and by what knows them again in a changed file."""
    key = _key(workspace)
    files = workspace.source_files()
    marks: dict[str, set[str]] = {}
    if key is not None:
        words = {
            str(record["id"]): [[turn["role"], turn["content"]] for turn in record["messages"]]
            for record in workspace.stage("gather").records(KEPT)
            if record["id"] in asked | copies
        }
        # What others who stay are called too is no mark.
        stay = {(source_of(n), place.get("id")) for n, place in index.items() if n not in asked | copies}
        for name in asked | copies:
            place, source = index.get(name, {}), source_of(name)
            raw_id, person = place.get("id"), place.get("person")
            made = marks_of(key, source, raw_id, person, words.get(name))
            if (source, raw_id) in stay:
                made -= marks_of(key, source, raw_id, None, None)
            of_person = marks_of(key, source, None, person, None)
            marks.setdefault(name, set()).update(made - of_person)
            if (known_as := place.get("known_as")) in asked:
                marks.setdefault(known_as, set()).update(of_person)
    known = workspace.erased()
    with Shard(workspace.path / "erased.jsonl") as shard:
        for name in sorted((asked | copies) - known):
            of = files.get(source_of(name))
            line = {"id": name, "of": of, "marks": sorted(marks.get(name, ()))}
            shard.append({key: value for key, value in line.items() if value})


def _key(workspace: Workspace) -> bytes | None:
    """The secret; None where it was purged, and nothing is gathered any more."""
    if workspace.facts().get("purged") or not workspace.key_path.exists():
        return None
    return workspace.open_key()


# --- Out of the files --------------------------------------------------------------------------------------------


def _erase_from(workspace: Workspace, stage: str, gone: frozenset[str]) -> int:
    """Rewrite the parts that hold a record of these ids, and what lies beside them; returns how many are gone."""
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
            _rewrite(path, _renamed(gone, _key(workspace)))
        elif path.parent.name not in (KEPT, REJECTED, AUDIT):
            _rewrite(path, change)
    # Last, as by them a second call finds whom a kill left half taken out.
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
        provenance = record.get("provenance")
        if isinstance(provenance, dict) and not gone.isdisjoint(provenance.get("merged", ())):
            left = [name for name in provenance["merged"] if name not in gone]
            record = {**record, "provenance": {**provenance, "merged": left}}
        return record

    return change


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


# --- After a release --------------------------------------------------------------------------------------------


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns what is gone. What was reviewed stays.

    Raises:
        ConfigError: the last stage is not finished: without the key it never could be.
        DataError: there is no workspace, or something cannot be removed; names it.
    """
    _require_workspace(workspace)
    with workspace.locked():
        last = list(STAGES)[-1]
        if not (workspace.stage(last).path / "summary.json").exists():
            raise ConfigError(
                f"{workspace.path}: {STAGES[last]} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        # Said first: a kill in the middle leaves a workspace that nothing is added to.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        for stage in STAGES:
            workspace.stage(stage).drop_unfinished()
        gathered = workspace.stage("gather").path
        gone = [gathered / name for name in (KEPT, REJECTED, AUDIT, "calls", "raw")]
        gone = [path for path in (*gone, workspace.key_path) if path.exists()]
        for path in gone:
            remove_for_good(path)
    return gone
