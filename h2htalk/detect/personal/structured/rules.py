"""The table of the rules of structured personal data, their functions, and the finder that applies them.

A rule is called by its name in `found_by`, which `curate explain` prints. To switch one off, take its line out of
`RULES` (rules of a form) or `NUMBERS` (rules of digits, in `numbers`). To add a format, add an expression to
`words/patterns.toml` (of a plate: `known` in `[licence_plates]`) or a line here with `_matches`.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from stdnum import iban

from h2htalk.data.languages import find_language
from h2htalk.detect.personal.chinese.words import usual
from h2htalk.detect.personal.english.persons import is_word, words
from h2htalk.detect.personal.spans import HAN, NormalizedText, Span
from h2htalk.detect.personal.structured.numbers import find_numbers
from h2htalk.detect.personal.structured.reading import (
    Hit,
    Reading,
    Rule,
    deobfuscate,
    internet_words,
    patterns,
)

_WEB, _IP = map(patterns, ("web", "ip_addresses"))
_ANYWHERE = 1000
_MARKS = ".,;:!?'\"*|~(["
# What a router is called in every house, beside a machine's own 127.0.0.1.
_ANYBODYS = frozenset([(192, 168, 0, 1), (192, 168, 1, 1), (0, 0, 0, 0)])


def emails(reading: Reading) -> Iterator[Hit]:
    """E-mail addresses but those of help, to the last ending of a domain in their host; behind an `@` an unknown one is
    one too."""
    for match in _WEB["address"].finditer(reading.text):
        labels = list(_WEB["label"].finditer(reading.text, *match.span("mail_host")))
        known = [label.end() for label in labels[1:] if is_ending(label.group())]
        last = labels[-1].group()
        if (known or (last.isalpha() and 2 <= len(last) <= 12)) and not _is_listed(
            match["mail_host"], "help"
        ):
            yield match.start(), known[-1] if known else match.end(), 0.99


def urls(reading: Reading) -> Iterator[Hit]:
    """Addresses with a scheme that are somebody's."""
    return (
        hit
        for m in _WEB["scheme"].finditer(reading.text)
        for hit in _if_personal(reading, m, m["rest"], 0.98)
    )


def domains(reading: Reading) -> Iterator[Hit]:
    """Addresses without a scheme that are somebody's; no typing slips ("ok.thanks") and no files."""
    for match in _WEB["host"].finditer(reading.text):
        labels = reading.text[match.start() : match.start("rest")].split(".")
        sure = len(match["rest"]) > 1 or labels[0] == "www"
        slip = len(labels) == 2 and (len(labels[0]) <= 3 or is_word(labels[0]))
        if is_ending(labels[-1]) and (sure or not slip):
            yield from _if_personal(reading, match, match.group(), 0.95 if sure else 0.8)


def _if_personal(
    reading: Reading, match: re.Match[str], address: str, score: float
) -> Iterator[Hit]:
    """An address that names somebody: the path of an account, a document or a group, the host of somebody's pages, or
    any of which is said that it is somebody's. Others are content: nothing in them is anything else."""
    # The sentence's marks are no part of it, nor is a bracket that was opened before it.
    shown = match.group().rstrip(_MARKS)
    while shown.endswith((")", "]")) and not {"(", "["} & {*shown}:
        shown = shown[:-1].rstrip(_MARKS)
    start, end, text = match.start(), match.start() + len(shown), reading.text
    host, path = re.split("(?=[/?#:])|$", address, maxsplit=1)
    own = _is_listed(host.partition(".")[2], "pages") and not host.startswith(
        ("www.", "help.", "support.", "about.")
    )
    account = _is_listed(host, "accounts") and _WEB["account"].match(path)
    told = _WEB["own_before"].search(text, max(0, start - 60), start) or _WEB["own_behind"].match(
        text, end
    )
    if not _is_listed(host, "help") and (
        own or account or told or _WEB["account_anywhere"].search(path)
    ):
        yield start, end, score
    elif path or "://" in match.group():
        reading.take(start, end)


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in internet_words("strong") or label in internet_words("weak")


