"""What an answer that reports an error says: its fields, the reason to count it by, and texts that can be shown.

The rules hold for every API; `wire_formats` reads their answers, `provider_filters` knows the words of their filters.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from h2htalk.masking import mask_held, masked

LONGEST_WAIT = 604_800.0  # seconds: the largest deadline; no API can sensibly ask for more
_QUOTED = 200  # characters of a server's text that an error message may carry
# A gateway timed out, or the connection behind it broke: the model may have answered, and the call may be billed.
PERHAPS_ANSWERED = frozenset({408, 499, 502, 504, 520, 524})
SLOW_DOWN = {429: "rate_limited", 529: "overloaded"}
RETRIED = PERHAPS_ANSWERED | {409, 500, 503, 521, 522, 523}
# The common part of the messages of vLLM, OpenAI, llama.cpp, SGLang and TGI, in that order.
_CONTEXT_TOO_LONG = re.compile(
    r"(?is)context[ _](?:length|window|size)|prompt is too long|too many tokens|inputs.{1,40}tokens"
)
# A model that cannot be asked for a whole reply (Qwen's open models on DashScope).
_STREAM_ONLY = re.compile(
    r"only supports? (?:the )?stream|stream(?:ing)?(?: mode)? only|enable the stream|"
    r"for non.?stream(?:ing)? (?:calls?|requests?|mode)|"
    r"stream\W{1,3}(?:must be|should be)(?: set to)? true|"
    r"non.?stream(?:ing)?\b.{0,40}(?:not (?:be )?(?:support|allow)|unsupported)|[仅只]支持流式"
)
# A router knows the model, and none of its providers takes the request: OpenRouter answers 404 then, too.
NO_ENDPOINT = re.compile(
    r"(?i)no endpoints? (?:found|available) (?:that|matching)\b|no allowed providers\b"
)
# Keys of either provider, also cut or masked as they like to quote them.
_KEY = re.compile(r"\b(?:sk|sess|pk)-[\w*.…-]{4,}", re.ASCII)
ACCOUNT_REFUSED = (
    "{api.title} refuses the account, not the prompt ({message}): check the account and "
    "its network address"
)
REFUSED_KEY = "{api.title} refused the key (HTTP {status}): {api.key_advice}"


class ErrorBody(NamedTuple):
    """The fields of an error's JSON. `text` is for the user and holds no part of a key."""

    kind: str = ""
    code: str = ""
    param: str = ""
    text: str = ""


def error_rule(status: int, error: ErrorBody, hosted: bool) -> tuple[str, str]:
    """Return the reason of an error that asking again cannot help, else "", and advice for the user where no other call
    can succeed either."""
    text = error.text.lower()
    codes = {error.code, error.kind}
    no_credit = codes & {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    if status == 402 or no_credit or (status == 400 and "credit balance" in text):
        return (
            "no_credit",
            "the {api.title} account has no credit left ({message}): add credit, then start again",
        )
    if status == 401 or error.code == "invalid_api_key" or (status == 403 and not hosted):
        return "unauthorized", REFUSED_KEY
    if status == 404 and NO_ENDPOINT.search(text):
        advice = "choose another model, or check the account's providers and its privacy settings"
        return (
            "no_endpoint",
            "{api.title} has no endpoint of {api.name!r} that takes such a request ({message}): "
            + advice,
        )
    if status == 404 or "model_not_found" in codes:
        advice = "check the model's name, and {api.address_advice}"
        return "not_found", "{api.title} has no model {api.name!r} ({message}): " + advice
    if status == 403 and error.kind:
        advice = "check the account, its project and its workspace"
        return "unauthorized", "{api.title} denies access to this key ({message}): " + advice
    if status in (400, 422) and _STREAM_ONLY.search(text):
        advice = "choose another model, or a gateway that collects them"
        return (
            "bad_request",
            "{api.title} answers for {api.name!r} in streams only ({message}): " + advice,
        )
    if status == 429 and "request too large" in text:
        # Larger than all the tokens that the account may send in a minute: no wait helps.
        return "bad_request", ""
    if 300 <= status < 400:
        advice = "which is not followed: correct {api.address_advice}"
        return f"http_{status}", "{api.title} redirects (HTTP {status}), " + advice
    return "", ""


def error_reason(status: int, error: ErrorBody) -> str:
    """Return the reason of an error of which nothing more is known."""
    if status in (400, 413, 422):
        texts = f"{error.code} {error.kind} {error.text}"
        too_long = status == 413 or _CONTEXT_TOO_LONG.search(texts)
        return "context_length" if too_long else "bad_request"
    return SLOW_DOWN.get(status, f"http_{status}")


def read_error_body(body: object, key: str | None) -> ErrorBody:
    """Read the error in a body: parsed JSON in the shape of OpenAI or a similar one, or the text of a gateway."""
    if isinstance(body, bytes):
        return ErrorBody(text=clean(beginning(body), key))
    inner: Any = body.get("error", body) if isinstance(body, dict) else body
    fields: Any = inner if isinstance(inner, dict) else {}
    text = fields.get("message") or fields.get("detail") or inner or ""
    if not isinstance(text, str):
        text = json.dumps(text)
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    return ErrorBody(
        kind=texts.get("type", ""),
        code=texts.get("code", ""),
        param=texts.get("param", ""),
        text=clean(text, key),
    )


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) as seconds.

    None where it is absent, in the past, or longer than any call may take.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if 0 <= seconds <= LONGEST_WAIT:
            return seconds
    return None


# --- Texts ------------------------------------------------------------------------------------------------------


def beginning(body: object) -> str:
    """Return the beginning of an answer, as text."""
    if isinstance(body, bytes):
        return body[:4096].decode("utf-8", "replace")
    try:
        return "" if body is None else json.dumps(body, ensure_ascii=False)[:4096]
    except RecursionError:  # it could only just be read
        return "nested too deeply to be shown"


def clean(text: str, key: str | None = None) -> str:
    """Return at most 200 characters on one line, without control characters and without any part of a key."""
    if not text.isprintable():  # before keys are looked for: what is dropped may stand within one
        text = "".join(sign for sign in text if sign.isprintable() or sign.isspace())
    without_keys = _KEY.sub("[key]", masked(mask_held(text), key, "[key]"))
    line = " ".join(without_keys[: 20 * _QUOTED].split())
    return line[:_QUOTED]


def well_formed(text: str, key: str | None = None) -> str:
    """Replace half surrogate pairs, which JSON may hold and UTF-8 files cannot, by U+FFFD, and mask the key: a server
    may repeat what it was sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return masked(text, key)
