"""Which digits are national ids, bank cards, accounts, QQ numbers and telephone numbers.

`find_numbers` reads runs: rows of groups of digits with short gaps. A window is a stretch of whole groups of a run;
each rule of `NUMBERS` says how sure it is of a window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter

import phonenumbers
import stdnum.luhn
from stdnum.au import tfn
from stdnum.cn import ric
from stdnum.gb import nhs

from h2htalk.detect.personal.spans import HAN, Span
from h2htalk.detect.personal.structured.reading import Near, Reading, Rule, patterns, read_table
from h2htalk.text.help_lines import number_digits, read_help_lines

_RE, _DIGITS, _RUN, _PHONE = map(
    patterns, ("identity_numbers", "digit_spans", "digit_runs", "phones")
)
_ANYWHERE = 1000
_FAR = 70  # further off, a cue only says what a message is about
# Provinces of a Chinese resident id; 81-83 are Hong Kong, Macau and Taiwan.
_PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")
_FEWEST_DIGITS, _MOST_DIGITS = 5, 20
_LONGEST_GAP = 4
# Characters of a resident id that somebody mistyped, and how near a word for one stands if its date is wrong too.
_MISTYPED, _BESIDE = range(15, 20), 16
# Digits of a card that somebody mistyped, and how near a word for one stands: of a brand's form, and of another.
_FEWEST_OF_CARD, _NAMED_CARD, _BESIDE_CARD = 15, 45, 12
# In a row of more groups (a table, a count) a number has few.
_LONG_ROW, _FEW = 80, 5
Group = tuple[int, int]  # start and end of digits without a gap


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring groups of a run, as one number, perhaps with the `X` that closes a Chinese resident id.

    `shape`: digits a group. `gaps`: between them. `whole`: nothing says that it is a piece of a longer row: there is no
    neighbour, or one that stands further off. `lead`: the three characters before it, `tail`: the three behind it.
    `glued`: it stands at a Latin letter, as the digits of a code do. `near`: its cues.
    """

    start: int
    end: int
    digits: str
    shape: tuple[int, ...]
    gaps: tuple[str, ...]
    whole: bool
    glued: bool
    lead: str
    tail: str
    near: Near


def _runs(reading: Reading) -> Iterator[list[Group]]:
    """The runs of a reading with five digits or more, outside of what is taken; days and times part them."""
    text = reading.text
    # Han digits are left, while every `o` that reads as a zero is one.
    source = "".join(
        "0" if pair == ("o", "0") else pair[0] for pair in zip(text, reading.digits, strict=True)
    )
    rows: list[list[Group]] = [[]]
    for match in _RUN["token_han"].finditer(source):
        start, end = match.span()
        is_free = reading.is_free(start, end)
        if rows[-1]:
            begin, stop = rows[-1][-1]
            # A lone Han digit behind a mark begins a clause (二十年).
            other = (match.group() in HAN) != (text[begin] in HAN)
            lone = other and stop < start and 1 in (end - start, stop - begin)
            if (
                lone
                or start - stop > _LONGEST_GAP
                or not (is_free and _RUN["gap"].fullmatch(text, stop, start))
            ):
                rows.append([])
        if is_free:
            rows[-1].append((start, end))
    for row in filter(None, rows):
        dates = (
            [match.span() for match in _RUN["date"].finditer(text, row[0][0], row[-1][1])]
            if len(row) > 1
            else []
        )
        in_date = [any(a <= start < b for a, b in dates) for start, _ in row]
        for dated, pairs in groupby(zip(in_date, row, strict=True), itemgetter(0)):
            piece = [group for _, group in pairs]
            if not dated and sum(end - start for start, end in piece) >= _FEWEST_DIGITS:
                yield piece