def _is_listed(host: str, sites: str) -> bool:
    """Whether a host belongs to a site of a list of `words/internet.toml`."""
    labels = host.split(".")
    return any(".".join(labels[at:]) in internet_words(sites) for at in range(len(labels)))


def ip6(reading: Reading) -> Iterator[Hit]:
    """IP addresses, version 6."""
    for six in _IP["six"].finditer(reading.digits) if ":" in reading.digits else ():
        value = six.group().replace("o", "0")
        try:
            ipaddress.IPv6Address(value)
        except ValueError:
            continue
        if any(map(str.isdigit, value)):
            yield *six.span(), 0.95


def ip4(reading: Reading) -> Iterator[Hit]:
    """IP addresses, version 4."""
    at = 0
    while four := _IP["four"].search(reading.digits, at):
        score = _score(four, reading) if reading.is_free(*four.span()) else 0.0
        if score:
            yield *four.span(), score
        at = four.end() if score else four.start() + 1


def _score(match: re.Match[str], reading: Reading) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    start, end = match.span()
    octets = [octet.replace(" ", "") for octet in _IP["octet"].findall(match.group())]
    values = list(map(int, octets))
    if values[:1] == [127] or tuple(values) in _ANYBODYS:
        return 0.0
    if (
        len(octets) != 4
        or max(values) > 255
        or any(len(octet) > 1 and octet[0] == "0" for octet in octets)
    ):
        return 0.0
    before = reading.text[max(0, start - 12) : start]
    if _IP["version"].search(before) or _IP["version_behind"].match(reading.text, end):
        return 0.0
    near = reading.near(start, end)
    cued = near.distance("ip") is not None
    gaps = {re.sub(r"\s", "", gap) for gap in _IP["octet"].split(match.group())[1:-1]}
    if any(not gap or _IP["loose"].fullmatch(gap) for gap in gaps):
        return 0.8 if cued and len(gaps) == 1 else 0.0
    if cued:
        return 0.97
    # No version begins with so high a number: only a word right before it speaks against it.
    reach = 2 if values[0] >= 32 and max(values) >= 60 else _ANYWHERE
    spelt = any(char in HAN for char in reading.text[start:end])
    least = 100 if spelt else 32 if values[0] != 10 else 13
    return 0.9 if max(values) >= least and not near.nearest_is_impersonal(reach) else 0.0


# --- Accounts on social networks and in games: `@name`, a name beside the network's ---

_RE, _WECHAT = map(patterns, ("handles", "messenger_ids"))
# Endings of a domain, of which somebody's mailbox may be spoken of; other endings are a handle's.
_DOMAINS = frozenset(["com", "net", "org", "edu", "gov", "cn", "uk", "io"])
_REACH_BEFORE, _REACH_BEHIND, _REACH_CALLED, _REACH_MENTION = 34, 26, 24, 60


def mentions(reading: Reading) -> Iterator[Hit]:
    """`@name` that begins a word and is no address at a domain; of Chinese characters where a network is spoken of."""
    for found in _RE["mention"].finditer(reading.text):
        name = found.group()[1:].rstrip(".-")
        domain = "." in name and name.rpartition(".")[2] in _DOMAINS
        if not domain and name not in _public() and not _RE["no_mention"].fullmatch(name):
            yield found.start(), found.start() + 1 + len(name), 0.9
    for found in _RE["han_mention"].finditer(reading.text):
        first, last = max(found.start() - _REACH_MENTION, 0), found.end() + _REACH_MENTION
        if _RE["han_mention_cue"].search(reading.text, first, last):
            yield *found.span(), 0.8


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    return frozenset("".join(name) for names in words().known.values() for name in names)


