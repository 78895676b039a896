"""What an OpenAI-compatible server is asked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Call, Message, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.server import ServerWire

WIRE = ServerWire("m", None, "http://host/v1")


def test_a_request_says_model_messages_and_sampling() -> None:
    messages = (Message("system", "Be kind."), Message("user", "我今天很累 \ud83d"))
    body = WIRE.body(Call((0,), (Request("id", messages, Sampling(0.7, 0.9, 96, 41)),)))
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "我今天很累 \ud83d"},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 96,
        "seed": 41,
    }


def body_of(form: ResponseSchema | None = None, **sampling: Any) -> dict[str, Any]:
    request = Request("id", (Message("user", "Hi"),), Sampling(**sampling), response_schema=form)
    return dict(WIRE.body(Call((0,), (request,))))


def test_sampling_that_is_left_to_the_model_is_not_mentioned() -> None:
    assert body_of(temperature=None, seed=41).keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("thinking", "switch", "budget"),
    [
        (None, None, 256),
        # Qwen's and most others' word, and DeepSeek's and Granite's.
        (0, {"enable_thinking": False, "thinking": False}, 256),
        (1000, {"enable_thinking": True, "thinking": True}, 1256),
    ],
)
def test_thinking_is_a_switch_of_the_chat_template_and_widens_the_budget(
    thinking: int | None, switch: dict[str, bool] | None, budget: int
) -> None:
    body = body_of(thinking=thinking)
    assert (body.get("chat_template_kwargs"), body["max_tokens"]) == (switch, budget)


class Score(BaseModel):
    evidence: str
    score: int = Field(ge=1, le=10)


def test_a_form_is_asked_for_by_its_schema() -> None:
    form = ResponseSchema("score", Score)
    assert body_of(form)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "score", "strict": True, "schema": form.schema()},
    }