def _windows(run: list[Group], reading: Reading, near: Near) -> Iterator[Window]:
    """Every stretch of whole groups with 5 to 20 digits; of a long row, of few groups."""
    text = reading.text
    gaps = [text[a:b] for (_, a), (b, _) in pairwise(run)]
    most = _FEW if len(run) > _LONG_ROW else len(run)
    for first in range(len(run)):
        for last in range(first, min(first + most, len(run))):
            groups = run[first : last + 1]
            digits = "".join(reading.digits[start:end] for start, end in groups)
            if len(digits) > _MOST_DIGITS:
                break
            if len(digits) < _FEWEST_DIGITS:
                continue
            start, end = groups[0][0], groups[-1][1]
            inner = {gap.strip() or gap for gap in gaps[first:last]}
            starts = first == 0 or _parts(gaps[first - 1], inner)
            ends = last == len(gaps) or _parts(gaps[last], inner)
            forms = [(digits, end, starts and ends)]
            closing = _DIGITS["closing_x"].match(text, end)
            if reading.language == "zh" and len(digits) == 17 and closing:
                forms.append((f"{digits}X", closing.end(), starts))
            shape = tuple(stop - begin for begin, stop in groups)
            lead, tail = text[max(0, start - 3) : start], text[end : end + 3]
            glued = lead[-1:].isascii() and lead[-1:].isalpha()
            for signs, stop, whole in forms:
                yield Window(
                    start,
                    stop,
                    signs,
                    shape,
                    tuple(gaps[first:last]),
                    whole,
                    glued,
                    lead,
                    tail,
                    near,
                )


def _parts(gap: str, inner: set[str]) -> bool:
    """Whether a gap parts two numbers: another one than those inside, and a mark for it, a bracket or a space."""
    mark = gap.strip()
    return (mark or gap) not in inner and (
        mark in ("", *"()[]:") or _RUN["strong_gap"].search(gap) is not None
    )


# --- Identity, bank and QQ numbers ---


def luhn(digits: str) -> bool:
    """Cards and Canadian SINs: the Luhn check, not passed by one digit repeated."""
    return len(set(digits)) > 1 and stdnum.luhn.is_valid(digits)


def resident(value: str) -> bool:
    """Whether the province and the birth date may be those of a Chinese resident; counties change too often to ask."""
    return _PROVINCE.match(value) is not None and _holds_birth_date(value)


def _holds_birth_date(value: str) -> bool:
    """Whether a birth date stands where a Chinese resident id of 18 characters has it."""
    try:
        born = datetime.strptime(value[6:14], "%Y%m%d").year
    except ValueError:
        return False
    return 1900 <= born <= 2035


def medicare(digits: str) -> bool:
    """An Australian Medicare number of ten digits, or eleven with the person's: mod 10."""
    weights = (1, 3, 7, 9, 1, 3, 7, 9)
    check = sum(int(char) * weight for char, weight in zip(digits, weights, strict=False)) % 10
    return digits[0] in "23456" and check == int(digits[8])


def resident_id(window: Window, _: Reading) -> float:
    """A Chinese resident id of 18 characters (GB 11643) or 15; mistyped only beside a word for one."""
    value, distance = window.digits, window.near.distance("id")
    if len(value) == 18 and resident(value) and ric.calc_check_digit(value) == value[17]:
        if distance is not None:
            return 0.99
        return 0.96 if window.near.nearest != "other" else 0.0
    if distance is None:
        return 0.0
    if len(value) == 15 and resident(f"{value[:6]}19{value[6:]}"):
        return 0.95
    # A digit is wrong, lacks or stands twice: its owner is found by the others. 号码 between the two is a phone's word,
    # and no phone has so many digits.
    named = window.near.nearest in ("id", "phone") and window.whole
    if not named or len(value) not in _MISTYPED:
        return 0.0
    if resident(value):
        return 0.85
    may_be_one = _PROVINCE.match(value) is not None or _holds_birth_date(value)
    return 0.8 if may_be_one and distance <= _BESIDE else 0.0


