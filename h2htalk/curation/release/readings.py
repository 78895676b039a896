"""Who has read the items of a release: collected from its workspace and rounds, written into it, and read back.

    audit of `safety` (guard)                              ─┐
    `review` of a source (reviewer)                         ├─► Read by item ─► reads.jsonl, release.json: facts
    closed rounds (people)                                  │
    item_reads.jsonl (people of samples, `release read`)   ─┘

A guard reads a dialogue, and an item is made of some of its messages: its reading is kept under the item's id, with the
hashes of the passages that the item has, and of no others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from h2htalk.curation.reading.question import Danger
from h2htalk.curation.release.content import ReleaseContent, ReleaseItem, record_passages
from h2htalk.curation.release.minors import TOLD_IN_ANOTHER, minors_by_person
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, Record
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.files import read_jsonl, write_text
from h2htalk.data.languages import Language
from h2htalk.data.readers.certificates import Certificate, certificate_of, read_certificates
from h2htalk.data.readers.item_reads import read_item_reads
from h2htalk.data.readers.passages import SpokenPassage, text_hash
from h2htalk.data.readers.reads import READS, Read, ReadFinding, read_read, reads_as_lines
from h2htalk.data.readers.served_by import SEVERAL
from h2htalk.data.records import read_record
from h2htalk.data.releases.release_folder import Manifest
from h2htalk.data.scenario import Scenario
from h2htalk.detect.duplicates.compared_texts import plain, similarity
from h2htalk.errors import DataError, quoted
from h2htalk.rounds.outcome import RoundOutcome
from h2htalk.rounds.reads import reads_of_round

READ = "read"  # the key of a reading in an audit record and in the review of a candidate
SAFETY = "safety"
REVIEW = "review"  # the stage, and the key of its result in a candidate
CERTIFICATES = "certificates"  # the key in the facts of a release
EXPERT = "expert"
# What a finding says of the user that stands at a message which the item does not hold.
TOLD_ELSEWHERE = "told elsewhere in the dialogue"
NOT_IN_ITEM = (TOLD_ELSEWHERE, TOLD_IN_ANOTHER)
# A passage that nobody read and that is so similar to a message is that message, edited: unrelated texts reach 0.35.
_EDITED = 0.6


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of items by their ids.

    `certificates`: how guards and reviewers among the readers were checked; `experts`: the readers that are rounds of
    experts; `recorded`: whether the readings are known, which a release of an earlier version does not say.
    """

    by_item: Mapping[str, tuple[Read, ...]] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()
    experts: frozenset[str] = frozenset()
    recorded: bool = True

    def of(self, item: str) -> tuple[Read, ...]:
        """The readings of an item; none where nobody is on record."""
        return self.by_item.get(item, ())

    def restricted(self, items: Collection[str]) -> Readings:
        """The readings of some items, with the certificates of their readers alone."""
        by_item = {name: reads for name, reads in self.by_item.items() if name in items}
        used = [
            certificate_of(read, self.certificates) for reads in by_item.values() for read in reads
        ]
        certificates = tuple(one for one in self.certificates if one in used)
        readers = {read.reader for reads in by_item.values() for read in reads}
        return replace(
            self, by_item=by_item, certificates=certificates, experts=self.experts & readers
        )

    def write(self, folder: Path) -> None:
        """Write `reads.jsonl` of a release, also where nobody has read anything; no reader's words."""
        sources = self._sources()
        lines = reads_as_lines(
            published(read, sources) for reads in self.by_item.values() for read in reads
        )
        write_text(folder / READS, "".join(lines))

    def _sources(self) -> dict[str, str]:
        """What a release calls what served the models: numbers, as who guesses an address can test it on its digest."""
        found = {certificate.served_by for certificate in self.certificates}
        found.update(read.served_by for reads in self.by_item.values() for read in reads)
        known = sorted(found - {"", SEVERAL})
        return {"": "", SEVERAL: SEVERAL} | {
            source: f"source:{number}" for number, source in enumerate(known, 1)
        }

    def facts(self) -> dict[str, Any]:
        """What `release.json` holds of them beside `reads.jsonl`: the certificates, and who the experts are."""
        sources = self._sources()
        certificates = [replace(one, served_by=sources[one.served_by]) for one in self.certificates]
        return {
            CERTIFICATES: [certificate.to_dict() for certificate in certificates],
            "expert_readers": sorted(self.experts),
        }


NO_READINGS = Readings(recorded=False)


def published(read: Read, sources: Mapping[str, str]) -> Read:
    """A reading as a release holds it, without the words of the reader. `sources`: names of what served the models.

    A reader may repeat a name, a number or a place of the text, and no gate looks at what it wrote. The workspace keeps
    the words.
    """
    findings = [replace(finding, what=_code_of(finding)) for finding in read.findings]
    # Which items tell who somebody is, no release says: it would show where to look.
    return replace(
        read,
        findings=tuple(dict.fromkeys(findings)),
        served_by=sources[read.served_by],
        known_by=(),
    )


