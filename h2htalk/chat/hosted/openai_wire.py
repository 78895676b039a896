"""Build OpenAI chat completions and read their answers and errors. No connection is made here.

Chat completions, not responses, because they have `n`, `seed`, `temperature` and a batch endpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from h2htalk.chat.protocol import Answer, Bound, Call, FailedCall, Reply, Request, Sampling
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

MOST_CHOICES = 128  # that one call may ask for

_FINISH = {"content_filter": "refusal"}
_STATUS = {"invalid_request_error": 400, "rate_limit_exceeded": 429, "requests": 429, "tokens": 429}
# Parameters that some models refuse, with the advice.
_ADVICE = {
    "reasoning_effort": "leave out --thinking",
    "response_format": "it has no structured output: choose another model",
    **dict.fromkeys(("temperature", "top_p", "seed", "n"), "leave sampling to it: add --model-sampling"),
}
_HIGHEST_TEMPERATURE = 2.0
_NOT_STRICT = frozenset({"minLength", "maxLength", "uniqueItems"})


@dataclass(frozen=True, slots=True)
class OpenAIWire:
    """The wire format of one OpenAI model; the key is held only to remove it from messages of the API."""

    name: str
    key: str | None = field(default=None, repr=False)

    @property
    def model(self) -> str:
        return f"openai:{self.name}"

    def calls(self, requests: Sequence[Request]) -> list[Call]:
        """Return one call for the samples of an item, in the order of their first ones.

        Models that take no sampling get one call for each sample, because some of them refuse `n`.
        """
        asked = list(requests)  # a sequence may write each prompt anew
        groups: dict[object, list[int]] = {}
        for index, request in enumerate(asked):
            alone = request.sampling.temperature is None
            alike = (request.id, request.messages, replace(request.sampling, seed=0), request.response_schema)
            groups.setdefault(index if alone else alike, []).append(index)
        chunks = (
            indexes[start : start + MOST_CHOICES]
            for indexes in groups.values()
            for start in range(0, len(indexes), MOST_CHOICES)
        )
        return [Call(tuple(chunk), tuple(asked[index] for index in chunk)) for chunk in chunks]

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """Return the call body; see `WireFormat.body`. Only live calls name a service tier, the price file's."""
        request = call.request
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": well_formed(m.content)} for m in request.messages],
            "max_completion_tokens": request.sampling.budget,
            "store": False,
            **_sampling(request.sampling),
        }
        if len(call.requests) > 1:
            body["n"] = len(call.requests)
        if not batch:
            body["service_tier"] = "default"
        if shared := "\0".join(m.content[: m.shared] for m in request.messages if m.shared):
            # One name for all prompts with the same start: the API routes them to the same cache.
            body["prompt_cache_key"] = f"h2htalk-{hashlib.sha256(well_formed(shared).encode()).hexdigest()[:24]}"
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), _unenforced)
            form = {"name": request.response_schema.name, "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def bound(self, call: Call) -> Bound:
        """See `WireFormat.bound`. The prompt is billed once, the replies each."""
        return Bound(input_bound(call.request), call.request.sampling.budget * len(call.requests))

    def read(self, body: object, call: Call, request_id: str | None = None) -> Answer | FailedCall:
        """See `WireFormat.read`. What is scored is read strictly; token counts that make no sense become unknown."""
        usage = _read_usage(body.get("usage")) if isinstance(body, dict) else Usage()
        name = request_name(request_id, body, self.key)
        try:
            choices = sorted(body["choices"], key=lambda choice: choice.get("index", 0))  # type: ignore[index]
            texts = [_read_choice(choice, self.key) for choice in choices]
        except (LookupError, TypeError, ValueError, AttributeError):
            return malformed_answer("not a chat completion", body, self.key, usage, name)
        if len(texts) != len(call.requests):
            what = f"{len(texts)} choices where {len(call.requests)} were asked for"
            return malformed_answer(what, body, self.key, usage, name)
        each = usage if len(texts) == 1 else Usage()
        served = served_by(body, self.key)
        replies = (Reply(text, finish, each, thinking, name, **served) for text, finish, thinking in texts)
        return Answer(tuple(replies), usage, name)

    @property
    def api(self) -> Api:
        """How messages name the API."""
        advice = "check OPENAI_API_KEY"
        return Api("OpenAI", self.name, advice, "OPENAI_BASE_URL", statuses=_STATUS, optional=_ADVICE)

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`."""
        return read_error(self.api, status, body, headers, self.key)


def _unenforced(keyword: str, value: Any) -> bool:
    """Whether strict schemas refuse a keyword."""
    return keyword in _NOT_STRICT or (keyword == "format" and value not in STRING_FORMATS)


def _sampling(sampling: Sampling) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if sampling.temperature is not None:
        if sampling.temperature > _HIGHEST_TEMPERATURE:
            raise ConfigError(f"openai: takes a temperature of 0 to 2, not {sampling.temperature:g}")
        settings = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
    if sampling.thinking == 0:
        settings["reasoning_effort"] = "none"
    return settings


def _read_choice(choice: Any, key: str | None) -> tuple[str, str, str | None]:
    """Text, finish reason and reasoning; raises LookupError, TypeError or ValueError when it is no choice."""
    message, finish = choice["message"], choice.get("finish_reason")
    content, refusal = message.get("content"), message.get("refusal")
    thinking = message.get("reasoning_content") or message.get("reasoning")  # of servers of open models
    if "content" not in message and not refusal and not thinking:
        raise ValueError("a message without content")
    if any(not isinstance(value, str | None) for value in (content, refusal, thinking, finish)):
        raise TypeError("a field is not text")
    thought = well_formed(thinking, key) if thinking else None
    if refusal and not content:
        return well_formed(refusal, key), "refusal", thought
    return well_formed(content or "", key), _FINISH.get(finish, clean(finish, key)) if finish else "unknown", thought


def _read_usage(raw: object) -> Usage:
    if not isinstance(raw, dict):
        return Usage()
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    return whole_counts(
        Usage(
            input_tokens=count(raw, "prompt_tokens"),
            output_tokens=count(raw, "completion_tokens"),
            cache_read_tokens=count(prompt, "cached_tokens"),
            cache_write_tokens=count(prompt, "cache_write_tokens"),
            reasoning_tokens=count(completion, "reasoning_tokens"),
        )
    )
