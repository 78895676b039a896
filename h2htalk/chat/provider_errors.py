"""What the error answers of hosted APIs have in common: their shape, their status codes, what each costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from h2htalk.chat.calls import Charge, Trouble
from h2htalk.chat.server_protocol import CONTEXT_TOO_LONG, asked_wait, clean, error_text

# A gateway gave up waiting, or the connection behind it broke: the model may have answered, and been paid for it.
_PERHAPS_ANSWERED = frozenset({408, 499, 502, 504, 520, 524})
_SLOW_DOWN = frozenset({429, 529})
_RETRIED = _SLOW_DOWN | _PERHAPS_ANSWERED | {409, 500, 503, 521, 522, 523}
# Keys of either provider, also cut or masked as they like to quote them.
_KEY = re.compile(r"\b(?:sk|sess|pk)-[\w*.…-]{4,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error's JSON says: `kind` and `code` are for programs, `text` is for people, and scrubbed."""

    kind: str = ""
    code: str = ""
    param: str = ""
    text: str = ""


def scrub(text: str, key: str | None) -> str:
    """A provider's text as messages carry it: one short line without control characters or any part of a key."""
    return clean(_KEY.sub("[key]", _spelled(key).sub("[key]", text) if key else text))


@lru_cache(maxsize=8)
def _spelled(key: str) -> re.Pattern[str]:
    """The key as it may stand in a text, broken over lines too."""
    return re.compile(r"\s*".join(map(re.escape, key)))


def read_error_body(body: object, key: str | None) -> ErrorBody:
    """The error in a body: parsed JSON in the shape both providers use, or whatever a gateway sent as text."""
    inner: Any = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(inner, dict):
        kind, code, param = (_word(inner.get(name)) for name in ("type", "code", "param"))
        text = inner.get("message")
        return ErrorBody(kind, code, param, scrub(text if isinstance(text, str) else "", key))
    if isinstance(body, bytes):
        return ErrorBody(text=scrub(error_text(body)[1], key))
    return ErrorBody(text=scrub("" if body is None else str(body), key))


def plain_trouble(status: int, error: ErrorBody, headers: Mapping[str, str], key: str | None) -> Trouble:
    """The trouble that a status stands for, where nothing more is known of it."""
    message = f"HTTP {status}: {error.text}" if error.text else f"HTTP {status}"
    trouble = Trouble(_reason(status, error), message, _charge(status), request_id=_request_id(headers, key))
    if status in _SLOW_DOWN:
        return replace(trouble, retry=True, limited=True, wait=asked_wait(headers))
    retry = (status in _RETRIED or status >= 530) and headers.get("x-should-retry") != "false"
    return replace(trouble, retry=retry, wait=asked_wait(headers) if retry else None)


def _reason(status: int, error: ErrorBody) -> str:
    if status == 429:
        return "rate_limited"
    if status == 529:
        return "overloaded"
    if status in (400, 413, 422):
        too_long = status == 413 or CONTEXT_TOO_LONG.search(error.code) or CONTEXT_TOO_LONG.search(error.text)
        return "context_length" if too_long else "bad_request"
    return f"http_{status}"


def _charge(status: int) -> Charge:
    return "lost" if status in _PERHAPS_ANSWERED else "free"


def _request_id(headers: Mapping[str, str], key: str | None) -> str | None:
    return scrub(headers.get("request-id") or headers.get("x-request-id") or "", key) or None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
