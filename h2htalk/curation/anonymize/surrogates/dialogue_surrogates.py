"""Surrogates: what stands in for the personal data of one dialogue, in the form of the original.

They are a function of the dialogue's texts and of the workspace's secret key (HMAC-SHA256): a value has the same one
wherever the dialogue says it, and another in every other dialogue.

A person's go part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name: every
surname, given name and so on of a dialogue gets one other of its kind, of the same gender where the name or its form of
address says one, and of the same length in Chinese. Case, titles, 小 and possessives stay.

Of addresses and organisations the words that say what it is stay: 清泉路18号2单元 stays a road, a number and a unit.
Numbers become others of as many digits; a ZIP code begins with 000 and a British postcode with Q, which none does.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from stdnum import iban
from stdnum.au import tfn
from stdnum.gb import nhs
from stdnum.us import rtn

from h2htalk.curation.anonymize.english.persons import words
from h2htalk.curation.anonymize.spans import TYPES, normalize_text, plain, value_shape
from h2htalk.curation.anonymize.structured.numbers import luhn, medicare
from h2htalk.curation.anonymize.structured.reading import read_table
from h2htalk.curation.anonymize.values import dialogue_values
from h2htalk.data.languages import find_language
from h2htalk.text.chinese_characters import DOUBLE_SURNAMES
from h2htalk.text.language_data import read_data

# So many draws without a free one (a four-digit number in a dialogue full of them): then a name of the type.
_ENOUGH_DRAWS = 400
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_SPACE = re.compile(r"\s+")
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Surrogates:
    """The surrogates of one dialogue."""

    def __init__(self, key: bytes, texts: Sequence[str], data: dialogue_values.DialogueData) -> None:
        """`data` is what was found in the texts; the order in which values were found does not matter."""
        # The texts are digested one by one, so that none runs into the next.
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        self._secret = hmac.digest(key, b"surrogates\0" + hashlib.sha256(b"".join(digests)).digest(), "sha256")
        self._data = data
        self._made: dict[tuple[str, str], str] = {}
        raws = {(s.type, text[s.start : s.end]) for text, spans in zip(texts, data.spans, strict=True) for s in spans}
        self.types = sorted({kind for kind, _ in raws})
        taken = {normalized_value(kind, raw) for kind, raw in raws}
        taken |= {number for text in texts for number in re.findall("[0-9]{4,}", plain(text))}
        if people := {raw: dialogue_values.visible_value(raw) for kind, raw in raws if kind == "PERSON"}:
            spoken = {dialogue_values.to_lower(word) for text in texts for word in _WORD.findall(plain(text))}
            persons = person_surrogates(self._secret, set(people.values()), spoken, self._repeats_value)
            self._made |= {("PERSON", raw): persons[name] for raw, name in people.items()}
            taken |= {normalized_value("PERSON", surrogate) for surrogate in persons.values()}
        # A value written in several formats has one surrogate.
        groups: dict[str, list[tuple[str, str]]] = {}
        for kind, raw in sorted(raws):
            if kind != "PERSON":
                groups.setdefault(normalized_value(kind, raw), []).append((kind, raw))
        for value, written in sorted(groups.items(), key=lambda group: (-len(group[0]), group[0])):
            # The same digits as a QQ number here and a telephone number there are one value.
            kind = min((kind for kind, _ in written), key=(*TYPES, *self.types).index)
            made = {raw: f"[{kind} {len(taken)}]" for _, raw in written}
            for attempt in range(_ENOUGH_DRAWS):
                drawn = {raw: self._render(kind, value, raw, attempt) for _, raw in written}
                norms = {normalized_value(kind, surrogate) for surrogate in drawn.values()}
                if not norms & taken and not any(map(self._repeats_value, drawn.values())):
                    made = drawn
                    break
            taken |= {normalized_value(kind, surrogate) for surrogate in made.values()}
            self._made |= {(own_kind, raw): made[raw] for own_kind, raw in written}

    def of(self, kind: str, value: str) -> str:
        """The surrogate of a value as written; of one that was not among those found its type."""
        return self._made.get((kind, value), f"[{kind}]")

    def _repeats_value(self, made: str) -> bool:
        """Whether a surrogate says one of the dialogue's own values, or is the name of a public figure."""
        own = (span.end - span.start for span in self._data.values.find(made))
        return any(length >= dialogue_values.LEAKING or length == len(made) for length in own) or bool(
            dialogue_values.find_allowed(made, self._data.language)
        )

    def _render(self, kind: str, value: str, raw: str, attempt: int) -> str:
        """A surrogate of a value as written."""
        draw = keyed_random(self._secret, kind, value, str(attempt))
        if kind in _MAKERS:
            return _MAKERS[kind](draw, dialogue_values.visible_value(raw))
        if kind in ("ADDRESS", "ORGANIZATION"):
            make = address if kind == "ADDRESS" else organization
            return make(partial(self._draw_place, attempt), dialogue_values.visible_value(raw))
        shape = value_shape(raw)
        if not any(map(str.isdigit, shape.compact)) and kind not in NUMBERS:
            return f"[{kind} {attempt + 1}]"  # of a user's own type
        if not shape.compact:
            return f"[{kind}]"
        rules = find_language(self._data.language).number_rules
        home = value if kind == "PHONE_NUMBER" else shape.compact
        # A country's code in front stays; the rest is as in the number that is dialled at home.
        code = len(shape.compact) - len(home.lstrip("0")) if home != shape.compact else 0
        rest = number(kind, draw, home, rules, attempt)[code - len(shape.compact) :]
        made = shape.reformatted(shape.compact[:code] + rest)
        return re.sub(f"[{_PROVINCES}]", draw.choice(_PROVINCES), made, count=1) if kind == "LICENSE_PLATE" else made

    def _draw_place(self, attempt: int, part: str) -> Random:
        """A generator for a word or number of a place, the same in every address of the dialogue that names it."""
        tried = attempt if part.isdigit() else attempt // 20  # later attempts change its numbers first
        return keyed_random(self._secret, "place", str(tried), part.lower())


