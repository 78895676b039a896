"""Surrogates of addresses and organisations: the words that say what it is stay, names and numbers change.

清泉路18号2单元 stays a road, a number and a unit; "14 Maple Street, Apt 3" stays a street and a flat. Provinces and
cities become others of their tier, roads and estates invented ones of the same length, numbers others of as many
digits; a ZIP code begins with 000 and a British postcode with Q, V or X, which none does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from h2htalk.curation.pii.normalize import plain
from h2htalk.curation.pii.pools import pools
from h2htalk.curation.pii.surrogate_draws import LETTERS, Draw
from h2htalk.curation.pii.surrogate_people import in_case_of
from h2htalk.curation.pii.surrogate_shapes import shape_of

_HAN = re.compile("[\u4e00-\u9fff]")
_HAN_NUMBER = "〇零一二三四五六七八九十百"
_ROAD = "街道|大道|大街|路|街|巷|弄堂|弄|胡同|里|道"
_ESTATE = (
    "小区|花园|公寓|家园|大厦|广场|新村|山庄|别墅|庄园|宿舍楼|宿舍|学生公寓|教学楼|楼盘|社区|华府|府邸|名邸|雅苑|佳苑|嘉园|"
    "花苑|新城|新苑|苑|园|城|府|庭|居|阁|轩|邸|湾|郡|院|楼|村|屯|庄|寨|组|队|镇|乡|街坊|坊|场"
)
# After another word of the kind: 和平里小区, 阳光花园公寓.
_MORE = "小区|社区|花园|公寓|家园|新村|宿舍楼|宿舍|大厦|广场"
_AREA = "特别行政区|自治区|自治州|自治县|开发区|高新区|新区|省|市|区|县|旗|州|盟"
_COUNT = "号楼|号院|栋楼|单元|楼层|号|栋|幢|座|室|层|楼|组|排|弄|巷|门|期|房|队|村|屯|米|家"
_ZH = re.compile(
    rf"(?P<count>[0-9a-zA-Z{_HAN_NUMBER}]+(?:[-—~之\s][0-9]+)*(?:{_COUNT}))|(?P<digits>[0-9]+)|"
    rf"(?P<head>[\u4e00-\u9fff]{{1,8}}?)(?P<tail>(?:{_AREA}|{_ROAD}|{_ESTATE})(?:{_MORE})?)|(?P<rest>[\u4e00-\u9fff]+)|(?P<latin>[a-zA-Z]+)"
)
_POSTCODE = re.compile(r"\b[A-Za-z]{1,2}[0-9][A-Za-z0-9]?\s?[0-9][A-Za-z]{2}\b")
_ZIP = re.compile(r"(?<![0-9])[0-9]{5}(?:-[0-9]{4})?$")
_EN = re.compile(r"[0-9]+(?:st|nd|rd|th)\b|[0-9]+|[^\W\d_]+(?:['’][^\W\d_]+)*\.?", re.IGNORECASE)
_ORG_TAIL = re.compile(
    "(?:4[sS]店|托育中心|股份有限公司|有限责任公司|科技有限公司|有限公司|分公司|集团|公司|事务所|工作室|研究院|研究所|设计院|实验小学|实验中学|外国语学校|"
    "职业技术学院|师范大学|医科大学|理工大学|大学|学院|中学|小学|高中|初中|一中|二中|三中|幼儿园|学校|附小|附中|人民医院|中医院|中心医院|妇幼保健院|"
    "卫生院|医院|诊所|门诊部|药店|药房|银行|支行|保险|律所|酒店|宾馆|饭店|餐厅|火锅店|奶茶店|咖啡馆|咖啡|书店|超市|商场|百货|健身房|健身|俱乐部|瑜伽馆|"
    "教堂|教会|寺|庙|协会|基金会|福利院|养老院|敬老院|派出所|社区|街道办|居委会|电子厂|服装厂|工厂|厂|店|馆|院|社|部|所|行|队|站|中心|科技|传媒|教育|物流|地产|网络|"
    "快递|培训班|辅导班|画室|舞蹈室|琴行|乐队|合唱团|志愿队|车行|美容院|理发店|发廊|影楼|公寓)$"
)


_NUMBERS_FIRST = 20  # tries with other numbers before the names change too


@dataclass(frozen=True, slots=True)
class Draws:
    """What an address is drawn from: its numbers for itself, a name in it wherever the dialogue says that name."""

    secret: bytes
    value: str
    attempt: int

    def name(self, word: str) -> Draw:
        return Draw(self.secret, "place", word.lower(), str(self.attempt // _NUMBERS_FIRST))

    def numbers(self) -> Draw:
        return Draw(self.secret, "place numbers", self.value, str(self.attempt))


def address(draws: Draws, value: str) -> str:
    """An address of the same make."""
    return _chinese(draws, value) if _HAN.search(value) else _english(draws, value)


def _chinese(draws: Draws, value: str) -> str:
    numbers = draws.numbers()

    def other(found: re.Match[str]) -> str:
        if found["count"] or found["digits"]:
            return _renumbered(numbers, value[found.start() : found.end()])
        draw = draws.name(found.group())
        if found["head"]:
            return _place(draws.name(found["head"]), found["head"], found["tail"]) + found["tail"]
        return _composed(draw, found["rest"]) if found["rest"] else _letters(draw, found["latin"])

    seen = plain(value)
    parts, at = [], 0
    for found in _ZH.finditer(seen):
        parts += [value[at : found.start()], other(found)]
        at = found.end()
    return "".join([*parts, value[at:]])


def _letters(draw: Draw, written: str) -> str:
    """A building's letter, another; a word in Latin letters, an invented one."""
    if len(written) == 1:
        return in_case_of(written, draw.one([c for c in LETTERS[:12] if c != written.lower()]))
    return in_case_of(written, draw.one(pools("places_en")["place"]))


