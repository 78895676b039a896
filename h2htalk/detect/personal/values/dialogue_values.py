"""The values of one dialogue: every form in which they are said again, where these stand, and whether any is left.

What stays is marked before anything is looked for, so that no part of it is taken for somebody private: names of
companions, people and figures whom everybody knows, titles of works between 《》 (`numbers.is_public` knows lines of
help). A figure's name that somebody says is theirs ("my name is") is a person's.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import Path
from sys import intern
from typing import Literal

from h2htalk.data.languages import find_language
from h2htalk.data.scenario import bundled_personas
from h2htalk.detect.personal.chinese.persons import surnames
from h2htalk.detect.personal.chinese.words import sections, tags, usual
from h2htalk.detect.personal.chinese.words import words as chinese_words
from h2htalk.detect.personal.english.persons import COMMON, words
from h2htalk.detect.personal.spans import (
    DIGITS,
    FIGURE,
    Span,
    normalize_text,
    plain,
    resolve_overlaps,
    value_shape,
)
from h2htalk.detect.personal.structured.reading import patterns
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES, SURNAMES, looks_foreign, simplified
from h2htalk.text.help_lines import read_help_lines
from h2htalk.text.language_data import pattern_table, read_data, read_lines
from h2htalk.text.phrases import PhraseIndex

# Types of what stays, beside FIGURE.
COMPANION, BODY, TITLE = "companion", "body", "title"
_STAYS = patterns("allow_list")
_PUBLIC = Path(__file__).parents[1] / "public_figures"
_LIKELY = 0.7


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether what stands at `start` to `end` is no part of a Latin word or number; Han characters part words."""
    edges = ((text[start - 1 : start], text[start]), (text[end - 1], text[end : end + 1]))
    return not any(all(char.isalnum() and ord(char) < 0x250 for char in edge) for edge in edges)


def to_lower(text: str) -> str:
    """In lower case, one character for one."""
    lowered = text.lower()
    return (
        lowered
        if len(lowered) == len(text)
        else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    )


def companion_names(names: Iterable[str]) -> list[str]:
    """How companions are called: their names, and the first of several Latin words."""
    return [
        form
        for name in names
        for form in dict.fromkeys([name, *[w for w in name.split()[:1] if len(w) > 1]])
    ]


@cache
def _figures(language: str) -> PhraseIndex[str]:
    """People, figures and bodies whom everybody knows, with their type."""
    record, kinds = find_language(language), dict[str, str]()
    for file in sorted(_PUBLIC.glob(f"*_{language}.txt")):
        names = [
            name for line in read_lines(file) for name in line.split("|" if record.spaced else None)
        ]
        kinds |= dict.fromkeys(names, BODY if file.name.startswith("bodies") else FIGURE)
    services = [
        name
        for one in read_help_lines().services
        if len(name := re.split(r" ?[(/]", one.name)[0]) > 4
    ]
    kinds |= dict.fromkeys(import_module(record.name_recognizer).known_figures(), FIGURE)
    kinds |= dict.fromkeys(services, BODY)
    return PhraseIndex(
        ((to_lower(name), kind) for name, kind in kinds.items() if name.strip()), is_whole_word
    )


@cache
def _casts(language: str) -> PhraseIndex[tuple[str, ...]]:
    """Who is public where a work, a field or a game is talked of, by each of the phrases that tell of it."""
    casts: dict[str, tuple[str, ...]] = {}
    for told, names in (line.split(": ") for line in read_lines(_PUBLIC / f"casts/{language}.txt")):
        cast = tuple(map(intern, names.split("|")))
        casts |= {phrase: casts.get(phrase, ()) + cast for phrase in told.split("|")}
    return PhraseIndex(casts.items(), is_whole_word)


@lru_cache(maxsize=64)
def _index(names: tuple[str, ...]) -> PhraseIndex[str]:
    return PhraseIndex(((to_lower(name), name) for name in names if name.strip()), is_whole_word)


@cache
def _bundled() -> tuple[str, ...]:
    return tuple(name for persona in bundled_personas().values() for name in persona.names.values())


