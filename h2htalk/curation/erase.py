"""Erase a person or a dialogue from a workspace.

`erase` writes a tombstone for each id (`tombstones`), removes these ids from what was gathered, and removes every part
of the later stages that held one. The next `curate run` makes these parts again, as if the ids had never been there:
stages are deterministic, and paid replies are stored. What other people wrote stays, however similar: a dialogue that
`dedup` had removed as a duplicate of an erased one comes back. After a kill the next `erase`, `purge` or `curate run`
first continues from the tombstones. After `purge` no stage can be made again, and an erasure filters the files of all
stages. Then the ids leave every folder that was made from the workspace (`data.erasure`).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from h2htalk.curation.outcomes import Record, dialogue_of
from h2htalk.curation.pipeline import finish
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES, stage_before, stages_from
from h2htalk.curation.tombstones import marks_of, source_of, write_tombstones
from h2htalk.curation.workspace import Workspace
from h2htalk.data.candidate_stages import CANDIDATE_STAGES
from h2htalk.data.erasure.erased_ids import ErasedIds, ids_in
from h2htalk.data.erasure.filter_files import MARK, filter_file, remove_for_good
from h2htalk.data.erasure.folder_kinds import FolderErasure
from h2htalk.data.erasure.sweep import mark_folders, sweep, sweep_source
from h2htalk.data.files import refuse_links, write_json
from h2htalk.data.links import HUB
from h2htalk.errors import ConfigError

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
        folders: what was made from the workspace, and what was erased there.
    """

    ids: tuple[str, ...]
    copies: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    removed_parts: Mapping[str, int] = field(default_factory=dict)
    folders: tuple[FolderErasure, ...] = ()


def erase(workspace: Workspace, source_id: str, also: Sequence[Path] = ()) -> Erased:
    """Erase a dialogue or a person from every stage and table, and from what was made from the workspace.

    Args:
        workspace: with at least a gathered stage.
        source_id: of a dialogue or a person (`SOURCE-p0003`), or in the raw data (`SOURCE:ID` where several use it).
        also: folders with rounds, runs and releases that were made from it, and that it does not know.

    Raises:
        ConfigError: several sources or dialogues have that id; the secret key or a folder of `also` is missing.
        DataError: nobody of that id was gathered, or a file cannot be rewritten.
    """
    workspace.require_begun()
    if missing := [path for path in also if not path.is_dir()]:
        raise ConfigError(f"--also {missing[0]}: is no folder")
    with workspace.locked():
        refuse_links(workspace.path)
        # Without the key nobody could be recognized in a file that is read again.
        open_key = workspace.open_erasure_key if workspace.facts().get("purged") else workspace.open_key
        key = open_key(make=False)
        _finish_stages(workspace)
        index = read_index(workspace)
        asked = find_states(index, resolve_ids(workspace, source_id, index, key))
        asked |= find_repeated(workspace, asked, index)
        copies, others = find_copies(workspace.stage("dedup"), asked, index)
        ids = asked | copies
        raw = {source_place(index[name]) for name in ids if "file" in index.get(name, {})}
        if new := ids - workspace.erased():
            lines = _tombstone_lines(workspace, new, asked, index, key)
            mark_folders(workspace.path, also)
            write_tombstones(workspace.tombstones_path, [*workspace.tombstones().lines, *lines])
        removed = _apply(workspace)
        folders = _sweep(workspace, ids, also)
        of, copied, similar, places = (tuple(sorted(names)) for names in (ids, copies, others, raw))
        return Erased(of, copied, similar, places, removed, folders)


def finish_erasure(workspace: Workspace) -> None:
    """Complete an interrupted erasure, if there is one, and say so. The workspace's lock must be held.

    A folder that cannot be reached stops nobody: it is named on standard error, and tried again by the next command.
    Raises DataError.
    """
    _finish_stages(workspace)
    pending = len(workspace.tombstones().lines) != workspace.facts().get("reached", 0)
    if pending or (workspace.path / MARK).exists():
        for one in _sweep(workspace):
            if one.unfinished:
                print(f"erase: {one.name} is not finished: {'; '.join(one.messages)}", file=sys.stderr, flush=True)


def _sweep(workspace: Workspace, ids: Collection[str] = (), also: Sequence[Path] = ()) -> tuple[FolderErasure, ...]:
    """Erase from what was made from the workspace everybody with a tombstone.

    Item ids alone decide only for `ids` and for those whose erasure has not reached every folder yet: an item that lost
    a reference of an erased dialogue is made again, and its id may then be in new rounds and runs.
    """
    lines, facts = workspace.tombstones().lines, workspace.facts()
    new = [line for at, line in enumerate(lines) if at >= facts.get("reached", 0) or line["id"] in ids]
    items = frozenset(item for line in new for item in line.get("items", ()))
    folders = tuple(sweep(workspace.path, ErasedIds(workspace.erased(), items), also))
    # Of a data set on the Hub, `of` is the format and its name and commit.
    gathered = {str(line.get("of")).partition("/")[2] for line in new}
    folders += tuple(sweep_source(name) for name in sorted(gathered) if name.startswith(HUB))
    remove_for_good(workspace.path / MARK)
    if not any(folder.unfinished for folder in folders):
        write_json(workspace.path / "workspace.json", {**facts, "reached": len(lines)})
    return folders


