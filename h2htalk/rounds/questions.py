"""The questions of each kind of round. Their texts for annotators are in `texts/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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
    """

    name: str
    form: Form
    labels: tuple[str, ...] = ()
    ratings: tuple[int, ...] = ()
    required: bool = True
    after: tuple[str, str] | None = None

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

    def read(self, raw: object) -> Value:
        """Return an answer as it is stored; raise RoundError with the choices if it is invalid."""
        if self.form == "rating":
            number = _whole_number(raw)
            if number not in self.ratings:
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


def _whole_number(raw: object) -> int | None:
    """Return a whole number that a spreadsheet or server holds as 4, 4.0 or "4"; None for anything else."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit():
        return int(raw.strip()[:9])
    return raw if isinstance(raw, int) else None


SUBTASK = Question("subtask", "label", (*SUBTASKS, "none"))
KEEP = Question("keep", "label", KEEP_LABELS)
COMMENT = Question("comment", "text", required=False)

QUESTIONS: Mapping[Kind, tuple[Question, ...]] = {
    "crowd": (SUBTASK, KEEP, Question("quality", "rating", ratings=FIVE_POINTS)),
    "expert": (
        *(Question(name, "rating", ratings=FIVE_POINTS) for name in ("accuracy", "consistency", "domain_compliance")),
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


def questions_for(kind: Kind, labels: Sequence[Sequence[str]]) -> tuple[Question, ...]:
    """Return the questions of a round whose items name `labels`; an adjudication of tied labels asks for one of them.

    Raise RoundError if only some items of an adjudication name labels.
    """
    questions = QUESTIONS[kind]
    if kind != "adjudication" or not any(labels):
        return questions
    if not all(len(set(named)) > 1 for named in labels):
        raise RoundError(
            "items of an adjudication must either all name two or more labels (to decide between) or none (to be "
            "rated); open two rounds"
        )
    choices = tuple(sorted({label for named in labels for label in named}))
    return (Question("label", "label", choices), *questions[1:])