def _networks(reading: Reading) -> list[tuple[int, int]]:
    """Where a network or an account is spoken of."""
    return [found.span() for found in _RE[f"cue_{reading.language}"].finditer(reading.text)]


def marked_names(reading: Reading) -> Iterator[Hit]:
    """Names that are no words, near a network in the same sentence; digits and plain letters right behind it."""
    text, cues = reading.text, _networks(reading)
    told = (
        found
        for found in _RE[f"told_{reading.language}"].finditer(text)
        if not is_word(found["name"].strip("."))
    )
    yield from ((*found.span("name"), 0.75) for found in told)
    starts = [start for start, _ in cues]
    for found in _RE["marked"].finditer(text) if cues else ():
        words_joined = all(
            part.isalpha() and is_word(part) for part in re.split("[-.]", found.group())
        )
        if words_joined or _RE["no_name"].fullmatch(found.group()):
            continue  # a space is missing behind a full stop, two words are joined by a hyphen
        behind = bisect_left(starts, found.end())
        before = bisect_left(starts, found.start()) - 1
        if (before >= 0 and _leads(text[cues[before][1] : found.start()], _REACH_BEFORE)) or (
            behind < len(cues) and _leads(text[found.end() : cues[behind][0]], _REACH_BEHIND)
        ):
            yield *found.span(), 0.8


def _leads(between: str, reach: int) -> bool:
    return len(between) <= reach and not _RE["sentence_end"].search(between)


def han_names(reading: Reading) -> Iterator[Hit]:
    """Any name that somebody is "called" (叫) behind a network."""
    text, ends = reading.text, [end for _, end in _networks(reading)]
    for called in _RE["called"].finditer(text) if ends else ():
        before = bisect_left(ends, called.start() + 1) - 1
        found = _RE["han_name"].match(text, called.end())
        if before < 0 or found is None or _RE["no_han_name"].match(found.group()):
            continue
        if _leads(text[ends[before] : called.start()], _REACH_CALLED):
            yield *found.span(), 0.7


# --- WeChat ids: letters and digits beside a cue, or `wxid_`; ids of digits alone are in `numbers` ---

_NO_HANDLE = frozenset(["other", "account", "plate"])


def _with_han_digits(reading: Reading) -> str:
    """The text, in which Han digits in a Latin word are digits: coco八八."""
    return _WECHAT["han_digits"].sub(lambda m: reading.digits[m.start() : m.end()], reading.text)