def national_id(window: Window, reading: Reading) -> float:
    """SSN, NHS number, SIN, TFN, Medicare; the cue around it names the country."""
    words = reading.text[max(0, window.start - 60) : window.end + 30]
    digits, near, distance = window.digits, window.near, window.near.distance("id")
    # Ranges that are given out; stdnum also refuses three published numbers, which people may still write as theirs.
    social_security = _RE["ssn"].fullmatch(digits) is not None
    if window.shape == (3, 2, 4) and (social_security or distance is not None):
        alone = (
            0.0 if near.nearest_is_impersonal(8) else 0.92 if window.gaps == ("-", "-") else 0.75
        )
        return alone if distance is None else 0.97
    if distance is None:
        return 0.0
    close = 0.8 if distance <= 12 and window.whole else 0.0  # its check digit is mistyped
    if len(digits) == 10 and "nhs" in words:
        return 0.97 if nhs.is_valid(digits) else close
    if len(digits) == 9:
        return 0.97 if luhn(digits) or tfn.is_valid(digits) else 0.85 if social_security else close
    return 0.97 if len(digits) in (10, 11) and "medicare" in words and medicare(digits) else 0.0


def card(window: Window, reading: Reading) -> float:
    """Bank cards: Luhn, or mistyped beside a word for one; without a cue a brand's first digits and length."""
    digits, near = window.digits, window.near
    if not 12 <= len(digits) <= 19 or not digits.isdecimal():
        return 0.0
    brand = _RE["brand"].fullmatch(digits) is not None
    if not luhn(digits):
        named = _is_named_card(window, brand)
        return 0.92 if named and not account(window, reading) else 0.0
    # A brand's first digits speak against a word for nobody's numbers that stands a little apart.
    grouped = window.shape in ((4, 4, 4, 4), (4, 6, 5))
    reach = _ANYWHERE if not brand else 3 if digits.startswith("62") else 8 if grouped else 20
    if near.nearest_is_impersonal(reach):
        return 0.0
    if brand:
        alone = 0.9 if window.whole and not window.glued else 0.0
        return alone if near.distance("card", "account") is None else 0.97 if window.whole else 0.85
    return (
        0.93
        if window.whole and near.nearest != "account" and near.distance("card") is not None
        else 0.0
    )


def _is_named_card(window: Window, brand: bool) -> bool:
    """Whether words name digits as a card's whose check digit is wrong; a brand's first digits let them stand apart."""
    distance = window.near.distance("card")
    if distance is None or not window.whole or len(window.digits) < _FEWEST_OF_CARD:
        return False
    if brand:
        return distance <= _NAMED_CARD
    return window.near.nearest == "card" and distance <= _BESIDE_CARD


def account(window: Window, _: Reading) -> float:
    """Numbers of accounts, insurances, schools and firms: a cue names them, nothing checks them."""
    digits, nearest, distance = window.digits, window.near.nearest, window.near.distance("account")
    if not window.whole:
        return 0.0
    if window.shape == (2, 2, 2, 8) and window.gaps[:2] == ("-", "-"):
        return 0.85  # a sort code and an account; with a cue they are found apart
    if distance is None or distance > _FAR:
        around = window.near.around
        about = (
            "account" in around
            and nearest in ("", "account", "card", "adding")
            and len(digits) >= 9
        )
        papers = (
            "counter" in around
            and not around & {"adding", "profile", "qq"}
            and not window.near.kinds
        )
        return (
            0.6 if (about or (papers and len(digits) >= 7)) and not _is_impersonal(window) else 0.0
        )
    round_sum = len(digits) < 6 or digits.endswith("00")
    if len(digits) < 8 and distance > (12 if nearest != "account" or round_sum else 30):
        return 0.0
    return 0.9 if distance <= 10 else 0.75 if distance <= 24 else 0.6


def qq(window: Window, _: Reading) -> float:
    """QQ numbers: 5 to 11 digits (12 right behind the cue), not 0 first, and a cue."""
    digits, distance = window.digits, window.near.distance("qq")
    # Right behind the word somebody has typed a digit too many.
    most = 12 if distance is not None and distance <= 8 and window.near.nearest == "qq" else 11
    if distance is None or not 5 <= len(digits) <= most or digits[0] == "0" or not window.whole:
        return 0.0
    return 0.93 if distance <= 8 else 0.75


