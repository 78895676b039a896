"""What one dialogue holds of personal data: found in each message, then everywhere else where it is said again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.curation.anonymize.allow_list import AllowedSpan, find_allowed, is_whole_word, to_lower
from h2htalk.curation.anonymize.normalization import normalize_text, plain
from h2htalk.curation.anonymize.pattern_tables import pattern_table
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.values.leak_check import leaks
from h2htalk.curation.anonymize.values.value_index import HAN, SHORTEST, ValueIndex, find_reformatted
from h2htalk.curation.anonymize.values.value_variants import LEAKING, KnownValue, variants_of, visible_value

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
        return leaks(pieces, self.values.unambiguous())

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
