"""The one table of errors of model APIs: what each means, what the call cost, and whether to send it again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any

from h2htalk.chat.calls import FailedCall
from h2htalk.data.responses import masked

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
        """Whether one of these is the code or the type."""
        return self.code in codes or self.kind in codes

    def says(self, words: str) -> bool:
        """Whether the text holds these words."""
        return words in self.text.lower()


@dataclass(frozen=True, slots=True)
class _Rule:
    """Errors that asking again cannot help, whatever their status: the first rule that applies holds.

    `advice`: for the user, where no other call can succeed either. `quoted`: whether the API's text is shown.
    """

    reason: str
    applies: Callable[[int, ErrorBody, Api], bool]
    advice: str = ""
    quoted: bool = True


_RULES = (
    # The provider's own filter declined the prompt before any model read it, or blocked the reply, which may be billed.
    _Rule(
        "refusal",
        lambda status, error, _: (
            status in (400, 403) and error.names("content_filter", "content_policy_violation", "invalid_prompt")
        ),
    ),
    _Rule("refusal", lambda status, error, _: status == 400 and error.says("content filtering")),
    _Rule(
        "no_credit",
        lambda status, error, _: (
            status == 402
            or error.names("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
            or (status == 400 and error.says("credit balance"))
        ),
        "the {api.title} account has no credit left ({message}): add credit, then start again",
    ),
    _Rule(
        "unauthorized",
        lambda status, error, api: (
            status == 401 or error.code == "invalid_api_key" or (status == 403 and not api.hosted)
        ),
        "{api.title} refused the key (HTTP {status}): {api.key_advice}",
        quoted=False,  # a server likes to repeat part of the key here
    ),
    _Rule(
        "not_found",
        lambda status, error, _: status == 404 or error.names("model_not_found"),
        "{api.title} has no model {api.model!r} ({message}): check the model's name, and {api.address_advice}",
    ),
    _Rule(
        "unauthorized",
        lambda status, error, _: status == 403 and bool(error.kind),
        "{api.title} denies access to this key ({message}): check the account, its project and its workspace",
    ),
    # Larger than all the tokens that the account may send in a minute: no wait helps.
    _Rule("bad_request", lambda status, error, _: status == 429 and error.says("request too large")),
    _Rule(
        "",
        lambda status, _, __: 300 <= status < 400,
        "{api.title} redirects (HTTP {status}), which is not followed: correct {api.address_advice}",
    ),
)


def read_error(api: Api, status: int, body: object, headers: Mapping[str, str], key: str | None) -> FailedCall:
    """Read an answer that reports an error.

    Args:
        api: where it comes from.
        status: 0 where it is unknown, as in batch results; the code or the type of the error decides then.
        body: parsed JSON, or bytes that are none.
        headers: of the answer; names are lower case.
        key: removed from every text.
    """
    error = read_error_body(body, key)
    status = status or api.statuses.get(error.code) or api.statuses.get(error.kind, 500)
    failed = _by_status(status, error, headers, key)
    for rule in _RULES:
        if rule.applies(status, error, api):
            message = failed.message if rule.quoted else f"HTTP {status}: the key was refused"
            return replace(
                failed,
                reason=rule.reason or failed.reason,
                message=message,
                billing="possibly_paid" if error.says("content filtering") else failed.billing,
                retry=False,
                limited=False,
                wait=None,
                fatal=rule.advice.format(api=api, status=status, message=message) or None,
                at_first=not api.hosted and rule.reason != "no_credit",
                refusal=rule.reason == "refusal",
            )
    return replace(failed, fatal=_unsupported(api, error) if status == 400 else None)


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
        request_id=scrub(headers.get("request-id") or headers.get("x-request-id") or "", key) or None,
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
        return ErrorBody(text=scrub(body[:4096].decode("utf-8", "replace"), key))
    inner: Any = body.get("error", body) if isinstance(body, dict) else body
    named: Any = inner if isinstance(inner, dict) else {}
    text = named.get("message") or named.get("detail") or inner or ""
    words = [value if isinstance(value := named.get(name), str) else "" for name in ("type", "code", "param")]
    return ErrorBody(words[0], words[1], words[2], scrub(text if isinstance(text, str) else json.dumps(text), key))


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


def scrub(text: str, key: str | None) -> str:
    """Return a provider's text as one short line without control characters or any part of a key."""
    return clean(_KEY.sub("[key]", masked(text, key, "[key]")))


def clean(text: str, key: str | None = None) -> str:
    """Return at most 200 characters on one line, without control characters and without the key."""
    one_line = " ".join(masked(text, key, "[key]")[: 20 * _QUOTED].split())
    shown = one_line if one_line.isprintable() else "".join(c for c in one_line if c.isprintable())
    return shown[:_QUOTED]
