"""What an erasure covers: from an id, ours or one of the raw data, to every dialogue of that person with the words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from h2htalk.curation.dedup.stage import DUPLICATES
from h2htalk.curation.gather.earlier_states import LEAST_CHARACTERS
from h2htalk.curation.outcomes import EARLIER_STATE, Record, dialogue_of
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES
from h2htalk.curation.tombstones import mark, nfc, source_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted, shorten

# Dialogue -> its place in the raw files (from gather's audit), the person's id as `known_as`, and `state_of`, the
# dialogue of whose conversation it is an earlier state. After `purge` it has `hashes` in place of raw ids, and `items`.
Index = Mapping[str, Mapping[str, Any]]


def read_index(workspace: Workspace) -> Index:
    """Every dialogue of a workspace; after `purge` those that it listed, with hashes. Raises DataError."""
    gathered = workspace.stage(FIRST_STAGE).records(AUDIT)
    index: dict[str, dict[str, Any]] = {str(record["id"]): dict(record.get("raw", {})) for record in gathered}
    if workspace.facts().get("purged") and workspace.index_path.exists():
        index |= {str(line["id"]): dict(line) | {"id": None} for _, line in read_jsonl(workspace.index_path)}
    for stage in STAGES if workspace.facts().get("purged") else (FIRST_STAGE,):
        folder = workspace.stage(stage)
        for record in chain(folder.records(KEPT), folder.records(REJECTED)):
            entry = index.setdefault(dialogue_of(record), {})
            person = record.get("record", record).get("provenance", {}).get("person")
            if person is not None:
                entry["known_as"] = person
            if record.get("reason") == EARLIER_STATE and "of" in record["evidence"]:
                entry["state_of"] = record["evidence"]["of"]
    return index


def source_place(entry: Mapping[str, Any]) -> str:
    """Where raw text stands: `file:line`, and the item where a line may hold several items or a part of one."""
    file, line, row = (entry.get(name) for name in ("file", "line", "row"))
    if line is None:
        return f"{file}:{'' if row is None else row}"
    by_line = row in (None, line) and not str(file).endswith(".json")
    return f"{file}:{line}" if by_line else f"{file}:{line}, item {row}"


def resolve_ids(workspace: Workspace, asked: str, index: Index, key: bytes | None) -> frozenset[str]:
    """Every id that an id stands for, a person's own among them. Our ids precede those of the raw files.

    Args:
        workspace: the one that `index` was read from.
        asked: an id of a dialogue, a candidate or a person, or one of the raw files, `SOURCE:ID` where several use it.
        key: of the hashes of raw ids: those of who was erased, and after `purge` of all. None: they are not found.

    Raises ConfigError, which names the choices, where a raw id is ambiguous, DataError where nobody has the id.
    """
    ours = {asked} & workspace.erased()
    people: dict[str, set[str]] = {}
    dialogues: dict[str, set[str]] = {}
    of_candidate = asked.partition(":")[0]
    for dialogue, entry in index.items():
        person, source = entry.get("known_as"), source_of(dialogue)
        if asked == person:
            ours |= {dialogue, asked}
        elif dialogue in (asked, of_candidate):
            ours.add(dialogue)
        elif _is_raw("person", asked, source, entry, key):
            people.setdefault(source, set()).update({dialogue}, {person} if person else ())
        elif _is_raw("id", asked, source, entry, key):
            dialogues.setdefault(source, set()).add(entry.get("state_of", dialogue))
    if not ours:
        _require_unambiguous(asked, people, dialogues)
    ids = ours or set().union(*people.values(), *dialogues.values())
    if not ids and key is not None:
        ids = set(workspace.tombstones().called(asked, key))
    if not ids:
        raise DataError(
            f"{workspace.path}: no id {quoted(asked)} was gathered; {FIRST_STAGE}/kept lists the ids, and "
            f"{FIRST_STAGE}/audit, until purge, those of the raw data"
        )
    return frozenset(ids)


def _require_unambiguous(asked: str, people: Mapping[str, set[str]], dialogues: Mapping[str, set[str]]) -> None:
    """Raise ConfigError, which names the choices, unless a raw id means one person or one dialogue."""
    choices = [f"{source}:{asked}" for source in sorted({*people, *dialogues})]
    if len(choices) == 1:
        (source,) = {*people, *dialogues}
        own = people.get(source, set())
        choices = sorted(own, key=lambda name: (not name.startswith(f"{source}-p"), name))[:1]
        choices += sorted(dialogues.get(source, set()) - own)
    if len(choices) > 1:
        shown = shorten(" or ".join(choices), 400)
        raise ConfigError(f"{quoted(asked)} is an id of several people or dialogues; choose one: {shown}")


def _is_raw(what: str, asked: str, source: str, entry: Mapping[str, Any], key: bytes | None) -> bool:
    """Whether it is the `id` or `person` in the raw data, in form NFC; after `purge`, by its hashes."""
    raw, names = entry.get(what), {nfc(asked), nfc(asked).removeprefix(f"{source}:")}
    if raw not in (None, ""):
        return nfc(str(raw)) in names
    return key is not None and any(mark(key, what, source, name) in entry.get("hashes", ()) for name in names)


def find_copies(dedup: StageFolder, ids: frozenset[str], index: Index) -> tuple[frozenset[str], frozenset[str]]:
    """The duplicates of these dialogues that are of the same people, and those of others, which stay.

    Two dialogues are of the same person where the raw data say so; where they name nobody, where the user's words are
    equal. Two dialogues that share a companion's reply alone are no copies of each other.
    """
    table = dedup.path / DUPLICATES
    lines = list(dedup.records(REJECTED))
    lines += [line for _, line in read_jsonl(table, torn_tail=True)] if table.exists() else []
    copies: dict[str, dict[str, bool]] = {}  # dialogue -> its copies, and whether the words are equal
    for line in lines:
        evidence, reason = line.get("evidence", {}), line.get("reason")
        other, on = evidence.get("of"), evidence.get("on")
        if reason != "contaminated" and other and on != "references":
            copies.setdefault(str(line["id"]), {})[other] = reason != "near_duplicate"
            copies.setdefault(other, {})[str(line["id"])] = reason != "near_duplicate"
    same, others, waiting = set(ids), set(), list(ids)
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
        return (person, turns) if person or sum(len(text) for _, text in turns) >= LEAST_CHARACTERS else None

    gathered = workspace.stage(FIRST_STAGE)
    known = {words(record) for record in gathered.records(KEPT) if record["id"] in ids} - {None}
    return frozenset(str(record["id"]) for record in gathered.records(KEPT) if known and words(record) in known)


def find_states(index: Index, ids: frozenset[str]) -> frozenset[str]:
    """These dialogues, and the other states of the same conversations (`gather.earlier_states`)."""
    latest = {index.get(name, {}).get("state_of", name) for name in ids}
    return ids | latest | {name for name, entry in index.items() if entry.get("state_of") in latest}
