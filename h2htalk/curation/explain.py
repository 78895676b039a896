"""The history of one item: what each stage did with it, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.curation.erasure_scope import read_index, resolve_ids
from h2htalk.curation.outcomes import EARLIER_STATE, Record, dialogue_of, source_ids
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED
from h2htalk.curation.stage_table import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import DataError, quoted

_ORIGIN = ("id", "origin", "source", "dialogue", "model", "licence", "contract")


@dataclass(frozen=True, slots=True)
class Event:
    """What a stage did with one record: `kept` with details, `rejected` with its reason, or an `earlier` state."""

    stage: str
    id: str
    what: str
    details: Mapping[str, Any]


def explain(workspace: Workspace, item_id: str) -> list[Event]:
    """The history of a dialogue, a candidate or a person, stage by stage.

    Args:
        workspace: with at least a gathered stage.
        item_id: of a dialogue (with all its candidates), of a candidate (with its dialogue), or of a person
            (`SOURCE-p0003`); or, before `purge`, the id of a dialogue or a person in the raw data.

    Raises:
        ConfigError: several items have that raw id.
        DataError: there is no curation, no stage knows the id, or it was erased.
    """
    workspace.require_begun()
    if item_id in workspace.erased():
        raise DataError(f"{quoted(item_id)} was erased from {workspace.path}")
    # A candidate's id is `DIALOGUE:subtask`.
    ids = frozenset([item_id, item_id.partition(":")[0]])
    return _events(workspace, ids) or _events(workspace, resolve_ids(workspace, item_id, read_index(workspace), None))


def _events(workspace: Workspace, ids: frozenset[str]) -> list[Event]:
    return [event for stage in STAGES for event in _stage_events(workspace, stage, ids)]


def _stage_events(workspace: Workspace, stage: str, ids: frozenset[str]) -> Iterator[Event]:
    folder = workspace.stage(stage)
    for part in folder.parts():
        audits = {record["id"]: record for record in folder.part_records(part, AUDIT)}
        for record in folder.part_records(part, KEPT):
            if source_ids(record) & ids:
                details = _kept_details(record, audits.get(record["id"], {}))
                yield Event(stage, str(record["id"]), "kept", details)
        for record in folder.part_records(part, REJECTED):
            if (source_ids(record.get("record", {})) | {record["id"], dialogue_of(record)}) & ids:
                details = {"reason": record["reason"], **record["evidence"]}
                what = "earlier" if record["reason"] == EARLIER_STATE else "rejected"
                yield Event(stage, str(record["id"]), what, details)


def _kept_details(record: Record, audit: Record) -> dict[str, Any]:
    """The audit of a record, and what stages added to it, without any text."""
    details = {key: value for key, value in audit.items() if key != "id"}
    metadata = record.get("metadata", {})
    details |= {key: metadata[key] for key in ("anonymized", "safety") if key in metadata}
    details |= {key: record[key] for key in ("review", "provenance") if key in record}
    replies = {"alternatives": metadata.get("alternatives"), "references": record.get("references")}
    return details | {name: [_origin(item) for item in items] for name, items in replies.items() if items}


def _origin(reply: Record) -> dict[str, Any]:
    """Where a reply comes from, and its licence."""
    known = {**reply.get("provenance", {}), **reply}
    return {name: known[name] for name in _ORIGIN if name in known}


def format_history(events: list[Event]) -> str:
    """The events as text."""
    lines = []
    for event in events:
        lines.append(f"{event.stage:10} {event.what:9} {event.id}")
        lines += [f"{'':10} {line}" for line in _format(event.details)]
    return "\n".join(lines)


def _format(details: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in details.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _format(value, indent + "  ")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}{key} ({len(value)})"
            for item in value:
                fields = item.items() if isinstance(item, Mapping) else [("", item)]
                yield f"{indent}  " + ", ".join(f"{k} {v}".strip() for k, v in fields)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{indent}{key}: {text}"
