"""Read what the answers of model APIs have in common: the one table of errors, token counts, ids, texts.

An error says what it means, what the call cost, and whether to send it again.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any

from h2htalk.chat.protocol import FailedCall, Request
from h2htalk.data.responses import Usage, masked

LONGEST_ASKED = 604_800.0  # seconds: the largest deadline; to wait longer is no sensible wish
_QUOTED = 200  # characters of a server's text that an error message may carry
# A gateway timed out, or the connection behind it broke: the model may have answered, and the call may be billed.
_PERHAPS_ANSWERED = frozenset({408, 499, 502, 504, 520, 524})
_SLOW_DOWN = {429: "rate_limited", 529: "overloaded"}
_RETRIED = _PERHAPS_ANSWERED | {409, 500, 503, 521, 522, 523}
# The common part of the messages of vLLM, OpenAI, llama.cpp, SGLang and TGI, in that order.
_CONTEXT_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|prompt is too long|too many tokens|inputs.{1,40}tokens",
    re.IGNORECASE | re.DOTALL,
)
_UNSUPPORTED = re.compile(r"support|unrecognized", re.IGNORECASE)
# Keys of either provider, also cut or masked as they like to quote them.
_KEY = re.compile(r"\b(?:sk|sess|pk)-[\w*.…-]{4,}", re.ASCII)
# Tokens that an API may add to a prompt: turn marks, a few of its own, and the instructions of structured output.
_AROUND_PROMPT, _AROUND_MESSAGE, _AROUND_FORM = 256, 16, 1024
_REFUSED_KEY = "{api.title} refused the key (HTTP {status}): {api.key_advice}"
_MOST_TOKENS = 10**9  # of one call: beyond it a count makes no sense


@dataclass(frozen=True, slots=True)
class Api:
    """How messages name an API, and what its users can change.

    Attributes:
        title: the provider, or the URL of a server.
        model: its model, as the API knows it.
        key_advice: what to do about a refused key; address_advice: about an address that may be wrong.
        hosted: it is a provider's; a server of one's own may fail for one item as for a wrong key or model, so its
            errors end a run before the first reply only.
        statuses: HTTP statuses by the code or type of an error, for batch results, which have no status.
        optional: advice by parameters that some models refuse.
    """

    title: str
    model: str
    key_advice: str
    address_advice: str
    hosted: bool = True
    statuses: Mapping[str, int] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The fields of an error's JSON. `text` is for the user and holds no part of a key."""

    kind: str = ""
    code: str = ""
    param: str = ""
    text: str = ""

    def names(self, *codes: str) -> bool:
        return self.code in codes or self.kind in codes

    def says(self, words: str) -> bool:
        return words in self.text.lower()


