"""The values of one dialogue: every form in which they are said again, where these stand, and whether any is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.curation.anonymize.allow_list import COMPANION, FIGURE, find_allowed, is_whole_word, to_lower
from h2htalk.curation.anonymize.english.tokens import words
from h2htalk.curation.anonymize.normalization import HAN_DIGITS, normalize_text, plain, value_shape
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.values.name_parts import NameParts, name_parts, name_words
from h2htalk.text.language_data import pattern_table
from h2htalk.text.phrases import PhraseIndex

_RE = pattern_table(Path(__file__).parent / "patterns.toml", "dialogue_values")
_HAN = re.compile("[\u4e00-\u9fff]")
# The recogniser of what was found elsewhere in the dialogue first.
REPEATED = "RepeatedValue"
# A value this long must not be seen again, in whatever place; shorter ones are too often part of something else.
LEAKING = 4
_SHORTEST = 6  # digits and letters of a reformatted value: shorter ones are met by chance

_NUMBERED = frozenset({"PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER", "QQ", "WECHAT", "LICENSE_PLATE"})

Known = tuple[str, float]  # type, score


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A piece of personal data: `form` in plain lower case, as it is looked for.

    `written` is its case where that counts: a name that is a word as well ("Will", "Grace") is only meant with its
    capital, inside a sentence. A `needs_cue` name is a Chinese word as well (周末): only what stands beside it tells.
    `compact`: the letters and digits by which a number or a full name is known in whatever other marks.
    """

    form: str
    type: str
    score: float
    written: str = ""
    needs_cue: bool = False
    compact: str = ""


class KnownValues:
    """The values of one dialogue, found again in a text in one walk over it."""

    def __init__(self, values: Iterable[KnownValue]) -> None:
        forms: dict[str, list[KnownValue]] = {}
        for value in sorted(set(values), key=lambda v: (v.form, v.written != "", v.type, -v.score)):
            known = forms.setdefault(value.form, [])
            if not known or known[0].written:
                known.append(value)
        self._forms = forms
        self._index = PhraseIndex(forms.items())
        compact = [value for known in forms.values() for value in known if value.compact]
        numbers = {v.compact: (v.type, v.score) for v in compact if v.type != "PERSON"}
        people = {v.compact: (v.type, v.score) for v in compact if v.type == "PERSON"}
        self._numbers = PhraseIndex((n, known) for n, known in numbers.items() if len(n) >= _SHORTEST)
        self._people = PhraseIndex((n, k) for n, k in people.items() if len(n) >= (2 if _HAN.match(n) else _SHORTEST))

    def __bool__(self) -> bool:
        """Whether there is any value."""
        return bool(self._forms)

    def contains(self, name: str) -> bool:
        """Whether a name, in any case, is one of the values."""
        return to_lower(name) in self._forms

    def find(self, text: str) -> list[Span]:
        """Where values stand in a text (plain, in its own case), as written or in another format."""
        lowered = to_lower(text)
        spans = self._as_written(text, lowered)
        reformatted = _find_reformatted(lowered, self._numbers, self._people)
        return resolve_overlaps([*spans, *reformatted]) if reformatted else spans

    def _as_written(self, text: str, lowered: str) -> list[Span]:
        def meant(start: int, end: int) -> KnownValue | None:
            values = self._forms[lowered[start:end]]
            return next((value for value in values if _is_meant(text, lowered, start, value)), None)

        found = self._index.find(lowered, lambda _, start, end: meant(start, end) is not None)
        return [Span(start, end, v.type, v.score) for start, end, _ in found if (v := meant(start, end)) is not None]


def _is_meant(text: str, lowered: str, start: int, value: KnownValue) -> bool:
    """Whether the characters of a value are that value there: no part of a word, and no word that a name is too."""
    end = start + len(value.form)
    long_number = value.form.isdigit() and len(value.form) >= _SHORTEST
    if not (long_number or is_whole_word(lowered, start, end) or _is_family_plural(lowered, start, value)):
        return False
    if value.written:
        return _is_used_as_name(text, start, value.written)
    if not value.needs_cue:
        return True
    naming = _RE["naming"].search(lowered, max(start - 6, 0), start)
    return naming is not None or _RE["spoken_to"].match(lowered, end) is not None


