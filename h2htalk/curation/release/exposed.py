"""How many dialogues of a release give their users away: the dialogues, what models quoted from them, and the shares.

    items of a release ─► dialogues ─► exposures of the workspace ─► read, unread, exposed ─► gate, facts, card

Items of one dialogue say who their user is together, so a dialogue counts once, with what all its items hold. It is
read where a model's answer covers every message of the user in it, else unread, and unread counts as neither exposed
nor unexposed. An answer whose misquoted details decide whether a dialogue is exposed leaves it unread.

Whoever answered the bundled question counts for the gate, and all of them together: no answer hides what another one
quoted. Answers to other questions are listed, and count for nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from h2htalk.curation.candidates import scenario_passages
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.exposure import (
    PlacedDetail,
    exposure_fingerprint,
    merged_details,
    place_details,
)
from h2htalk.curation.release.content import record_passages
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.readers.exposures import LEAST_DETAILS, ExposedDetail, Exposure, details_text
from h2htalk.data.readers.item_reads import part_id, read_item_reads
from h2htalk.data.readers.passages import SpokenPassage, conversation_passages, text_hash
from h2htalk.data.records import Id, adapter, read_record, strict_record
from h2htalk.data.scenario import Dialogue, Scenario, Turn
from h2htalk.distributions import wilson_interval
from h2htalk.errors import counted
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.text.escaping import printable

PART = 0  # of the dialogue's id that its requests begin with; those of a guard's are counted from 1
EXPOSURE = "exposure"  # the key in the facts of a release

UnreadReason = Literal["unasked", "other_question", "misquoted"]
# Why an item is unread, as a build prints it.
UNREAD_REASONS: Mapping[UnreadReason, str] = {
    "unasked": "no valid answer of a model is on record about what gives their users away",
    "other_question": "models were asked with prompts of the owner or of another version alone, which do not count",
    "misquoted": "misquoted: models named what gives their users away in words that stand in no message of them",
}

# A model, its question and what served it: whose answers count together.
Reader = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ReleasedDialogue:
    """A dialogue with its items in a release, or an item that was made of none.

    `id`: the dialogue's, or the item's; `shown`: every message of the items once, as a model is shown it.
    """

    id: str
    language: Language
    records: tuple[Scenario | Case, ...]
    shown: Dialogue

    @property
    def user_texts(self) -> tuple[str, ...]:
        """What the user says."""
        return tuple(turn.content for turn in self.shown.messages if turn.role == "user")

    @property
    def hashes(self) -> frozenset[str]:
        """The hashes of the user's messages."""
        return frozenset(map(text_hash, self.user_texts))


def released_dialogues(records: Iterable[Scenario | Case]) -> list[ReleasedDialogue]:
    """The dialogues of items, in the order of their first items."""
    of_dialogue: dict[str, list[Scenario | Case]] = defaultdict(list)
    for record in records:
        of_dialogue[str(record.provenance.get("dialogue") or record.id)].append(record)
    dialogues: list[ReleasedDialogue] = []
    for name, of_one in of_dialogue.items():
        turns = _turns_of(of_one)
        if all(turn.role != "user" for turn in turns):
            continue  # nothing of it says who somebody is
        language = of_one[0].language
        shown = Dialogue(part_id(name, PART), language, turns)
        dialogues.append(
            ReleasedDialogue(id=name, language=language, records=tuple(of_one), shown=shown)
        )
    return dialogues


def _turns_of(records: Sequence[Scenario | Case]) -> tuple[Turn, ...]:
    """The messages of the items of a dialogue, each once: those of the item with most of them first."""
    spoken = sorted((_passages(record) for record in records), key=len, reverse=True)
    turns: dict[tuple[str, str], Turn] = {}
    for passages in spoken:
        for passage in passages:
            turns.setdefault(
                (passage.role, text_hash(passage.text)), Turn(passage.role, passage.text)
            )
    return tuple(turns.values())


def _passages(record: Scenario | Case) -> list[SpokenPassage]:
    """What an item holds without the references of a scenario: inputs beside the conversation first."""
    if isinstance(record, Case):
        return record_passages(record)
    passages = scenario_passages(record, ())
    conversation = len(conversation_passages(record.turns))
    return [*passages[conversation:], *passages[:conversation]]


