"""A server on the loopback interface that plays OpenAI and Anthropic to their real SDKs, and keeps books of its own.

    with ProviderServer(faults={"gateway_timeout": 0.1}, fault_times=1) as server:
        subprocess.run([...], env=server.environment())
        server.bill(), server.charged(), server.seen

It serves chat completions, messages, and the batch jobs of both; it wants the key, refuses what the real APIs refuse,
and charges what it computes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from loopback import Answer, LoopbackHttp, header
from provider_batches import BatchApi, Found, Job
from provider_model import ID_HEADER, KEY, REPLY, Model, Refused, Tokens, error, read, reply

# US dollars per million tokens, by kind.
KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
PRICES = {
    "openai:gpt-test": ("2.50", "10.00", "1.25"),
    "anthropic:claude-test": ("3.00", "15.00", "0.30", "3.75", "6.00"),
}
BATCH_FACTOR = Decimal("0.5")
_SLOW = "Slow down: too many requests a minute."
# An API may repeat the key that it refuses, and a gateway what it was sent: nothing of it may be shown or stored.
_KEY_TEXT = f"Incorrect API key provided: {KEY}."
_BROKEN = f"The server had an error with 'Authorization: Bearer {KEY}'."
# Refused before anything is computed, in the words of OpenAI and of Anthropic.
_SAID: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "rate_limited": (
        (429, "requests", _SLOW, "rate_limit_exceeded", {"retry-after": "1"}),
        (429, "rate_limit_error", _SLOW, None, {"retry-after": "1"}),
    ),
    "overloaded": ((503, "server_error", "The engine is overloaded."), (529, "overloaded_error", "Overloaded")),
    "http_500": ((500, "server_error", _BROKEN), (500, "api_error", _BROKEN)),
    "unauthorized": (
        (401, "invalid_request_error", _KEY_TEXT, "invalid_api_key"),
        (401, "authentication_error", _KEY_TEXT),
    ),
    "context_length": (
        (400, "invalid_request_error", "maximum context length is 8192 tokens", "context_length_exceeded"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "no_credit": (
        (429, "insufficient_quota", "You exceeded your current quota.", "insufficient_quota"),
        (402, "billing_error", "Your credit balance is too low."),
    ),
}


@dataclass(slots=True)
class Charge:
    """One computed call. `arrived`: its reply left whole, with its usage."""

    model: str
    item: str
    samples: int
    tokens: Tokens
    batch: bool
    request_id: str
    arrived: bool = False

    @property
    def dollars(self) -> Decimal:
        """What this call costs by `PRICES`."""
        prices = zip(KINDS, PRICES[self.model], strict=False)  # OpenAI does not bill what it writes to its cache
        sums = (getattr(self.tokens, kind) * Decimal(dollars) for kind, dollars in prices)
        return sum(sums, Decimal(0)) / 1_000_000 * (BATCH_FACTOR if self.batch else 1)


def price_file() -> str:
    """The prices as a price file that h2htalk reads."""
    text = 'date = "2026-11-20"\ncurrency = "USD"\n'
    for model, prices in PRICES.items():
        text += f'[models."{model}"]\nbatch = "{BATCH_FACTOR}"\n'
        text += "".join(f'{kind} = "{dollars}"\n' for kind, dollars in zip(KINDS, prices, strict=False))
    return text


class ProviderServer(LoopbackHttp, BatchApi):
    """The server in a thread of its own, as a context manager. `seen`: well-formed requests by their last user message.

    Faults are those of `_SAID`; `refusal`, `truncated`, `no_usage` and `garbage`,
    which are seen in the reply; `gateway_timeout`, `drop_after`, `cut` and `hang`, where a charged reply does not
    arrive; and `drop_before`, where nothing is charged.

    Args:
        faults: fault -> share of items that meet it. faults_at: word in the last user message -> fault. Either may be
            `FAULT:TIMES`: an item meets it in its first so many requests only.
        after: fault -> number of charged calls after which every request meets it.
        latency: seconds between a call's charge and its reply.
        dearest: every call costs as much as it can.
        looks: a batch job ends at the so-many-th look at it, by itself or in a list.
    """

    def __init__(
        self,
        faults: dict[str, float] | None = None,
        faults_at: dict[str, str] | None = None,
        after: dict[str, int] | None = None,
        latency: float = 0.0,
        dearest: bool = False,
        looks: int = 1,
    ) -> None:
        LoopbackHttp.__init__(self, latency)
        BatchApi.__init__(self)
        self.faults, self.faults_at, self.after = faults or {}, faults_at or {}, after or {}
        self.looks = looks
        self.model = Model(REPLY, dearest)
        self.seen: Counter[str] = Counter()
        self._charges: list[Charge] = []
        self._number = 0

    def environment(self) -> dict[str, str]:
        """This process's environment, with both SDKs' variables pointing here."""
        ours = {"OPENAI_BASE_URL": f"{self.url}/v1", "ANTHROPIC_BASE_URL": self.url}
        return {**os.environ, **ours, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}

    def charged(self) -> list[Charge]:
        """Every call that was computed, in order."""
        return list(self._charges)

    def bill(self) -> Decimal:
        """US dollars in all."""
        return sum((charge.dollars for charge in self._charges), Decimal(0))

    def mend(self) -> None:
        """Switch all faults off for the requests to come."""
        self.faults, self.faults_at, self.after = {}, {}, {}

    def fault_of(self, item: str) -> str | None:
        """The fault of this request of an item."""
        self.seen[item] += 1
        for name, calls in self.after.items():
            if len(self._charges) >= calls:
                return name
        at = ((re.search(rf"{re.escape(text)}(?!\d)", item), name) for text, name in self.faults_at.items())
        found = next((name for met, name in at if met), "")
        draw = int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "big") / 2**64
        for name, share in self.faults.items():
            found = found or (name if 0 <= draw < share else "")
            draw -= share
        name, _, times = found.partition(":")
        return name if name and (not times or self.seen[item] <= int(times)) else None

    def compute_call(
        self, provider: str, body: Any, request_id: str, batch: bool
    ) -> tuple[str | None, dict[str, Any], Charge | None]:
        """Check, compute and charge one request; raises Refused, free of charge."""
        asked = read(provider, body)
        fault = self.fault_of(asked.item)
        if fault in _SAID:
            raise Refused(*_SAID[fault][provider == "anthropic"])
        if fault == "drop_before":  # nothing is computed: the connection ends before
            return fault, {}, None
        texts, finish, tokens = self.model.write(asked, fault)
        charge = Charge(f"{provider}:{asked.model}", asked.item, asked.samples, tokens, batch, request_id)
        self._charges.append(charge)
        return fault, reply(asked, texts, finish, tokens, request_id, fault != "no_usage"), charge

    def ends(self, job: Job) -> bool:
        return job.looks >= self.looks

    def compute(self, job: Job, body: Any) -> tuple[Found, str]:
        request_id = self._next_id()
        try:
            fault, made, charge = self.compute_call(job.provider, body, request_id, batch=True)
        except Refused as refused:
            return refused, request_id
        if charge is None:
            return fault, request_id
        charge.arrived = fault != "no_usage"
        return made, request_id

    def _next_id(self) -> str:
        self._number += 1
        return f"req_{self._number:06}"

    def reply_to(self, head: bytes, body: bytes) -> Answer | str:
        method, target = head.split(b" ", 2)[:2]
        provider = "anthropic" if target.startswith(b"/v1/messages") else "openai"
        request_id = self._next_id()
        try:
            if header(head, b"authorization") != f"Bearer {KEY}":
                raise Refused(*_SAID["unauthorized"][provider == "anthropic"])
            if target in (b"/v1/chat/completions", b"/v1/messages"):
                return self._live(json.loads(body), provider, request_id)
            url = urlsplit(target.decode())
            found = self.answer(method.decode(), url.path, dict(parse_qsl(url.query)), body)
            rows = b"" if isinstance(found, dict) else b"".join(json.dumps(row).encode() + b"\n" for row in found)
            return Answer(found if isinstance(found, dict) else rows)
        except Refused as refused:
            headers = {ID_HEADER[provider]: request_id, **refused.headers}
            return Answer(error(provider, refused, request_id), refused.status, headers)

    def _live(self, body: Any, provider: str, request_id: str) -> Answer | str:
        fault, made, charge = self.compute_call(provider, body, request_id, batch=False)
        if fault == "gateway_timeout":
            raise Refused(504, "timeout_error", "The upstream did not answer in time")
        if fault in ("hang", "drop_before", "drop_after"):
            return fault.partition("_")[0]
        content = json.dumps(made).encode() if fault != "garbage" else b'{"id": "%s' % KEY.encode()

        def sent() -> None:
            if charge is not None:
                charge.arrived = fault not in ("no_usage", "garbage", "cut")

        headers = {ID_HEADER[provider]: request_id, "content-type": "application/json"}
        return Answer(content, headers=headers, share=2 / 3 if fault == "cut" else 1, sent=sent)
