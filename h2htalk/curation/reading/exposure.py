"""The question about what gives somebody away who is not named: its prompt, its reply, and what the replies say.

    dialogue ─► passages ─► overlapping windows ─► a request each ─► replies ─► quotes that stand there ─► details

A model quotes the user's words that tell an age, work, a place and so on to somebody who knows the user. A quote counts
where it stands in a message of the user, and a detail counts unless it would fit many people. Quotes of one kind that
share words of a message, or are the same words, are one detail: over windows, and over the answers of several models.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Reply, Request
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import sampling_of
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.question import (
    Passage,
    QuestionTemplates,
    split_passages,
    split_windows,
    window_fingerprint,
    window_prompt,
)
from h2htalk.data.readers.exposures import DETAIL_KINDS, DetailKind, ExposedDetail, Fits
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Dialogue
from h2htalk.text.headings import without_headings

TEMPLATES: QuestionTemplates = ("exposure_rules.j2", "exposure_dialogue.j2")
MOST_DETAILS = 60  # of a reply
_TOKENS = 3000  # of a reply
_LEAST_SIGNS = 2  # letters or digits of a quote: one alone stands nearly everywhere
# How replies are counted. A change makes another question, so that stored replies are read again, without a call.
_COUNTING = "union of windows"


class DetailReply(BaseModel):
    """A detail as a model gives it. The words come before the judgement that rests on them."""

    message: int = Field(ge=1)
    quote: str = Field(max_length=600)
    tells: str = Field(max_length=400)
    kind: DetailKind
    fits: Fits


class ExposureReply(BaseModel):
    """The details of a window."""

    details: list[DetailReply] = Field(max_length=MOST_DETAILS)


EXPOSURE = ResponseSchema("exposure", ExposureReply)


@dataclass(frozen=True, slots=True)
class ExposureReading:
    """What the replies about a dialogue say.

    `details`: different details that do not fit many people; `misquoted`: different details that do not, either, whose
    quotes stand in no message of the user; `unread`: the messages, or parts of them, that no valid reply covers,
    counted from 0, and `reasons` why.
    """

    details: tuple[ExposedDetail, ...]
    misquoted: int = 0
    unread: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()


def exposure_fingerprint(prompts: Prompts) -> str:
    """16 hexadecimal digits of the question."""
    return window_fingerprint(prompts, TEMPLATES, EXPOSURE, _COUNTING)


@dataclass(frozen=True, slots=True)
class ExposureQuestion:
    """Makes the requests about dialogues: the model, its prompts and the secret of its fences."""

    model: str
    prompts: Prompts
    secret: bytes

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of the question."""
        return exposure_fingerprint(self.prompts)

    def requests(self, dialogue: Dialogue) -> list[Request]:
        """A request for each window in which the user speaks, with the ids `DIALOGUE/window-1` and so on."""
        requests: list[Request] = []
        for number, window in enumerate(split_windows(split_passages(dialogue)), 1):
            if any(passage.role == "user" for passage in window):
                requests.append(self._request(dialogue, window, number))
        return requests

    def _request(self, dialogue: Dialogue, window: Sequence[Passage], number: int) -> Request:
        prompt = window_prompt(self.prompts, TEMPLATES, self.secret, dialogue.language, window)
        return Request(
            id=f"{dialogue.id}/window-{number}",
            messages=prompt.messages,
            sampling=sampling_of(self.model, 0.0, _TOKENS, 0, prompt.digest),
            sample=0,
            response_schema=EXPOSURE,
        )

    def read(self, dialogue: Dialogue, replies: Mapping[str, Reply]) -> ExposureReading:
        """Read the replies about a dialogue, by the ids of their requests; a window without a reply is unread."""
        passages = split_passages(dialogue)
        covered: set[tuple[int, int]] = set()
        of_windows: list[list[PlacedDetail]] = []
        reasons: list[str] = []
        misquoted: set[Misquoted] = set()
        for number, window in enumerate(split_windows(passages), 1):
            if all(passage.role != "user" for passage in window):
                continue
            reply = replies.get(f"{dialogue.id}/window-{number}")
            answer = EXPOSURE.read(reply) if reply is not None else Failure("missing", "no reply")
            if isinstance(answer, Failure):
                reasons.append(answer.reason)
                continue
            covered.update((passage.turn, passage.part) for passage in window)
            quoted, wrong = quoted_details(cast(ExposureReply, answer).details, window)
            of_windows.append(quoted)
            misquoted.update(wrong)
        of_user = [passage for passage in passages if passage.role == "user"]
        unread = {
            passage.turn for passage in of_user if (passage.turn, passage.part) not in covered
        }
        return ExposureReading(
            details=_details_of_windows(of_windows),
            misquoted=len(misquoted),
            unread=tuple(sorted(unread)),
            reasons=tuple(dict.fromkeys(reasons)),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quote stands: a message, and the characters of its folded text."""

    message: tuple[int, int]  # the turn and the part of it
    start: int
    end: int

    def overlaps(self, other: Place) -> bool:
        """Whether the two share words."""
        return self.message == other.message and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class PlacedDetail:
    """A detail with the places of its quote."""

    detail: ExposedDetail
    places: tuple[Place, ...]

    def is_same_as(self, other: PlacedDetail) -> bool:
        """Whether the other quotes the same words, or shares words of a message with this one."""
        if folded_quote(self.detail.quote) == folded_quote(other.detail.quote):
            return True
        return any(place.overlaps(another) for place in self.places for another in other.places)


# What a model named in words that stand in no message: the kind, the words, and what they would tell.
Misquoted = tuple[DetailKind, str, str]


def quoted_details(
    entries: Sequence[DetailReply], window: Sequence[Passage]
) -> tuple[list[PlacedDetail], list[Misquoted]]:
    """The different details whose quotes stand in the user's messages of a window, and those whose quotes do not.

    A detail that fits many people is left out. A quote that stands in another message of the user than the one that
    the entry numbers is one of that message. Of two quotes of one kind that are the same detail, the longer one stays.
    """
    texts: dict[int, str] = {}
    for number, passage in enumerate(window, 1):
        if passage.role == "user":
            texts[number] = folded_quote(
                without_headings(passage.text)
            )  # as the model was shown it
    details: list[PlacedDetail] = []
    misquoted: list[Misquoted] = []
    for entry in entries:
        if entry.fits == "many":
            continue
        quote = folded_quote(entry.quote)
        tells = entry.tells.strip()
        holding = [number for number, text in texts.items() if quote in text]
        if sum(map(str.isalnum, quote)) < _LEAST_SIGNS or not holding:
            misquoted.append((entry.kind, quote, tells))
            continue
        number = entry.message if entry.message in holding else holding[0]
        passage = window[number - 1]
        start = texts[number].index(quote)
        place = Place(message=(passage.turn, passage.part), start=start, end=start + len(quote))
        quote_of_user = " ".join(entry.quote.split())
        detail = ExposedDetail(kind=entry.kind, quote=quote_of_user, tells=tells, fits=entry.fits)
        _add_detail(details, PlacedDetail(detail=detail, places=(place,)))
    return details, misquoted


def _add_detail(details: list[PlacedDetail], placed: PlacedDetail) -> None:
    """Add a detail, unless one of its kind is the same; it replaces a shorter one that is."""
    for position, other in enumerate(details):
        if other.detail.kind == placed.detail.kind and other.is_same_as(placed):
            if len(folded_quote(placed.detail.quote)) > len(folded_quote(other.detail.quote)):
                details[position] = placed
            return
    details.append(placed)


def merged_details(groups: Iterable[Sequence[PlacedDetail]]) -> list[PlacedDetail]:
    """The details of several groups, each once: those of the largest group, and what each other group adds to it."""
    merged: list[PlacedDetail] = []
    for group in sorted(groups, key=len, reverse=True):
        known = tuple(merged)
        for placed in group:
            if not any(placed.is_same_as(other) for other in known):
                merged.append(placed)
    return merged


def place_details(details: Iterable[ExposedDetail], texts: Sequence[str]) -> list[PlacedDetail]:
    """Those of the details whose quotes stand in texts, with their places there."""
    folded = [folded_quote(without_headings(text)) for text in texts]
    placed: list[PlacedDetail] = []
    for detail in details:
        places = tuple(_places(folded_quote(detail.quote), folded))
        if places:
            placed.append(PlacedDetail(detail=detail, places=places))
    return placed


def _places(quote: str, folded: Sequence[str]) -> Iterator[Place]:
    """Where a quote stands first in each text that holds it."""
    for turn, text in enumerate(folded):
        start = text.find(quote)
        if start >= 0:
            yield Place(message=(turn, 0), start=start, end=start + len(quote))


_QUOTE_MARKS = str.maketrans(dict.fromkeys('"“”„‟«»「」『』＂‘’‚‛`´＇', "'"))
_ENDS = "'.,;:!?。，；：！？…、-–—"


def folded_quote(text: str) -> str:
    """The form in which a quote is looked for: NFKC, without case, white space and differences of quotation marks.

    What stands at its ends is no part of it: models add a full stop, or three.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_QUOTE_MARKS)).casefold()
    return re.sub(r"\s+", "", folded).strip(_ENDS)


def _details_of_windows(of_windows: Sequence[Sequence[PlacedDetail]]) -> tuple[ExposedDetail, ...]:
    """The details of a dialogue, by kind: what any window quotes, each once.

    Windows overlap, so the same words are quoted twice. A fact that is told again in other words is quoted there as
    well, and counts twice: nothing tells it from another fact of its kind.
    """
    details: list[ExposedDetail] = []
    for kind in DETAIL_KINDS:
        of_kind = [_of_kind(window, kind) for window in of_windows]
        details.extend(placed.detail for placed in merged_details(of_kind))
    return tuple(details)


def _of_kind(details: Iterable[PlacedDetail], kind: DetailKind) -> list[PlacedDetail]:
    return [placed for placed in details if placed.detail.kind == kind]
