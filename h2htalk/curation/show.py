"""Show records as transcripts: of a split, a curation stage, a round or a run; and the history of one item.

The history tells what each stage did with the item, and why; what people decided; where it was released.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.curation.dialogue_ids import dialogue_of, read_index, resolve_ids
from h2htalk.curation.reading.summary import counts_as_read
from h2htalk.curation.stage_folder import (
    AUDIT,
    EARLIER_STATE,
    KEPT,
    REJECTED,
    Record,
    StageFolder,
    count_values,
)
from h2htalk.curation.stage_records import PartMark, read_checked
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import own_ids
from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.readers.certificates import read_certificates
from h2htalk.data.readers.describe import describe_reads
from h2htalk.data.readers.exposures import details_text
from h2htalk.data.readers.item_reads import read_item_reads
from h2htalk.data.readers.reads import READS, Read, read_read
from h2htalk.data.releases.release_folder import VOTES, is_release, read_manifest, read_rows
from h2htalk.data.responses import CALLS, Response, read_answers
from h2htalk.data.scenario import Scenario, noted_tags
from h2htalk.data.splits import load_split
from h2htalk.data.stage_folders import is_workspace, last_candidates
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, listed, quoted, suggest
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, tie_id
from h2htalk.rounds.item_sources import case_item, read_record_item, scenario_item
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_adjudications, read_outcome
from h2htalk.rounds.questions import SKIPPED, Value
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.text.tables import value_text

DEFAULT_LIMIT = 20  # transcripts that are shown unless a limit is given
_TAG_ENDS = (".", ":")  # behind a group of tags or reasons: `crisis` is that of `crisis.ideation`
# Parts of a record that say something about it and are no text of the conversation.
_SAYS = ("tags", "metadata", "review", "provenance", "licence")
READ = "read"  # the key of a reading in an audit record and in a review
_SAFETY = "safety"
_READING = (_SAFETY, "review")  # the stages in which a model reads
# What tells where a reply comes from.
_ORIGIN = ("id", "origin", "source", "dialogue", "model", "licence", "contract")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record to show.

    Attributes:
        id: its id.
        item: its text; None where a stage did not keep it.
        notes: what was answered or decided about it.
        tags: of a stage those that its summary counts; else what the record says it is about.
        reason: why a stage rejected it; empty for a record that was kept.
        unread: whether nobody has read it who counts as a reader; None where that is not on record.
    """

    id: str
    item: Item | None
    notes: tuple[str, ...]
    tags: tuple[str, ...] = ()
    reason: str = ""
    unread: bool | None = None


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records are shown; every record without a setting.

    Attributes:
        tags: records with one of these tags, or with one of a group: `crisis` is that of `crisis.ideation`.
        reasons: records that a stage rejected for one of these reasons, or for one of a group.
        unread: only records that nobody has read who counts as a reader.
    """

    tags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    unread: bool = False

    @property
    def chooses(self) -> bool:
        """Whether it leaves any record out."""
        return bool(self.tags or self.reasons or self.unread)

    def takes(self, entry: Entry) -> bool:
        """Whether a record is shown."""
        if self.tags and not any(_is_of(tag, self.tags) for tag in entry.tags):
            return False
        if self.reasons and not _is_of(entry.reason, self.reasons):
            return False
        return bool(entry.unread) if self.unread else True

    def describe(self) -> str:
        """The records that it takes, in words; empty where it takes every record."""
        parts: list[str] = []
        if self.tags:
            parts.append(f"with the tag {' or '.join(map(quoted, self.tags))}")
        if self.reasons:
            parts.append(f"rejected for {' or '.join(map(quoted, self.reasons))}")
        if self.unread:
            parts.append("that nobody has read who counts as a reader")
        return " ".join(parts)


EVERY_RECORD = RecordFilter()


def _is_of(word: str, groups: Iterable[str]) -> bool:
    """Whether a tag or reason is one of these, or in a group of this name."""
    return any(
        word == group or word.startswith(tuple(group + end for end in _TAG_ENDS))
        for group in groups
    )


class RecordSearch:
    """The records of a split, a workspace or its stage, a round, a run or a study that a filter takes, counted.

    In a workspace, tags and reasons are looked for in every stage, and unread dialogues in its stage `safety`.
    """

    def __init__(self, name: str, chosen: RecordFilter = EVERY_RECORD) -> None:
        """Prepare to go through the records of `name`. Raises ConfigError for a filter that takes nothing."""
        if chosen.tags and chosen.reasons:
            raise ConfigError(
                "a record that was rejected has a reason, and one that was kept has tags: name only one"
            )
        if chosen.reasons and chosen.unread:
            raise ConfigError(
                "unread records are counted among kept ones, and a rejected one has a reason: name only one"
            )
        self.name = name
        self.filter = chosen
        self.total = 0
        self.matching = 0
        self._tags: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._is_read_recorded = False

    def matches(self) -> Iterator[Entry]:
        """The records that the filter takes, in the order of their files.

        Raises ConfigError at the end, where a tag or reason is nowhere, or who has read the records is not on record;
        DataError or RoundError where the name is of nothing that has records, or a file is damaged.
        """
        for entry in _entries(Path(self.name), self.name, self.filter):
            self.total += 1
            self._tags.update(entry.tags)
            if entry.reason:
                self._reasons[entry.reason] += 1
            if entry.unread is not None:
                self._is_read_recorded = True
            if self.filter.takes(entry):
                self.matching += 1
                yield entry
        _require_known("tag", self.filter.tags, self._tags, self.name)
        _require_known("reason", self.filter.reasons, self._reasons, self.name)
        if self.filter.unread and self.total and not self._is_read_recorded:
            advice = "of a workspace, its stage safety, a release and a round it is"
            raise ConfigError(f"{self.name}: who has read these records is not on record; {advice}")

    def sample(self, limit: int) -> list[Entry]:
        """So many of the records, drawn by a hash of the id, so that the same ones are shown each time."""
        return heapq.nsmallest(
            limit, self.matches(), key=lambda entry: hashlib.sha256(entry.id.encode()).digest()
        )

    def named(self, ids: Collection[str]) -> list[Entry]:
        """The records with these ids. Raises ConfigError where one is not among those that the filter takes."""
        entries = [entry for entry in self.matches() if entry.id in ids]
        missing = sorted({*ids} - {entry.id for entry in entries})
        if missing:
            among = counted(self.total, "record")
            if self.filter.chooses:
                among = f"{counted(self.matching, 'record')} {self.filter.describe()}"
            raise ConfigError(f"{self.name}: no record {quoted(missing[0])} among {among}")
        return entries

    def counts(self, shown: int) -> str:
        """How many records are shown, of how many."""
        all_records = counted(self.total, "record")
        if not self.filter.chooses:
            return f"{shown:,} of {all_records} of {self.name}"
        matching = f"{counted(self.matching, 'record')} {self.filter.describe()}"
        return f"{shown:,} of {matching}, among {all_records} of {self.name}"


def _require_known(kind: str, wanted: Sequence[str], known: Counter[str], name: str) -> None:
    """Raise ConfigError unless each tag or reason is there; it names those that are, the most frequent first."""
    for word in wanted:
        if any(_is_of(one, [word]) for one in known):
            continue
        counts = [f"{one} {count:,}" for one, count in count_values(known).items()]
        there = (
            f"those that are there: {listed(counts, 12)}" if counts else f"no record has a {kind}"
        )
        raise ConfigError(
            f"{name}: no record has the {kind} {quoted(word)}; {suggest(word, known)}{there}"
        )


def show(
    name: str,
    ids: Collection[str] = (),
    sample: int = DEFAULT_LIMIT,
    chosen: RecordFilter = EVERY_RECORD,
) -> Iterator[str]:
    """Yield lines that show records of `name`: those with `ids`, or a sample of so many that the filter takes.

    `name`: a split, a workspace or its stage (`WORKSPACE/safety`: kept and rejected records), a round, a run or a
    study. Raises ConfigError where an id, a tag or a reason is not there; DataError or RoundError where `name` is none
    of these, or a file is damaged.
    """
    search = RecordSearch(name, chosen)
    entries = search.named(ids) if ids else search.sample(sample)
    for entry in entries:
        yield from _transcript(entry.id, entry.item, entry.notes)
        yield ""
    yield search.counts(len(entries))


def _entries(path: Path, name: str, chosen: RecordFilter) -> Iterator[Entry]:
    """Every record of a folder or split, in the order of its files. Raises DataError while an erasure works there."""
    refuse_unfinished_erasure(path)
    if (path / CALLS).is_file() and os.path.isdir(path / "inputs" / "split"):
        return _run_entries(path)
    if (folder := RoundFolder(path)).exists:
        return _round_entries(folder)
    if is_workspace(path) and chosen.chooses:
        return _workspace_entries(path, chosen)
    stage = last_candidates(path) if is_workspace(path) else path
    if os.path.isdir(stage / KEPT):
        return _stage_entries(stage, chosen.unread)
    return _split_entries(name, chosen.unread)


def _workspace_entries(path: Path, chosen: RecordFilter) -> Iterator[Entry]:
    """The records of every stage, or of `safety` alone where it is asked who has read them."""
    names = [_SAFETY] if chosen.unread else list(STAGES)
    for name in names:
        if os.path.isdir(path / name / KEPT):
            yield from _stage_entries(path / name, chosen.unread)


def _split_entries(name: str, asks_who_read: bool = False) -> Iterator[Entry]:
    split = load_split(name)
    folder = Path(name.partition("#")[0])
    reads = _reads_of_release(folder) if is_release(folder) else None
    unread = _unread_of_release(folder) if asks_who_read and is_release(folder) else None
    for one in split.items:
        item = (
            case_item(one, split.personas)
            if isinstance(one, Case)
            else scenario_item(one, split.personas)
        )
        read = _read_notes(reads.get(one.id, ())) if reads is not None else ()
        yield Entry(
            id=one.id,
            item=item,
            notes=(*read, *_said(one.to_dict())),
            tags=_tags_of(one),
            unread=None if unread is None else one.id in unread,
        )


def _tags_of(one: Scenario | Case) -> tuple[str, ...]:
    """The tags of an item: of a case as written; of a scenario their values, and what safety noted."""
    if isinstance(one, Case):
        return one.tags
    values = asdict(one.tags).values()
    return tuple(dict.fromkeys([*map(str, values), *sorted(noted_tags(one.metadata))]))


def _unread_of_release(folder: Path) -> frozenset[str]:
    """The items of a release for which a gate is not tested, as `release check` counts them."""
    # SciPy and the gates, which showing a run or an item needs not.
    from h2htalk.curation.release.content import read_content
    from h2htalk.curation.release.gate_context import GateContext
    from h2htalk.curation.release.read_gates import untested_gates
    from h2htalk.curation.release.readings import read_readings
    from h2htalk.curation.release.settings import ReleaseSpec

    manifest, content = read_content(folder)
    spec = ReleaseSpec(manifest.name, manifest.version, manifest.licence, ".")
    context = GateContext(spec, readings=read_readings(folder, manifest, content))
    return frozenset(item for gate in untested_gates(content, context) for item in gate.items)


def _read_notes(reads: Iterable[Read]) -> tuple[str, ...]:
    """Who has read an item, a note a reading."""
    return tuple(f"{READ}: {line}" for line in describe_reads(reads))


def _stage_entries(stage: Path, asks_who_read: bool = False) -> Iterator[Entry]:
    certificates = (
        read_certificates(stage.parent) if asks_who_read and stage.name == _SAFETY else None
    )
    for path in sorted((stage / KEPT).glob("part-*.jsonl")):
        audit = stage / AUDIT / path.name
        audits = {line["id"]: line for _, line in read_jsonl(audit)} if audit.is_file() else {}
        mark = StageFolder(stage).mark(path.stem)
        tags = read_checked(PartMark, mark)["record_tags"] if mark.is_file() else {}
        for where, kept in read_jsonl(path):
            one = read_record_item(where, kept)[0]
            review = kept.get("review", {})
            reads = _stored_reads(audits.get(one.id, {}), where) + _stored_reads(review, where)
            read = _read_notes(reads) if reads or stage.name in _READING else ()
            shown = kept
            if READ in review:
                shown = {
                    **kept,
                    "review": {key: value for key, value in review.items() if key != READ},
                }
            unread = None
            if certificates is not None:
                unread = not counts_as_read(kept, reads[0] if reads else None, certificates)
            yield Entry(
                id=one.id,
                item=one,
                notes=(
                    f"kept by {stage.name}",
                    *read,
                    *_said(kept.get("scenario", {})),
                    *_said(shown),
                ),
                tags=tuple(tags.get(one.id, ())),
                unread=unread,
            )
    for path in sorted((stage / REJECTED).glob("part-*.jsonl")):
        for where, line in read_jsonl(path):
            evidence = _plain(line.get("evidence"))
            reason = f"rejected by {line['stage']}: {line['reason']}  {evidence}"
            record = line.get("record")
            item = read_record_item(where, record)[0] if record else None
            notes = _said(record) if record else ("the text was not kept",)
            yield Entry(
                id=str(line["id"]), item=item, notes=(reason, *notes), reason=str(line["reason"])
            )


def _round_entries(folder: RoundFolder) -> Iterator[Entry]:
    decided: dict[str, list[str]] = {}
    if (path := folder.path / "decisions.jsonl").is_file():
        for _, one in read_jsonl(path):
            label = " or ".join(one.get("tied") or ()) or value_text(one.get("label"))
            decision = f"{one['question']}: {label} ({one['rule']}, {one.get('support', 0)} of {one.get('votes', 0)})"
            decided.setdefault(str(one["item"]), []).append(decision)
    for item in folder.items():
        tags = (*item.tags, "crisis") if item.crisis and "crisis" not in item.tags else item.tags
        notes = tuple(decided.get(item.id, ("no decision yet",)))
        yield Entry(id=item.id, item=item, notes=notes, tags=tags, unread=item.unread)


def _run_entries(path: Path) -> Iterator[Entry]:
    replies: dict[str, list[str]] = {}
    for (key, number), one in read_answers(path / CALLS).items():
        text = one.text if isinstance(one, Response) else f"failed: {one.failure.reason}"
        replies.setdefault(key, []).append(f"reply {number}: {text}")
    by_case: dict[str, list[str]] = {}
    for key, texts in replies.items():  # of a study: ARM/PART/CASE/PLACE
        if len(parts := key.split("/")) == 4:
            by_case.setdefault(parts[2], []).extend(f"{key} {text}" for text in texts)
    for entry in _split_entries(str(path / "inputs" / "split")):
        answers = replies.get(entry.id) or by_case.get(entry.id, ["not answered"])
        yield replace(entry, notes=(*answers, *entry.notes))


def _said(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a record says of itself beside the conversation, one line a part."""
    return tuple(f"{name}: {_plain(record[name])}" for name in _SAYS if record.get(name))