def wechat_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids right behind a cue: one piece, or more while they are too short."""
    text = _with_han_digits(reading)
    ends = [cue.end for cue in reading.cues if cue.kind == "wechat"]
    for cue_end in (*ends, *(cue.end() for cue in _WECHAT["glued"].finditer(text))):
        found = _WECHAT["behind"].match(text, cue_end)
        if found and found["id"] not in internet_words("no_wechat"):
            yield *found.span("id"), 0.93 if _is_marked(found["id"]) else 0.8


def wechat_about(reading: Reading) -> Iterator[Hit]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue.start for cue in reading.cues if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in reading.cues):
        return
    for match in _WECHAT["token"].finditer(_with_han_digits(reading)):
        value, (start, end) = match.group(), match.span()
        if value in internet_words("no_wechat") or _WECHAT["no_id"].match(value):
            continue
        near = reading.near(start, end)
        if near.nearest in _NO_HANDLE or not (_is_marked(value) or "-" in value):
            continue
        direct = near.distance("wechat") is not None
        beside = bisect_left(adding, start - 24) < bisect_right(adding, end + 20)
        if direct or "wechat" in near.around:
            yield start, end, 0.85 if direct else 0.75
        elif near.nearest in ("", "phone", "url", "qq") and beside:
            yield start, end, 0.65


def _is_marked(value: str) -> bool:
    """Whether a figure or an underscore says that it is no word."""
    return any(char.isdigit() or char == "_" for char in value)


_GATES, _ID, _PLATE, _BIRTH = map(
    patterns, ("structured", "alphanumeric_ids", "licence_plates", "birth_dates")
)
_BODY = patterns("chinese_organizations")
_CUES_OF_BODIES = ("place", "works_there", "begins", "called", "enters", "enters_school")


# --- Ids of letters and digits: IBAN, UK National Insurance, passports, papers of a state ---

_ELSEWHERE = frozenset(["other", "wechat", "plate", "qq"])


def ibans(reading: Reading) -> Iterator[Hit]:
    """IBANs, each to the first length at which its check digits are right."""
    for match in _ID["iban"].finditer(reading.text):
        value = ""
        for place, char in enumerate(match.group(), match.start() + 1):
            value += char.upper() if char.isalnum() else ""
            if char.isalnum() and len(value) >= 15 and iban.is_valid(value, check_country=False):
                yield match.start(), place, 0.98
                break


def national_insurance(reading: Reading) -> Iterator[Hit]:
    """British National Insurance numbers: with a cue, or in capitals with a prefix that is given out."""
    for match in _ID["national_insurance"].finditer(reading.digits):
        near = reading.near(*match.span())
        alone = (
            near.nearest not in ("other", "account", "plate")
            and reading.visible[match.start()].isupper()
        )
        named = near.distance("id") is not None
        if named or (alone and _ID["given_out"].match(match.group())):
            yield *match.span(), 0.97 if named else 0.85


def accounts_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids behind a cue of an account, or of a member's card (卡号VIP022767)."""
    text = reading.text
    for cue in reading.cues:
        card = cue.kind == "card" and text.endswith(("卡号", "number", "no"), cue.start, cue.end)
        match = _ID["behind"].match(text, cue.end) if card or cue.kind == "account" else None
        if match and any(map(str.isalpha, match["id"])):
            yield *match.span("id"), 0.92


def chinese_passports(reading: Reading) -> Iterator[Hit]:
    """Passports in their own form, in capitals or where papers and counters are spoken of."""
    for match in _ID["chinese_passport"].finditer(reading.text):
        near = reading.near(*match.span())
        told = reading.visible[match.start()].isupper() or "counter" in near.around
        if told and near.nearest not in _ELSEWHERE and "adding" not in near.around:
            yield *match.span(), 0.7


def passports(reading: Reading) -> Iterator[Hit]:
    """A letter or two and digits, in a message that speaks of a passport or an account."""
    for match in _ID["passport"].finditer(reading.digits):
        near = reading.near(*match.span())
        if near.around & {"account", "id"} and near.nearest not in _ELSEWHERE:
            yield *match.span(), 0.9 if near.distance("account", "id") is not None else 0.7


# --- Licence plates: Chinese ones by their form, others behind a word for a plate or by their shape near a car ---

_NO_PART = internet_words("no_plate_words")
_ABOUT = frozenset(["vehicle", "plate"])
_NO_CAR = frozenset(["other", "account", "id", "wechat"])
_AS_DIGIT = str.maketrans("ioszbl", "105281")
_LONGEST_PLATE = 8


