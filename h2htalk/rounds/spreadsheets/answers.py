"""One row of a ballot as answers: what is typed there, and what of it counts.

Accepted for a choice, and nothing else: the choice as it was shown, the same in the round's other language, or the
stored value itself; in any case, with blanks around it, in signs of any width, with whatever apostrophe, hyphen or
run of blanks a keyboard makes (`_folded`). For a rating also the number: 4, 4.0, "4", "４".

What becomes of an answer that is stored when its row is changed later:

* whole and right: the new answer counts;
* Skip marked, whatever stands beside it: the voter has withdrawn. The item is skipped, the answers beside it count no
  more, and a note says so;
* empty, in a ballot with a row that somebody filled in, and beside which no unread download of it lies: taken back;
* half filled, mistaken, or not to be read: the stored answer counts until the row is whole, skipped or empty. A note
  says so and names the items (`Box.settle`), and so does the message of a half-filled row.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from h2htalk.data.dialogue import LANGUAGES, Language
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Question, Value
from h2htalk.rounds.spreadsheets.columns import choices_of, shown_choices
from h2htalk.rounds.texts import word

# Of a comment (characters): more is no comment but a text that was pasted into the wrong cell.
MAX_COMMENT = 10_000
_NUMBER = re.compile(r"([0-9]{1,6})(?:[.,]0+)?")
_BETWEEN = re.compile(r"[;,|；，、\n]+")
# Signs that keyboards and phones put for ' and -, before NFKC, which makes an accent on a blank of some.
_KEYBOARD = str.maketrans(dict.fromkeys("‘’‚‛ʼʹ′`´＇｀", "'") | dict.fromkeys("‐‑‒–—―−－﹣﹘", "-"))
Raw = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file says on one item.

    Attributes:
        state: `empty`; `answered`, also by skipping; `half`: filled in in part; `mistaken`: what is filled in is wrong;
            `unread`: changed, merged or with a formula, so that nothing tells what is filled in.
        answers: of an answered row, by question; `skipped` of a skipped one.
        where: file, sheet and cell of the row's first answer.
    """

    item: str
    state: Literal["empty", "answered", "half", "mistaken", "unread"]
    answers: Mapping[str, Value]
    where: str


class Choices:
    """What counts as which answer."""

    def __init__(
        self,
        questions: Sequence[Question],
        language: Language,
        shown: Mapping[str, Sequence[tuple[str, str]]],
        answered: Collection[str] = (),
    ) -> None:
        """What can be chosen.

        Args:
            language: of the voter.
            shown: question -> (stored value as text, as this ballot showed it), beside our words of today.
            answered: items of which an answer of this voter is stored.
        """
        self.questions = questions
        self.answered = answered
        self._language = language
        self._shown = shown
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, set[str | int]]] = {}

    def read(self, question: Question, item: Item, raw: Raw) -> Value:
        """A cell's value as the question's. Raises RoundError with the choices."""
        if question.form == "text":
            return _comment(raw)
        if question.form == "rating" and (number := _whole(raw)) in question.ratings and number is not None:
            return number
        found = self._forms(question, item).get(_folded(raw), set()) if isinstance(raw, str) else set()
        # Of two labels that differ in case alone, what is typed exactly is meant.
        if len(found) > 1 and isinstance(raw, str) and raw.strip() in found:
            found = {raw.strip()}
        if len(found) == 1:
            return next(iter(found))
        raise RoundError(f"{quoted(raw)} is no answer; choose from {self._listed(question, item)}")

    def read_several(self, question: Question, item: Item, raw: Raw) -> Value:
        """Labels between commas or semicolons."""
        parts = [part for part in _BETWEEN.split(raw) if part.strip()] if isinstance(raw, str) else [raw]
        found = {self.read(question, item, part) for part in parts}
        return tuple(label for label in question.labels if label in found)

    def _forms(self, question: Question, item: Item) -> dict[str, set[str | int]]:
        key = question.name, item.labels
        if key not in self._known:
            forms: dict[str, set[str | int]] = {}
            allowed = choices_of(question, item, self._language)
            for language in LANGUAGES:
                for value, shown in choices_of(question, item, language).items():
                    for text in (str(value), shown):
                        forms.setdefault(_folded(text), set()).add(value)
            by_text = {str(value): value for value in allowed}
            for text, shown in self._shown.get(question.name, ()):
                if text in by_text:
                    forms.setdefault(_folded(shown), set()).add(by_text[text])
            self._known[key] = forms
        return self._known[key]

    def _listed(self, question: Question, item: Item) -> str:
        return ", ".join(f"“{shown}”" for shown in choices_of(question, item, self._language).values())


