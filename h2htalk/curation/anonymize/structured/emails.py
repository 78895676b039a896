"""E-mail addresses; ways around their `@` and dots are rewritten before (`deobfuscation`)."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("emails")


def email_spans(normalized: NormalizedText) -> Iterator[Span]:
    """Spans (places of the reading) of e-mail addresses."""
    for match in _RE["address"].finditer(normalized.text):
        end = domains.host_end(normalized.text, *match.span("host"))
        if end:
            yield Span(match.start(), end, "EMAIL_ADDRESS", 0.99)