def plates_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Plates right behind a word for one, whatever their shape: letters and figures, five to eight."""
    text = reading.digits
    for cue in (cue for cue in reading.cues if cue.kind == "plate"):
        lead = _PLATE["lead"].match(text, cue.end)
        start = end = lead.end() if lead else cue.end
        whole, best = "", 0
        for piece in _PLATE["piece"].finditer(text, start, start + 3 * _LONGEST_PLATE):
            spelt = len(whole) == len(piece.group()) == 1
            apart = whole and not _PLATE["separator"].fullmatch(text, end, piece.start())
            if (
                apart
                or (not whole and piece.start() > start)
                or (piece.group() in _NO_PART and not spelt)
            ):
                break
            whole, end = whole + piece.group(), piece.end()
            figures = sum(map(str.isdigit, whole))
            mixed = 2 <= figures < len(whole) or (figures == len(whole) > 5)
            if (
                5 <= len(whole) <= _LONGEST_PLATE
                and mixed
                and not _PLATE["no_direct"].fullmatch(whole)
            ):
                best = end
        if best and not _PLATE["digits_behind"].match(text, best):
            yield start, best, 0.9


def plates_by_shape(reading: Reading) -> Iterator[Hit]:
    """Plates in a message that speaks of a car or a plate; Britain's and California's in capitals anywhere."""
    if not (
        any(cue.kind in _ABOUT for cue in reading.cues)
        or _PLATE["own_form"].search(reading.visible)
    ):
        return
    text = reading.digits if reading.text.isascii() else reading.text
    pieces = list(_PLATE["piece"].finditer(text))
    last = 0
    for first in range(len(pieces)):
        for row in (
            pieces[first : first + 3],
            pieces[first : first + 2],
            pieces[first : first + 1],
        ):
            score = _plate_score(text, row, reading) if row[0].start() >= last else 0.0
            if score:
                last = row[-1].end()
                yield row[0].start(), last, score


def _plate_score(text: str, row: list[re.Match[str]], reading: Reading) -> float:
    """How sure we are that neighbouring pieces are a plate together, by their shape."""
    start, end = row[0].start(), row[-1].end()
    parts = [piece.group() for piece in row]
    whole = "".join(parts)
    if not 5 <= len(whole) <= _LONGEST_PLATE or whole.isalpha() or not _NO_PART.isdisjoint(parts):
        return 0.0
    if len(whole) == 7 and not _PLATE["known"].fullmatch(whole):
        whole = whole[:2] + whole[2:4].translate(_AS_DIGIT) + whole[4:]  # ABI2 CDE
    if (
        not _PLATE["known"].fullmatch(whole)
        or _PLATE["no_plate"].fullmatch(whole)
        or not all(
            _PLATE["separator"].fullmatch(text, a.end(), b.start()) for a, b in pairwise(row)
        )
        or text[start - 1 : start] in ("@", "/", "_", ".")
        or text[end : end + 1] in ("@", "_")
        or _PLATE["digits_behind"].match(text, end)
        or _PLATE["digits_before"].search(text, max(0, start - 4), start)
    ):
        return 0.0
    near = reading.near(start, end)
    shown = reading.visible[start:end]
    elsewhere, about = near.nearest in _NO_CAR, not _ABOUT.isdisjoint(near.around)
    if (
        _PLATE["own_form"].fullmatch(shown)
        and shown[-3:] not in internet_words("no_plate_letters")
        and not elsewhere
    ):
        return 0.85 if about else 0.7
    if not about or elsewhere:
        return 0.0
    if shown.upper() == shown:
        return 0.85 if "plate" in near.around else 0.75
    return 0.65 if "plate" in near.around and (len(row) == 1 or "-" in shown) else 0.0


# --- Dates of birth: dates beside a word for being born or a birthday; other dates stay ---

_REACH = {"en": 40, "zh": 14}


def birth_dates(reading: Reading) -> Iterator[Hit]:
    """Dates with a cue in the same sentence, and in Chinese those that are somebody's: 我对象92年1月30号的."""
    text, language = reading.text, reading.language
    cues = [found.span() for found in _BIRTH[f"cue_{language}"].finditer(text)]
    for found in _BIRTH[f"date_{language}"].finditer(text):
        start, end = found.span()
        between = [text[stop:start] if stop <= start else text[end:begin] for begin, stop in cues]
        near = [words for words in between if len(words) <= _REACH[language]]
        counts = any(
            _BIRTH["lead"].fullmatch(words) or not _BIRTH["sentence_end"].search(words)
            for words in near
        )
        if not counts and language == "zh" and _BIRTH["birth_year"].search(text, start, end):
            of_somebody = _BIRTH["of_somebody"].search(text, max(start - 6, 0), start)
            counts = bool(of_somebody and _BIRTH["of"].match(text, end))
        if counts and not _BIRTH["past"].search(text, start, end + 6):
            yield start + (4 if found.group().startswith("the ") else 0), end, 0.85