def _finish_stages(workspace: Workspace) -> None:
    if len(workspace.tombstones().lines) != workspace.facts().get("erased", 0):
        refuse_links(workspace.path)
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
            known = (*entry.get("marks", ()), *entry.get("hashes", ()))
            marks.setdefault(name, set()).update(of_dialogue - of_person, known)
            if (known_as := entry.get("known_as")) in asked:
                marks.setdefault(known_as, set()).update(of_person)
    files, items = workspace.source_files(), items_by_id(workspace)
    lines: list[Record] = []
    for name in sorted(ids):
        resting = sorted({*items.get(name, ()), *index.get(name, {}).get("items", ())})
        line = {"id": name, "of": files.get(source_of(name)), "marks": sorted(marks.get(name, ())), "items": resting}
        lines.append({field: value for field, value in line.items() if value})
    return lines


def items_by_id(workspace: Workspace) -> dict[str, set[str]]:
    """Dialogue or person -> the candidates that hold its words, or a reference of it. Raises DataError."""
    items: dict[str, set[str]] = {}
    for folder in map(workspace.stage, CANDIDATE_STAGES):
        for record in folder.records(KEPT):
            for name in ids_in(record):
                items.setdefault(name, set()).add(str(record["id"]))
    return items


def _apply(workspace: Workspace) -> dict[str, int]:
    """Remove everybody with a tombstone from the files; returns how many parts of which stages were removed.

    The last stage comes first: the content of a stage says what the stages after it must lose. Doing it twice, or
    continuing after a kill, gives the same bytes.
    """
    gone, facts = ErasedIds(workspace.erased()), workspace.facts()
    removed: dict[str, int] = {}
    compared = stages_from(_COMPARING)
    affected = any(map(gone.covers, workspace.stage(stage_before(_COMPARING)).records(KEPT)))
    # Whose candidates have a reply of an erased dialogue as a reference: what the review said of them quotes it.
    answered = {str(r["id"]) for r in workspace.stage(_COMPARING).records(KEPT) if gone.covers(r)}
    of_candidates = replace(gone, ids=gone.ids | answered)
    for stage in reversed(list(STAGES)):
        folder = workspace.stage(stage)
        folder.remove_unfinished()
        for path in sorted(folder.path.rglob("*.jsonl")):
            # Stored replies and reviews: tables whose lines begin with an item's id.
            if path.parent.name not in (KEPT, REJECTED, AUDIT, "costs", "batches"):
                covers = (of_candidates if STAGES[stage].reads == "candidates" else gone).covers
                filter_file(path, lambda line, covers=covers: not covers(line))  # type: ignore[misc]
        for name in STAGES[stage].temporary:  # the next run makes these files again
            remove_for_good(folder.path / name)
        if bool(facts.get("purged")) != (stage == FIRST_STAGE):  # of which a purge has left nothing but its counts
            _filter_parts(folder, stage, gone)
        elif stage in compared and affected:
            removed[stage] = len(folder.parts())
            folder.clear()
        elif stage not in compared and stage != FIRST_STAGE:
            if held := [part for part in folder.parts() if _holds(folder, part, gone)]:
                removed[stage] = len(held)
                remove_for_good(folder.path / "summary.json")
            for part in held:
                folder.remove_part(part)
    if workspace.index_path.exists():
        filter_file(workspace.index_path, lambda line: not gone.covers(line))
    write_json(workspace.path / "workspace.json", {**facts, "erased": len(workspace.tombstones().lines)})
    return {stage: removed[stage] for stage in STAGES if removed.get(stage)}


def _filter_parts(folder: StageFolder, stage: str, gone: ErasedIds) -> None:
    """Write the parts that hold an erased record again without it: of the first stage, and of all after a purge."""
    reads_candidates = STAGES[stage].reads == "candidates"
    for part in folder.parts():
        counts = folder.counts(part)
        # A kill may have come before the counts were written.
        lines = [sum(1 for _ in folder.part_records(part, kind)) for kind in (KEPT, REJECTED)]
        if _holds(folder, part, gone) or lines != [counts.written, sum(counts.reasons.values()) + counts.earlier]:
            input_id = (lambda record: str(record["id"])) if reads_candidates else dialogue_of
            folder.rewrite(part, stage, lambda record: not gone.covers(record), input_id)
    if (folder.path / "summary.json").exists():
        finish(folder)


def _holds(folder: StageFolder, part: str, gone: ErasedIds) -> bool:
    return any(gone.covers(record) for kind in (KEPT, REJECTED, AUDIT) for record in folder.part_records(part, kind))