def _code_of(finding: ReadFinding) -> str:
    """Whose danger it is, and when (`own_now`), or that a user's age stands elsewhere; empty for everything else."""
    if finding.gate == "minors" and finding.what in NOT_IN_ITEM:
        return finding.what
    code = finding.what.partition(":")[0]
    return code if finding.gate == "crisis_care" and code in get_args(Danger) else ""


def collect_readings(
    workspace: Workspace, rounds: Sequence[RoundOutcome], items: Collection[ReleaseItem]
) -> Readings:
    """The readings of items: by the guard of their dialogues, the reviewer, and the people of rounds."""
    of_people = read_item_reads(
        workspace.path
    )  # of dialogues by those of samples, who are no experts
    of_dialogues = _guard_reads(workspace, {name for item in items for name in _dialogues_of(item)})
    of_candidates = _reviewer_reads(workspace, {item.id for item in items})
    of_items: dict[str, list[Read]] = defaultdict(list)
    experts: set[str] = set()
    others = {read.reader for line in of_people.values() for read in line.reads}
    kinds_of_names = _kinds_by_name(rounds)
    for outcome in rounds:
        for name, source in outcome.sources.items():
            of_items[name] += _review_read(source, f"{outcome.path / 'sources.jsonl'}: {name}")
        people = reads_of_round(outcome)
        if len(kinds_of_names[outcome.name]) > 1:
            people = tuple(
                replace(read, reader=f"people:{outcome.spec.kind}:{outcome.name}")
                for read in people
            )
        for read in people:
            of_items[read.item].append(read)
        readers = experts if outcome.spec.kind == EXPERT else others
        readers.update(read.reader for read in people)
    minors = minors_by_person(workspace, of_people)
    by_item: dict[str, tuple[Read, ...]] = {}
    for item in items:
        passages = record_passages(item.scenario)
        names = [name for name in _dialogues_of(item) if name in of_dialogues]
        of_user = str(
            item.scenario.provenance.get("dialogue")
        )  # those of references may have another user
        restricted: list[Read | None] = []
        for name in names:
            edited = with_edited(of_dialogues[name], passages, item.scenario.language)
            restricted.append(read_of_item(edited, item.id, passages, is_of_user=name == of_user))
        for name in _dialogues_of(item):
            reads_of_sample = of_people[name].reads if name in of_people else ()
            restricted += [
                read_of_item(known_read, item.id, passages) for known_read in reads_of_sample
            ]
        person = str(item.scenario.provenance.get("person", ""))
        restricted += [
            known.for_item(item.id) for known in minors.get(person, ()) if known.dialogue != of_user
        ]
        # A candidate is in the sources of every round that had it, and may have been reviewed again since.
        of_item = dict.fromkeys((*of_items[item.id], *of_candidates.get(item.id, ())))
        restricted += [read_of_item(known_read, item.id, passages) for known_read in of_item]
        if reads := tuple(filter(None, restricted)):
            by_item[item.id] = reads
    return Readings(
        by_item=by_item,
        certificates=read_certificates(workspace.path),
        experts=frozenset(experts - others),
    )


def with_release_reads(
    readings: Readings, workspace: Workspace, records: Iterable[Scenario | Case]
) -> Readings:
    """The readings of items, and of cases, with what a guard read of them as a release holds them."""
    stored = read_item_reads(workspace.path)
    by_item = dict(readings.by_item)
    for record in records:
        if record.id not in stored:
            continue
        passages = record_passages(record)
        restricted: list[Read | None] = []
        for known_read in stored[record.id].reads:
            known = DialogueRead(read=known_read, said=stored[record.id].said)
            restricted.append(
                read_of_item(with_edited(known, passages, record.language), record.id, passages)
            )
        reads = tuple(filter(None, restricted))
        if reads:
            by_item[record.id] = (*readings.of(record.id), *reads)
    return replace(readings, by_item=by_item)


