"""Filters of providers: whatever words they have, a filtered call is a reply of its own kind, through real clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.chat.provider_filters import find_filter, names_account, quotable
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError
from support.doubles import loopback
from support.doubles.loopback import Answer, completion
from support.hosted_apis import Api

HARMLESS = {"filtered": False, "severity": "safe"}
AZURE = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
    "Please modify your prompt and retry.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {
            "hate": HARMLESS,
            "self_harm": {"filtered": True, "severity": "medium"},
        },
    },
}
QWEN = {
    "code": "data_inspection_failed",
    "message": "Input data may contain inappropriate content.",
    "param": None,
}
QWEN["type"] = QWEN["code"]
MODERATED = {
    "reasons": ["self-harm"],
    "flagged_input": "...",
    "provider_name": "OpenAI",
    "model_slug": "m",
}
RISK = {"message": "Content Exists Risk", "type": "invalid_request_error", "param": None}
RISK["code"] = RISK["type"]
BEHIND = {"raw": json.dumps({"error": RISK}), "provider_name": "DeepSeek"}
# An HTTP status, and the JSON (or text) with which a provider's filter declines: kind -> (provider, status, body).
DECLINED: dict[str, tuple[str, int, Any]] = {
    "Azure": ("Azure OpenAI", 400, {"error": AZURE}),
    "Azure through LiteLLM": (
        "Azure OpenAI",
        400,
        {
            "error": {
                "message": f"litellm.BadRequestError: AzureException - {AZURE['message']}",
                "code": "400",
            }
        },
    ),
    "OpenAI, the prompt": (
        "OpenAI",
        400,
        {
            "error": {
                "code": "invalid_prompt",
                "message": "Invalid prompt: flagged as potentially violating our policy.",
            }
        },
    ),
    "OpenAI, the policy": (
        "OpenAI",
        403,
        {"error": {"code": "content_policy_violation", "message": "no"}},
    ),
    "DeepSeek": ("DeepSeek", 400, {"error": RISK}),
    "DeepSeek, by detail": ("DeepSeek", 400, {"detail": "Content Exists Risk"}),
    "DeepSeek behind OpenRouter": (
        "DeepSeek",
        400,
        {"error": {"message": "Provider returned error", "code": 400, "metadata": BEHIND}},
    ),
    "Qwen": ("Alibaba (Qwen)", 400, {"error": QWEN}),
    "Qwen, natively": (
        "Alibaba (Qwen)",
        400,
        {
            "code": "DataInspectionFailed",
            "message": "Output data may contain inappropriate content.",
            "request_id": "r",
        },
    ),
    "Qwen, as a sentence": (
        "Alibaba (Qwen)",
        400,
        {
            "error": {
                "message": "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inap."
            }
        },
    ),
    "GLM": (
        "Zhipu (GLM)",
        400,
        {
            "contentFilter": [{"level": 1, "role": "user"}],
            "error": {
                "code": "1301",
                "message": "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语。",
            },
        },
    ),
    "Moonshot": (
        "Moonshot (Kimi)",
        400,
        {
            "error": {
                "code": 400,
                "message": "The request was rejected because it was considered high risk",
                "type": "content_filter",
            }
        },
    ),
    "MiniMax": (
        "MiniMax",
        422,
        {"error": {"message": "input new_sensitive (1026)", "type": "bad_request_error"}},
    ),
    "MiniMax, inside 200": (
        "MiniMax",
        200,
        {"base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}},
    ),
    "Doubao": (
        "Volcengine (Doubao)",
        400,
        {
            "error": {
                "code": "InputTextSensitiveContentDetected",
                "message": "The request failed",
                "type": "BadRequest",
            }
        },
    ),
    "Doubao, severe": (
        "Volcengine (Doubao)",
        400,
        {
            "error": {
                "code": "SensitiveContentDetected.SevereViolation",
                "message": "The request failed",
            }
        },
    ),
    "Hunyuan": (
        "Tencent (Hunyuan)",
        200,
        {
            "Response": {
                "Error": {"Code": "OperationDenied.TextIllegalDetected", "Message": "文本非法"}
            }
        },
    ),
    "Spark": (
        "iFlytek (Spark)",
        200,
        {"code": 10013, "message": "输入内容审核不通过，涉嫌违规", "sid": "s"},
    ),
    "StepFun": (
        "StepFun",
        451,
        {
            "error": {
                "type": "censorship_blocked",
                "message": "the content you provided or machine outputted is blocked",
            }
        },
    ),
    "xAI": (
        "xAI",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Team: t, API key ID: k, Failed check: SAFETY_CHECK_TYPE_BIO",
        },
    ),
    "xAI, permission-denied": (
        "xAI",
        403,
        {"code": "permission-denied", "error": "Content violates usage guidelines. "},
    ),
    "OpenRouter": (
        "the provider",
        403,
        {"error": {"code": 403, "message": "Forbidden", "metadata": MODERATED}},
    ),
    "OpenRouter, in words": (
        "OpenRouter",
        403,
        {
            "error": {
                "code": 403,
                "message": "m requires moderation on OpenAI. Your input was flagged for self-harm.",
            }
        },
    ),
    "OpenRouter, inside 200": (
        "the provider",
        200,
        {"error": {"code": 403, "message": "no", "metadata": MODERATED}},
    ),
    "Anthropic": (
        "Anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Output blocked by content filtering policy",
            },
        },
    ),
    "Bedrock": (
        "Amazon Bedrock",
        400,
        {"message": "The request was blocked by the content filters of the model"},
    ),
    "LiteLLM's guardrails": (
        "a gateway",
        400,
        {"error": {"message": "Violated guardrail policy", "code": "400"}},
    ),
    "Portkey": (
        "a gateway",
        446,
        {"error": {"message": "The guardrail checks failed", "type": "hooks_failed"}},
    ),
    "Portkey, by its sentence": (
        "a gateway",
        446,
        {
            "error": {
                "message": "The guardrail checks defined in the config failed. See the `hook_results` object."
            }
        },
    ),
    "Model Armor": (
        "Google (Gemini)",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "Blocked by Model Armor Floor Setting: The prompt violated Safety settings",
                }
            }
        ],
    ),
    "a guard": ("the provider", 400, {"message": "Response filtered by Cortex Guard"}),
    "new-api": (
        "a gateway",
        400,
        {
            "error": {
                "message": "input contains sensitive words: [x]",
                "code": "sensitive_words_detected",
            }
        },
    ),
    "Cloudflare": (
        "Cloudflare AI Gateway",
        424,
        {"error": [{"code": 2016, "message": "Prompt blocked due to security configurations"}]},
    ),
    "a sentence of another": (
        "the provider",
        400,
        {
            "error": {
                "message": "Your request was rejected by our moderation: it violates the usage policy."
            }
        },
    ),
    "Vertex": (
        "the provider",
        400,
        {"error": {"message": "This prompt contains sensitive words that violate our practices."}},
    ),
    "a model host": (
        "the provider",
        400,
        {"error": {"message": "NSFW content detected in the prompt"}},
    ),
    "another policy": (
        "the provider",
        403,
        {"error": {"message": "This request violates our acceptable use policies"}},
    ),
    "unsafe": ("the provider", 422, {"detail": [{"msg": "the input was deemed unsafe"}]}),
    "in Chinese, hit": ("the provider", 400, {"error": {"message": "请求命中敏感策略"}}),
    "a Chinese sentence of another": (
        "the provider",
        400,
        {"error": {"message": "输入内容涉及违规信息，请修改后重试"}},
    ),
    "a code of another": (
        "the provider",
        422,
        {"error": {"code": "PROMPT_BLOCKED_BY_GUARDRAIL", "message": "no"}},
    ),
    "plain text": ("the provider", 403, b"The prompt was flagged as harmful by the safety system"),
}
# What is not a filter although its words are near.
OTHERS: list[tuple[int, Any]] = [
    (
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'safety_identifier' is not supported with this model."
            }
        },
    ),
    (400, {"error": {"message": "Extra inputs are not permitted: safety_settings"}}),
    (400, {"error": {"message": "Model names are case sensitive: gpt-4O"}}),
    (
        400,
        {
            "error": {
                "message": "Invalid 'messages[0].content': expected a string",
                "code": "invalid_type",
            }
        },
    ),
    (
        403,
        {
            "error": {
                "message": "Your account was suspended as it violates our usage policies",
                "type": "access",
            }
        },
    ),
    (
        403,
        {
            "error": {
                "type": "access_terminated_error",
                "message": "Access terminated. Review our Community Guidelines",
            }
        },
    ),
    (401, {"error": {"code": "content_filter", "message": "bad key"}}),
    (429, {"error": {"message": "Rate limit reached for content moderation"}}),
    (402, {"error": {"message": "Your credit is too low to run the safety system"}}),
    (404, {"error": {"message": "No endpoints found matching your data policy"}}),
    (500, {"error": {"message": "the engine fell over"}}),
    (403, b"<html>Sorry, you have been blocked. This website is using a security service.</html>"),
    (400, {"error": {"message": "您的账号因违反使用规范被封禁"}}),
    (400, {"error": {"message": "messages violates the schema: role is required"}}),
    (
        422,
        {
            "detail": [
                {
                    "loc": ["body", "messages"],
                    "msg": "field required",
                    "type": "value_error.missing",
                }
            ]
        },
    ),
    (403, {"error": {"message": "Access blocked by the API guard: unknown client"}}),
    (
        400,
        {
            "error": {
                "message": "Invalid prompt: expected a list of messages",
                "code": "invalid_prompt",
            }
        },
    ),
    # What repeats the request holds its words, not the provider's.
    (
        422,
        {
            "detail": [
                {
                    "loc": ["body", "model"],
                    "msg": "Field required",
                    "input": "it violates our content policy",
                }
            ]
        },
    ),
    (
        400,
        {
            "error": {"message": "no such model"},
            "request": {"messages": [{"content": "NSFW content"}]},
        },
    ),
    (400, {"error": {"message": "参数取值不合规：max_tokens"}}),
    (400, None),
    (400, b""),
    (
        400,
        {
            "error": {
                "message": "Invalid JSON: prompt contains sensitive information in header authorization"
            }
        },
    ),
]
# A filter that could not be asked: the next try may be answered.
OUTAGES: list[tuple[int, Any]] = [
    (
        503,
        {
            "error": {
                "message": "Guardrail service unavailable, try again",
                "type": "guardrail_error",
            }
        },
    ),
    (500, {"error": {"message": "guardrail service error", "type": "guardrail_error"}}),
    (500, {"error": {"message": "something went wrong", "code": "content_safety_error"}}),
    (502, {"error": {"message": "endpoint unreachable", "code": "moderation_error"}}),
    (503, {"error": {"message": "please wait", "type": "content_filter_timeout"}}),
    (504, {"error": {"message": "timed out", "code": "content_filter"}}),
    (500, {"error": {"message": "Guardrail checks failed to run: connection refused"}}),
    (408, {"error": {"message": "no answer", "type": "guardrail_timeout"}}),
    (429, {"error": {"message": "slow down", "type": "content_filter"}}),
    (
        200,
        {
            "error": {
                "message": "Guardrail service unavailable, try again",
                "type": "guardrail_error",
            }
        },
    ),
    (500, {"error": {"message": "系统风控，请稍后重试"}}),
]
# Words of an account, an organisation, a key or an address: no other call can be answered.
CLOSED: list[tuple[int, Any]] = [
    (400, {"error": {"message": "Your account has been flagged for violating our usage policies"}}),
    (
        400,
        {
            "error": {
                "message": "Your account was flagged for violating our usage guidelines",
                "code": "moderation",
            }
        },
    ),
    (
        400,
        {
            "error": {
                "message": "Your organization has been flagged for potentially violating our usage policies."
            }
        },
    ),
    (403, {"error": {"message": "Your account was blocked for violating our content policy"}}),
    (403, {"error": "Your account violated the usage policies and is limited"}),
    (400, {"message": "This API key has been disabled: it violates our acceptable use policies"}),
    (
        400,
        {
            "error": {
                "message": "Your IP address 192.0.2.7 has been blocked for violating our usage policies"
            }
        },
    ),
    (403, {"detail": "You have been banned for violating our community guidelines"}),
    (
        400,
        {"error": {"message": "We suspended your account because it violates our content policy"}},
    ),
    (400, {"error": {"message": "IP 触发风控，请更换网络", "code": "risk_control"}}),
    (400, {"error": {"message": "未完成实名认证，违反使用规范"}}),
    (400, {"error": {"message": "您的账号因违反使用规范被封禁"}}),
    (400, {"error": {"message": "该密钥已被禁用：存在违规内容"}}),
]
# A filter's own words stay a filter's, although they warn of what may happen to the account.
WARNED: list[tuple[int, Any]] = [
    (
        400,
        {
            "error": {
                "message": "Your prompt violates our usage policy. Your account may be suspended."
            }
        },
    ),
    (
        400,
        {
            "error": {
                "message": "The prompt was flagged as harmful by your organization's content policy."
            }
        },
    ),
    (400, {"error": {"message": "输入内容涉及违规信息，多次触发可能导致账号被封禁"}}),
    (
        400,
        {
            "error": {
                "message": "Prompt blocked by the content filter, please modify it and try again"
            }
        },
    ),
]


@pytest.mark.parametrize("kind", DECLINED)
def test_what_a_filter_declined_is_a_filtered_reply_that_nobody_asks_for_again(
    kind: str, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """Some were refusals of score 0, others failures that every restart sent again: equal models had other figures."""
    provider, status, body = DECLINED[kind]
    outcomes, _, server = Api("server", monkeypatch).run({"a": [Answer(body, status)]}, "a")
    (reply,) = outcomes
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason) == ("", "content_filter")
    assert reply.filtered_by is not None
    assert reply.filtered_by.startswith(provider)
    assert server.requests == 1


@pytest.mark.parametrize(("status", "body"), OTHERS)
def test_other_errors_with_near_words_are_no_filter(status: int, body: object) -> None:
    assert find_filter(status, body) is None


@pytest.mark.parametrize(("status", "body"), OUTAGES)
def test_a_filter_that_could_not_be_asked_is_sent_again(
    status: int, body: object, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """It was a filtered reply, which counted as a refusal and which nothing asked for again."""
    outcomes, _, server = Api("server", monkeypatch).run({"a": [Answer(body, status)]}, "a")
    (reply,) = outcomes
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.filtered_by) == (loopback.REPLY, None)
    assert server.requests == 2


@pytest.mark.parametrize(("status", "body"), CLOSED)
def test_words_of_an_account_stop_the_run_and_are_no_filter(
    status: int, body: object, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """Every item of such a run was a refusal of the model."""
    for name in ("server", "openai"):
        with pytest.raises(ConfigError, match=r"refuse[sd] the (?:account|key)|denies access"):
            Api(name, monkeypatch).run({"a": [Answer(body, status)] * 4}, "a")


@pytest.mark.parametrize(
    "message",
    [
        "Extra keys are not permitted",
        "The key is not allowed here: x",
        "role user is not allowed",
        "users is closed",
    ],
)
def test_a_key_of_the_request_and_the_role_of_the_user_are_no_account(message: str) -> None:
    assert not names_account(400, {"error": {"message": message}})


@pytest.mark.parametrize(("status", "body"), WARNED)
def test_a_filter_that_warns_of_the_account_stays_a_filter(status: int, body: object) -> None:
    assert find_filter(status, body) == "the provider"


def test_what_is_quoted_of_a_filter_names_no_account_no_request_and_no_word_of_the_prompt() -> None:
    quotes = {
        "Content violates usage guidelines. Team: t-4711, API key ID: k": "Content violates usage guidelines.",
        "input contains sensitive words: [x] (request id: 20240523)": "input contains sensitive words",
        "Blocked, request_id=4711": "Blocked",
        "Content Exists Risk": "Content Exists Risk",
        "内容违规。请修改": "内容违规。",
    }
    assert {text: quotable(text) for text in quotes} == quotes


def filtered(message: Any, finish: str | None, **beside: Any) -> dict[str, Any]:
    return completion() | {
        "choices": [{"index": 0, "message": message, "finish_reason": finish, **beside}]
    }


INSIDE: dict[str, dict[str, Any]] = {
    "without content": filtered({"role": "assistant"}, "content_filter"),
    "content is null": filtered({"role": "assistant", "content": None}, "content_filter"),
    "no message": filtered(None, "content_filter"),
    "GLM": filtered({"role": "assistant", "content": ""}, "sensitive"),
    "Gemini": filtered({"role": "assistant", "content": None}, "SAFETY"),
    "Gemini, prohibited": filtered({"role": "assistant"}, "PROHIBITED_CONTENT"),
    "Gemini, recitation": filtered({"content": None}, "content_filter: RECITATION"),
    "Gemini behind OpenRouter": filtered(
        {"content": ""}, "stop", native_finish_reason="PROHIBITED_CONTENT"
    ),
    "an error that is a filter's": filtered(
        {"content": ""}, "error", native_finish_reason="SAFETY"
    ),
    "Bedrock": filtered({"content": None}, "guardrail_intervened"),
    "Cohere": filtered({"content": ""}, "ERROR_TOXIC"),
    "Claude behind a gateway": filtered({"content": ""}, "refusal"),
    "Azure's results": filtered(
        {"content": ""}, "stop", content_filter_results={"violence": {"filtered": True}}
    ),
    "Baidu's flag": filtered({"content": ""}, "normal", flag=3),
    "Gemini, the prompt": {"choices": [], "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
    "Azure, the prompt": {
        "choices": [],
        "prompt_filter_results": [
            {"prompt_index": 0, "content_filter_results": {"hate": {"filtered": True}}}
        ],
    },
    "MiniMax's mark": filtered({"content": ""}, "stop") | {"output_sensitive": True},
}
FINDING = {"score": 0.97, "input": True, "entity": "has_HAP"}
INSIDE["watsonx"] = filtered({"content": ""}, "stop")
INSIDE["watsonx"]["moderations"] = {"hap": [FINDING]}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_filter_inside_200_is_a_filtered_reply(
    kind: str, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    """Without `content` it was malformed after four tries, or the run paused."""
    for name in ("server", "openai"):
        outcomes, _, server = Api(name, monkeypatch).run({"a": [Answer(INSIDE[kind])]}, "a")
        (reply,) = outcomes
        assert isinstance(reply, Reply), reply
        assert (reply.text, reply.finish_reason) == ("", "content_filter")
        assert reply.filtered_by
        assert server.requests == 1


def test_a_reply_that_a_filter_cut_keeps_its_text(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    half = filtered({"content": "I hear you, and"}, "content_filter")
    outcomes, _, _ = Api("server", monkeypatch).run({"a": [Answer(half)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert (outcomes[0].text, outcomes[0].finish_reason) == ("I hear you, and", "content_filter")
    safe = completion() | {
        "prompt_filter_results": [{"content_filter_results": {"hate": HARMLESS}}]
    }
    safe["choices"][0]["content_filter_results"] = {"hate": HARMLESS}
    outcomes, _, _ = Api("server", monkeypatch).run({"a": [Answer(safe)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert (outcomes[0].finish_reason, outcomes[0].filtered_by) == ("stop", None)


def test_the_classifiers_of_anthropic_are_a_filter_and_a_refusal_in_words_is_the_models(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    stopped = loopback.message("", stop_reason="refusal") | {"content": []}
    outcomes, _, _ = Api("anthropic", monkeypatch).run({"a": [Answer(stopped)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert outcomes[0].finish_reason == "content_filter"
    declined = completion(None, refusal="I cannot help with that.")
    outcomes, _, _ = Api("openai", monkeypatch).run({"a": [Answer(declined)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert (outcomes[0].text, outcomes[0].finish_reason) == ("I cannot help with that.", "refusal")


def test_a_filter_of_a_hosted_api_costs_what_it_did(
    monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> None:
    for status, body, billing in (
        (400, {"error": AZURE}, "free"),
        (400, {"error": QWEN}, "free"),
        (
            400,
            {"error": {**QWEN, "message": "Output data may contain inappropriate content."}},
            "possibly_paid",
        ),
        (200, INSIDE["GLM"], "paid"),
    ):
        outcomes, books, _ = Api("openai", monkeypatch).run({"a": [Answer(body, status)]}, "a")
        assert not isinstance(outcomes[0], Failure)
        assert getattr(books.totals(), billing) == 1
