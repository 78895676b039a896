"""Taking a person out again, and clearing a workspace after a release.

`erase` writes a tombstone for each id (`tombstones`), takes these out of what was gathered, and drops every part of
the later stages that held one. The next `curate run` makes these parts again, as if the ids had never been there:
stages are deterministic, and paid answers are stored. A near copy of an erased dialogue is the same words, whoever else
said them: as far as `dedup` has found it, it goes too. After a kill the next `erase`, `purge` or `curate run` goes on
from the tombstones before anything else. `purge` removes the raw inputs, the private index of who was who, and the key
that surrogates were made with; after it nothing can be made again, and an erasure filters every stage.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.curation.dedup.stage import LOSERS, WORK
from h2htalk.curation.erasure_scope import Index, near_copies, place_of, read_index, require_own, who
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.pipeline import finish
from h2htalk.curation.stage_folder import (
    AUDIT,
    KEPT,
    REJECTED,
    StageFolder,
    remove_for_good,
    require_no_links,
)
from h2htalk.curation.tombstones import marks_of, source_of, write_tombstones
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_json, write_jsonl

# Stages that look at all dialogues together, or read one that does: made again whole.
_WHOLE = ("dedup", "compose", "review")


@dataclass(frozen=True, slots=True)
class Erased:
    """What was taken out.

    Attributes:
        ids: of dialogues and persons, near copies among them.
        copies: those of `ids` that went as near copies of others.
        raw: where in the owner's own files the words still stand: `file:line`, or `file:line, item n`.
        again: how many parts of which stages the next `curate run` makes again.
    """

    ids: tuple[str, ...]
    copies: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    again: Mapping[str, int] = field(default_factory=dict)


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
        _require_no_links(workspace)
        # Without the key nobody could be recognised in a file that is read again.
        key = None if workspace.facts().get("purged") else workspace.open_key(make=False)
        finish_erasure(workspace)
        index = read_index(workspace)
        asked = who(workspace, source_id, index, key)
        copies = near_copies(workspace.stage("dedup"), asked)
        if not others_too:
            require_own(source_id, asked, copies, index)
        ids = asked | copies
        raw = {place_of(index[name]) for name in ids if "file" in index.get(name, {})}
        if new := ids - workspace.erased():
            lines = _tombstone_lines(workspace, new, asked, index, key)
            write_tombstones(workspace.tombstones_path, [*workspace.tombstones().lines, *lines])
        again = _apply(workspace)
        return Erased(tuple(sorted(ids)), tuple(sorted(copies)), tuple(sorted(raw)), again)


def finish_erasure(workspace: Workspace) -> None:
    """Finish what a kill left of an erasure, and say so; nothing where there is none. The workspace's lock is held.

    Raises:
        DataError: a file cannot be read or rewritten; nothing else is to be done here until it can.
    """
    if len(workspace.tombstones().lines) != workspace.facts().get("erased", 0):
        _require_no_links(workspace)
        _apply(workspace)
        print("erase: an interrupted erasure is finished", file=sys.stderr, flush=True)


def _require_no_links(workspace: Workspace) -> None:
    """The workspace itself may be one."""
    for path in sorted(workspace.path.iterdir()):
        require_no_links(path)


def _tombstone_lines(
    workspace: Workspace, ids: frozenset[str], asked: frozenset[str], index: Index, key: bytes | None
) -> list[Record]:
    """A tombstone for each of `ids`; `asked` are those that were asked for, the others near copies."""
    marks: dict[str, set[str]] = {}
    if key is not None:
        words = {
            str(record["id"]): [[turn["role"], turn["content"]] for turn in record["messages"]]
            for record in workspace.stage("gather").records(KEPT)
            if record["id"] in ids
        }
        # What others who stay are called too is no mark.
        stay = {(source_of(name), entry.get("id")) for name, entry in index.items() if name not in ids}
        for name in ids:
            entry, source = index.get(name, {}), source_of(name)
            raw_id, person = entry.get("id"), entry.get("person")
            of_person = marks_of(key, source, None, person, None)
            if (source, raw_id) in stay:
                raw_id = None
            made = marks_of(key, source, raw_id, person, words.get(name))
            marks.setdefault(name, set()).update(made - of_person)
            if (known_as := entry.get("known_as")) in asked:
                marks.setdefault(known_as, set()).update(of_person)
    files = workspace.source_files()
    lines: list[Record] = []
    for name in sorted(ids):
        line = {"id": name, "of": files.get(source_of(name)), "marks": sorted(marks.get(name, ()))}
        lines.append({field: value for field, value in line.items() if value})
    return lines


# --- Out of the stages --------------------------------------------------------------------------------------------


def _apply(workspace: Workspace) -> dict[str, int]:
    """Take everybody with a tombstone out of the files; returns how many parts of which stages are to be made again.

    The last stage goes first: what a stage still holds says what those after it have to lose. Doing it twice, or
    going on after a kill, ends in the same bytes.
    """
    gone, facts = workspace.erased(), workspace.facts()
    again: dict[str, int] = {}
    reached = any(_is_of(record, gone) for record in workspace.stage("safety").records(KEPT))
    for stage in reversed(STAGES):
        folder = workspace.stage(stage)
        folder.drop_unfinished()
        for path in sorted(folder.path.rglob("*.jsonl")):
            # Stored answers, reviews: tables whose lines begin with an item's id.
            if path.parent.name not in (KEPT, REJECTED, AUDIT, "costs", "batches"):
                _rewrite(path, gone)
        # What dedup is in the middle of holds texts and ids; the next run makes it anew.
        for name in (LOSERS, WORK):
            remove_for_good(folder.path / name)
        if stage == "gather" and facts.get("purged"):
            continue  # nothing of it is left but its counts
        if stage == "gather" or facts.get("purged"):
            _filter(folder, stage, gone)
            continue
        if stage in _WHOLE:
            held = folder.parts() if reached else []
            if reached:
                folder.clear()
        else:
            held = [part for part in folder.parts() if _holds(folder, part, gone)]
            if held:
                remove_for_good(folder.path / "summary.json")
            for part in held:
                folder.drop(part)
        if held:
            again[stage] = len(held)
    write_json(workspace.path / "workspace.json", {**facts, "erased": len(workspace.tombstones().lines)})
    return {stage: again[stage] for stage in STAGES if stage in again}


def _filter(folder: StageFolder, stage: str, gone: frozenset[str]) -> None:
    """Write the parts that hold one of these anew without them: the stage that has no other to be made again from,
    and after a purge all stages."""
    # Review reads candidates, the other stages dialogues.
    unit = (lambda record: str(record["id"])) if stage == "review" else dialogue_of
    for part in folder.parts():
        counts = folder.counts(part)
        # A kill may have come before the counts were written.
        lines = [sum(1 for _ in folder.part_records(part, kind)) for kind in (KEPT, REJECTED)]
        if _holds(folder, part, gone) or lines != [counts.written, sum(counts.reasons.values())]:
            folder.rewrite(part, stage, lambda record: not _is_of(record, gone), unit)
    if (folder.path / "summary.json").exists():
        finish(folder)


def _holds(folder: StageFolder, part: str, gone: frozenset[str]) -> bool:
    kinds = (KEPT, REJECTED, AUDIT)
    return any(_is_of(record, gone) for kind in kinds for record in folder.part_records(part, kind))


def _is_of(record: Record, gone: frozenset[str]) -> bool:
    """Whether a line holds words of one of these: by its own ids, or by those of the record in it."""
    names = own_ids(record) | own_ids(record.get("record", {}))
    # `DIALOGUE:subtask/pair-1-2/ab`: a candidate and its calls begin with the dialogue's id.
    return not gone.isdisjoint({*names, *(name.split("/", 1)[0].split(":", 1)[0] for name in names)})


def _rewrite(path: Path, gone: frozenset[str]) -> None:
    """Take the lines of these out of a file. A file without any is not touched."""
    records = [record for _, record in read_jsonl(path, torn_tail=True)]
    left = [record for record in records if not _is_of(record, gone)]
    if len(left) < len(records):
        write_jsonl(path, left)


# --- After a release --------------------------------------------------------------------------------------------
