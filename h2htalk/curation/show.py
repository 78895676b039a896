"""Show records as transcripts: of a split, a curation stage, a round or a run; and the history of one item.

The history tells what each stage did with the item, and why; what people decided; where it was released.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.erase import dialogue_of, read_index, resolve_ids
from h2htalk.curation.stage_folder import AUDIT, EARLIER_STATE, KEPT, REJECTED, Record, count_values
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import own_ids, require_erased
from h2htalk.data.files import read_jsonl
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.releases.release_folder import VOTES, is_release, read_manifest, read_rows
from h2htalk.data.responses import CALLS, Response, read_answers
from h2htalk.data.scenario import is_workspace, last_candidates
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, quoted
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, tie_id
from h2htalk.rounds.item_sources import case_item, read_record_item, scenario_item
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_adjudications, read_outcome
from h2htalk.rounds.questions import SKIPPED, Value
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.text.tables import value_text

# An id, its text as an item (None where a stage did not keep it), and what was answered or decided about it.
Entry = tuple[str, Item | None, tuple[str, ...]]
# Parts of a record that say something about it and are no text of the conversation.
_SAYS = ("tags", "metadata", "review", "provenance", "licence")
# What tells where a reply comes from.
_ORIGIN = ("id", "origin", "source", "dialogue", "model", "licence", "contract")


def show(name: str, ids: Collection[str] = (), sample: int = 20) -> Iterator[str]:
    """Yield lines that show records of `name`: those with `ids`, or a sample of so many.

    `name`: a split, a workspace or its stage (`WORKSPACE/safety`: kept and rejected records), a round, a run or a
    study. The sample is drawn by a hash of the id, so that the same ones are shown each time. Raises ConfigError where
    an id is not there; DataError or RoundError where `name` is none of these, or a file is damaged.
    """
    count = 0

    def counting() -> Iterator[Entry]:
        nonlocal count
        for entry in _entries(Path(name), name):
            count += 1
            yield entry

    if ids:
        chosen = [entry for entry in counting() if entry[0] in ids]
    else:
        chosen = heapq.nsmallest(sample, counting(), key=lambda entry: hashlib.sha256(entry[0].encode()).digest())
    if missing := {*ids} - {entry[0] for entry in chosen}:
        raise ConfigError(f"{name}: no record {quoted(min(missing))} among {counted(count, 'record')}")
    for entry in chosen:
        yield from (*_transcript(*entry), "")
    yield f"{len(chosen):,} of {counted(count, 'record')} of {name}"


def _entries(path: Path, name: str) -> Iterator[Entry]:
    """Every record of a folder or split, in the order of its files."""
    if (path / CALLS).is_file() and os.path.isdir(path / "inputs" / "split"):
        return _run_entries(path)
    if (folder := RoundFolder(path)).exists:
        return _round_entries(folder)
    stage = last_candidates(path) if is_workspace(path) else path
    if os.path.isdir(stage / "kept"):
        require_erased(stage.parent)
        return _stage_entries(stage)
    return _split_entries(name)


def _split_entries(name: str) -> Iterator[Entry]:
    split = load_split(name)
    for one in split.items:
        item = case_item(one, split.personas) if isinstance(one, Case) else scenario_item(one, split.personas)
        yield one.id, item, _said(one.to_dict())


def _stage_entries(stage: Path) -> Iterator[Entry]:
    for path in sorted((stage / KEPT).glob("part-*.jsonl")):
        for where, kept in read_jsonl(path):
            one = read_record_item(where, kept)[0]
            yield one.id, one, ("kept", *_said(kept.get("scenario", {})), *_said(kept))
    for path in sorted((stage / REJECTED).glob("part-*.jsonl")):
        for where, line in read_jsonl(path):
            reason = f"rejected by {line['stage']}: {line['reason']}  {_plain(line.get('evidence'))}"
            record = line.get("record")
            item = read_record_item(where, record)[0] if record else None
            yield str(line["id"]), item, (reason, *(_said(record) if record else ["the text was not kept"]))


def _round_entries(folder: RoundFolder) -> Iterator[Entry]:
    decided: dict[str, list[str]] = {}
    if (path := folder.path / "decisions.jsonl").is_file():
        for _, one in read_jsonl(path):
            label = " or ".join(one.get("tied") or ()) or value_text(one.get("label"))
            decision = f"{one['question']}: {label} ({one['rule']}, {one.get('support', 0)} of {one.get('votes', 0)})"
            decided.setdefault(str(one["item"]), []).append(decision)
    for item in folder.items():
        yield item.id, item, tuple(decided.get(item.id, ("no decision yet",)))


def _run_entries(path: Path) -> Iterator[Entry]:
    replies: dict[str, list[str]] = {}
    for (key, number), one in read_answers(path / CALLS).items():
        text = one.text if isinstance(one, Response) else f"failed: {one.failure.reason}"
        replies.setdefault(key, []).append(f"reply {number}: {text}")
    by_case: dict[str, list[str]] = {}
    for key, texts in replies.items():  # of a study: ARM/PART/CASE/PLACE
        if len(parts := key.split("/")) == 4:
            by_case.setdefault(parts[2], []).extend(f"{key} {text}" for text in texts)
    for name, item, notes in _split_entries(str(path / "inputs" / "split")):
        yield name, item, (*(replies.get(name) or by_case.get(name, ["not answered"])), *notes)


def _said(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a record says of itself beside the conversation, one line a part."""
    return tuple(f"{name}: {_plain(record[name])}" for name in _SAYS if record.get(name))