def _kinds_by_name(rounds: Sequence[RoundOutcome]) -> dict[str, set[str]]:
    """The kinds of the rounds of each name, which is that of a folder: rounds of two kinds may share it."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for outcome in rounds:
        kinds[outcome.name].add(outcome.spec.kind)
    return kinds


def read_of_item(
    read: Read, item: str, passages: Collection[SpokenPassage], *, is_of_user: bool = False
) -> Read | None:
    """A reading as one of an item with these passages; None where it has nothing to do with them.

    What a reader found without naming a passage stays: nobody knows that it was said of another one. `is_of_user`: it
    is of the dialogue that the item's user had. Who is under 18 in one message of it is under 18 in all.
    """
    hashes = {passage.hash for passage in passages}
    texts = {text_hash(passage.text) for passage in passages}
    covered = tuple(name for name in read.passages if name in hashes)
    findings = tuple(one for one in read.findings if not one.text or one.text in texts)
    elsewhere = [
        one for one in read.findings if one.gate == "minors" and one.text and one.text not in texts
    ]
    of_minor = [replace(one, what=TOLD_ELSEWHERE, text="") for one in elsewhere if is_of_user]
    known_by = tuple(text for text in read.known_by if not text or text in texts)
    about_passages = any(finding.text for finding in findings)
    if not covered and not about_passages and not of_minor and read.item != item:
        return None
    findings = tuple(dict.fromkeys((*findings, *of_minor)))
    return replace(read, item=item, passages=covered, findings=findings, known_by=known_by)


@dataclass(frozen=True, slots=True)
class DialogueRead:
    """A guard's reading of a dialogue, or of an item; `said`: the messages at which it found something, by the hashes
    of their texts.
    """

    read: Read
    said: Mapping[str, str]


def with_edited(
    known: DialogueRead, passages: Collection[SpokenPassage], language: Language
) -> Read:
    """A reading of a dialogue, with what it found at messages that an item holds in an edited form.

    Such a finding is unsure: the edit may have mended what was found. A passage that was read as it stands is not one
    that was edited.
    """
    texts = {text_hash(passage.text) for passage in passages}
    unread = [passage.text for passage in passages if passage.hash not in known.read.passages]
    findings: dict[ReadFinding, None] = dict.fromkeys(known.read.findings)
    for finding in known.read.findings:
        if finding.text in texts or finding.text not in known.said:
            continue
        compared = plain(known.said[finding.text], language)
        for text in unread:
            if similarity(plain(text, language), compared, _EDITED) >= _EDITED:
                findings[replace(finding, text=text_hash(text), unsure=True)] = None
    return replace(known.read, findings=tuple(findings))


def _dialogues_of(item: ReleaseItem) -> Iterator[str]:
    """The dialogue of an item, then those of its references."""
    names = [
        item.scenario.provenance.get("dialogue"),
        *(note.get("dialogue") for note in item.notes()),
    ]
    yield from dict.fromkeys(str(name) for name in names if name)


def _guard_reads(workspace: Workspace, dialogues: Collection[str]) -> dict[str, DialogueRead]:
    """The guard's readings of dialogues, by their ids."""
    stage = workspace.stage(SAFETY)
    found: dict[str, DialogueRead] = {}
    for part in stage.parts():
        reads: dict[str, Read] = {}
        for record in stage.part_records(part, AUDIT):
            if record["id"] in dialogues and READ in record:
                where = f"{stage.file(AUDIT, part)}: {record['id']}"
                reads[str(record["id"])] = read_read(record[READ], where)
        found |= {name: DialogueRead(read=read, said={}) for name, read in reads.items()}
        if any(read.findings for read in reads.values()):
            for record in stage.part_records(part):
                if read := reads.get(str(record["id"])):
                    found[read.item] = DialogueRead(read=read, said=_said_at(read, record))
    return found


def _said_at(read: Read, dialogue: Record) -> dict[str, str]:
    """The messages of a dialogue at which a reader found something, by the hashes of their texts."""
    wanted = {finding.text for finding in read.findings}
    said = {
        text_hash(message["content"]): str(message["content"]) for message in dialogue["messages"]
    }
    return {name: text for name, text in said.items() if name in wanted}


def _reviewer_reads(workspace: Workspace, candidates: Collection[str]) -> dict[str, list[Read]]:
    """The reviewer's readings in the workspace's finished stage `review`, by the ids of the candidates.

    It may have run after the rounds were opened, whose records do not hold what it read.
    """
    stage = workspace.stage(REVIEW)
    found: dict[str, list[Read]] = defaultdict(list)
    if not stage.finished:
        return found
    for part in stage.parts():
        for record in stage.part_records(part):
            if record["id"] in candidates:
                found[str(record["id"])] += _review_read(
                    record, f"{stage.file(KEPT, part)}: {record['id']}"
                )
        for record in stage.part_records(part, REJECTED):
            if record["id"] in candidates:
                where = f"{stage.file(REJECTED, part)}: {record['id']}"
                found[str(record["id"])] += _review_read({REVIEW: record["evidence"]}, where)
    return found


def _review_read(source: Mapping[str, Any], where: str) -> list[Read]:
    """The reviewer's reading of a candidate, where it is on record."""
    review = source.get(REVIEW)
    if not isinstance(review, Mapping) or READ not in review:
        return []
    return [read_read(review[READ], where)]


def read_readings(folder: Path, manifest: Manifest, content: ReleaseContent) -> Readings:
    """The readings that a release holds. Raises DataError, also for one of an item that it does not hold.

    A file that the manifest does not list is none of the release's: nobody knows who put it there.
    """
    facts = manifest.facts
    path = folder / READS
    if READS not in manifest.files or not path.is_file():
        return NO_READINGS
    items = {record.id for record in content.records()}
    by_item: dict[str, list[Read]] = defaultdict(list)
    for where, line in read_jsonl(path):
        read = read_read(line, where)
        if read.item not in items:
            raise DataError(
                f"{where}: the release has no item {quoted(read.item)}; get the release again"
            )
        by_item[read.item].append(read)
    place = f"{folder}: release.json: facts"
    certificates = read_record(
        list[Certificate], facts.get(CERTIFICATES, []), f"{place}.{CERTIFICATES}"
    )
    experts = read_record(list[str], facts.get("expert_readers", []), f"{place}.expert_readers")
    return Readings(
        by_item={name: tuple(reads) for name, reads in by_item.items()},
        certificates=tuple(certificates),
        experts=frozenset(experts),
    )
