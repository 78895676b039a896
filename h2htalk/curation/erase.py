"""Taking a person out again, and clearing a workspace after a release.

`erase` removes every record of a source through every stage and table, and remembers the id so that it never comes
back. `purge` removes the raw inputs, the private index of who was who, and the key that surrogates were made with.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.curate import recount
from h2htalk.curation.outcomes import Record, dialogue_of, source_ids
from h2htalk.curation.parts import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, remove_file, write_json, write_jsonl
from h2htalk.data.shard import Shard
from h2htalk.errors import ConfigError, DataError, quoted


@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out: ids of dialogues and persons, and how many records of each stage."""

    ids: tuple[str, ...]
    records: dict[str, int]
    raw: tuple[str, ...]  # where in the owner's own files the person still stands: `file:line`


def erase(workspace: Workspace, source_id: str) -> Erased:
    """Take a dialogue or a person out of every stage and table.

    The ids are remembered first, so that a kill in the middle leaves nothing that a second call does not find.

    Args:
        workspace: where.
        source_id: a dialogue's id, a person's (`SOURCE-p0003`), or, while the private index is there, the id that the
            raw data use.

    Raises:
        DataError: nobody of that id was gathered.
    """
    with workspace.locked():
        ids, raw = _who(workspace, source_id)
        with Shard(workspace.path / "erased.jsonl") as shard:
            known = workspace.erased()
            shard.append_all({"id": item} for item in sorted(ids - known))
        records = {stage: _erase_from(workspace.stage(stage), ids) for stage in STAGES}
        recount({stage: workspace.stage(stage) for stage in STAGES})
    return Erased(tuple(sorted(ids)), records, raw)


def _who(workspace: Workspace, source_id: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Every id of the source, the person's own among them, and where the raw files hold it."""
    index = {str(record["id"]): record.get("raw", {}) for record in workspace.stage("gather").records(AUDIT)}
    ids = {source_id} if source_id in workspace.erased() else set[str]()
    raw: set[str] = set()
    for record in _everything(workspace):
        dialogue = dialogue_of(record)
        place = index.get(dialogue, {})
        person = record.get("provenance", {}).get("person")
        if source_id in (person, place.get("person")) and isinstance(person, str):
            ids |= {dialogue, person}
        elif source_id in source_ids(record) or str(place.get("id")) == source_id:
            ids.add(dialogue)
        else:
            continue
        if place:
            raw.add(f"{place.get('file')}:{place.get('line', place.get('row', ''))}")
    if not ids:
        raise DataError(
            f"{workspace.path}: nobody of id {quoted(source_id)} was gathered; ids stand in 01-gathered/kept, those of "
            "the raw data in its private index until purge"
        )
    return frozenset(ids), tuple(sorted(raw))


def _everything(workspace: Workspace) -> Iterator[Record]:
    for stage in STAGES:
        folder = workspace.stage(stage)
        yield from folder.records(KEPT)
        for record in folder.records(REJECTED):
            held = record.get("record")
            yield held if isinstance(held, dict) else record


def _erase_from(folder: StageFolder, ids: frozenset[str]) -> int:
    """Rewrite the parts that hold a record of these ids, and what lies beside them; returns how many are gone."""
    gone = 0
    for part in folder.parts():
        keep = _keeper(ids)
        kept = _rewrite(folder.file(KEPT, part), keep)
        lost = _rewrite(folder.file(REJECTED, part), keep)
        _rewrite(folder.file(AUDIT, part), keep)
        if kept or lost:
            folder.recount(part)
        gone += kept + lost
    # Model calls, sums of dedup, calibrations: tables whose lines begin with an item's id.
    for path in sorted(folder.path.rglob("*.jsonl")):
        if path.parent.name not in (KEPT, REJECTED, AUDIT):
            _rewrite(path, _keeper(ids))
    return gone


def _keeper(ids: frozenset[str]) -> Callable[[Record], bool]:
    def keep(record: Record) -> bool:
        held = record.get("record")
        own = source_ids(record) | (source_ids(held) if isinstance(held, dict) else frozenset())
        # `DIALOGUE:subtask/pair-1-2/ab`: a candidate and its calls begin with the dialogue's id.
        own |= {name.split("/", 1)[0].split(":", 1)[0] for name in own}
        return not own & ids

    return keep


def _rewrite(path: Path, keep: Callable[[Record], bool]) -> int:
    """Leave out the lines that are not to be kept; returns how many. A file without any is not touched."""
    if not path.exists():
        return 0
    records = [record for _, record in read_jsonl(path, torn_tail=True)]
    left = [record for record in records if keep(record)]
    if len(left) < len(records):
        write_jsonl(path, left)
    return len(records) - len(left)


# --- After a release --------------------------------------------------------------------------------------------


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns what is gone. What was reviewed stays.

    Raises:
        ConfigError: the last stage is not finished: without the key it never could be.
    """
    with workspace.locked():
        last = list(STAGES)[-1]
        if not (workspace.stage(last).path / "summary.json").exists():
            raise ConfigError(
                f"{workspace.path}: {STAGES[last]} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        # Said first: a kill in the middle leaves a workspace that nothing is added to.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        gathered = workspace.stage("gather")
        gone = [path for kind in (KEPT, REJECTED, AUDIT) if (path := gathered.path / kind).exists()]
        gone += [path for name in ("calls", "raw") if (path := gathered.path / name).exists()]
        for path in gone:
            shutil.rmtree(path)
        if workspace.key_path.exists():
            remove_file(workspace.key_path)
            gone.append(workspace.key_path)
    return gone
