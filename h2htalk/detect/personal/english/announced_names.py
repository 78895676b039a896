"""Names that the form of an English text gives: who signs a letter, who wrote a mail that is quoted, whose name is a
web address.

Such a place says that a name stands there, whatever the words around it are. It does not say whether the name is a
firm's: words that English has are none of a person's name here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from h2htalk.detect.personal.english import persons
from h2htalk.detect.personal.english.persons import (
    COMMON,
    LOWER,
    RARE,
    WORD_NAME,
    Tokens,
    hint,
    is_word,
    words,
)
from h2htalk.text.language_data import pattern_table

_FILE = Path(__file__).parent / "words" / "announced_names.toml"
_LETTER, _END = 100, 120  # characters of a letter at least, and of its end that are read
_LONGEST = 4  # words of a name
_SHORTEST_HOST = 7  # letters of a name in a web address


_RE = pattern_table(_FILE, "patterns")


def announced_starts(tokens: Tokens, ends: list[int]) -> set[int]:
    """Where names begin that the form of a text gives, as places of characters. `ends` as of `persons.name_ends`."""
    starts = {_signature(tokens)}
    starts.update(_under_closings(tokens, ends))
    starts.update(_in_mail_headers(tokens))
    starts.update(_in_web_addresses(tokens))
    starts.update(_in_forms(tokens, ends))
    return starts


def _signature(tokens: Tokens) -> int:
    """Where the given name at the end of a letter begins; -1 where nobody signs."""
    start = max(0, len(tokens.text) - _END)
    found = _RE["signed"].search(tokens.text, start) if len(tokens.text) >= _LETTER else None
    at = bisect_left(tokens.starts, found.start("name")) if found else len(tokens)
    if found is None or at == len(tokens) or not (found["alone"] or found["rest"]):
        return -1
    closed = found["alone"] and _RE["closing"].search(tokens.text, start, found.start())
    least = RARE if found["alone"] == "\n" and not found["rest"] else WORD_NAME
    named = tokens.kinds[at] >= least and (
        "~" in found["rest"] or (found["alone"] or "~")[0] != ","
    )
    return tokens.starts[at] if closed or named else -1


def _under_closings(tokens: Tokens, ends: list[int]) -> Iterator[int]:
    """Names on a line of their own below "Best," or "Kind regards"."""
    if "\n" not in tokens.text:
        return
    for found in _RE["under_closing"].finditer(tokens.text):
        first = bisect_left(tokens.starts, found.start("name"))
        stop = bisect_left(tokens.starts, found.end("name"))
        while first < stop and tokens.words[first] in hint("titles"):
            first += 1
        if first == stop or tokens.blocked[first]:
            continue
        # In small letters, "thanks, lol" is no signature.
        least = RARE if tokens.shapes[first] == LOWER else 0
        whole = ends[first] >= stop
        if whole and tokens.kinds[first] >= least and persons.is_candidate(tokens, first):
            yield tokens.starts[first]


def _in_mail_headers(tokens: Tokens) -> Iterator[int]:
    """Names before a mail address in angle brackets, and before "wrote:" in the line above a quoted mail."""
    if "<" not in tokens.text and "wrote:" not in tokens.text:
        return
    for found in _RE["mail_header"].finditer(tokens.text):
        behind = found.start("behind") if found["behind"] else found.start("wrote")
        last = bisect_left(tokens.starts, behind) - 1
        first = _first_of_name(tokens, last)
        firm = found["box"] is not None and first == last and tokens.kinds[last] < RARE
        if first <= last and not firm:
            yield tokens.starts[first]


def _first_of_name(tokens: Tokens, last: int) -> int:
    """The first word of the name that ends with the word at `last`; `last` + 1 where it is none."""
    lists = words()
    first = last + 1
    while last - first + 1 < _LONGEST and first > 0:
        at = first - 1
        word = tokens.words[at]
        named = tokens.kinds[at] > 0 or word in lists.surnames or not is_word(word)
        if tokens.shapes[at] == LOWER or tokens.blocked[at] or not named:
            break
        if first <= last and tokens.gap(first) not in (" ", ". ", "-"):
            break
        first = at
    while first <= last and not persons.is_candidate(tokens, first):
        first += 1
    return first


def _in_forms(tokens: Tokens, ends: list[int]) -> Iterator[int]:
    """Names on the line above a house number, and behind the question for one: "What's your last name? Krylova"."""
    text = tokens.text
    found = list(_RE["above_number"].finditer(text)) if "\n" in text else []
    if "?" in text and "name" in text.lower():
        found += _RE["asked_name"].finditer(text)
    for match in found:
        first = bisect_left(tokens.starts, match.start("name"))
        stop = bisect_left(tokens.starts, match.end("name"))
        known = first < stop and (
            tokens.kinds[first] >= RARE or (stop - first == 1 and not is_word(tokens.words[first]))
        )
        if known and ends[first] >= stop and persons.is_candidate(tokens, first):
            yield tokens.starts[first]


def _in_web_addresses(tokens: Tokens) -> Iterator[int]:
    """Names of two words, the first a given one, that stand in one word in a web address of the text."""
    if "." not in tokens.text or not _RE["dotted"].search(tokens.text):
        return
    labels = {label.replace("-", "") for label in _RE["host_label"].findall(tokens.text.lower())}
    for index in range(len(tokens) - 1):
        if not tokens.kinds[index] or tokens.gap(index + 1) != " " or tokens.blocked[index]:
            continue
        joined = tokens.words[index] + tokens.words[index + 1]
        surname = tokens.words[index + 1]
        strange = not is_word(surname)
        whole = (strange or tokens.kinds[index] == COMMON) and any(
            label.startswith(joined) for label in labels
        )
        if len(joined) >= _SHORTEST_HOST and (
            whole or (strange and len(surname) > 4 and surname in labels)
        ):
            yield tokens.starts[index]
