"""OpenAI's chat completions as the provider double speaks them: what is refused, and how replies and errors look."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from provider_faults import Refused
from provider_model import Asked, Draft, Piece, Tokens

PROVIDER = "openai"
ID_HEADER = "x-request-id"
MODELS = ("gpt-test", "reasoner-test")
REASONERS = ("reasoner-test",)  # these refuse sampling parameters
# Every parameter of the API; the double's own test compares them with the SDK's.
PARAMETERS = frozenset(
    re.findall(
        r"\w+",
        """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages
    metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
    stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
    web_search_options""",
    )
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def refuse(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Refused:
    return Refused(status, "invalid_request_error", message, code, param=param)


def read(body: Any) -> Asked:
    """The request of a chat completion; raises Refused as the API does."""
    if not isinstance(body, dict):
        raise refuse("We could not parse the JSON body of your request.")
    for name in body:
        if name not in PARAMETERS:
            raise refuse(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise refuse("you must provide a model parameter")
    if model not in MODELS:
        raise refuse(
            f"The model `{model}` does not exist or you do not have access to it.",
            None,
            "model_not_found",
            404,
        )
    _check_sampling(body, model in REASONERS)
    pieces = tuple(_piece(message, number) for number, message in enumerate(_messages(body)))
    users = [_content(m) for m in body["messages"] if m["role"] == "user"]
    return Asked(
        PROVIDER,
        model,
        users[-1] if users else "",
        pieces,
        body.get("max_completion_tokens") or body.get("max_tokens") or 4096,
        samples=body.get("n") or 1,
        schema=_schema(body.get("response_format")),
        thinks=model in REASONERS and body.get("reasoning_effort") != "none",
        cache_key=body.get("prompt_cache_key") or "",
    )


def _check_sampling(body: dict[str, Any], reasons: bool) -> None:
    if reasons:
        if "max_tokens" in body:
            raise refuse(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
                "max_tokens",
                "unsupported_parameter",
            )
        for name in ("temperature", "top_p"):
            if body.get(name) not in (None, 1):
                raise refuse(
                    f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                    "Only the default (1) value is supported.",
                    name,
                    "unsupported_value",
                )
    elif "reasoning_effort" in body:
        raise refuse("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort")
    if body.get("reasoning_effort") not in (None, *EFFORTS):
        raise refuse("Invalid value for reasoning_effort", "reasoning_effort", "invalid_value")
    ranges = {"temperature": (0, 2), "top_p": (0, 1), "n": (1, 128), "max_completion_tokens": (1, 128_000)}
    for name, (least, most) in ranges.items():
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(f"Invalid type for '{name}'", name, "invalid_type")
        if not least <= value <= most:
            raise refuse(f"Invalid '{name}': must be {least} to {most}.", name, "invalid_value")
    if not isinstance(body.get("seed"), int | None):
        raise refuse("Invalid type for 'seed': expected an integer.", "seed", "invalid_type")


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refuse("Invalid 'messages': empty array.", "messages", "empty_array")
    return messages


def _piece(message: Any, number: int) -> Piece:
    where = f"messages[{number}]"
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        raise refuse(f"Invalid value for '{where}.role'.", f"{where}.role", "invalid_value")
    unknown = set(message) - {"role", "content", "name", "refusal", "tool_calls"}
    if unknown:
        raise refuse(f"Unknown parameter: '{where}.{min(unknown)}'.", where, "unknown_parameter")
    return Piece(_content(message, where))


def _content(message: dict[str, Any], where: str = "messages") -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        raise refuse(
            f"Invalid value for 'content': expected a string, got {type(content).__name__}.",
            f"{where}.content",
            "invalid_type",
        )
    return content


def _schema(form: Any) -> dict[str, Any] | None:
    if form is None or form == {"type": "text"}:
        return None
    given = form.get("json_schema") if isinstance(form, dict) else None
    if not isinstance(given, dict) or form.get("type") != "json_schema":
        raise refuse("Invalid 'response_format'.", "response_format")
    if not _NAME.fullmatch(str(given.get("name", ""))):
        raise refuse("Invalid 'response_format.json_schema.name'.", "response_format.json_schema.name")
    if given.get("strict"):
        require_closed(
            given["schema"],
            lambda said: refuse(
                f"Invalid schema for response_format '{given['name']}': {said}",
                "response_format",
            ),
        )
    return dict(given["schema"])


def require_closed(schema: Any, refusal: Any) -> None:
    """Raise unless every object of a strict schema is closed and requires all that it has."""
    if isinstance(schema, list):
        for part in schema:
            require_closed(part, refusal)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise refusal("'additionalProperties' is required to be supplied and to be false.")
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            raise refusal("'required' must be an array with every key in properties.")
    for part in schema.values():
        require_closed(part, refusal)


def reply(asked: Asked, draft: Draft, tokens: Tokens, request_id: str, with_usage: bool = True) -> dict[str, Any]:
    """A chat completion."""
    finish = {"stop": "stop", "length": "length", "refusal": "stop", "filtered": "content_filter"}[draft.finish]
    choices: list[dict[str, Any]] = [
        {
            "index": index,
            "message": {
                "role": "assistant",
                "content": None if draft.finish == "refusal" else text,
                "refusal": text if draft.finish == "refusal" else None,
                "annotations": [],
            },
            "logprobs": None,
            "finish_reason": finish,
        }
        for index, text in enumerate(draft.texts)
    ]
    made: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": choices,
        "service_tier": "default",
        "system_fingerprint": "fp_test",
    }
    if with_usage:
        made["usage"] = {
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.prompt + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": tokens.reasoning, "audio_tokens": 0},
        }
    return made


def error(refused: Refused, request_id: str) -> dict[str, Any]:
    """The JSON of an error; the request id is in a header alone."""
    words = {"message": refused.message, "type": refused.kind, "param": refused.param, "code": refused.code}
    return {"error": words}


def parse(content: bytes) -> Any:
    """A request's body; raises Refused when it is no JSON."""
    try:
        return json.loads(content)
    except ValueError:
        raise refuse("We could not parse the JSON body of your request.") from None


def models() -> dict[str, Any]:
    """The list of models."""
    listed = [{"id": name, "object": "model", "created": 1, "owned_by": "test"} for name in MODELS]
    return {"object": "list", "data": listed}
