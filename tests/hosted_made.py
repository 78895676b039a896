"""The two hosted APIs behind the real SDKs, in memory: what they answer is a function of what they are asked."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.costs.ledger import Ledger
from h2htalk.chat.costs.prices import Price
from h2htalk.chat.costs.reservations import Reservation, Settlement
from h2htalk.chat.hosted.hosted_chat import AnthropicChat
from h2htalk.chat.hosted.anthropic_wire import AnthropicWire
from h2htalk.chat.hosted.hosted_chat import OpenAIChat
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.protocol import Chat, Message, OnDone, Outcome, Request, Sampling
from h2htalk.data.responses import Failure

KEYS = {"openai": "sk-proj-made-up-0123456789", "anthropic": "sk-ant-made-up-0123456789"}
PROVIDERS = tuple(KEYS)
PRICE = Price(input=Decimal(1), output=Decimal(10), cache_write=Decimal(2), cache_write_1h=Decimal(2))
PERSONA = "You are Ava, who keeps a lighthouse. " * 90
# What the double answers a body: a response, or one that takes its time.
Answers = Callable[[dict[str, Any]], httpx2.Response | Awaitable[httpx2.Response]]


@dataclass
class Double:
    """One provider. `asked`: the bodies that arrived, in order; `headers`: of each."""

    provider: str
    answers: Answers
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.asked.append(body)
        self.headers.append(request.headers)
        self.paths.append(request.url.path)
        answer = self.answers(body)
        return await answer if inspect.isawaitable(answer) else answer

    def chat(self, options: ChatOptions | None = None, model: str = "made-up") -> Chat:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        chat_class = OpenAIChat if self.provider == "openai" else AnthropicChat
        return chat_class(model, options or ChatOptions(), http_client=client)

    def texts(self) -> list[str]:
        """The last message of each body, in order."""
        return [text_of(body) for body in self.asked]


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up keys, and the providers' own addresses."""
    for provider, key in KEYS.items():
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", key)
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)


def text_of(body: Mapping[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def ok(provider: str, text: str = "I am here.", **changed: Any) -> httpx2.Response:
    """A plain answer, with the fields of its body changed."""
    body = completion(text) if provider == "openai" else message(text)
    name = "x-request-id" if provider == "openai" else "request-id"
    return httpx2.Response(200, json=body | changed, headers={name: "req_made_up"})


def completion(*texts: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "made-up",
        "choices": [
            {
                "index": index,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, "refusal": None},
            }
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5 * len(texts), "total_tokens": 25},
    }


def message(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "made-up",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 5},
    }


def error(status: int, text: str = "no", headers: Mapping[str, str] | None = None, **more: Any) -> httpx2.Response:
    """An error answer in the shape that both providers share."""
    kind = more.pop("type", "made_up_error")
    body = {"type": "error", "error": {"type": kind, "message": text, **more}}
    return httpx2.Response(status, json=body, headers=headers)


def requests_of(*texts: str, sampling: Sampling | None = None) -> list[Request]:
    sampling = sampling or Sampling(temperature=None, max_tokens=50)
    return [Request(text, (Message("system", "Be kind."), Message("user", text)), sampling) for text in texts]


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Failure) else "ok" for outcome in outcomes]


async def slowly(seconds: float, answer: httpx2.Response) -> httpx2.Response:
    await asyncio.sleep(seconds)
    return answer


def sharing(*texts: str, persona: str = PERSONA) -> list[Request]:
    """Requests that cache a long persona on request."""
    system = Message("system", persona, shared=len(persona))
    return [Request(text, (system, Message("user", text)), Sampling(None)) for text in texts]


class Books(Ledger):
    """A ledger that remembers in which order things happened, replies included."""

    def __init__(self, limit: Decimal | None = None, price: Price | None = PRICE) -> None:
        super().__init__(None, model="made-up", price=price, limit=limit)
        self.story: list[str] = []

    def reserve_all(self, *args: Any, **more: Any) -> list[Reservation]:
        made = super().reserve_all(*args, **more)
        self.story += [f"sent {reservation.items[0][0]}" for reservation in made]
        return made

    def _settle(self, end: Settlement) -> None:
        super()._settle(end)
        self.story.append(f"{end.billing} {end.reservation.items[0][0]}")

    def stored(self, requests: list[Request]) -> OnDone:
        return lambda index, outcome: self.story.append(f"stored {requests[index].id}")


def faults(answers: dict[str, list[Any]], provider: str) -> Double:
    """A double that answers each item by its own list, then plainly; an exception in it is raised."""

    def answer(body: dict[str, Any]) -> httpx2.Response | Awaitable[httpx2.Response]:
        todo = answers.get(text_of(body), [])
        found = todo.pop(0) if todo else ok(provider)
        if isinstance(found, Exception):
            raise found
        return found() if callable(found) else found  # type: ignore[no-any-return]

    return Double(provider, answer)


def run(
    provider: str, answers: dict[str, list[Any]], *texts: str, **options: Any
) -> tuple[list[Outcome], Double, Books]:
    """Ask for the items, one after the other unless told otherwise, with books."""
    double = faults(answers, provider)
    books = options.pop("ledger", None) or Books()
    requests = requests_of(*texts)
    chat = double.chat(ChatOptions(**{"concurrency": 1, "ledger": books, **options}))
    return chat.complete(requests, books.stored(requests)), double, books


def worst_case(provider: str) -> Decimal:
    """What a call of these tests may cost at most."""
    api = OpenAIWire("made-up") if provider == "openai" else AnthropicWire("made-up")
    bound = api.bound(api.calls(requests_of("a"))[0])
    dollars = PRICE.worst(bound.input_tokens, bound.output_tokens)
    assert dollars is not None
    return dollars
