"""Whom an erasure takes out: from an id, ours or the raw data's, to every dialogue that holds the words."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from h2htalk.curation.dedup import LOSERS
from h2htalk.curation.erasures import source_of
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.parts import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted

_SHOWN = 20  # ids that an error lists
Index = Mapping[str, Mapping[str, Any]]  # dialogue -> where it stands in the raw files (gather's audit)


def raw_index(workspace: Workspace) -> Index:
    """Where each dialogue stands in the raw files; empty after `purge`. Raises DataError."""
    return {str(r["id"]): r.get("raw", {}) for r in workspace.stage("gather").records(AUDIT)}


def who(workspace: Workspace, asked: str, index: Index) -> frozenset[str]:
    """Every id of the source, the person's own among them. Our ids go before those of the raw files.

    Args:
        workspace: where.
        asked: an id of a dialogue or a person, or one of the raw files, `SOURCE:ID` where several use it.
        index: by dialogue, {"file", "line", "id", "person", "known_as"}.

    Raises:
        ConfigError: several sources use that raw id, or one of them for several dialogues, or for a person and for
            somebody else's dialogue; names what is meant.
        DataError: nobody is called so.
    """
    ours = {asked} if asked in workspace.erased() else set[str]()
    people: dict[str, set[str]] = {}
    dialogues: dict[str, set[str]] = {}
    for record in _everything(workspace, index):
        dialogue, names = dialogue_of(record), own_ids(record)
        place = index.get(dialogue, {})
        provenance = record.get("provenance")
        person = provenance.get("person") if isinstance(provenance, Mapping) else None
        known_as = {name for name in (person, place.get("known_as")) if isinstance(name, str)}
        source = source_of(dialogue)
        if asked in known_as:
            ours |= {dialogue, asked}
        elif asked in names:
            ours.add(dialogue)
        elif _is_called(asked, source, place.get("person")):
            people.setdefault(source, set()).update({dialogue}, known_as)
        elif _is_called(asked, source, place.get("id")):
            dialogues.setdefault(source, set()).add(dialogue)
    if not ours:
        _require_one(asked, people, dialogues)
    found = ours or set().union(*people.values(), *dialogues.values())
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
                f"people; say which, one by one: {listed(names)}"
            )


class OthersGoToo(ConfigError):
    """Near copies of other people would go too. `ids`: everything that would be taken out."""

    def __init__(self, asked: str, ids: frozenset[str], others: frozenset[str]) -> None:
        super().__init__(
            f"{quoted(asked)}: the same words stand in dialogues of others, which would go too: {listed(others)}; "
            f"look at them (h2htalk curate explain), then do it with --yes"
        )
        self.ids, self.others = tuple(sorted(ids)), tuple(sorted(others))


def require_own(
    workspace: Workspace, source_id: str, asked: frozenset[str], copies: frozenset[str], index: Index
) -> None:
    """See that near copies are of the same person; who names nobody may be anybody.

    Raises:
        OthersGoToo: some are not; lists them.
    """
    if not copies:
        return
    persons: dict[str, set[str]] = {}
    for record in _everything(workspace, index):
        dialogue = dialogue_of(record)
        known = index.get(dialogue, {}).get("known_as")
        names = (own_ids(record) - {str(record["id"]), dialogue}) | ({known} if known else set())
        persons.setdefault(dialogue, set()).update(names)
    own = asked.union(*(persons.get(name, set()) for name in asked))
    others = frozenset(name for name in copies if persons.get(name, set()).isdisjoint(own))
    if others:
        raise OthersGoToo(source_id, asked | copies, others)


def listed(ids: Collection[str]) -> str:
    """Some ids, and how many more there are."""
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return ", ".join(sorted(ids)[:_SHOWN]) + more


def _is_called(asked: str, source: str, raw: object) -> bool:
    """Whether raw data call it so. Names are compared as characters, however a keyboard or a file composes them."""
    called = unicodedata.normalize("NFC", str(raw))
    return raw not in (None, "") and unicodedata.normalize("NFC", asked) in (called, f"{source}:{called}")


def _everything(workspace: Workspace, index: Index) -> Iterator[Record]:
    yield from ({"id": name} for name in index)
    for stage in STAGES:
        folder = workspace.stage(stage)
        yield from folder.records(KEPT)
        for record in folder.records(REJECTED):
            held = record.get("record")
            yield held if isinstance(held, dict) else record


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
