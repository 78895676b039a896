"""What one dialogue holds of personal data: found in each message, then everywhere else where it is said again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from h2htalk.curation.anonymize.allow_list import Allowance, allowances, low, whole
from h2htalk.curation.anonymize.find_spans import find_spans_many
from h2htalk.curation.anonymize.ner_models import BUNDLED
from h2htalk.curation.anonymize.normalization import plain, read
from h2htalk.curation.anonymize.spans import Span, resolve
from h2htalk.curation.anonymize.values.leak_check import Leaks
from h2htalk.curation.anonymize.values.reformatted_values import Dresses
from h2htalk.curation.anonymize.values.value_variants import LEAKING, Value, shown_value, spoken_again

_FEW = 50  # values that are looked for one by one before a text is walked over
_LONG_NUMBER = 8  # characters: of such a number the last four are told
_TAIL = re.compile(
    r"(?:last (?:four|4)(?: digits)?|(?<![a-z])end(?:s|ing)(?: (?:in|with|on))?"
    r"|[后末](?:四|4)位(?:数字?)?|尾号|尾数|结尾)"
    r"[^0-9a-z\n]{0,3}(?:(?:are|is|of)[^0-9a-z\n]{1,2})?((?:[0-9][ -]?){3}[0-9x])(?![0-9])"
)
# A number with stars for all but its end, and the Chinese word behind it: **** 1234, 1234结尾.
_MASKED = re.compile(
    r"(?:[*•]{2,6}[ -]?){1,4}([0-9]{3}[0-9x])(?![0-9])|(?<![0-9])([0-9]{3}[0-9x])(?=结尾|收尾)"
)
_MARKS = re.compile("[ -]")
# Beside a Chinese name that is a word as well.
_NAMING = re.compile("(?:叫|名字是|我是|姓名[:：]?|[妈爸姐妹哥弟]|朋友|同学|同桌|闺蜜|老师)$")
_SPOKEN_TO = re.compile("你好|您好|老师|同学|姐|哥|妹|说|呢")
_CALLED_OUT = re.compile("[,:]|['’]s")
_OPENS = re.compile(r"(?:^|[.!?。！？\n\"“”…:*(]|- )\s*$")


class Values:
    """The values of one dialogue, found again in a text in one walk over it."""

    def __init__(self, values: Iterable[Value]) -> None:
        self._values: dict[str, list[Value]] = {}
        self._lengths: dict[str, list[int]] = {}
        for value in sorted(set(values), key=lambda v: (v.form, v.written != "", v.type, -v.score)):
            known = self._values.setdefault(value.form, [])
            if not known or known[0].written:
                known.append(value)
        for form in self._values:
            lengths = self._lengths.setdefault(form[:2], [])
            if len(form) not in lengths:
                lengths.append(len(form))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)
        dressed = [value for known in self._values.values() for value in known if value.dress]
        numbers = {v.dress: (v.type, v.score) for v in dressed if v.type != "PERSON"}
        self._dresses = Dresses(
            numbers.items(), {v.dress: (v.type, v.score) for v in dressed if v.type == "PERSON"}.items()
        )
        self._tails = {n[-4:]: known for n, known in sorted(numbers.items()) if len(n) >= _LONG_NUMBER}

    def holds(self, name: str) -> bool:
        """Whether a name, in any case, is one of the values."""
        return low(name) in self._values

    def find(self, shown: str) -> list[Span]:
        """Where values stand in a text (plain, in its own case), as written or in another dress."""
        dressed = [*self._dresses.find(shown), *self._ends_of_numbers(shown)]
        found = self._as_written(shown)
        return resolve([*found, *dressed]) if dressed else found

    def certain(self) -> list[str]:
        """The values, in lower case, that are nothing else wherever they stand: no words."""
        return sorted(v.form for known in self._values.values() for v in known if not (v.written or v.cued))

    def _ends_of_numbers(self, shown: str) -> list[Span]:
        """The last four digits of a number, said to be such."""
        if not self._tails:
            return []
        lowered = low(shown)
        hits = [(m.span(1), m[1]) for m in _TAIL.finditer(lowered)]
        hits += [(m.span(m.lastindex or 1), m[m.lastindex or 1]) for m in _MASKED.finditer(lowered)]
        said = [(place, self._tails.get(_MARKS.sub("", end))) for place, end in sorted(hits)]
        return [Span(*place, *known) for place, known in said if known is not None]

    def _as_written(self, shown: str) -> list[Span]:
        """In one walk over the text; of those that begin together, the longest."""
        lowered = low(shown)
        found: list[Span] = []
        if len(self._values) <= _FEW and not any(form in lowered for form in self._values):
            return found
        at = 0
        while at < len(lowered):
            length = 0
            for size in self._lengths.get(lowered[at : at + 2], ()):
                value = self._at(shown, lowered, at, size)
                if value is not None:
                    found.append(Span(at, at + size, value.type, value.score))
                    length = size
                    break
            at += max(length, 1)
        return found

    def _at(self, shown: str, lowered: str, at: int, size: int) -> Value | None:
        form = lowered[at : at + size]
        if len(form) < size:  # the text ends sooner: what is left may be another, shorter value
            return None
        for value in self._values.get(form, ()):
            if not _bounded(lowered, at, form) and not _plural(lowered, at, value):
                continue
            if value.written:
                if not _as_a_name(shown, at, value.written):
                    continue
            elif value.cued and not _beside_a_cue(lowered, at, at + size):
                continue
            return value
        return None


def _as_a_name(shown: str, at: int, written: str) -> bool:
    """Whether a word that is a name too is meant as one: by its capital, or by its capitals among small letters."""
    end = at + len(written)
    if shown[at:end] == written:
        return _CALLED_OUT.match(shown, end) is not None or not _OPENS.search(shown, max(at - 8, 0), at)
    around = shown[max(at - 20, 0) : at] + shown[end : end + 20]
    return len(written) > 2 and shown[at:end] == written.upper() and any(map(str.islower, around))


def _beside_a_cue(text: str, start: int, end: int) -> bool:
    return (
        _NAMING.search(text, max(start - 6, 0), start) is not None or _SPOKEN_TO.match(text, end) is not None
    )


def _plural(text: str, at: int, value: Value) -> bool:
    """Whether a name stands there as a family's: the Whitmores."""
    end = at + len(value.form)
    if value.type != "PERSON" or value.written or len(value.form) < LEAKING or not value.form.isalpha():
        return False
    return text[end : end + 1] == "s" and whole(text, at, value.form + "s")


