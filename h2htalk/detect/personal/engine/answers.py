"""What a speaker gives in pieces, as the other one asks for it: the rest of a number, a name that is the whole answer.

Alone neither says what it is: "2846." behind "My number is 415 730" and "And the rest?", "Miller" behind "And your last
name?". The pieces of a number are read as one text by the rules of structured data, so a question alone makes no number
of digits that are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.data.languages import find_language
from h2htalk.detect.personal.chinese.persons import surnames
from h2htalk.detect.personal.chinese.words import usual
from h2htalk.detect.personal.english.persons import is_word, words
from h2htalk.detect.personal.spans import NormalizedText, Span, normalize_text
from h2htalk.detect.personal.structured.rules import find_structured
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES, simplified
from h2htalk.text.language_data import pattern_table, read_data

_FILE = Path(__file__).with_name("answers.toml")
_RE = pattern_table(_FILE, "patterns")
_NO_NAME = frozenset(read_data(_FILE)["answers"]["no_name"].split())
_LONGEST_QUESTION = 120  # characters of a message that asks
_LONGEST_ANSWER = 2000  # characters of a message that gives a piece
_TAIL = (
    40  # characters behind the last piece that are read with it: a unit says that it is an amount
)
_NAMED = 0.9  # how sure an answer to a question for a name is one
Found = tuple[int, Span]  # the number of a text, and a span of it


@dataclass(frozen=True, slots=True)
class _Piece:
    """Digits of a message: `number` of the message, `start` and `end` in its reading."""

    number: int
    reading: NormalizedText
    start: int
    end: int


def find_numbers_in_pieces(
    texts: Sequence[str], language: str, countries: Sequence[str] = ()
) -> Iterator[Found]:
    """Numbers of which a message holds a piece, and the answers to questions for the rest the others."""
    number = 0
    while number < len(texts) - 2:
        pieces = _pieces_from(texts, number, language)
        if len(pieces) < 2:
            number += 1
            continue
        yield from _find_in_pieces(texts, pieces, language, countries)
        number = pieces[-1].number


def _pieces_from(texts: Sequence[str], number: int, language: str) -> list[_Piece]:
    """The piece at the end of a message, and those that follow it; fewer than two where none follows."""
    pieces: list[_Piece] = []
    while number + 2 < len(texts) and _asks(texts[number + 1], "further", language):
        if not pieces:
            first = _last_row(texts[number], number)
            if first is None:
                break
            pieces.append(first)
        following = _leading_row(texts[number + 2], number + 2)
        if following is None:
            break
        pieces.append(following)
        number += 2
    return pieces


def _asks(text: str, what: str, language: str) -> bool:
    """Whether a message ends with a question for digits (`further`) or a name (`asks_name`)."""
    if len(text) > _LONGEST_QUESTION:
        return False
    rules = find_language(language).number_rules
    return _RE[f"{what}_{rules}"].search(simplified(text)) is not None


def _last_row(text: str, number: int) -> _Piece | None:
    """The last row of digits of a message."""
    if len(text) > _LONGEST_ANSWER:
        return None
    reading = normalize_text(text)
    rows = list(_RE["row"].finditer(reading.digits))
    if not rows or len(reading.digits) - rows[-1].end() > _TAIL:
        return None
    return _Piece(number=number, reading=reading, start=rows[-1].start(), end=rows[-1].end())


def _leading_row(text: str, number: int) -> _Piece | None:
    """The row of digits with which an answer begins."""
    if len(text) > _LONGEST_ANSWER:
        return None
    reading = normalize_text(text)
    row = _RE["leading"].search(reading.digits)
    if row is None:
        return None
    return _Piece(number=number, reading=reading, start=row.start("digits"), end=row.end("digits"))


def _find_in_pieces(
    texts: Sequence[str], pieces: Sequence[_Piece], language: str, countries: Sequence[str]
) -> Iterator[Found]:
    """What the rules find in the pieces as one text, and more than one of them holds."""
    first = pieces[0]
    last = pieces[-1]
    joined = ""
    if first.number > 0 and len(texts[first.number - 1]) <= _LONGEST_QUESTION:
        joined = f"{normalize_text(texts[first.number - 1]).plain}\n"
    joined += first.reading.plain[: first.start]
    starts = []
    for piece in pieces:
        starts.append(len(joined))
        joined += f"{piece.reading.plain[piece.start : piece.end]} "
    joined = joined[:-1] + last.reading.plain[last.end : last.end + _TAIL]
    for span in find_structured(normalize_text(joined), language, countries):
        shares = []
        for piece, offset in zip(pieces, starts, strict=True):
            start = max(span.start - offset + piece.start, piece.start)
            end = min(span.end - offset + piece.start, piece.end)
            if start < end:
                shares.append(_span_of(piece.number, piece.reading, start, end, span))
        if len(shares) > 1:
            yield from shares


def _span_of(number: int, reading: NormalizedText, start: int, end: int, like: Span) -> Found:
    """A span of a reading as one of the text as given."""
    first, stop = reading.original_span(start, end)
    return number, replace(like, start=first, end=stop)


def find_names_in_answers(texts: Sequence[str], language: str) -> Iterator[Found]:
    """Names that are the whole answer to a question for a name."""
    rules = find_language(language).number_rules
    for number in range(1, len(texts)):
        text = texts[number]
        if len(text) > _LONGEST_QUESTION or not _asks_name(texts, number - 1, language):
            continue
        reading = normalize_text(text)
        answer = _RE[f"bare_{rules}"].search(reading.plain)
        if answer is None or not _is_name(answer["name"], rules):
            continue
        span = Span(*answer.span("name"), "PERSON", _NAMED, "answer")
        yield _span_of(number, reading, span.start, span.end, span)


def _asks_name(texts: Sequence[str], number: int, language: str) -> bool:
    """Whether a message asks for a name, or for what follows the one that the message before it gives."""
    if _asks(texts[number], "asks_name", language):
        return True
    if number == 0 or len(texts[number]) > _LONGEST_QUESTION:
        return False
    repeated = _RE["and_what"].search(texts[number])
    if repeated is None:
        return False
    before = texts[number - 1][-_LONGEST_QUESTION:]
    named = _RE["called"].search(before)
    return named is not None and named["name"].lower() == repeated["name"].lower()


def _is_name(name: str, rules: str) -> bool:
    """Whether a bare answer may be a name: no word that is none, in English for each of its words."""
    if rules == "zh":
        return _is_chinese_name(simplified(name))
    return all(_is_part_of_name(word) for word in re.split(r"[ -]", name.lower()))


def _is_part_of_name(word: str) -> bool:
    if word in _NO_NAME:
        return False
    lists = words()
    return word in lists.given or word in lists.surnames or not is_word(word)


def _is_chinese_name(name: str) -> bool:
    if len(name) == 1:
        return name in surnames()
    if usual(name):
        return False
    family = name[0] in surnames() or name[:2] in DOUBLE_SURNAMES
    return family or _RE["nickname"].match(name) is not None
