"""Which parameter an error refuses, in the words of real servers; and what is sent in its other form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from h2htalk.chat.engines import ENGINES, ChatOptions, open_chat
from h2htalk.chat.protocol import Chat, FailedCall, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.refused_parameters import (
    RefusedParameterError,
    find_refused,
    limit_of_reply,
    with_other_forms,
)
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.server import ServerWire
from h2htalk.chat.wire_options import (
    FORM_REQUEST,
    PARAMETERS,
    AnthropicOptions,
    OpenAIOptions,
    ServerOptions,
    forms_of,
)
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError
from support.doubles.loopback import Answer, LoopbackServer
from support.hosted_apis import Api, Books, reasons, requests_of

pytestmark = pytest.mark.usefixtures("hosted_loop")
MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
SERVER = {
    "model": "m",
    "messages": MESSAGES,
    "max_tokens": 5,
    "temperature": 0,
    "top_p": 1,
    "seed": 1,
    "chat_template_kwargs": {},
    "response_format": {},
}
OPENAI = {
    **{
        name: value
        for name, value in SERVER.items()
        if name not in ("max_tokens", "chat_template_kwargs")
    },
    "max_completion_tokens": 5,
    "n": 2,
    "store": False,
    "service_tier": "default",
    "prompt_cache_key": "k",
    "reasoning_effort": "none",
}


def openai_error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def google_error(name: str) -> list[dict[str, Any]]:
    text = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"description": text}],
        }
    ]
    return [
        {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT", "details": details}}
    ]


def extra(name: str) -> dict[str, Any]:
    return {
        "type": "extra_forbidden",
        "loc": ["body", name],
        "msg": "Extra inputs are not permitted",
        "input": 0,
    }


RUST = "Failed to deserialize the JSON body into the target type: "
VLLM = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra "
    "inputs are not permitted'}]"
)
NOT_WITH = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
REFUSED: list[tuple[int, Any, dict[str, Any], str]] = [
    (
        400,
        openai_error(NOT_WITH, param="max_tokens", code="unsupported_parameter"),
        SERVER,
        "max_tokens",
    ),
    (400, {"error": {"message": NOT_WITH, "code": "invalid_request_body"}}, SERVER, "max_tokens"),
    (
        400,
        {"object": "error", "message": VLLM, "type": "BadRequestError"},
        OPENAI,
        "max_completion_tokens",
    ),
    (
        422,
        {"object": "error", "message": {"detail": [extra("seed")]}, "param": None},
        SERVER,
        "seed",
    ),
    (422, {"object": "error", "message": json.dumps({"detail": [extra("seed")]})}, SERVER, "seed"),
    (422, {"detail": [extra("store")]}, OPENAI, "store"),
    (400, openai_error("This response_format type is unavailable now"), SERVER, "response_format"),
    (
        422,
        f"{RUST}response_format: unknown variant `json_schema`, expected `text`".encode(),
        SERVER,
        "response_format",
    ),
    (
        422,
        f"{RUST}unknown field `seed`, expected one of `model`, `max_tokens`".encode(),
        SERVER,
        "seed",
    ),
    (
        400,
        openai_error("property 'chat_template_kwargs' is unsupported"),
        SERVER,
        "chat_template_kwargs",
    ),
    (400, google_error("seed"), SERVER, "seed"),
    (400, google_error("store"), OPENAI, "store"),
    (
        400,
        {"code": "invalid", "error": "Argument not supported on this model: topP"},
        SERVER,
        "top_p",
    ),
    (
        400,
        openai_error("litellm.UnsupportedParamsError: x does not support parameters: ['seed']"),
        SERVER,
        "seed",
    ),
    (
        400,
        openai_error("Unsupported value: only the default is supported", param="temperature"),
        SERVER,
        "temperature",
    ),
    (
        400,
        {"message": "invalid temperature: only 1 is allowed for this model"},
        SERVER,
        "temperature",
    ),
    (
        422,
        {"error": "Input validation error: `temperature` must be strictly positive"},
        SERVER,
        "temperature",
    ),
    (422, {"error": "Input validation error: `top_p` must be > 0.0 and < 1.0"}, SERVER, "top_p"),
    (
        400,
        {"object": "error", "message": "System role not supported", "code": 400},
        SERVER,
        "system",
    ),
    (
        500,
        {
            "error": "Error rendering prompt with jinja template: Only user and assistant roles are supported!"
        },
        SERVER,
        "system",
    ),
    (
        400,
        openai_error("Conversation roles must alternate user/assistant/user/assistant/..."),
        SERVER,
        "system",
    ),
    (
        400,
        openai_error("'messages[0].role' does not support 'system' with this model."),
        SERVER,
        "system",
    ),
    (
        400,
        openai_error("Developer instruction is not enabled for models/gemma-3-27b-it"),
        SERVER,
        "system",
    ),
    (400, openai_error("This model doesn't support system messages."), SERVER, "system"),
    (400, openai_error("该模型不支持 system 角色"), SERVER, "system"),
    (
        422,
        {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Input should be 'user'"}]},
        SERVER,
        "system",
    ),
    (
        400,
        openai_error("JSON mode is not enabled for models/gemma-3-27b-it"),
        SERVER,
        "response_format",
    ),
    (
        400,
        openai_error("This model does not support response format `json_schema`."),
        SERVER,
        "response_format",
    ),
    (400, openai_error("参数 response_format 不支持 json_schema"), SERVER, "response_format"),
    (
        400,
        openai_error("Unrecognized request argument supplied: prompt_cache_key"),
        OPENAI,
        "prompt_cache_key",
    ),
    (
        400,
        {"message": "Malformed input request: #: extraneous key [seed] is not permitted"},
        SERVER,
        "seed",
    ),
    (
        400,
        openai_error("Unknown parameter: 'n'.", param="n", code="unknown_parameter"),
        OPENAI,
        "n",
    ),
    (
        400,
        openai_error("reasoning_effort is not supported with this model"),
        OPENAI,
        "reasoning_effort",
    ),
    (400, {"error": {"message": "seed: Extra inputs are not permitted"}}, SERVER, "seed"),
    (422, {"detail": "seed: extra fields not permitted"}, SERVER, "seed"),
    (
        400,
        {"code": "invalid", "error": "Argument not supported on this model: seed"},
        SERVER,
        "seed",
    ),
    (400, openai_error("Requested param is not supported: seed"), SERVER, "seed"),
    (
        400,
        {"error": {"message": "Unsupported parameter(s): seed", "type": "invalid_request"}},
        SERVER,
        "seed",
    ),
    (400, openai_error("n > 1 is not currently supported"), OPENAI, "n"),
    (400, {"error": {"message": "Guided decoding is not enabled"}}, SERVER, "response_format"),
    (
        400,
        {"error": {"message": "failed to parse grammar", "code": 400}},
        SERVER,
        "response_format",
    ),
    (
        400,
        {"error": {"message": "JSON schema conversion failed: Unrecognized schema"}},
        SERVER,
        "response_format",
    ),
    (501, {"error": {"message": "json_schema is not implemented"}}, SERVER, "response_format"),
]
# OpenRouter routes to providers, and answers 404 where none of them takes what was sent.
NO_ENDPOINTS = (
    "No endpoints found that can handle the requested parameters. To learn more about provider "
    "routing, visit: https://openrouter.ai/docs/provider-routing"
)
# Refusals of routers (OpenRouter, LiteLLM) and hosts (Groq, Fireworks, Together, Vertex, Gemini, SiliconFlow, watsonx).
OF_ROUTERS_AND_HOSTS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("router_refusals.json").read_text(encoding="utf-8")
)
# A router that has no endpoint for another reason, and models that are not there.
NO_ENDPOINT = (
    "No endpoints found that support image input",
    "No endpoints found matching your data policy. Enable prompt training here: https://openrouter.ai/settings/privacy",
    "No endpoints available matching your guardrail restrictions and data policy.",
    "No allowed providers are available for the selected model.",
)
NO_MODEL: tuple[Any, ...] = (
    openai_error("No endpoints found for nousresearch/hermes-3-llama-3.1-405b:free.", code=404),
    openai_error("The model `seed` does not exist or you do not have access to it."),
    openai_error("This model is unavailable for free. The paid version is available now"),
    openai_error('model "response_format" not found, try pulling it first'),
    {"object": "error", "message": "The model `n` does not exist.", "code": 404},
    {"detail": "Not Found"},
    b"404 page not found",
)
OF_ONE_ITEM: list[tuple[int, Any]] = [
    (400, openai_error("This model's maximum context length is 2048 tokens.", param="messages")),
    (
        400,
        openai_error(
            "'max_tokens' is too large: 1000. Your request has 1500 input tokens (context length 2048)"
        ),
    ),
    (400, openai_error("max_tokens is too large: 5000", param="max_tokens", code="invalid_value")),
    (400, openai_error("max_tokens must be at least 1", param="max_tokens")),
    (
        400,
        openai_error(
            "The prompt triggered the content management policy",
            code="content_filter",
            param="prompt",
        ),
    ),
    (500, openai_error("The server had an unexpected error in the system.")),
    (
        400,
        openai_error(
            "Invalid value for 'content': expected a string, got null.",
            param="messages.[1].content",
        ),
    ),
    (400, openai_error("The vector store is not available")),
    (400, openai_error("This model does not support tools")),
    (
        400,
        openai_error(
            "Failed to generate JSON. Please adjust your prompt. See 'failed_generation'.",
            code="json_validate_failed",
        ),
    ),
    (400, {"error": "model requires more system memory than is available"}),
    (429, openai_error("temperature unsupported")),
    (400, openai_error("no")),
]


@pytest.mark.parametrize(("status", "body", "request_", "name"), REFUSED)
def test_an_error_names_the_parameter_that_is_refused(
    status: int, body: Any, request_: dict[str, Any], name: str
) -> None:
    assert find_refused(status, body, request_) == name
    left = {key: value for key, value in request_.items() if key != name}
    if name == "system":
        left["messages"] = MESSAGES[1:]
    assert find_refused(status, body, left) != name  # what was not sent was not refused


def read_by_server(status: int, body: Any, request: dict[str, Any]) -> FailedCall:
    return ServerWire("m", url="http://127.0.0.1/v1").read_error(status, body, {}, request)


@pytest.mark.parametrize("case", OF_ROUTERS_AND_HOSTS)
def test_routers_and_hosts_name_the_parameter_in_their_own_words(case: dict[str, Any]) -> None:
    """OpenRouter's 404 was "has no model", and LiteLLM's 500 was sent again until the run paused."""
    error = openai_error(case["message"], code=case["status"])
    failed = read_by_server(
        case["status"], error, {"server": SERVER, "openai": OPENAI}[case["sent"]]
    )
    assert failed.parameter == case["parameter"]
    assert failed.reason == "bad_request"
    assert not failed.retry
    assert f"--engine-option {PARAMETERS[case['parameter']].option}=" in str(failed.fatal)


def test_a_router_that_names_no_parameter_is_asked_without_one_after_the_other() -> None:
    sent = dict(SERVER)
    error = openai_error(NO_ENDPOINTS, code=404)
    order = []
    for _ in range(5):
        name = find_refused(404, error, sent)
        order.append(name)
        del sent[name]
    assert find_refused(404, error, sent) == ""
    assert order == ["response_format", "chat_template_kwargs", "seed", "top_p", "temperature"]
    failed = read_by_server(404, error, {"messages": MESSAGES, "seed": 1})
    assert "does not take a parameter, perhaps seed" in str(failed.fatal)


@pytest.mark.parametrize("message", NO_ENDPOINT)
def test_a_router_without_an_endpoint_for_the_request_has_the_model(message: str) -> None:
    failed = read_by_server(404, openai_error(message, code=404), SERVER)
    assert (failed.parameter, failed.reason) == ("", "no_endpoint")
    assert "has no endpoint of 'm'" in str(failed.fatal)


@pytest.mark.parametrize("body", NO_MODEL)
def test_a_model_that_is_not_there_refuses_no_parameter(body: Any) -> None:
    failed = read_by_server(404, body, SERVER)
    assert (failed.parameter, failed.reason) == ("", "not_found")
    assert "has no model 'm'" in str(failed.fatal)


def test_the_upper_end_of_a_range_may_be_outside_it() -> None:
    """Vertex's range of lengths was not read."""
    text = "it has a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 65537 (exclusive)."
    assert limit_of_reply(400, openai_error(text), {**SERVER, "max_tokens": 99999}) == 65536