def _plain(value: object) -> str:
    """A value as text: of a flat object without its punctuation."""
    if isinstance(value, Mapping) and all(
        isinstance(one, str | int | float) for one in value.values()
    ):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _transcript(name: str, item: Item | None, notes: Iterable[str]) -> Iterator[str]:
    yield f"── {name}" + (
        f"  {item.language}  {item.subtask}".rstrip() + "  crisis" * item.crisis if item else ""
    )
    if item:
        parts = [*item.context, *((turn.role, turn.content) for turn in item.turns)]
        parts += [("reply", item.response), *(("reference", text) for text in item.references)]
        yield from (
            f"{title}: {text}" if "\n" not in text else f"{title}:\n{text}"
            for title, text in parts
            if text
        )
    yield from (f"  · {note}" for note in notes)


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one record in a stage of the curation, a `round` or a `release`; `details` hold no text of it.

    `what`: in a stage `kept`, `rejected` or `earlier` (a state of a conversation); `read` in a sample or for a
    release; in a round its state; `released`; or of a linked folder, with its name as `id`, `missing` or `unreadable`.
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
        ids = resolve_ids(
            workspace, item_id, read_index(workspace, key := workspace.erasure_key()), key
        )
        events = [event for stage in STAGES for event in _stage_events(workspace, stage, ids)]
    ids |= {event.id for event in events}
    return [*events, *_events_of_item_reads(workspace, ids), *_linked_events(workspace.path, ids)]