def normalized_value(kind: str, value: str) -> str:
    """What two spellings of one value have in common: digits without marks, words in lower case without spaces."""
    if kind == "PHONE_NUMBER":
        return dialogue_values.home_number(value) or value
    if kind in NUMBERS or kind == "IP_ADDRESS":
        return value_shape(value).compact or value
    if kind == "ADDRESS":
        return _SPACE.sub("", normalize_text(value).digits)
    seen = dialogue_values.to_lower(dialogue_values.visible_value(value))
    if kind == "HANDLE":
        return seen.removeprefix("u/").lstrip("@")
    return plain_email(seen) if kind in ("EMAIL_ADDRESS", "URL") else _SPACE.sub("", seen)


def keyed_random(secret: bytes, *words: str) -> Random:
    """A generator for one value, seeded by HMAC-SHA256 of the secret and the words."""
    return Random(hmac.digest(secret, "\0".join(words).encode("utf-8", "surrogatepass"), "sha256"))


def scramble(draw: Random, text: str) -> str:
    """Other letters for letters (of any script Latin ones), other digits for digits; what is neither stays."""
    made = []
    for char in text:
        other = draw.choice(digits if char.isdigit() else ascii_lowercase) if char.isalnum() else char
        made.append(other.upper() if char.isupper() else other)
    return "".join(made)


def match_case(written: str, other: str) -> str:
    """`other` in lower case, in capitals or as it is, as `written` was."""
    if written.islower():
        return other.lower()
    return other.upper() if written.isupper() and (len(written) > 1 or len(other) == 1) else other


# Locales whose names Faker lists by gender, in letters that English writes.
_LOCALES = "en_US en_GB en_IE en_NZ es_ES es_MX fr_FR de_DE it_IT pt_BR nl_NL pl_PL sv_SE tr_TR"
_PLAIN_NAME = re.compile("[A-Za-z][a-z]{2,}")


def _faker(kind: str, locale: str) -> Any:
    """Faker's provider of `person` or `address` in a locale, whose lists are read as they are."""
    return import_module(f"faker.providers.{kind}.{locale}").Provider


