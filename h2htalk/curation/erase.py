"""Erase a person or a dialogue from a workspace; `purge` removes what could lead a surrogate back to a person.

`erase` writes a tombstone for each id (`workspace`) and filters the files of the stages. The stages that compare
dialogues, and those after them, are removed where they had read an erased one: the next `curate run` makes them again,
as if it had never been there. What other people wrote stays, however similar: a dialogue that `dedup` had removed as a
duplicate of an erased one comes back. After a kill the next `erase`, `purge` or `curate run` first continues from the
tombstones. After `purge` no stage can be made again, and all are filtered. Then the ids leave every folder that was
made from the workspace (`data.erasure`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from h2htalk.curation.dedup.stage import DUPLICATES
from h2htalk.curation.dialogue_ids import Index, dialogue_of, read_index, resolve_ids
from h2htalk.curation.gather.erased_lines import Line, lines_of, lines_that_identify
from h2htalk.curation.gather.gathered_items import KNOWN_ITEMS, raw_place
from h2htalk.curation.gather.source_files import LEAST_CHARACTERS
from h2htalk.curation.run import say
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, Record, StageFolder
from h2htalk.curation.stages import FIRST_STAGE, STAGES, stage_before, stages_from
from h2htalk.curation.workspace import ERASURE_KEY, INDEX, Workspace, mark, source_of, write_durably
from h2htalk.data.erasure.folder_kinds import (
    ErasedIds,
    FolderErasure,
    filter_file,
    ids_in,
    remove_for_good,
)
from h2htalk.data.erasure.sweep import mark_folders, sweep, sweep_sources
from h2htalk.data.erasure.unfinished_erasure import MARK, reading_while_erasing
from h2htalk.data.files import json_line, read_jsonl, refuse_links, write_json
from h2htalk.data.readers.item_reads import erase_item_reads
from h2htalk.data.responses import CALLS
from h2htalk.data.stage_folders import CANDIDATE_STAGES
from h2htalk.errors import ConfigError

# The first stage that compares records, and with it all that follow, are made again as a whole.
_COMPARING = next(name for name, stage in STAGES.items() if stage.compares)
_COMPARED = stage_before(_COMPARING)
_REMADE = stages_from(_COMPARING)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased."""

    ids: tuple[str, ...]  # of dialogues and persons, copies among them
    copies: tuple[
        str, ...
    ]  # those that are copies by the same person, or with equal words by nobody who is known
    others: tuple[str, ...]  # similar dialogues of other or unknown people, which stay
    raw: tuple[
        str, ...
    ]  # places in the owner's own files that hold the words, as `raw_place` names them
    removed: tuple[str, ...]  # the stages that the next `curate run` makes again
    folders: tuple[
        FolderErasure, ...
    ]  # what was made from the workspace, and what was erased there
    continuations: tuple[
        str, ...
    ]  # those of a chat that went on where another one of `ids` had ended
    earlier: tuple[str, ...]  # dialogues that one of `ids` goes on, which stay


def erase(workspace: Workspace, source_id: str, also: Sequence[Path] = ()) -> Erased:
    """Erase a dialogue or a person from every stage and table, and from what was made from the workspace.

    `source_id`: of a dialogue or a person (`SOURCE-p0003`), or in the raw data (`SOURCE:ID` where several use it).
    `also`: folders with rounds, runs and releases that were made from the workspace, and that it does not know.

    Raises ConfigError where several have that id, or the secret key or a folder of `also` is missing; DataError where
    nobody of that id was gathered, or a file cannot be rewritten.
    """
    workspace.require_begun()
    if missing := [path for path in also if not path.is_dir()]:
        raise ConfigError(f"--also {missing[0]}: is no folder")
    with workspace.locked(), reading_while_erasing():
        refuse_links(workspace.path)
        key = (
            workspace.erasure_key()
        )  # without it nobody could be recognized in a file that is read again
        _finish_stages(workspace)
        index = read_index(workspace, key)
        asked = resolve_ids(workspace, source_id, index, key)
        latest = {
            index.get(name, {}).get("state_of", name) for name in asked
        }  # all states of these conversations
        asked |= latest | {name for name, entry in index.items() if entry.get("state_of") in latest}
        asked |= find_repeated(workspace, asked, index)
        goes_on = find_continuations(asked, index)
        asked |= goes_on
        copies, others = find_copies(workspace.stage("dedup"), asked, index)
        ids = asked | copies
        raw = {raw_place(index[name]) for name in ids if "file" in index.get(name, {})}
        if new := ids - workspace.erased():
            lines = _tombstone_lines(workspace, new, asked, index, key)
            mark_folders(workspace.path, also)
            write_durably(
                workspace.tombstones_path, map(json_line, [*workspace.tombstones(), *lines])
            )
        removed = _apply(workspace)
        folders = _sweep(workspace, ids, also)
        return Erased(
            ids=tuple(sorted(ids)),
            copies=tuple(sorted(copies)),
            others=tuple(sorted(others)),
            raw=tuple(sorted(raw)),
            removed=tuple(removed),
            folders=tuple(folders),
            continuations=tuple(sorted(goes_on)),
            earlier=tuple(sorted(find_continued(ids, index))),
        )


