"""Read what the answers of hosted APIs have in common: token counts, request ids, errors, malformed bodies."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.chat.calls import Billing, FailedCall
from h2htalk.chat.protocol import Request
from h2htalk.chat.server.wire import CONTEXT_TOO_LONG, asked_wait, clean, error_text, well_formed
from h2htalk.data.responses import Usage, masked

# A gateway timed out, or the connection behind it broke: the model may have answered, and the call may be billed.
_PERHAPS_ANSWERED = frozenset({408, 499, 502, 504, 520, 524})
_SLOW_DOWN = frozenset({429, 529})
_RETRIED = _SLOW_DOWN | _PERHAPS_ANSWERED | {409, 500, 503, 521, 522, 523}
# Keys of either provider, also cut or masked as they like to quote them.
_KEY = re.compile(r"\b(?:sk|sess|pk)-[\w*.…-]{4,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The fields of an error's JSON. `text` is for the user and holds no part of a key."""

    kind: str = ""
    code: str = ""
    param: str = ""
    text: str = ""


def scrub(text: str, key: str | None) -> str:
    """Return a provider's text as one short line without control characters or any part of a key."""
    return clean(_KEY.sub("[key]", masked(text, key, "[key]")))


def read_error_body(body: object, key: str | None) -> ErrorBody:
    """Read the error in a body: parsed JSON in the shape of both providers, or the text that a gateway sent."""
    inner: Any = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(inner, dict):
        kind, code, param = (_word(inner.get(name)) for name in ("type", "code", "param"))
        text = inner.get("message")
        return ErrorBody(kind, code, param, scrub(text if isinstance(text, str) else "", key))
    if isinstance(body, bytes):
        return ErrorBody(text=scrub(error_text(body)[1], key))
    return ErrorBody(text=scrub("" if body is None else str(body), key))


def failed_call(status: int, error: ErrorBody, headers: Mapping[str, str], key: str | None) -> FailedCall:
    """Return the failed call for an HTTP status of which nothing more is known."""
    message = f"HTTP {status}: {error.text}" if error.text else f"HTTP {status}"
    failed = FailedCall(_reason(status, error), message, _billing(status), request_id=_request_id(headers, key))
    if status in _SLOW_DOWN:
        return replace(failed, retry=True, limited=True, wait=asked_wait(headers))
    retry = (status in _RETRIED or status >= 530) and headers.get("x-should-retry") != "false"
    return replace(failed, retry=retry, wait=asked_wait(headers) if retry else None)


def _reason(status: int, error: ErrorBody) -> str:
    if status == 429:
        return "rate_limited"
    if status == 529:
        return "overloaded"
    if status in (400, 413, 422):
        too_long = status == 413 or CONTEXT_TOO_LONG.search(error.code) or CONTEXT_TOO_LONG.search(error.text)
        return "context_length" if too_long else "bad_request"
    return f"http_{status}"


def _billing(status: int) -> Billing:
    return "possibly_paid" if status in _PERHAPS_ANSWERED else "free"


def _request_id(headers: Mapping[str, str], key: str | None) -> str | None:
    return scrub(headers.get("request-id") or headers.get("x-request-id") or "", key) or None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


# Tokens that an API may add to a prompt: turn marks, a few of its own, and the instructions of structured output.
_AROUND_PROMPT, _AROUND_MESSAGE, _AROUND_FORM = 256, 16, 1024
_MOST_TOKENS = 10**9  # of one call: beyond it a count makes no sense


def input_bound(request: Request) -> int:
    """The most tokens that a prompt can have: a token is at least one byte of UTF-8."""
    texts = (well_formed(message.content) for message in request.messages)
    bound = _AROUND_PROMPT + sum(_AROUND_MESSAGE + _most_bytes(text) for text in texts)
    if request.response_schema is None:
        return bound
    return bound + _AROUND_FORM + len(json.dumps(request.response_schema.schema()))


def _most_bytes(text: str) -> int:
    """Return the bytes of a text, also where a tokenizer normalizes it (NFKC): a ligature may become many letters."""
    plain = len(text.encode())
    return plain if text.isascii() else max(plain, len(unicodedata.normalize("NFKC", text).encode()))


def count(raw: object, name: str) -> int | None:
    """Return a count of a provider's usage, None where it is absent or implausible."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def whole_counts(usage: Usage) -> Usage:
    """Return the usage with parts that exceed their whole set to unknown, as they cannot be priced."""
    cached = [usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens]
    if usage.input_tokens is not None and sum(part or 0 for part in cached) > usage.input_tokens:
        usage = replace(
            usage,
            input_tokens=None,
            cache_read_tokens=None,
            cache_write_tokens=None,
            cache_write_1h_tokens=None,
        )
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        usage = replace(usage, reasoning_tokens=None)
    return usage


def request_name(header: str | None, body: object, key: str | None) -> str | None:
    """Return the id that the API gave the call, from its header or else its body."""
    value = header or (body.get("id") if isinstance(body, dict) else None)
    return scrub(value, key) or None if isinstance(value, str) else None


def malformed_answer(why: str, body: object, key: str | None, usage: Usage, request_id: str | None) -> FailedCall:
    """Return the failed call for a malformed answer: it is paid, and never sent again automatically."""
    said = scrub(_start(body), key)
    message = f"{why}: {said}" if said else f"{why}: empty body"
    return FailedCall("malformed_reply", message, "paid", usage=usage, request_id=request_id)


def _start(body: object) -> str:
    if isinstance(body, bytes):
        return body[:4096].decode("utf-8", "replace")
    try:
        return "" if body is None else json.dumps(body, ensure_ascii=False)[:4096]
    except RecursionError:  # it could only just be read
        return "nested too deeply to be shown"
