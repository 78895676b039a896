"""What the provider double can be told to do wrong, and the words in which each provider says so."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Made up. It holds what base64, URLs and JSON each write in another way, so that a search can find every spelling.
KEY = "sk-made-up/4711+For=Tests&only~%x"


class Refused(Exception):
    """A request that the API refuses, free of charge: status, the provider's own type and code, and words."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.code, self.headers, self.param = code, dict(headers or {}), param


_SLOW = "Slow down: too many requests a minute."
_CREDIT = "Your credit balance is too low. Go to Plans & Billing to buy credits."
# An API may repeat the key that it refuses, here the whole of it: nothing of it may be shown or stored.
_KEY_TEXT = f"Incorrect API key provided: {KEY}. Find yours on the account page."

# So may a gateway that shows what it was sent.
_BROKEN = f"The server had an error with the header 'Authorization: Bearer {KEY}'."

# Refused before anything is computed: free of charge.
_OPENAI = {
    "rate_limited": (429, "requests", _SLOW, "rate_limit_exceeded", {"retry-after": "1"}),
    "rate_limited_for_a_day": (429, "requests", _SLOW, "rate_limit_exceeded", {"retry-after": "86400"}),
    "rate_limited_in_words": (
        429,
        "requests",
        _SLOW,
        "rate_limit_exceeded",
        {"retry-after": "in a little while"},
    ),
    "overloaded": (503, "server_error", "The engine is currently overloaded.", None),
    "http_500": (500, "server_error", _BROKEN, None),
    "http_503": (503, "server_error", "Service unavailable.", None),
    "unauthorized": (401, "invalid_request_error", _KEY_TEXT, "invalid_api_key"),
    "unknown_model": (404, "invalid_request_error", "The model does not exist.", "model_not_found"),
    "context_length": (
        400,
        "invalid_request_error",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "context_length_exceeded",
    ),
    "no_credit": (429, "insufficient_quota", "You exceeded your current quota.", "insufficient_quota"),
    "blocked": (400, "invalid_request_error", "Your prompt was flagged by our policy.", "invalid_prompt"),
}
_ANTHROPIC = {
    "rate_limited": (429, "rate_limit_error", _SLOW, None, {"retry-after": "1"}),
    "rate_limited_for_a_day": (429, "rate_limit_error", _SLOW, None, {"retry-after": "86400"}),
    "rate_limited_in_words": (429, "rate_limit_error", _SLOW, None, {"retry-after": "in a little while"}),
    "overloaded": (529, "overloaded_error", "Overloaded", None),
    "http_500": (500, "api_error", _BROKEN, None),
    "http_503": (503, "api_error", "Service unavailable", None),
    "unauthorized": (401, "authentication_error", _KEY_TEXT, None),
    "unknown_model": (404, "not_found_error", "model: claude-nowhere", None),
    "context_length": (
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
        None,
    ),
    "no_credit": (402, "billing_error", _CREDIT, None),
    "blocked": (400, "invalid_request_error", "Output blocked by content filtering policy", None),
}
SPOKEN: dict[str, dict[str, Any]] = {"openai": _OPENAI, "anthropic": _ANTHROPIC}
# Seen in the reply, which is whole and charged.
WRITTEN = ("refusal", "filtered", "truncated", "malformed_form", "out_of_range", "no_usage", "garbage")
# Computed and charged, but no whole reply arrives.
LOST = ("gateway_timeout", "drop_after", "cut", "drip", "hang")
# The connection ends before anything is computed.
UNSENT = ("drop_before",)
# Only in batches, and free of charge: results that are no reply.
BATCH_RESULTS = ("expired", "canceled")
FAULTS = (*_OPENAI, *WRITTEN, *LOST, *UNSENT, *BATCH_RESULTS)


def refusal_of(fault: str, provider: str) -> Refused | None:
    """How that provider says the fault; None when it is not one that is said."""
    spoken = SPOKEN[provider].get(fault)
    return None if spoken is None else Refused(*spoken)


@dataclass(slots=True)
class FaultPlan:
    """Which request meets which fault.

    Attributes:
        shares: fault -> share of items that meet it, 0 to 1, drawn by the item's own text.
        at: word in the last user message (no digit follows) -> fault, or `FAULT:TIMES` for its first so many requests.
        times: an item meets its fault in its first so many requests; None: for good.
        after: fault -> number of charged calls after which every request meets it.
    """

    shares: dict[str, float] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)
    times: int | None = None
    after: dict[str, int] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        ordered = (name.partition(":")[0] for name in self.at.values())
        unknown = {*self.shares, *ordered, *self.after} - {*FAULTS}
        if unknown:
            raise ValueError(f"unknown faults {sorted(unknown)}; choose from {', '.join(FAULTS)}")

    def draw(self, item: str, charged: int) -> str | None:
        """The fault of this request of an item, when `charged` calls were charged before it."""
        self.seen[item] += 1
        for name, calls in self.after.items():
            if charged >= calls:
                return name
        name, _, times = (self.of(item) or "").partition(":")
        most = int(times) if times else self.times
        return None if not name or (most is not None and self.seen[item] > most) else name

    def of(self, item: str) -> str | None:
        """The fault that an item meets, as it was ordered, if it meets one at all."""
        for text, name in self.at.items():
            if re.search(rf"{re.escape(text)}(?!\d)", item):
                return name
        draw = int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "big") / 2**64
        for name, share in self.shares.items():
            if draw < share:
                return name
            draw -= share
        return None

    def mend(self) -> None:
        """No more faults."""
        self.shares, self.at, self.after = {}, {}, {}