def han_organizations(reading: Reading) -> Iterator[Hit]:
    """Employers, schools and clinics by how their names end, beside a word that somebody works, learns or is there."""
    found = [match for cue in _CUES_OF_BODIES for match in _BODY[cue].finditer(reading.text)]
    for match in sorted(found, key=lambda one: (one.start("name"), -one.end("name"))):
        own = match.groupdict().get(
            "own"
        )  # no words of everyday language, unless the cue tells enough
        if own is None or not all(map(usual, re.findall("..", own))):
            yield *match.span("name"), 0.7


def _matches(table: str, name: str, score: float) -> Callable[[Reading], Iterator[Hit]]:
    """A rule's function that gives all that an expression of `words/patterns.toml`, or its group `value`, matches."""
    pattern = patterns(table)[name]
    group = "value" if pattern.groupindex else 0
    return lambda reading: ((*m.span(group), score) for m in pattern.finditer(reading.text))


# In this order, each finds what no rule before it took. Mentions come before mail: "follow @name" is no address with
# spaces in it.
RULES = (
    Rule("mention", "HANDLE", mentions, "at"),
    Rule("email", "EMAIL_ADDRESS", emails, "at"),
    Rule("url", "URL", urls, "web"),
    Rule("domain", "URL", domains, "web"),
    Rule("ip6", "IP_ADDRESS", ip6, "number"),
    Rule("ip4", "IP_ADDRESS", ip4, "number"),
    Rule(
        "coordinates",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "coordinates_behind", 0.9),
        "degrees",
    ),
    Rule(
        "coordinates",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "coordinates_before", 0.9),
        "degrees",
    ),
    Rule(
        "named_coordinates",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "named_coordinates", 0.9),
        "degrees",
    ),
    Rule(
        "han_coordinates",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "chinese_coordinates", 0.9),
        "degrees",
        ("zh",),
    ),
    Rule("grid_reference", "ACCOUNT_NUMBER", _matches("record_numbers", "grid", 0.9), "degrees"),
    Rule(
        "court_case", "ACCOUNT_NUMBER", _matches("record_numbers", "court", 0.9), "record", ("zh",)
    ),
    Rule(
        "chinese_record",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "chinese", 0.9),
        "record",
        ("zh",),
    ),
    Rule(
        "chinese_parcel",
        "ACCOUNT_NUMBER",
        _matches("record_numbers", "chinese_parcel", 0.9),
        "record",
        ("zh",),
    ),
    Rule("english_record", "ACCOUNT_NUMBER", _matches("record_numbers", "english", 0.9), "record"),
    Rule("parcel", "ACCOUNT_NUMBER", _matches("record_numbers", "parcel", 0.9), "record"),
    Rule(
        "local_phone",
        "PHONE_NUMBER",
        _matches("record_numbers", "local_phone", 0.85),
        "local_phone",
    ),
    Rule(
        "plate_behind_car",
        "LICENSE_PLATE",
        _matches("record_numbers", "plate_behind_car", 0.9),
        "dotted_plate",
        ("zh",),
    ),
    Rule(
        "plate_before_car",
        "LICENSE_PLATE",
        _matches("record_numbers", "plate_before_car", 0.9),
        "dotted_plate",
        ("zh",),
    ),
    Rule("discord_name", "HANDLE", _matches("record_numbers", "discord", 0.9), "account_sign"),
    Rule("chinese_plate", "LICENSE_PLATE", _matches("licence_plates", "chinese", 0.95), "han_text"),
    Rule("cued_plate", "LICENSE_PLATE", plates_behind_cue, "number"),
    Rule("plate_shape", "LICENSE_PLATE", plates_by_shape, "number"),
    Rule("iban", "ACCOUNT_NUMBER", ibans, "number"),
    Rule("national_insurance", "NATIONAL_ID", national_insurance, "number"),
    Rule("cued_account", "ACCOUNT_NUMBER", accounts_behind_cue, "number"),
    Rule("chinese_passport", "ACCOUNT_NUMBER", chinese_passports, "number", ("zh",)),
    Rule("passport", "ACCOUNT_NUMBER", passports, "number"),
    Rule("cued_paper", "NATIONAL_ID", _matches("alphanumeric_ids", "cued", 0.8), "number", ("en",)),
    Rule("wxid", "WECHAT", _matches("messenger_ids", "wxid", 0.98), "latin", ("zh",)),
    Rule("cued_wechat", "WECHAT", wechat_behind_cue, "latin", ("zh",)),
    Rule("wechat", "WECHAT", wechat_about, "latin", ("zh",)),
)
# These find only what the digits leave.
LATE_RULES = (
    Rule("account_form", "HANDLE", _matches("handles", "own_form", 0.95), "account_sign"),
    Rule("marked_name", "HANDLE", marked_names),
    Rule("han_name", "HANDLE", han_names, "han_text", ("zh",)),
    Rule("birth_date", "DATE_OF_BIRTH", birth_dates),
    Rule("han_organization", "ORGANIZATION", han_organizations, "han_text", ("zh",)),
)