@cache
def latin_names() -> dict[str, tuple[str, ...]]:
    """Given names (`female`, `male`, `neutral`: both) and surnames (`surname`) that are no words, in order."""
    female, male, surnames = (
        {
            name
            for locale in _LOCALES.split()
            for name in getattr(_faker("person", locale), kind, ())
            if _PLAIN_NAME.fullmatch(name) and name.lower() not in words().words
        }
        for kind in ("first_names_female", "first_names_male", "last_names")
    )
    kinds = {"female": female - male, "male": male - female, "neutral": female & male, "surname": surnames}
    return {kind: tuple(sorted(names)) for kind, names in kinds.items()}


@cache
def chinese_names() -> dict[str, Sequence[str]]:
    """Single characters of given names (`female`, `male`, `neutral`: all), surnames, and both in Latin letters."""
    own = _faker("person", "zh_CN")
    female, male = ({n for n in names if len(n) == 1} for names in (own.first_names_female, own.first_names_male))
    return {
        "female": sorted(female - male),
        "male": sorted(male - female),
        "neutral": sorted(female | male),
        "surname": sorted(name for name in own.last_names if len(name) == 1),
        "double_surname": sorted(DOUBLE_SURNAMES),
        "pinyin_surname": sorted(own.last_romanized_names),
        "pinyin_given": sorted(own.first_romanized_names),
    }


@cache
def places() -> dict[str, tuple[str, ...]]:
    """Faker's provinces, cities and districts of China and states of the US, and the words of `words.toml`."""
    zh, us = _faker("address", "zh_CN"), _faker("address", "en_US")
    file = read_data(Path(__file__).with_name("words.toml"))
    return {key: tuple(value.split()) for key, value in file.items()} | {
        "province": tuple(name[:2] for name in zh.provinces if len(name) == 3 and name.endswith("省")),
        "city": tuple(name for name in zh.cities if len(name) == 2),
        "place": (*zh.cities, *zh.districts),
        "state": tuple(filter(str.isalpha, us.states)),
        "state_code": tuple(us.states_abbr),
    }


_DRAWS_OF_ONE = 60  # draws from a list before two of it are joined
_ATTEMPTS = 20  # drawings of a whole dialogue before names that still clash become placeholders


def person_surrogates(
    secret: bytes, names: Collection[str], said: Collection[str], refused: Callable[[str], bool]
) -> dict[str, str]:
    """A surrogate for each name of a dialogue, as it is written; none is a name given, nor what is `refused`.

    Names that differ (in more than case) get surrogates that differ. No part of one is among the words `said`, which
    are in lower case.
    """
    parts = dialogue_values.name_parts(names)
    real = {_folded(name) for name in names}
    made: dict[str, str] = {}
    bad: set[str] = set()
    for attempt in range(_ATTEMPTS):
        mapped = _mapping(secret, parts.values(), said, f"person {attempt}")
        made = {
            name: "".join(match_case(part.text, mapped.get((part.role, part.key), part.text)) for part in found.parts)
            for name, found in parts.items()
        }
        owners = Counter(other for _, other in {(_folded(name), _folded(other)) for name, other in made.items()})
        bad = {n for n, other in made.items() if owners[_folded(other)] > 1 or _folded(other) in real or refused(other)}
        if not bad:
            break
    return made | {name: f"[PERSON {n}]" for n, name in enumerate(sorted(bad), 1)}


def _folded(name: str) -> str:
    """What O'Brien and O’BRIEN have in common."""
    return plain(name).lower().replace("’", "'")


