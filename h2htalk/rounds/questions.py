"""What a round asks: the questions of each kind, as data. Their words for annotators stand in `texts/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError, quoted

Kind = Literal["crowd", "expert", "adjudication", "safety"]
Form = Literal["label", "labels", "rating", "text"]
# Stevens' level of a question's values: which disagreement counts how much (Krippendorff's alpha).
Level = Literal["nominal", "ordinal", "interval"]
# One answer as it is stored: a label, several, a rating, or free text.
Value = str | int | tuple[str, ...]

KEEP = ("keep", "drop")
FIVE = (1, 2, 3, 4, 5)
# R is a score in [0, 5] (DESIGN, the arithmetic): a person's rating takes its place.
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
# What an annotator says of an item instead of answering.
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a round.

    Attributes:
        name: in answers and decisions.
        form: `label` (one of `labels`), `labels` (any number of them), `rating` (one of `ratings`), or `text`.
        labels: of a label question, in the order in which they are shown; no order of rank.
        ratings: ascending whole numbers.
        required: whether an item counts as answered without it; with `after`, where it is asked.
        after: (question, label): asked only where that question has that answer.
        decided: whether votes on it make a decision (a comment's do not).
    """

    name: str
    form: Form
    labels: tuple[str, ...] = ()
    ratings: tuple[int, ...] = ()
    required: bool = True
    after: tuple[str, str] | None = None

    @property
    def always(self) -> bool:
        """Whether every item wants an answer to it: required, whatever is said to the questions before."""
        return self.required and self.after is None

    @property
    def decided(self) -> bool:
        return self.form in ("label", "rating")

    @property
    def level(self) -> Level:
        """Of its values: ratings have an order, labels none."""
        return "ordinal" if self.form == "rating" else "nominal"

    def read(self, raw: object) -> Value:
        """A value as it is stored.

        Raises:
            RoundError: it is none of this question's; the message says which are.
        """
        if self.form == "rating":
            number = _whole(raw)
            if number not in self.ratings:
                raise RoundError(f"{quoted(raw)} is no {self.name}: {self._choices()}")
            return number
        if self.form == "labels":
            given = [raw] if isinstance(raw, str) else raw
            if not isinstance(given, Sequence) or not set(given) <= set(self.labels):
                raise RoundError(f"{quoted(raw)} is no {self.name}: {self._choices()}")
            return tuple(label for label in self.labels if label in given)
        if not isinstance(raw, str) or (self.form == "label" and raw not in self.labels):
            raise RoundError(f"{quoted(raw)} is no {self.name}: {self._choices()}")
        return raw

    def _choices(self) -> str:
        if self.form == "text":
            return "it must be text"
        return f"choose from {', '.join(map(str, self.ratings or self.labels))}"


def _whole(raw: object) -> int | None:
    """A whole number however a spreadsheet or a server holds it: 4, 4.0, "4". No true is 1."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit():
        return int(raw.strip()[:9])
    return raw if isinstance(raw, int) else None


# Every subtask, and none of them.
SUBTASK = Question("subtask", "label", (*SUBTASKS, "none"))
KEPT = Question("keep", "label", KEEP)

QUESTIONS: Mapping[Kind, tuple[Question, ...]] = {
    "crowd": (SUBTASK, KEPT, Question("quality", "rating", ratings=FIVE)),
    "expert": (
        *(
            Question(name, "rating", ratings=FIVE)
            for name in ("accuracy", "consistency", "domain_compliance")
        ),
        KEPT,
        Question("comment", "text", required=False),
    ),
    "adjudication": (
        Question("rating", "rating", ratings=RATING),
        Question("comment", "text", required=False),
    ),
    "safety": (
        Question("perception", "rating", ratings=FIVE),
        Question("violation", "label", ("no", "yes")),
        Question("violations", "labels", VIOLATIONS, after=("violation", "yes")),
        Question("comment", "text", required=False),
    ),
}
KINDS: tuple[Kind, ...] = tuple(QUESTIONS)


def find_kind(name: str) -> Kind:
    """A kind by its name; raises RoundError with the choices."""
    if name not in KINDS:
        raise RoundError(f"unknown kind of round {quoted(name)}; choose from {', '.join(KINDS)}")
    return name


def questions_for(kind: Kind, labels: Sequence[Sequence[str]]) -> tuple[Question, ...]:
    """The questions of a round over its items.

    An adjudication over items that name labels (those that votes left tied) asks for one of them, in place of a rating.

    Args:
        kind: of the round.
        labels: of each item, those that it names; empty for none.

    Raises:
        RoundError: an adjudication of which some items name labels and others do not.
    """
    questions = QUESTIONS[kind]
    if kind != "adjudication" or not any(labels):
        return questions
    if not all(len(set(named)) > 1 for named in labels):
        raise RoundError(
            "of an adjudication's items all must name two labels or more (a word between tied decisions is asked) "
            "or none (a rating is asked); open two rounds"
        )
    every = tuple(sorted({label for named in labels for label in named}))
    return (Question("label", "label", every), *questions[1:])
