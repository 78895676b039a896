"""What one dialogue holds of personal data: found in each message, then everywhere else where it is said again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from h2htalk.curation.anonymize.allow_list import AllowedSpan, find_allowed, is_whole_word, to_lower
from h2htalk.curation.anonymize.normalization import HAN_DIGITS, normalize_text, plain
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.values.value_variants import LEAKING, KnownValue, variants_of, visible_value
from h2htalk.text.language_data import pattern_table

_RE = pattern_table(Path(__file__).parent / "patterns.toml", "dialogue_values")

# The recogniser of what was found elsewhere in the dialogue first.
REPEATED = "RepeatedValue"
_LONG_NUMBER = 8  # characters: of such a number the last four are told


class KnownValues:
    """The values of one dialogue, found again in a text in one walk over it."""

    def __init__(self, values: Iterable[KnownValue]) -> None:
        forms: dict[str, list[KnownValue]] = {}
        for value in sorted(set(values), key=lambda v: (v.form, v.written != "", v.type, -v.score)):
            known = forms.setdefault(value.form, [])
            if not known or known[0].written:
                known.append(value)
        self._values = ValueIndex(forms.items())
        compact = [value for known in forms.values() for value in known if value.compact]
        numbers = {v.compact: (v.type, v.score) for v in compact if v.type != "PERSON"}
        people = {v.compact: (v.type, v.score) for v in compact if v.type == "PERSON"}
        self._numbers = ValueIndex((n, known) for n, known in numbers.items() if len(n) >= SHORTEST)
        self._people = ValueIndex((n, k) for n, k in people.items() if len(n) >= (2 if HAN.match(n) else SHORTEST))
        self._tails = {n[-4:]: known for n, known in sorted(numbers.items()) if len(n) >= _LONG_NUMBER}

    def __bool__(self) -> bool:
        """Whether there is any value."""
        return bool(self._values.values)

    def contains(self, name: str) -> bool:
        """Whether a name, in any case, is one of the values."""
        return to_lower(name) in self._values.values

    def find(self, text: str) -> list[Span]:
        """Where values stand in a text (plain, in its own case), as written or in another format."""
        reformatted = [*find_reformatted(text, self._numbers, self._people), *self._ends_of_numbers(text)]
        spans = self._as_written(text)
        return resolve_overlaps([*spans, *reformatted]) if reformatted else spans

    def unambiguous(self) -> list[str]:
        """The values, in lower case, that are nothing else wherever they stand: no words."""
        return sorted(v.form for known in self._values.values.values() for v in known if not (v.written or v.needs_cue))

    def _ends_of_numbers(self, text: str) -> list[Span]:
        """The last four digits of a number, said to be such."""
        if not self._tails:
            return []
        lowered = to_lower(text)
        hits = [(m.span(1), m[1]) for m in _RE["tail"].finditer(lowered)]
        hits += [(m.span(m.lastindex or 1), m[m.lastindex or 1]) for m in _RE["masked_number"].finditer(lowered)]
        said = [(place, self._tails.get(_RE["marks"].sub("", end))) for place, end in sorted(hits)]
        return [Span(*place, *known) for place, known in said if known is not None]

    def _as_written(self, text: str) -> list[Span]:
        lowered = to_lower(text)

        def meant(start: int, end: int) -> KnownValue | None:
            values = self._values.values[lowered[start:end]]
            return next((value for value in values if _is_meant(text, lowered, start, value)), None)

        found = self._values.find(lowered, lambda start, end: meant(start, end) is not None)
        return [Span(start, end, v.type, v.score) for start, end, _ in found if (v := meant(start, end)) is not None]


def _is_meant(text: str, lowered: str, at: int, value: KnownValue) -> bool:
    """Whether the characters of a value are that value there: no part of a word, and no word that a name is too."""
    end = at + len(value.form)
    if not _is_bounded(lowered, at, value.form) and not _is_family_plural(lowered, at, value):
        return False
    if value.written:
        return _is_used_as_name(text, at, value.written)
    return not value.needs_cue or _is_beside_cue(lowered, at, end)


def _is_used_as_name(text: str, at: int, written: str) -> bool:
    """Whether a word that is a name too is meant as one: by its capital, or by its capitals among small letters."""
    end = at + len(written)
    if text[at:end] == written:
        return _RE["vocative"].match(text, end) is not None or not _RE["sentence_start"].search(
            text, max(at - 8, 0), at
        )
    around = text[max(at - 20, 0) : at] + text[end : end + 20]
    return len(written) > 2 and text[at:end] == written.upper() and any(map(str.islower, around))


def _is_beside_cue(text: str, start: int, end: int) -> bool:
    return (
        _RE["naming"].search(text, max(start - 6, 0), start) is not None
        or _RE["spoken_to"].match(text, end) is not None
    )


def _is_family_plural(text: str, at: int, value: KnownValue) -> bool:
    """Whether a name stands there as a family's: the Whitmores."""
    end = at + len(value.form)
    if value.type != "PERSON" or value.written or len(value.form) < LEAKING or not value.form.isalpha():
        return False
    return text[end : end + 1] == "s" and is_whole_word(text, at, value.form + "s")


