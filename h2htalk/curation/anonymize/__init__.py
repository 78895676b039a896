"""Personal data: found (`find_spans`) and replaced by surrogates (`surrogates.Surrogates`)."""

from __future__ import annotations

from h2htalk.errors import MissingExtraError

try:
    import phonenumbers  # noqa: F401
    import stdnum  # noqa: F401
except ImportError as error:
    raise MissingExtraError("anonymization", 'pip install "h2htalk[curation]"') from error

from h2htalk.curation.anonymize.find_spans import find_spans, find_spans_many
from h2htalk.curation.anonymize.spans import TYPES, Span

__all__ = ["TYPES", "Span", "find_spans", "find_spans_many"]
