"""Surrogates: what stands in for the personal data of one dialogue, in the form of the original.

They are a function of the dialogue's texts and of the workspace's secret key (HMAC-SHA256): a value has the same one
wherever the dialogue says it, and another in every other dialogue.

A person's go part by part, so that 张伟, 小张 and 张老师 share a surname, and "Emily" stays her first name: every
surname, given name and so on of a dialogue gets one other that is like it (`alike_names`), of the same gender where
the name or its form of address says one. Case, titles, 小 and possessives stay.

Of addresses and organisations the words that say what it is stay: 清泉路18号2单元 stays a road, a number and a unit.
Numbers become others of as many digits; a ZIP code is of a region that none has, and the end of a British postcode
holds a letter that none does.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE
from stdnum import iban
from stdnum.au import tfn
from stdnum.cn import ric
from stdnum.gb import nhs
from stdnum.us import rtn

from h2htalk.curation.anonymize.surrogates import alike_names as names
from h2htalk.curation.anonymize.surrogates.alike_names import (
    other_latin,
    renamed,
    renumbered,
    same_case,
    scramble,
)
from h2htalk.data.languages import find_language
from h2htalk.detect.personal.spans import TYPES, normalize_text, plain, value_shape
from h2htalk.detect.personal.structured.numbers import luhn, medicare
from h2htalk.detect.personal.structured.reading import read_table
from h2htalk.detect.personal.values import dialogue_values
from h2htalk.text.language_data import pattern_table, read_data

# So many draws without a free one (a four-digit number in a dialogue full of them): then a name of the type.
_ENOUGH_DRAWS = 400
_ATTEMPTS = 20  # drawings of a whole dialogue before names that still clash become placeholders
_FEW_DRAWS = 60  # draws before two names of a list are joined, a number is no fictional one or its check digit stays
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_RE = pattern_table(Path(__file__).with_name("patterns.toml"), "surrogates")


class Surrogates:
    """The surrogates of one dialogue."""

    def __init__(
        self, key: bytes, texts: Sequence[str], data: dialogue_values.DialogueData
    ) -> None:
        """`data` is what was found in the texts; the order in which values were found does not matter."""
        # The texts are digested one by one, so that none runs into the next.
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        self._secret = hmac.digest(
            key, b"surrogates\0" + hashlib.sha256(b"".join(digests)).digest(), "sha256"
        )
        self._data = data
        self._made: dict[tuple[str, str], str] = {}
        self._people: dict[str, str] = {}
        raws = {
            (s.type, text[s.start : s.end])
            for text, spans in zip(texts, data.spans, strict=True)
            for s in spans
        }
        self.types = sorted({kind for kind, _ in raws})
        taken = {normalized_value(kind, raw) for kind, raw in raws}
        taken |= {number for text in texts for number in re.findall("[0-9]{4,}", plain(text))}
        if people := {
            raw: dialogue_values.visible_value(raw) for kind, raw in raws if kind == "PERSON"
        }:
            spoken = {
                dialogue_values.to_lower(word)
                for text in texts
                for word in _RE["word"].findall(plain(text))
            }
            refused = partial(self._repeats_value, person=True)
            persons = person_surrogates(self._secret, set(people.values()), spoken, refused)
            self._made |= {("PERSON", raw): persons[name] for raw, name in people.items()}
            for name, other in persons.items():
                self._people |= zip(name.lower().split(), other.lower().split(), strict=False)
            taken |= {normalized_value("PERSON", surrogate) for surrogate in persons.values()}
        # A value written in several formats has one surrogate.
        groups: dict[str, list[tuple[str, str]]] = {}
        for kind, raw in sorted(raws):
            if kind != "PERSON":
                groups.setdefault(normalized_value(kind, raw), []).append((kind, raw))
        for value, written in sorted(groups.items(), key=lambda group: (-len(group[0]), group[0])):
            # The same digits as a QQ number here and a telephone number there are one value.
            kind = min((kind for kind, _ in written), key=(*TYPES, *self.types).index)
            for attempt in range(_ENOUGH_DRAWS):
                made = {raw: self._render(kind, value, raw, attempt) for _, raw in written}
                norms = {normalized_value(kind, surrogate) for surrogate in made.values()}
                if not norms & taken and not any(map(self._repeats_value, made.values())):
                    break
            else:
                made = {raw: f"[{kind} {len(taken)}]" for _, raw in written}
            taken |= {normalized_value(kind, surrogate) for surrogate in made.values()}
            self._made |= {(own_kind, raw): made[raw] for own_kind, raw in written}

    def of(self, kind: str, value: str) -> str:
        """The surrogate of a value as written; of one that was not among those found its type."""
        return self._made.get((kind, value), f"[{kind}]")

    def _repeats_value(self, made: str, *, person: bool = False) -> bool:
        """Whether a surrogate says one of the dialogue's own values, or a person's is the name of a public figure."""
        least = min(len(made), dialogue_values.LEAKING)
        repeats = any(span.end - span.start >= least for span in self._data.values.find(made))
        return repeats or (person and bool(dialogue_values.find_allowed(made, self._data.language)))

    def _render(self, kind: str, value: str, raw: str, attempt: int) -> str:
        """A surrogate of a value as written."""
        draw = keyed_random(self._secret, kind, value, str(attempt))
        seen = dialogue_values.visible_value(raw)
        if kind in _MAKERS:
            return _MAKERS[kind](draw, seen)
        if kind in _ACCOUNTS and not (kind == "WECHAT" and value.isdigit()):
            rename = partial(renamed, draw, people=self._people, language=self._data.language)
            return _ACCOUNTS[kind](rename, seen, draw)
        if kind in _PLACES:
            return _PLACES[kind](partial(self._draw_place, attempt), seen)
        shape = value_shape(raw)
        if not any(map(str.isdigit, shape.compact)) and kind not in dialogue_values.NUMBERED:
            return f"[{kind} {attempt + 1}]"  # of a user's own type
        if not shape.compact:
            return f"[{kind}]"
        rules = find_language(self._data.language).number_rules
        home = value if kind == "PHONE_NUMBER" else shape.compact
        # A country's code in front stays; the rest is as in the number that is dialled at home.
        code = len(shape.compact) - len(home.lstrip("0")) if home != shape.compact else 0
        rest = number(kind, draw, home, rules, attempt)
        if len(rest) != len(home):
            return rest
        made = shape.reformatted(shape.compact[:code] + rest[code - len(shape.compact) :])
        return (
            re.sub(f"[{_PROVINCES}]", draw.choice(_PROVINCES), made, count=1)
            if kind == "LICENSE_PLATE"
            else made
        )

    def _draw_place(self, attempt: int, part: str) -> Random:
        """A generator for a word or number of a place, the same in every address of the dialogue that names it."""
        tried = (
            attempt if part.isdigit() else attempt // 20
        )  # later attempts change its numbers first
        return keyed_random(self._secret, "place", str(tried), part.lower())


def normalized_value(kind: str, value: str) -> str:
    """What two spellings of one value have in common: digits without marks, words in lower case without spaces."""
    if kind == "PHONE_NUMBER":
        return dialogue_values.home_number(value) or value
    if kind in dialogue_values.NUMBERED or kind == "IP_ADDRESS":
        return value_shape(value).compact or value
    if kind == "ADDRESS":
        return _RE["space"].sub("", normalize_text(value).digits)
    seen = dialogue_values.to_lower(dialogue_values.visible_value(value))
    if kind == "HANDLE":
        return seen.removeprefix("u/").lstrip("@")
    return plain_email(seen) if kind in ("EMAIL_ADDRESS", "URL") else _RE["space"].sub("", seen)


def keyed_random(secret: bytes, *words: str) -> Random:
    """A generator for one value, seeded by HMAC-SHA256 of the secret and the words."""
    return Random(hmac.digest(secret, "\0".join(words).encode("utf-8", "surrogatepass"), "sha256"))


def person_surrogates(
    secret: bytes, people: Collection[str], said: Set[str], refused: Callable[[str], bool]
) -> dict[str, str]:
    """A surrogate for each name of a dialogue, as it is written; none is a name given, nor what is `refused`, nor has a
    part among the words `said` (in lower case). Names that differ in more than case get surrogates that differ."""
    parts = dialogue_values.name_parts(people)
    real = {_folded(name) for name in people}
    for attempt in range(_ATTEMPTS):
        mapped = _mapping(secret, parts.values(), said, f"person {attempt}")
        made = {
            name: "".join(
                same_case(part.text, mapped.get((part.role, part.key), part.text))
                for part in found.parts
            )
            for name, found in parts.items()
        }
        owners = Counter(
            other for _, other in {(_folded(name), _folded(other)) for name, other in made.items()}
        )
        bad = {
            n
            for n, other in made.items()
            if owners[_folded(other)] > 1 or _folded(other) in real or refused(other)
        }
        if not bad:
            break
    return made | {name: f"[PERSON {n}]" for n, name in enumerate(sorted(bad), 1)}


def _folded(name: str) -> str:
    """What O'Brien and O’BRIEN have in common."""
    return plain(name).lower().replace("’", "'")