def _is_bounded(text: str, at: int, form: str) -> bool:
    """Whether a value stands for itself there: Latin words not inside others; long numbers anywhere."""
    return (form.isdigit() and len(form) >= 6) or is_whole_word(text, at, form)


@dataclass(frozen=True, slots=True)
class DialogueData:
    """The personal data of one dialogue: `spans` of each of its texts, and the `values` in them."""

    spans: tuple[tuple[Span, ...], ...]
    values: KnownValues
    language: str
    allow: tuple[str, ...]

    def find_known(self, text: str) -> list[Span]:
        """Where values stand in a text (plain), outside names that stay: no "Harry" in "Harry Potter"."""
        spans = self.values.find(text)
        if not spans:
            return spans
        stays = self.allowed_names(text)
        return [s for s in spans if not any(a.start <= s.start and s.end <= a.end for a in stays)]

    def allowed_names(self, text: str) -> list[AllowedSpan]:
        """Names that stay in a text (plain): a figure's does not once somebody of this dialogue bears it."""
        return [
            a
            for a in find_allowed(text, self.language, self.allow)
            if a.kind == "companion" or (a.kind == "figure" and not self.values.contains(text[a.start : a.end]))
        ]

    def leaks(self, texts: Iterable[str]) -> bool:
        """Whether a value of four characters or more is to be read in a text, outside names that stay."""
        if not self.values:
            return False
        plain_texts = [visible_value(text) for text in texts]
        if any(s.end - s.start >= LEAKING for text in plain_texts for s in self.find_known(text)):
            return True
        pieces = [piece for text in plain_texts for piece in self._around_allowed(text)]
        return _leaks(pieces, self.values.unambiguous())

    def _around_allowed(self, text: str) -> Iterator[str]:
        at = 0
        for stays in self.allowed_names(text):
            yield text[at : stays.start]
            at = stays.end
        yield text[at:]


def collect_values(
    texts: Sequence[str], spans_of_texts: Sequence[list[Span]], language: str, allow: Sequence[str] = ()
) -> DialogueData:
    """The values of a dialogue, and their spans in all of its texts: in order, without overlaps.

    What was found in one text is marked in all, before and after: a value as it is written; of a Chinese name its given
    name of two characters or more, of others their given names and surnames.
    """
    own = {to_lower(name) for name in allow}
    values = KnownValues(value for value in variants_of(texts, spans_of_texts) if value.form not in own)
    data = DialogueData(tuple(map(tuple, spans_of_texts)), values, language, tuple(allow))
    if not values:
        return data
    spans = tuple(tuple(_add_known(text, own, data)) for text, own in zip(texts, spans_of_texts, strict=True))
    return replace(data, spans=spans)


def _add_known(text: str, spans: list[Span], data: DialogueData) -> list[Span]:
    normalized = normalize_text(text)
    repeated = [
        replace(span, start=offsets[0], end=offsets[1], found_by=REPEATED)
        for span in data.find_known(plain(normalized.visible))
        for offsets in [normalized.original_span(span.start, span.end)]
    ]
    added = _merge_known(spans, repeated)
    return resolve_overlaps(added) if added is not spans else spans


def _merge_known(spans: list[Span], repeated: list[Span]) -> list[Span]:
    """What is said again where nothing was found, or where less of it was."""
    kept: list[Span] = []
    at = 0
    dropped: set[Span] = set()
    for span in repeated:
        while at < len(spans) and spans[at].end <= span.start:
            at += 1
        touching = []
        reach = at
        while reach < len(spans) and spans[reach].start < span.end:
            touching.append(spans[reach])
            reach += 1
        if all(
            span.start <= t.start and t.end <= span.end and t.end - t.start < span.end - span.start for t in touching
        ):
            kept.append(span)
            dropped.update(touching)
    return [*(s for s in spans if s not in dropped), *kept] if kept else spans


# --- Values in a text, as they are written or with other marks between their characters ---

T = TypeVar("T")
_START = 2  # characters by which values are told apart first
_FEW_VALUES = 50  # values that are looked for one by one before a text is walked over
SHORTEST = 6  # digits and letters of a reformatted value: shorter ones are met by chance
HAN = re.compile("[\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_\u4e00-\u9fff]")
_HAN_DIGITS = str.maketrans(HAN_DIGITS)
_NUMBER_CHARS = re.compile("[0-9a-z]")
_NAME_CHARS = re.compile(r"[^\W\d_]")
_NUMBER_MARKS = re.compile(r"[\s.·/()_,，、:*+\-]{0,3}")
_NAME_MARKS = re.compile(r"[ ._*·'\-]?")

Known = tuple[str, float]  # type, score