def addressed_personas(texts: Iterable[str]) -> list[str]:
    """Names of bundled personas that a dialogue names in full: there "Nora" is Nora Vale, elsewhere somebody's."""
    lowered = to_lower(plain("\n".join(texts)))
    return [name for name in _bundled() if to_lower(name) in lowered]


def find_allowed(text: str, language: str, companions: Sequence[str] = ()) -> list[Span]:
    """What stays in a text, normalised one character to one, in order, with its type; none overlap.
    `companions` are names, each as it is (`companion_names` adds first words); bundled personas stay by their full
    names. Some names are public only in a text that says of what: Sebastian of Stardew Valley, 莎莎 beside 孙颖莎."""
    lowered = to_lower(text)
    found = [
        Span(*m.span(), TITLE, 1.0)
        for m in (_STAYS["title"].finditer(text) if "《" in text else ())
    ]
    for start, end, _ in _index((*_bundled(), *companions)).find(lowered):
        # The companion is "Nora", and "Nora Smith" is somebody else.
        single = " " not in text[start:end] and text[start].isascii()
        following = _STAYS["following"].match(text, end) if single else None
        continues = following is not None and to_lower(following[1]) not in words().words
        if not continues and _inside_han_name(text, start, end) is None:
            found.append(Span(start, end, COMPANION, 1.0))
    lowered = simplified(lowered)

    def follows(cue: str, start: int) -> bool:
        return _STAYS[cue].search(lowered, max(start - 24, 0), start) is not None

    told, figures = (
        list(_casts(language).find(lowered)),
        [(*place, 1.0) for place in _figures(language).find(lowered)],
    )
    cast = {name for _, _, names in told for name in names}
    whole = [
        (a, b) for a, b, kind, _ in figures if kind == FIGURE and not follows("private_before", a)
    ]
    cast |= {
        lowered[b - 2 : b] for a, b in whole if 2 < b - a < 5 and _HAN.match(lowered, a)
    }  # 爱玲 beside 张爱玲
    named = _index(tuple(sorted(cast))).find(lowered)
    unsure = [*((a, b) for a, b, _ in told if b - a > 2), *((a, b) for a, b, _ in named)]
    for start, end, kind, score in [*figures, *((*place, FIGURE, 0.5) for place in unsure)]:
        dotted = "·" in (
            text[start - 1 : start],
            text[end : end + 1],
        )  # a part of 苏珊·凯恩 alone is no figure
        cues = ("private_before", "met_before")[: 1 + (score < 1)]
        private = any(follows(cue, start) for cue in cues)
        private |= score < 1 and _STAYS["met_behind"].match(text, end) is not None
        if not dotted and not private and _inside_han_name(text, start, end) is None:
            found.append(Span(start, end, kind, score))
    allowed: list[Span] = []
    for stays in sorted(
        found, key=lambda a: (a.start, -a.end)
    ):  # of names inside titles and the like the longer stays
        if not allowed or stays.start >= allowed[-1].end:
            allowed.append(stays)
    return allowed


def longer_names(text: str, companions: Sequence[str] = ()) -> list[Span]:
    """Persons whose Chinese names hold a companion's. Arguments as in `find_allowed`."""
    places = _index((*_bundled(), *companions)).find(to_lower(text))
    return [
        span for start, end, _ in places if (span := _inside_han_name(text, start, end)) is not None
    ]


def _inside_han_name(text: str, start: int, end: int) -> Span | None:
    """Somebody else's name that a companion's is part of: 苏晚 in 叫苏晚彤, 小雨 in 陈小雨."""
    if not "\u4e00" <= text[start] <= "\u9fff" or end - start < 2:
        return None
    if _STAYS["surname_before"].search(text, max(start - 3, 0), start):
        return Span(start - 1, end, "PERSON", _LIKELY)
    if not _STAYS["given_behind"].match(text, end) or usual(text[end : end + 2]):
        return None
    told = _STAYS["called_before"].search(text, max(start - 3, 0), start) or _STAYS[
        "name_end"
    ].match(text, end + 1)
    return Span(start, end + 1, "PERSON", _LIKELY) if told else None