def _mapping(
    secret: bytes, people: Collection[dialogue_values.NameParts], said: Set[str], salt: str
) -> dict[tuple[dialogue_values.Role, str], str]:
    """What stands in for each part, by its role and key."""
    # Of each given name what it is called by anywhere in the dialogue, else what it says itself.
    called: dict[str, set[dialogue_values.Gender]] = {}
    for name in people:
        for part in name.with_role("given", "nick", "doubled", "latin_given"):
            own = names.latin_gender(part.key) if part.role == "latin_given" else "neutral"
            called.setdefault(part.key, set()).add(own if name.gender == "neutral" else name.gender)
    # Where one sex alone is spoken of, a name that may be of either is of that.
    him = bool(said & {"he", "him", "his"})
    her = bool(said & {"she", "her", "hers"})
    told: dialogue_values.Gender = "neutral" if him == her else "male" if him else "female"
    # In an order of their own: where parts were found says nothing.
    keys = sorted({(part.role, part.key) for name in people for part in name.parts if part.role != "kept"},
                  key=lambda one: (one[0] in ("doubled", "nick"), one))  # fmt: skip
    taken = {key for _, key in keys} | set(said)
    mapped: dict[tuple[dialogue_values.Role, str], str] = {}
    for role, key in keys:
        genders = called.get(key, set()) - {"neutral"}
        if len(genders) == 1:
            gender = min(genders)
        elif role == "latin_given" and not genders:
            gender = told
        else:
            gender = "neutral"
        # 婷婷 of 王雨婷 is called by the last character of what stands for 雨婷.
        full = next(
            (own for (of, own) in mapped if of == "given" and own[-1] == key[-1] and len(key) < 3),
            None,
        )
        attempt = 0
        made = mapped["given", full][-1] * len(key) if full and role in ("doubled", "nick") else ""
        while not made or made.lower() in taken:
            draw = keyed_random(secret, salt, role, key, str(attempt))
            joint = "-" if role.startswith(("latin", "pinyin")) else ""
            parts = range(1 if attempt < _FEW_DRAWS else 2)
            made = joint.join(names.other_part(draw, role, key, gender) for _ in parts)
            attempt += 1
        taken.add(made.lower())
        mapped[role, key] = made
    return mapped


