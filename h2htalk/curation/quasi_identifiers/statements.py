"""Find what the users of dialogues say about age, place, job, school and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from h2htalk.curation.language_data import language_data
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.languages import Language

KINDS = ("age", "place", "job", "school", "date")
Value = tuple[str, str]  # kind and normal form: ("age", "34")
Spans = Sequence[tuple[int, int]]
_CONTEXT = 40  # characters before a statement that may rule it out
_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2, "": 0}


@dataclass(frozen=True, slots=True)
class _Rules:
    """Patterns of each kind, what rules a match out before it, words that are no part of a job, names of months."""

    patterns: Mapping[str, Sequence[re.Pattern[str]]]
    before: Mapping[str, re.Pattern[str]]
    ignored: Sequence[str]
    months: Sequence[str]


def find_statements(dialogue: Dialogue, surrogates: Mapping[int, Spans]) -> dict[Value, list[int]]:
    """What the user states of himself or herself and of people near: values, and the messages (from 1) that state them.

    Args:
        dialogue: of any stage.
        surrogates: characters of each message that the anonymiser put there; what overlaps them is left out.
    """
    rules = _rules(dialogue.language)
    found: dict[Value, dict[int, None]] = {}
    for number, turn in enumerate(dialogue.messages, 1):
        if turn.role == "user":
            for value in _values(rules, turn.content, surrogates.get(number, ())):
                found.setdefault(value, {})[number] = None
    return {value: list(numbers) for value, numbers in found.items()}


def _values(rules: _Rules, text: str, surrogates: Spans) -> Iterator[Value]:
    for kind in KINDS:
        taken = list(surrogates)
        for match in (match for pattern in rules.patterns[kind] for match in pattern.finditer(text)):
            start, end = match.span("month" if kind == "date" else "value")
            ruled_out = kind in rules.before and rules.before[kind].search(
                text, max(0, match.start() - _CONTEXT), match.start()
            )
            if not ruled_out and not any(start < last and first < end for first, last in taken):
                taken.append((start, end))
                yield kind, _date(match, rules) if kind == "date" else _normalized(match["value"], kind, rules)


def _normalized(value: str, kind: str, rules: _Rules) -> str:
    """A value in lower case: an age in digits, a job without words that say nothing."""
    if kind == "age":
        return str(_number(value) or value)
    return " ".join(word for word in value.casefold().split() if kind != "job" or word not in rules.ignored)


def _number(text: str) -> int:
    """The number that digits or Chinese numerals below 100 write; 0 for other text."""
    tens, ten, ones = text.rpartition("十")
    if tens in _DIGITS and ones in _DIGITS:
        return (_DIGITS[tens] or 1) * 10 * bool(ten) + _DIGITS[ones]
    return int(text) if text.isdecimal() else 0


def _date(match: re.Match[str], rules: _Rules) -> str:
    """`2019-05-03`, `2019-05` or `05-03`."""
    parts = match.groupdict()
    month, day = parts["month"].casefold(), parts.get("day")
    number = next((at for at, name in enumerate(rules.months, 1) if month.startswith(name)), _number(month))
    return "-".join(filter(None, (parts.get("year"), f"{number:02}", day and f"{_number(day):02}")))


@cache
def _rules(language: Language) -> _Rules:
    data = language_data("quasi_identifiers/words", language)
    words = {name: text.replace("\n", "") for name, text in data["words"].items()}
    places = {*words["places"].split("|"), *_PLACES[language]()}
    words["places"] = "|".join(sorted(places, key=lambda name: (-len(name), name)))

    def compiled(text: str) -> re.Pattern[str]:
        while used := re.search("%([a-z]+)%", text):
            text = text.replace(used[0], f"(?:{words[used[1]]})")
        return re.compile(text, re.IGNORECASE)

    patterns = {kind: [compiled(text) for text in data["patterns"][kind]] for kind in KINDS}
    before = {kind: compiled(text) for kind, text in data["before"].items()}
    return _Rules(patterns, before, data["ignored"].split(), data["months"].split())


def _english_places() -> frozenset[str]:
    from h2htalk.curation.anonymize.english.word_lists import words

    return words().hints["places"]


def _chinese_places() -> set[str]:
    """Short names of provinces and cities; full names of districts, whose short ones are ordinary words too."""
    from h2htalk.curation.anonymize.chinese.words import sections

    listed = sections("divisions")
    entries = [entry.partition("/") for level in ("provinces", "cities") for entry in listed[level]]
    return {short or full for full, _, short in entries} | {entry.partition("/")[0] for entry in listed["districts"]}


_PLACES = {"en": _english_places, "zh": _chinese_places}
