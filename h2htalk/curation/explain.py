"""One item's whole story: what each stage did with it, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.curation.erasure_scope import read_index, who
from h2htalk.curation.outcomes import Record, dialogue_of, source_ids
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.errors import DataError, quoted


@dataclass(frozen=True, slots=True)
class Event:
    """What a stage did with one record: `kept` with details, or `rejected` with its reason."""

    stage: str
    id: str
    what: str
    details: Mapping[str, Any]


def explain(workspace: Workspace, item_id: str) -> list[Event]:
    """The story of a dialogue, a candidate or a person, stage by stage.

    Args:
        workspace: where.
        item_id: of a dialogue (all of its candidates too), of a candidate (its dialogue's story and its own), or of
            a person (`SOURCE-p0003`); or, until `purge`, what the raw data call a dialogue or a person.

    Raises:
        ConfigError: it is a raw id of several.
        DataError: no curation has begun there, no stage knows it, or it was taken out.
    """
    workspace.require_begun()
    if item_id in workspace.erased():
        raise DataError(f"{quoted(item_id)} was erased from {workspace.path}; nothing of it is left")
    # Of a candidate, its dialogue's story too: `DIALOGUE:subtask`.
    wanted = frozenset([item_id, item_id.partition(":")[0]])
    events = [event for stage in STAGES for event in _events(workspace, stage, wanted)]
    if not events:
        called = who(workspace, item_id, read_index(workspace), None)
        events = [event for stage in STAGES for event in _events(workspace, stage, called)]
    return events


def _events(workspace: Workspace, stage: str, wanted: frozenset[str]) -> Iterator[Event]:
    folder = workspace.stage(stage)
    for part in folder.parts():
        audits = {record["id"]: record for record in folder.part_records(part, AUDIT)}
        for record in folder.part_records(part, KEPT):
            if source_ids(record) & wanted:
                yield Event(
                    stage, str(record["id"]), "kept", _kept_details(record, audits.get(record["id"], {}))
                )
        for record in folder.part_records(part, REJECTED):
            held = record.get("record")
            ids = source_ids(held) if isinstance(held, Mapping) else frozenset()
            if (ids | {record["id"], dialogue_of(record)}) & wanted:
                details = {"reason": record["reason"], **record["evidence"]}
                yield Event(stage, str(record["id"]), "rejected", details)


def _kept_details(record: Record, audit: Record) -> dict[str, Any]:
    """What a stage noted: its audit, and what stands in the record's metadata or review, without any text."""
    details = {key: value for key, value in audit.items() if key != "id"}
    metadata = record.get("metadata")
    if isinstance(metadata, Mapping):
        details |= {key: metadata[key] for key in ("anonymized", "safety") if key in metadata}
    if "review" in record:
        details["review"] = record["review"]
    provenance = record.get("provenance")
    if isinstance(provenance, Mapping):
        details["provenance"] = dict(provenance)
    if carries := _without_text(_items(metadata, "alternatives")):
        details["alternatives"] = carries
    if references := _without_text(_items(record, "references")):
        details["references"] = references
    return details


def _items(held: object, name: str) -> list[Record]:
    found = held.get(name) if isinstance(held, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _without_text(items: list[Record]) -> list[dict[str, Any]]:
    """Where replies came from, and under which licence."""
    told = []
    for item in items:
        provenance = item.get("provenance")
        known = {**(provenance if isinstance(provenance, Mapping) else {}), **item}
        names = ("id", "origin", "source", "dialogue", "model", "licence", "contract")
        told.append({name: known[name] for name in names if name in known})
    return told


def story(events: list[Event]) -> str:
    """The events as a page of text."""
    lines = []
    for event in events:
        lines.append(f"{STAGES[event.stage]:16} {event.what:9} {event.id}")
        lines += [f"{'':16} {line}" for line in _told(event.details)]
    return "\n".join(lines)


def _told(details: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in details.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _told(value, indent + "  ")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}{key} ({len(value)})"
            for item in value:
                said = (
                    ", ".join(f"{k} {v}" for k, v in item.items()) if isinstance(item, Mapping) else str(item)
                )
                yield f"{indent}  {said}"
        else:
            said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{indent}{key}: {said}"