def _is_used_as_name(text: str, at: int, written: str) -> bool:
    """Whether a word that is a name too is meant as one: by its capital, or by its capitals among small letters."""
    end = at + len(written)
    if text[at:end] == written:
        begins = _RE["sentence_start"].search(text, max(at - 8, 0), at)
        return not begins or _RE["vocative"].match(text, end) is not None
    around = text[max(at - 20, 0) : at] + text[end : end + 20]
    return len(written) > 2 and text[at:end] == written.upper() and any(map(str.islower, around))


def _is_family_plural(text: str, at: int, value: KnownValue) -> bool:
    """Whether a name stands there as a family's: the Whitmores."""
    end = at + len(value.form)
    if value.type != "PERSON" or value.written or len(value.form) < LEAKING or not value.form.isalpha():
        return False
    return text[end : end + 1] == "s" and is_whole_word(text, at, end + 1)


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
        # A figure's name does not stay once somebody of this dialogue bears it.
        stays = [
            a
            for a in find_allowed(text, self.language, self.allow)
            if a.type == COMPANION or (a.type == FIGURE and not self.values.contains(text[a.start : a.end]))
        ]
        return [s for s in spans if not any(a.start <= s.start and s.end <= a.end for a in stays)]

    def leaks(self, texts: Iterable[str]) -> bool:
        """Whether a value of four characters or more is to be read in a text, outside names that stay."""
        return any(s.end - s.start >= LEAKING for text in texts for s in self.find_known(visible_value(text)))


def collect_values(
    texts: Sequence[str], spans_of_texts: Sequence[list[Span]], language: str, allow: Sequence[str] = ()
) -> DialogueData:
    """The values of a dialogue, and their spans in all of its texts: in order, without overlaps.

    What was found in one text is marked in all, before and after: a value as it is written; of a Chinese name its given
    name of two characters or more, of others their given names and surnames.
    """
    own = {to_lower(name) for name in allow}
    values = KnownValues(value for value in _variants_of(texts, spans_of_texts) if value.form not in own)
    data = DialogueData(tuple(map(tuple, spans_of_texts)), values, language, tuple(allow))
    if not values:
        return data
    spans = tuple(tuple(_add_known(text, own, data)) for text, own in zip(texts, spans_of_texts, strict=True))
    return replace(data, spans=spans)


def _add_known(text: str, spans: list[Span], data: DialogueData) -> list[Span]:
    """The spans of a text, with what is said again where nothing was found, or where less of it was."""
    normalized = normalize_text(text)
    kept: list[Span] = []
    at = 0
    dropped: set[Span] = set()
    for known in data.find_known(plain(normalized.visible)):
        start, end = normalized.original_span(known.start, known.end)
        while at < len(spans) and spans[at].end <= start:
            at += 1
        reach = at
        while reach < len(spans) and spans[reach].start < end:
            reach += 1
        touching = spans[at:reach]
        if all(start <= t.start and t.end <= end and t.end - t.start < end - start for t in touching):
            kept.append(replace(known, start=start, end=end, found_by=REPEATED))
            dropped.update(touching)
    return resolve_overlaps([*(s for s in spans if s not in dropped), *kept]) if kept else spans


# --- Values with other marks between their characters ---

_LETTER = re.compile(r"[^\W\d_\u4e00-\u9fff]")
_HAN_DIGITS = str.maketrans(HAN_DIGITS)
_NUMBER_CHARS = re.compile("[0-9a-z]")
_NAME_CHARS = re.compile(r"[^\W\d_]")
_NUMBER_MARKS = re.compile(r"[\s.·/()_,，、:*+\-]{0,3}")
_NAME_MARKS = re.compile(r"[ ._*·'\-]?")


