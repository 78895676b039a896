"""Read what the replies of model APIs have in common (token counts, ids, malformed bodies), and bound prompts."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Any

from h2htalk.chat.calls import FailedCall
from h2htalk.chat.protocol import Request
from h2htalk.chat.provider_errors import clean, scrub
from h2htalk.data.responses import Usage

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


def served_by(payload: Any, key: str | None) -> dict[str, Any]:
    """Return the `model` and the `system_fingerprint` that the JSON of a reply names."""
    named = {name: payload.get(name) for name in ("model", "system_fingerprint")}
    return {name: clean(value, key) for name, value in named.items() if isinstance(value, str) and value}


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


def well_formed(text: str) -> str:
    """Replace half surrogate pairs, which JSON may hold and UTF-8 files cannot, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