def finish_erasure(workspace: Workspace) -> None:
    """Complete an interrupted erasure, if there is one, and say so. The workspace's lock must be held.

    A folder that cannot be reached stops nobody: it is named on standard error, and tried again by the next command.
    Raises DataError.
    """
    with reading_while_erasing():
        _finish_stages(workspace)
        pending = len(workspace.tombstones()) != workspace.facts().get("reached", 0)
        if not pending and not (workspace.path / MARK).exists():
            return
        for folder in _sweep(workspace):
            if folder.unfinished:
                message = f"erase: {folder.name} is not finished: {'; '.join(folder.messages)}"
                say(message)


def _sweep(
    workspace: Workspace, ids: Collection[str] = (), also: Sequence[Path] = ()
) -> list[FolderErasure]:
    """Erase from what was made from the workspace everybody with a tombstone.

    Item ids alone decide only for `ids` and for those whose erasure has not reached every folder yet: an item that lost
    a reference of an erased dialogue is made again, and its id may then be in new rounds and runs.
    """
    lines = workspace.tombstones()
    facts = workspace.facts()
    new = [
        line for at, line in enumerate(lines) if at >= facts.get("reached", 0) or line["id"] in ids
    ]
    items = frozenset(item for line in new for item in line.get("items", ()))
    folders = list(sweep(workspace.path, ErasedIds(workspace.erased(), items), also))
    # Of a data set on the Hub, `of` is the format and its name and commit.
    folders += sweep_sources(str(line.get("of")).partition("/")[2] for line in new)
    remove_for_good(workspace.path / MARK)
    if not any(folder.unfinished for folder in folders):
        write_json(workspace.path / "workspace.json", {**facts, "reached": len(lines)})
    return folders


def _finish_stages(workspace: Workspace) -> None:
    if len(workspace.tombstones()) != workspace.facts().get("erased", 0):
        refuse_links(workspace.path)
        _apply(workspace)
        say("erase: an interrupted erasure was completed")


def _tombstone_lines(
    workspace: Workspace, ids: frozenset[str], asked: frozenset[str], index: Index, key: bytes
) -> list[Record]:
    """A tombstone for each of `ids`; those not in `asked` are copies."""
    # What a dialogue that stays has as well identifies nobody.
    stay = set().union(*(entry["marks"] for name, entry in index.items() if name not in ids))
    marks: dict[str, set[str]] = {
        name: {*index.get(name, {}).get("marks", ())} - stay for name in ids
    }
    for name in ids & index.keys():
        if (
            "items" in index[name]
        ):  # after `purge` nothing is read again, and each dialogue leads to its person
            marks[name].update(index[name]["person_marks"])
        if (person := index[name].get("known_as")) in asked:
            marks[person].update(index[name]["person_marks"])
    for record in workspace.stage(FIRST_STAGE).records(KEPT):
        if (name := str(record["id"])) in ids:
            words = [[turn["role"], turn["content"]] for turn in record["messages"]]
            marks[name].add(mark(key, "words", index.get(name, {}).get("person"), words))
    files = workspace.source_files()
    items = items_by_id(workspace)
    lines_of_ids = _identifying_lines(workspace, ids, index, files, key)
    lines: list[Record] = []
    for name in sorted(ids):
        resting = sorted({*items.get(name, ()), *index.get(name, {}).get("items", ())})
        line = {
            "id": name,
            "of": files.get(source_of(name)),
            "marks": sorted(marks[name]),
            "items": resting,
            "lines": lines_of_ids.get(name),
        }
        lines.append({field: value for field, value in line.items() if value})
    return lines


def _identifying_lines(
    workspace: Workspace, ids: frozenset[str], index: Index, files: Mapping[str, str], key: bytes
) -> dict[str, list[str]]:
    """Erased dialogue -> the marks of its lines that no dialogue has that stays. `files`: as `source_files`.

    Raises DataError.
    """
    gone = ids | workspace.erased()

    def lines_of_records(are_erased: bool) -> Iterator[tuple[str, list[Line]]]:
        for record in workspace.stage(FIRST_STAGE).records(KEPT):
            name = str(record["id"])
            form = files.get(source_of(name))
            # A simulated dialogue is read from no file.
            if form is None or (name in gone) != are_erased:
                continue
            messages = [(turn["role"], turn["content"]) for turn in record["messages"]]
            person = index.get(name, {}).get("person")
            yield name, lines_of(key, form.partition("/")[0], person, messages)

    erased = {name: lines for name, lines in lines_of_records(True) if name in ids}
    staying = chain.from_iterable(lines for _, lines in lines_of_records(False)) if erased else ()
    return lines_that_identify(erased, staying)


