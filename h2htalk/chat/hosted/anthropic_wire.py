"""Build calls of Anthropic's messages API and read its answers and errors. No connection is made here.

The API takes no temperature, seed or `n`: several samples are several calls with the model's own sampling.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.chat.protocol import Answer, Bound, Call, FailedCall, Message, Reply, Request
from h2htalk.chat.provider_answers import (
    Api,
    clean,
    count,
    input_bound,
    malformed_answer,
    read_error,
    request_name,
    served_by,
    well_formed,
    whole_counts,
)
from h2htalk.chat.response_schema import STRING_FORMATS, described
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError

# The least that any model caches is 1,024 tokens (some need 2,048 or 4,096). Three bytes a token mark too much rather
# than too little, which costs nothing: a mark on less is ignored.
LEAST_CACHED_BYTES = 3 * 1024
# Calls from which on a cached prefix pays: writing it costs 1.25 times its tokens for five minutes and twice for
# an hour, reading it a tenth.
LEAST_SHARERS, LEAST_SHARERS_IN_BATCH = 2, 3

# Models with another value for no reasoning, and families that reason only with a budget
# (platform.claude.com/docs: "What's new in Claude Sonnet 5.5", "Extended thinking"; seen 2026-11-20).
_NO_THINKING = {"claude-sonnet-5-5": "between_tools"}
_BUDGETED = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")
LEAST_BUDGET = 1024

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "context",
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# Words for what some models refuse, with the advice.
_ADVICE = {
    "thinking": "change or leave out --thinking",
    **dict.fromkeys(
        ("output_config", "structured output", "output format"), "it has no structured output: choose another model"
    ),
}
_NOT_ENFORCED = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "minItems", "maxItems", "uniqueItems",
})  # fmt: skip
# Placeholder for a user's first message: the API requires that the user begins.
_OPENING = "…"


@dataclass(frozen=True, slots=True)
class AnthropicWire:
    """The wire format of one Anthropic model; the key is held only to remove it from messages of the API."""

    name: str
    key: str | None = field(default=None, repr=False)

    @property
    def model(self) -> str:
        return f"anthropic:{self.name}"

    def calls(self, requests: Sequence[Request]) -> list[Call]:
        """Return one call for each request; calls with the same prefix follow each other."""
        asked = list(requests)  # a sequence may write each prompt anew
        prefixes = [_prefix_name(request) for request in asked]
        sharers = Counter(prefixes)
        calls = [
            Call((index,), (request,), prefix, sharers[prefix])
            if prefix is not None and sharers[prefix] >= LEAST_SHARERS
            else Call((index,), (request,))
            for index, (request, prefix) in enumerate(zip(asked, prefixes, strict=True))
        ]
        first = {prefix: index for index, prefix in reversed(list(enumerate(prefixes)))}
        return sorted(calls, key=lambda call: first[call.prefix] if call.prefix else call.indexes[0])

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. A prefix is cached for five minutes live and for an hour in a batch."""
        request, sampling = call.request, call.request.sampling
        system, messages = _conversation(request.messages)
        body: dict[str, Any] = {"model": self.name, "max_tokens": sampling.budget, "messages": messages}
        cached = call.prefix is not None and (not batch or call.sharers >= LEAST_SHARERS_IN_BATCH)
        if blocks := _system_blocks(system, ("1h" if batch else "5m") if cached else None):
            body["system"] = blocks
        if sampling.thinking is not None:
            body["thinking"] = _thinking(self.name, sampling.thinking)
        if not batch:
            body["service_tier"] = "standard_only"  # whose prices the price file holds
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), _unenforced)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body

    def bound(self, call: Call) -> Bound:
        """See `WireFormat.bound`."""
        return Bound(input_bound(call.request), call.request.sampling.budget)

    def read(self, body: object, call: Call, request_id: str | None = None) -> Answer | FailedCall:
        """See `WireFormat.read`. What is scored is read strictly; token counts that make no sense become unknown."""
        usage = _read_usage(body.get("usage")) if isinstance(body, dict) else Usage()
        name = request_name(request_id, body, self.key)
        try:
            blocks, finish = body["content"], body.get("stop_reason")  # type: ignore[index,attr-defined]
            text = "".join([block["text"] for block in blocks if block["type"] == "text"])
            thinking = "".join([block["thinking"] for block in blocks if block["type"] == "thinking"])
        except (LookupError, TypeError, AttributeError):
            return malformed_answer("not a message", body, self.key, usage, name)
        if not isinstance(blocks, list) or not isinstance(finish, str | None):
            return malformed_answer("a field has the wrong type", body, self.key, usage, name)
        reason = _FINISH.get(finish, clean(finish, self.key)) if finish else "unknown"
        thought = well_formed(thinking, self.key) or None
        reply = Reply(well_formed(text, self.key), reason, usage, thought, name, **served_by(body, self.key))
        return Answer((reply,), usage, name)

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`."""
        key, url = "check ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
        api = Api("Anthropic", self.name, key, url, statuses=_STATUS, optional=_ADVICE)
        return read_error(api, status, body, headers, self.key)


def _thinking(model: str, tokens: int) -> Mapping[str, Any]:
    """Return the reasoning setting of a model. Only older models take a budget; others choose their own."""
    if not tokens:
        return {"type": _NO_THINKING.get(model, "disabled")}
    if not model.startswith(_BUDGETED):
        return {"type": "adaptive"}
    if tokens < LEAST_BUDGET:
        raise ConfigError(f"--thinking {tokens}: {model} takes {LEAST_BUDGET:,} tokens or more, or 0")
    return {"type": "enabled", "budget_tokens": tokens}


def _unenforced(keyword: str, value: Any) -> bool:
    """Whether the server ignores a keyword; the SDK moves the same keywords into descriptions."""
    if keyword == "format":
        return value not in STRING_FORMATS
    return keyword in _NOT_ENFORCED and (keyword != "minItems" or value > 1)


def _conversation(messages: Sequence[Message]) -> tuple[Message, list[dict[str, Any]]]:
    """Return the system text, and turns as the API requires: the user first, alternating, none of them blank."""
    parts = [message for message in messages if message.role == "system" and message.content.strip()]
    system = Message("system", "\n\n".join(part.content for part in parts), parts[0].shared if parts else 0)
    turns: list[dict[str, Any]] = []
    for message in messages:
        content = well_formed(message.content)
        if message.role == "system" or not content.strip():
            continue
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += f"\n{content}"
        else:
            turns.append({"role": message.role, "content": content})
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": _OPENING})
    return system, turns


def _system_blocks(system: Message, lifetime: str | None) -> list[dict[str, Any]]:
    """Return the system text as blocks, the shared part alone in one where it is to be cached."""
    content = well_formed(system.content)
    if lifetime is None:
        return [{"type": "text", "text": content}] if content else []
    cached, rest = content[: system.shared], content[system.shared :]
    control = {"type": "ephemeral", "ttl": lifetime}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": cached, "cache_control": control}]
    # A block of white space is refused; leaving it out shortens the text by its end only.
    return [*blocks, {"type": "text", "text": rest}] if rest.strip() else blocks


def _prefix_name(request: Request) -> str | None:
    """Return an identifier of the start of a prompt that can be cached, None where it is too short."""
    system, _ = _conversation(request.messages)
    shared = well_formed(system.content)[: system.shared].encode()
    if len(shared) < LEAST_CACHED_BYTES:
        return None
    # A response schema changes what precedes the system text, and reasoning changes how turns are read.
    form = "" if request.response_schema is None else request.response_schema.name
    kind = f"\0{form}\0{request.sampling.thinking is None}\0{bool(request.sampling.thinking)}"
    return hashlib.sha256(shared + kind.encode()).hexdigest()[:16]


def _read_usage(raw: object) -> Usage:
    """Anthropic counts apart what was read from the cache, what was written there, and the rest of the prompt."""
    plain, output = count(raw, "input_tokens"), count(raw, "output_tokens")
    read, written = count(raw, "cache_read_input_tokens"), count(raw, "cache_creation_input_tokens")
    kinds = raw.get("cache_creation") if isinstance(raw, dict) else None
    hour = count(kinds, "ephemeral_1h_input_tokens")
    details = raw.get("output_tokens_details") if isinstance(raw, dict) else None
    whole = None if plain is None else plain + (read or 0) + (written or 0)
    short = None if written is None else max(written - (hour or 0), 0)
    return whole_counts(Usage(whole, output, read, short, hour, count(details, "thinking_tokens")))