def _find_reformatted(lowered: str, numbers: PhraseIndex[Known], names: PhraseIndex[Known]) -> list[Span]:
    """Where numbers and full names stand in a text, in order, with a mark or two between their characters."""
    hits = [
        hit
        for hit in _compact(lowered.translate(_HAN_DIGITS), numbers, _NUMBER_CHARS, _NUMBER_MARKS)
        if _is_whole_number(lowered, hit.start, hit.end)
    ]
    for hit in _compact(lowered, names, _NAME_CHARS, _NAME_MARKS):
        # Han characters that stand together are looked for as they are.
        apart = len(_HAN.findall(lowered, hit.start, hit.end)) < hit.end - hit.start
        if apart and not any(_LETTER.fullmatch(lowered[at : at + 1]) for at in (hit.start - 1, hit.end) if at >= 0):
            hits.append(hit)
    return sorted(hits)


def _compact(text: str, index: PhraseIndex[Known], chars: re.Pattern[str], marks: re.Pattern[str]) -> Iterator[Span]:
    """Values in the text's characters of a kind, where nothing but a mark or two stands between those."""
    if not index:
        return
    places = [m.start() for m in chars.finditer(text)]

    def is_close(_: str, start: int, end: int) -> bool:
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


# --- How a value is said again ---


def _variants_of(texts: Sequence[str], spans_of_texts: Sequence[Sequence[Span]]) -> list[KnownValue]:
    """The values of a dialogue in every form in which they are looked for again."""
    values = []
    people: dict[str, float] = {}
    for text, spans in zip(texts, spans_of_texts, strict=True):
        for span in spans:
            written = visible_value(text[span.start : span.end])
            if span.type == "PERSON":
                people[written] = max(span.score, people.get(written, 0.0))
            elif len(written) >= LEAKING:
                values += _other_variants(written, span)
    parts = name_parts(people) if people else {}
    for name, score in people.items():
        values += _name_variants(name, parts[name], score)
    return values


def visible_value(value: str) -> str:
    """A value in plain characters, without unseen ones."""
    return plain(normalize_text(value).visible)


def _other_variants(written: str, span: Span) -> list[KnownValue]:
    """How what is no person is said again."""
    kind, score = span.type, span.score
    if kind in _NUMBERED:
        compact = value_shape(written).compact
        compact = compact if any(map(str.isdigit, compact)) else ""
        values = [KnownValue(to_lower(written), kind, score, compact=compact)]
        home = home_number(written).removeprefix("0") if kind == "PHONE_NUMBER" else compact
        return values if home == compact or len(home) < 9 else [*values, KnownValue(home, kind, score, compact=home)]
    forms = [to_lower(written)]
    if kind == "HANDLE" and len(written.lstrip("@")) > LEAKING:
        forms.append(forms[0].lstrip("@"))
    if kind == "ADDRESS":
        forms += [form for form in address_variants(written) if not (_HAN.search(form) and _is_word(form))]
    codes = postcodes(written) if kind == "ADDRESS" else []
    return [KnownValue(f, kind, score) for f in forms] + [KnownValue(c, kind, score, compact=c) for c in codes]


def _letters(name: str) -> str:
    """The letters of a full name, as it is written in one word; '' where it has one part."""
    words = _WORD.findall(to_lower(name))
    if _HAN.search(name):
        return name if len(words) == 1 and len(name) <= 4 else ""
    return "".join(words) if len(words) > 1 and all(len(word) > 1 for word in words) else ""


