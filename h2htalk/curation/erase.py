"""Taking a person out again, and clearing a workspace after a release.

`erase` removes every record of a source through every stage and table, and remembers who it was (`erasures`), so that
they never come back. A near copy of an erased dialogue is the same words, whoever else said them: as far as `dedup`
has found it, it goes too, in all stages and both ways. What is to be done is written down before it is begun: after a
kill the next `erase`, `purge` or `curate run` finishes it before anything else. `purge` removes the raw inputs, the
private index of who was who, and the key that surrogates were made with.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.erase_files import take_out
from h2htalk.curation.erase_who import Index, near_copies, raw_index, require_own, who
from h2htalk.curation.erasures import Pending, marks_of, source_of
from h2htalk.curation.outcomes import Record
from h2htalk.curation.parts import AUDIT, KEPT, REJECTED, remove_for_good, require_no_links
from h2htalk.curation.source_changes import place_of
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_json
from h2htalk.data.shard import Shard
from h2htalk.errors import ConfigError
from h2htalk.text.printable import printable


@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out.

    Attributes:
        ids: of dialogues and persons, near copies among them.
        records: how many of each stage; of an erasure that was finished after a kill, those that were left.
        raw: where in the owner's own files the words still stand: `file:line`, or `file:line, item n`.
        copies: those of `ids` that went as near copies of others.
    """

    ids: tuple[str, ...]
    records: dict[str, int]
    raw: tuple[str, ...]
    copies: tuple[str, ...] = ()


def erase(workspace: Workspace, source_id: str, *, others_too: bool = False) -> Erased:
    """Take a dialogue or a person out of every stage and table.

    Args:
        workspace: where.
        source_id: a dialogue's id, a person's (`SOURCE-p0003`), or, while the private index is there, the id that the
            raw data use (`SOURCE:ID` where several sources use it).
        others_too: near copies go even where they are another person's, or nobody knows whose.

    Raises:
        ConfigError: several sources or dialogues use that id; the secret key is missing or another one.
        OthersGoToo: near copies of others would go, and `others_too` was not said; lists them.
        DataError: there is no workspace, nobody of that id was gathered, a file cannot be rewritten, or a symbolic
            link leads out of the workspace.
    """
    workspace.require_begun()
    with workspace.locked():
        key = _key(workspace)
        before = workspace.pending()
        if before is not None:
            finished = _finish(workspace, before, key)
            if before.is_of(source_id, key):  # the same command again, after a kill
                return finished
        _require_no_links(workspace)
        _drop_unfinished(workspace)
        index = raw_index(workspace)
        asked = who(workspace, source_id, index)
        copies = near_copies(workspace.stage("dedup"), asked)
        if not others_too:
            require_own(workspace, source_id, asked, copies, index)
        places = (index[name] for name in asked | copies if index.get(name))
        raw = set(map(place_of, places))
        pending = Pending.of(
            source_id,
            key,
            ids=tuple(sorted(asked | copies)),
            copies=tuple(sorted(copies)),
            raw=tuple(sorted(raw)),
            lines=tuple(_lines(workspace, asked, copies, index, key)),
        )
        pending.write(workspace.pending_path)
        return _finish(workspace, pending, key)


def finish_erasure(workspace: Workspace) -> None:
    """Finish what a kill left of an erasure, and say so; nothing where there is none. The workspace's lock is held.

    Raises:
        DataError: a file cannot be read or rewritten; nothing else is to be done here until it can.
    """
    pending = workspace.pending()
    if pending is None:
        return
    _finish(workspace, pending, _key(workspace))
    told = f"erase: one that was interrupted is finished: {len(pending.ids):,} ids are taken out"
    print(printable(told), file=sys.stderr, flush=True)


def _finish(workspace: Workspace, pending: Pending, key: bytes | None) -> Erased:
    """Do what is written down; every step may be done twice."""
    _require_no_links(workspace)
    _drop_unfinished(workspace)
    path = workspace.path / "erased.jsonl"
    with Shard(path) as shard:
        there = {_canonical(record) for _, record in read_jsonl(path)}
        shard.append_all(line for line in pending.lines if _canonical(line) not in there)
    # With those whom an older version's kill left half taken out.
    records = take_out(workspace, frozenset(pending.ids) | workspace.erased(), key)
    remove_for_good(workspace.pending_path)
    return Erased(pending.ids, records, pending.raw, pending.copies)


def _canonical(line: Record) -> str:
    return json.dumps(line, sort_keys=True)


def _require_no_links(workspace: Workspace) -> None:
    """The workspace itself may be one."""
    for path in sorted(workspace.path.iterdir()):
        require_no_links(path)


def _drop_unfinished(workspace: Workspace) -> None:
    for stage in STAGES:
        workspace.stage(stage).drop_unfinished()


def _key(workspace: Workspace) -> bytes | None:
    """The secret; None where it was purged, and nothing is gathered any more.

    Raises:
        ConfigError: it is missing: nobody could be known again in a changed file; or it is another one.
    """
    if workspace.facts().get("purged"):
        return None
    return workspace.open_key(make=False)


# --- Remembered ---------------------------------------------------------------------------------------------------


def _lines(
    workspace: Workspace, asked: frozenset[str], copies: frozenset[str], index: Index, key: bytes | None
) -> list[Record]:
    """What `erased.jsonl` is to hold besides: who goes, by id, and by what knows them again in a changed file."""
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
    lines: list[Record] = []
    for name in sorted((asked | copies) - workspace.erased()):
        line = {"id": name, "of": files.get(source_of(name)), "marks": sorted(marks.get(name, ()))}
        lines.append({key: value for key, value in line.items() if value})
    return lines


# --- After a release --------------------------------------------------------------------------------------------


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns what is gone. What was reviewed stays.

    Raises:
        ConfigError: the last stage is not finished: without the key it never could be.
        DataError: there is no workspace, something cannot be removed, or a symbolic link leads out of the workspace;
            names it.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        last = list(STAGES)[-1]
        if not (workspace.stage(last).path / "summary.json").exists():
            raise ConfigError(
                f"{workspace.path}: {STAGES[last]} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        _require_no_links(workspace)
        # Said first: a kill in the middle leaves a workspace that nothing is added to.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        _drop_unfinished(workspace)
        gathered = workspace.stage("gather").path
        gone = [gathered / name for name in (KEPT, REJECTED, AUDIT, "calls", "raw")]
        gone = [path for path in (*gone, workspace.key_path) if path.exists()]
        for path in gone:
            remove_for_good(path)
    return gone