def _plain(value: object) -> str:
    """A value as text: of a flat object without its punctuation."""
    if isinstance(value, Mapping) and all(isinstance(one, str | int | float) for one in value.values()):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _transcript(name: str, item: Item | None, notes: Iterable[str]) -> Iterator[str]:
    yield f"── {name}" + (f"  {item.language}  {item.subtask}".rstrip() + "  crisis" * item.crisis if item else "")
    if item:
        parts = [*item.context, *((turn.role, turn.content) for turn in item.turns)]
        parts += [("reply", item.response), ("reference", item.reference)]
        yield from (f"{title}: {text}" if "\n" not in text else f"{title}:\n{text}" for title, text in parts if text)
    yield from (f"  · {note}" for note in notes)


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
            if not _ids_of(record) & ids:
                continue
            # The audit of the record, and what stages added to it, without any text.
            details = {key: value for key, value in audits.get(record["id"], {}).items() if key != "id"}
            metadata = record.get("metadata", {})
            details |= {key: metadata[key] for key in ("anonymized", "safety") if key in metadata}
            details |= {key: record[key] for key in ("review", "provenance") if key in record}
            replies = {"alternatives": metadata.get("alternatives"), "references": record.get("references")}
            for name, items in replies.items():
                if known := [{**reply.get("provenance", {}), **reply} for reply in items or ()]:
                    details[name] = [{key: one[key] for key in _ORIGIN if key in one} for one in known]
            yield Event(stage, str(record["id"]), "kept", details)
        for record in folder.part_records(part, REJECTED):
            if (_ids_of(record.get("record", {})) | {record["id"], dialogue_of(record)}) & ids:
                details = {"reason": record["reason"], **record["evidence"]}
                what = "earlier" if record["reason"] == EARLIER_STATE else "rejected"
                yield Event(stage, str(record["id"]), what, details)


def _ids_of(record: Record) -> frozenset[str]:
    """The ids of those whose words a record holds, and the duplicates that it stands for."""
    return own_ids(record) | frozenset(record.get("provenance", {}).get("merged", ()))


def _linked_events(folder: Path, ids: frozenset[str]) -> Iterator[Event]:
    """What happened to items, or those of dialogues, in the rounds and releases that a workspace and these link."""
    for link, path in follow_links(read_links(folder)):
        try:
            if link.kind == "round" and RoundFolder(path).exists:
                yield from _round_events(RoundFolder(path), ids)
            elif link.kind == "release" and is_release(path):
                manifest = read_manifest(path)
                facts = {"release": manifest.name, "version": manifest.version}
                parts = [(config, split) for config, splits in manifest.configs.items() for split in splits]
                for config, split in parts:
                    for _, row in read_rows(path, manifest, config, split) if config != VOTES else ():
                        if row["id"] in ids:
                            yield Event("release", row["id"], "released", {**facts, "config": config, "split": split})
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
            given, decision = values.get(key, []), decisions.get(key)
            if question.form == "rating" and (given or decision):
                ratings = [value for value in given if isinstance(value, int)]
                mean = {"mean": f"{sum(ratings) / len(ratings):.2f}"} if ratings else {}
                details[question.name] = {**mean, "ratings": len(ratings)}
            elif given or decision:
                chosen = [label for value in given for label in (value if isinstance(value, tuple) else (value,))]
                own: dict[str, Any] = {"votes": count_values(map(str, chosen))}
                if decision is not None:
                    label = list(decision.label) if isinstance(decision.label, tuple) else decision.label or "none"
                    own |= {"decision": label, "rule": decision.rule}
                    own |= {"tied": list(decision.tied)} if decision.tied else {}
                    own |= {"by": by[tie_id(*key)]} if decision.rule == ADJUDICATION else {}
                details[question.name] = own
        if skipped := len(values.get((item.id, SKIPPED), [])):
            details["skipped"] = skipped
        yield Event("round", item.id, state, details)


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
        elif isinstance(value, Mapping) and value:
            yield f"{indent}{key}"
            yield from _format(value, indent + "  ")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}{key} ({len(value)})"
            for item in value:
                fields = item.items() if isinstance(item, Mapping) else [("", item)]
                yield f"{indent}  " + ", ".join(f"{k} {v}".strip() for k, v in fields)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | Mapping) else str(value)
            yield f"{indent}{key}: {text or 'none'}"
