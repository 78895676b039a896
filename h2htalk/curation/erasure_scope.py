"""Whom an erasure takes out: from an id, ours or the raw data's, to every dialogue that holds the words."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from h2htalk.curation.dedup.stage import LOSERS
from h2htalk.curation.outcomes import dialogue_of
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.tombstones import source_of
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted

_SHOWN = 20  # ids that an error lists
# Dialogue -> where it stands in the raw files (gather's audit), and the person's id as `known_as`.
Index = Mapping[str, Mapping[str, Any]]


def read_index(workspace: Workspace) -> Index:
    """Every dialogue of a workspace; after `purge` those that a later stage holds. Raises DataError."""
    gathered = workspace.stage("gather").records(AUDIT)
    index: dict[str, dict[str, Any]] = {str(record["id"]): dict(record.get("raw", {})) for record in gathered}
    for stage in STAGES if workspace.facts().get("purged") else ("gather",):
        folder = workspace.stage(stage)
        for record in chain(folder.records(KEPT), folder.records(REJECTED)):
            entry = index.setdefault(dialogue_of(record), {})
            person = record.get("record", record).get("provenance", {}).get("person")
            if person is not None:
                entry["known_as"] = person
    return index


def place_of(entry: Mapping[str, Any]) -> str:
    """Where raw text stands, for people: `file:line`, and which item where a line may hold several or a part of one."""
    file, line, row = (entry.get(name) for name in ("file", "line", "row"))
    if line is None:
        return f"{file}:{'' if row is None else row}"
    by_line = row in (None, line) and not str(file).endswith(".json")
    return f"{file}:{line}" if by_line else f"{file}:{line}, item {row}"


def who(workspace: Workspace, asked: str, index: Index, key: bytes | None) -> frozenset[str]:
    """Every id of the source, the person's own among them. Our ids go before those of the raw files.

    Args:
        workspace: where.
        asked: an id of a dialogue, a candidate or a person, or one of the raw files, `SOURCE:ID` where several use it.
        index: its dialogues.
        key: its secret, by which who was erased before is found by a raw name too; None: they are not.

    Raises:
        ConfigError: several sources use that raw id, or one of them for several dialogues, or for a person and for
            somebody else's dialogue; names what is meant.
        DataError: nobody is called so.
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
        elif _is_called(asked, source, entry.get("person")):
            people.setdefault(source, set()).update({dialogue}, {person} if person else ())
        elif _is_called(asked, source, entry.get("id")):
            dialogues.setdefault(source, set()).add(dialogue)
    if not ours:
        _require_one(asked, people, dialogues)
    found = ours or set().union(*people.values(), *dialogues.values())
    if not found and key is not None:
        found = set(workspace.tombstones().called(asked, key))
    if not found:
        raise DataError(
            f"{workspace.path}: nobody of id {quoted(asked)} was gathered; ids stand in 01-gathered/kept, those of "
            "the raw data in its private index until purge"
        )
    return frozenset(found)


def _require_one(asked: str, people: Mapping[str, set[str]], dialogues: Mapping[str, set[str]]) -> None:
    """See that a raw id means one person or one dialogue: what somebody else said is not taken out unasked."""
    sources = sorted({*people, *dialogues})
    if len(sources) > 1:
        choices = " or ".join(f"{source}:{asked}" for source in sources)
        raise ConfigError(f"{quoted(asked)} is an id in {len(sources)} sources; say which: {choices}")
    for source, names in people.items():
        if others := sorted(dialogues.get(source, set()) - names):
            person = next((name for name in sorted(names) if name.startswith(f"{source}-p")), "")
            raise ConfigError(
                f"{quoted(asked)} is a person of source {source!r} and another one's dialogue; say which: "
                f"{person} or {others[0]}"
            )
    for source, names in dialogues.items():
        if len(names) > 1 and source not in people:
            raise ConfigError(
                f"{quoted(asked)} is the id of {len(names):,} dialogues of source {source!r}, perhaps of as many "
                f"people; say which, one by one: {_listed(names)}"
            )


class OthersGoToo(ConfigError):
    """Near copies of other people would go too. `ids`: everything that would be taken out."""

    def __init__(self, asked: str, ids: frozenset[str], others: frozenset[str]) -> None:
        super().__init__(
            f"{quoted(asked)}: the same words stand in dialogues of others, which would go too: {_listed(others)}; "
            f"look at them (h2htalk curate explain), then do it with --yes"
        )
        self.ids, self.others = tuple(sorted(ids)), tuple(sorted(others))


def require_own(asked: str, ids: frozenset[str], copies: frozenset[str], index: Index) -> None:
    """See that near copies are of the same person; who names nobody may be anybody.

    Raises:
        OthersGoToo: some are not; lists them.
    """
    own = {index.get(name, {}).get("known_as", name) for name in ids}
    others = frozenset(name for name in copies if index.get(name, {}).get("known_as") not in own)
    if others:
        raise OthersGoToo(asked, ids | copies, others)


def _listed(ids: Collection[str]) -> str:
    """Some ids, and how many more there are."""
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return ", ".join(sorted(ids)[:_SHOWN]) + more


def _is_called(asked: str, source: str, raw: object) -> bool:
    """Whether raw data call it so. Names are compared as characters, however a keyboard or a file composes them."""
    called = unicodedata.normalize("NFC", str(raw))
    return raw not in (None, "") and unicodedata.normalize("NFC", asked) in (called, f"{source}:{called}")


def near_copies(dedup: StageFolder, ids: frozenset[str]) -> frozenset[str]:
    """The dialogues that dedup holds for the same as these, and for the same as those, and so on.

    Two that share a companion's reply alone hold the words of two people: the other one stays.
    """
    table = dedup.path / LOSERS
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