# --- What models quoted -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exposures:
    """What models quoted from dialogues, by the ids of the dialogues."""

    by_dialogue: Mapping[str, tuple[Exposure, ...]] = field(default_factory=dict)

    def readers(self, dialogues: Iterable[ReleasedDialogue]) -> list[Reader]:
        """Who has read something of these dialogues, in the order in which they stand there."""
        readers: dict[Reader, None] = {}
        for dialogue in dialogues:
            readers.update(
                (reader_of(exposure), None) for exposure in self.by_dialogue.get(dialogue.id, ())
            )
        return list(readers)

    def counted_readers(self, dialogues: Iterable[ReleasedDialogue]) -> list[Reader]:
        """Those of them who answered the bundled question."""
        return [reader for reader in self.readers(dialogues) if is_bundled(reader)]

    def of_readers(self, dialogue: ReleasedDialogue, readers: Collection[Reader]) -> list[Exposure]:
        """The answers of readers about a dialogue, also those that cover a part of it alone."""
        return [
            exposure
            for exposure in self.by_dialogue.get(dialogue.id, ())
            if reader_of(exposure) in readers
        ]

    def of(self, dialogue: ReleasedDialogue, reader: Reader) -> Exposure | None:
        """The last answer of a reader that covers every message of the user in a dialogue; None where it is unread."""
        whole = None
        for exposure in self.by_dialogue.get(dialogue.id, ()):
            if reader_of(exposure) == reader and dialogue.hashes.issubset(exposure.passages):
                whole = exposure
        return whole


def reader_of(exposure: Exposure) -> Reader:
    """Who gave an answer."""
    return exposure.reader, exposure.prompt, exposure.served_by


def read_exposures(workspace: Path) -> Exposures:
    """What the workspace of a release keeps. Raises DataError."""
    lines = read_item_reads(workspace)
    return Exposures({name: line.exposures for name, line in lines.items() if line.exposures})


def is_bundled(reader: Reader) -> bool:
    """Whether a reader answered the question that this version asks, and not one of the owner's or of another."""
    return reader[1] == _bundled_question()


@cache
def _bundled_question() -> str:
    return exposure_fingerprint(Prompts.load())


def _details_held(dialogue: ReleasedDialogue, exposure: Exposure) -> list[PlacedDetail]:
    """The details of an answer that the dialogue still holds: a message may be edited, or in no item any more."""
    return place_details(exposure.details, dialogue.user_texts)


def details_in(
    dialogue: ReleasedDialogue, exposures: Iterable[Exposure]
) -> tuple[ExposedDetail, ...]:
    """The details of all answers that the dialogue still holds, each once."""
    merged = merged_details([_details_held(dialogue, exposure) for exposure in exposures])
    return tuple(placed.detail for placed in merged)


def _may_hold_more(dialogue: ReleasedDialogue, exposure: Exposure) -> bool:
    """Whether a dialogue would be exposed, did the misquoted details of an answer stand in it."""
    return len(_details_held(dialogue, exposure)) + exposure.misquoted >= LEAST_DETAILS


# --- The shares ---------------------------------------------------------------------------------------------------


@strict_record
class LanguageExposure:
    """How many dialogues of a language a release holds, how many were read, and how many of these are exposed."""

    dialogues: int
    read: int
    exposed: int

    @property
    def share(self) -> float:
        """The share of those that were read; 0 where none was."""
        return self.exposed / self.read if self.read else 0.0


@strict_record
class ReadingFacts:
    """What one model quoted, as `release.json` holds it.

    Attributes:
        reader: `risk:MODEL`.
        first: the day of its first answer (ISO 8601).
        last: the day of its last answer.
        bundled: whether it was asked the bundled question; with another one it does not count.
        misquoted: details that it named in words that stand in no message of the user.
        languages: the counts.
    """

    reader: str
    first: str
    last: str
    bundled: bool
    misquoted: int = 0
    languages: Mapping[Language, LanguageExposure] = field(default_factory=dict)


