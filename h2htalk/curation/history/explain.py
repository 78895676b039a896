"""The history of one item: what each stage did with it, and why; what people decided; where it was released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from h2htalk.curation.erasure_scope import read_index, resolve_ids
from h2htalk.curation.history.events import Event
from h2htalk.curation.history.linked_folders import linked_events
from h2htalk.curation.outcomes import EARLIER_STATE, Record, dialogue_of, source_ids
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED
from h2htalk.curation.stage_table import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import DataError, quoted

_ORIGIN = ("id", "origin", "source", "dialogue", "model", "licence", "contract")


def explain(workspace: Workspace, item_id: str) -> list[Event]:
    """The history of a dialogue, a candidate or a person: by stages, then in the rounds and releases linked to them.

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
    events = _events(workspace, ids)
    if not events:
        ids = resolve_ids(workspace, item_id, read_index(workspace), None)
        events = _events(workspace, ids)
    return [*events, *linked_events(workspace.path, ids | {event.id for event in events})]


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