_FILE = Path(__file__).with_name("patterns.toml")
_RE, _STREETS = pattern_table(_FILE, "dialogue_values"), read_data(_FILE)["streets"]
_HAN = re.compile("[\u4e00-\u9fff]")
# The recogniser of what was found elsewhere in the dialogue first.
REPEATED = "RepeatedValue"
# A value this long must not be seen again, in whatever place; shorter ones are too often part of something else.
LEAKING = 4
_SHORTEST = 6  # digits and letters of a reformatted value: shorter ones are met by chance

NUMBERED = frozenset(
    {
        "PHONE_NUMBER",
        "NATIONAL_ID",
        "CREDIT_CARD",
        "ACCOUNT_NUMBER",
        "QQ",
        "WECHAT",
        "LICENSE_PLATE",
    }
)


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
    """The values of one dialogue (`forms`), found again in a text in one walk over it."""

    def __init__(self, values: Iterable[KnownValue]) -> None:
        self.forms: dict[str, list[KnownValue]] = {}
        # Of equally sure ones first what needs no cue and is known in other marks; the order of a set decides nothing.
        ordered = sorted(
            set(values), key=lambda v: (v.type, -v.score, v.needs_cue, not v.compact, v.written)
        )
        for value in sorted(ordered, key=lambda v: (v.form, v.written != "")):
            known = self.forms.setdefault(value.form, [])
            if not known or known[0].written:
                known.append(value)
        self._index = PhraseIndex(self.forms.items())
        values = [value for known in self.forms.values() for value in known]
        compact = [
            (v.compact, v)
            for v in values
            if len(v.compact) >= (2 if _HAN.match(v.compact) else _SHORTEST)
        ]
        self._numbers = PhraseIndex(
            (form, value) for form, value in compact if value.type != "PERSON"
        )
        self._people = PhraseIndex(
            (form, value) for form, value in compact if value.type == "PERSON"
        )

    def find(self, text: str) -> list[Span]:
        """Where values stand in a text (plain, in its own case), as written or in another format."""
        lowered = to_lower(text)

        def meant(start: int, end: int) -> Iterator[KnownValue]:
            return (
                value
                for value in self.forms[lowered[start:end]]
                if _is_meant(text, lowered, start, value)
            )

        spans = []
        for start, end, _ in self._index.find(
            lowered, lambda _, start, end: any(meant(start, end))
        ):
            value = next(meant(start, end))
            spans.append(Span(start, end, value.type, value.score))
        reformatted = _find_reformatted(lowered, self._numbers, self._people)
        return resolve_overlaps([*spans, *reformatted]) if reformatted else spans


def _is_meant(text: str, lowered: str, start: int, value: KnownValue) -> bool:
    """Whether the characters of a value are that value there: no part of a word, and no word that a name is too."""
    length, end = len(value.form), start + len(value.form)
    if not (is_whole_word(lowered, start, end) or (value.form.isdigit() and length >= _SHORTEST)):
        person = value.type == "PERSON" and length >= LEAKING and value.form.isalpha()
        if person and length > LEAKING and _begins_host(lowered, start, end):
            return True
        family = person and not value.written and lowered[end : end + 1] == "s"  # the Whitmores
        if not (family and is_whole_word(lowered, start, end + 1)):
            return False
    if value.written and text[start:end] == value.written:
        begins = _RE["sentence_start"].search(text, max(start - 8, 0), start)
        return not begins or _RE["vocative"].match(text, end) is not None
    if value.written:  # else in capitals among small letters
        around = text[max(start - 20, 0) : start] + text[end : end + 20]
        return (
            length > 2
            and text[start:end] == value.written.upper()
            and any(map(str.islower, around))
        )
    naming = _RE["naming"].search(lowered, max(start - 6, 0), start)
    return (
        not value.needs_cue
        or naming is not None
        or _RE["spoken_to"].match(lowered, end) is not None
    )


