"""Whom an erasure takes out: from an id, ours or the raw data's, to every dialogue that holds the words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from h2htalk.curation.dedup import LOSERS
from h2htalk.curation.erasures import source_of
from h2htalk.curation.outcomes import Record, dialogue_of, own_ids
from h2htalk.curation.parts import KEPT, REJECTED, StageFolder
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted

Index = Mapping[str, Mapping[str, Any]]  # dialogue -> where it stands in the raw files (gather's audit)


def who(workspace: Workspace, asked: str, index: Index) -> frozenset[str]:
    """Every id of the source, the person's own among them. Our ids go before those of the raw files.

    Args:
        workspace: where.
        asked: an id of a dialogue or a person, or one of the raw files, `SOURCE:ID` where several use it.
        index: by dialogue, {"file", "line", "id", "person", "known_as"}.

    Raises:
        ConfigError: several sources use that raw id, or one of them for a person and for somebody else's dialogue;
            names what is meant.
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
