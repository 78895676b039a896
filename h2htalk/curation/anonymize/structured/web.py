"""E-mail and web addresses; ways around their `@` and dots are rewritten before (`deobfuscation`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.number_cues import Cues
from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns

_RE = patterns("web")
_FULL_STOPS = frozenset("，。！？；、（）【】《》“”‘’：")


def email_spans(normalized: NormalizedText) -> Iterator[Span]:
    """Spans (places of the reading) of e-mail addresses."""
    for match in _RE["address"].finditer(normalized.text):
        if end := _host_end(normalized.text, *match.span("mail_host")):
            yield Span(match.start(), end, "EMAIL_ADDRESS", 0.99)


def url_spans(normalized: NormalizedText, cues: Cues) -> Iterator[Span]:
    """Spans (places of the reading) of web addresses but those of organisations that help; some overlap."""
    for match in _RE["scheme"].finditer(normalized.text):
        end = _trimmed(normalized, *match.span("rest"))
        if not _is_of_help(normalized.text[match.start() : end]):
            yield Span(match.start(), end, "URL", 0.98)
    for match in _RE["host"].finditer(normalized.text):
        end = _trimmed(normalized, *match.span())
        path = end > match.start("rest") + 1
        if _is_domain(normalized, match, cues, path=path) and not _is_of_help(match.group()):
            yield Span(match.start(), end, "URL", 0.95 if path or match.group().startswith("www.") else 0.8)


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in internet_words("strong") or label in internet_words("weak")


def _host_end(text: str, start: int, end: int) -> int:
    """Where the host of an e-mail address ends in a row of labels: at its last ending. 0: there is none.

    Behind an `@` an ending that we do not know is one too.
    """
    labels = list(_RE["label"].finditer(text, start, end))
    known = [label.end() for label in labels[1:] if is_ending(label.group())]
    if known:
        return known[-1]
    last = labels[-1]
    if glued := _RE["glued"].match(last.group()):
        return last.start() + glued.end()
    return last.end() if last.group().isalpha() and 2 <= len(last.group()) <= 12 else 0


def _is_of_help(url: str) -> bool:
    """Whether a web address is that of a help line or an organisation that helps."""
    labels = re.split("[/?#]", url.partition("://")[2] or url)[0].split(".")
    return any(".".join(labels[at:]) in internet_words("help") for at in range(len(labels)))


def _is_domain(normalized: NormalizedText, match: re.Match[str], cues: Cues, *, path: bool) -> bool:
    """Whether words with dots in between are a domain, and not a typing slip ("ok.thanks") or a file."""
    labels = normalized.text[match.start() : match.start("rest")].split(".")
    last = labels[-1]
    if not is_ending(last):
        return False
    if path or labels[0] == "www":
        return True
    if last in internet_words("files") or not any(len(label) > 1 for label in labels[:-1]):
        return False
    if normalized.visible[match.start("rest") - len(last)].isupper() and normalized.visible[match.start()].islower():
        return False  # a sentence's end glued to the next one: tired.De
    if last in internet_words("weak") or len(last) > 3 or last in internet_words("words_as_endings"):
        told = len(labels) > 2 or cues.near(*match.span()).distance("url") is not None
        return len(labels[-2]) > 3 and (told or any(map(str.isdigit, labels[-2])))
    return True


def _trimmed(normalized: NormalizedText, start: int, end: int) -> int:
    """The end of an address without the sentence's marks. A wide mark ends one that is itself in plain letters."""
    shown, text = normalized.visible, normalized.text
    if shown[start].isascii():
        end = next((at for at in range(start, end) if shown[at] in _FULL_STOPS and shown[at - 1].isascii()), end)
    while end > start:
        sign = text[end - 1]
        opening = {")": "(", "]": "["}.get(sign)
        if opening is None and sign not in ".,;:!?'\"*|~([":
            break
        if opening and text.count(sign, start, end) <= text.count(opening, start, end):
            break
        end -= 1
    return end