def _begins_host(lowered: str, start: int, end: int) -> bool:
    """Whether a name begins the host of a web address: ameliabakes.com."""
    inside = lowered[start - 1 : start].isalnum()
    return not inside and _RE["host_behind"].match(lowered, end) is not None


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
        stays = [a for a in find_allowed(text, self.language, self.allow) if a.type != TITLE]
        stays = [
            a
            for a in stays
            if a.type != FIGURE or to_lower(text[a.start : a.end]) not in self.values.forms
        ]
        return [s for s in spans if not any(a.start <= s.start and s.end <= a.end for a in stays)]

    def leaks(self, texts: Iterable[str]) -> bool:
        """Whether a value of four characters or more is to be read in a text, outside names that stay."""
        return any(
            s.end - s.start >= LEAKING
            for text in texts
            for s in self.find_known(visible_value(text))
        )


def collect_values(
    texts: Sequence[str],
    spans_of_texts: Sequence[list[Span]],
    language: str,
    allow: Sequence[str] = (),
) -> DialogueData:
    """The values of a dialogue, and their spans in all of its texts: in order, without overlaps. What was found in one
    text is marked in all: a value as it is written; of a Chinese name its given name of two characters or more, of
    others their given names and surnames."""
    values: list[KnownValue] = []
    people: dict[str, float] = {}
    for text, spans in zip(texts, spans_of_texts, strict=True):
        for span in spans:
            written = visible_value(text[span.start : span.end])
            if span.type == "PERSON":
                people[written] = max(span.score, people.get(written, 0.0))
            elif len(written) >= LEAKING:
                values += _other_variants(written, span.type, span.score)
    for name, parts in name_parts(people).items():
        # Who is introduced by a rarer word of two equal characters, 我儿子叫豆豆, is meant by it.
        rare = name == name[:1] * 2 and not usual(name, 10) and tags().get(name) != "a"
        told = rare and any(
            re.search(f"(?:叫做?|名字?是?|小名) ?[“\"'‘]?{name}", text) for text in texts
        )
        values += _name_variants(name, parts, people[name], told)
    own = {to_lower(name) for name in allow}
    known = KnownValues(value for value in values if value.form not in own)
    data = DialogueData(tuple(map(tuple, spans_of_texts)), known, language, tuple(allow))
    return (
        replace(data, spans=tuple(map(partial(_add_known, data), texts, spans_of_texts)))
        if known.forms
        else data
    )


def _add_known(data: DialogueData, text: str, spans: list[Span]) -> tuple[Span, ...]:
    """The spans of a text, with what is said again where nothing was found, or where less of it was."""
    normalized = normalize_text(text)
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    kept: list[Span] = []
    dropped: set[Span] = set()
    for known in data.find_known(normalized.plain):
        start, end = normalized.original_span(known.start, known.end)
        touching = spans[bisect_right(ends, start) : bisect_left(starts, end)]
        if all(
            start <= t.start and t.end <= end and t.end - t.start < end - start for t in touching
        ):
            kept.append(replace(known, start=start, end=end, found_by=REPEATED))
            dropped.update(touching)
    return tuple(
        resolve_overlaps([*(s for s in spans if s not in dropped), *kept]) if kept else spans
    )


def _find_reformatted(
    lowered: str, numbers: PhraseIndex[KnownValue], names: PhraseIndex[KnownValue]
) -> list[Span]:
    """Where numbers and full names stand in a text, in order, with a mark or two between their characters."""
    hits = []
    for hit in (
        *_compact(lowered.translate(DIGITS), numbers, "number"),
        *_compact(lowered, names, "name"),
    ):
        found = lowered[hit.start : hit.end]
        around = lowered[max(hit.start - 1, 0) : hit.start] + lowered[hit.end : hit.end + 1]
        if hit.type == "PERSON":  # Han characters that stand together are looked for as they are
            counts = not all(map(_HAN.match, found)) and not _RE["letter"].search(around)
        else:  # digits in a row may stand in anything, with marks in no longer number, with letters in no longer word
            longer = re.search("[0-9]" if found.upper() == found else "[0-9a-z]", around)
            counts = found.translate(DIGITS).isdigit() or not longer
        if counts:
            hits.append(hit)
    return sorted(hits)