def _bounded(text: str, at: int, form: str) -> bool:
    """Whether a value stands for itself there: Latin words not inside others; long numbers anywhere."""
    return (form.isdigit() and len(form) >= 6) or whole(text, at, form)


@dataclass(frozen=True, slots=True)
class DialogueData:
    """The personal data of one dialogue: `spans` of each of its texts, and the `values` in them."""

    spans: tuple[tuple[Span, ...], ...]
    values: Values
    language: str
    allow: tuple[str, ...]

    def again(self, shown: str) -> list[Span]:
        """Where values stand in a text (plain), outside names that stay: no "Harry" in "Harry Potter"."""
        found = self.values.find(shown)
        if not found:
            return found
        stays = self.staying(shown)
        return [s for s in found if not any(a.start <= s.start and s.end <= a.end for a in stays)]

    def staying(self, shown: str) -> list[Allowance]:
        """Names that stay in a text (plain): a figure's does not once somebody of this dialogue bears it."""
        return [
            a
            for a in allowances(shown, self.language, self.allow)
            if a.kind == "companion" or (a.kind == "figure" and not self.values.holds(shown[a.start : a.end]))
        ]

    def leak(self, texts: Iterable[str]) -> bool:
        """Whether a value of four characters or more is to be read in a text, outside names that stay."""
        shown = [shown_value(text) for text in texts]
        if any(s.end - s.start >= LEAKING for text in shown for s in self.again(text)):
            return True
        return Leaks(piece for text in shown for piece in self._without_staying(text)).holds(
            self.values.certain()
        )

    def _without_staying(self, shown: str) -> Iterator[str]:
        at = 0
        for stays in self.staying(shown):
            yield shown[at : stays.start]
            at = stays.end
        yield shown[at:]


def find_in_dialogue(
    texts: Sequence[str], language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED
) -> DialogueData:
    """Personal data in the texts of one dialogue; the spans of a text are in order and do not overlap.

    What is found in one of them is marked in all, before and after: a value as it is written; of a Chinese name its
    given name of two characters or more, of others their given names and surnames. Arguments and errors as in
    `find_spans`.
    """
    found = find_spans_many(texts, language, allow=allow, ner=ner)
    own = {low(name) for name in allow}
    values = Values(value for value in spoken_again(texts, found) if value.form not in own)
    data = DialogueData((), values, language, tuple(allow))
    spans = tuple(tuple(_with_again(text, own, data)) for text, own in zip(texts, found, strict=True))
    return replace(data, spans=spans)


def _with_again(text: str, spans: list[Span], data: DialogueData) -> list[Span]:
    reading = read(text)
    again = [
        replace(span, start=place[0], end=place[1])
        for span in data.again(plain(reading.shown))
        for place in [reading.place(span.start, span.end)]
    ]
    added = _added(spans, again)
    return resolve(added) if added is not spans else spans


def _added(spans: list[Span], again: list[Span]) -> list[Span]:
    """What is said again where nothing was found, or where less of it was."""
    kept: list[Span] = []
    at = 0
    dropped: set[Span] = set()
    for span in again:
        while at < len(spans) and spans[at].end <= span.start:
            at += 1
        touching = []
        reach = at
        while reach < len(spans) and spans[reach].start < span.end:
            touching.append(spans[reach])
            reach += 1
        if all(
            span.start <= t.start and t.end <= span.end and t.end - t.start < span.end - span.start
            for t in touching
        ):
            kept.append(span)
            dropped.update(touching)
    return [*(s for s in spans if s not in dropped), *kept] if kept else spans
