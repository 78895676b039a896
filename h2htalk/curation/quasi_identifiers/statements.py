"""Find what the users of dialogues say about age, place, job, school and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from h2htalk.curation.language_data import language_data
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue

KINDS = ("age", "place", "job", "school", "date")
Value = tuple[str, str]  # kind and normal form: ("age", "34")
Spans = Sequence[tuple[int, int]]
_WORDS = "quasi_identifiers/words"
_CONTEXT = 40  # characters before a statement that may rule it out
_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2, "": 0}


def find_statements(dialogue: Dialogue, surrogates: Mapping[int, Spans]) -> dict[Value, list[int]]:
    """What the user states of himself or herself and of people near: values, and the messages (from 1) that state them.

    Args:
        dialogue: of any stage.
        surrogates: characters of each message that the anonymiser put there; what overlaps them is left out.
    """
    found: dict[Value, list[int]] = {}
    for number, turn in enumerate(dialogue.messages, 1):
        if turn.role == "user":
            for value in dict.fromkeys(_values(turn.content, dialogue.language, surrogates.get(number, ()))):
                found.setdefault(value, []).append(number)
    return found


def _values(text: str, language: Language, surrogates: Spans) -> Iterator[Value]:
    for kind in KINDS:
        taken = {at for first, last in surrogates for at in range(first, last)}
        (before,) = _patterns(language, "before", kind)
        for match in (match for pattern in _patterns(language, "patterns", kind) for match in pattern.finditer(text)):
            places = range(*match.span("month" if kind == "date" else "value"))
            if before.search(text, max(0, match.start() - _CONTEXT), match.start()):
                continue
            if taken.isdisjoint(places):
                taken.update(places)
                yield kind, _date(match, language) if kind == "date" else _normalized(kind, match["value"], language)


def _normalized(kind: str, value: str, language: Language) -> str:
    """A value in lower case: an age in digits, a job without words that say nothing."""
    if kind == "age":
        return str(_number(value) or value)
    ignored = language_data(_WORDS, language)["ignored"].split() if kind == "job" else ()
    return " ".join(word for word in value.casefold().split() if word not in ignored)


def _number(text: str) -> int:
    """The number that digits or Chinese numerals below 100 write; 0 for other text."""
    tens, ten, ones = text.rpartition("十")
    if tens in _DIGITS and ones in _DIGITS:
        return (_DIGITS[tens] or 1) * 10 * bool(ten) + _DIGITS[ones]
    return int(text) if text.isdecimal() else 0


def _date(match: re.Match[str], language: Language) -> str:
    """`2019-05-03`, `2019-05` or `05-03`."""
    parts = match.groupdict()
    month, day = parts["month"].casefold(), parts.get("day")
    names = enumerate(language_data(_WORDS, language)["months"].split(), 1)
    number = next((at for at, name in names if month.startswith(name)), _number(month))
    return "-".join(filter(None, (parts.get("year"), f"{number:02}", day and f"{_number(day):02}")))


@cache
def _patterns(language: Language, table: str, kind: str) -> list[re.Pattern[str]]:
    """The patterns of a kind, with the words of the language for the names between % signs."""
    data = language_data(_WORDS, language)
    words = {name: text.replace("\n", "") for name, text in data["words"].items()}
    places = {*words["places"].split("|"), *_PLACES[language]()}
    words["places"] = "|".join(sorted(places, key=lambda name: (-len(name), name)))
    compiled = []
    for text in data[table][kind]:
        while used := re.search("%([a-z]+)%", text):
            text = text.replace(used[0], f"(?:{words[used[1]]})")
        compiled.append(re.compile(text, re.IGNORECASE))
    return compiled


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