def _compact(text: str, index: PhraseIndex[KnownValue], kind: str) -> Iterator[Span]:
    """Values in the text's characters of a kind, where nothing but a mark or two stands between those."""
    if not index:
        return
    places, marks = [m.start() for m in _RE[f"{kind}_chars"].finditer(text)], _RE[f"{kind}_marks"]

    def is_close(_: str, start: int, end: int) -> bool:
        return all(
            marks.fullmatch(text, places[n] + 1, places[n + 1]) for n in range(start, end - 1)
        )

    for start, end, known in index.find("".join([text[at] for at in places]), is_close):
        yield Span(places[start], places[end - 1] + 1, known.type, known.score)


# --- How a value is said again ---


def visible_value(value: str) -> str:
    """A value in plain characters, without unseen ones."""
    return normalize_text(value).plain


def home_number(written: str) -> str:
    """The digits of a telephone number as it is dialled at home in China, Britain, Australia or North America."""
    compact = value_shape(written).compact
    if len(compact) == 11 and _RE["north_american"].match(visible_value(written)):
        return compact[1:]
    match = _RE["abroad"].fullmatch(compact)
    return compact if match is None else match[1] or f"0{match[2]}"


def _other_variants(written: str, kind: str, score: float) -> list[KnownValue]:
    """How what is no person is said again."""
    form = to_lower(written)
    if kind in NUMBERED:
        compact = value_shape(written).compact
        compact = compact if any(map(str.isdigit, compact)) else ""
        values = [KnownValue(form, kind, score, compact=compact)]
        home = home_number(written).removeprefix("0") if kind == "PHONE_NUMBER" else compact
        return (
            values
            if home == compact or len(home) < 9
            else [*values, KnownValue(home, kind, score, compact=home)]
        )
    forms, codes = [form], list[str]()
    if kind == "HANDLE" and len(written.lstrip("@")) > LEAKING:
        forms.append(form.lstrip("@"))
    if kind == "ADDRESS":
        # Streets (with the kind of street in full and short) and estates, and postcodes, British ones or a ZIP code.
        if _HAN.search(written):
            roads = (
                match.group()
                for name in ("road", "estate")
                for match in _RE[name].finditer(written)
            )
            forms += [road for road in roads if not _is_word(road)]
        else:
            found = _RE["street"].findall(form)
            forms += [
                f"{name} {other}"
                for name, street in found
                for other in (street, _STREETS.get(street))
                if other
            ]
        codes = ["".join(match.groups()) for match in _RE["postcode"].finditer(form)] or _RE[
            "zip"
        ].findall(written)
    return [KnownValue(f, kind, score) for f in forms] + [
        KnownValue(c, kind, score, compact=c) for c in codes
    ]


def _name_variants(name: str, parts: NameParts, score: float, introduced: bool) -> list[KnownValue]:
    """How a person is called again; `introduced`: by this name."""
    values, forms = [], []
    han = _HAN.search(name) is not None
    if len(name) > 1 and (han or " " in name):
        cue = han and _is_word(name) and not introduced
        # The letters of a full name, as it is written in one word.
        spoken = _RE["word"].findall(to_lower(name))
        if han:
            letters = name if not cue and len(spoken) == 1 and len(name) <= 4 else ""
        else:
            letters = (
                "".join(spoken) if len(spoken) > 1 and all(len(word) > 1 for word in spoken) else ""
            )
        values.append(KnownValue(to_lower(name), "PERSON", score, needs_cue=cue, compact=letters))
    if han:
        core = "".join(p.text for p in parts.parts if p.role not in ("kept", "nick"))
        told = [core] if len(core) < len(name) and _HAN.search(core) else []
        told += [part.key for part in parts.with_role("given")]
        forms = [
            to_lower(form)
            for form in told
            if len(form) > 1 and not (_is_word(form) and usual(form))
        ]
    forms += [part.key for part in parts.with_role("foreign") if len(part.text) > 2]
    values += [
        KnownValue(form, "PERSON", score, needs_cue=han and _is_word(form)) for form in forms
    ]
    for part in parts.with_role("latin_given", "latin_surname", "pinyin_given"):
        key, surname = part.key, part.role == "latin_surname"
        if len(key) < (5 if part.role == "pinyin_given" else 2) or key in name_words()["times"]:
            continue
        written, capital = plain(part.text), part.text[0].isupper()
        a_word = key in words().words and words().given.get(key, 0) < COMMON
        unsure = (
            a_word
            or (surname and key in name_words()["surname_words"])
            or (len(key) == 2 and capital)
        )
        if capital or not unsure:  # what could be something else is meant with its capital alone
            values.append(KnownValue(to_lower(written), "PERSON", score, written if unsure else ""))
    return values


