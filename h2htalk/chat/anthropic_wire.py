"""The wire format of Anthropic's messages API, live and in batches."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

from h2htalk.chat.error_bodies import well_formed
from h2htalk.chat.protocol import Call, Message, Request
from h2htalk.chat.provider_filters import read_ending
from h2htalk.chat.response_schema import STRING_FORMATS, described
from h2htalk.chat.wire_formats import ParsedReply, ToolCallOnly, WireFormat, read_count
from h2htalk.data.replies.finish_reasons import FILTERED, TOOL
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError

# The least that any model caches is 1,024 tokens (some need 4,096), here of three bytes; a mark on less is ignored.
LEAST_CACHED_BYTES = 3 * 1024
# From so many calls on a prefix pays: writing costs 1.25 times its tokens for minutes, 2 for an hour; reading a tenth.
LEAST_SHARERS = 2
LEAST_SHARERS_IN_BATCH = 3
# Models with another value for no reasoning, and families that reason only with a budget
# (platform.claude.com/docs: "What's new in Claude Sonnet 5.5", "Extended thinking"; seen 2026-11-20).
_NO_THINKING = {"claude-sonnet-5-5": "between_tools"}
_BUDGETED = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")
LEAST_BUDGET = 1024
_NOT_ENFORCED = frozenset(
    """
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern
    minItems maxItems uniqueItems
    """.split()  # noqa: SIM905
)
# Placeholder for a user's first message: the API requires that the user begins.
_OPENING = "…"


class AnthropicWire(WireFormat):
    """Anthropic's messages API, which takes no temperature, seed or `n`: each sample is a call."""

    engine = "anthropic"
    title = "Anthropic"
    answers = "a message"
    key_advice = "check ANTHROPIC_API_KEY"
    address_advice = "ANTHROPIC_BASE_URL"
    statuses: ClassVar[Mapping[str, int]] = {
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

    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return one call for each request; calls with the same prefix follow each other."""
        built = list(requests)  # a sequence may write each prompt anew
        prefixes = [_prefix_name(request) for request in built]
        sharers = Counter(prefixes)
        groups: dict[object, list[Call]] = {}
        for index, request in enumerate(built):
            prefix = prefixes[index]
            call = Call(indexes=(index,), requests=(request,))
            group: object = index
            if prefix is not None and sharers[prefix] >= LEAST_SHARERS:
                call = replace(call, prefix=prefix, sharers=sharers[prefix])
                group = prefix
            groups.setdefault(group, []).append(call)
        return [*chain.from_iterable(groups.values())]

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. A prefix is cached for five minutes live and for an hour in a batch."""
        request = call.requests[0]
        sampling = request.sampling
        system, messages = _conversation(request.messages)
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": sampling.budget,
            "messages": messages,
        }
        lifetime: str | None = "1h" if batch else "5m"
        if call.prefix is None or (batch and call.sharers < LEAST_SHARERS_IN_BATCH):
            lifetime = None
        blocks = _system_blocks(system, lifetime)
        if blocks:
            body["system"] = blocks
        if sampling.thinking is not None:
            body["thinking"] = _thinking(self.name, sampling.thinking)
        if not batch:
            body["service_tier"] = "standard_only"  # whose prices the price file holds
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), self._unenforced)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return self.options.applied(body, request.response_schema)

    @staticmethod
    def _unenforced(keyword: str, value: Any) -> bool:
        """Whether the server ignores a keyword; the SDK moves the same keywords into descriptions."""
        if keyword == "format":
            return value not in STRING_FORMATS
        return keyword in _NOT_ENFORCED and (keyword != "minItems" or value > 1)

    def replies(self, body: Any) -> list[ParsedReply]:
        blocks = body["content"]
        finish = body.get("stop_reason")
        if blocks is None and isinstance(finish, str) and read_ending(finish) == FILTERED:
            blocks = []
        if not isinstance(blocks, list) or not isinstance(finish, str | None):
            raise TypeError("a field has the wrong type")
        text = "".join([block["text"] for block in blocks if block["type"] == "text"])
        thinking = "".join([block["thinking"] for block in blocks if block["type"] == "thinking"])
        ending = read_ending(finish)
        calls_tool = ending == TOOL or any(block["type"] == "tool_use" for block in blocks)
        if calls_tool and not text.strip():
            raise ToolCallOnly("the reply calls a tool and says nothing")
        filtered_by = f"stop reason {finish}" if ending == FILTERED else None
        return [ParsedReply(text, ending, thinking, filtered_by)]

    def usage(self, raw: Mapping[str, Any]) -> Usage:
        """Anthropic counts apart what was read from the cache, what was written there, and the rest of the prompt."""
        input_tokens = read_count(raw, "input_tokens")
        cache_read = read_count(raw, "cache_read_input_tokens")
        cache_write = read_count(raw, "cache_creation_input_tokens")
        cache_write_1h = read_count(raw.get("cache_creation"), "ephemeral_1h_input_tokens")
        if input_tokens is not None:
            input_tokens += (cache_read or 0) + (cache_write or 0)
        if cache_write is not None:
            cache_write = max(cache_write - (cache_write_1h or 0), 0)
        return Usage(
            input_tokens=input_tokens,
            output_tokens=read_count(raw, "output_tokens"),
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            cache_write_1h_tokens=cache_write_1h,
            reasoning_tokens=read_count(raw.get("output_tokens_details"), "thinking_tokens"),
        )


def _thinking(model: str, tokens: int) -> Mapping[str, Any]:
    """Return the reasoning setting of a model. Only older models take a budget; others choose their own."""
    if not tokens:
        return {"type": _NO_THINKING.get(model, "disabled")}
    if not model.startswith(_BUDGETED):
        return {"type": "adaptive"}
    if tokens < LEAST_BUDGET:
        raise ConfigError(
            f"--thinking {tokens}: {model} takes {LEAST_BUDGET:,} tokens or more, or 0"
        )
    return {"type": "enabled", "budget_tokens": tokens}


def _conversation(messages: Sequence[Message]) -> tuple[Message, list[dict[str, Any]]]:
    """Return the system text, and turns as the API requires: the user first, alternating, none of them blank."""
    texts = [
        message for message in messages if message.role == "system" and message.content.strip()
    ]
    system = Message(
        role="system",
        content="\n\n".join(text.content for text in texts),
        shared=texts[0].shared if texts else 0,
    )
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
    control = {"type": "ephemeral", "ttl": lifetime}
    cached = content[: system.shared]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": cached, "cache_control": control}]
    uncached = content[system.shared :]
    if uncached.strip():
        # A block of white space is refused; leaving it out shortens the text by its end only.
        blocks.append({"type": "text", "text": uncached})
    return blocks


def _prefix_name(request: Request) -> str | None:
    """Return an identifier of the start of a prompt that can be cached, None where it is too short."""
    system, _ = _conversation(request.messages)
    shared = well_formed(system.content)[: system.shared].encode()
    if len(shared) < LEAST_CACHED_BYTES:
        return None
    # A response schema changes what precedes the system text, and reasoning changes how turns are read.
    schema = "" if request.response_schema is None else request.response_schema.name
    thinking = request.sampling.thinking
    kind = f"\0{schema}\0{thinking is None}\0{bool(thinking)}"
    return hashlib.sha256(shared + kind.encode()).hexdigest()[:16]
