"""What each API's replies mean, read by its wire format."""

from __future__ import annotations

from typing import Any

import pytest
from hosted_made import completion, requests_of
from hypothesis import given
from hypothesis import strategies as st
from loopback import message

from h2htalk.chat.protocol import Answer, Call, FailedCall, Reply
from h2htalk.chat.server import ServerWire
from h2htalk.chat.wires import AnthropicWire, OpenAIWire, WireFormat
from h2htalk.data.responses import KEY_MASK, Usage

KEY = "sk-proj-made-up-0123456789"
WIRES: dict[str, WireFormat] = {
    "server": ServerWire("m", KEY, "http://host/v1"),
    "openai": OpenAIWire("gpt-made-up", KEY),
    "anthropic": AnthropicWire("claude-made-up", KEY),
}
CHAT = ("server", "openai")  # chat completions


@pytest.fixture(params=tuple(WIRES))
def wire(request: pytest.FixtureRequest) -> WireFormat:
    return WIRES[request.param]


def read(wire: WireFormat, body: object, samples: int = 1) -> Answer | FailedCall:
    (request,) = requests_of("a")
    return wire.read(body, Call(tuple(range(samples)), (request,) * samples), "req_1")


def reply(wire: WireFormat, body: object) -> Reply:
    found = read(wire, body)
    assert isinstance(found, Answer)
    return found.replies[0]


def plain(wire: WireFormat, text: str = "I am here.") -> dict[str, Any]:
    return message(text) if isinstance(wire, AnthropicWire) else completion(text)


def choice(finish: object, said: object) -> dict[str, Any]:
    return completion() | {"choices": [{"index": 0, "finish_reason": finish, "message": said}]}


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize(
    ("finish", "said", "expected"),
    [
        ("stop", {"content": "Yes."}, ("Yes.", "stop", None)),
        ("length", {"content": "Yes, I"}, ("Yes, I", "length", None)),
        ("length", {"content": None}, ("", "length", None)),  # all went into reasoning
        ("content_filter", {"content": "Half"}, ("Half", "refusal", None)),
        ("stop", {"content": None, "refusal": "I cannot."}, ("I cannot.", "refusal", None)),
        ("stop", {"refusal": "I cannot."}, ("I cannot.", "refusal", None)),
        ("stop", {"content": ""}, ("", "stop", None)),
        (None, {"content": "Yes."}, ("Yes.", "unknown", None)),
        ("tool_calls", {"content": None}, ("", "tool_calls", None)),
        ("stop", {"content": "Rest.", "reasoning_content": "Tired."}, ("Rest.", "stop", "Tired.")),
        ("stop", {"content": "Rest.", "reasoning": "Tired."}, ("Rest.", "stop", "Tired.")),
        ("stop", {"reasoning": "Tired."}, ("", "stop", "Tired.")),
    ],
)
def test_a_chat_completion_is_a_typed_reply(
    name: str, finish: str | None, said: dict[str, Any], expected: tuple[str, str, str | None]
) -> None:
    found = reply(WIRES[name], choice(finish, said))
    assert (found.text, found.finish_reason, found.thinking) == expected


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context"),
        ("pause_turn", "pause_turn"),
        (None, "unknown"),
    ],
)
def test_a_message_is_a_typed_reply(stop: str | None, expected: str) -> None:
    found = reply(WIRES["anthropic"], message("Half a rep") | {"stop_reason": stop})
    assert (found.text, found.finish_reason) == ("Half a rep", expected)


def test_a_message_keeps_its_reasoning_and_its_usage() -> None:
    content = [
        {"type": "thinking", "thinking": "They are sad.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I am "},
        {"type": "text", "text": "here."},
    ]
    usage = {
        "input_tokens": 100,
        "output_tokens": 300,
        "cache_read_input_tokens": 1024,
        "cache_creation_input_tokens": 96,
        "cache_creation": {"ephemeral_5m_input_tokens": 64, "ephemeral_1h_input_tokens": 32},
        "output_tokens_details": {"thinking_tokens": 250},
    }
    found = reply(WIRES["anthropic"], message("") | {"content": content, "usage": usage})
    whole = Usage(1220, 300, 1024, 64, 32, 250)
    assert found == Reply("I am here.", "stop", whole, "They are sad.", "req_1", "loopback")