@pytest.mark.parametrize(("status", "body"), OF_ONE_ITEM)
def test_an_error_about_one_item_refuses_no_parameter(status: int, body: Any) -> None:
    assert find_refused(status, body, {**OPENAI, **SERVER}) == ""


def test_turns_that_do_not_alternate_are_no_missing_system_role() -> None:
    turns = [*MESSAGES, {"role": "user", "content": "Hello?"}]
    body = openai_error("Conversation roles must alternate user/assistant/user/assistant/...")
    assert find_refused(400, body, {"messages": turns}) == ""


# --- Asked again in the other form --------------------------------------------------------------------------------


class Verdict(BaseModel):
    score: int


SCHEMA = ResponseSchema("verdict", Verdict)


def opener(api: Api, url: str, books: Books) -> Any:
    def ask(options: Any) -> list[Outcome]:
        chat: Chat = api.open(url, engine_options=options, calls=books, concurrency=8)
        return chat.complete(requests_of(*"abcdefghijkl"))

    return ask


@pytest.mark.parametrize(
    ("name", "sent", "option", "other"),
    [
        ("server", "max_tokens", "max_tokens_name=max_completion_tokens", "max_completion_tokens"),
        ("openai", "max_completion_tokens", "max_tokens_name=max_tokens", "max_tokens"),
        ("openai", "store", "store=none", None),
        ("anthropic", "service_tier", "service_tier=none", None),
    ],
)
def test_a_refused_parameter_is_sent_in_its_other_form(
    name: str,
    sent: str,
    option: str,
    other: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every item was asked in the refused form, all failed, and no message named the parameter."""
    bodies: list[dict[str, Any]] = []
    api = Api(name, monkeypatch)

    def reply(body: dict[str, Any], _: int) -> Answer:
        bodies.append(body)
        if sent in body:
            return Answer(openai_error(f"Unsupported parameter: '{sent}'", param=sent), 400)
        return Answer(api.answer())

    with LoopbackServer(reply=reply) as server:
        outcomes = with_other_forms(opener(api, server.url, Books()), {})
    assert reasons(outcomes) == ["ok"] * 12
    assert sum(sent in body for body in bodies) <= 8  # those in flight
    printed = capsys.readouterr().err
    assert printed.count(f"--engine-option {option}") == 1
    assert f"does not take {sent}" in printed
    if other:
        assert {body[other] for body in bodies if sent not in body} == {50}


@pytest.mark.parametrize(
    ("error", "option"),
    [
        (Answer({"detail": [extra("seed")]}, 422), "seed=none"),
        (
            Answer(openai_error("temperature: only 1 is allowed for this model"), 400),
            "temperature=none",
        ),
        (
            Answer(openai_error("property 'chat_template_kwargs' is unsupported"), 400),
            "chat_template_kwargs=none",
        ),
    ],
)
def test_what_changes_how_replies_are_drawn_is_left_out_only_by_option(
    error: Answer, option: str
) -> None:
    bodies: list[dict[str, Any]] = []
    dropped = option.partition("=")[0]

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        bodies.append(body)
        return error if dropped in body else "I am here."

    sampling = Sampling(0.5, max_tokens=50, seed=3, thinking=0)
    requests = requests_of(*"abcdefgh", sampling=sampling)
    with LoopbackServer(reply=reply) as server:
        chat = open_chat(server.spec, ChatOptions(concurrency=2))
        with pytest.raises(RefusedParameterError, match=f"--engine-option {option}"):
            with_other_forms(lambda _: chat.complete(requests), {})
        assert len(bodies) <= 3
        allowed = open_chat(server.spec, ChatOptions(engine_options={dropped: "none"}))
        assert reasons(allowed.complete(requests)) == ["ok"] * 8
        assert allowed.subject["request_form"] == option
    kept = {"temperature", "top_p", "seed", "chat_template_kwargs"} - {dropped}
    assert kept <= bodies[-1].keys()


def test_a_system_text_goes_to_the_user_where_the_model_has_no_system_role() -> None:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        if body["messages"][0]["role"] == "system":
            return Answer({"message": "System role not supported", "code": 400}, 400)
        return json.dumps(body["messages"])

    turns = (
        Message("system", "Be kind."),
        Message("user", "Hi"),
        Message("assistant", "Hello"),
        Message("user", "?"),
    )
    with LoopbackServer(reply=reply) as server:

        def ask(options: Any) -> list[Outcome]:
            chat = open_chat(server.spec, ChatOptions(engine_options=options))
            return chat.complete(
                [Request("a", turns, Sampling()), Request("b", turns[:1] + turns[2:], Sampling())]
            )

        first, second = with_other_forms(ask, {})
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert json.loads(first.text)[0] == {"role": "user", "content": "Be kind.\n\nHi"}
    assert json.loads(second.text)[:2] == [
        {"role": "user", "content": "Be kind."},
        {"role": "assistant", "content": "Hello"},
    ]


@pytest.mark.parametrize("takes", ["json_object", "none"])
def test_a_server_without_json_schema_is_asked_for_the_form_and_read_as_strictly(
    takes: str,
) -> None:
    """DeepSeek's API could judge nothing: each call of a judge was refused."""
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        bodies.append(body)
        if body.get("response_format", {"type": "none"})["type"] not in (takes, "none"):
            return Answer(openai_error("This response_format type is unavailable now"), 400)
        return (
            '{"score": 4}' if body["messages"][-1]["content"].startswith("a") else '{"score": "4"}'
        )

    requests = [
        Request(name, (Message("user", name),), Sampling(), response_schema=SCHEMA) for name in "ab"
    ]
    with LoopbackServer(reply=reply) as server:

        def ask(options: Any) -> list[Outcome]:
            return open_chat(server.spec, ChatOptions(engine_options=options)).complete(requests)

        outcomes = with_other_forms(ask, {})
    read = [SCHEMA.read(outcome) for outcome in outcomes if isinstance(outcome, Reply)]
    assert read[0] == Verdict(score=4)
    assert getattr(read[1], "reason", "") == "malformed_output"
    words = FORM_REQUEST.format(schema=json.dumps(SCHEMA.schema()))
    assert bodies[-1]["messages"][-1]["content"].endswith(words)
    assert bodies[-1].get("response_format") == (
        {"type": takes} if takes == "json_object" else None
    )


def test_a_parameter_that_was_taken_before_fails_one_item_alone() -> None:
    """A router may send one call to a provider that refuses what the others take."""

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        refused = body["messages"][-1]["content"] == "c"
        return Answer({"detail": [extra("seed")]}, 422) if refused else "I am here."

    with LoopbackServer(reply=reply) as server:
        chat = open_chat(server.spec, ChatOptions(concurrency=1))
        sampling = Sampling(0.0, max_tokens=50)
        assert reasons(chat.complete(requests_of(*"abcd", sampling=sampling))) == [
            "ok",
            "ok",
            "bad_request",
            "ok",
        ]
        refused, answered = chat.complete(requests_of(*"cd", sampling=sampling))
        assert reasons([refused, answered]) == ["bad_request", "ok"]
    # What is stored of it, and what the end of a run prints, is what to do.
    assert isinstance(refused, Failure)
    assert "--engine-option seed=none" in refused.message
    assert "other calls that sent it were answered" in refused.message


TOO_LONG = [
    openai_error(
        "max_tokens is too large: 50. This model supports at most 32 completion tokens, whereas you provided 50.",
        param="max_tokens",
        code="invalid_value",
    ),
    openai_error("max_tokens: 50 > 32, which is the maximum allowed number of output tokens for m"),
    openai_error("Invalid max_tokens value, the valid range of max_tokens is [1, 32]"),
    openai_error(
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 32]"
    ),
    openai_error(
        "`max_tokens` must be less than or equal to `32`, the maximum value for this model"
    ),
    openai_error("max_completion_tokens cannot exceed 32"),
    openai_error("The maximum number of completion tokens is 32"),
    {
        "detail": [
            {
                "loc": ["body", "max_tokens"],
                "msg": "Input should be less than or equal to 32",
                "input": 50,
            }
        ]
    },
    openai_error("max_tokens 不能大于 32"),
]
OF_THE_CONTEXT = [
    "'max_tokens' is too large: 50. This model's maximum context length is 32 tokens, your request has 9 input tokens",
    "max_tokens is too large: 50",
    "max_tokens must be at least 1",
    "This model supports at most 32 images",
    "`inputs` tokens + `max_new_tokens` must be <= 32",
]