def _events_of_item_reads(workspace: Workspace, ids: frozenset[str]) -> Iterator[Event]:
    """What the people of samples read, and a guard for a release, wherever it holds words of these ids."""
    for name, line in sorted(read_item_reads(workspace.path).items()):
        if not ids & {name, *line.of}:
            continue
        by_people = [read for read in line.reads if read.kind == "people"]
        by_guards = [read for read in line.reads if read.kind != "people"]
        if by_people:
            yield Event("sample", name, "read", {READ: describe_reads(by_people)})
        if by_guards:
            yield Event("release", name, "read", {READ: describe_reads(by_guards)})
        if line.exposures:
            quoted = [
                f"{one.reader} ({one.date}): {details_text(one.details)}" for one in line.exposures
            ]
            yield Event("release", name, "asked what gives its user away", {"quoted": quoted})


def _stage_events(workspace: Workspace, stage: str, ids: frozenset[str]) -> Iterator[Event]:
    folder = workspace.stage(stage)
    certificates = read_certificates(workspace.path)
    for part in folder.parts():
        audits = {record["id"]: record for record in folder.part_records(part, AUDIT)}
        for record in folder.part_records(part, KEPT):
            if not _ids_of(record) & ids:
                continue
            # The audit of the record, and what stages added to it, without any text.
            audit = audits.get(record["id"], {})
            details = {key: value for key, value in audit.items() if key not in ("id", READ)}
            metadata = record.get("metadata", {})
            details |= {key: metadata[key] for key in ("anonymized", "safety") if key in metadata}
            review = record.get("review", {})
            if review:
                details["review"] = {key: value for key, value in review.items() if key != READ}
            if "provenance" in record:
                details["provenance"] = record["provenance"]
            if stage in _READING:
                stored = _stored_reads(audit if stage == _SAFETY else review, str(record["id"]))
                details[READ] = describe_reads(stored, _language_of(record), certificates)
            replies = {
                "alternatives": metadata.get("alternatives"),
                "references": record.get("references"),
            }
            for name, items in replies.items():
                if known := [{**reply.get("provenance", {}), **reply} for reply in items or ()]:
                    details[name] = [
                        {key: one[key] for key in _ORIGIN if key in one} for one in known
                    ]
            yield Event(stage, str(record["id"]), "kept", details)
        for record in folder.part_records(part, REJECTED):
            if (_ids_of(record.get("record", {})) | {record["id"], dialogue_of(record)}) & ids:
                evidence = {key: value for key, value in record["evidence"].items() if key != READ}
                details = {"reason": record["reason"], **evidence}
                audit = audits.get(record["id"]) or record["evidence"]
                if names := audit.get("names"):
                    details["names"] = names
                if reads := _stored_reads(audit, str(record["id"])):
                    details[READ] = describe_reads(
                        reads, _language_of(record.get("record", {})), certificates
                    )
                what = "earlier" if record["reason"] == EARLIER_STATE else "rejected"
                yield Event(stage, str(record["id"]), what, details)


