"""Build OpenAI chat completions and read their answers and errors. No connection is made here.

Chat completions, not responses, because they have `n`, `seed`, `temperature` and a batch endpoint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from h2htalk.chat.calls import Answer, Bound, Call, FailedCall
from h2htalk.chat.protocol import Reply, Request, Sampling, mask_key
from h2htalk.chat.provider_replies import (
    ErrorBody,
    count,
    failed_call,
    input_bound,
    malformed_answer,
    read_error_body,
    request_name,
    scrub,
    whole_counts,
)
from h2htalk.chat.response_schema import STRING_FORMATS, described
from h2htalk.chat.server.wire import served_by, well_formed
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError

MOST_CHOICES = 128  # that one call may ask for

_FINISH = {"content_filter": "refusal"}
# The provider's own filter declined the prompt before any model read it.
_DECLINED = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_STATUS = {"invalid_request_error": 400, "rate_limit_exceeded": 429, "requests": 429, "tokens": 429}
# Parameters that some models refuse, with the advice.
_ADVICE = {
    "reasoning_effort": "leave out --thinking",
    "response_format": "it has no structured output: choose another model",
    **dict.fromkeys(("temperature", "top_p", "seed", "n"), "leave sampling to it: add --model-sampling"),
}
_UNSUPPORTED = re.compile(r"support|unrecognized", re.IGNORECASE)
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
        if cache_key := _cache_key(request):
            body["prompt_cache_key"] = cache_key
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
        made = (Reply(text, finish, each, request_id=name, **served_by(body, self.key)) for text, finish in texts)
        replies = tuple(mask_key(reply, self.key) for reply in made)
        return Answer(replies, usage, name)

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`."""
        error = read_error_body(body, self.key)
        status = status or _STATUS.get(error.code) or _STATUS.get(error.kind, 500)
        failed = failed_call(status, error, headers, self.key)
        if {error.code, error.kind} & _DECLINED and status in (400, 403):
            return replace(failed, reason="refusal", refusal=True, retry=False)
        if {error.code, error.kind} & _NO_CREDIT or status == 402:
            advice = f"the OpenAI account has no credit left ({failed.message}): add credit, then start again"
            return replace(failed, reason="no_credit", retry=False, limited=False, wait=None, fatal=advice)
        if status == 401 or error.code == "invalid_api_key":
            # Its text may quote the key.
            message = f"HTTP {status}: the key was refused"
            advice = f"OpenAI refused the key (HTTP {status}): check OPENAI_API_KEY"
            return replace(failed, reason="unauthorized", message=message, retry=False, fatal=advice)
        if status == 404 or error.code == "model_not_found":
            advice = (
                f"OpenAI has no model {self.name!r} for this key ({failed.message}): check the model's name "
                "and OPENAI_BASE_URL"
            )
            return replace(failed, reason="not_found", retry=False, fatal=advice)
        if status == 403 and error.kind:
            advice = f"OpenAI denies access to this key ({failed.message}): check the account and its project"
            return replace(failed, reason="unauthorized", fatal=advice)
        if status == 429 and "request too large" in error.text.lower():
            # Larger than all the tokens that the account may send in a minute: no wait helps.
            return replace(failed, reason="bad_request", retry=False, limited=False, wait=None)
        return replace(failed, fatal=self._unsupported(error) if status == 400 else None)

    def _unsupported(self, error: ErrorBody) -> str | None:
        """Advice where the model refuses what every call asks for."""
        if not (error.code.startswith("unsupported") or _UNSUPPORTED.search(error.text)):
            return None
        named = error.param.partition(".")[0] or next((n for n in _ADVICE if len(n) > 1 and n in error.text), "")
        if named not in _ADVICE:
            return None
        return f"{self.model} does not take {named} ({error.text}): {_ADVICE[named]}"


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


def _cache_key(request: Request) -> str | None:
    """Return one name for all prompts with the same start, so that the API routes them to the same cache."""
    shared = "\0".join(m.content[: m.shared] for m in request.messages if m.shared)
    return f"h2htalk-{hashlib.sha256(well_formed(shared).encode()).hexdigest()[:24]}" if shared else None


def _read_choice(choice: Any, key: str | None) -> tuple[str, str]:
    """Text and finish reason; raises LookupError, TypeError or ValueError when it is no choice."""
    message, finish = choice["message"], choice.get("finish_reason")
    content, refusal = message.get("content"), message.get("refusal")
    if "content" not in message and refusal is None:
        raise ValueError("a message without content")
    if any(not isinstance(value, str | None) for value in (content, refusal, finish)):
        raise TypeError("a field is not text")
    if refusal and not content:
        return well_formed(refusal), "refusal"
    return well_formed(content or ""), _FINISH.get(finish, scrub(finish, key)) if finish else "unknown"


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
