"""Erase a person or a dialogue from a workspace.

`erase` writes a tombstone for each id (`tombstones`), removes these ids from what was gathered, and removes every part
of the later stages that held one. The next `curate run` makes these parts again, as if the ids had never been there:
stages are deterministic, and paid replies are stored. What other people wrote stays, however similar: a dialogue that
`dedup` had removed as a duplicate of an erased one comes back. After a kill the next `erase`, `purge` or `curate run`
first continues from the tombstones. After `purge` no stage can be made again, and an erasure filters the files of all
stages.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.curation.erasure_scope import (
    Index,
    find_copies,
    find_repeated,
    find_states,
    read_index,
    resolve_ids,
    source_place,
)
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.pipeline import finish
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder, remove_for_good
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES, stage_before, stages_from
from h2htalk.curation.tombstones import marks_of, source_of, write_tombstones
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_json, write_jsonl

# The first stage that compares records, and with it all that follow, are made again as a whole.
_COMPARING = next(name for name, stage in STAGES.items() if stage.compares)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased.

    Attributes:
        ids: of dialogues and persons, copies among them.
        copies: those of `ids` that are copies of others by the same person, or with equal words by nobody who is known.
        others: similar dialogues of other or unknown people, which stay.
        raw: places in the owner's own files that still hold the words: `file:line`, or `file:line, item n`.
        removed_parts: how many parts of which stages the next `curate run` makes again.
    """

    ids: tuple[str, ...]
    copies: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    removed_parts: Mapping[str, int] = field(default_factory=dict)


def erase(workspace: Workspace, source_id: str) -> Erased:
    """Erase a dialogue or a person from every stage and table.

    Args:
        workspace: with at least a gathered stage.
        source_id: of a dialogue or a person (`SOURCE-p0003`), or, before `purge`, the id in the raw data
            (`SOURCE:ID` where several sources use it).

    Raises:
        ConfigError: several sources or dialogues have that id; the secret key is missing or another one.
        DataError: there is no workspace, nobody of that id was gathered, a file cannot be rewritten, or a symbolic
            link leads out of the workspace.
    """
    workspace.require_begun()
    with workspace.locked():
        workspace.require_no_links()
        # Without the key nobody could be recognized in a file that is read again.
        key = None if workspace.facts().get("purged") else workspace.open_key(make=False)
        finish_erasure(workspace)
        index = read_index(workspace)
        asked = find_states(index, resolve_ids(workspace, source_id, index, key))
        asked |= find_repeated(workspace, asked, index)
        copies, others = find_copies(workspace.stage("dedup"), asked, index)
        ids = asked | copies
        raw = {source_place(index[name]) for name in ids if "file" in index.get(name, {})}
        if new := ids - workspace.erased():
            lines = _tombstone_lines(workspace, new, asked, index, key)
            write_tombstones(workspace.tombstones_path, [*workspace.tombstones().lines, *lines])
        removed = _apply(workspace)
        return Erased(tuple(sorted(ids)), tuple(sorted(copies)), tuple(sorted(others)), tuple(sorted(raw)), removed)


def finish_erasure(workspace: Workspace) -> None:
    """Complete an interrupted erasure, if there is one, and say so. The workspace's lock must be held.

    Raises:
        DataError: a file cannot be read or rewritten.
    """
    if len(workspace.tombstones().lines) != workspace.facts().get("erased", 0):
        workspace.require_no_links()
        _apply(workspace)
        print("erase: an interrupted erasure was completed", file=sys.stderr, flush=True)


def _tombstone_lines(
    workspace: Workspace, ids: frozenset[str], asked: frozenset[str], index: Index, key: bytes | None
) -> list[Record]:
    """A tombstone for each of `ids`; those not in `asked` are copies."""
    marks: dict[str, set[str]] = {}
    if key is not None:
        words = {
            str(record["id"]): [[turn["role"], turn["content"]] for turn in record["messages"]]
            for record in workspace.stage(FIRST_STAGE).records(KEPT)
            if record["id"] in ids
        }
        # A raw id that a dialogue that stays has as well identifies nobody.
        stay = {(source_of(name), entry.get("id")) for name, entry in index.items() if name not in ids}
        for name in ids:
            entry, source = index.get(name, {}), source_of(name)
            raw_id, person = entry.get("id"), entry.get("person")
            of_person = marks_of(key, source, None, person, None)
            if (source, raw_id) in stay:
                raw_id = None
            of_dialogue = marks_of(key, source, raw_id, person, words.get(name))
            marks.setdefault(name, set()).update(of_dialogue - of_person, entry.get("marks", ()))
            if (known_as := entry.get("known_as")) in asked:
                marks.setdefault(known_as, set()).update(of_person)
    files = workspace.source_files()
    lines: list[Record] = []
    for name in sorted(ids):
        line = {"id": name, "of": files.get(source_of(name)), "marks": sorted(marks.get(name, ()))}
        lines.append({field: value for field, value in line.items() if value})
    return lines