@pytest.mark.parametrize("body", TOO_LONG)
@pytest.mark.parametrize("name", ["server", "openai"])
def test_a_budget_beyond_what_a_model_writes_stops_the_run_and_names_the_option(
    name: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every item was asked and failed, and no message named `--max-tokens`."""
    api = Api(name, monkeypatch)
    with LoopbackServer(reply=lambda *_: Answer(body, 400)) as server:
        with pytest.raises(
            ConfigError, match=r"writes at most 32 tokens in one reply .*: add --max-tokens 32"
        ):
            opener(api, server.url, Books())({})
        assert server.requests <= 8


@pytest.mark.parametrize("text", OF_THE_CONTEXT)
def test_a_budget_that_does_not_fit_beside_one_prompt_stops_no_run(text: str) -> None:
    assert limit_of_reply(400, openai_error(text), {"max_tokens": 50, "messages": MESSAGES}) is None


def test_a_named_form_is_not_changed_and_both_names_of_the_limit_may_be_refused() -> None:
    def reply(body: dict[str, Any], _: int) -> Answer:
        name = next(name for name in ("max_tokens", "max_completion_tokens") if name in body)
        return Answer(openai_error(f"Unsupported parameter: '{name}'", param=name), 400)

    with LoopbackServer(reply=reply) as server:

        def ask(options: Any) -> list[Outcome]:
            return open_chat(server.spec, ChatOptions(engine_options=options)).complete(
                requests_of("a")
            )

        for given, times in ({}, 2), ({"max_tokens_name": "max_tokens"}, 1):
            before = server.requests
            with pytest.raises(ConfigError, match="takes neither name of the limit"):
                with_other_forms(ask, given)
            assert server.requests - before == times


# --- The options --------------------------------------------------------------------------------------------------


def test_every_form_is_in_the_subject_and_read_back() -> None:
    for kind in (ServerOptions, OpenAIOptions, AnthropicOptions):
        given = dict.fromkeys(kind.model_fields, "none") | {"system": "fold"}
        if "stream" in given:
            given |= {"stream": "false"}
        if "max_tokens_name" in given:
            given |= {"max_tokens_name": "max_tokens", "think": "<a b>, </a>"}
        options = kind.parse(given)
        assert forms_of(options.subject()) == given
    assert ServerOptions().subject() == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_without_such_options_says_who_has_them(engine: str) -> None:
    record = ENGINES[engine]
    with pytest.raises(
        ConfigError, match="choose from" if record.options else "server, .*have|have some"
    ):
        record.check_options({"max_token_name": "max_tokens"})
