"""E-mail addresses, plain and hidden: `lin88@qq.com`, `lin88(at)qq点com`, `mike dot r at gmail dot com`."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.number_cues import Cues

_LOCAL = "abcdefghijklmnopqrstuvwxyz0123456789._%+-"
_LONGEST = 64
# Where an address may turn: `@` itself, then the ways around it. `sure`: nothing else is written so.
_AT = re.compile(
    r"(?P<sign>\s{0,2}@\s{0,2})"
    r"|(?P<sure>\s?[(\[{<]\s?(?:at|a|@|艾特|圈a)\s?[)\]}>]\s?|\s?(?:艾特|圈a|小老鼠|arroba)\s?"
    r"|\s?[\"*|/]\s?at\s?[\"*|/]\s?|(?<=[a-z0-9])[-_]at[-_](?=[a-z0-9]))"
    r"|(?P<word>\s{1,2}at\s{1,2})|(?P<hash>\s?[#*&$]\s?|(?<=[a-z0-9])[^\w\s!-~]{1,2}(?=[a-z0-9]{2,12}\.(?:com|net|cn)))"
)
_DOMAIN = re.compile(rf"{domains.LABEL}(?:{domains.ANY_DOT}{domains.LABEL}){{1,4}}|[a-z0-9]{{1,20}}com(?![a-z0-9])")
_PLAIN_DOMAIN = re.compile(r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,5}")
_MORE = re.compile(rf"(?:{domains.HIDDEN_DOT}|\s?[。点·]\s?|\s{{1,2}}dot\s{{1,2}})(?:com|cn|net|org|edu)(?![a-z])")
_COMMA_DOMAIN = re.compile(r"[a-z0-9-]{1,20},(?:com|cn|net)(?![a-z0-9])")
# A full stop with a space behind it: where nothing but the word "at" speaks for an address, the end of a sentence.
_SENTENCE = re.compile(r"\.\s|。")
_SPACED = re.compile(r"[a-z0-9._-](?: [a-z0-9._-])+(?![a-z0-9])")
_NO_LOCALS = domains.words("no_mailbox")
_LOCAL_JOINT = re.compile(
    rf"(?:{domains.HIDDEN_DOT}|\s(?:dot|underscore|dash|plus)\s|下划线|点|[-_](?:dot)[-_]|\s\.\s)$"
)


def email_spans(normalized: NormalizedText, cues: Cues) -> list[Span]:
    """Spans (places of the reading) of e-mail addresses."""
    text = normalized.text
    spans: list[Span] = []
    last = 0
    for at in _AT.finditer(text):
        if at.start() < last:
            continue
        span = _around(normalized, at, last, cues)
        if span is not None:
            spans.append(span)
            last = span.end
    return spans


def _around(normalized: NormalizedText, at: re.Match[str], floor: int, cues: Cues) -> Span | None:
    text = normalized.text
    spaced = at["sign"] is not None and _spaced(text, at, floor)
    if spaced:
        return spaced
    domain = _domain(normalized, at)
    if domain is None:
        return None
    end, known, hidden = domain
    start = _local_start(normalized, at, floor, bare=at["sign"] == "@" and not hidden, known=known)
    if start is None:
        return None
    local = text[start : at.start()]
    if at["sign"] is not None or at["sure"] is not None:
        tight = at["sign"] == "@" or at["sure"] is not None
        if not tight and not known and not _cued(cues, start, end) and local in _NO_LOCALS:
            return None
        return Span(start, end, "EMAIL_ADDRESS", 0.99 if at["sign"] == "@" and not hidden else 0.95)
    if local in _NO_LOCALS:
        return None
    if at["hash"] is not None:
        sure = known or (
            _cued(cues, start, end) and text[start:end].endswith((".com", ".cn", ".net", ".org", ".edu", ".uk"))
        )
        return Span(start, end, "EMAIL_ADDRESS", 0.9) if sure else None
    loose = _SENTENCE.search(text, at.end(), end) is not None
    if (hidden and not loose and text[end : end + 1] != "/") or (known and _cued(cues, start, end)):
        return Span(start, end, "EMAIL_ADDRESS", 0.9)
    return None


def _cued(cues: Cues, start: int, end: int) -> bool:
    return cues.near(start, end).distance("email") is not None


def _spaced(text: str, at: re.Match[str], floor: int) -> Span | None:
    """An address with a space between all its characters."""
    if at["sign"] != " @ ":
        return None
    start = at.start()
    while (
        start - 2 >= floor
        and text[start - 1] in _LOCAL
        and text[start - 2] == " "
        and at.start() - start < 2 * _LONGEST
    ):
        start -= 2
    if start - 1 >= floor and text[start - 1] in _LOCAL and (start == 1 or text[start - 2] not in _LOCAL):
        start -= 1
    else:
        start += 1
    after = _SPACED.match(text, at.end())
    if after is None or at.start() - start < 5:
        return None
    domain = after.group().replace(" ", "")
    labels = domain.split(".")
    return (
        Span(start, after.end(), "EMAIL_ADDRESS", 0.95) if len(labels) > 1 and domains.is_ending(labels[-1]) else None
    )


def _domain(normalized: NormalizedText, at: re.Match[str]) -> tuple[int, bool, bool] | None:
    """Where the domain behind an `@` ends, whether it is a mail provider's, and whether its dot was hidden."""
    text = normalized.text
    start = at.end()
    plain = _PLAIN_DOMAIN.match(text, start)
    if plain is not None:
        end = _cut(normalized, start, plain.end())
        if end is not None and not _goes_on(text, end):
            return end, text[start:end].split(".")[0] in domains.words("mail"), False
    match = _DOMAIN.match(text, start)
    if match is None:
        comma = _COMMA_DOMAIN.match(text, start)
        known = comma is not None and comma.group().split(",")[0] in domains.words("mail")
        return (comma.end(), True, True) if comma is not None and known else None
    end = start
    labels: list[str] = []
    best: int | None = None
    for part in domains.LABELS.finditer(text, start, match.end()):
        label = part[1]
        if label in ("dot", "d0t") and labels:
            continue
        labels.append(label)
        end = part.end()
        if (
            len(labels) > 1
            and domains.is_ending(label)
            and (best is None or label in domains.words("strong") or labels[-2] in ("co", "com", "ac", "org", "net"))
        ):
            best = end
        elif len(labels) > 1 and best is not None:
            break
        elif len(labels) > 1 and domains.cut_ending(label) and labels[0] in domains.words("mail"):
            best = part.start(1) + domains.cut_ending(label)
            break
    if best is None:
        glued = (
            labels and labels[0].endswith("com") and labels[0][:-3] in domains.words("mail") and at["sign"] is not None
        )
        return (start + len(labels[0]), True, True) if glued else None
    return best, labels[0] in domains.words("mail"), True