def qq_without_cue(window: Window, _: Reading) -> float:
    """A QQ number in a Chinese message that does not name QQ: nobody has another number of nine or ten digits, and
    what is said of a number (its age, its picture, who added whom) tells shorter ones."""
    digits, near = window.digits, window.near
    if len(window.shape) != 1 or not window.whole or window.glued or _is_impersonal(window):
        return 0.0
    if not _RE["bare_qq"].fullmatch(digits) or near.nearest not in (
        "",
        "phone",
        "qq",
        "wechat",
        "url",
    ):
        return 0.0
    if "profile" in near.around and "landline" not in near.around:
        return 0.72
    # Where the net is spoken of, a site may show the number.
    elsewhere = near.around & {"account", "card", "id", "url"} or any(
        kind == "other" for kind, _ in near.kinds
    )
    return 0.55 if len(digits) > 8 and not elsewhere else 0.0


def _is_impersonal(window: Window) -> bool:
    """Digits that stand for themselves: days, sums, sayings, round and repeated ones, powers of two, arithmetic."""
    digits = window.digits
    if any(_RE[name].fullmatch(digits) for name in ("day", "saying", "keys")) or digits.endswith(
        "0000"
    ):
        return True
    value = int(digits) if digits.isdecimal() else 3
    if len(set(digits)) < (4 if len(digits) > 8 else 3) or value & (value - 1) == 0:
        return True
    return (
        _RE["sum_before"].search(window.lead) is not None
        or _RE["sum_after"].match(window.tail) is not None
    )


# --- Telephones: China, North America, UK, AU, IE, NZ, IN, any `+`; others behind a cue, or in a source's countries ---

_CUES = ("phone", "landline")
_SHAPES_EN = {(3, 3, 4), (1, 3, 3, 4), (3, 7), (1, 3, 7), (6, 4), (3, 4, 3)}
_CODES = {
    region: str(code)
    for code, all_of in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
    for region in all_of
}


def _dialled(digits: str, country: str) -> Iterator[str]:
    """How a public line is dialled: in its country, and from abroad with the country's calling code."""
    code = _CODES[country]
    local = digits.removeprefix("1" if code == "1" and len(digits) == 11 else "0")
    yield from (digits, local) if code == "1" else (digits,)
    yield from (
        f"{prefix}{code}{own}" for prefix in ("", "00", "011", "0011") for own in (digits, local)
    )


_DIRECTORY = read_help_lines()
_LISTED = [(one.country, number_digits(one.number)) for one in _DIRECTORY.services]
_LISTED += [
    (country, digits)
    for country, lines in read_table("phones")["hotlines"].items()
    for digits in lines
]
_HOTLINES = {
    form for country, digits in _LISTED for form in _dialled(digits, country)
} | _DIRECTORY.owners.keys()


def is_public(window: Window, reading: Reading) -> bool:
    """Whether a number is a public line for help or service, or one that costs nothing: content, no personal data."""
    near, language = window.near, reading.language
    claimed = (
        near.nearest in ("qq", "wechat", "account")
        and near.kinds[0][1] <= 3
        and len(window.digits) <= 5
    )
    service = language == "zh" and _PHONE["service"].fullmatch(window.digits) is not None
    if (service or window.digits in _HOTLINES) and not claimed:
        return window.whole or len(window.digits) >= 8
    named = _PHONE["of_help"].search(reading.text, max(0, window.start - 60), window.start)
    return window.whole and bool(named or _PHONE[f"toll_free_{language}"].fullmatch(window.digits))


def _may_be_phone(window: Window, reading: Reading) -> bool:
    """Whether no word for other numbers stands nearer than one for a phone; a form of its own speaks against it."""
    near, reach = window.near, _ANYWHERE
    if reading.language == "zh" and _PHONE["mobile"].fullmatch(window.digits):
        reach = (
            2
            if window.shape == (3, 4, 4)
            else 3
            if len(window.shape) == 1 and not window.glued
            else _ANYWHERE
        )
    if reading.language == "en" and window.shape == (3, 3, 4) and window.whole:
        reach = 10
    other = near.nearest in ("card", "id") and reading.language == "en" and not _cued(window)
    return not (near.nearest_is_impersonal(reach) or other or _PHONE["plus"].search(window.lead))


def _cued(window: Window, reach: int = 99) -> bool:
    distance = window.near.distance(*_CUES)
    return distance is not None and distance <= reach


