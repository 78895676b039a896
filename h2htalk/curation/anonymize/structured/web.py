"""E-mail, web and IP addresses, and accounts of networks; `reading.deobfuscate` reads disguises of `@` and dots."""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.english.persons import is_word, words
from h2htalk.curation.anonymize.spans import HAN
from h2htalk.curation.anonymize.structured.reading import Hit, Reading, internet_words, patterns

_WEB, _IP = map(patterns, ("web", "ip_addresses"))
_ANYWHERE = 1000
_MARKS = ".,;:!?'\"*|~(["


def emails(reading: Reading) -> Iterator[Hit]:
    """E-mail addresses, to the last ending of a domain in their host; behind an `@` an unknown one is one too."""
    for match in _WEB["address"].finditer(reading.text):
        labels = list(_WEB["label"].finditer(reading.text, *match.span("mail_host")))
        known = [label.end() for label in labels[1:] if is_ending(label.group())]
        last = labels[-1].group()
        if known or (last.isalpha() and 2 <= len(last) <= 12):
            yield match.start(), known[-1] if known else match.end(), 0.99


def urls(reading: Reading) -> Iterator[Hit]:
    """Addresses with a scheme, but those of organisations that help."""
    return ((m.start(), _end(m), 0.98) for m in _WEB["scheme"].finditer(reading.text) if not _is_of_help(m.group()))


def domains(reading: Reading) -> Iterator[Hit]:
    """Addresses without a scheme, but those of organisations that help, typing slips ("ok.thanks") and files."""
    for match in _WEB["host"].finditer(reading.text):
        labels = reading.text[match.start() : match.start("rest")].split(".")
        last, sure = labels[-1], len(match["rest"]) > 1 or labels[0] == "www"
        if not is_ending(last) or _is_of_help(match.group()):
            continue
        if not sure and (last in internet_words("weak") or len(last) > 3 or last in internet_words("words_as_endings")):
            told = len(labels) > 2 or reading.near(*match.span()).distance("url") is not None
            if len(labels[-2]) <= 3 or not (told or any(map(str.isdigit, labels[-2]))):
                continue
        yield match.start(), _end(match), 0.95 if sure else 0.8


def _end(match: re.Match[str]) -> int:
    """Where an address ends without the sentence's marks, and without a bracket that was opened before it."""
    address = match.group().rstrip(_MARKS)
    while address.endswith((")", "]")) and not {"(", "["} & {*address}:
        address = address[:-1].rstrip(_MARKS)
    return match.start() + len(address)


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in internet_words("strong") or label in internet_words("weak")


def _is_of_help(url: str) -> bool:
    """Whether a web address is that of a help line or an organisation that helps."""
    labels = re.split("[/?#]", url.partition("://")[2] or url)[0].split(".")
    return any(".".join(labels[at:]) in internet_words("help") for at in range(len(labels)))


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
        first = _IP["octet"].match(reading.digits, four.start())
        at = four.end() if score or first is None else first.end()


def _score(match: re.Match[str], reading: Reading) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    start, end = match.span()
    octets = [octet.replace(" ", "") for octet in _IP["octet"].findall(match.group())]
    values = list(map(int, octets))
    if len(octets) != 4 or max(values) > 255 or any(len(octet) > 1 and octet[0] == "0" for octet in octets):
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
    """`@name` that begins a word and is no address at a domain."""
    for found in _RE["mention"].finditer(reading.text):
        name = found.group()[1:].rstrip(".-")
        domain = "." in name and name.rpartition(".")[2] in _DOMAINS
        if not domain and name not in _public() and not _RE["no_mention"].fullmatch(name):
            yield found.start(), found.start() + 1 + len(name), 0.9


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    return frozenset("".join(name) for names in words().known.values() for name in names)


def han_mentions(reading: Reading) -> Iterator[Hit]:
    """`@name` in Chinese characters, where a network or an account is spoken of."""
    for found in _RE["han_mention"].finditer(reading.text):
        near = slice(max(found.start() - _REACH_MENTION, 0), found.end() + _REACH_MENTION)
        if _RE["han_mention_cue"].search(reading.text[near]):
            yield *found.span(), 0.8


def _networks(reading: Reading) -> list[tuple[int, int]]:
    """Where a network or an account is spoken of."""
    return [found.span() for found in _RE[f"cue_{reading.language}"].finditer(reading.text)]


def marked_names(reading: Reading) -> Iterator[Hit]:
    """Names that are no words, near a network in the same sentence."""
    text, cues = reading.text, _networks(reading)
    starts = [start for start, _ in cues]
    for found in _RE["marked"].finditer(text) if cues else ():
        words_joined = all(part.isalpha() and is_word(part) for part in re.split("[-.]", found.group()))
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

_ELSEWHERE = frozenset(["other", "account", "plate"])
_SHORTEST, _LONGEST = 6, 20


def _with_han_digits(reading: Reading) -> str:
    """The text, in which Han digits in a Latin word are digits: coco八八."""
    if reading.text.isascii():
        return reading.text
    return _WECHAT["han_digits"].sub(lambda m: reading.digits[m.start() : m.end()], reading.text)


def wechat_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids right behind a cue."""
    text = _with_han_digits(reading)
    glued = [cue.end() for cue in _WECHAT["glued"].finditer(text)] if reading.language == "zh" else []
    for cue_end in (*(cue.end for cue in reading.cues if cue.kind == "wechat"), *glued):
        lead = _WECHAT["lead"].match(text, cue_end)
        start = lead.end() if lead else cue_end
        while start > cue_end and _WECHAT["piece"].match(text[start - 1]):
            start -= 1  # a word of the lead that is the beginning of the id
        piece = _WECHAT["piece"].match(text, start)
        whole, end = "", start
        while piece:
            added = piece.group()
            short = len(whole) < _SHORTEST
            if whole and (len(whole) + len(added) > _LONGEST or not (short or added.isdigit() or len(added) < 3)):
                break
            whole, end = whole + added, piece.end()
            further = _WECHAT["further"].match(text, end)
            piece = _WECHAT["piece"].match(text, further.end()) if further else None
        value = whole.rstrip("-_")
        lettered = value[:1].isalpha() or (_is_marked(value) and not value.isdigit())
        is_qq = value.startswith("qq") and value[2:].isdigit()
        if _SHORTEST <= len(value) <= _LONGEST and lettered and not is_qq and value not in internet_words("no_wechat"):
            yield start, end - (len(whole) - len(value)), 0.93 if _is_marked(value) else 0.8


def wechat_about(reading: Reading) -> Iterator[Hit]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue.start for cue in reading.cues if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in reading.cues):
        return
    for match in _WECHAT["token"].finditer(_with_han_digits(reading)):
        value, (start, end) = match.group(), match.span()
        if not (_SHORTEST <= len(value) <= _LONGEST and any("a" <= char <= "z" for char in value)):
            continue
        if value in internet_words("no_wechat") or _WECHAT["no_id"].match(value):
            continue
        near = reading.near(start, end)
        if near.nearest in _ELSEWHERE or not (_is_marked(value) or "-" in value):
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