def read_row(
    choices: Choices,
    item: Item,
    given: Mapping[str, Raw],
    where: Callable[[str], str],
    mistakes: list[str],
    notes: list[str],
) -> Reading:
    """The answers of a row.

    Args:
        given: column key -> what stands there, of columns to answer in that are not empty.
        where: column key -> file, sheet and cell, for messages.
        mistakes, notes: get a line for each thing that is wrong, or should be known.
    """
    if not given:
        return Reading(item.id, "empty", {}, "")
    first = where(next(iter(given)))
    before = len(mistakes)
    if "skip" in given and _is_yes(given["skip"], "skip_yes", "skip", where("skip"), mistakes):
        return _skipped(choices, item, given, where, notes)
    answers: dict[str, Value] = {}
    for question in choices.questions:
        try:
            answers |= _answer(choices, question, item, given, where, mistakes)
        except _WrongCell as error:
            mistakes.append(str(error))
    _check_conditions(choices.questions, answers, given, where, mistakes)
    if len(mistakes) > before:
        return Reading(item.id, "mistaken", {}, first)
    missing = [
        question.name
        for question in choices.questions
        if question.required and question.name not in answers and _asked(question, answers)
    ]
    if missing:
        told = ", ".join(f"{where(name)} ({name})" for name in missing)
        counts = (
            "What it said before still counts, until it is whole or empty"
            if item.id in choices.answered
            else "It counts once it is whole"
        )
        mistakes.append(f"{first}: this row is half filled; still empty: {told}. {counts}")
        return Reading(item.id, "half", {}, first)
    return Reading(item.id, "answered", answers, first)


class _WrongCell(Exception):
    """A cell that holds no answer; the text says where and why."""


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
        marked = [
            label
            for label in question.labels
            if (key := f"{name}:{label}") in given and _is_yes(given[key], "yes", "yes", where(key), mistakes)
        ]
        if marked:
            return {name: tuple(marked)}
    if name not in given:
        return {}
    try:
        read = choices.read_several if question.form == "labels" else choices.read
        return {name: read(question, item, given[name])}
    except RoundError as error:
        raise _WrongCell(f"{where(name)}: {error}") from error


def _skipped(
    choices: Choices,
    item: Item,
    given: Mapping[str, Raw],
    where: Callable[[str], str],
    notes: list[str],
) -> Reading:
    """An item that its voter would rather not read; who has begun to answer may still leave it."""
    free = {question.name for question in choices.questions if question.form == "text"}
    answered = [key for key in given if key != "skip" and key not in free]
    if answered:
        notes.append(
            f"{where('skip')}: skipped; what is answered beside it, from {where(answered[0])} on, does not count. "
            "Was Skip a slip, have it emptied"
        )
    elif len(given) > 1:
        # Nobody has to say why; somebody who does need not do it again in another way.
        notes.append(f"{where('skip')}: skipped; the comment beside it is not stored")
    return Reading(item.id, "answered", {SKIPPED: "yes"}, where("skip"))


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


def _is_yes(raw: Raw, name: str, short: str, where: str, mistakes: list[str]) -> bool:
    """Whether a cell that can only be marked is marked; what is no mark is a mistake."""
    words = {word(one, language) for one in (name, short, "yes") for language in LANGUAGES} | {"yes"}
    if isinstance(raw, str) and _folded(raw) in {_folded(one) for one in words}:
        return True
    mistakes.append(f"{where}: {quoted(raw)} is no answer; write yes, or leave it empty")
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
    if isinstance(raw, bool):
        return None
    if isinstance(raw, str):
        found = _NUMBER.fullmatch(unicodedata.normalize("NFKC", raw).strip())
        return int(found[1]) if found else None
    return int(raw) if raw == raw and abs(raw) < 1e6 and raw == int(raw) else None


def _folded(text: str) -> str:
    """A text as it is compared: one width, one kind of apostrophe, hyphen and blank, none at a colon, no case."""
    plain = unicodedata.normalize("NFKC", text.translate(_KEYBOARD)).casefold()
    return re.sub(r" ?: ?", ":", " ".join(unicodedata.normalize("NFKC", plain).split()))


def require_apart(questions: Iterable[Question]) -> None:
    """Raise ValueError where two choices of a question fall together when folded: our words must leave no doubt."""
    for question in questions:
        stood: dict[str, str | int] = {}
        for language in LANGUAGES:
            for value, shown in shown_choices(question, language).items():
                for text in (str(value), shown):
                    if stood.setdefault(_folded(text), value) != value:
                        raise ValueError(
                            f"{question.name}: {shown!r} ({language}) reads as {value!r} and as "
                            f"{stood[_folded(text)]!r}; word one of the two otherwise"
                        )


require_apart(question for asked in QUESTIONS.values() for question in asked)