def _stands_alone(window: Window) -> bool:
    """Whether digits are no piece of a longer value, and no row of small numbers ("4 8 15 16 23 42")."""
    return window.whole and not window.glued and (len(window.shape) == 1 or max(window.shape) >= 3)


def _is_valid(number: str, country: str | None, *, possible: bool = False) -> bool:
    """Whether `phonenumbers` knows a number as given out, or only as of a `possible` length."""
    try:
        parsed = phonenumbers.parse(number, country)
    except phonenumbers.NumberParseException:
        return False
    return (
        phonenumbers.is_possible_number(parsed)
        if possible
        else phonenumbers.is_valid_number(parsed)
    )


def with_plus(window: Window, _: Reading) -> float:
    """An international number behind its `+`."""
    known = (
        window.whole
        and _PHONE["plus"].search(window.lead)
        and _is_valid(f"+{window.digits}", None, possible=True)
    )
    return 0.97 if known else 0.0


def mobile(window: Window, _: Reading) -> float:
    """A mobile of the mainland."""
    if not _PHONE["mobile"].fullmatch(window.digits):
        return 0.0
    return 0.97 if _cued(window) else 0.9 if window.whole and not window.glued else 0.0


def beyond_the_mainland(window: Window, _: Reading) -> float:
    """A number of Taiwan, Hong Kong or Macau: its own form, surer with a cue."""
    if not _stands_alone(window):
        return 0.0
    if _PHONE["taiwan"].fullmatch(window.digits) or _PHONE["from_abroad"].fullmatch(window.digits):
        return (
            0.95
            if _cued(window)
            else 0.8
            if len(window.shape) > 1
            else 0.7
            if window.digits[:2] == "09"
            else 0.0
        )
    return 0.7 if _PHONE["hong_kong"].fullmatch(window.digits) and _cued(window, 6) else 0.0


def landline(window: Window, _: Reading) -> float:
    """A Chinese landline with its area code, perhaps an extension behind; a local number near a word for one."""
    digits, near = window.digits, window.near
    extension = len(window.shape) > 2 and window.gaps[-1] == "-" and window.whole
    if _PHONE["landline"].fullmatch(digits):
        split = (
            0.85
            if window.shape[0] in (3, 4) and len(window.shape) > 1
            else 0.65
            if len(window.shape) == 1
            else 0.0
        )
        return 0.95 if _cued(window) else split if window.whole and not window.glued else 0.0
    if extension and _PHONE["landline"].fullmatch(digits[: -window.shape[-1]]):
        return 0.95 if _cued(window) else 0.85
    local = window.whole and not window.glued and _PHONE["local"].fullmatch(digits)
    if local and near.around & {*_CUES} and near.nearest in ("", *_CUES):
        return 0.65 if _cued(window) else 0.55
    return 0.0


def north_american(window: Window, _: Reading) -> float:
    """Ten digits of the North American plan, with its 1 or without."""
    digits = window.digits
    ten = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    if len(ten) != 10 or ten[0] not in "23456789":
        return 0.0
    grouped = window.shape in _SHAPES_EN
    if _cued(window) and (window.whole or grouped):
        return 0.95
    likely = grouped or window.shape == (5, 5) or _is_valid(ten, "US")  # 5 and 5: India's
    return 0.85 if likely and _stands_alone(window) else 0.0


def trunk(window: Window, _: Reading) -> float:
    """A number that begins with 0 at home."""
    if not _PHONE["trunk"].fullmatch(window.digits):
        return 0.0
    if _cued(window):
        return 0.93 if window.whole or len(window.shape) <= 4 else 0.75
    alone = window.digits[:2] in ("07", "04") or len(window.shape) > 1
    return 0.75 if alone and _stands_alone(window) else 0.0


def abroad(window: Window, _: Reading) -> float:
    """An international number without its `+`."""
    digits, cued = window.digits, _cued(window)
    bare = digits.removeprefix("011").removeprefix("00")
    if len(bare) < 11 or digits[0] == "1" or not _is_valid(f"+{bare}", None, possible=cued):
        return 0.0
    return (
        0.9 if cued else 0.85 if window.whole and bare != digits and len(window.shape) > 1 else 0.0
    )