# Draws for a word, or for a whole value: a place that the dialogue names twice has one surrogate.
Draws = Callable[[str], Random]
Rename = partial[str]


def address(draws: Draws, value: str) -> str:
    """An address of the same make."""
    if not _RE["han"].search(value):
        return _english(draws, value, "kept")

    def other(found: re.Match[str]) -> str:
        if found["count"]:
            figures = found["figures"] or found["count"]
            return _renumbered(draws, figures) + found["count"][len(figures) :]
        if found["kept"]:
            return found["kept"]
        if (latin := found["latin"]) and len(latin) > 1:
            return same_case(
                latin, other_latin(draws(latin), latin.lower(), "neutral", surname=True)
            )
        if latin:
            return _renumbered(draws, latin)
        name = found["head"] or found["rest"]
        tail = found["tail"] or ""
        if found[0] in (provinces := names.faker_lists("address", "zh_CN").provinces):
            return str(
                draws(name).choice(
                    [one for one in provinces if one[-1] == found[0][-1] and one != found[0]]
                )
            )
        kinds = {"road_zh": "tail_road", "village_zh": "tail_village", "city_zh": "tail_area"}
        section = next(
            (key for key, tails in kinds.items() if _RE[tails].fullmatch(tail)), "estate_zh"
        )
        return _chinese_name(draws(name), name, section) + tail

    return _RE["address"].sub(other, value)


