"""OpenAI's chat completions and Anthropic's messages, imitated: what they refuse, how replies and errors look."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from provider_model import Asked, Tokens

# Made up. It holds what base64, URLs and JSON each write in another way, so that a search can find every spelling.
KEY = "sk-made-up/4711+For=Tests&only~%x"
MODELS = {"openai": ("gpt-test", "reasoner-test"), "anthropic": ("claude-test",)}
REASONER = "reasoner-test"  # refuses sampling parameters
ID_HEADER = {"openai": "x-request-id", "anthropic": "request-id"}
_KNOWN = {
    "openai": set(CompletionCreateParamsNonStreaming.__annotations__),
    "anthropic": set(MessageCreateParamsNonStreaming.__annotations__),
}


class Refused(Exception):
    """A request that the API refuses, free of charge."""

    def __init__(
        self, status: int, kind: str, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.code, self.headers = status, kind, message, code, dict(headers or {})


def refuse_unless(holds: object, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
    if not holds:
        raise Refused(status, kind, message, "model_not_found" if status == 404 else None)


def read(provider: str, body: Any) -> Asked:
    """The request in a body; raises Refused as the API does."""
    refuse_unless(isinstance(body, dict), "The request body is not valid JSON")
    unknown = sorted(set(body) - _KNOWN[provider])
    refuse_unless(not unknown, f"Unknown parameter: {unknown}")
    refuse_unless(body.get("model") in MODELS[provider], f"model: {body.get('model')}", 404, "not_found_error")
    refuse_unless(isinstance(body.get("messages"), list) and body["messages"], "messages: at least one is required")
    return _read_openai(body) if provider == "openai" else _read_anthropic(body)


def _read_openai(body: dict[str, Any]) -> Asked:
    sampled = body["model"] != REASONER or body.get("temperature") in (None, 1)
    refuse_unless(sampled, "Unsupported value: 'temperature' does not support")
    refuse_unless("reasoning_effort" not in body, "Unrecognized request argument supplied: reasoning_effort")
    messages, form = body["messages"], body.get("response_format")
    if form is not None:
        refuse_unless(form["type"] == "json_schema" and form["json_schema"]["strict"], "Invalid 'response_format'.")
        require_closed(form["json_schema"]["schema"])
    return Asked(
        "openai",
        body["model"],
        [message["content"] for message in messages if message["role"] == "user"][-1],
        tuple((message["content"], None) for message in messages),
        body["max_completion_tokens"],
        body.get("n") or 1,
        form and form["json_schema"]["schema"],
        body.get("prompt_cache_key") or "",
    )


def _read_anthropic(body: dict[str, Any]) -> Asked:
    messages, system = body["messages"], body.get("system") or []
    turns = [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    refuse_unless(turns, "messages: the user begins and ends, and roles alternate")
    texts = [block["text"] for block in system] + [message["content"] for message in messages]
    refuse_unless(all(text.strip() for text in texts), "text content blocks must contain non-whitespace text")
    schema = body["output_config"]["format"]["schema"] if "output_config" in body else None
    if schema is not None:
        require_closed(schema)
        refuse_unless('"minimum":' not in json.dumps(schema), "For 'integer' type, property 'minimum' is not supported")
    lifetimes = [block.get("cache_control", {}).get("ttl") for block in system] + [None] * len(messages)
    refuse_unless({*lifetimes} <= {None, "5m", "1h"}, "cache_control: wrong")
    pieces = tuple(zip(texts, lifetimes, strict=True))
    return Asked("anthropic", body["model"], texts[-1], pieces, body["max_tokens"], schema=schema)


def require_closed(schema: Any) -> None:
    """Raise unless every object of a strict schema is closed and requires all that it has."""
    if isinstance(schema, dict) and schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        whole = set(schema.get("required", ())) == set(schema.get("properties", ()))
        refuse_unless(closed and whole, "Invalid schema: every object is closed and requires all of its keys")
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        require_closed(part)


def reply(asked: Asked, texts: list[str], finish: str, tokens: Tokens, request_id: str, usage: bool) -> dict[str, Any]:
    """The JSON of a reply."""
    if asked.provider == "openai":
        refused = finish == "refusal"
        says = [{"content": None, "refusal": text} if refused else {"content": text} for text in texts]
        ended = {"finish_reason": "stop" if refused else finish}
        choices = [{"index": n, "message": {"role": "assistant", **said}, **ended} for n, said in enumerate(says)]
        made = {"id": f"chatcmpl-{request_id}", "model": asked.model, "system_fingerprint": "fp_test"}
        made["choices"] = choices
        counts: dict[str, Any] = {
            "prompt_tokens": tokens.input + tokens.cache_read,
            "completion_tokens": tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        }
    else:
        content: list[dict[str, Any]] = [{"type": "text", "text": texts[0]}] if texts[0] else []
        stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
        made = {"id": f"msg_{request_id}", "type": "message", "role": "assistant", "model": asked.model}
        made |= {"content": content, "stop_reason": stop}
        counts = {
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": tokens.cache_write,
                "ephemeral_1h_input_tokens": tokens.cache_write_1h,
            },
        }
    return made | ({"usage": counts} if usage else {})


def error(provider: str, refused: Refused, request_id: str) -> dict[str, Any]:
    """The JSON of an error, live or in a batch's result."""
    words = {"type": refused.kind, "message": refused.message}
    if provider == "openai":
        return {"error": words | {"code": refused.code}}
    return {"type": "error", "error": words, "request_id": request_id}