def of_countries(window: Window, reading: Reading) -> float:
    """A number of a source's countries, in groups where no cue stands beside it."""
    cued = _cued(window) and window.whole and not window.glued
    if not cued and not (len(window.shape) > 1 and _stands_alone(window)):
        return 0.0
    known = any(_is_valid(window.digits, country) for country in reading.countries)
    return (0.9 if cued else 0.7) if known else 0.0


def told(window: Window, reading: Reading) -> float:
    """Digits of any country right behind a word for a phone."""
    said = _DIGITS["phone_word"].search(reading.text[max(0, window.start - 30) : window.start])
    return 0.7 if said and window.whole and 7 <= len(window.digits) <= 12 else 0.0


# The surest counts; of two that are equally sure the first. Gates: `bare`, no amount with a decimal point or a unit
# behind; `phone`, no word for other numbers stands nearer either.
NUMBERS = (
    Rule("card", "CREDIT_CARD", card),
    Rule("resident_id", "NATIONAL_ID", resident_id, languages=("zh",)),
    Rule("national_id", "NATIONAL_ID", national_id, languages=("en",)),
    Rule("cued_qq", "QQ", qq, "bare"),
    Rule("qq", "QQ", qq_without_cue, "bare", ("zh",)),
    Rule("account", "ACCOUNT_NUMBER", account, "bare"),
    Rule("plus", "PHONE_NUMBER", with_plus, "bare"),
    Rule("mobile", "PHONE_NUMBER", mobile, "phone", ("zh",)),
    Rule("beyond_the_mainland", "PHONE_NUMBER", beyond_the_mainland, "phone", ("zh",)),
    Rule("landline", "PHONE_NUMBER", landline, "phone", ("zh",)),
    Rule("north_american", "PHONE_NUMBER", north_american, "phone", ("en",)),
    Rule("trunk", "PHONE_NUMBER", trunk, "phone", ("en",)),
    Rule("abroad", "PHONE_NUMBER", abroad, "phone", ("en",)),
    Rule("countries", "PHONE_NUMBER", of_countries, "phone"),
    Rule("told_phone", "PHONE_NUMBER", told, "phone"),
)
_PUBLIC_LINE = Rule("public line", "", lambda *_: 1.0)  # taken, and then left in


def find_numbers(reading: Reading) -> Iterator[Span]:
    """Spans of everything that is written in digits alone."""
    text, barrier = reading.text, 0
    for run in _runs(reading):
        end = run[-1][1]
        digits = "".join(reading.digits[start:stop] for start, stop in run)
        # A Chinese phone's or a bank card's, whatever stands beside them.
        card_form = _PHONE["card_form"].fullmatch(digits) and luhn(digits)
        formed = reading.language == "zh" and bool(
            card_form or _PHONE["phone_form"].fullmatch(digits)
        )
        near = reading.near(run[0][0], end, barrier, formed=formed)
        barrier = end
        found = []
        for window in _windows(run, reading, near):
            gates = {""}
            if not (
                _DIGITS["unit"].match(text, window.end)
                or (window.gaps == (".",) and window.shape[1] <= 2)
            ):
                gates |= {"bare", "phone"} if _may_be_phone(window, reading) else {"bare"}
            rules = [
                rule
                for rule in NUMBERS
                if rule.gate in gates and reading.language in rule.languages
            ]
            if is_public(window, reading):
                rules = [_PUBLIC_LINE]
            score, rule = max(
                ((rule.find(window, reading), rule) for rule in rules), key=itemgetter(0)
            )
            if score >= 0.5:
                found.append((score, len(window.digits), -window.start, window, rule))
        # The surest and longest first, none over another.
        taken = bytearray(end + 4)
        for score, *_, window, rule in sorted(found, key=lambda item: item[:3], reverse=True):
            start, end = window.start, window.end
            if taken.find(1, start, end) >= 0:
                continue
            taken[start:end] = b"\x01" * (end - start)
            if rule.type == "PHONE_NUMBER" and (
                edge := _PHONE["plus"].search(text, max(0, start - 3), start)
            ):
                start = edge.start()
            if rule.type:
                reading.take(start, end)
                yield Span(start, end, rule.type, score, rule.name)
