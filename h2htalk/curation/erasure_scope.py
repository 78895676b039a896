"""What an erasure covers: from an id, ours or one of the raw data, to every dialogue with the words."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from h2htalk.curation.dedup.stage import DUPLICATES
from h2htalk.curation.outcomes import dialogue_of
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES
from h2htalk.curation.tombstones import source_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted

_LISTED = 20  # ids in an error
# Dialogue -> its place in the raw files (from gather's audit), and the person's id as `known_as`.
Index = Mapping[str, Mapping[str, Any]]


class SharedTextError(ConfigError):
    """Near copies of other people would be erased too. `ids`: everything that would be erased; `others`: of others."""

    def __init__(self, asked: str, ids: frozenset[str], others: frozenset[str]) -> None:
        super().__init__(
            f"{quoted(asked)}: dialogues of others hold the same words and would be erased too: {_listed(others)}; "
            "look at them (h2htalk curate explain), then add --yes"
        )
        self.ids, self.others = tuple(sorted(ids)), tuple(sorted(others))


def read_index(workspace: Workspace) -> Index:
    """Every dialogue of a workspace; after `purge` those that a later stage holds. Raises DataError."""
    gathered = workspace.stage(FIRST_STAGE).records(AUDIT)
    index: dict[str, dict[str, Any]] = {str(record["id"]): dict(record.get("raw", {})) for record in gathered}
    for stage in STAGES if workspace.facts().get("purged") else (FIRST_STAGE,):
        folder = workspace.stage(stage)
        for record in chain(folder.records(KEPT), folder.records(REJECTED)):
            entry = index.setdefault(dialogue_of(record), {})
            person = record.get("record", record).get("provenance", {}).get("person")
            if person is not None:
                entry["known_as"] = person
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
        index: its dialogues.
        key: its secret key, which finds those who were erased before by a raw name; None: they are not found.

    Raises:
        ConfigError: several sources have that raw id, or a source has it for several dialogues, or for a person and
            for somebody else's dialogue; names the choices.
        DataError: nobody has that id.
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
        elif _is_raw_id(asked, source, entry.get("person")):
            people.setdefault(source, set()).update({dialogue}, {person} if person else ())
        elif _is_raw_id(asked, source, entry.get("id")):
            dialogues.setdefault(source, set()).add(dialogue)
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
    """Check that a raw id means one person or one dialogue."""
    sources = sorted({*people, *dialogues})
    if len(sources) > 1:
        choices = " or ".join(f"{source}:{asked}" for source in sources)
        raise ConfigError(f"{quoted(asked)} is an id in {len(sources)} sources; choose one: {choices}")
    for source, names in people.items():
        if others := sorted(dialogues.get(source, set()) - names):
            person = next((name for name in sorted(names) if name.startswith(f"{source}-p")), "")
            raise ConfigError(
                f"{quoted(asked)} is a person of source {source!r} and a dialogue of another person; choose one: "
                f"{person} or {others[0]}"
            )
    for source, names in dialogues.items():
        if len(names) > 1 and source not in people:
            raise ConfigError(
                f"{quoted(asked)} is the id of {len(names):,} dialogues of source {source!r}, perhaps of several "
                f"people; name them one by one: {_listed(names)}"
            )


def require_same_person(asked: str, ids: frozenset[str], copies: frozenset[str], index: Index) -> None:
    """Check that near copies are of the same person; where a person is unknown, it may be anybody.

    Raises:
        SharedTextError: some are not; lists them.
    """
    own = {index.get(name, {}).get("known_as", name) for name in ids}
    others = frozenset(name for name in copies if index.get(name, {}).get("known_as") not in own)
    if others:
        raise SharedTextError(asked, ids | copies, others)


def _listed(ids: Collection[str]) -> str:
    more = f" and {len(ids) - _LISTED:,} more" if len(ids) > _LISTED else ""
    return ", ".join(sorted(ids)[:_LISTED]) + more


def _is_raw_id(asked: str, source: str, raw: object) -> bool:
    """Whether it is the id in the raw data. Compared in form NFC: keyboards and files compose characters
    differently.
    """
    name = unicodedata.normalize("NFC", str(raw))
    return raw not in (None, "") and unicodedata.normalize("NFC", asked) in (name, f"{source}:{name}")


def find_near_copies(dedup: StageFolder, ids: frozenset[str]) -> frozenset[str]:
    """The dialogues that dedup found to be duplicates of these, of those duplicates, and so on.

    Two dialogues that share a companion's reply alone hold the words of two people, and are not counted.
    """
    table = dedup.path / DUPLICATES
    lines = list(dedup.records(REJECTED))
    lines += [line for _, line in read_jsonl(table, torn_tail=True)] if table.exists() else []
    same: dict[str, set[str]] = {}
    for line in lines:
        evidence = line.get("evidence", {})
        other, on = evidence.get("of"), evidence.get("on")
        if line.get("reason") != "contaminated" and other and on != "references":
            same.setdefault(str(line["id"]), set()).add(other)
            same.setdefault(other, set()).add(str(line["id"]))
    found, waiting = set(ids), list(ids)
    while waiting:
        new = same.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found - ids)