def _renumbered(draw: Draw, written: str) -> str:
    """Other digits for digits, as many, none beginning with 0; what they count stays."""
    numeric = [at for at, c in enumerate(plain(written)) if c.isdigit() or written[at] in _HAN_NUMBER[:11]]
    made = list(written)
    for n, at in enumerate(numeric):
        first = n == 0 or numeric[n - 1] != at - 1
        old = shape_of(written[at], numeric=True)
        digit = draw.one("123456789") if first else draw.one("0123456789")
        if first and len(numeric) == 1 and digit == old.compact:
            digit = str(int(digit) % 9 + 1)
        made[at] = old.dressed(digit)
    return "".join(made)


@cache
def _tiers() -> dict[str, str]:
    own = pools("places_zh")
    return {city: tier for tier in ("province", "city1", "city2", "city3") for city in own[tier]}


def _place(draw: Draw, head: str, tail: str) -> str:
    """Another name of a place, of its tier and as long."""
    own = pools("places_zh")
    if tail in ("省", "市", "自治区") or head in _tiers():
        pool = [c for c in own[_tiers().get(head, "province" if tail == "省" else "city3")] if c != head]
        return draw.one(pool)
    if head[:2] in _tiers() and len(head) > 3:  # 北京朝阳区: a city, then the rest
        return _place(draw, head[:2], "市") + _place(draw, head[2:], tail)
    kind = "district" if re.fullmatch(_AREA, tail) else "road" if re.match(_ROAD, tail) else "estate"
    if len(head) == 2:
        return draw.one([name for name in own[kind] if name != head and len(name) == 2])
    if len(head) == 3 and f"{kind}3" in own:
        return draw.one([name for name in own[f"{kind}3"] if name != head])
    return _composed(draw, head)


def _composed(draw: Draw, written: str) -> str:
    """Invented, as long, of characters that names of places are made of; a city in front becomes another city."""
    own = pools("places_zh")
    front = ""
    if written[:2] in _tiers():
        front, written = _place(draw, written[:2], "市"), written[2:]
    return front + "".join(draw.one([c for c in own["character"] if c != letter]) for letter in written)


@cache
def _kept(section: str) -> frozenset[str]:
    return frozenset(word.rstrip(".") for word in pools("places_en")[section])


@cache
def _states() -> dict[str, str]:
    own = pools("places_en")
    return {s.lower(): "state" for s in own["state"]} | {s.lower(): "state2" for s in own["state2"]}


