"""What one dialogue holds of personal data: found in each message, then everywhere else where it is said again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from h2htalk.curation.pii.allow import allowances, forms, low, whole
from h2htalk.curation.pii.extra_names import BUNDLED
from h2htalk.curation.pii.find import find_spans_many
from h2htalk.curation.pii.name_parts import Parts, name_parts
from h2htalk.curation.pii.normalize import plain, read
from h2htalk.curation.pii.spans import Span, resolve

# A value this long must not be seen again, in whatever place; shorter ones are too often part of something else.
LEAKING = 4
_FEW = 50  # values that are looked for one by one before a text is walked over
_HAN = re.compile("[\u4e00-\u9fff]")
_OPENS = re.compile(r"(?:^|[.!?。！？\n\"“”…:*(]|- )\s*$")
_TIMES = """
january february march april may june july august september october november december monday tuesday wednesday thursday
friday saturday sunday christmas easter spring summer autumn winter
"""
_MONTHS_AND_DAYS = frozenset(_TIMES.split())


@dataclass(frozen=True, slots=True)
class Value:
    """A piece of personal data: `form` in plain lower case, as it is looked for.

    `written` is its case where that counts: a name that is a word as well ("Will", "Grace") is only meant with its
    capital, inside a sentence.
    """

    form: str
    type: str
    score: float
    written: str = ""


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

    def find(self, shown: str) -> list[Span]:
        """Where values stand in a text (plain, in its own case); of those that begin together, the longest."""
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
        for value in self._values.get(form, ()):
            if not _bounded(lowered, at, form):
                continue
            if not value.written:
                return value
            if shown[at : at + size] == value.written and not _OPENS.search(shown, max(at - 8, 0), at):
                return value
        return None


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
        stays = [a for a in allowances(shown, self.language, self.allow) if a.kind != "title"]
        return [s for s in found if not any(a.start <= s.start and s.end <= a.end for a in stays)]

    def leak(self, texts: Iterable[str]) -> bool:
        """Whether a value of four characters or more is to be read in a text."""
        return any(s.end - s.start >= LEAKING for text in texts for s in self.again(shown_value(text)))


def find_in_dialogue(
    texts: Sequence[str], language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED
) -> DialogueData:
    """Personal data in the texts of one dialogue; the spans of a text are in order and do not overlap.

    What is found in one of them is marked in all, before and after: a value as it is written; of a Chinese name its
    given name of two characters or more, of others their given names and surnames. Arguments and errors as in
    `find_spans`.
    """
    found = find_spans_many(texts, language, allow=allow, ner=ner)
    own = {low(form) for name in allow for form in forms(name)}
    values = Values(value for value in _spoken(texts, found) if value.form not in own)
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


def _spoken(texts: Sequence[str], found: Sequence[Sequence[Span]]) -> list[Value]:
    """The values of a dialogue in every form in which they are looked for again."""
    values = []
    people: dict[str, float] = {}
    for text, spans in zip(texts, found, strict=True):
        for span in spans:
            written = shown_value(text[span.start : span.end])
            if span.type == "PERSON":
                people[written] = max(span.score, people.get(written, 0.0))
            elif len(written) >= LEAKING:
                values.append(Value(low(written), span.type, span.score))
    parts = name_parts(people)
    for name, score in people.items():
        values += _forms_of(name, parts[name], score)
    return values


def shown_value(value: str) -> str:
    """A value in plain characters, without unseen ones."""
    return plain(read(value).shown)


def _forms_of(name: str, parts: Parts, score: float) -> list[Value]:
    """How a person is called again."""
    values = (
        [Value(low(name), "PERSON", score)] if len(name) > 1 and (" " in name or _HAN.search(name)) else []
    )
    if _HAN.search(name):
        core = "".join(p.text for p in parts.parts if p.role not in ("kept", "nick"))
        if len(core) > 1 and len(core) < len(name) and _HAN.search(core) and not _is_word(core):
            values.append(Value(low(core), "PERSON", score))
        values += [
            Value(p.key, "PERSON", score) for p in parts.of("given") if len(p.key) > 1 and not _is_word(p.key)
        ]
    for part in parts.of("latin_given", "latin_surname", "foreign", "pinyin_given"):
        if part.role == "foreign":
            if len(part.text) > 2:
                values.append(Value(part.key, "PERSON", score))
        elif part.role != "pinyin_given" or len(part.key) > 4:
            single = _latin_form(part.text, score, surname=part.role == "latin_surname")
            values += [single] if single is not None else []
    return values


def _latin_form(word: str, score: float, *, surname: bool = False) -> Value | None:
    """One word of a name: in any case, or with its capital alone where it could be something else."""
    key = low(plain(word)).replace("’", "'")
    if len(key) < 2 or key in _MONTHS_AND_DAYS:
        return None
    if surname or len(key) == 2 or key in _english_words():
        return Value(low(plain(word)), "PERSON", score, plain(word)) if word[0].isupper() else None
    return Value(low(plain(word)), "PERSON", score)


@cache
def _english_words() -> frozenset[str]:
    from h2htalk.curation.pii.english_lists import words

    return frozenset(words().words)


def _is_word(name: str) -> bool:
    """Whether Chinese says it as a word too: 明天, 美丽, 文静."""
    from h2htalk.curation.pii.chinese_dictionary import tags

    tag = tags().get(name)
    return tag is not None and not tag.startswith("nr")