def _mapping(
    secret: bytes, names: Collection[dialogue_values.NameParts], said: Collection[str], salt: str
) -> dict[tuple[dialogue_values.Role, str], str]:
    """What stands in for each part, by its role and key."""
    # Of each given name what it says itself, else what it is called by anywhere in the dialogue.
    called: dict[str, set[dialogue_values.Gender]] = {}
    for name in names:
        for part in name.with_role("given", "nick", "doubled", "latin_given"):
            latin = part.role == "latin_given"
            own = _latin_genders().get(part.key, "neutral") if latin else dialogue_values.chinese_gender(part.key)
            called.setdefault(part.key, set()).add(name.gender if own == "neutral" else own)
    # In an order of their own: where parts were found says nothing.
    keys = sorted({(part.role, part.key) for name in names for part in name.parts if part.role != "kept"})
    taken = {key for _, key in keys} | set(said)
    # Initials all move by the same number of letters: each is another one, and no two are alike.
    shift = 1 + keyed_random(secret, salt, "initial").randrange(25)
    mapped: dict[tuple[dialogue_values.Role, str], str] = {}
    for role, key in keys:
        if role == "initial":
            letter = ascii_lowercase[(ascii_lowercase.find(key[0]) + shift) % 26]
            mapped[role, key] = letter.upper() + key[1:]
            continue
        genders = called.get(key, set()) - {"neutral"}
        gender = min(genders) if len(genders) == 1 else "neutral"
        attempt, made = 0, ""
        while not made or made.lower() in taken:
            draw = keyed_random(secret, salt, role, key, str(attempt))
            joint = "-" if role.startswith(("latin", "pinyin")) else ""
            made = joint.join(_other_part(draw, role, key, gender) for _ in range(1 if attempt < _DRAWS_OF_ONE else 2))
            attempt += 1
        taken.add(made.lower())
        mapped[role, key] = made
    return mapped


@cache
def _latin_genders() -> dict[str, dialogue_values.Gender]:
    kinds: tuple[dialogue_values.Gender, ...] = ("female", "male", "neutral")
    return {name.lower(): kind for kind in kinds for name in latin_names()[kind]}


def _other_part(draw: Random, role: dialogue_values.Role, key: str, gender: dialogue_values.Gender) -> str:
    """Another part of a name: of its kind, its gender and, of Chinese names, its length."""
    own = chinese_names()
    if role in ("latin_given", "latin_surname"):
        return draw.choice(latin_names()["surname" if role == "latin_surname" else gender])
    if role in ("given", "nick"):
        return "".join(draw.choice(own[gender]) for _ in key[:2])
    if role == "doubled":
        return draw.choice(own[gender]) * 2
    if role == "foreign":
        return draw.choice(places()[f"foreign{min(max(len(key), 2), 4)}"])
    return draw.choice(own["double_surname" if role == "surname" and key in DOUBLE_SURNAMES else role])


_ENGLISH = re.compile(
    r"(?P<postcode>\b[a-z]{1,2}[0-9][a-z0-9]?\s?[0-9][a-z]{2}\b)|(?P<zip>(?<![0-9])[0-9]{5}(?:-[0-9]{4})?$)"
    r"|(?P<number>[0-9]+)(?:st|nd|rd|th)?\b|[0-9]+|(?<!['’])[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*",
    re.IGNORECASE,
)
# Draws for a word, or for a whole value: a place that the dialogue names twice has one surrogate.
Draws = Callable[[str], Random]


def address(draws: Draws, value: str) -> str:
    """An address of the same make."""
    if not _HAN.search(value):
        return _english(draws, value, "kept")

    def other(found: re.Match[str]) -> str:
        if found["count"]:
            figures = found["figures"] or found["count"]
            return _renumbered(draws, figures) + found["count"][len(figures) :]
        if found["latin"]:
            return _word(draws, found["latin"])
        name, tail = found["head"] or found["rest"], found["tail"] or ""
        return _chinese_name(draws(name), name, {"省": "province", "市": "city"}.get(tail, "place")) + tail

    counted = rf"(?P<figures>[0-9a-zA-Z〇零一二三四五六七八九十百]+(?:[-—~之\s][0-9]+)*)\s?(?:{_any_of('tail_count')})"
    tails = _any_of("tail_area", "tail_road", "tail_estate")
    return re.sub(
        rf"(?P<count>{counted}|[0-9]+)|(?P<head>[\u4e00-\u9fff]{{1,8}}?)(?P<tail>(?:{tails})"
        rf"(?:{_any_of('tail_more')})?)|(?P<rest>[\u4e00-\u9fff]+)|(?P<latin>[a-zA-Z]+)",
        other,
        value,
    )


