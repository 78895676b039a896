"""The two hosted APIs behind the real SDKs, in memory: what they answer is a function of what they are asked."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from h2htalk.chat.anthropic_api import AnthropicChat
from h2htalk.chat.base import Chat, ChatOptions, Message, Outcome, Request, Sampling
from h2htalk.chat.openai_api import OpenAIChat
from h2htalk.data.run import Failure

KEYS = {"openai": "sk-proj-made-up-0123456789", "anthropic": "sk-ant-made-up-0123456789"}
PROVIDERS = tuple(KEYS)
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


def error(
    status: int, text: str = "no", headers: Mapping[str, str] | None = None, **more: Any
) -> httpx2.Response:
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
