"""What the readers of hosted APIs' answers share: counts, names of calls, bodies that are no answer."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

from h2htalk.chat.base import Request
from h2htalk.chat.calls import Trouble
from h2htalk.chat.provider_errors import scrub
from h2htalk.chat.server_protocol import well_formed
from h2htalk.data.run import Usage

# Tokens that an API may put around a prompt: marks of turns, a few words of its own, and the instructions that
# come with structured output.
_AROUND_PROMPT, _AROUND_MESSAGE, _AROUND_FORM = 256, 16, 1024
_MOST_TOKENS = 10**9  # of one call: beyond it a count makes no sense


def input_bound(request: Request) -> int:
    """The most tokens that a prompt can have: a token is at least one byte of UTF-8."""
    texts = (well_formed(message.content) for message in request.messages)
    bound = _AROUND_PROMPT + sum(_AROUND_MESSAGE + _most_bytes(text) for text in texts)
    if request.form is None:
        return bound
    return bound + _AROUND_FORM + len(json.dumps(request.form.schema()))


def _most_bytes(text: str) -> int:
    """Bytes of a text, also where a tokenizer normalizes it first (NFKC): a ligature may become many letters."""
    plain = len(text.encode())
    return plain if text.isascii() else max(plain, len(unicodedata.normalize("NFKC", text).encode()))


def count(raw: object, name: str) -> int | None:
    """A count in a provider's usage; None where it is absent or makes no sense."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def whole_counts(usage: Usage) -> Usage:
    """The usage; parts that are larger than their whole cannot be priced, so then both become unknown."""
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
    """What the API calls this call: by its header, else by the body's id."""
    value = header or (body.get("id") if isinstance(body, dict) else None)
    return scrub(value, key) or None if isinstance(value, str) else None


def malformed_answer(
    why: str, body: object, key: str | None, usage: Usage, request_id: str | None
) -> Trouble:
    """The trouble of a call whose answer arrived and is none: paid, and never asked again by itself."""
    said = scrub(_start(body), key)
    message = f"{why}: {said}" if said else f"{why}: empty body"
    return Trouble("malformed_reply", message, "paid", usage=usage, request_id=request_id)


def _start(body: object) -> str:
    if isinstance(body, bytes):
        return body[:4096].decode("utf-8", "replace")
    try:
        return "" if body is None else json.dumps(body, ensure_ascii=False)[:4096]
    except RecursionError:  # it could only just be read
        return "nested too deeply to be shown"