def _stored_reads(holder: Mapping[str, Any], name: str) -> list[Read]:
    """The reading in an audit record, or in a review; none where there is none."""
    return [read_read(holder[READ], name)] if READ in holder else []


def _language_of(record: Mapping[str, Any]) -> Language | None:
    """The language of a dialogue or a candidate; None where only its id was kept."""
    languages = (part.get("language") for part in (record, record.get("scenario", {})))
    return next((language for language in languages if language), None)


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
                parts = [
                    (config, split)
                    for config, splits in manifest.configs.items()
                    for split in splits
                ]
                reads = _reads_of_release(path)
                for config, split in parts:
                    for _, row in (
                        read_rows(path, manifest, config, split) if config != VOTES else ()
                    ):
                        if row["id"] in ids:
                            where = {**facts, "config": config, "split": split}
                            read = describe_reads(reads.get(row["id"], ()))
                            yield Event("release", row["id"], "released", {**where, READ: read})
            elif link.kind != "run":
                yield Event(link.kind, path.name, "missing", {"folder": str(path)})
        except H2HTalkError as error:
            yield Event(link.kind, path.name, "unreadable", {"error": str(error)})


def _reads_of_release(path: Path) -> dict[str, list[Read]]:
    """The readings of a release's items by their ids; none of a release of an earlier version."""
    reads: dict[str, list[Read]] = {}
    if (path / READS).is_file():
        for where, line in read_jsonl(path / READS):
            read = read_read(line, where)
            reads.setdefault(read.item, []).append(read)
    return reads


