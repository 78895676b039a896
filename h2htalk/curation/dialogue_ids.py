"""The dialogues of a workspace by every id that they have, and what an id stands for: ours, or one of the raw files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any

from h2htalk.curation.stage_folder import AUDIT, EARLIER_STATE, KEPT, REJECTED, Record
from h2htalk.curation.stages import FIRST_STAGE, STAGES
from h2htalk.curation.workspace import INDEX, Workspace, mark, marks_of, source_of
from h2htalk.data.files import read_jsonl
from h2htalk.errors import ConfigError, DataError, quoted, shorten

# Dialogue -> its place in the raw files and its ids there (gather's audit; neither after `purge`), `marks` of its raw
# id and of the words of an earlier state, `person_marks`, our id `known_as` of the person, `state_of`, the dialogue of
# whose conversation it is an earlier state, and after `purge` `items`, the candidates that rest on it.
Index = Mapping[str, Mapping[str, Any]]


def dialogue_of(record: Record) -> str:
    """The id of the dialogue that a record or a rejected line comes from; its own where it is a dialogue."""
    provenance = record.get("record", record).get("provenance", {})
    # A rejected candidate without text has the id `DIALOGUE:subtask`.
    return str(provenance.get("dialogue") or str(record["id"]).split(":", 1)[0])


def read_index(workspace: Workspace, key: bytes) -> dict[str, dict[str, Any]]:
    """Every dialogue of a workspace; after `purge` those that it listed. Raises DataError."""
    index: dict[str, dict[str, Any]] = {}
    for record in workspace.stage(FIRST_STAGE).records(AUDIT):
        name = str(record["id"])
        raw = record.get("raw", {})
        marks = marks_of(key, source_of(name), raw.get("id"), None, None).union(
            raw.get("marks", ())
        )
        if "mark" in raw:
            marks |= {raw["mark"]}
        of_person = marks_of(key, source_of(name), None, raw.get("person"), None)
        index[name] = {**raw, "marks": marks, "person_marks": of_person}
    purged = workspace.facts().get("purged")
    if purged and (path := workspace.path / INDEX).exists():
        index |= {str(line["id"]): {**line} for _, line in read_jsonl(path)}
    for stage in STAGES if purged else (FIRST_STAGE,):
        folder = workspace.stage(stage)
        for record in chain(folder.records(KEPT), folder.records(REJECTED)):
            entry = index.setdefault(dialogue_of(record), {"marks": (), "person_marks": ()})
            if (
                person := record.get("record", record).get("provenance", {}).get("person")
            ) is not None:
                entry["known_as"] = person
            if record.get("reason") == EARLIER_STATE and "of" in record["evidence"]:
                entry["state_of"] = record["evidence"]["of"]
    return index


def resolve_ids(workspace: Workspace, asked: str, index: Index, key: bytes) -> frozenset[str]:
    """Every id that an id stands for, a person's own among them. Our ids precede those of the raw files.

    `asked`: an id of a dialogue, a candidate or a person, or one of the raw files, `SOURCE:ID` where several use it;
    `key`: the workspace's erasure key. Raises ConfigError, which names the choices, where a raw id is ambiguous,
    DataError where nobody has the id.
    """

    @cache
    def sought(kind: str, source: str) -> frozenset[str]:
        return frozenset(
            mark(key, kind, source, name) for name in (asked, asked.removeprefix(f"{source}:"))
        )

    ids = {asked} & workspace.erased()
    raw: dict[
        str, dict[str, set[str]]
    ] = {}  # source -> dialogues with that raw id, and "", the person with it -> ids
    for dialogue, entry in index.items():
        source = source_of(dialogue)
        person = entry.get("known_as")
        if asked == person:
            ids |= {dialogue, asked}
        elif dialogue in (asked, asked.partition(":")[0]):
            ids.add(dialogue)
        elif sought("person", source).intersection(entry["person_marks"]):
            raw.setdefault(source, {}).setdefault("", set()).update(
                filter(None, (dialogue, person))
            )
        elif sought("id", source).intersection(entry["marks"]):
            state = entry.get("state_of", dialogue)
            raw.setdefault(source, {})[state] = {state}
    if not ids and raw:
        choices = [f"{source}:{asked}" for source in sorted(raw)]
        if len(raw) == 1:
            ((source, found),) = raw.items()
            own = found.get("", set())
            choices = sorted(own, key=lambda name: (not name.startswith(f"{source}-p"), name))[:1]
            choices += sorted(found.keys() - own - {""})
        if len(choices) > 1:
            shown = shorten(" or ".join(choices), 400)
            raise ConfigError(
                f"{quoted(asked)} is an id of several people or dialogues; choose one: {shown}"
            )
        ids = set().union(*(same for found in raw.values() for same in found.values()))
    for line in () if ids else workspace.tombstones():
        source = source_of(line["id"])
        if (sought("id", source) | sought("person", source)).intersection(line.get("marks", ())):
            ids.add(line["id"])
    if not ids:
        lists = f"{FIRST_STAGE}/kept lists the ids, and {FIRST_STAGE}/audit, until purge, those of the raw data"
        raise DataError(f"{workspace.path}: no id {quoted(asked)} was gathered; {lists}")
    return frozenset(ids)