def organization(draws: Draws, value: str) -> str:
    """An organisation of the same kind under an invented name."""
    if not _HAN.search(value):
        return _english(draws, value, "organization_kept")
    tail = re.search(f"(?:{_any_of('tail_organization')})$", value)
    head = value[: tail.start()] if tail and tail.start() > 0 else value
    return _chinese_name(draws(head), head, "") + value[len(head) :]


@cache
def _any_of(*sections: str) -> str:
    return "|".join(word for section in sections for word in places()[section])


def _chinese_name(draw: Random, name: str, section: str) -> str:
    """Another name, as long: of a province or city such a one, else one of a section, else characters of names."""
    own = places()
    for kind in ("province", "city"):
        if name[:2] in own[kind]:  # 北京朝阳区: a city, then the rest
            first = draw.choice([word for word in own[kind] if word != name[:2]])
            return first + (_chinese_name(draw, name[2:], section) if name[2:] else "")
    if fitting := [word for word in own.get(section, ()) if len(word) == len(name) and word != name]:
        return draw.choice(fitting)
    return "".join(draw.choice([c for c in chinese_names()["neutral"] if c != char]) for char in name)


def _renumbered(draws: Draws, written: str) -> str:
    """Other digits and letters, as many; none is 0, which no number begins with."""
    shape = value_shape(written)
    draw = draws(shape.compact)
    made = [draw.choice([c for c in ("123456789" if old.isdigit() else ascii_lowercase[:12]) if c != old])
            for old in shape.compact]  # fmt: skip
    return shape.reformatted("".join(made))


def _word(draws: Draws, written: str) -> str:
    """A building's letter, another; a state's abbreviation or name, another; any other word, a surname."""
    if len(written) == 1:
        return _renumbered(draws, written)
    own = next((places()[kind] for kind in ("state_code", "state") if written in places()[kind]), None)
    draw, other = draws(written), written
    while other.lower() == written.lower():
        other = draw.choice(own or latin_names()["surname"])
    return match_case(written, other)


def _english(draws: Draws, value: str, section: str) -> str:
    """Other numbers, and other words for all that do not say what kind of place it is (`section` of `words.toml`)."""
    kept = {*places()[section]}
    spoken = [found[0].lower() for found in _ENGLISH.finditer(value) if found[0][0].isalpha() and not found["postcode"]]
    if kept.issuperset(spoken):  # all of it says what kind it is ("the Community College", "12 Hill Road")
        kept -= {*(spoken[-2:-1] or spoken)}

    def other(found: re.Match[str]) -> str:
        written = found[0]
        if found["postcode"]:
            return match_case(written[0], "Q") + scramble(draws(re.sub(r"\s", "", written)), written[1:])
        if found["zip"]:
            return "000" + scramble(draws(written[:5]), written[3:])
        if written[0].isdigit():
            digits = found["number"] or written
            return _renumbered(draws, digits) + written[len(digits) :]
        return written if written.lower() in kept else _word(draws, written)

    return _ENGLISH.sub(other, value)


_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_HAN_MONTHS = "正二三四五六七八九十"
_HAN_DAYS = ("初二", "初三", "初四", "初五", "初六", "初七", "初八", "初九", "十一", "十二", "十三", "十四", "十六")
_DAY_WORDS = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
    "|sixteenth|seventeenth|eighteenth|nineteenth|twentieth"
)
_PART = re.compile(
    r"(?P<year>(?<![0-9])(?:19|20)[0-9]{2}(?![0-9]{1,3}(?![0-9]))|(?<=')[0-9]{2}|[0-9]{2}(?=年)"
    r"|(?<=[-/.][0-9][-/.])[0-9]{2}$|(?<=[-/.][0-9]{2}[-/.])[0-9]{2}$)"
    r"|(?P<compact>[01][0-9][0-3][0-9])(?![0-9])|(?P<number>[0-9]{1,2})(?P<ordinal>st|nd|rd|th)?"
    rf"|(?P<word>(?:(?:twenty|thirty)[ -])?(?:{_DAY_WORDS}|thirtieth))\b"
    rf"|(?P<name>{_MONTHS}|sept|{'|'.join(month[:3] for month in _MONTHS.split('|'))})"
    r"|(?P<han_year>[一二三四五六七八九〇零○]{2,4}(?=年))|(?P<han_month>闰?[正冬腊一二三四五六七八九十]{1,2}(?=月))"
    r"|(?P<han_day>初?[一二三四五六七八九十廿卅]{1,3}|(?<=月)半)",
    re.IGNORECASE,
)


