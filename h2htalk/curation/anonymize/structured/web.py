"""E-mail, web and IP addresses; ways around their `@` and dots are rewritten before (`deobfuscation`)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.normalization import HAN
from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns
from h2htalk.curation.anonymize.structured.reading import Hit, Reading

_RE, _IP = map(patterns, ("web", "ip_addresses"))
_ANYWHERE = 1000
_MARKS = ".,;:!?'\"*|~(["


def emails(reading: Reading) -> Iterator[Hit]:
    """E-mail addresses, to the last ending of a domain in their host; behind an `@` an unknown one is one too."""
    for match in _RE["address"].finditer(reading.text):
        labels = list(_RE["label"].finditer(reading.text, *match.span("mail_host")))
        known = [label.end() for label in labels[1:] if is_ending(label.group())]
        last = labels[-1].group()
        if known or (last.isalpha() and 2 <= len(last) <= 12):
            yield match.start(), known[-1] if known else match.end(), 0.99


def urls(reading: Reading) -> Iterator[Hit]:
    """Addresses with a scheme, but those of organisations that help."""
    return ((m.start(), _end(m), 0.98) for m in _RE["scheme"].finditer(reading.text) if not _is_of_help(m.group()))


def domains(reading: Reading) -> Iterator[Hit]:
    """Addresses without a scheme, but those of organisations that help."""
    for match in _RE["host"].finditer(reading.text):
        path = len(match["rest"]) > 1
        if _is_domain(reading, match, path=path) and not _is_of_help(match.group()):
            yield match.start(), _end(match), 0.95 if path or match.group().startswith("www.") else 0.8


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


def _is_domain(reading: Reading, match: re.Match[str], *, path: bool) -> bool:
    """Whether words with dots in between are a domain, and not a typing slip ("ok.thanks") or a file."""
    labels = reading.text[match.start() : match.start("rest")].split(".")
    last = labels[-1]
    if not is_ending(last):
        return False
    if path or labels[0] == "www":
        return True
    if last in internet_words("weak") or len(last) > 3 or last in internet_words("words_as_endings"):
        told = len(labels) > 2 or reading.near(*match.span()).distance("url") is not None
        return len(labels[-2]) > 3 and (told or any(map(str.isdigit, labels[-2])))
    return True


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
        score = _score(four, reading) if reading.taken.free(*four.span()) else 0.0
        if score:
            yield *four.span(), score
        first = _IP["octet"].match(reading.digits, four.start())
        at = four.end() if score or first is None else first.end()


def _score(match: re.Match[str], reading: Reading) -> float:
    """How sure we are of four numbers with dots: versions and dates look the same."""
    start, end = match.span()
    octets = [octet.replace(" ", "") for octet in _IP["octet"].findall(match.group())]
    if len(octets) != 4 or any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return 0.0
    if _IP["version"].search(reading.text[max(0, start - 12) : start]) or _IP["version_behind"].match(
        reading.text, end
    ):
        return 0.0
    near = reading.near(start, end)
    cued = near.distance("ip") is not None
    gaps = {re.sub(r"\s", "", gap) for gap in _IP["octet"].split(match.group())[1:-1]}
    if any(not gap or _IP["loose"].fullmatch(gap) for gap in gaps):
        return 0.8 if cued and len(gaps) == 1 else 0.0
    if cued:
        return 0.97
    values = [int(octet) for octet in octets]
    spelt = any(char in HAN for char in reading.text[start:end])
    # No version begins with so high a number: only a word right before it speaks against it.
    reach = 2 if values[0] >= 32 and max(values) >= 60 else _ANYWHERE
    if near.nearest_is_impersonal(reach) or max(values) < (100 if spelt else 32 if values[0] != 10 else 13):
        return 0.0
    return 0.9