def _name_variants(name: str, parts: NameParts, score: float) -> list[KnownValue]:
    """How a person is called again."""
    values, forms = [], []
    han = _HAN.search(name) is not None
    if len(name) > 1 and (han or " " in name):
        cue = han and _is_word(name)
        values.append(KnownValue(to_lower(name), "PERSON", score, needs_cue=cue, compact="" if cue else _letters(name)))
    if han:
        core = "".join(p.text for p in parts.parts if p.role not in ("kept", "nick"))
        told = [core] if len(core) < len(name) and _HAN.search(core) else []
        told += [part.key for part in parts.with_role("given")]
        forms = [to_lower(form) for form in told if len(form) > 1 and not _is_word(form)]
    forms += [part.key for part in parts.with_role("foreign") if len(part.text) > 2]
    values += [KnownValue(form, "PERSON", score) for form in forms]
    for part in parts.with_role("latin_given", "latin_surname", "pinyin_given"):
        if part.role != "pinyin_given" or len(part.key) > 4:
            values += _latin_variant(part.text, score, surname=part.role == "latin_surname")
    return values


def _latin_variant(word: str, score: float, *, surname: bool) -> list[KnownValue]:
    """One word of a name: in any case, or with its capital alone where it could be something else."""
    form = to_lower(plain(word))
    key = form.replace("’", "'")
    if len(key) < 2 or key in name_words()["times"]:
        return []
    if len(key) == 2 or key in words().words or (surname and (len(key) == 3 or key in name_words()["surname_words"])):
        return [KnownValue(form, "PERSON", score, plain(word))] if word[0].isupper() else []
    return [KnownValue(form, "PERSON", score)]


def _is_word(name: str) -> bool:
    """Whether Chinese says it as a word too: 明天, 美丽, 文静."""
    from h2htalk.curation.anonymize.chinese.words import tags

    tag = tags().get(name)
    return tag is not None and not tag.startswith("nr")


_SHORT = {"street": "st", "road": "rd", "avenue": "ave", "lane": "ln", "drive": "dr", "court": "ct", "place": "pl",
          "boulevard": "blvd", "terrace": "ter", "square": "sq"}  # fmt: skip
_LONG = {short: long for long, short in _SHORT.items()}
_KINDS = "|".join([*_SHORT, *_LONG, "close", "crescent", "gardens", "grove", "row", "mews", "way"])
_STREET = re.compile(rf"(?<![^\W_])([^\W\d_]+(?: [^\W\d_]+)?) ({_KINDS})(?![^\W_])")
_WORD = re.compile(r"[^\W\d_]+")


def address_variants(written: str) -> Iterator[str]:
    """Streets (with the kind of street in full and short) and estates of an address, in lower case."""
    if _HAN.search(written):
        for match in (*_RE["road"].finditer(written), *_RE["estate"].finditer(written)):
            yield match.group()
        return
    for street in _STREET.finditer(to_lower(written)):
        name, kind = street.groups()
        for other in {kind, _SHORT.get(kind, kind), _LONG.get(kind, kind)}:
            yield f"{name} {other}"


def postcodes(written: str) -> list[str]:
    """British postcodes of an address, letters and digits alone; else the ZIP code that ends an American one."""
    british = ["".join(match.groups()) for match in _RE["postcode"].finditer(to_lower(written))]
    return british or _RE["zip"].findall(written)


# Codes of countries and the numbers that follow them, each with what is dialled before it at home.
_ABROAD = (
    (re.compile(r"(?:00)?86(1[3-9][0-9]{9})"), ""),
    (re.compile(r"(?:00)?860?([1-9][0-9]{9,10})"), "0"),
    (re.compile(r"(?:00)?440?([1-9][0-9]{8,9})"), "0"),
    (re.compile(r"(?:00)?610?([2-478][0-9]{8})"), "0"),
)
_NORTH_AMERICAN = re.compile(r"\(?(?:\+1|1(?=[) .-]))[) .(-]*(?=[2-9])")


def home_number(written: str) -> str:
    """The digits of a telephone number as it is dialled at home in China, Britain, Australia or North America."""
    compact = value_shape(written).compact
    if len(compact) == 11 and _NORTH_AMERICAN.match(visible_value(written)):
        return compact[1:]
    for form, front in _ABROAD:
        if match := form.fullmatch(compact):
            return front + match[1]
    return compact