def _rule(status: int, error: ErrorBody, api: Api) -> tuple[str, str] | None:
    """Return the reason of an error that asking again cannot help, and advice for the user where no other call can
    succeed either."""
    if status in (400, 403) and error.names("content_filter", "content_policy_violation", "invalid_prompt"):
        return "refusal", ""  # the provider's own filter declined the prompt before any model read it
    if status == 400 and error.says("content filtering"):
        return "refusal", ""  # or blocked the reply, which may be billed
    no_credit = error.names("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
    if status == 402 or no_credit or (status == 400 and error.says("credit balance")):
        return "no_credit", "the {api.title} account has no credit left ({message}): add credit, then start again"
    if status == 401 or error.code == "invalid_api_key" or (status == 403 and not api.hosted):
        return "unauthorized", _REFUSED_KEY
    if status == 404 or error.names("model_not_found"):
        advice = "check the model's name, and {api.address_advice}"
        return "not_found", "{api.title} has no model {api.model!r} ({message}): " + advice
    if status == 403 and error.kind:
        advice = "check the account, its project and its workspace"
        return "unauthorized", "{api.title} denies access to this key ({message}): " + advice
    if status == 429 and error.says("request too large"):
        return "bad_request", ""  # larger than all the tokens that the account may send in a minute: no wait helps
    if 300 <= status < 400:
        advice = "which is not followed: correct {api.address_advice}"
        return f"http_{status}", "{api.title} redirects (HTTP {status}), " + advice
    return None


def read_error(api: Api, status: int, body: object, headers: Mapping[str, str], key: str | None) -> FailedCall:
    """Read an answer that reports an error; `body` is parsed JSON, or bytes that are none. The key is removed.

    `status` is 0 where it is unknown, as in batch results; the code or the type of the error decides then.
    """
    error = read_error_body(body, key)
    status = status or api.statuses.get(error.code) or api.statuses.get(error.kind, 500)
    failed = _by_status(status, error, headers, key)
    if (rule := _rule(status, error, api)) is None:
        return replace(failed, fatal=_unsupported(api, error) if status == 400 else None)
    reason, advice = rule
    # A server likes to repeat part of the key that it refuses, so its text is not quoted.
    message = f"HTTP {status}: the key was refused" if advice == _REFUSED_KEY else failed.message
    return replace(
        failed,
        reason=reason,
        message=message,
        billing="possibly_paid" if error.says("content filtering") else failed.billing,
        retry=False,
        limited=False,
        wait=None,
        fatal=advice.format(api=api, status=status, message=message) or None,
        at_first=not api.hosted and reason != "no_credit",
        refusal=reason == "refusal",
    )


def _by_status(status: int, error: ErrorBody, headers: Mapping[str, str], key: str | None) -> FailedCall:
    """Return the failed call for a status of which nothing more is known."""
    reason = _SLOW_DOWN.get(status, f"http_{status}")
    if status in (400, 413, 422):
        too_long = status == 413 or _CONTEXT_TOO_LONG.search(f"{error.code} {error.kind} {error.text}")
        reason = "context_length" if too_long else "bad_request"
    limited = status in _SLOW_DOWN
    retry = limited or ((status in _RETRIED or status >= 530) and headers.get("x-should-retry") != "false")
    return FailedCall(
        reason,
        f"HTTP {status}: {error.text}" if error.text else f"HTTP {status}",
        "possibly_paid" if status in _PERHAPS_ANSWERED else "free",
        retry=retry,
        limited=limited,
        wait=asked_wait(headers) if retry else None,
        request_id=clean(headers.get("request-id") or headers.get("x-request-id") or "", key) or None,
    )


def _unsupported(api: Api, error: ErrorBody) -> str | None:
    """Advice where the model refuses what every call asks for."""
    if not (error.code.startswith("unsupported") or _UNSUPPORTED.search(error.text)):
        return None
    said = error.text.lower()
    named = error.param.partition(".")[0] or next((name for name in api.optional if len(name) > 1 and name in said), "")
    if named not in api.optional:
        return None
    return f"{api.model} does not take {named} ({error.text}): {api.optional[named]}"


def read_error_body(body: object, key: str | None) -> ErrorBody:
    """Read the error in a body: parsed JSON in the shape of OpenAI or a similar one, or the text of a gateway."""
    if isinstance(body, bytes):
        return ErrorBody(text=clean(_start(body), key))
    inner: Any = body.get("error", body) if isinstance(body, dict) else body
    named: Any = inner if isinstance(inner, dict) else {}
    text = named.get("message") or named.get("detail") or inner or ""
    words = [value if isinstance(value := named.get(name), str) else "" for name in ("type", "code", "param")]
    return ErrorBody(words[0], words[1], words[2], clean(text if isinstance(text, str) else json.dumps(text), key))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) as seconds; None where absent, in the past, or
    longer than any call may take."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if 0 <= seconds <= LONGEST_ASKED:
            return seconds
    return None


# --- Replies ----------------------------------------------------------------------------------------------------


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
        usage = Usage(output_tokens=usage.output_tokens, reasoning_tokens=usage.reasoning_tokens)
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        usage = replace(usage, reasoning_tokens=None)
    return usage


def request_name(header: str | None, body: object, key: str | None) -> str | None:
    """Return the id that the API gave the call, from its header or else its body."""
    value = header or (body.get("id") if isinstance(body, dict) else None)
    return clean(value, key) or None if isinstance(value, str) else None


def served_by(payload: Any, key: str | None) -> dict[str, Any]:
    """Return the `model` and the `system_fingerprint` that the JSON of a reply names."""
    named = {name: payload.get(name) for name in ("model", "system_fingerprint")}
    return {name: clean(value, key) for name, value in named.items() if isinstance(value, str) and value}


def malformed_answer(why: str, body: object, key: str | None, usage: Usage, request_id: str | None) -> FailedCall:
    """Return the failed call for a malformed answer: it is paid, and never sent again automatically."""
    shown = clean(_start(body), key) or "empty body"
    return FailedCall("malformed_reply", f"{why}: {shown}", "paid", usage=usage, request_id=request_id)


def _start(body: object) -> str:
    if isinstance(body, bytes):
        return body[:4096].decode("utf-8", "replace")
    try:
        return "" if body is None else json.dumps(body, ensure_ascii=False)[:4096]
    except RecursionError:  # it could only just be read
        return "nested too deeply to be shown"


# --- Texts ------------------------------------------------------------------------------------------------------


def clean(text: str, key: str | None = None) -> str:
    """Return at most 200 characters on one line, without control characters and without any part of a key."""
    one_line = " ".join(_KEY.sub("[key]", masked(text, key, "[key]"))[: 20 * _QUOTED].split())
    shown = one_line if one_line.isprintable() else "".join(c for c in one_line if c.isprintable())
    return shown[:_QUOTED]


def well_formed(text: str, key: str | None = None) -> str:
    """Replace half surrogate pairs, which JSON may hold and UTF-8 files cannot, by U+FFFD, and mask the key: a server
    may repeat what it was sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return masked(text, key)