def _apply(workspace: Workspace) -> dict[str, int]:
    """Remove everybody with a tombstone from the files; returns how many parts of which stages were removed.

    The last stage comes first: the content of a stage says what the stages after it must lose. Doing it twice, or
    continuing after a kill, gives the same bytes.
    """
    gone, facts = workspace.erased(), workspace.facts()
    removed: dict[str, int] = {}
    compared = stages_from(_COMPARING)
    affected = any(_is_of(r, gone) for r in workspace.stage(stage_before(_COMPARING)).records(KEPT))
    # Whose candidates have a reply of an erased dialogue as a reference: what the review said of them quotes it.
    answered = {str(r["id"]) for r in workspace.stage(_COMPARING).records(KEPT) if _is_of(r, gone)}
    for stage in reversed(list(STAGES)):
        folder = workspace.stage(stage)
        folder.remove_unfinished()
        for path in sorted(folder.path.rglob("*.jsonl")):
            # Stored replies and reviews: tables whose lines begin with an item's id.
            if path.parent.name not in (KEPT, REJECTED, AUDIT, "costs", "batches"):
                _filter_lines(path, gone | answered if STAGES[stage].reads == "candidates" else gone)
        for name in STAGES[stage].temporary:  # the next run makes these files again
            remove_for_good(folder.path / name)
        if facts.get("purged"):
            if stage != FIRST_STAGE:  # purge has left nothing of it but its counts
                _filter_parts(folder, stage, gone)
            continue
        if stage == FIRST_STAGE:
            _filter_parts(folder, stage, gone)
            continue
        if stage in compared:
            held = folder.parts() if affected else []
            if affected:
                folder.clear()
        else:
            held = [part for part in folder.parts() if _holds(folder, part, gone)]
            if held:
                remove_for_good(folder.path / "summary.json")
            for part in held:
                folder.remove_part(part)
        if held:
            removed[stage] = len(held)
    write_json(workspace.path / "workspace.json", {**facts, "erased": len(workspace.tombstones().lines)})
    return {stage: removed[stage] for stage in STAGES if stage in removed}


def _filter_parts(folder: StageFolder, stage: str, gone: frozenset[str]) -> None:
    """Write the parts that hold an erased record again without it: of the first stage, and of all after a purge."""
    reads_candidates = STAGES[stage].reads == "candidates"
    for part in folder.parts():
        counts = folder.counts(part)
        # A kill may have come before the counts were written.
        lines = [sum(1 for _ in folder.part_records(part, kind)) for kind in (KEPT, REJECTED)]
        if _holds(folder, part, gone) or lines != [counts.written, sum(counts.reasons.values()) + counts.earlier]:
            folder.rewrite(
                part,
                stage,
                lambda record: not _is_of(record, gone),
                (lambda record: str(record["id"])) if reads_candidates else dialogue_of,
            )
    if (folder.path / "summary.json").exists():
        finish(folder)


def _holds(folder: StageFolder, part: str, gone: frozenset[str]) -> bool:
    kinds = (KEPT, REJECTED, AUDIT)
    return any(_is_of(record, gone) for kind in kinds for record in folder.part_records(part, kind))


def _is_of(record: Record, gone: frozenset[str]) -> bool:
    """Whether a line holds words of an erased id: by its own ids, or by those of the record in it."""
    records = (record, record.get("record", {}))
    replies = [
        r for one in records for r in (*one.get("metadata", {}).get("alternatives", ()), *one.get("references", ()))
    ]
    names = frozenset().union(*map(own_ids, (*records, *replies)))
    # A candidate and its calls begin with the dialogue's id: `DIALOGUE:subtask/pair-1-2/ab`.
    return not gone.isdisjoint({*names, *(name.split("/", 1)[0].split(":", 1)[0] for name in names)})


def _filter_lines(path: Path, gone: frozenset[str]) -> None:
    """Remove the lines of erased ids from a file; a file without any is not changed."""
    records = [record for _, record in read_jsonl(path, torn_tail=True)]
    left = [record for record in records if not _is_of(record, gone)]
    if len(left) < len(records):
        write_jsonl(path, left)
