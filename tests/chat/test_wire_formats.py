"""Wire formats: what APIs are told through the real SDKs, and what their answers mean: replies, one table of errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.anthropic_wire import LEAST_CACHED_BYTES, AnthropicWire
from h2htalk.chat.engines import open_chat
from h2htalk.chat.error_bodies import read_error_body, requested_wait
from h2htalk.chat.openai_wire import OpenAIWire
from h2htalk.chat.protocol import Answer, Call, FailedCall, Message, Reply, Request, Sampling
from h2htalk.chat.server import ServerWire
from h2htalk.chat.wire_formats import WireFormat
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError
from h2htalk.masking import KEY_MASK
from support.doubles.loopback import Answer as HttpAnswer
from support.doubles.loopback import LoopbackServer, message
from support.hosted_apis import KEYS, PERSONA, Api, completion, requests_of, set_keys, text_of

KEY = "hf_made-up-0123456789"
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
        ("length", {"content": None}, ("", "length", None)),  # all went into reasoning
        ("content_filter", {"content": "Half"}, ("Half", "content_filter", None)),
        ("stop", {"content": None, "refusal": "I cannot."}, ("I cannot.", "refusal", None)),
        (None, {"content": "Yes."}, ("Yes.", "unknown", None)),
        ("tool_calls", {"content": "I look it up."}, ("I look it up.", "tool_calls", None)),
        ("stop", {"content": "Rest.", "reasoning_content": "Tired."}, ("Rest.", "stop", "Tired.")),
        ("stop", {"reasoning": "Tired."}, ("", "stop", "Tired.")),
    ],
)
def test_a_chat_completion_is_a_typed_reply(
    name: str, finish: str | None, said: dict[str, Any], expected: tuple[str, str, str | None]
) -> None:
    found = reply(WIRES[name], choice(finish, said))
    assert (found.text, found.finish_reason, found.thinking) == expected


STOPS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
         "refusal": "content_filter", "model_context_window_exceeded": "context", "pause_turn": "tool_calls",
         None: "unknown"}  # fmt: skip


@pytest.mark.parametrize("stop", STOPS)
def test_a_message_is_a_typed_reply(stop: str | None) -> None:
    found = reply(WIRES["anthropic"], message("Half a rep", stop_reason=stop))
    assert (found.text, found.finish_reason) == ("Half a rep", STOPS[stop])


def test_a_message_keeps_its_reasoning_and_its_usage() -> None:
    content = [
        {"type": "thinking", "thinking": "They are sad.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I am "},
        {"type": "text", "text": "here."},
    ]
    cached = {"cache_read_input_tokens": 1024, "cache_creation_input_tokens": 96}
    lifetimes = {"ephemeral_5m_input_tokens": 64, "ephemeral_1h_input_tokens": 32}
    usage = {"input_tokens": 100, "output_tokens": 300, "cache_creation": lifetimes, **cached}
    usage["output_tokens_details"] = {"thinking_tokens": 250}
    found = reply(WIRES["anthropic"], message("") | {"content": content, "usage": usage})
    whole = Usage(1220, 300, 1024, 64, 32, 250)
    assert found == Reply("I am here.", "stop", whole, "They are sad.", "req_1", "loopback")


def test_an_answer_keeps_what_it_says_of_its_price() -> None:
    """The words by which another price holds were thrown away."""
    counts = {"input_tokens": 100, "output_tokens": 30}
    words = {"inference_geo": "us", "speed": "fast", "service_tier": "priority"}
    read = reply(WIRES["anthropic"], message("a") | {"usage": counts | words})
    assert read.usage == Usage(100, 30, **words)
    read = reply(WIRES["openai"], completion("a") | {"service_tier": "flex"})
    assert read.usage.service_tier == "flex"
    odd = {"inference_geo": "", "speed": 7, "service_tier": None}
    read = reply(WIRES["anthropic"], message("a") | {"usage": counts | odd})
    assert read.usage == Usage(100, 30)


@pytest.mark.parametrize("name", CHAT)
def test_a_completion_keeps_its_usage_and_that_of_several_samples_is_known_only_together(
    name: str,
) -> None:
    cached = {"cached_tokens": 1024, "cache_write_tokens": 100}
    usage = {"prompt_tokens": 1200, "completion_tokens": 300, "prompt_tokens_details": cached}
    usage["completion_tokens_details"] = {"reasoning_tokens": 250}
    assert reply(WIRES[name], completion("a") | {"usage": usage}).usage == Usage(
        1200, 300, 1024, 100, None, 250
    )
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
def test_counts_that_make_no_sense_are_unknown_and_lose_no_reply(
    wire: WireFormat, usage: object
) -> None:
    found = reply(wire, plain(wire, "a") | {"usage": usage})
    assert (found.text, found.usage.input_tokens) == ("a", None)


MALFORMED: list[Any] = [
    *(None, b"", b"<html>busy</html>", b"[" * 9000, "text", [], {}),
    *(
        {"choices": []},
        {"choices": {}},
        {"choices": None},
        {"choices": "a"},
        {"choices": ["a"]},
        {"choices": [{}]},
    ),
    *(
        {"choices": [{"message": said}]}
        for said in (None, "a", {}, {"content": 7}, {"content": [7]})
    ),
    *({"choices": [{"text": "a completion, not a chat"}]}, choice(3, {"content": "x"})),
    *(choice("stop", {"content": "x", "reasoning": {"a": 1}}), completion("a", "b")),
    *({"content": None}, {"content": "text"}, {"content": [{}]}, {"content": [{"type": "text"}]}),
    *({"content": [{"type": "text", "text": 7}]}, {"content": {"type": "text"}}, {"content": {}}),
    *({"content": [], "stop_reason": 7}, {"key": KEY}),
]


@pytest.mark.parametrize("body", MALFORMED)
def test_anything_else_is_malformed_paid_and_asked_again_where_it_is_free(
    wire: WireFormat, body: object
) -> None:
    found = read(wire, body)
    assert isinstance(found, FailedCall)
    assert (found.reason, found.billing, found.retry) == (
        "malformed_reply",
        "paid",
        isinstance(wire, ServerWire),
    )
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


KNOWN_FIELDS = st.sampled_from(
    ["choices", "message", "content", "usage", "error", "code", "type", "text"]
)
_anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KNOWN_FIELDS, inner),
)


@given(_anything, st.sampled_from([0, 200, 400, 404, 429, 503]))
def test_no_json_raises(payload: Any, status: int) -> None:
    for wire in WIRES.values():
        assert isinstance(read(wire, payload), Answer | FailedCall)
        assert isinstance(wire.read_error(status, payload, {}), FailedCall)


EVERY = tuple(WIRES)
HOSTED = ("openai", "anthropic")


def rows(*table: tuple[tuple[str, ...], int, Any, str, str, bool]) -> list[Any]:
    return [
        pytest.param(name, *row, id=f"{name}-{row[0]}-{row[2]}")
        for names, *row in table
        for name in names
    ]


@pytest.mark.parametrize(
    ("name", "status", "error", "reason", "billing", "retry"),
    rows(
        (EVERY, 400, {"message": "bad"}, "bad_request", "free", False),
        (EVERY, 413, {}, "context_length", "free", False),
        (EVERY, 408, {}, "http_408", "possibly_paid", True),
        (EVERY, 429, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (EVERY, 502, {}, "http_502", "possibly_paid", True),
        (EVERY, 504, {"type": "timeout_error"}, "http_504", "possibly_paid", True),
        (EVERY, 529, {"type": "overloaded_error"}, "overloaded", "free", True),
        (HOSTED, 403, {}, "http_403", "free", False),  # a gateway's
        # Larger than the limit of a minute: no wait helps.
        (
            EVERY,
            429,
            {"message": "Request too large on tokens per min"},
            "bad_request",
            "free",
            False,
        ),
        # A prompt beyond the context, in the words of five servers.
        (EVERY, 400, {"code": "context_length_exceeded"}, "context_length", "free", False),
        (
            EVERY,
            400,
            {"code": 400, "type": "exceed_context_size_error"},
            "context_length",
            "free",
            False,
        ),
        (
            EVERY,
            400,
            {"message": "This model's maximum context length is 8"},
            "context_length",
            "free",
            False,
        ),
        (
            EVERY,
            400,
            {"message": "exceeds the available context size"},
            "context_length",
            "free",
            False,
        ),
        (EVERY, 400, {"message": "prompt is too long: 9 > 8"}, "context_length", "free", False),
        (
            EVERY,
            400,
            "`inputs` tokens + `max_new_tokens` must be <= 2048",
            "context_length",
            "free",
            False,
        ),
        # The filter of the provider declined the prompt, or blocked a reply that may be billed.
        (EVERY, 400, {"code": "content_filter"}, "filtered", "free", False),
        (EVERY, 403, {"code": "content_policy_violation"}, "filtered", "free", False),
        (EVERY, 400, {"code": "invalid_prompt"}, "filtered", "free", False),
        (
            EVERY,
            400,
            {"message": "Output blocked by content filtering policy"},
            "filtered",
            "possibly_paid",
            False,
        ),
        # Results of batch jobs, whose status is unknown.
        (("openai",), 0, {"type": "server_error"}, "http_500", "free", True),
        (("openai",), 0, {"code": "rate_limit_exceeded"}, "rate_limited", "free", True),
        (HOSTED, 0, {"type": "invalid_request_error"}, "bad_request", "free", False),
        (("anthropic",), 0, {"type": "overloaded_error"}, "overloaded", "free", True),
    ),
)
def test_errors_and_their_costs(
    name: str, status: int, error: Any, reason: str, billing: str, retry: bool
) -> None:
    found = WIRES[name].read_error(status, {"type": "error", "error": error}, {})
    assert (found.reason, found.billing, found.retry, found.fatal) == (reason, billing, retry, None)
    assert found.filtered == (reason == "filtered")
    assert found.limited == (reason in ("rate_limited", "overloaded") and name != "server")


@pytest.mark.parametrize(
    ("name", "status", "error", "reason", "advice"),
    [
        *(
            (name, 401, {"message": "bad key"}, "unauthorized", f"check {name.upper()}_API_KEY")
            for name in HOSTED
        ),
        (
            "server",
            401,
            {},
            "unauthorized",
            "http://host/v1 refused the key (HTTP 401): check H2HTALK_SERVER_KEY",
        ),
        (
            "anthropic",
            0,
            {"type": "authentication_error"},
            "unauthorized",
            "check ANTHROPIC_API_KEY",
        ),
        *(
            (name, 404, {"message": "gone"}, "not_found", "check the model's name, and ")
            for name in EVERY
        ),
        (
            "openai",
            403,
            {"code": "model_not_found"},
            "not_found",
            "no model 'gpt-made-up' (HTTP 403",
        ),
        ("openai", 403, {"type": "request_forbidden"}, "unauthorized", "check the account"),
        ("anthropic", 403, {"type": "permission_error"}, "unauthorized", "its workspace"),
        *((name, 402, {}, "no_credit", "account has no credit left") for name in EVERY),
        (
            "openai",
            429,
            {"type": "insufficient_quota"},
            "no_credit",
            "OpenAI account has no credit left",
        ),
        ("openai", 400, {"code": "billing_hard_limit_reached"}, "no_credit", "credit"),
        ("anthropic", 400, {"message": "Your credit balance is too low"}, "no_credit", "credit"),
        *(
            (name, 307, {}, "http_307", "redirects (HTTP 307), which is not followed: correct ")
            for name in EVERY
        ),
        (
            "openai",
            400,
            {"code": "unsupported_value", "param": "temperature"},
            "bad_request",
            "--model-sampling",
        ),
        (
            "openai",
            400,
            {"message": "Unrecognized argument: reasoning_effort"},
            "bad_request",
            "--thinking",
        ),
        (
            "openai",
            400,
            {"message": "not supported", "param": "response_format"},
            "bad_request",
            "structured output",
        ),
        (
            "anthropic",
            400,
            {"message": "adaptive thinking is not supported"},
            "bad_request",
            "--thinking",
        ),
        (
            "anthropic",
            400,
            {"message": "output_config is not supported"},
            "bad_request",
            "structured output",
        ),
    ],
)
def test_fatal_errors_come_with_advice(
    name: str, status: int, error: dict[str, Any], reason: str, advice: str
) -> None:
    found = WIRES[name].read_error(status, {"error": {"type": "invalid_request_error"} | error}, {})
    assert (found.reason, found.billing, found.retry, found.limited) == (
        reason,
        "free",
        False,
        False,
    )
    assert advice in found.fatal
    assert found.at_first == (name == "server" and reason != "no_credit")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_no_error_quotes_the_key(name: str, status: int) -> None:
    body = {
        "error": {"message": "x" * 190 + f" your key {KEY} sk-lo***6789 is bad " + KEY, "type": "t"}
    }
    found = WIRES[name].read_error(status, body, {"request-id": KEY})
    assert "0123456789" not in repr(found)
    assert status != 401 or found.message == "HTTP 401: the key was refused"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "seed is not supported", "code": None}}, "seed is not supported"),
        (
            {"detail": [{"loc": ["body"], "msg": "required"}]},
            '[{"loc": ["body"], "msg": "required"}]',
        ),
        (b"<h1>Bad\n\tRequest</h1>\x00\x1b[2J\xff", "<h1>Bad Request</h1>[2J\ufffd"),
        ("x" * 999, "x" * 200),
    ],
)
def test_the_text_of_an_error_is_one_short_line(body: object, text: str) -> None:
    assert read_error_body(body, None).text == text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        *(({"retry-after": value}, None) for value in ("-5", "inf", "604801", "nan", "soon", "")),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "?", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after_in_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_wait(headers) == seconds
    assert WIRES["openai"].read_error(503, None, headers).wait == seconds


OPENAI = OpenAIWire("gpt-made-up", KEYS["openai"])
ANTHROPIC = AnthropicWire("claude-made-up", KEYS["anthropic"])


def call_of(request: Request) -> Call:
    return Call((0,), (request,))


SENT = {
    "openai": {
        "model": "made-up",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello"},
        ],
        "max_completion_tokens": 96,
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 41,
        "service_tier": "default",
        "store": False,
    },
    "anthropic": {
        "model": "made-up",
        "max_tokens": 96,
        "service_tier": "standard_only",
        "messages": [{"role": "user", "content": "Hello"}],
        "system": [{"type": "text", "text": "Be kind."}],
    },
}


def test_a_call_says_all_that_it_may_cost_and_nothing_more(provider: Api) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> HttpAnswer:
        asked.append(body)
        return HttpAnswer(provider.answer())

    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=96, seed=41)
    with LoopbackServer(reply=answer) as server:
        provider.open(server.url).complete(requests_of("Hello", sampling=sampling))
    assert server.authorizations == {f"Bearer {provider.key}"}
    assert asked == [SENT[provider.name]]


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("claude-sonnet-5", 0, {"type": "disabled"}),
        ("claude-sonnet-5-5", 0, {"type": "between_tools"}),
        ("claude-sonnet-5-5", 2048, {"type": "adaptive"}),
        ("claude-haiku-4-5", 0, {"type": "disabled"}),
        ("claude-haiku-4-5-20251001", 2048, {"type": "enabled", "budget_tokens": 2048}),
    ],
)
def test_each_model_is_told_to_reason_in_its_own_words(
    model: str, thinking: int, sent: object
) -> None:
    (request,) = requests_of("a", sampling=Sampling(None, thinking=thinking))
    assert AnthropicWire(model, "k").body(call_of(request))["thinking"] == sent


def test_thinking_widens_the_budget_is_switched_off_or_refused() -> None:
    for thinking, sent in ((None, (None, 256)), (0, ("none", 256)), (1000, (None, 1256))):
        body = OPENAI.body(
            call_of(Request("a", (Message("user", "Hi"),), Sampling(thinking=thinking)))
        )
        assert (body.get("reasoning_effort"), body["max_completion_tokens"]) == sent
    (request,) = requests_of("a", sampling=Sampling(None, thinking=500))
    with pytest.raises(ConfigError, match="claude-opus-4-5 takes 1,024 tokens or more, or 0"):
        AnthropicWire("claude-opus-4-5", "k").body(call_of(request))


def test_missing_samples_are_one_call_with_the_first_seed(
    hosted_loop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], _: int) -> HttpAnswer:
        asked.append(body)
        made = completion(*(f"{text_of(body)}{number}" for number in range(body.get("n", 1))))
        made["choices"].reverse()  # their index says which is which
        return HttpAnswer(made)

    wanted = (("a", 1), ("a", 3), ("b", 0), ("a", 4))
    requests = [
        Request(i, (Message("user", i),), Sampling(temperature=0.7, seed=100 + n), n)
        for i, n in wanted
    ]
    with LoopbackServer(reply=answer) as server:
        outcomes = Api("openai", monkeypatch).open(server.url).complete(requests)
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == [
        "a0",
        "a1",
        "b0",
        "a2",
    ]
    assert sorted((body.get("n", 1), body["seed"]) for body in asked) == [(1, 100), (3, 101)]


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC])
def test_the_bound_covers_what_a_normalizing_tokenizer_makes_of_a_ligature(
    wire: OpenAIWire | AnthropicWire,
) -> None:
    written_out = "صلى الله عليه وسلم"
    bound = wire.bound(call_of(requests_of("\ufdfa" * 100)[0]))
    assert bound.input_tokens >= 100 * len(written_out.encode())


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        # The user opens, nobody speaks twice in a row, and no turn is blank.
        (
            [("user", "Hi"), ("assistant", " \n"), ("user", "You there?"), ("assistant", "")],
            ["Hi\nYou there?"],
        ),
        ([("assistant", "Welcome."), ("user", "Hi")], ["…", "Welcome.", "Hi"]),
        ([], ["…"]),
    ],
)
def test_turns_are_as_anthropic_wants_them(turns: list[tuple[Any, str]], sent: list[str]) -> None:
    said = (Message("system", "  "), *(Message(role, text) for role, text in turns))
    body = ANTHROPIC.body(call_of(Request("a", said, Sampling(None))))
    assert [message["content"] for message in body["messages"]] == sent
    assert "system" not in body


def sharing(item: str, persona: str = PERSONA) -> Request:
    system = Message("system", f"{persona}Today: {item}", shared=len(persona))
    return Request(item, (system, Message("user", item)), Sampling(None))


def system_of(*requests: Request, batch: bool = False) -> list[Any]:
    return [ANTHROPIC.body(call, batch)["system"] for call in ANTHROPIC.calls(requests)]


def test_prompts_that_start_alike_share_a_cache_key() -> None:
    one, two, other = (
        OPENAI.body(call_of(r)) for r in (sharing("a"), sharing("b"), sharing("a", "You are Bo."))
    )
    assert one["prompt_cache_key"] == two["prompt_cache_key"] != other["prompt_cache_key"]


def test_what_two_calls_share_is_cached_for_five_minutes_and_what_three_share_in_a_batch_for_an_hour() -> (
    None
):
    requests = [sharing(item) for item in "abc"]
    for lifetime, blocks in (
        ("5m", system_of(*requests[:2])[1]),
        ("1h", system_of(*requests, batch=True)[1]),
    ):
        cached = {"cache_control": {"type": "ephemeral", "ttl": lifetime}}
        assert blocks == [
            {"type": "text", "text": PERSONA, **cached},
            {"type": "text", "text": "Today: b"},
        ]
    # What nobody shares, is too short or is not marked is not cached.
    short = "You are Ava. "
    assert len(short) < LEAST_CACHED_BYTES < len(PERSONA)
    alone = [
        sharing("a"),
        sharing("b", short),
        sharing("c", short),
        sharing("d", "I" * len(PERSONA)),
    ]
    unmarked = Request("e", (Message("system", PERSONA), Message("user", "e")), Sampling(None))
    others = [
        system_of(*requests[:2], batch=True),
        system_of(*alone),
        system_of(unmarked, unmarked),
    ]
    assert "cache_control" not in str(others)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("OPENAI_API_KEY", value) for value in ("", "  ", "sk-ünsafe", "sk-two words")),
        ("OPENAI_BASE_URL", "api.openai.com"),
        ("OPENAI_BASE_URL", "https://me:secret@proxy.example/v1"),
        ("OPENAI_BASE_URL", "https://proxy.example/v1?key=secret"),
    ],
)
def test_a_wrong_key_or_address_names_its_variable(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_keys(monkeypatch)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=variable) as caught:
        open_chat("openai:gpt-4o")
    assert "secret" not in str(caught.value)
    assert "sk-" not in str(caught.value)