def organization(draws: Draws, value: str) -> str:
    """An organisation of the same kind under an invented name."""
    if not _RE["han"].search(value):
        return _english(draws, value, "organization_kept")
    tail = _RE["organization"].search(value)
    if tail and tail.start() > 0:
        head = value[: tail.start()]
    elif len(value) > 3:
        head = value[:-2]
    else:
        head = value
    area = head[: head.rfind("市") + 1]
    name = head[head.rfind("市") + 1 :]
    made = _chinese_name(draws(area), area[:-1], "city_zh") + area[-1:]
    # Schools and hospitals are called by places, firms are not, and kindergartens of three characters for children.
    if "园" in value and len(name) == 3:
        section = "kids_zh"
    elif _RE["local"].search(value):
        section = "city_zh"
    else:
        section = "firm_zh"
    return made + _chinese_name(draws(name), name, section) + value[len(head) :]


def _chinese_name(draw: Random, name: str, section: str) -> str:
    """Another name as long, of at most four characters, of the words of a list; of a city such a one."""
    name = name[:4]
    own = names.word_lists()
    cities = [city for city in names.faker_lists("address", "zh_CN").cities if len(city) == 2]
    if name[:2] in cities or len(name) == 2:  # 北京朝阳区: a city, then the rest
        first = draw.choice(
            [word for word in (cities if name[:2] in cities else own[section]) if word != name[:2]]
        )
        return first + _chinese_name(draw, name[2:], section)
    if whole := own.get(f"{section}{len(name)}"):
        return draw.choice([word for word in whole if word != name])
    made = "".join(draw.choice(own[section]) for _ in range(len(name) // 2))
    return made + draw.choice("东西南北") * (len(name) % 2)


def _renumbered(draws: Draws, written: str) -> str:
    """Other digits and letters, as many, as numbers of houses and rooms are."""
    shape = value_shape(written)
    draw = draws(shape.compact)
    made = re.sub(
        "[a-z]", lambda found: draw.choice("abcdefgh".replace(found[0], "")), shape.compact
    )
    return shape.reformatted(re.sub("[0-9]+", lambda found: renumbered(draw, found[0]), made))


def _english(draws: Draws, value: str, section: str) -> str:
    """Other numbers, and other words for all that do not say what kind of place it is (`section` of `words.toml`)."""
    own = names.word_lists()
    kept = {*own[section]}
    spoken = [
        found[0].lower()
        for found in _RE["english"].finditer(value)
        if found["word"] and not found["postcode"]
    ]
    if kept.issuperset(
        spoken
    ):  # all of it says what kind it is ("the Community College", "12 Hill Road")
        kept -= {*(spoken[-2:-1] or spoken)}
    british = {town: area for town, _, area in (pair.partition(":") for pair in own["town_gb"])}
    american = names.faker_lists("address", "en_US")
    town, replaced = "", 0

    def other(found: re.Match[str]) -> str:
        nonlocal town, replaced
        written = found[0]
        before = value[: found.start()]
        after = value[found.end() :]
        draw = draws(re.sub(r"\s", "", written[:5] if found["zip"] else written))
        if found["postcode"]:
            figures = (
                renumbered(draw, found["out"][0])
                + found["out"][1:]
                + renumbered(draw, found["in"][0])
            )
            end = draw.choice("ABDEFGHJLNPQRSTUWXYZ") + draw.choice("CIKMOV")
            return same_case(
                written,
                (british.get(town) or draw.choice(sorted(british.values()))) + figures + end,
            )
        if found["zip"]:
            return draw.choice(own["state_zip"]) + scramble(draw, written[3:])
        if written[0].isdigit():
            return (
                _renumbered(draws, found["number"] or written)
                + written[len(found["number"] or written) :]
            )
        if len(written) == 1 and written.lower() not in kept:
            return _renumbered(draws, written)
        place = section == "kept"
        for states in (american.states_abbr, american.states) if place else ():
            if written in states:
                return str(draw.choice(states))
        short = place and written.isupper() and len(written) < 5 and not value.isupper()
        if short or written.lower() in kept:
            return written
        replaced += 1
        behind = re.match(r" ([^\W\d_]+)", after)
        like: Collection[str] = own["street_en" if place else "organization_en"]
        if re.search(r"(?i)\b(?:st|saint)\.?\s$", before):
            like = own["saints"]
        elif not place and "&" in value:
            return same_case(written, other_latin(draw, written.lower(), "neutral", surname=True))
        elif not place and replaced > 1 and before.endswith(" "):
            return "\0"  # of several words one stands for all
        elif (
            place
            and re.search(r",\s*$|\bin $", before)
            and not (behind and behind[1].lower() in kept)
        ):
            like = sorted(british) if _RE["british"].search(value) else own["town_us"]
        made = draw.choice([one for one in like if one != written.lower()])
        town = made if made in british else town
        return same_case(written, made)

    made = _RE["english"].sub(other, value)
    return re.sub("(?i)(?: (?:of|the))* \0", "", made)  # Little Acorns of Penhallow Nursery


# A day or month of one digit stays one, and what may be a month (10 to 12) stays so.
_DAYS = (range(1, 10), range(10, 13), range(13, 29))


def birth_date(draw: Random, value: str) -> str:
    """Another day and month, written like `value`; the year is within three of the value's."""

    def other(part: re.Match[str]) -> str:
        text = part[0]
        if part["year"]:
            return (
                f"{(int(text) + draw.choice((-3, -2, -1, 1, 2, 3))) % 10 ** len(text):0{len(text)}}"
            )
        if part["compact"]:
            return f"{1 + draw.randrange(12):02}{1 + draw.randrange(28):02}"
        if part["number"]:
            day = draw.choice(
                next((days for days in _DAYS if int(part["number"]) in days), _DAYS[-1])
            )
            ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day // 10 != 1 else 0, "th")
            return f"{day:0{len(part['number']) if text[0] == '0' else 1}}" + (
                ending if part["ordinal"] else ""
            )
        if part["word"]:
            return draw.choice(names.word_lists()["day_en"])
        if part["name"]:
            month = draw.choice(names.word_lists()["month_en"])
            return same_case(text, month[:3] if len(text) == 3 or text.lower() == "sept" else month)
        if part["han_year"]:
            return text[:-1] + draw.choice("一二三四五六七八九")
        days = names.word_lists()["day_first_zh" if text[0] == "初" else "day_zh"]
        return draw.choice("正二三四五六七八九十" if part["han_month"] else days)

    return _RE["birth_date"].sub(other, value)


def plain_email(value: str) -> str:
    """An address or a URL in lower case, its marks plain: what its spellings have in common."""
    return _RE["dot"].sub(".", _RE["at"].sub("@", plain(value).lower())).replace(" ", "")


def _parted(draw: Random, name: str, mark: str) -> str:
    """A name with a mark in it that its service allows in none."""
    made = re.sub("[-._]", mark, name, count=1)
    made = made if mark in made else re.sub("(?<=[a-zA-Z])(?=[0-9])", mark, made, count=1)
    return made if mark in made else f"{made}{mark}{draw.randrange(10, 100)}"


def email(rename: Rename, value: str, draw: Random) -> str:
    """An address that its provider gives to nobody: Gmail has no `_`, NetEase no `.`, QQ numbers are of `number`."""
    name, _, domain = plain_email(value).partition("@")
    if domain == "qq.com" and name.isdigit():
        return f"{number('QQ', draw, name, 'zh')}@{domain}"
    chinese = re.search(r"^(?:qq|163|126|yeah|sina|foxmail)\.|\.cn$", domain)
    made = _parted(draw, rename(name if name.isascii() else "zhang"), "." if chinese else "_")
    return f"{made}@{domain if domain in ('126.com', 'yeah.net') else '163.com' if chinese else 'gmail.com'}"


def url(rename: Rename, value: str, draw: Random) -> str:
    """The same site with another account; somebody's own site becomes one at WordPress, which allows no `-`."""
    found = _RE["url"].fullmatch(_RE["dot"].sub(".", value).replace(" ", ""))
    scheme, host, path = found.groups("") if found else ("", value, "")
    name, _, rest = host.removeprefix("www.").partition(".")
    if _RE["builders"].search(host) or rename(path) == path or not rest:
        host = f"{_parted(draw, rename(name), '-')}.wordpress.com"
    return scheme + host + rename(path)


def handle(rename: Rename, value: str, _: Random) -> str:
    """The name of an account of the same build."""
    kept = _RE["front"].match(value)[0]  # type: ignore[index]
    return kept + rename(value[len(kept) :])


def wechat(rename: Rename, value: str, draw: Random) -> str:
    """A WeChat id with a point, which none has."""
    if value.lower().startswith("wxid_"):  # the service's own, at random
        return value[:5] + scramble(draw, value[5:])
    return _parted(draw, rename(value), ".")


def ip_address(draw: Random, value: str) -> str:
    """One of 100.64.0.0/10, which providers share (RFC 6598), or of 2001:db8::/32 (RFC 3849)."""
    if plain(value).count(":") > 1:
        return "2001:db8::" + ":".join(f"{draw.randrange(0x10000):x}" for _ in range(3))
    return f"100.{64 + draw.randrange(64)}.{draw.randrange(256)}.{1 + draw.randrange(254)}"


_PLACES = {"ADDRESS": address, "ORGANIZATION": organization}
_MAKERS = {"DATE_OF_BIRTH": birth_date, "IP_ADDRESS": ip_address}
_ACCOUNTS = {"HANDLE": handle, "WECHAT": wechat, "EMAIL_ADDRESS": email, "URL": url}


# --- Numbers, unusable on purpose ---
# Telephone: the ranges of `structured/words/phones.toml`; elsewhere zeros in front. Ids and accounts begin with zeros
# unless they fail a check digit or are of a form that nobody has; QQ numbers have ten digits and begin with 6 to 9;
# plates hold an I, which they leave out.
_CODES = "|".join(
    map(str, sorted(COUNTRY_CODE_TO_REGION_CODE))
)  # in front of eleven digits or more
_ELSEWHERE = (
    {"form": f"(?=.{{11}})((?:00)?(?:{_CODES}))[0-9]*", "then": [["00"]]},
    {"form": ".*", "then": [["00"]]},
)


def has_valid_check_digit(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    value = value.upper()
    ours = value.isdigit() and (luhn(value) or (len(value) in (10, 11) and medicare(value)))
    return (
        ours
        or iban.is_valid(value, check_country=False)
        or any(kind.is_valid(value) for kind in (nhs, rtn, tfn))
    )


def number(kind: str, draw: Random, compact: str, language: str, attempt: int = 0) -> str:
    """A number that nobody has, of a kind (one of `NUMBERED`, or a user's own) and of as many characters as `compact`,
    a value's letters and digits in lower case; `attempt` counts the draws taken already."""
    if kind == "PHONE_NUMBER" or (kind == "WECHAT" and compact.isdigit() and len(compact) == 11):
        return _phone(draw, compact, "zh" if kind == "WECHAT" else language, attempt)
    if kind == "LICENSE_PLATE":
        made = scramble(draw, compact)
        return re.sub("[a-z](?=[^a-z]*$)", "i", made)  # the last letter
    if kind == "QQ":
        return draw.choice("6789") + scramble(draw, "0" * 9)
    card = kind == "NATIONAL_ID" and re.fullmatch("[1-6][0-9]{16}[0-9x]", compact)
    letters = scramble(draw, compact[: len(compact) - len(compact.lstrip(ascii_lowercase))])
    for _ in range(_FEW_DRAWS):
        rows = read_data(Path(__file__).with_name("unused_numbers.toml"))["unused"]
        front = (
            _chinese_id(draw, compact)
            if card
            else _front(draw, rows, f"{kind} {compact}") or f"{letters}0"
        )
        made = (front + scramble(draw, compact[len(front) :]))[: len(compact)]
        if not has_valid_check_digit(made):
            break
    return made


def _front(draw: Random, rows: Iterable[Mapping[str, Any]], value: str) -> str:
    """What another value begins with, by the first row that fits: its groups, and one of each of its lists."""
    fitting = ((found, row["then"]) for row in rows if (found := re.fullmatch(row["form"], value)))
    return next(
        ("".join([*found.groups(""), *map(draw.choice, then)]) for found, then in fitting), ""
    )


def _chinese_id(draw: Random, compact: str) -> str:
    """An identity card with a wrong check digit, of another province and the same decade."""
    region = f"{draw.choice((11, 13, 32, 33, 34, 36, 37, 41, 42, 43, 44, 50, 51, 61))}0{draw.randrange(1, 4)}"
    born = f"{compact[6:9]}{draw.randrange(10)}{draw.randrange(1, 13):02}{draw.randrange(1, 29):02}"
    number = f"{region}0{draw.randrange(1, 6)}{born}{draw.randrange(1000):03}"
    return number + draw.choice(
        [digit for digit in digits if digit != ric.calc_check_digit(number)]
    )


def _phone(draw: Random, compact: str, language: str, attempt: int) -> str:
    """A telephone number of the first fictional range that fits; else 00 behind a country's code."""
    if not compact.isdigit():
        return scramble(draw, compact)
    ranges = read_table("phones")["fictional"] if attempt < _FEW_DRAWS else ()
    rows = [
        *(row for own in (language, "abroad") for row in ranges if row["language"] == own),
        *_ELSEWHERE,
    ]
    made = _front(draw, rows, compact)[: len(compact)]
    return made + scramble(draw, compact[len(made) :])
