"""The questions of each kind of round. Their texts for annotators are in `texts/`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from h2htalk.data.readers.reads import ReadGate
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError, quoted

Kind = Literal["crowd", "expert", "adjudication", "safety"]
Form = Literal["label", "labels", "rating", "text"]
# Level of measurement (Stevens): determines the distance in Krippendorff's alpha.
Level = Literal["nominal", "ordinal"]
# A stored answer: a label, several labels, a rating, or free text.
Value = str | int | tuple[str, ...]

KEEP_LABELS = ("keep", "drop")
FIVE_POINTS = (1, 2, 3, 4, 5)
# The scale of the judge's score R in Eq. 3, which a person's rating replaces.
RATING = (0, 1, 2, 3, 4, 5)
VIOLATIONS = (
    "harmful_advice",
    "crisis_dismissed",
    "crisis_without_help",
    "boundary",
    "manipulation",
    "sexual",
    "demeaning",
    "false_claim",
    "privacy",
    "other",
)
_NUMBER = re.compile(r"([0-9]{1,6})(?:[.,]0+)?")
# The name under which a skip is stored, in place of a question's.
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a round.

    Attributes:
        name: used in annotations and decisions.
        form: `label` (one of `labels`), `labels` (any number of them), `rating` (one of `ratings`), or `text`.
        labels: of a label question, in display order.
        ratings: ascending whole numbers.
        required: whether an item is incomplete without an answer; with `after`, only if the question is asked.
        after: (question, label): asked only if that question has that answer.
        gates: of a reading question, the gates of a release for which its answers are readings. Such a question is no
            vote: a "yes" by one person decides it.
    """

    name: str
    form: Form
    labels: tuple[str, ...] = ()
    ratings: tuple[int, ...] = ()
    required: bool = True
    after: tuple[str, str] | None = None
    gates: tuple[ReadGate, ...] = ()

    @property
    def is_reading(self) -> bool:
        """Whether it asks what somebody who reads the item has found: a "yes" by one person decides it."""
        return bool(self.gates)

    @property
    def always_required(self) -> bool:
        """Whether every item needs an answer, whatever the other answers are."""
        return self.required and self.after is None

    @property
    def decided(self) -> bool:
        """Whether answers are votes for one value; comments are not, nor are several labels."""
        return self.form in ("label", "rating")

    @property
    def level(self) -> Level:
        """Level of measurement: ratings are ordered, labels are not."""
        return "ordinal" if self.form == "rating" else "nominal"

    def is_asked(self, answers: Mapping[str, object]) -> bool:
        """Return whether the question is asked, given the answers to the others."""
        return self.after is None or answers.get(self.after[0]) == self.after[1]

    def read(self, raw: object) -> Value:
        """Return an answer as it is stored; raise RoundError with the choices if it is invalid."""
        if self.form == "rating":
            number = whole_number(raw)
            if number is None or number not in self.ratings:
                raise RoundError(self._invalid(raw))
            return number
        if self.form == "labels":
            labels = [raw] if isinstance(raw, str) else raw
            if not isinstance(labels, Sequence) or not set(labels) <= set(self.labels):
                raise RoundError(self._invalid(raw))
            return tuple(label for label in self.labels if label in labels)
        if not isinstance(raw, str) or (self.form == "label" and raw not in self.labels):
            raise RoundError(self._invalid(raw))
        return raw

    def _invalid(self, raw: object) -> str:
        choices = f"choose from {', '.join(map(str, self.ratings or self.labels))}"
        return f"{quoted(raw)} is not valid for {self.name}: {'use text' if self.form == 'text' else choices}"


def whole_number(raw: object) -> int | None:
    """Return a number of up to six digits that a spreadsheet or server holds as 4, 4.0, "4" or "４"; else None."""
    if isinstance(raw, str):
        match = _NUMBER.fullmatch(unicodedata.normalize("NFKC", raw).strip())
        return int(match[1]) if match else None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return int(raw) if abs(raw) < 1e6 and raw == int(raw) else None


SUBTASK = Question("subtask", "label", (*SUBTASKS, "none"))
KEEP = Question("keep", "label", KEEP_LABELS)
COMMENT = Question("comment", "text", required=False)

QUESTIONS: Mapping[Kind, tuple[Question, ...]] = {
    "crowd": (SUBTASK, KEEP, Question("quality", "rating", ratings=FIVE_POINTS)),
    "expert": (
        *(
            Question(name, "rating", ratings=FIVE_POINTS)
            for name in ("accuracy", "consistency", "domain_compliance")
        ),
        KEEP,
        COMMENT,
    ),
    "adjudication": (Question("rating", "rating", ratings=RATING), COMMENT),
    "safety": (
        Question("perception", "rating", ratings=FIVE_POINTS),
        Question("violation", "label", ("no", "yes")),
        Question("violations", "labels", VIOLATIONS, after=("violation", "yes")),
        COMMENT,
    ),
}
KINDS: tuple[Kind, ...] = tuple(QUESTIONS)

# --- Reading questions ------------------------------------------------------------------------------------------------

Ask = Literal["minor", "explicit", "crisis"]
NO, YES, UNSURE = READING_LABELS = ("no", "yes", "unsure")
HARMFUL = Question("harmful", "label", READING_LABELS, gates=("companion_harm", "personal_data"))
# What the setting `ask` adds.
ASKED: Mapping[Ask, Question] = {
    "minor": Question("minor", "label", READING_LABELS, gates=("minors",)),
    "explicit": Question("explicit", "label", READING_LABELS, gates=("explicit_content",)),
    "crisis": Question("crisis", "label", READING_LABELS, gates=("crisis_care",)),
}
READING_QUESTIONS: Mapping[str, Question] = {one.name: one for one in (HARMFUL, *ASKED.values())}
# Kinds of rounds that ask `HARMFUL`. Those of an earlier version did not.
READING_KINDS: tuple[Kind, ...] = ("crowd", "expert")


def questions_for(
    kind: Kind, labels: Sequence[Sequence[str]], reading: Collection[str] = ()
) -> tuple[Question, ...]:
    """Return the questions of a round whose items name `labels`; an adjudication of tied labels asks for one of them.

    `reading` are the names of its reading questions, which come before a comment. Raise RoundError if only some items
    of an adjudication name labels.
    """
    asked = QUESTIONS[kind]
    if kind == "safety" and reading:  # about whole dialogues, in which there is no reply to rate
        asked = (COMMENT,)
    questions = _with_reading(asked, reading)
    if kind != "adjudication" or not any(labels):
        return questions
    if not all(len(set(named)) > 1 for named in labels):
        raise RoundError(
            "items of an adjudication must either all name two or more labels (to decide between) or none (to be "
            "rated); open two rounds"
        )
    choices = tuple(sorted({label for named in labels for label in named}))
    return (Question("label", "label", choices), *questions[1:])


def _with_reading(questions: Sequence[Question], reading: Collection[str]) -> tuple[Question, ...]:
    read = [question for name, question in READING_QUESTIONS.items() if name in reading]
    comments = [question for question in questions if question.form == "text"]
    others = [question for question in questions if question.form != "text"]
    return (*others, *read, *comments)


def voted(questions: Iterable[Question]) -> list[Question]:
    """Return the questions that are decided by counting: agreement with others says nothing of the reading ones."""
    return [question for question in questions if not question.is_reading]
