"""The answers in one row of a spreadsheet.

A choice is accepted as displayed, as displayed in the other language, or as stored; in any case and character width,
with surrounding white space and any kind of apostrophe or hyphen (`fold`). A rating is also accepted as a number: 4,
4.0, "4", "４". Nothing else is accepted.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.spreadsheets.xlsx_writing import item_choices
from h2htalk.rounds.texts.interface import interface_text

# Characters of a comment; a longer text was probably pasted into the wrong cell.
MAX_COMMENT = 10_000
_NUMBER = re.compile(r"([0-9]{1,6})(?:[.,]0+)?")
# Apostrophes and hyphens that keyboards and phones produce; before NFKC, which splits some of them.
_PUNCTUATION = str.maketrans(dict.fromkeys("‘’‚‛ʼʹ′`´＇｀", "'") | dict.fromkeys("‐‑‒–—―−－﹣﹘", "-"))


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in a cell."""

    text: str

    def __str__(self) -> str:
        return self.text


CellValue = str | int | float | bool | Formula | datetime.date | datetime.time | datetime.timedelta


@dataclass(frozen=True, slots=True)
class RowAnnotations:
    """The answers of one row.

    Attributes:
        state: `empty`; `answered` (or skipped); `partial`: an answer is missing; `mistaken`: an answer is invalid;
            `unread`: the row's texts are not the item's.
        answers: question -> value of an answered row; `skipped` of a skipped one.
    """

    state: Literal["empty", "answered", "partial", "mistaken", "unread"]
    answers: Mapping[str, Value] = field(default_factory=dict)


class Choices:
    """What an annotator who reads `language` may type for each answer."""

    def __init__(self, questions: Sequence[Question], language: Language) -> None:
        self.questions = questions
        self._language = language
        self._forms: dict[tuple[str, tuple[str, ...]], dict[str, set[str | int]]] = {}

    def read(self, question: Question, item: Item, raw: CellValue) -> Value:
        """Return the answer in a cell; raise RoundError with the choices if it is invalid."""
        if isinstance(raw, Formula):
            raise RoundError("the cell contains a formula; enter the answer itself")
        if question.form == "text":
            return _read_comment(raw)
        if question.form == "rating" and (number := whole_number(raw)) in question.ratings and number is not None:
            return number
        values = self.forms(question, item).get(fold(raw), set()) if isinstance(raw, str) else set()
        # Of labels that differ only in what `fold` removes, the one that is typed exactly.
        if len(values) > 1 and isinstance(raw, str) and raw.strip() in values:
            values = {raw.strip()}
        if len(values) == 1:
            return next(iter(values))
        choices = ", ".join(f"“{text}”" for text in item_choices(question, item, self._language).values())
        typed = raw if isinstance(raw, (str, int, float)) else str(raw)
        raise RoundError(f"{quoted(typed)} is not a valid answer; choose from {choices}")

    def forms(self, question: Question, item: Item) -> dict[str, set[str | int]]:
        """Return folded text -> values that it may mean."""
        key = question.name, item.labels
        if key not in self._forms:
            forms = self._forms[key] = {}
            for language in LANGUAGES:
                for value, text in item_choices(question, item, language).items():
                    for form in (str(value), text):
                        forms.setdefault(fold(form), set()).add(value)
        return self._forms[key]


def read_row(
    choices: Choices,
    item: Item,
    given: Mapping[str, CellValue],
    where: Callable[[str], str],
    mistakes: list[Message],
    notes: list[Message],
) -> RowAnnotations:
    """Read the answers of a row.

    Args:
        choices: of the round's questions.
        item: of the row.
        given: column key -> value, of answer columns that are not empty.
        where: column key -> file, sheet and cell, for messages.
        mistakes, notes: get a message for each mistake or note.
    """
    if not given:
        return RowAnnotations("empty")
    before = len(mistakes)
    if "skip" in given and _is_yes(given["skip"], where("skip"), mistakes):
        ignored = [key for key in given if key != "skip"]
        if ignored:
            problem = (
                f"the item is skipped; its answers, from {where(ignored[0])} on, do not count. If it was skipped by "
                "mistake, have this cell emptied"
            )
            notes.append(Message(where("skip"), problem, "skipped with answers"))
        return RowAnnotations("answered", {SKIPPED: "yes"})
    answers: dict[str, Value] = {}
    for question in choices.questions:
        name = question.name
        if question.form == "labels":
            keys = {label: f"{name}:{label}" for label in question.labels}
            marked = [
                label for label, key in keys.items() if key in given and _is_yes(given[key], where(key), mistakes)
            ]
            if marked:
                answers[name] = tuple(marked)
        elif name in given:
            try:
                answers[name] = choices.read(question, item, given[name])
            except RoundError as error:
                mistakes.append(Message(where(name), str(error), f"invalid answer to {name}"))
        if name in answers and question.after is not None and not _is_asked(question, answers):
            other, label = question.after
            key = next(one for one in given if one.partition(":")[0] == name)
            problem = f"{name} is answered, but it is asked only if {other} is {label}; empty it, or change "
            mistakes.append(Message(where(key), problem + where(other), problem))
    if len(mistakes) > before:
        return RowAnnotations("mistaken")
    missing = [
        question.name
        for question in choices.questions
        if question.required and question.name not in answers and _is_asked(question, answers)
    ]
    if missing:
        cells = ", ".join(f"{where(name)} ({name})" for name in missing)
        problem = f"this row is incomplete and not counted; empty (or merged with another cell): {cells}"
        mistakes.append(Message(where(next(iter(given))), problem, f"incomplete: {', '.join(missing)}"))
        return RowAnnotations("partial")
    return RowAnnotations("answered", answers)


def _is_asked(question: Question, answers: Mapping[str, Value]) -> bool:
    return question.after is None or answers.get(question.after[0]) == question.after[1]


def _is_yes(raw: CellValue, where: str, mistakes: list[Message]) -> bool:
    """Return whether a cell is marked; anything but a mark is a mistake."""
    marks = {interface_text(name, one) for name in ("skip_yes", "skip", "yes") for one in LANGUAGES} | {"yes"}
    if isinstance(raw, str) and fold(raw) in {fold(mark) for mark in marks}:
        return True
    problem = f"{quoted(str(raw))} is not a valid answer; write yes, or leave the cell empty"
    mistakes.append(Message(where, problem, "not a mark"))
    return False


def _read_comment(raw: CellValue) -> str:
    text = str(raw).replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(text) > MAX_COMMENT:
        raise RoundError(f"the comment has {len(text):,} characters; the maximum is {MAX_COMMENT:,}: shorten it")
    return text


def whole_number(raw: CellValue | None) -> int | None:
    """Return a whole number, also from text and from the full-width digits of Chinese keyboards."""
    if isinstance(raw, str):
        match = _NUMBER.fullmatch(unicodedata.normalize("NFKC", raw).strip())
        return int(match[1]) if match else None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return int(raw) if abs(raw) < 1e6 and raw == int(raw) else None


def fold(text: str) -> str:
    """Normalise a text for comparison: width, case, apostrophes, hyphens, white space and space around colons."""
    plain = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION)).casefold()
    return re.sub(r" ?: ?", ":", " ".join(unicodedata.normalize("NFKC", plain).split()))
