"""The APIs of live calls (`server:`, `openai:`, `anthropic:`) through their real clients, at a loopback server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from h2htalk.chat.anthropic_wire import AnthropicWire
from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.openai_wire import OpenAIWire
from h2htalk.chat.prices import Price, PriceList, Totals
from h2htalk.chat.protocol import Answer as Arrived
from h2htalk.chat.protocol import (
    Bound,
    Call,
    Chat,
    FailedCall,
    Message,
    OnDone,
    Outcome,
    Request,
    Sampling,
)
from h2htalk.chat.store.call_records import PaidCall
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.data.responses import Failure
from support.doubles import loopback
from support.doubles.loopback import REPLY, Answer, LoopbackServer

KEYS = {"openai": "sk-proj-made-up-0123456789", "anthropic": "sk-ant-made-up-0123456789"}
SERVER_KEY = "hf-made-up-0123456789"
PROVIDERS = tuple(KEYS)
APIS = ("server", *PROVIDERS)
PRICE = Price(
    input=Decimal(1), output=Decimal(10), cache_write=Decimal(2), cache_write_1h=Decimal(2)
)
PERSONA = "You are Ava, who keeps a lighthouse. " * 90


@dataclass
class Api:
    name: str
    monkeypatch: pytest.MonkeyPatch

    @property
    def paid(self) -> bool:
        return self.name in PROVIDERS

    @property
    def key(self) -> str:
        return KEYS.get(self.name, SERVER_KEY)

    def open(self, url: str, **options: Any) -> Chat:
        """Open a chat at a loopback server's URL, which ends in /v1."""
        self.monkeypatch.setenv("OPENAI_BASE_URL", url)
        self.monkeypatch.setenv("ANTHROPIC_BASE_URL", url.removesuffix("/v1"))
        return open_chat(
            f"{self.name}:made-up" + ("" if self.paid else f"@{url}"), ChatOptions(**options)
        )

    def answer(self, text: str | None = REPLY, **changed: Any) -> dict[str, Any]:
        plain = (
            loopback.message(str(text)) if self.name == "anthropic" else loopback.completion(text)
        )
        return plain | changed

    def run(
        self, answers: Mapping[str, list[Any]], *texts: str, **options: Any
    ) -> tuple[list[Outcome], Books, LoopbackServer]:
        """Ask for the items, one after the other unless told otherwise, with books."""
        books = options.pop("calls", None) or Books()
        requests = requests_of(*texts)
        with LoopbackServer(reply=scripted(answers)) as server:
            chat = self.open(server.url, **{"concurrency": 1, "calls": books, **options})
            return chat.complete(requests, books.stored(requests)), books, server


def scripted(answers: Mapping[str, list[Any]]) -> Callable[[dict[str, Any], int], str | Answer]:
    """Answer each item by its own list (texts, answers, names of faults), then plainly."""

    def reply(payload: dict[str, Any], count: int) -> str | Answer:
        todo = answers.get(text_of(payload), [])
        return todo[count - 1] if count <= len(todo) else REPLY

    return reply


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider, key in KEYS.items():
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", key)
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)
    monkeypatch.setenv("H2HTALK_SERVER_KEY", SERVER_KEY)


def text_of(body: Mapping[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def completion(*texts: str) -> dict[str, Any]:
    body = loopback.completion() | {
        "usage": {"prompt_tokens": 20, "completion_tokens": 5 * len(texts)}
    }
    choices = [
        loopback.completion(text)["choices"][0] | {"index": index}
        for index, text in enumerate(texts)
    ]
    return body | {"choices": choices}


def error(
    status: int, text: str = "no", headers: Mapping[str, str] | None = None, delay: float = 0.0
) -> Answer:
    body = {"type": "error", "error": {"type": "made_up_error", "message": text}}
    return Answer(body, status, headers or {}, delay)


def requests_of(*texts: str, sampling: Sampling | None = None) -> list[Request]:
    sampling = sampling or Sampling(temperature=None, max_tokens=50)
    return [
        Request(text, (Message("system", "Be kind."), Message("user", text)), sampling)
        for text in texts
    ]


def call_of(item: str, samples: int = 1) -> Call:
    asked = tuple(Request(item, (Message("user", "Hello"),), Sampling(), n) for n in range(samples))
    return Call(tuple(range(samples)), asked)


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Failure) else "ok" for outcome in outcomes]


def sharing(*texts: str, persona: str = PERSONA) -> list[Request]:
    """Requests that cache a long persona on request."""
    system = Message("system", persona, shared=len(persona))
    return [Request(text, (system, Message("user", text)), Sampling(None)) for text in texts]


class Books(StageCalls):
    """Calls in memory that remember in which order things happened, replies included."""

    def __init__(self, limit: Decimal | None = None) -> None:
        prices = PriceList("", {"made-up": PRICE})
        super().__init__(CallStore(), "generate", "made-up", prices=prices, limit=limit)
        self.story: list[str] = []

    def reserve(self, call: Call, bound: Bound) -> PaidCall:
        made = super().reserve(call, bound)
        self.story.append(f"sent {made.id}")
        return made

    def settle(self, call: PaidCall, found: Arrived | FailedCall) -> None:
        super().settle(call, found)
        self.story.append(f"{'paid' if isinstance(found, Arrived) else found.billing} {call.id}")

    def totals(self) -> Totals:
        return self.store.totals().get(self.stage, Totals())

    def stored(self, requests: list[Request]) -> OnDone:
        return lambda index, outcome: self.story.append(f"delivered {requests[index].id}")


def worst_case(provider: str) -> Decimal:
    api = OpenAIWire("made-up") if provider == "openai" else AnthropicWire("made-up")
    bound = api.bound(api.calls(requests_of("a"))[0])
    return PRICE.worst(bound.input_tokens, bound.output_tokens) or Decimal("nan")
