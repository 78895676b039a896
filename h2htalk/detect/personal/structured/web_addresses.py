"""Rules of e-mail addresses, addresses of the web, and IP addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from h2htalk.detect.personal.english.persons import is_word
from h2htalk.detect.personal.spans import HAN
from h2htalk.detect.personal.structured.reading import Hit, Reading, internet_words, patterns

_WEB = patterns("web")
_IP = patterns("ip_addresses")
_ANYWHERE = 1000
_MARKS = ".,;:!?'\"*|~(["
_BEFORE_ADDRESS = 60  # characters that may say whose an address is
# Hosts of a site's pages, not of somebody's.
_OF_SITES = ("www.", "help.", "support.", "about.")
# What a router is called in every house, beside a machine's own 127.0.0.1.
_ANYBODYS = frozenset([(192, 168, 0, 1), (192, 168, 1, 1), (0, 0, 0, 0)])


def emails(reading: Reading) -> Iterator[Hit]:
    """E-mail addresses but those of help, to the last ending of a domain in their host; behind an `@` an unknown one is
    one too."""
    for match in _WEB["address"].finditer(reading.text):
        labels = list(_WEB["label"].finditer(reading.text, *match.span("mail_host")))
        known_ends = [label.end() for label in labels[1:] if is_ending(label.group())]
        last = labels[-1].group()
        like_ending = last.isalpha() and 2 <= len(last) <= 12
        if (known_ends or like_ending) and not _is_listed(match["mail_host"], "help"):
            end = known_ends[-1] if known_ends else match.end()
            yield match.start(), end, 0.99


def urls(reading: Reading) -> Iterator[Hit]:
    """Addresses with a scheme that are somebody's."""
    for match in _WEB["scheme"].finditer(reading.text):
        yield from _if_personal(reading, match, match["rest"], 0.98)


def domains(reading: Reading) -> Iterator[Hit]:
    """Addresses without a scheme that are somebody's; no typing slips ("ok.thanks") and no files."""
    for match in _WEB["host"].finditer(reading.text):
        labels = reading.text[match.start() : match.start("rest")].split(".")
        first = labels[0]
        sure = len(match["rest"]) > 1 or first == "www"
        slip = len(labels) == 2 and (len(first) <= 3 or is_word(first))
        if is_ending(labels[-1]) and (sure or not slip):
            score = 0.95 if sure else 0.8
            yield from _if_personal(reading, match, match.group(), score)


def _if_personal(
    reading: Reading, match: re.Match[str], address: str, score: float
) -> Iterator[Hit]:
    """An address that names somebody. Others are content: nothing in them is anything else."""
    start = match.start()
    end = start + len(_without_marks(match.group()))
    host, path = re.split("(?=[/?#:])|$", address, maxsplit=1)
    if not _is_listed(host, "help") and _names_somebody(reading.text, start, end, host, path):
        yield start, end, score
    elif path or "://" in match.group():
        reading.take(start, end)


def _without_marks(address: str) -> str:
    """An address without the sentence's marks, and without a bracket that was opened before it."""
    bare = address.rstrip(_MARKS)
    while bare.endswith((")", "]")) and "(" not in bare and "[" not in bare:
        bare = bare[:-1].rstrip(_MARKS)
    return bare


def _names_somebody(text: str, start: int, end: int, host: str, path: str) -> bool:
    """Whether an address is the path of an account, a document or a group, the host of somebody's pages, or any of
    which is said that it is somebody's."""
    parent = host.partition(".")[2]
    if _is_listed(parent, "pages") and not host.startswith(_OF_SITES):
        return True
    if _is_listed(host, "accounts") and _WEB["account"].match(path):
        return True
    if _WEB["own_before"].search(text, max(0, start - _BEFORE_ADDRESS), start):
        return True
    if _WEB["own_behind"].match(text, end):
        return True
    return _WEB["account_anywhere"].search(path) is not None


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in internet_words("strong") or label in internet_words("weak")


def _is_listed(host: str, sites: str) -> bool:
    """Whether a host belongs to a site of a list of `words/internet.toml`."""
    labels = host.split(".")
    listed = internet_words(sites)
    return any(".".join(labels[first:]) in listed for first in range(len(labels)))


def ip6(reading: Reading) -> Iterator[Hit]:
    """IP addresses, version 6."""
    if ":" not in reading.digits:
        return
    for match in _IP["six"].finditer(reading.digits):
        value = match.group().replace("o", "0")
        try:
            ipaddress.IPv6Address(value)
        except ValueError:
            continue
        if any(map(str.isdigit, value)):
            yield match.start(), match.end(), 0.95


def ip4(reading: Reading) -> Iterator[Hit]:
    """IP addresses, version 4."""
    position = 0
    while match := _IP["four"].search(reading.digits, position):
        score = _ip4_score(match, reading) if reading.is_free(*match.span()) else 0.0
        if score:
            yield match.start(), match.end(), score
            position = match.end()
        else:
            position = match.start() + 1


def _ip4_score(match: re.Match[str], reading: Reading) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    start = match.start()
    end = match.end()
    octets = [octet.replace(" ", "") for octet in _IP["octet"].findall(match.group())]
    values = tuple(map(int, octets))
    if not _is_somebodys(octets, values):
        return 0.0
    before = reading.text[max(0, start - 12) : start]
    if _IP["version"].search(before) or _IP["version_behind"].match(reading.text, end):
        return 0.0
    cues = reading.near(start, end)
    cued = cues.distance("ip") is not None
    between = _IP["octet"].split(match.group())[1:-1]
    gaps = {re.sub(r"\s", "", gap) for gap in between}
    if any(not gap or _IP["loose"].fullmatch(gap) for gap in gaps):
        return 0.8 if cued and len(gaps) == 1 else 0.0
    if cued:
        return 0.97
    # No version begins with so high a number: only a word right before it speaks against it.
    highest = max(values)
    reach = 2 if values[0] >= 32 and highest >= 60 else _ANYWHERE
    spelt = any(char in HAN for char in reading.text[start:end])
    if spelt:
        least = 100
    elif values[0] != 10:
        least = 32
    else:
        least = 13
    return 0.9 if highest >= least and not cues.nearest_is_impersonal(reach) else 0.0


def _is_somebodys(octets: list[str], values: tuple[int, ...]) -> bool:
    """Whether four numbers may be an address, and not one that is the same in every house."""
    if values[:1] == (127,) or values in _ANYBODYS:
        return False
    if len(octets) != 4 or max(values) > 255:
        return False
    return not any(len(octet) > 1 and octet[0] == "0" for octet in octets)