def _goes_on(text: str, end: int) -> bool:
    """Whether a domain that seems to end goes on behind a hidden dot: `vip.qq。com`."""
    return _MORE.match(text, end) is not None


def _cut(normalized: NormalizedText, start: int, end: int) -> int | None:
    """The end of a plain domain: its last label that is an ending; what a sentence glued to it goes."""
    text, shown = normalized.text, normalized.visible
    labels = list(domains.LABELS.finditer(text, start, end))
    best: int | None = None
    for place, label in enumerate(labels[1:], start=1):
        word = label.group()
        raised = shown[label.start()].isupper() and shown[labels[place - 1].start()].islower()
        if domains.is_ending(word) and not (raised and best is not None):
            best = label.end()
        elif best is None and domains.cut_ending(word) and place == len(labels) - 1:
            best = label.start() + domains.cut_ending(word)
    if best is None and len(labels) > 1 and labels[-1].group().isalpha() and 2 <= len(labels[-1].group()) <= 12:
        best = labels[-1].end()  # an ending that we do not know, behind an `@`, is one
    return best


def _local_start(normalized: NormalizedText, at: re.Match[str], floor: int, *, bare: bool, known: bool) -> int | None:
    """Where the part before an `@` begins, or None where there is none."""
    text = normalized.text
    start = _token(text, at.start(), floor)
    if start is None:
        start = at.start()
        while start > floor and text[start - 1] in HAN and at.start() - start < 12:
            start -= 1
        return start if known and at.start() - start >= 5 else None
    for _ in range(0 if bare else 4):
        joint = _LOCAL_JOINT.search(text, max(floor, start - 14), start)
        before = _token(text, joint.start(), floor) if joint else None
        if joint is None or before is None or text[before : joint.start()] in _NO_LOCALS:
            break
        start = before
    return start


def _token(text: str, end: int, floor: int) -> int | None:
    start = end
    while start > floor and text[start - 1] in _LOCAL and end - start < _LONGEST:
        start -= 1
    while start < end and text[start] in ".-%+":
        start += 1
    return start if start < end else None