def birth_date(draw: Random, value: str) -> str:
    """Another day and month, written like `value`; the year is within three of the value's."""

    def other(part: re.Match[str]) -> str:
        text = part[0]
        if part["year"]:
            return f"{(int(text) + draw.choice((-3, -2, -1, 1, 2, 3))) % 10 ** len(text):0{len(text)}}"
        if part["compact"]:
            return f"{1 + draw.randrange(12):02}{1 + draw.randrange(28):02}"
        if part["number"]:
            # A number up to twelve stays one: day and month are a date in whatever order.
            day = 1 + draw.randrange(12 if int(part["number"]) < 13 else 28)
            ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day // 10 != 1 else 0, "th")
            return f"{day:0{len(part['number']) if text[0] == '0' else 1}}" + (ending if part["ordinal"] else "")
        if part["word"]:
            return draw.choice(_DAY_WORDS.split("|"))
        if part["name"]:
            month = draw.choice(_MONTHS.split("|"))[: 3 if len(text) < 5 else None]
            return month.upper() if text.isupper() else month if text[0].isupper() else month.lower()
        if part["han_year"]:
            return text[:-1] + draw.choice("一二三四五六七八九")
        return draw.choice(_HAN_MONTHS if part["han_month"] else _HAN_DAYS)

    return _PART.sub(other, value)


# Names and ranges kept for documentation: example.com, .org and .net by RFC 2606; three ranges of IPv4 by RFC 5737;
# 2001:db8::/32 by RFC 3849. What was obfuscated ("(at)", "[dot]", full-width letters, spaces) is written plainly.
_DOMAINS = ("example.com", "example.org", "example.net")
# Between a name and its domain, and between a domain's parts, in every format.
_AT = re.compile(r"\s*(?:[(\[{<]\s*(?:at|@|艾特)\s*[)\]}>]|@|#|\*|艾特|圈a|小老鼠|[\s_-]+at[\s_-]+)\s*", re.IGNORECASE)
_DOT = re.compile(r"\s*(?:[(\[{<]\s*(?:dot|\.|点)\s*[)\]}>]|[.。·]|点|(?<=[\s_-])dot(?=[\s_-]))\s*", re.IGNORECASE)
_URL = re.compile(r"(?P<scheme>[a-z]{2,6}:/*)?[^/?:]*(?P<path>.*)", re.DOTALL)
_RANGES = ("192.0.2", "198.51.100", "203.0.113")


def plain_email(value: str) -> str:
    """An address or a URL in lower case, its marks plain: what its spellings have in common."""
    return _DOT.sub(".", _AT.sub("@", plain(value).lower())).replace(" ", "")


def email(draw: Random, value: str) -> str:
    """An address at example.com, .org or .net; the name before it has as many letters and digits."""
    return f"{scramble(draw, plain_email(value).split('@')[0])}@{draw.choice(_DOMAINS)}"


def url(draw: Random, value: str) -> str:
    """An invented part of example.com, .org or .net, other letters and digits in its path."""
    found = _URL.fullmatch(plain_email(value))
    scheme, path = (found["scheme"] or "", found["path"]) if found else ("", "")
    host = "".join(draw.choice("bcdfghjklmnprstvwz" if at % 2 == 0 else "aeiou") for at in range(6))
    return f"{scheme}{host}.{draw.choice(_DOMAINS)}{scramble(draw, path)}"


def handle(draw: Random, value: str) -> str:
    """The name of an account of as many letters and digits; Chinese ones of a character of names and digits."""
    front = re.match("(?:@|u/|)", value, re.IGNORECASE)
    kept = front[0] if front else ""
    if not _HAN.search(value):
        return kept + scramble(draw, value[len(kept) :])
    return f"{kept}小{draw.choice(chinese_names()['neutral'])}{scramble(draw, '000')}"