class ValueIndex(Generic[T]):
    """What is known of each value, found by the value's first characters."""

    def __init__(self, values: Iterable[tuple[str, T]]) -> None:
        self.values = dict(values)
        self._sizes: dict[str, list[int]] = {}
        for size in sorted({len(value) for value in self.values}, reverse=True):
            for start in {value[:_START] for value in self.values if len(value) == size}:
                self._sizes.setdefault(start, []).append(size)

    def find(
        self, text: str, accepted: Callable[[int, int], bool] = lambda start, end: True
    ) -> Iterator[tuple[int, int, T]]:
        """(start, end, what is known) of each value in a text; of those that begin together, the longest accepted."""
        if len(self.values) <= _FEW_VALUES and not any(value in text for value in self.values):
            return
        at = 0
        while at < len(text):
            end = at + 1
            for size in self._sizes.get(text[at : at + _START], ()):
                known = self.values.get(text[at : at + size])
                if known is not None and at + size <= len(text) and accepted(at, at + size):
                    end = at + size
                    yield at, end, known
                    break
            at = end


def find_reformatted(shown: str, numbers: ValueIndex[Known], names: ValueIndex[Known]) -> list[Span]:
    """Where numbers and full names stand in a text (plain), in order, with a mark or two between their characters."""
    lowered = to_lower(shown)
    hits = [
        hit
        for hit in _compact(lowered.translate(_HAN_DIGITS), numbers, _NUMBER_CHARS, _NUMBER_MARKS)
        if _is_whole_number(lowered, hit.start, hit.end)
    ]
    for hit in _compact(lowered, names, _NAME_CHARS, _NAME_MARKS):
        # Han characters that stand together are looked for as they are.
        apart = len(HAN.findall(lowered, hit.start, hit.end)) < hit.end - hit.start
        if apart and not any(_LETTER.fullmatch(lowered[at : at + 1]) for at in (hit.start - 1, hit.end) if at >= 0):
            hits.append(hit)
    return sorted(hits)


def _compact(text: str, index: ValueIndex[Known], chars: re.Pattern[str], marks: re.Pattern[str]) -> Iterator[Span]:
    """Values in the text's characters of a kind, where nothing but a mark or two stands between those."""
    if not index.values:
        return
    places = [m.start() for m in chars.finditer(text)]

    def is_close(start: int, end: int) -> bool:
        return all(marks.fullmatch(text, places[n] + 1, places[n + 1]) for n in range(start, end - 1))

    for start, end, known in index.find("".join([text[at] for at in places]), is_close):
        yield Span(places[start], places[end - 1] + 1, *known)


def _is_whole_number(text: str, start: int, end: int) -> bool:
    """Whether a number is not part of a longer one; one of digits in a row may stand in anything."""
    found = text[start:end].translate(_HAN_DIGITS)
    if found.isdigit():
        return True
    others = re.compile("[0-9]" if found.upper() == found else "[0-9a-z]")  # digits and marks alone, or letters too
    return not (others.match(text[max(start - 1, 0) : start]) or others.match(text[end : end + 1]))


# --- Whether a value is still to be read in a text ---

# Characters: shorter words, Chinese names and numbers are parts of something else.
_LONG_WORD, _HAN_NAME, _NUMBER = 4, 3, 6
_TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")
_NO_NUMBER = re.compile("[^0-9a-z]+")
# Between digits of one number.
_MARKS = re.compile(r"(?<=[0-9])[^\w\n]{1,3}(?=[0-9])")


def _leaks(texts: Iterable[str], values: Iterable[str]) -> bool:
    """Whether one of the values, as written, stands in one of the texts.

    It is stricter than the search that marks values, and apart from it. Both are compared in one case and one width,
    without unseen characters and marks; numbers by their digits alone.
    """
    folded = [_folded(text) for text in texts]
    # A text's words between spaces, so that a value is found as words of its own, whatever marks part them.
    words = [f" {' '.join(_TOKEN.findall(text))} " for text in folded]
    streams = [text.replace(" ", "") for text in words]
    numbers = [_MARKS.sub("", text.translate(_HAN_DIGITS)) for text in folded]
    for value in values:
        tokens = _TOKEN.findall(_folded(value))
        digits = _NO_NUMBER.sub("", _folded(value).translate(_HAN_DIGITS))
        if digits.isdigit() and len(digits) >= _NUMBER and any(digits in text for text in numbers):
            return True
        whole = "".join(tokens)
        if len(whole) < (_HAN_NAME if "\u4e00" <= whole[:1] <= "\u9fff" else _LONG_WORD):
            continue
        # Of a name in several words the letters may be parted anywhere.
        pattern = " ?".join(whole) if len(tokens) > 1 else whole
        for text, stream in zip(words, streams, strict=True):
            if whole in stream and re.search(f" {pattern} ", text):
                return True
    return False


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """In one case and width, without what nobody sees."""
    folded = unicodedata.normalize("NFKC", plain(normalize_text(text).visible)).casefold()
    if folded.isascii():
        return folded
    return "".join([c for c in folded if unicodedata.category(c) not in ("Cf", "Mn")])