@strict_record
class ExposureFacts:
    """What is known of the dialogues that give their users away, as `release.json` holds it: no text of an item.

    Attributes:
        limit: `risk` of the specification; None without the gate.
        languages: the counts of all models together that were asked the bundled question.
        readings: every model that was asked, with every question.
        unread: the items whose dialogue is unread and why, where there is a limit.
    """

    limit: float | None = None
    languages: Mapping[Language, LanguageExposure] = field(default_factory=dict)
    readings: tuple[ReadingFacts, ...] = ()
    unread: Mapping[Id, UnreadReason] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The record without empty fields; `read_exposure_facts` reads it back."""
        return adapter(ExposureFacts).dump_python(self, mode="json", exclude_defaults=True)  # type: ignore[no-any-return]


def read_exposure_facts(facts: Mapping[str, Any], where: str) -> ExposureFacts:
    """What the facts of a release hold; nothing of one of an earlier version. Raises DataError."""
    return read_record(ExposureFacts, facts.get(EXPOSURE, {}), f"{where}: facts.{EXPOSURE}")


@dataclass(frozen=True, slots=True)
class ExposedDialogue:
    """A dialogue of a release that was read, with the details that it holds."""

    dialogue: ReleasedDialogue
    details: tuple[ExposedDetail, ...]

    @property
    def is_exposed(self) -> bool:
        """Whether it holds so many details that somebody may be recognised."""
        return len(self.details) >= LEAST_DETAILS


@dataclass(frozen=True, slots=True)
class Measure:
    """What readers together quoted from the dialogues of a release: those that they read, and those that they did not.

    `unclear`: the unread dialogues of which misquoted details decide whether they are exposed.
    """

    read: tuple[ExposedDialogue, ...]
    unread: tuple[ReleasedDialogue, ...]
    unclear: tuple[ReleasedDialogue, ...] = ()
    dates: tuple[str, ...] = ()
    misquoted: int = 0

    @property
    def exposed(self) -> tuple[ExposedDialogue, ...]:
        """The exposed dialogues, those with most details first."""
        chosen = [one for one in self.read if one.is_exposed]
        return tuple(sorted(chosen, key=lambda one: (-len(one.details), one.dialogue.id)))

    def languages(self) -> dict[Language, LanguageExposure]:
        """The counts by language."""
        counts: dict[Language, LanguageExposure] = {}
        for language in LANGUAGES:
            read = [one for one in self.read if one.dialogue.language == language]
            unread = sum(one.language == language for one in self.unread)
            if read or unread:
                counts[language] = LanguageExposure(
                    dialogues=len(read) + unread,
                    read=len(read),
                    exposed=sum(one.is_exposed for one in read),
                )
        return counts


def measure(
    dialogues: Sequence[ReleasedDialogue], exposures: Exposures, readers: Collection[Reader]
) -> Measure:
    """What readers together quoted from dialogues; without readers all of them are unread."""
    read: list[ExposedDialogue] = []
    unread: list[ReleasedDialogue] = []
    unclear: list[ReleasedDialogue] = []
    dates: list[str] = []
    misquoted = 0
    for dialogue in dialogues:
        answers = exposures.of_readers(dialogue, readers)
        dates.extend(answer.date for answer in answers)
        misquoted += sum(answer.misquoted for answer in answers)
        whole = [answer for answer in answers if dialogue.hashes.issubset(answer.passages)]
        measured = ExposedDialogue(dialogue=dialogue, details=details_in(dialogue, answers))
        if not whole:
            unread.append(dialogue)
        # A model that found nothing refutes none of what another one named in words of its own.
        elif measured.is_exposed or not any(_may_hold_more(dialogue, answer) for answer in answers):
            read.append(measured)
        else:
            unread.append(dialogue)
            unclear.append(dialogue)
    return Measure(
        read=tuple(read),
        unread=tuple(unread),
        unclear=tuple(unclear),
        dates=tuple(sorted(dates)),
        misquoted=misquoted,
    )


def exposed_items(
    records: Iterable[Scenario | Case], exposures: Exposures
) -> Iterator[tuple[str, str]]:
    """The items of exposed dialogues with what was quoted, also of those that are read in part alone.

    Nobody has read the items that would take the place of others, so more items may be accepted than were read.
    """
    dialogues = released_dialogues(records)
    readers = exposures.counted_readers(dialogues)
    for dialogue in dialogues:
        details = details_in(dialogue, exposures.of_readers(dialogue, readers))
        if len(details) >= LEAST_DETAILS:
            for record in dialogue.records:
                yield record.id, details_text(details)


def exposure_facts(
    records: Iterable[Scenario | Case], exposures: Exposures, limit: float | None
) -> ExposureFacts:
    """What the facts of a release hold: what counts, every reading, and what is unread."""
    dialogues = released_dialogues(records)
    counted_together = measure(dialogues, exposures, exposures.counted_readers(dialogues))
    readings: list[ReadingFacts] = []
    for reader in exposures.readers(dialogues):
        measured = measure(dialogues, exposures, [reader])
        reading = ReadingFacts(
            reader=reader[0],
            first=measured.dates[0],
            last=measured.dates[-1],
            bundled=is_bundled(reader),
            misquoted=measured.misquoted,
            languages=measured.languages(),
        )
        readings.append(reading)
    unread: dict[str, UnreadReason] = {}
    if limit is not None:
        for dialogue in counted_together.unread:
            reason = _why_unread(dialogue, counted_together, exposures)
            unread.update((record.id, reason) for record in dialogue.records)
    return ExposureFacts(
        limit=limit,
        languages=counted_together.languages(),
        readings=tuple(readings),
        unread=dict(sorted(unread.items())),
    )


def _why_unread(
    dialogue: ReleasedDialogue, measured: Measure, exposures: Exposures
) -> UnreadReason:
    """Why a dialogue is unread for a release."""
    if dialogue in measured.unclear:
        return "misquoted"
    answers = exposures.by_dialogue.get(dialogue.id, ())
    if answers and not any(is_bundled(reader_of(answer)) for answer in answers):
        return "other_question"
    return "unasked"


def share_text(count: LanguageExposure) -> str:
    """`6 of 80 dialogues that were read (0.075; 95 % interval 0.035 to 0.154)`."""
    low, high = wilson_interval(count.share, count.read)
    of_read = f"{count.exposed:,} of {counted(count.read, 'dialogue that was read', 'dialogues that were read')}"
    return f"{of_read} ({count.share:.3f}; 95 % interval {low:.3f} to {high:.3f})"


def shares_text(languages: Mapping[Language, LanguageExposure]) -> str:
    """`English: 6 of 80 dialogues that were read (...), 3 dialogues are unread; in Chinese: ...`."""
    by_language: list[str] = []
    for language, count in languages.items():
        unread = count.dialogues - count.read
        text = share_text(count) if count.read else "no dialogue was read"
        if unread:
            text += f", {counted(unread, 'dialogue is', 'dialogues are')} unread"
        by_language.append(f"{find_language(language).name}: {text}")
    return "; in ".join(by_language)


def misquoted_text(number: int) -> str:
    """`24 quotes stand in no message of the user`."""
    return f"{counted(number, 'quote stands', 'quotes stand')} in no message of the user"


def exposure_lines(facts: ExposureFacts) -> Iterator[str]:
    """What a card says: what each model quoted, what counts of it, or that nobody has measured it."""
    counted_readings = [reading for reading in facts.readings if reading.bundled]
    if not counted_readings:
        how = " with the bundled question" if facts.readings else ""
        yield (
            f"Nobody has measured{how} how many dialogues hold so many such details that people who know a user could "
            "recognise them (`h2htalk release risk`)."
        )
    for reading in facts.readings:
        yield _reading_line(reading)
    if len(counted_readings) > 1:
        yield (
            f"What these {len(counted_readings)} readings quoted together is {LEAST_DETAILS} or more such details "
            f"from, in {shares_text(facts.languages)}."
        )
    if facts.readings:
        yield "A model overlooks some such details, and quotes some that give nobody away."


def _reading_line(reading: ReadingFacts) -> str:
    """What a card says of one model."""
    days = reading.first if reading.first == reading.last else f"{reading.first} to {reading.last}"
    name = f"A model ({reading.reader.partition(':')[2]}, {days})"
    if reading.bundled:
        line = f"{name} was asked to quote such details from each dialogue."
    else:
        line = (
            f"{name} was asked about such details with a question of the owner's, or of another version, and not with "
            "the bundled one, so this reading does not count."
        )
    line += f" It quoted {LEAST_DETAILS} or more from, in {shares_text(reading.languages)}."
    if reading.misquoted:
        line += (
            f" {misquoted_text(reading.misquoted)}; a dialogue that they would bring to {LEAST_DETAILS} details "
            "counts as unread."
        )
    return line


# --- What people said ---------------------------------------------------------------------------------------------


def note_of_round(folder: RoundFolder, exclude: Collection[str]) -> str:
    """What is left to do after a round about exposed dialogues, whose items other rounds have accepted; may be empty.

    Its people were asked about what the quotes tell, so what they kept decides nothing else. `exclude`: of the
    specification.
    """
    if folder.state != "closed":
        return f"{folder.path}: this round about exposed dialogues (`release risk`) is not closed"
    decisions = read_outcome(folder.path).decisions
    dropped = {item for (item, _), decision in decisions.items() if decision.label == "drop"}
    excluded = ErasedIds(frozenset(exclude))
    left = sorted(item for item in dropped if not excluded.covers({"id": item}))
    if not left:
        return ""
    ids = printable(json.dumps(left, ensure_ascii=False))
    return f"{folder.path}: people dropped {counted(len(left), 'exposed item')}; to leave them out: exclude = {ids}"