def _english(draws: Draws, value: str) -> str:
    draw = draws.numbers()
    seen = plain(value)
    postcode = _POSTCODE.search(seen)
    zipped = _ZIP.search(seen)
    two_words = [s for s in _states() if " " in s and re.search(rf"\b{s}\b", seen, re.IGNORECASE)]
    parts: list[str] = []
    at, last_name = 0, -2
    for number, found in enumerate(_EN.finditer(seen)):
        written = value[found.start() : found.end()]
        word = found.group().lower().rstrip(".")
        if postcode and postcode.start() <= found.start() < postcode.end():
            made = _postcode(draw, postcode, found)
        elif zipped and found.start() >= zipped.start():
            made = "000" + draw.digits(2) if found.start() == zipped.start() else draw.digits(4)
        elif word[0].isdigit():
            made = _renumbered(draw, written)
        elif any(word in s.split() for s in two_words):
            made = ""  # of "New York" the second word carries the other state
            if word == two_words[0].split()[-1]:
                made = in_case_of(written, draws.name(two_words[0]).one(pools("places_en")["state"]))
        else:
            made = _word(
                draws.name(word), written, word, seen, found.start(), follows=last_name == number - 1
            )
            last_name = number if made != written else last_name
        gap = value[at : found.start()]
        parts += [gap if not (parts and parts[-1] == "" and gap == " ") else "", made]
        at = found.end()
    return "".join([*parts, value[at:]])


def _word(draw: Draw, written: str, word: str, seen: str, at: int, *, follows: bool) -> str:
    """Another word for a name; a word that says what kind of place it is stays."""
    own = pools("places_en")
    late = at > len(seen) // 2
    if word in _states() and (written.isupper() or len(word) > 2) and late:
        return in_case_of(written, draw.one([s for s in own[_states()[word]] if s.lower() != word]))
    if word in _kept("kept"):
        return written
    if len(word) == 1:
        return _letters(draw, written)
    pool = own["place"] if late or follows else own["street"]
    return in_case_of(written, draw.one([name for name in pool if name.lower() != word]))


def _postcode(draw: Draw, postcode: re.Match[str], found: re.Match[str]) -> str:
    """Letters for letters and digits for digits; the first letter is one that no area begins with."""
    made = []
    for at, char in enumerate(found.group(), found.start()):
        if char.isdigit():
            made.append(draw.one("0123456789"))
        elif char.isalpha():
            made.append(in_case_of(char, draw.one("qvx" if at == postcode.start() else LETTERS)))
        else:
            made.append(char)
    return "".join(made)


def organization(draws: Draws, value: str) -> str:
    """An organisation of the same kind under an invented name."""
    draw = draws.name(value) if draws.attempt == 0 else draws.numbers()
    if not _HAN.search(value):
        return _english_organization(draw, value)
    tail = _ORG_TAIL.search(value)
    head = value[: tail.start()] if tail and tail.start() > 0 else value
    end = value[len(head) :]
    own = pools("places_zh")
    front = ""
    if head[:2] in _tiers() and len(head) > 2:
        front = _place(draw, head[:2], "市")
        front += "市" if head[2:3] == "市" and len(head) > 3 else ""
        head = head[len(front) :]
    if len(head) == 2:
        return front + draw.one([n for n in own["org2"] if n != head]) + end
    if len(head) == 3:
        return front + draw.one([n for n in own["org3"] if n != head]) + end
    return front + "".join(_letter(draw, c, own["character"]) for c in head) + end


def _letter(draw: Draw, char: str, pool: tuple[str, ...]) -> str:
    if _HAN.match(char):
        return draw.one([c for c in pool if c != char])
    if char.isdigit():
        return draw.one("123456789")
    return in_case_of(char, draw.one(LETTERS)) if char.isalpha() and char.isascii() else char


def _english_organization(draw: Draw, value: str) -> str:
    parts, at, named = [], 0, False
    for found in _EN.finditer(value):
        written, word = found.group(), found.group().lower().rstrip(".")
        if word[0].isdigit():
            made = _renumbered(draw, written)
        elif word in _kept("organization_kept") and (named or found.end() < len(value) or at):
            made = written
        else:
            pool = pools("places_en")["place" if not named else "street"]
            made = in_case_of(written, draw.one([n for n in pool if n.lower() != word]))
            if word.endswith(("'s", "’s")):
                made += written[-2:]
            named = True
        parts += [value[at : found.start()], made]
        at = found.end()
    made = "".join([*parts, value[at:]])
    # All of it says what kind it is ("the Community College"): a name in front makes it another.
    return made if named else f"{in_case_of(value, draw.one(pools('places_en')['place']))} {made}"