def find_structured(
    normalized: NormalizedText, language: str, countries: Sequence[str] = ()
) -> list[Span]:
    """Structured personal data of a text, in its order, without overlaps; `found_by` names the rule.

    The record of `language` decides which numbers and cue words are looked for, `countries` whose telephone numbers
    beside the usual ones. Places count characters of the reading. Scores: 0.95 and more where a check digit, a form
    of its own or a cue beside it speaks for it, else 0.5 to 0.9.
    """
    language = find_language(language).number_rules
    kept = _apply_rules(Reading(normalized, language, countries))
    meant, signs = deobfuscate(normalized, language) or (None, [])
    if meant is not None:
        # What shows where a disguise is taken off; a span that holds a plainer one takes its place.
        for found in _apply_rules(Reading(meant, language, countries)):
            span = replace(found, start=signs[found.start].start, end=signs[found.end - 1].end)
            under = [other for other in kept if other.overlaps(span)]
            if all(span.start <= other.start and other.end <= span.end for other in under):
                kept = [other for other in kept if other not in under] + [span]
    return [_with_brackets(span, normalized.text) for span in sorted(kept)]


def _apply_rules(reading: Reading) -> list[Span]:
    gates = {"", *(name for name, gate in _GATES.items() if gate.search(reading.text))}

    def found(rules: Sequence[Rule]) -> Iterator[Span]:
        for rule in rules:
            if reading.language in rule.languages and rule.gate in gates:
                for start, end, score in rule.find(reading):
                    if reading.is_free(start, end):
                        reading.take(start, end)
                        yield Span(start, end, rule.type, score, rule.name)

    return sorted(
        [
            *found(RULES),
            *(find_numbers(reading) if "five_digits" in gates else ()),
            *found(LATE_RULES),
        ]
    )


def _with_brackets(span: Span, text: str) -> Span:
    """The span with the brackets before or behind it that belong to those inside: (219)(09)(9987)."""
    start, end, inside = span.start, span.end, text[span.start : span.end]
    for opening, closing in ("()", "[]") if span.type not in ("URL", "EMAIL_ADDRESS") else ():
        lacking = inside.count(closing) - inside.count(opening)
        split = 0 <= inside.find(closing) < inside.find(opening)
        start -= (lacking > 0 or split) and text[:start].endswith(opening)
        end += (lacking < 0 or split) and text.startswith(closing, end)
    return replace(span, start=start, end=end)
