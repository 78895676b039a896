"""The forms in which a piece of personal data is said again: a name's parts, an address's street, a number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.anonymize.allow_list import to_lower
from h2htalk.curation.anonymize.english.word_lists import WORD_NAME, words
from h2htalk.curation.anonymize.normalization import normalize_text, plain
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.surrogates.pools import pools
from h2htalk.curation.anonymize.values.name_parts import NameParts, name_parts, name_words
from h2htalk.curation.anonymize.values.value_shape import value_shape
from h2htalk.text.language_data import pattern_table

_RE = pattern_table(Path(__file__).parent / "patterns.toml", "value_variants")

# A value this long must not be seen again, in whatever place; shorter ones are too often part of something else.
LEAKING = 4
_HAN = re.compile("[\u4e00-\u9fff]")
_NUMBERED = frozenset({"PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER", "QQ", "WECHAT", "LICENSE_PLATE"})
_WORDS = re.compile(r"[^\W\d_]+")


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


def variants_of(texts: Sequence[str], spans_of_texts: Sequence[Sequence[Span]]) -> list[KnownValue]:
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
    parts = name_parts(people)
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
        compact = value_shape(written, numeric=True).compact
        compact = compact if any(map(str.isdigit, compact)) else ""
        values = [KnownValue(to_lower(written), kind, score, compact=compact)]
        home = national_format(compact).removeprefix("0") if kind == "PHONE_NUMBER" else compact
        return values if home == compact or len(home) < 9 else [*values, KnownValue(home, kind, score, compact=home)]
    forms = [to_lower(written)]
    if kind == "HANDLE" and len(written.lstrip("@")) > LEAKING:
        forms.append(forms[0].lstrip("@"))
    if kind == "ADDRESS":
        forms += [form for form in address_variants(written) if not (_HAN.search(form) and _is_word(form))]
    if kind == "ORGANIZATION":
        forms += organization_variants(written)
    codes = postcodes(written) if kind == "ADDRESS" else []
    return [KnownValue(f, kind, score) for f in forms] + [KnownValue(c, kind, score, compact=c) for c in codes]


def _letters(name: str) -> str:
    """The letters of a full name, as it is written in one word; '' where it has one part."""
    words = _WORDS.findall(to_lower(name))
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
    from h2htalk.curation.anonymize.chinese.jieba_dictionary import tags

    tag = tags().get(name)
    return tag is not None and not tag.startswith("nr")


_SHORT = {"street": "st", "road": "rd", "avenue": "ave", "lane": "ln", "drive": "dr", "court": "ct", "place": "pl",
          "boulevard": "blvd", "terrace": "ter", "square": "sq"}  # fmt: skip
_LONG = {short: long for long, short in _SHORT.items()}
_KINDS = "|".join([*_SHORT, *_LONG, "close", "crescent", "gardens", "grove", "row", "mews", "way"])
_STREET = re.compile(rf"(?<![^\W_])([^\W\d_]+(?: [^\W\d_]+)?) ({_KINDS})(?![^\W_])")
_WORD = re.compile(r"[^\W\d_]+")
_OWN_NAME = 5  # letters: a firm's first word is its own name, and long enough to mean nothing else


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


def organization_variants(written: str) -> Iterator[str]:
    """An organisation without the words that many have: 云帆科技, "Bluefin"."""
    if _HAN.search(written):
        core = _RE["firm"].sub("", written)
        own = pools("places_zh")
        if any(core[:2] in own[tier] for tier in ("province", "city")):
            core = core[2:].removeprefix("市")
        if len(core) >= 4 and core != written and core.endswith(("科技", "传媒", "教育", "网络", "物流", "文化")):
            yield core
        return
    match = _WORD.match(to_lower(written))
    if match is not None and len(match.group()) >= _OWN_NAME and match.end() < len(written):
        first = match.group()
        lists = words()
        if first not in lists.words | lists.hints["places"] and lists.given.get(first) != WORD_NAME:
            yield first


def national_format(digits: str) -> str:
    """A telephone number as it is dialled at home: without the code of China or Britain."""
    bare = digits.removeprefix("00")
    if len(bare) == 13 and bare.startswith("861"):
        return bare[2:]
    if len(bare) == 12 and bare.startswith("44"):
        return "0" + bare[2:]
    return digits
