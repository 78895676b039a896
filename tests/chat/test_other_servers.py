"""Replies and errors in the forms of servers that no other test names, and ordinary replies that look like them.

The forms are those of documentation and of bug reports of 2024 to 2026: what stands for a provider here is one example
of its kind, and the tables of the package must hold what it has in common with others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.responses import Failure
from support.doubles.loopback import Answer
from support.hosted_apis import Api

pytestmark = pytest.mark.usefixtures("hosted_loop")
TEXT = "I hear you, and I am glad you told me. What would help most tonight?"
Fields = dict[str, Any]


def whole(
    text: str | None = TEXT, finish: str | None = "stop", choice: Fields | None = None, **body: Any
) -> Fields:
    """A chat completion; `choice`: fields of its choice, among them those of its message as `message`."""
    beside = dict(choice or {})
    message = {"role": "assistant", "content": text} | beside.pop("message", {})
    own = {"index": 0, "message": message, "finish_reason": finish, **beside}
    usage = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
    return {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [own],
        "usage": usage,
        **body,
    }


def outcome_text(body: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What one call came to: `reply: ENDING: TEXT`, or `failed`."""
    answers = [Answer(body, status)] * 2
    outcomes, _, _ = Api("server", monkeypatch).run({"a": answers}, "a", attempts=1)
    (outcome,) = outcomes
    if isinstance(outcome, Failure):
        return "failed"
    assert isinstance(outcome, Reply)
    return f"reply: {outcome.finish_reason}: {outcome.text}"