def _is_word(name: str) -> bool:
    """Whether Chinese says it as a word too: 明天, 美丽, 文静."""
    return not tags().get(name, "nr").startswith("nr")


# --- The parts of a name: 张老师 is a surname and a title, "Dr Emily Carter's" a title, a given name and a surname ---

Role = Literal["surname", "given", "nick", "doubled", "foreign", "latin_given", "latin_surname", "pinyin_surname",
               "pinyin_given", "initial", "kept"]  # fmt: skip
Gender = Literal["female", "male", "neutral"]

_PREFIXES = "小老阿大"


@cache
def name_words() -> dict[str, frozenset[str]]:
    """The sets of words.toml."""
    return {
        key: frozenset(value.split())
        for key, value in read_data(Path(__file__).with_name("words.toml")).items()
    }


@dataclass(frozen=True, slots=True)
class NamePart:
    """A piece of a name as it is written, and what it is; `kept` pieces stay as they are."""

    text: str
    role: Role

    @property
    def key(self) -> str:
        """What it is known by, in any format."""
        return plain(self.text).lower().replace("’", "'")


@dataclass(frozen=True, slots=True)
class NameParts:
    """A name in its parts; joined they are the name. `gender` is what its form of address says."""

    parts: tuple[NamePart, ...]
    gender: Gender = "neutral"

    def with_role(self, *roles: Role) -> list[NamePart]:
        """The parts that are one of these."""
        return [part for part in self.parts if part.role in roles]


def name_parts(names: Iterable[str]) -> dict[str, NameParts]:
    """The parts of all names of a dialogue, each read with the others in mind, whatever their order: 文静 is a given
    name beside 张文静. By them a name is known again in another form, and its surrogate keeps its form of address."""
    alone = {
        n: _chinese(n, frozenset()) if _HAN.search(n) else _latin(n, frozenset())
        for n in sorted(set(names))
    }
    givens = frozenset(
        p.key
        for n, own in alone.items()
        for p in own.with_role("given")
        if len(_HAN.findall(n)) > 2
    )
    family = frozenset(
        p.key
        for n, own in alone.items()
        if not _HAN.search(n)
        for p in own.with_role("latin_surname")
    )
    return {n: _chinese(n, givens) if _HAN.search(n) else _latin(n, family) for n in alone}


def _chinese(name: str, givens: frozenset[str]) -> NameParts:
    """A name that holds Han characters."""
    titles = chinese_words("persons", "titles", "after_surname")
    title = max((t for t in titles if name.endswith(t) and len(t) < len(name)), key=len, default="")
    gender: Gender = (
        "female"
        if _RE["female"].search(title)
        else "male"
        if _RE["male"].search(title)
        else "neutral"
    )
    core = name.removesuffix(title)
    # 小 before a surname or a doubled name is a form of address: 小王, 小婷婷; in 小林志 it is none.
    rest = core[1:]
    called = len(rest) == 1 or rest in DOUBLE_SURNAMES or (len(rest) == 2 and rest[0] == rest[1])
    prefix = core[0] if called and core[0] in _PREFIXES else ""
    parts = _core(core.removeprefix(prefix), givens, addressed=bool(prefix))
    around = [[NamePart(text, "kept")] if text else [] for text in (prefix, title)]
    return NameParts((*around[0], *parts, *around[1]), gender)


