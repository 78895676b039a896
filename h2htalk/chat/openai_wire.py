"""The wire format of OpenAI's chat completions, live and in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from h2htalk.chat.content_parts import plain_message
from h2htalk.chat.error_bodies import well_formed
from h2htalk.chat.protocol import Call, Request
from h2htalk.chat.provider_filters import filtered_choice, read_ending
from h2htalk.chat.response_schema import STRING_FORMATS, described
from h2htalk.chat.wire_formats import ParsedReply, ToolCallOnly, WireFormat, read_count
from h2htalk.data.replies.finish_reasons import FILTERED, REFUSAL, TOOL
from h2htalk.data.replies.reasoning import strip_reasoning
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError

MOST_CHOICES = 128  # that one call may ask for
_NOT_STRICT = frozenset({"minLength", "maxLength", "uniqueItems"})


def strict_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `response_format` that makes replies follow a schema."""
    form = {"name": name, "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": form}


class OpenAIWire(WireFormat):
    """OpenAI's chat completions, which unlike responses have `n`, `seed`, `temperature` and a batch endpoint."""

    engine = "openai"
    title = "OpenAI"
    answers = "a chat completion"
    key_advice = "check OPENAI_API_KEY"
    address_advice = "OPENAI_BASE_URL"
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        **dict.fromkeys(("rate_limit_exceeded", "requests", "tokens"), 429),
    }

    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return one call for the samples of an item, in the order of their first ones.

        Models that take no sampling get one for each sample, because some of them refuse `n`.
        """
        built = list(requests)  # a sequence may write each prompt anew
        groups: dict[object, list[int]] = {}
        for index, request in enumerate(built):
            key: object = index
            if request.sampling.temperature is not None and not self.options.leaves_out("n"):
                sampling = replace(request.sampling, seed=0)
                key = (request.id, request.messages, sampling, request.response_schema)
            groups.setdefault(key, []).append(index)
        calls = []
        for indexes in groups.values():
            for start in range(0, len(indexes), MOST_CHOICES):
                chunk = indexes[start : start + MOST_CHOICES]
                samples = tuple(built[index] for index in chunk)
                calls.append(Call(indexes=tuple(chunk), requests=samples))
        return calls

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. Only live calls name a service tier, the price file's."""
        request = call.requests[0]
        sampling = request.sampling
        messages = [
            {"role": message.role, "content": well_formed(message.content)}
            for message in request.messages
        ]
        body: dict[str, Any] = {
            "model": self.name,
            "messages": messages,
            "max_completion_tokens": sampling.budget,
            "store": False,
        }
        if (sampling.temperature or 0) > 2:
            raise ConfigError(
                f"openai: takes a temperature of 0 to 2, not {sampling.temperature:g}"
            )
        body |= sampling.drawing()
        if sampling.thinking == 0:
            body["reasoning_effort"] = "none"
        if len(call.requests) > 1:
            body["n"] = len(call.requests)
        if not batch:
            body["service_tier"] = "default"
        starts = [
            message.content[: message.shared] for message in request.messages if message.shared
        ]
        shared = "\0".join(starts)
        if shared:
            # One name for all prompts with the same start: the API routes them to the same cache.
            digest = hashlib.sha256(well_formed(shared).encode()).hexdigest()
            body["prompt_cache_key"] = f"h2htalk-{digest[:24]}"
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), self._unenforced)
            body["response_format"] = strict_format(request.response_schema.name, schema)
        return self.options.applied(body, request.response_schema)

    @staticmethod
    def _unenforced(keyword: str, value: Any) -> bool:
        """Whether strict schemas refuse a keyword."""
        return keyword in _NOT_STRICT or (keyword == "format" and value not in STRING_FORMATS)

    def replies(self, body: Any) -> list[ParsedReply]:
        choices = sorted(body["choices"], key=lambda choice: choice.get("index", 0))
        marks = self.options.think_marks()
        plain = []
        for choice in choices:
            message = plain_message(choice.get("message"), marks)
            plain.append({**choice, "message": message})
        return [self._read_choice(choice) for choice in plain]

    def _read_choice(self, choice: Any) -> ParsedReply:
        message = choice["message"]
        finish = choice.get("finish_reason")
        filtered_by = filtered_choice(choice)
        if filtered_by is not None and not (message and message.get("content")):
            return ParsedReply(text="", finish=FILTERED, filtered_by=filtered_by)
        content = message.get("content")
        refusal = message.get("refusal")
        # Servers of open models send their reasoning in a field of its own.
        thinking = message.get("reasoning_content") or message.get("reasoning")
        if "content" not in message and not refusal and not thinking:
            raise ValueError("a message without content")
        if any(not isinstance(value, str | None) for value in (content, refusal, thinking, finish)):
            raise TypeError("a field is not text")
        if refusal and not content:
            return ParsedReply(text=refusal, finish=REFUSAL, thinking=thinking)
        ending = read_ending(finish)
        calls_tool = ending == TOOL or message.get("tool_calls") or message.get("function_call")
        if calls_tool and not strip_reasoning(content or ""):
            raise ToolCallOnly("the reply calls a tool and says nothing")
        return ParsedReply(content or "", ending, thinking, filtered_by)

    def usage(self, raw: Mapping[str, Any]) -> Usage:
        prompt = raw.get("prompt_tokens_details")
        completion = raw.get("completion_tokens_details")
        return Usage(
            input_tokens=read_count(raw, "prompt_tokens"),
            output_tokens=read_count(raw, "completion_tokens"),
            cache_read_tokens=read_count(prompt, "cached_tokens"),
            cache_write_tokens=read_count(prompt, "cache_write_tokens"),
            reasoning_tokens=read_count(completion, "reasoning_tokens"),
        )