def _round_events(folder: RoundFolder, ids: frozenset[str]) -> Iterator[Event]:
    # Asked for by its id (of a tie, of the item's) or its dialogue's.
    items = [
        item
        for item in folder.items()
        if {name := item.id.partition("#")[0], name.partition(":")[0]} & ids
    ]
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
                chosen = [
                    label
                    for value in given
                    for label in (value if isinstance(value, tuple) else (value,))
                ]
                own: dict[str, Any] = {"votes": count_values(map(str, chosen))}
                if decision is not None:
                    label = (
                        list(decision.label)
                        if isinstance(decision.label, tuple)
                        else decision.label or "none"
                    )
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
        if (
            isinstance(value, Mapping)
            and value
            and all(isinstance(number, int) for number in value.values())
        ):
            yield f"{indent}{key}: " + ", ".join(
                f"{name} {number:,}" for name, number in value.items()
            )
        elif isinstance(value, Mapping) and value:
            yield f"{indent}{key}"
            yield from _format(value, indent + "  ")
        elif key == READ and isinstance(value, list):
            yield from (f"{indent}{key}: {line}" for line in value)
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}{key} ({len(value)})"
            for item in value:
                fields = item.items() if isinstance(item, Mapping) else [("", item)]
                yield f"{indent}  " + ", ".join(f"{k} {v}".strip() for k, v in fields)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | Mapping) else str(value)
            yield f"{indent}{key}: {text or 'none'}"