def unlike(
    expected: str, cases: Mapping[str, tuple[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The cases that came to something else."""
    came = {kind: outcome_text(body, status, monkeypatch) for kind, (status, body) in cases.items()}
    return {kind: text for kind, text in came.items() if not text.startswith(expected)}


PROVIDER = {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "Y"}}
UNAVAILABLE = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
CLOUDFLARE = {
    "result": None,
    "success": False,
    "errors": [{"code": 7009, "message": "Upstream service unavailable"}],
}
ONE_API = {
    "message": "当前分组上游负载已饱和，请稍后再试",
    "type": "new_api_error",
    "code": "get_channel_failed",
}
BROKEN: dict[str, Any] = {
    "OpenRouter": {"error": PROVIDER, "user_id": "u"},
    "OpenRouter, before it ended": whole("", None, {"error": PROVIDER}),
    "OpenRouter, after a part": whole("I hear", "error", {"native_finish_reason": "error"}),
    "OpenRouter, beside a reply": whole(
        TEXT, "stop", {"error": {"code": 429, "message": "rate limited"}}
    ),
    "xAI": {"code": "Internal error", "error": "Service temporarily unavailable"},
    "FastAPI": {"detail": "Internal server error"},
    "DeepInfra": {"detail": {"error": "inference exception"}},
    "vLLM": {
        "object": "error",
        "message": "m",
        "type": "InternalServerError",
        "param": None,
        "code": 500,
    },
    "vLLM, stopped": whole("I hear you and", "abort"),
    "SGLang, stopped": whole("", "abort"),
    "TGI": {"error": "Model is overloaded", "error_type": "overloaded"},
    "Hugging Face": {"error": "Model X is currently loading", "estimated_time": 20.0},
    "LM Studio": {"error": "Model unloaded."},
    "Ollama": {"error": "llama runner process has terminated: signal: killed"},
    "MiniMax": {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": None},
    "Baidu": {"error_code": 336100, "error_msg": "try again"},
    "Tencent": {"Response": {"Error": {"Code": "InternalError", "Message": "m"}, "RequestId": "x"}},
    "Spark": {"code": 10007, "message": "traffic limited", "sid": "s"},
    "DashScope": {"code": "InternalError.Algo", "message": "m", "request_id": "r"},
    "iFlow": {"choices": None, "model": None, "object": None, "msg": "busy", "status": "449"},
    "a list of Google's": [{"error": UNAVAILABLE}],
    "Gemini's call": whole(None, "MALFORMED_FUNCTION_CALL"),
    "Gemini's call, compatible": whole(None, "function_call_filter: MALFORMED_FUNCTION_CALL"),
    "Vertex": whole("", "MALFORMED_RESPONSE"),
    "Cohere": whole("", "ERROR"),
    "Cohere, in time": whole("I hear", "TIMEOUT"),
    "DeepSeek": whole("I hear", "insufficient_system_resource"),
    "GLM": whole("I", "network_error"),
    "Anthropic behind a proxy": {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    },
    "Cloudflare": CLOUDFLARE,
    "one-api": {"error": ONE_API},
    "LiteLLM": {
        "error": {
            "message": "litellm.APIConnectionError: x",
            "type": None,
            "param": None,
            "code": "500",
        }
    },
    "an Azure timeout": {"error": {"code": "Timeout", "message": "The operation was timeout."}},
    "a gateway": {"code": 500, "msg": "系统繁忙", "data": None},
    "another gateway": {"errcode": 40001, "errmsg": "invalid"},
    "Dify": {"event": "error", "message": "m", "code": "completion_request_error", "status": 400},
    "success is false": {"success": False, "message": "m", "data": None},
    "status is error": {"status": "error", "message": "boom"},
    "a message alone": {"message": "upstream connect error or disconnect/reset before headers"},
    "error is true": {"error": True, "message": "failed"},
    "a page": "<html><body>502 Bad Gateway</body></html>",
    "nothing": "",
    "null": "null",
    "no choices": {"id": "x", "object": "chat.completion", "choices": None, "usage": None},
}
SAFE = {"filtered": False, "severity": "safe"}
ANNOTATED = {
    "jailbreak": {"detected": True, "filtered": False},
    "self_harm": {"filtered": False, "severity": "medium"},
}
NOT_FILTERED = {
    "error": {"code": "content_filter_error", "message": "The contents are not filtered"}
}
ORDINARY: dict[str, Fields] = {
    "error is null": whole(error=None),
    "error is empty": whole(error={}),
    "error is a text without words": whole(error=""),
    "error is false": whole(error=False),
    "no errors": whole(error=[], errors=[], success=True, messages=[]),
    "null in the choice": whole(choice={"error": None}),
    "null in the message": whole(
        choice={"message": {"error": None, "refusal": None, "tool_calls": None}}
    ),
    "MiniMax": whole(
        base_resp={"status_code": 0, "status_msg": ""},
        output_sensitive=False,
        output_sensitive_type=0,
    ),
    "Spark": whole(code=0, message="Success", sid="x"),
    "a gateway": whole(code=200, msg="ok"),
    "a gateway's text": whole(code="200", message="success", status="completed", detail=None),
    "a warning": whole(warning="this model is deprecated"),
    "Azure, whose filter failed": whole(choice={"content_filter_results": NOT_FILTERED}),
    "Azure, which annotates": whole(
        choice={"content_filter_results": {"self_harm": SAFE}},
        prompt_filter_results=[{"prompt_index": 0, "content_filter_results": ANNOTATED}],
    ),
    "Hunyuan": whole(moderation_level="0", note="以上内容为AI生成，不代表开发者立场"),
    "Baidu": whole(
        finish="normal", choice={"flag": 0}, need_clear_history=False, ban_round=-1, error_code=0
    ),
    "Gemini": whole(
        finish="STOP", choice={"safety_ratings": [{"probability": "NEGLIGIBLE", "blocked": False}]}
    ),
    "OpenRouter": whole(choice={"native_finish_reason": "STOP"}),
    "Groq": whole(x_groq={"id": "r", "error": None}),
}
SPOKEN = (
    "There was an error in how I said that. I am sorry.",
    '{"error": {"message": "I feel broken", "code": 500}}',
    "That was blocked by the content filter, they said. How did that feel?",
    "data: three cups of tea, no sleep. How was yours?",
    "Write <answer> at the end, if you like. I am here.",
    "My answer: <answer>stay</answer> is what I would say.",
    "I think <think> is a funny tag. How are you?",
    "analysis of this can wait. What happened?",
    "Analysis paralysis is real; you are not alone in it.",
    "Thought-provoking! Tell me more.",
    "Reasoning: you were tired. That is all.",
    "Final thoughts: you did well. Rest now.",
    "<smiles> I hear you.",
    "<b>I hear you</b>, and I am here.",
    "<hug>You did well.</hug>",
    "The word </think> came up in your log; what did you mean?",
    "Thinking... that is what I do when it rains. And you?",
)


def test_an_error_inside_200_is_a_failed_call_in_the_form_of_each_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was an empty reply of score 0."""
    assert unlike("failed", {kind: (200, body) for kind, body in BROKEN.items()}, monkeypatch) == {}


def test_an_ordinary_reply_stays_one_whatever_stands_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {kind: (200, body) for kind, body in ORDINARY.items()}
    assert unlike(f"reply: stop: {TEXT}", cases, monkeypatch) == {}


@pytest.mark.parametrize("text", SPOKEN)
def test_an_ordinary_reply_stays_one_whatever_it_says(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome_text(whole(text), 200, monkeypatch) == f"reply: stop: {text}"
    assert split_reasoning(text) == (text, None)


def error(message: str, **fields: Any) -> Fields:
    return {"error": {"message": message, **fields}}


AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
RESPONSIBLE = {
    "code": "ResponsibleAIPolicyViolation",
    "content_filter_result": {"hate": {"filtered": True}},
}
QUOTED = json.dumps(error("Content Exists Risk", code="invalid_request_error"))
FLAGGED = {"reasons": ["self-harm"], "flagged_input": "...", "provider_name": "OpenAI"}
DATABRICKS = json.dumps({"choices": [{"index": 0, "finish_reason": "input_guardrail_triggered"}]})
FILTERED: dict[str, tuple[int, Any]] = {
    "Ark, the input": (
        400,
        error("The request could not be processed", code="InputTextRiskDetection"),
    ),
    "Ark, the output": (400, error("m", code="OutputTextRiskDetection", type="BadRequest")),
    "OpenAI's reasoning models": (
        400,
        error(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy",
            code="invalid_prompt",
        ),
    ),
    "Anthropic behind LiteLLM": (
        400,
        error(
            'litellm.BadRequestError: AnthropicException - {"message":"Output blocked by content filtering policy"}'
        ),
    ),
    "Azure behind LiteLLM": (
        400,
        error(
            f"litellm.ContentPolicyViolationError: AzureException - {AZURE}",
            code="400",
            provider_specific_fields={"innererror": RESPONSIBLE},
        ),
    ),
    "Azure behind LiteLLM, as 500": (
        500,
        error(f"litellm.APIError: AzureException - {AZURE}", code="500"),
    ),
    "Azure, an inner error": (400, error("m", code="content_filter", inner_error=RESPONSIBLE)),
    "Azure, as Python's text": (
        400,
        {"detail": f"Error code: 400 - {{'error': {{'message': \"{AZURE}\"}}}}"},
    ),
    "Azure AI": (
        400,
        error("triggering Microsoft's content management policy", code="content_filter"),
    ),
    "Azure, a choice": (
        200,
        whole("", "content_filter", {"content_filter_results": {"hate": {"filtered": True}}}),
    ),
    "Azure, no message": (200, {"choices": [{"index": 0, "finish_reason": "content_filter"}]}),
    "xAI, 400": (400, {"code": "invalid-argument", "error": "Content violates usage guidelines."}),
    "DeepSeek behind OpenRouter": (
        200,
        error("Provider returned error", code=400, metadata={"raw": QUOTED}),
    ),
    "OpenRouter": (403, error("m requires moderation on OpenAI", code=403, metadata=FLAGGED)),
    "DashScope": (
        400,
        error("Input text data may contain inappropriate content.", code="DataInspectionFailed"),
    ),
    "GLM in English": (
        400,
        error("System detected potentially unsafe or sensitive content in input", code="1301"),
    ),
    "GLM": (200, whole("", "sensitive", contentFilter=[{"level": 0, "role": "assistant"}])),
    "MiniMax, the prompt": (
        200,
        {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}},
    ),
    "MiniMax, the reply": (200, whole("", output_sensitive=True, base_resp={"status_code": 1027})),
    "Spark": (400, error("输入内容审核不通过，涉嫌违规", type="api_error", code="10013")),
    "Spark, the reply": (
        200,
        {"code": 10014, "message": "输出内容涉及敏感信息，审核不通过", "sid": "s"},
    ),
    "Hunyuan": (400, error("请求内容包含敏感信息，请修改后重试", type="runtime_error")),
    "Hunyuan, its service": (
        200,
        {"Response": {"Error": {"Code": "FailedOperation.SensitiveContent"}}},
    ),
    "Baidu": (200, whole("", "content_filter", {"flag": 5}, need_clear_history=True)),
    "Baidu, an error": (
        400,
        error("the content of the messages is sensitive", code="content_filter"),
    ),
    "SiliconFlow": (
        400,
        {"code": 20035, "message": "Your input contains sensitive content", "data": None},
    ),
    "SenseNova": (400, error("sensitive content detected", code=18)),
    "Baichuan": (400, error("内容安全审核未通过", code="content_risk")),
    "Gemini, compatible": (
        200,
        {"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]},
    ),
    "Vertex": (200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}),
    "Vertex, the prompt": (
        400,
        error("This prompt contains sensitive words that violate the Prohibited Use policy."),
    ),
    "Model Armor": (
        400,
        [error("Blocked by Model Armor Floor Setting", code=400, status="INVALID_ARGUMENT")],
    ),
    "Bedrock": (200, whole("", "guardrail_intervened")),
    "Bedrock behind LiteLLM": (400, error("{'error': 'Violated guardrail policy'}", code="400")),
    "Databricks": (400, {"error_code": "BAD_REQUEST", "message": DATABRICKS}),
    "Snowflake": (400, {"message": "Response filtered by Cortex Guard"}),
    "watsonx": (
        403,
        {"errors": [{"code": "guardrails_blocked", "message": "blocked by HAP detection"}]},
    ),
    "Mistral": (
        403,
        {"object": "error", "message": "Request blocked by content moderation", "code": "3000"},
    ),
    "Groq": (400, error("The request was blocked because it violates our content policy")),
    "Together": (400, error("Input was flagged by safety model Llama-Guard", code="safety")),
    "Cloudflare": (
        424,
        {
            "success": False,
            "errors": [
                {"code": 2017, "message": "Response blocked due to security configurations"}
            ],
        },
    ),
    "Portkey": (
        446,
        error("The guardrail checks defined in the config failed.", type="hooks_failed"),
    ),
    "Ollama's cloud": (403, {"error": "prompt violates our usage policy"}),
}
DECLINED_FOR_OTHER_REASONS: dict[str, tuple[int, Any]] = {
    "a form of content": (400, error("messages.0.content: Input should be a valid string")),
    "a type of content": (
        400,
        error("Invalid content type. image_url is only supported by certain models."),
    ),
    "no content": (
        422,
        {
            "detail": [
                {"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "required"}
            ]
        },
    ),
    "empty content": (400, error("messages: text content blocks must be non-empty")),
    "long content": (413, error("content too large")),
    "a filter as parameter": (
        400,
        error("Unknown parameter: 'content_filter'.", code="unknown_parameter"),
    ),
    "safety as parameter": (400, error("safety_identifier is not supported")),
    "a mode": (
        400,
        error(
            "'messages' must contain the word 'json', to use 'response_format' of type 'json_object'."
        ),
    ),
    "a prompt in a wrong form": (
        400,
        error("Invalid prompt: expected a list of messages", code="invalid_prompt"),
    ),
    "no such guardrail": (
        400,
        {"message": "The guardrail identifier provided in the request does not exist."},
    ),
    "500": (500, error("content generation failed")),
}


def test_a_filter_is_one_kind_in_the_form_of_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some were refusals of score 0, others failures that every restart sent again."""
    assert unlike("reply: content_filter: ", FILTERED, monkeypatch) == {}


def test_an_error_of_near_words_is_a_failed_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may take what a request lacks for a filter: the items would be complete, and score 0."""
    assert unlike("failed", DECLINED_FOR_OTHER_REASONS, monkeypatch) == {}


ENDINGS = {
    "stop": (
        "FINISHED",
        "FinishReason.STOP",
        "endTurn",
        "eos_token_id",
        "StopReason.END_TURN",
        "matched_stop",
    ),
    "length": (
        "num_predict",
        "EXCEEDED_MAX_TOKENS",
        "max-tokens",
        "LENGTH_CAPPED",
        "FinishReason.MAX_TOKENS",
    ),
    "context": ("ERROR_LIMIT", "MODEL_LENGTH", "contextWindowExceeded"),
    "content_filter": (
        "MODEL_ARMOR",
        "SPII",
        "output_guardrail_triggered",
        "content_filter: OTHER",
        "IMAGE_SAFETY",
    ),
}


@pytest.mark.parametrize(
    ("ours", "theirs"), [(ours, one) for ours, given in ENDINGS.items() for one in given]
)
def test_an_ending_is_read_in_the_words_of_each_server(
    ours: str, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge's valid reply was called truncated, and cut replies were not."""
    assert outcome_text(whole(TEXT, theirs), 200, monkeypatch) == f"reply: {ours}: {TEXT}"
