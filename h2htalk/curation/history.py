"""The history of one item: what each stage did with it, and why; what people decided; where it was released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.erase import dialogue_of, read_index, resolve_ids
from h2htalk.curation.outcomes import EARLIER_STATE, Record
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import own_ids
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.releases.release_folder import VOTES, is_release, read_manifest, read_rows
from h2htalk.errors import DataError, H2HTalkError, quoted
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, Decision, tie_id
from h2htalk.rounds.outcome import read_adjudications, read_outcome
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.round_folder import RoundFolder

_ORIGIN = ("id", "origin", "source", "dialogue", "model", "licence", "contract")


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one record in a stage of the curation, a `round` or a `release`; `details` hold no text of it.

    `what`: in a stage `kept`, `rejected` or `earlier` (a state of a conversation); in a round its state; `released`; or
    of a linked folder, with its name as `id`, `missing` or `unreadable`.
    """

    stage: str
    id: str
    what: str
    details: Mapping[str, Any]


def explain(workspace: Workspace, item_id: str) -> list[Event]:
    """The history of a dialogue, a candidate or a person: by stages, then in the rounds and releases linked to them.

    `item_id`: of a dialogue (with all its candidates), of a candidate (with its dialogue), or of a person
    (`SOURCE-p0003`); or the id of a dialogue or a person in the raw data.

    Raises ConfigError where several items have that raw id, DataError where no stage knows it, or it was erased.
    """
    workspace.require_begun()
    if item_id in workspace.erased():
        raise DataError(f"{quoted(item_id)} was erased from {workspace.path}")
    # A candidate's id is `DIALOGUE:subtask`.
    ids = frozenset([item_id, item_id.partition(":")[0]])
    events = [event for stage in STAGES for event in _stage_events(workspace, stage, ids)]
    if not events:
        ids = resolve_ids(workspace, item_id, read_index(workspace, key := workspace.erasure_key()), key)
        events = [event for stage in STAGES for event in _stage_events(workspace, stage, ids)]
    return [*events, *_linked_events(workspace.path, ids | {event.id for event in events})]


def _stage_events(workspace: Workspace, stage: str, ids: frozenset[str]) -> Iterator[Event]:
    folder = workspace.stage(stage)
    for part in folder.parts():
        audits = {record["id"]: record for record in folder.part_records(part, AUDIT)}
        for record in folder.part_records(part, KEPT):
            if _ids_of(record) & ids:
                details = _kept_details(record, audits.get(record["id"], {}))
                yield Event(stage, str(record["id"]), "kept", details)
        for record in folder.part_records(part, REJECTED):
            if (_ids_of(record.get("record", {})) | {record["id"], dialogue_of(record)}) & ids:
                details = {"reason": record["reason"], **record["evidence"]}
                what = "earlier" if record["reason"] == EARLIER_STATE else "rejected"
                yield Event(stage, str(record["id"]), what, details)


def _ids_of(record: Record) -> frozenset[str]:
    """The ids of those whose words a record holds, and the duplicates that it stands for."""
    return own_ids(record) | frozenset(record.get("provenance", {}).get("merged", ()))


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


def _linked_events(folder: Path, ids: frozenset[str]) -> Iterator[Event]:
    """What happened to items, or those of dialogues, in the rounds and releases that a workspace and these link."""
    for link, path in follow_links(read_links(folder)):
        try:
            if link.kind == "round" and RoundFolder(path).exists:
                yield from _round_events(RoundFolder(path), ids)
            elif link.kind == "release" and is_release(path):
                yield from _release_events(path, ids)
            elif link.kind != "run":
                yield Event(link.kind, path.name, "missing", {"folder": str(path)})
        except H2HTalkError as error:
            yield Event(link.kind, path.name, "unreadable", {"error": str(error)})


def _round_events(folder: RoundFolder, ids: frozenset[str]) -> Iterator[Event]:
    # Asked for by its id (of a tie, of the item's) or its dialogue's.
    items = [item for item in folder.items() if {name := item.id.partition("#")[0], name.partition(":")[0]} & ids]
    if not items:
        return
    state = folder.state
    outcome = read_outcome(folder.path) if state == "closed" else None
    annotations = outcome.annotations if outcome else folder.annotations()
    decisions = outcome.decisions if outcome else {}
    by = {tie: one.by for tie, one in read_adjudications(folder).items()}
    values: dict[tuple[str, str], list[Value]] = {}
    for one in annotations.values():
        if one.value is not None:
            values.setdefault((one.item, one.question), []).append(one.value)
    questions = [question for question in folder.questions() if question.form != "text"]
    for item in items:
        details: dict[str, Any] = {"round": folder.name, "kind": folder.spec().kind}
        for question in questions:
            key = item.id, question.name
            if key in values or key in decisions:
                details[question.name] = _question_details(question, values.get(key, []), decisions.get(key), by)
        if skipped := len(values.get((item.id, SKIPPED), [])):
            details["skipped"] = skipped
        yield Event("round", item.id, state, details)


def _question_details(
    question: Question, values: list[Value], decision: Decision | None, by: Mapping[str, str]
) -> dict[str, Any]:
    """Votes by label or the mean of ratings; the decision and its rule, and the round that adjudicated it."""
    details: dict[str, Any] = {}
    if question.form == "rating":
        ratings = [value for value in values if isinstance(value, int)]
        return {"mean": f"{sum(ratings) / len(ratings):.2f}", "ratings": len(ratings)} if ratings else {"ratings": 0}
    chosen = [label for value in values for label in (value if isinstance(value, tuple) else (value,))]
    details["votes"] = dict(sorted(Counter(map(str, chosen)).items(), key=lambda pair: (-pair[1], pair[0])))
    if decision is not None:
        label = decision.label
        details["decision"] = list(label) if isinstance(label, tuple) else label or "none"
        details["rule"] = decision.rule
        if decision.tied:
            details["tied"] = list(decision.tied)
        if decision.rule == ADJUDICATION:
            details["by"] = by[tie_id(decision.item, decision.question)]
    return details


def _release_events(path: Path, ids: frozenset[str]) -> Iterator[Event]:
    manifest = read_manifest(path)
    facts = {"release": manifest.name, "version": manifest.version}
    for config, splits in manifest.configs.items():
        for split in splits if config != VOTES else ():
            for _, row in read_rows(path, manifest, config, split):
                if row["id"] in ids:
                    yield Event("release", row["id"], "released", {**facts, "config": config, "split": split})


def format_history(events: Sequence[Event]) -> str:
    """The events as text."""
    lines = []
    for event in events:
        lines.append(f"{event.stage:10} {event.what:9} {event.id}")
        lines += [f"{'':10} {line}" for line in _format(event.details)]
    return "\n".join(lines)


def _format(details: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in details.items():
        if isinstance(value, Mapping) and value and all(isinstance(number, int) for number in value.values()):
            yield f"{indent}{key}: " + ", ".join(f"{name} {number:,}" for name, number in value.items())
        elif isinstance(value, Mapping):
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