def items_by_id(workspace: Workspace) -> dict[str, set[str]]:
    """Dialogue or person -> the candidates that hold its words, or a reference of it. Raises DataError."""
    items: dict[str, set[str]] = {}
    for folder in map(workspace.stage, CANDIDATE_STAGES):
        for record in folder.records(KEPT):
            for name in ids_in(record):
                items.setdefault(name, set()).add(str(record["id"]))
    return items


def _apply(workspace: Workspace) -> list[str]:
    """Remove everybody with a tombstone from the files; returns the stages that were removed.

    The last stage comes first: the content of a stage says what the stages after it must lose. Doing it twice, or
    continuing after a kill, gives the same bytes.
    """
    gone = ErasedIds(workspace.erased())
    facts = workspace.facts()
    purged = bool(facts.get("purged"))
    removed = list[str]()
    remade = (
        ()
        if purged or not any(map(gone.covers, workspace.stage(_COMPARED).records(KEPT)))
        else _REMADE
    )
    # Whose candidates have a reply of an erased dialogue as a reference: what the review said of them quotes it.
    answered = {str(r["id"]) for r in workspace.stage(_COMPARING).records(KEPT) if gone.covers(r)}
    of_candidates = replace(gone, ids=gone.ids | answered)
    erase_item_reads(workspace.path, of_candidates.covers)
    for stage in reversed(list(STAGES)):
        folder = workspace.stage(stage)
        folder.remove_unfinished()
        for path in sorted(folder.path.rglob("*.jsonl")):
            # Stored replies and reviews: tables whose lines begin with an item's id.
            if path.parent.name not in (KEPT, REJECTED, AUDIT):
                covers = (of_candidates if STAGES[stage].reads == "candidates" else gone).covers
                filter_file(path, lambda line, covers=covers: not covers(line))  # type: ignore[misc]
        for name in STAGES[stage].temporary:  # the next run makes these files again
            remove_for_good(folder.path / name)
        if stage in remade:
            if folder.parts():
                removed += [stage]
            folder.clear()
        elif not (
            purged and stage == FIRST_STAGE
        ):  # of which a purge has left nothing but its counts
            input_id = (
                (lambda record: str(record["id"]))
                if STAGES[stage].reads == "candidates"
                else dialogue_of
            )
            for part in folder.parts():
                counts = folder.counts(part)
                kept, rejected, audits = (
                    list(folder.part_records(part, kind)) for kind in (KEPT, REJECTED, AUDIT)
                )
                # A kill may have come before the counts were written.
                written = (len(kept), len(rejected)) == (
                    counts.written,
                    sum(counts.reasons.values()) + counts.earlier,
                )
                if not written or any(map(gone.covers, chain(kept, rejected, audits))):
                    folder.rewrite(part, lambda record: not gone.covers(record), input_id)
            if folder.finished:
                folder.finish()
    if (index := workspace.path / INDEX).exists():
        filter_file(index, lambda line: not gone.covers(line))
    write_json(workspace.path / "workspace.json", {**facts, "erased": len(workspace.tombstones())})
    return removed[::-1]


def find_copies(
    dedup: StageFolder, ids: frozenset[str], index: Index
) -> tuple[frozenset[str], frozenset[str]]:
    """The duplicates of these dialogues that are of the same people, and those of others, which stay.

    Two dialogues are of the same person where the raw data say so; where they name nobody, where the user's words are
    equal. Two dialogues that share a companion's reply alone are no copies of each other.
    """
    table = dedup.path / DUPLICATES
    lines = list(dedup.records(REJECTED))
    if table.exists():
        lines += [line for _, line in read_jsonl(table, torn_tail=True)]
    copies: dict[
        str, dict[str, bool]
    ] = {}  # dialogue -> its copies, and whether the words are equal
    for line in lines:
        evidence = line.get("evidence", {})
        reason = line.get("reason")
        other = evidence.get("of")
        on = evidence.get("on")
        if reason != "contaminated" and other and on != "references":
            copies.setdefault(str(line["id"]), {})[other] = reason != "near_duplicate"
            copies.setdefault(other, {})[str(line["id"])] = reason != "near_duplicate"
    same = set(ids)
    others = set()
    waiting = list(ids)
    while waiting:
        one = waiting.pop()
        for other, equal in copies.get(one, {}).items():
            persons = {index.get(name, {}).get("known_as") for name in (one, other)}
            if len(persons) > 1 or (persons == {None} and not equal):
                others.add(other)
            elif other not in same:
                same.add(other)
                waiting.append(other)
    return frozenset(same - ids), frozenset(others - same)