def _core(core: str, givens: frozenset[str], *, addressed: bool) -> list[NamePart]:
    """The name itself, without what stands around it."""
    if not all(_HAN.match(letter) for letter in core):
        return _mixed(core)
    if len(core) < 2 or core in DOUBLE_SURNAMES:
        return (
            [NamePart(core, "surname" if len(core) > 1 or core in surnames() else "nick")]
            if core
            else []
        )
    if len(core) == 2 and core[0] == core[1]:
        return [NamePart(core, "doubled")]
    if core in givens or addressed or core in chinese_words("persons", "nicknames", "words"):
        return [NamePart(core, "given")]
    if looks_foreign(core) and (len(core) > 3 or core[0] not in SURNAMES):
        return [NamePart(core, "foreign")]
    # Two characters that begin like a rarer surname may be said as a given name: 文静, 安琪.
    alone = core in chinese_words("persons", "nicknames", "given") and core[0] not in SURNAMES[:60]
    if core[:2] in DOUBLE_SURNAMES and len(core) <= 4:
        family: tuple[str, ...] = (core[:2],)
    elif len(core) == 4 and core[0] in SURNAMES and core[1] in SURNAMES:  # 王李思琪: both parents'
        family = (core[0], core[1])
    elif len(core) > 3:
        return [NamePart(core, "foreign")]
    else:
        family = (core[0],) if core[0] in surnames() and not alone else ()
    given = core[len("".join(family)) :]
    return [*(NamePart(surname, "surname") for surname in family), NamePart(given, "given")]


def _mixed(core: str) -> list[NamePart]:
    """Han and other characters: 买买提·阿不都, Vivian姐, 阿May."""
    parts: list[NamePart] = []
    runs = re.findall("[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+", core)
    dotted = any(run.strip() in "·•・‧.-" for run in runs if not _HAN.match(run))
    for run in runs:
        if _HAN.match(run):
            short = len(run) == 1 and not dotted
            role: Role = "kept" if short and run in _PREFIXES else "nick" if short else "foreign"
            parts.append(NamePart(run, role))
        else:
            parts += _latin(run, frozenset()).parts
    return parts


def _latin(name: str, family: frozenset[str]) -> NameParts:
    """A name in Latin (or other) letters."""
    lists = name_words()
    pieces = _RE["piece"].findall(name)
    keys = [plain(piece).lower().rstrip(".") for piece in pieces]
    spoken = [at for at, piece in enumerate(pieces) if piece[0].isalpha()]
    gender: Gender = "neutral"
    titled = False
    while len(spoken) > 1 and keys[spoken[0]] in lists["male"] | lists["female"] | lists["neutral"]:
        title = keys[spoken.pop(0)]
        if title in lists["male"]:
            gender = "male"
        elif title in lists["female"]:
            gender = "female"
        else:
            gender = "neutral"
        titled = titled or title in lists["before_surnames"]
    particles = lists["particles"] if len(spoken) > 1 else frozenset()
    names = [
        at
        for at in spoken
        if keys[at] not in particles or (len(keys[at]) == 1 and pieces[at][0].isupper())
    ]
    first, *others = [keys[at] for at in names] or [""]
    roles: dict[int, Role] = {
        at: "initial" if len(keys[at]) == 1 else "latin_given" for at in names
    }
    pinyin = all(_RE["pinyin"].fullmatch(key.replace("-", "").replace("'", "")) for key in others)
    if len(others) in (1, 2) and first in sections("foreign_names")["pinyin_surnames"] and pinyin:
        roles |= dict.fromkeys(names, "pinyin_given")
        roles[names[0]] = "pinyin_surname"
    elif len(names) == 1:
        roles[names[0]] = "latin_surname" if titled or first in family else "latin_given"
    elif others and len(others[-1]) > 1:
        roles[names[-1]] = "latin_surname"
    parts = []
    for at, piece in enumerate(pieces):
        role = roles.get(at, "kept")
        ended = None if role in ("kept", "initial") else _RE["ending"].search(piece)
        parts.append(NamePart(piece[: ended.start() if ended else None], role))
        if ended:
            parts += [NamePart(ended[0], "kept")]
    return NameParts(tuple(parts), gender)
