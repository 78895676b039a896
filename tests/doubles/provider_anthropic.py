"""Anthropic's Messages as the provider double speaks them: what is refused, and how replies and errors look."""

from __future__ import annotations

import json
import re
from typing import Any

from provider_faults import Refused
from provider_model import LIFETIMES, Asked, Draft, Piece, Tokens
from provider_openai import require_closed

PROVIDER = "anthropic"
ID_HEADER = "request-id"
MODELS = ("claude-test",)
VERSIONS = ("2023-06-01", "2026-10-21")
# Every parameter of the API; the double's own test compares them with the SDK's. Temperature is none of them.
PARAMETERS = frozenset(
    re.findall(
        r"\w+",
        """cache_control container diagnostics inference_geo max_tokens messages metadata model output_config
    service_tier speed stop_sequences stream system thinking tool_choice tools""",
    )
)
MOST_BREAKPOINTS = 4
# What structured outputs do not take in a schema.
UNSUPPORTED = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
)


def refuse(message: str, status: int = 400, kind: str = "invalid_request_error") -> Refused:
    return Refused(status, kind, message)


def read(body: Any) -> Asked:
    """The request of a message; raises Refused as the API does."""
    if not isinstance(body, dict):
        raise refuse("The request body is not valid JSON")
    for name in body:
        if name not in PARAMETERS:
            raise refuse(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise refuse(f"{name}: Field required")
    if body["model"] not in MODELS:
        raise refuse(f"model: {body['model']}", 404, "not_found_error")
    most = body["max_tokens"]
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 128_000:
        raise refuse("max_tokens: must be an integer of 1 to 128000")
    if body.get("service_tier") not in (None, "auto", "standard_only"):
        raise refuse("service_tier: Input should be 'auto' or 'standard_only'")
    system = _system(body.get("system"))
    messages = _messages(body["messages"])
    pieces = (*system, *(piece for _, said in messages for piece in said))
    if sum(piece.ttl is not None for piece in pieces) > MOST_BREAKPOINTS:
        raise refuse("A maximum of 4 blocks with cache_control may be provided.")
    _check_lifetimes(pieces)
    users = ["".join(piece.text for piece in said) for role, said in messages if role == "user"]
    return Asked(
        PROVIDER,
        body["model"],
        users[-1],
        pieces,
        most,
        schema=_schema(body.get("output_config")),
        thinks=_thinks(body.get("thinking"), most),
    )


def _system(system: Any) -> tuple[Piece, ...]:
    if system is None:
        return ()
    if isinstance(system, str):
        return (Piece(system),) if system else ()
    return tuple(_block(block, f"system.{number}") for number, block in enumerate(system))


def _messages(messages: Any) -> list[tuple[str, tuple[Piece, ...]]]:
    if not isinstance(messages, list) or not messages:
        raise refuse("messages: at least one message is required")
    read_ones = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise refuse(f"{where}.role: Input should be 'user' or 'assistant'")
        if set(message) != {"role", "content"}:
            raise refuse(f"{where}: Extra inputs are not permitted, or content is missing")
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not content:
            raise refuse(f"{where}: user messages must have non-empty content")
        said = tuple(_block(block, f"{where}.content.{at}") for at, block in enumerate(content))
        read_ones.append((message["role"], said))
    if read_ones[0][0] != "user":
        raise refuse('messages: first message must use the "user" role')
    if read_ones[-1][0] != "user":
        raise refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    return read_ones


def _block(block: Any, where: str) -> Piece:
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        raise refuse(f"{where}: Input should be a text block")
    if set(block) - {"type", "text", "cache_control", "citations"}:
        raise refuse(f"{where}: Extra inputs are not permitted")
    if not block["text"].strip():
        raise refuse(f"{where}: text content blocks must contain non-whitespace text")
    control = block.get("cache_control")
    if control is None:
        return Piece(block["text"])
    ttl = control.get("ttl", "5m")
    if control.get("type") != "ephemeral" or ttl not in LIFETIMES:
        raise refuse(f"{where}.cache_control: Input should be ephemeral, with a ttl of '5m' or '1h'")
    return Piece(block["text"], ttl)


def _check_lifetimes(pieces: tuple[Piece, ...]) -> None:
    lifetimes = [LIFETIMES[piece.ttl] for piece in pieces if piece.ttl]
    if lifetimes != sorted(lifetimes, reverse=True):
        raise refuse("a ttl='1h' cache_control block must not come after a ttl='5m' one")


def _thinks(thinking: Any, most: int) -> bool:
    match thinking:
        case None | {"type": "disabled" | "between_tools"}:
            return False
        case {"type": "adaptive"}:
            return True
        case {"type": "enabled", "budget_tokens": int(budget)} if 1024 <= budget < most:
            return True
    raise refuse(
        "thinking: Input tag must be 'adaptive', 'disabled' or 'enabled' with a budget of 1024 or more, "
        "below max_tokens"
    )


def _schema(config: Any) -> dict[str, Any] | None:
    form = (config or {}).get("format")
    if form is None:
        return None
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        raise refuse("output_config.format: Input should be a json_schema")
    require_closed(form["schema"], lambda said: refuse(f"output_config.format.schema: {said}"))
    for word in UNSUPPORTED:
        if f'"{word}":' in json.dumps(form["schema"]):
            raise refuse(f"output_config.format.schema: For 'integer' type, property '{word}' is not supported")
    return dict(form["schema"])


def reply(asked: Asked, draft: Draft, tokens: Tokens, request_id: str, with_usage: bool = True) -> dict[str, Any]:
    """A message."""
    stop = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "filtered": "refusal"}
    content: list[dict[str, Any]] = []
    if draft.thought:
        content.append({"type": "thinking", "thinking": draft.thought, "signature": "c2lnbmVk"})
    if draft.texts[0]:
        content.append({"type": "text", "text": draft.texts[0], "citations": None})
    refused = {"type": "refusal", "category": None, "explanation": None}
    made: dict[str, Any] = {
        "id": f"msg_{request_id}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop[draft.finish],
        "stop_sequence": None,
        "stop_details": refused if stop[draft.finish] == "refusal" else None,
    }
    if with_usage:
        made["usage"] = {
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": tokens.cache_write,
                "ephemeral_1h_input_tokens": tokens.cache_write_1h,
            },
            "output_tokens_details": {"thinking_tokens": tokens.reasoning},
            "service_tier": "standard",
        }
    return made


def error(refused: Refused, request_id: str) -> dict[str, Any]:
    """The JSON of an error, live or in a batch's result."""
    words = {"type": refused.kind, "message": refused.message}
    return {"type": "error", "error": words, "request_id": request_id}


def parse(content: bytes) -> Any:
    """A request's body; raises Refused when it is no JSON."""
    try:
        return json.loads(content)
    except ValueError:
        raise refuse("The request body is not valid JSON") from None


def models() -> dict[str, Any]:
    """The list of models."""
    made = {"type": "model", "created_at": "2026-11-20T00:00:00Z", "lifecycle": "active"}
    listed = [{"id": name, "display_name": name, **made} for name in MODELS]
    return {"data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
