"""Build the requests to an OpenAI-compatible server and read its answers. No connection is made here."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from h2htalk.chat.local.chat_template import SWITCHES
from h2htalk.chat.protocol import Reply, Request, mask_key
from h2htalk.data.responses import Usage, masked

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds between tries: doubling
LONGEST_RETRY_AFTER = 30.0  # seconds
LONGEST_ASKED = 604_800.0  # seconds: the largest deadline; to wait longer is no sensible wish

_QUOTED = 200  # characters of a server's text that an error message may carry
_RETRIED = frozenset({408, 409, 429})
_FINISH = {"content_filter": "refusal"}
# The common part of the messages of vLLM, OpenAI, llama.cpp, SGLang and TGI, in that order.
CONTEXT_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|prompt is too long|too many tokens|inputs.{1,40}tokens",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """Why one attempt gave no reply.

    `status`: the HTTP status, None where none was read. `wait`: seconds that the server asks the client to wait.
    `reached`: False when there was no connection at all.
    """

    reason: str
    message: str
    retry: bool
    status: int | None = None
    wait: float | None = None
    reached: bool = True


def request_body(model: str, request: Request) -> bytes:
    """Return the JSON of one call, without the settings that are left to the model."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "max_tokens": sampling.budget,
    }
    if sampling.temperature is not None:
        body |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
    if sampling.thinking is not None:
        # What templates of thinking models call their switch; vLLM and SGLang hand it to them.
        body["chat_template_kwargs"] = dict.fromkeys(SWITCHES, sampling.thinking > 0)
    if request.response_schema is not None:
        form = {
            "name": request.response_schema.name,
            "schema": request.response_schema.schema(),
            "strict": True,
        }
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return json.dumps(body).encode()


def read_reply(body: bytes, request_id: str | None, key: str | None = None) -> Reply | FailedAttempt:
    """Read the body of a 200 answer; a `malformed_reply` failure where it is not a chat completion.

    What is scored is read strictly (choice, message, content, finish reason). Implausible token counts become unknown,
    so that no paid text is lost.
    """
    try:
        payload = json.loads(body)
        choice = payload["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        thinking = message.get("reasoning_content") or message.get("reasoning")
        finish_reason = choice.get("finish_reason")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return malformed("not a chat completion", body, key)
    if "content" not in message and not refusal and not thinking:
        return malformed("a message without content", body, key)
    if any(not isinstance(value, str | None) for value in (content, refusal, thinking, finish_reason)):
        return malformed("a field is not text", body, key)
    if refusal and not content:
        content, finish_reason = refusal, "refusal"
    reply = Reply(
        text=well_formed(content or ""),
        finish_reason=_FINISH.get(finish_reason, clean(finish_reason)) if finish_reason else "unknown",
        usage=_read_usage(payload.get("usage")),
        thinking=well_formed(thinking) if thinking else None,
        request_id=_read_request_id(request_id or payload.get("id")),
        **served_by(payload, key),
    )
    return mask_key(reply, key)


def served_by(payload: Any, key: str | None) -> dict[str, str]:
    """Return the `model` and the `system_fingerprint` that the JSON of a reply names."""
    named = {name: payload.get(name) for name in ("model", "system_fingerprint")}
    return {name: clean(value, key) for name, value in named.items() if isinstance(value, str) and value}


def read_error(status: int, headers: Mapping[str, str], body: bytes, key: str | None = None) -> FailedAttempt:
    """Read an answer other than 200."""
    code, text = error_text(body)
    said = clean(text, key)
    message = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    wait = retry_after(headers)
    if status in (401, 403):
        # Servers like to repeat part of the key here: none of their text is kept.
        return FailedAttempt("unauthorized", f"HTTP {status}: the server refused the key", False, status)
    if status == 404 or "model_not_found" in code:
        return FailedAttempt("not_found", message, False, 404)
    if status == 429:
        return FailedAttempt("rate_limited", message, True, status, wait)
    if status in (400, 413, 422):
        too_long = CONTEXT_TOO_LONG.search(code) or CONTEXT_TOO_LONG.search(text)
        return FailedAttempt("context_length" if too_long else "bad_request", message, False, status)
    return FailedAttempt(f"http_{status}", message, status in _RETRIED or status >= 500, status, wait)


def malformed(why: str, body: bytes, key: str | None = None, retry: bool = True) -> FailedAttempt:
    """Return a `malformed_reply` failure that quotes the start of the body."""
    start = clean(body[:4096].decode("utf-8", "replace"), key)
    return FailedAttempt("malformed_reply", f"{why}: {start}" if start else f"{why}: empty body", retry)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks the client to wait, at most 30; None where it does not."""
    asked = asked_wait(headers)
    return None if asked is None else min(asked, LONGEST_RETRY_AFTER)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) as seconds; None where absent, in the past, or
    longer than any call may take."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
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


def wait_before_retry(failed: FailedAttempt, tries: int) -> float:
    """Return the seconds until the next attempt: as the server asks, else doubling, with random jitter."""
    if failed.wait is not None:
        return failed.wait * random.uniform(1.0, 1.1)
    return doubling_wait(tries)


def doubling_wait(tries: int) -> float:
    """Return the seconds to wait after the tries-th failure (from 1): doubling up to a limit, with random jitter."""
    doubling: float = min(FIRST_WAIT * 2 ** min(tries - 1, 10), LONGEST_WAIT)
    return doubling * random.uniform(0.75, 1.25)


def clean(text: str, key: str | None = None) -> str:
    """Return at most 200 characters on one line, without control characters and without the key."""
    one_line = " ".join(masked(text, key, "[key]")[: 20 * _QUOTED].split())
    return "".join(c for c in one_line if c.isprintable())[:_QUOTED]


def error_text(body: bytes) -> tuple[str, str]:
    """Read codes and message of an error body: OpenAI's shape, similar ones, or the body as it is."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return "", body[:4096].decode("utf-8", "replace")
    error: Any = payload.get("error", payload) if isinstance(payload, dict) else payload
    if isinstance(error, dict):
        code = f"{error.get('code')} {error.get('type')}"  # llama.cpp uses the second
        text = error.get("message") or error.get("detail") or error
        return code, text if isinstance(text, str) else json.dumps(text)
    return "", error if isinstance(error, str) else json.dumps(error)


def _read_usage(raw: object) -> Usage:
    if not isinstance(raw, dict):
        return Usage()
    counts = [raw.get("prompt_tokens"), raw.get("completion_tokens")]
    return Usage(*(c if type(c) is int and c >= 0 else None for c in counts))


def _read_request_id(value: object) -> str | None:
    return clean(value) or None if isinstance(value, str) else None


def well_formed(text: str) -> str:
    """Replace half surrogate pairs, which JSON may hold and UTF-8 files cannot, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