def ip_address(draw: Random, value: str) -> str:
    """One of the 768 addresses kept for documentation, or of 2001:db8::/32."""
    if plain(value).count(":") > 1:
        return "2001:db8::" + ":".join(f"{draw.randrange(0x10000):x}" for _ in range(3))
    return f"{draw.choice(_RANGES)}.{1 + draw.randrange(254)}"


_MAKERS = {"HANDLE": handle, "DATE_OF_BIRTH": birth_date, "EMAIL_ADDRESS": email, "URL": url, "IP_ADDRESS": ip_address}


# --- Numbers, unusable on purpose ---
# Telephone: the ranges kept for films in `structured/words/phones.toml`; elsewhere zeros in front. Ids and accounts
# begin with zeros, or with Q where they begin with letters, and fail every check digit; QQ numbers begin with 0 and
# WeChat ids with a digit, which neither may; plates hold I or O, which plates leave out.

# The zeros that a kind of number begins with; of cards the first two digits stay.
_ZEROS = {"NATIONAL_ID": 3, "ACCOUNT_NUMBER": 2, "CREDIT_CARD": 0, "QQ": 1, "WECHAT": 1}
NUMBERS = frozenset({"PHONE_NUMBER", "LICENSE_PLATE", *_ZEROS})
_FEW_DRAWS = 60
_CHECKS: tuple[Callable[[str], bool], ...] = (
    lambda value: value.isdigit() and luhn(value),
    lambda value: value.isdigit() and len(value) in (10, 11) and medicare(value),
    lambda value: iban.is_valid(value, check_country=False),
    nhs.is_valid,
    rtn.is_valid,
    tfn.is_valid,
)


def has_valid_check_digit(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    return any(check(value.upper()) for check in _CHECKS)


def number(kind: str, draw: Random, compact: str, language: str, attempt: int = 0) -> str:
    """A number that nobody has, of a kind (one of `NUMBERS`, or a user's own) and of as many characters.

    `compact` is the value's letters and digits in lower case; `attempt` counts the draws taken already.
    """
    if kind == "PHONE_NUMBER" or (kind == "WECHAT" and compact.isdigit() and len(compact) == 11):
        return _phone(draw, compact, "zh" if kind == "WECHAT" else language, attempt)
    if kind == "LICENSE_PLATE":
        letters = [at for at, char in enumerate(compact) if char.isalpha()]
        made = scramble(draw, compact)
        return made[: letters[-1]] + draw.choice("io") + made[letters[-1] + 1 :] if letters else made
    letters_in_front = len(compact) - len(compact.lstrip(ascii_lowercase))
    front = "" if kind == "WECHAT" else "q" * letters_in_front
    # Of a card the first digits stay, of an IBAN the country.
    if (kind == "CREDIT_CARD" and len(compact) > 4) or (len(front) == 2 and len(compact) > 14):
        front = compact[:2]
    front = (front + "0" * _ZEROS.get(kind, 2))[: len(compact)]
    for _ in range(_FEW_DRAWS):
        made = front + scramble(draw, compact[len(front) :])
        if not has_valid_check_digit(made):
            break
    return made


def _phone(draw: Random, compact: str, language: str, attempt: int) -> str:
    """A telephone number of the first fictional range that fits; where none does, zeros behind a country's code."""
    if not compact.isdigit():
        return scramble(draw, compact)
    code = 4 if compact.startswith("00") else 2
    made = "0" * min(2 if len(compact) > 6 else 1, len(compact))
    if attempt < _FEW_DRAWS:
        made = (compact[:code] if len(compact) > 10 else "") + made
        ranges = sorted(read_table("phones")["fictional"], key=lambda row: row["language"] != language)
        fitting = (
            (found, row["then"])
            for row in ranges
            if row["language"] in (language, "abroad") and (found := re.fullmatch(row["form"], compact))
        )
        for found, then in islice(fitting, 1):
            made = "".join([*found.groups(""), *map(draw.choice, then)])
    return made + scramble(draw, compact[len(made) :])