def find_repeated(workspace: Workspace, ids: frozenset[str], index: Index) -> frozenset[str]:
    """The gathered dialogues with exactly the words of these, by the same person or by nobody who is known."""

    def words(record: Record) -> tuple[object, ...] | None:
        person = index.get(str(record["id"]), {}).get("known_as")
        turns = tuple((turn["role"], turn["content"]) for turn in record["messages"])
        return (
            (person, turns)
            if person or sum(len(text) for _, text in turns) >= LEAST_CHARACTERS
            else None
        )

    gathered = workspace.stage(FIRST_STAGE)
    known = {words(record) for record in gathered.records(KEPT) if record["id"] in ids} - {None}
    return frozenset(
        str(record["id"]) for record in gathered.records(KEPT) if known and words(record) in known
    )


def find_continuations(ids: frozenset[str], index: Index) -> frozenset[str]:
    """The gathered dialogues that go on where one of these ended, and those that go on where they did."""
    following: dict[tuple[str, str], list[str]] = {}
    for name, entry in index.items():
        if "continues" in entry:
            following.setdefault((source_of(name), entry["continues"]), []).append(name)
    reached = set(ids)
    waiting = list(ids)
    while waiting:
        name = waiting.pop()
        place = (source_of(name), index.get(name, {}).get("mark", ""))
        for follower in following.get(place, ()):
            if follower not in reached:
                reached.add(follower)
                waiting.append(follower)
    return frozenset(reached - ids)


def find_continued(ids: frozenset[str], index: Index) -> frozenset[str]:
    """The gathered dialogues after which these go on, and that are none of these."""
    ends = {(source_of(name), index[name].get("continues")) for name in ids & index.keys()}
    before = {
        name
        for name, entry in index.items()
        if "mark" in entry and (source_of(name), entry["mark"]) in ends
    }
    return frozenset(before - ids)


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns the removed paths. Anonymized records stay.

    No further stage can be made afterwards, so what a stage has made that is not finished is removed too. Keyed hashes
    of raw ids stay, so that a person who asks for it later is still erased. Raises ConfigError, DataError.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        missing = next((name for name in STAGES if not workspace.stage(name).finished), None)
        later = stages_from(missing)[1:] if missing else ()
        # A later stage was finished before an erasure removed it: that is not to be lost.
        if missing in list(STAGES)[:2] or any(workspace.stage(name).begun for name in later):
            advice = "without the key it cannot be; finish it first: h2htalk curate run"
            raise ConfigError(f"{workspace.path}: {missing} is not finished, and {advice}")
        refuse_links(workspace.path)
        if not workspace.facts().get("purged"):
            # Marks of the raw ids of every dialogue (with its earlier states) and person, and the items on them.
            key = workspace.erasure_key()
            path = workspace.path / ERASURE_KEY
            if not path.exists():
                write_durably(path, [f"{key.hex()}\n"], private=True)
            items = items_by_id(workspace)
            marks = dict[str, tuple[set[str], set[str]]]()
            for name, entry in read_index(workspace, key).items():
                own, of_person = marks.setdefault(entry.get("state_of", name), (set(), set()))
                own.update(entry["marks"])
                of_person.update(entry["person_marks"])
            lines = (
                {
                    "id": name,
                    "marks": sorted(own),
                    "person_marks": sorted(person),
                    "items": sorted(items.get(name, ())),
                }
                for name, (own, person) in sorted(marks.items())
            )
            write_durably(workspace.path / INDEX, map(json_line, lines))
        # Written first: after a kill nothing is added to the workspace any more.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        # No file is read again, in which they would be recognised.
        unlined = (
            {name: value for name, value in line.items() if name != "lines"}
            for line in workspace.tombstones()
        )
        if workspace.tombstones_path.exists():
            write_durably(workspace.tombstones_path, map(json_line, unlined))
        gathered = workspace.stage(FIRST_STAGE).path
        paths = [
            *(gathered / name for name in (KEPT, REJECTED, AUDIT, "raw", KNOWN_ITEMS)),
            workspace.key_path,
        ]
        unfinished = unfinished_stages(workspace)
        removed = [path for path in paths if path.exists()]
        for path in removed:
            remove_for_good(path)
        if (calls := gathered / CALLS).exists():  # simulated dialogues; what they cost stays
            filter_file(calls, lambda line: "id" not in line)
        for folder in unfinished:
            folder.remove()
        for stage in STAGES:
            workspace.stage(stage).remove_unfinished()
    return [*removed, *(folder.path for folder in unfinished)]


def unfinished_stages(workspace: Workspace) -> list[StageFolder]:
    """The stages that have begun and are not finished. `purge` removes them, but not what was paid for."""
    return [
        folder for folder in map(workspace.stage, STAGES) if folder.begun and not folder.finished
    ]