@pytest.mark.parametrize("name", CHAT)
def test_a_completion_keeps_its_usage_and_that_of_several_samples_is_known_only_together(name: str) -> None:
    usage = {
        "prompt_tokens": 1200,
        "completion_tokens": 300,
        "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 250},
    }
    assert reply(WIRES[name], completion("a") | {"usage": usage}).usage == Usage(1200, 300, 1024, 100, None, 250)
    both = read(WIRES[name], completion("a", "b"), samples=2)
    assert isinstance(both, Answer)
    assert (both.usage.input_tokens, both.usage.output_tokens) == (20, 10)
    assert [one.usage for one in both.replies] == [Usage(), Usage()]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {},
        {"prompt_tokens": -1, "input_tokens": -1, "completion_tokens": 5.0},
        {"prompt_tokens": True, "input_tokens": "12"},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}},
        {"prompt_tokens": 10**30, "input_tokens": 1e400, "completion_tokens": 1},
    ],
)
def test_counts_that_make_no_sense_are_unknown_and_lose_no_reply(wire: WireFormat, usage: object) -> None:
    found = reply(wire, plain(wire, "a") | {"usage": usage})
    assert (found.text, found.usage.input_tokens) == ("a", None)


MALFORMED: list[Any] = [
    *(None, b"", b"<html>busy</html>", b"[" * 9000, "text", [], {}),
    *({"choices": []}, {"choices": {}}, {"choices": None}, {"choices": "a"}, {"choices": ["a"]}, {"choices": [{}]}),
    *({"choices": [{"message": said}]} for said in (None, "a", {}, {"content": 7}, {"content": ["part"]})),
    *({"choices": [{"text": "a completion, not a chat"}]}, choice(3, {"content": "x"})),
    *(choice("stop", {"content": "x", "reasoning": {"a": 1}}), completion("a", "b")),
    *({"content": None}, {"content": "text"}, {"content": [{}]}, {"content": [{"type": "text"}]}),
    *({"content": [{"type": "text", "text": 7}]}, {"content": {"type": "text"}}, {"content": {}}),
    *({"content": [], "stop_reason": 7}, {"error": {"message": f"key {KEY}"}}),
]


@pytest.mark.parametrize("body", MALFORMED)
def test_anything_else_is_malformed_paid_and_asked_again_only_where_it_costs_nothing(
    wire: WireFormat, body: object
) -> None:
    found = read(wire, body)
    assert isinstance(found, FailedCall)
    assert (found.reason, found.billing, found.retry) == ("malformed_reply", "paid", isinstance(wire, ServerWire))
    assert KEY not in found.message
    assert len(found.message) < 260
    assert found.message.isprintable()


def test_a_key_in_a_good_answer_is_masked(wire: WireFormat) -> None:
    body = plain(wire, f"Your key is {KEY}.") | {"id": KEY, "stop_reason": KEY, "model": KEY}
    if "choices" in body:
        body["choices"][0] |= {"finish_reason": KEY}
        body["choices"][0]["message"]["reasoning"] = KEY
    else:
        body["content"] += [{"type": "text", "text": KEY[:5]}, {"type": "text", "text": KEY[5:]}]
    found = wire.read(body, Call((0,), tuple(requests_of("a"))), KEY)
    assert isinstance(found, Answer)
    assert found.replies[0].text.startswith(f"Your key is {KEY_MASK}.")
    assert KEY not in repr(found)
    assert KEY not in repr(wire)


def test_half_a_surrogate_pair_becomes_a_character_that_a_file_can_hold(wire: WireFormat) -> None:
    assert reply(wire, plain(wire, "so \ud83d tired \ud83d\ude34")).text == "so \ufffd tired 😴"


_anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "usage", "error", "code", "type", "text"]), inner
        )
    ),
)


@given(_anything, st.sampled_from([0, 200, 400, 404, 429, 503]))
def test_no_json_raises(payload: Any, status: int) -> None:
    for wire in WIRES.values():
        assert isinstance(read(wire, payload), Answer | FailedCall)
        assert isinstance(wire.read_error(status, payload, {}), FailedCall)
