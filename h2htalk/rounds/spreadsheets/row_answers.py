"""One row of a spreadsheet as answers: what is typed there, and what of it counts.

Accepted for a choice, and nothing else: the choice as it was shown, the same in the round's other language, or the
stored value itself; in any case, with blanks around it, in signs of any width, with whatever apostrophe, hyphen or
run of blanks a keyboard makes (`folded`). For a rating also the number: 4, 4.0, "4", "４".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.spreadsheets.columns import choices_of
from h2htalk.rounds.spreadsheets.returned_rows import Formula, Raw
from h2htalk.rounds.texts.interface import word

# Of a comment (characters): more is no comment but a text that was pasted into the wrong cell.
MAX_COMMENT = 10_000
_NUMBER = re.compile(r"([0-9]{1,6})(?:[.,]0+)?")
_BETWEEN = re.compile(r"[;,|；，、\n]+")
# Signs that keyboards and phones put for ' and -, before NFKC, which makes an accent on a blank of some.
_KEYBOARD = str.maketrans(dict.fromkeys("‘’‚‛ʼʹ′`´＇｀", "'") | dict.fromkeys("‐‑‒–—―−－﹣﹘", "-"))


@dataclass(frozen=True, slots=True)
class RowAnnotations:
    """What one row says.

    Attributes:
        state: `empty`; `answered`, also by skipping; `half`: filled in in part; `mistaken`: what is filled in is wrong;
            `unread`: nothing tells which item the answers are for.
        answers: of an answered row, by question; `skipped` of a skipped one.
    """

    state: Literal["empty", "answered", "half", "mistaken", "unread"]
    answers: Mapping[str, Value] = field(default_factory=dict)


class Choices:
    """What counts as which answer, for an annotator who reads `language`."""

    def __init__(self, questions: Sequence[Question], language: Language) -> None:
        self.questions = questions
        self._language = language
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, set[str | int]]] = {}

    def read(self, question: Question, item: Item, raw: Raw) -> Value:
        """A cell's value as the question's. Raises RoundError with the choices."""
        if isinstance(raw, Formula):
            raise RoundError("holds a formula, not an answer; choose the answer itself")
        if question.form == "text":
            return _comment(raw)
        if question.form == "rating" and (number := _whole(raw)) in question.ratings and number is not None:
            return number
        found = self.forms(question, item).get(folded(raw), set()) if isinstance(raw, str) else set()
        # Of two labels that differ in case alone, what is typed exactly is meant.
        if len(found) > 1 and isinstance(raw, str) and raw.strip() in found:
            found = {raw.strip()}
        if len(found) == 1:
            return next(iter(found))
        listed = ", ".join(f"“{shown}”" for shown in choices_of(question, item, self._language).values())
        told = raw if isinstance(raw, (str, int, float)) else str(raw)
        raise RoundError(f"{quoted(told)} is no answer; choose from {listed}")

    def read_several(self, question: Question, item: Item, raw: Raw) -> Value:
        """Labels between commas or semicolons."""
        parts = [part for part in _BETWEEN.split(raw) if part.strip()] if isinstance(raw, str) else [raw]
        found = {self.read(question, item, part) for part in parts}
        return tuple(label for label in question.labels if label in found)

    def forms(self, question: Question, item: Item) -> dict[str, set[str | int]]:
        """What can be typed, folded -> the values that it may mean."""
        key = question.name, item.labels
        if key not in self._known:
            forms = self._known[key] = {}
            for language in LANGUAGES:
                for value, shown in choices_of(question, item, language).items():
                    for text in (str(value), shown):
                        forms.setdefault(folded(text), set()).add(value)
        return self._known[key]


def read_row(
    choices: Choices,
    item: Item,
    given: Mapping[str, Raw],
    where: Callable[[str], str],
    mistakes: list[str],
    notes: list[str],
) -> RowAnnotations:
    """The answers of a row.

    Args:
        given: column key -> what stands there, of columns to answer in that are not empty.
        where: column key -> file, sheet and cell, for messages.
        mistakes, notes: get a line for each thing that is wrong, or should be known.
    """
    if not given:
        return RowAnnotations("empty")
    before = len(mistakes)
    if "skip" in given and _is_yes(given["skip"], where("skip"), mistakes):
        beside = [key for key in given if key != "skip"]
        if beside:
            notes.append(
                f"{where('skip')}: skipped; what stands beside it, from {where(beside[0])} on, does not count. Was "
                "Skip a slip, have it emptied"
            )
        return RowAnnotations("answered", {SKIPPED: "yes"})
    answers: dict[str, Value] = {}
    for question in choices.questions:
        answers |= _answer(choices, question, item, given, where, mistakes)
    _check_conditions(choices.questions, answers, given, where, mistakes)
    if len(mistakes) > before:
        return RowAnnotations("mistaken")
    missing = [
        question.name
        for question in choices.questions
        if question.required and question.name not in answers and _asked(question, answers)
    ]
    if missing:
        told = ", ".join(f"{where(name)} ({name})" for name in missing)
        mistakes.append(
            f"{where(next(iter(given)))}: this row is half filled; still empty (or merged with a neighbour): {told}. "
            "It is read once it is whole"
        )
        return RowAnnotations("half")
    return RowAnnotations("answered", answers)


def _answer(
    choices: Choices,
    question: Question,
    item: Item,
    given: Mapping[str, Raw],
    where: Callable[[str], str],
    mistakes: list[str],
) -> dict[str, Value]:
    """The answer to one question, from one cell, or from one cell a label; empty where there is none."""
    name = question.name
    if question.form == "labels":
        marked = tuple(
            label
            for label in question.labels
            if (key := f"{name}:{label}") in given and _is_yes(given[key], where(key), mistakes)
        )
        if marked:
            return {name: marked}
    if name not in given:
        return {}
    try:
        read = choices.read_several if question.form == "labels" else choices.read
        return {name: read(question, item, given[name])}
    except RoundError as error:
        mistakes.append(f"{where(name)}: {error}")
        return {}


def _check_conditions(
    questions: Sequence[Question],
    answers: Mapping[str, Value],
    given: Mapping[str, Raw],
    where: Callable[[str], str],
    mistakes: list[str],
) -> None:
    for question in questions:
        if question.name in answers and question.after is not None and not _asked(question, answers):
            other, label = question.after
            key = next(one for one in given if one.partition(":")[0] == question.name)
            mistakes.append(
                f"{where(key)}: {question.name} is answered, which is asked only where {other} is {label}; empty it, "
                f"or change {where(other)}"
            )


def _asked(question: Question, answers: Mapping[str, Value]) -> bool:
    return question.after is None or answers.get(question.after[0]) == question.after[1]


def _is_yes(raw: Raw, where: str, mistakes: list[str]) -> bool:
    """Whether a cell that can only be marked is marked; what is no mark is a mistake."""
    words = {word(one, language) for one in ("skip_yes", "skip", "yes") for language in LANGUAGES} | {"yes"}
    if isinstance(raw, str) and folded(raw) in {folded(one) for one in words}:
        return True
    mistakes.append(f"{where}: {quoted(str(raw))} is no answer; write yes, or leave it empty")
    return False


def _comment(raw: Raw) -> str:
    text = str(raw).replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(text) > MAX_COMMENT:
        raise RoundError(
            f"this comment has {len(text):,} characters; at most {MAX_COMMENT:,} are read: shorten it"
        )
    return text


def _whole(raw: Raw) -> int | None:
    """A whole number however it is typed; full-width digits are what Chinese keyboards type."""
    if isinstance(raw, str):
        found = _NUMBER.fullmatch(unicodedata.normalize("NFKC", raw).strip())
        return int(found[1]) if found else None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return int(raw) if abs(raw) < 1e6 and raw == int(raw) else None


def folded(text: str) -> str:
    """A text as it is compared: one width, one kind of apostrophe, hyphen and blank, none at a colon, no case."""
    plain = unicodedata.normalize("NFKC", text.translate(_KEYBOARD)).casefold()
    return re.sub(r" ?: ?", ":", " ".join(unicodedata.normalize("NFKC", plain).split()))
