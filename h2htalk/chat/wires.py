"""The wire formats: how calls are written for OpenAI and Anthropic, live and in batches, and what their answers mean.

A provider is a subclass of `WireFormat`. Below are what replies have in common, and the one table of errors, which says
what an error means, what the call cost, and whether to send it again. No connection is made here.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from h2htalk.chat.protocol import Answer, Bound, Call, FailedCall, Found, Message, Outcome, Reply, Request
from h2htalk.chat.response_schema import STRING_FORMATS, described
from h2htalk.data.files import masked
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

Said = tuple[str, str | None, str | None]  # text, finish reason, reasoning


@dataclass(frozen=True, slots=True)
class WireFormat(ABC):
    """Builds the calls of one model, and reads its answers.

    Attributes:
        title: the provider, or the URL of a server. answers: what it calls a reply.
        key_advice: what to do about a refused key; address_advice: about an address that may be wrong.
        hosted: it is a provider's; errors of a server of one's own end a run before its first reply only.
        finishes: our finish reasons by the API's, where they differ.
        statuses: HTTP statuses by the code or type of an error, for batch results, which have no status.
        optional: advice by parameters that some models refuse.
        name: the model's, as the API knows it. key: held only to remove it from what the API returns.
    """

    engine: ClassVar[str]
    title: ClassVar[str]
    answers: ClassVar[str]
    key_advice: ClassVar[str]
    address_advice: ClassVar[str]
    hosted: ClassVar[bool] = True
    finishes: ClassVar[Mapping[str, str]]
    statuses: ClassVar[Mapping[str, int]]
    optional: ClassVar[Mapping[str, str]]
    name: str
    key: str | None = field(default=None, repr=False)

    @property
    def model(self) -> str:
        """`ENGINE:MODEL`, as price files name it."""
        return f"{self.engine}:{self.name}"

    @abstractmethod
    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return the calls for all requests, in an order that reads each cache soon after it was written."""

    @abstractmethod
    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """Return the JSON of a call, the same live and in a batch except for the lifetime of caches. Raises ConfigError
        where the request asks for what the API does not have."""

    @abstractmethod
    def replies(self, body: Any) -> list[Said]:
        """Return what each reply says; raises LookupError, TypeError, ValueError or AttributeError where it cannot."""

    @abstractmethod
    def usage(self, raw: Mapping[str, Any]) -> Usage:
        """Read the API's counts of tokens."""

    def bound(self, call: Call) -> Bound:
        """Return the most that a call can be billed for: the prompt once, and every reply."""
        request, sampling = call.requests[0], call.requests[0].sampling
        return Bound(_input_bound(request), (sampling.max_tokens + (sampling.thinking or 0)) * len(call.requests))

    def read(self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None) -> Found:
        """Read the JSON of a successful call, which took `seconds`. A `FailedCall` is `paid` then: a reply arrived.
        What is scored is read strictly; token counts that make no sense become unknown."""
        key, own = self.key, body if isinstance(body, dict) else {}
        usage = _whole_counts(self.usage(counts)) if isinstance(counts := own.get("usage"), dict) else Usage()
        name = _text(request_id or own.get("id"), key)
        try:
            found = self.replies(body)
        except (LookupError, TypeError, ValueError, AttributeError):
            return malformed_answer(f"not {self.answers}", body, key, usage, name)
        if len(found) != len(call.requests):
            why = f"{len(found)} choices where {len(call.requests)} were asked for"
            return malformed_answer(why, body, key, usage, name)
        model, served = _text(own.get("model"), key), _text(own.get("system_fingerprint"), key)
        replies = (
            Reply(
                well_formed(text, key),
                self.finishes.get(finish) or clean(finish, key) if finish else "unknown",
                usage if len(found) == 1 else Usage(),
                well_formed(thinking, key) if thinking else None,
                name,
                model,
                served,
                seconds,
            )
            for text, finish, thinking in found
        )
        return Answer(tuple(replies), usage, name)

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """Read an answer that reports an error; `body` is parsed JSON, or bytes that are none. The key is removed.
        `status` is 0 where it is unknown, as in batch results; the code or the type of the error decides then."""
        error = read_error_body(body, self.key)
        status = status or self.statuses.get(error.code) or self.statuses.get(error.kind, 500)
        reason, advice = _rule(status, error, self.hosted)
        message = f"HTTP {status}: {error.text}" if error.text else f"HTTP {status}"
        if advice == _REFUSED_KEY:  # a server likes to repeat part of the key that it refuses: it is not quoted
            message = f"HTTP {status}: the key was refused"
        fatal = advice.format(api=self, status=status, message=message)
        if status == 400 and not reason:
            fatal = self._unsupported(error)
        limited = not reason and status in _SLOW_DOWN
        again = (status in _RETRIED or status >= 530) and headers.get("x-should-retry") != "false"
        retry = limited or (again and not reason)
        written = bool(reason) and "content filtering" in error.text.lower()  # a reply that was blocked
        return FailedCall(
            reason or _reason(status, error),
            message,
            "possibly_paid" if written or status in _PERHAPS_ANSWERED else "free",
            retry=retry,
            wait=asked_wait(headers) if retry else None,
            limited=limited,
            fatal=fatal or None,
            at_first=not self.hosted and reason not in ("", "no_credit"),
            refusal=reason == "refusal",
            request_id=_text(headers.get("request-id") or headers.get("x-request-id"), self.key),
        )

    def _unsupported(self, error: ErrorBody) -> str:
        """Advice where the model refuses what every call asks for."""
        said = error.text.lower()
        if not error.code.startswith("unsupported") and "support" not in said and "unrecognized" not in said:
            return ""
        names = (name for name in self.optional if len(name) > 1 and name in said)
        named = error.param.partition(".")[0] or next(names, "")
        advice = self.optional.get(named)
        return f"{self.name} does not take {named} ({error.text}): {advice}" if advice else ""


# --- OpenAI -----------------------------------------------------------------------------------------------------

MOST_CHOICES = 128  # that one call may ask for
_NOT_STRICT = frozenset({"minLength", "maxLength", "uniqueItems"})
_NO_FORM = "it has no structured output: choose another model"


class OpenAIWire(WireFormat):
    """OpenAI's chat completions, which unlike responses have `n`, `seed`, `temperature` and a batch endpoint."""

    engine, title, answers = "openai", "OpenAI", "a chat completion"
    key_advice, address_advice = "check OPENAI_API_KEY", "OPENAI_BASE_URL"
    finishes: ClassVar[Mapping[str, str]] = {"content_filter": "refusal"}
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        **dict.fromkeys(("rate_limit_exceeded", "requests", "tokens"), 429),
    }
    optional: ClassVar[Mapping[str, str]] = {
        "reasoning_effort": "leave out --thinking",
        "response_format": _NO_FORM,
        **dict.fromkeys(("temperature", "top_p", "seed", "n"), "leave sampling to it: add --model-sampling"),
    }

    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return one call for the samples of an item, in the order of their first ones; models that take no sampling
        get one for each sample, because some of them refuse `n`."""
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
        """See `WireFormat.body`. Only live calls name a service tier, the price file's."""
        request, sampling = call.requests[0], call.requests[0].sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": well_formed(m.content)} for m in request.messages],
            "max_completion_tokens": sampling.max_tokens + (sampling.thinking or 0),
            "store": False,
        }
        if sampling.temperature is not None:
            if sampling.temperature > 2:
                raise ConfigError(f"openai: takes a temperature of 0 to 2, not {sampling.temperature:g}")
            body |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        if sampling.thinking == 0:
            body["reasoning_effort"] = "none"
        if len(call.requests) > 1:
            body["n"] = len(call.requests)
        if not batch:
            body["service_tier"] = "default"
        if shared := "\0".join(m.content[: m.shared] for m in request.messages if m.shared):
            # One name for all prompts with the same start: the API routes them to the same cache.
            body["prompt_cache_key"] = f"h2htalk-{hashlib.sha256(well_formed(shared).encode()).hexdigest()[:24]}"
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), self._unenforced)
            form = {"name": request.response_schema.name, "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    @staticmethod
    def _unenforced(keyword: str, value: Any) -> bool:
        """Whether strict schemas refuse a keyword."""
        return keyword in _NOT_STRICT or (keyword == "format" and value not in STRING_FORMATS)

    def replies(self, body: Any) -> list[Said]:
        choices = sorted(body["choices"], key=lambda choice: choice.get("index", 0))
        return [self._read_choice(choice["message"], choice.get("finish_reason")) for choice in choices]

    def _read_choice(self, message: Any, finish: str | None) -> Said:
        content, refusal = message.get("content"), message.get("refusal")
        thinking = message.get("reasoning_content") or message.get("reasoning")  # of servers of open models
        if "content" not in message and not refusal and not thinking:
            raise ValueError("a message without content")
        if any(not isinstance(value, str | None) for value in (content, refusal, thinking, finish)):
            raise TypeError("a field is not text")
        return (refusal, "refusal", thinking) if refusal and not content else (content or "", finish, thinking)

    def usage(self, raw: Mapping[str, Any]) -> Usage:
        prompt = raw.get("prompt_tokens_details")
        return Usage(
            input_tokens=_count(raw, "prompt_tokens"),
            output_tokens=_count(raw, "completion_tokens"),
            cache_read_tokens=_count(prompt, "cached_tokens"),
            cache_write_tokens=_count(prompt, "cache_write_tokens"),
            reasoning_tokens=_count(raw.get("completion_tokens_details"), "reasoning_tokens"),
        )


# --- Anthropic --------------------------------------------------------------------------------------------------

# The least that any model caches is 1,024 tokens (some need 4,096), here of three bytes; a mark on less is ignored.
LEAST_CACHED_BYTES = 3 * 1024
# From so many calls on a prefix pays: writing costs 1.25 times its tokens for minutes, 2 for an hour; reading a tenth.
LEAST_SHARERS, LEAST_SHARERS_IN_BATCH = 2, 3
# Models with another value for no reasoning, and families that reason only with a budget
# (platform.claude.com/docs: "What's new in Claude Sonnet 5.5", "Extended thinking"; seen 2026-11-20).
_NO_THINKING = {"claude-sonnet-5-5": "between_tools"}
_BUDGETED = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")
LEAST_BUDGET = 1024
_NOT_ENFORCED = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "minItems", "maxItems", "uniqueItems",
})  # fmt: skip
# Placeholder for a user's first message: the API requires that the user begins.
_OPENING = "…"


class AnthropicWire(WireFormat):
    """Anthropic's messages API, which takes no temperature, seed or `n`: each sample is a call."""

    engine, title, answers = "anthropic", "Anthropic", "a message"
    key_advice, address_advice = "check ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    finishes: ClassVar[Mapping[str, str]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "context",
    }
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
    optional: ClassVar[Mapping[str, str]] = {
        "thinking": "change or leave out --thinking",
        **dict.fromkeys(("output_config", "structured output", "output format"), _NO_FORM),
    }

    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return one call for each request; calls with the same prefix follow each other."""
        asked = list(requests)  # a sequence may write each prompt anew
        prefixes = [_prefix_name(request) for request in asked]
        sharers = Counter(prefixes)
        groups: dict[object, list[Call]] = {}
        for index, (request, prefix) in enumerate(zip(asked, prefixes, strict=True)):
            shared = prefix is not None and sharers[prefix] >= LEAST_SHARERS
            call = Call((index,), (request,), *((prefix, sharers[prefix]) if shared else ()))
            groups.setdefault(prefix if shared else index, []).append(call)
        return [*chain.from_iterable(groups.values())]

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. A prefix is cached for five minutes live and for an hour in a batch."""
        request, sampling = call.requests[0], call.requests[0].sampling
        system, messages = _conversation(request.messages)
        most = sampling.max_tokens + (sampling.thinking or 0)
        body: dict[str, Any] = {"model": self.name, "max_tokens": most, "messages": messages}
        cached = call.prefix is not None and (not batch or call.sharers >= LEAST_SHARERS_IN_BATCH)
        if blocks := _system_blocks(system, ("1h" if batch else "5m") if cached else None):
            body["system"] = blocks
        if sampling.thinking is not None:
            body["thinking"] = _thinking(self.name, sampling.thinking)
        if not batch:
            body["service_tier"] = "standard_only"  # whose prices the price file holds
        if request.response_schema is not None:
            schema = described(request.response_schema.schema(), self._unenforced)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body

    @staticmethod
    def _unenforced(keyword: str, value: Any) -> bool:
        """Whether the server ignores a keyword; the SDK moves the same keywords into descriptions."""
        if keyword == "format":
            return value not in STRING_FORMATS
        return keyword in _NOT_ENFORCED and (keyword != "minItems" or value > 1)

    def replies(self, body: Any) -> list[Said]:
        blocks, finish = body["content"], body.get("stop_reason")
        if not isinstance(blocks, list) or not isinstance(finish, str | None):
            raise TypeError("a field has the wrong type")
        kinds = ("text", "thinking")
        text, thinking = ("".join([block[kind] for block in blocks if block["type"] == kind]) for kind in kinds)
        return [(text, finish, thinking)]

    def usage(self, raw: Mapping[str, Any]) -> Usage:
        """Anthropic counts apart what was read from the cache, what was written there, and the rest of the prompt."""
        plain, output = _count(raw, "input_tokens"), _count(raw, "output_tokens")
        read, written = _count(raw, "cache_read_input_tokens"), _count(raw, "cache_creation_input_tokens")
        hour = _count(raw.get("cache_creation"), "ephemeral_1h_input_tokens")
        whole = None if plain is None else plain + (read or 0) + (written or 0)
        short = None if written is None else max(written - (hour or 0), 0)
        return Usage(whole, output, read, short, hour, _count(raw.get("output_tokens_details"), "thinking_tokens"))


def _thinking(model: str, tokens: int) -> Mapping[str, Any]:
    """Return the reasoning setting of a model. Only older models take a budget; others choose their own."""
    if not tokens:
        return {"type": _NO_THINKING.get(model, "disabled")}
    if not model.startswith(_BUDGETED):
        return {"type": "adaptive"}
    if tokens < LEAST_BUDGET:
        raise ConfigError(f"--thinking {tokens}: {model} takes {LEAST_BUDGET:,} tokens or more, or 0")
    return {"type": "enabled", "budget_tokens": tokens}


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


# --- Prompts and replies ----------------------------------------------------------------------------------------


def outcomes(found: Found, call: Call, attempts: int = 1) -> list[Outcome]:
    """Return the outcome of each request of a call, in order, when the call is not sent again."""
    if isinstance(found, FailedCall) and not found.refusal:
        return [Failure(found.reason, found.message, attempts)] * len(call.requests)
    return [*replies_of(found, len(call.requests))]


def replies_of(found: Found, number: int) -> tuple[Reply, ...]:
    """Return the replies to the requests of a call; a refusal is an empty reply to each, and a failure has none."""
    if isinstance(found, Answer):
        return found.replies
    usage = Usage(0, 0) if found.billing == "free" else found.usage or Usage()
    return (Reply("", "refusal", usage, request_id=found.request_id),) * (number if found.refusal else 0)


# Tokens that an API may add to a prompt: turn marks, a few of its own, and the instructions of structured output.
_AROUND_PROMPT, _AROUND_MESSAGE, _AROUND_FORM = 256, 16, 1024
_MOST_TOKENS = 10**9  # of one call: beyond it a count makes no sense


def _input_bound(request: Request) -> int:
    """The most tokens that a prompt can have: a token is at least one byte of UTF-8."""
    texts = (well_formed(message.content) for message in request.messages)
    bound = _AROUND_PROMPT + sum(_AROUND_MESSAGE + _most_bytes(text) for text in texts)
    if request.response_schema is None:
        return bound
    return bound + _AROUND_FORM + len(json.dumps(request.response_schema.schema()))


def _most_bytes(text: str) -> int:
    """Return the bytes of a text, also where a tokenizer normalizes it (NFKC): a ligature may become many letters."""
    plain = len(text.encode())
    return plain if text.isascii() else max(plain, len(unicodedata.normalize("NFKC", text).encode()))


def _count(raw: object, name: str) -> int | None:
    """Return a count of a provider's usage, None where it is absent or implausible."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _whole_counts(usage: Usage) -> Usage:
    """Return the usage with parts that exceed their whole set to unknown, as they cannot be priced."""
    cached = [usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens]
    if usage.input_tokens is not None and sum(part or 0 for part in cached) > usage.input_tokens:
        usage = Usage(output_tokens=usage.output_tokens, reasoning_tokens=usage.reasoning_tokens)
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        usage = replace(usage, reasoning_tokens=None)
    return usage


def malformed_answer(why: str, body: object, key: str | None, usage: Usage, request_id: str | None) -> FailedCall:
    """Return the failed call for a malformed answer: it is paid, and never sent again automatically."""
    shown = clean(_start(body), key) or "empty body"
    return FailedCall("malformed_reply", f"{why}: {shown}", "paid", usage=usage, request_id=request_id)


def _start(body: object) -> str:
    if isinstance(body, bytes):
        return body[:4096].decode("utf-8", "replace")
    try:
        return "" if body is None else json.dumps(body, ensure_ascii=False)[:4096]
    except RecursionError:  # it could only just be read
        return "nested too deeply to be shown"


def _text(value: object, key: str | None) -> str | None:
    """Return a name that the API gave, None for what is none."""
    return clean(value, key) or None if isinstance(value, str) else None


# --- Errors -----------------------------------------------------------------------------------------------------

LONGEST_ASKED = 604_800.0  # seconds: the largest deadline; to wait longer is no sensible wish
_QUOTED = 200  # characters of a server's text that an error message may carry
# A gateway timed out, or the connection behind it broke: the model may have answered, and the call may be billed.
_PERHAPS_ANSWERED = frozenset({408, 499, 502, 504, 520, 524})
_SLOW_DOWN = {429: "rate_limited", 529: "overloaded"}
_RETRIED = _PERHAPS_ANSWERED | {409, 500, 503, 521, 522, 523}
# The common part of the messages of vLLM, OpenAI, llama.cpp, SGLang and TGI, in that order.
_CONTEXT_TOO_LONG = re.compile(
    r"(?is)context[ _](?:length|window|size)|prompt is too long|too many tokens|inputs.{1,40}tokens"
)
# Keys of either provider, also cut or masked as they like to quote them.
_KEY = re.compile(r"\b(?:sk|sess|pk)-[\w*.…-]{4,}", re.ASCII)
_REFUSED_KEY = "{api.title} refused the key (HTTP {status}): {api.key_advice}"


class ErrorBody(NamedTuple):
    """The fields of an error's JSON. `text` is for the user and holds no part of a key."""

    kind: str = ""
    code: str = ""
    param: str = ""
    text: str = ""


def _rule(status: int, error: ErrorBody, hosted: bool) -> tuple[str, str]:
    """Return the reason of an error that asking again cannot help, else "", and advice for the user where no other call
    can succeed either."""
    said, named = error.text.lower(), {error.code, error.kind}
    # The provider's own filter declined the prompt before any model read it, or blocked the reply, which may be billed.
    declined = named & {"content_filter", "content_policy_violation", "invalid_prompt"}
    if (status in (400, 403) and declined) or (status == 400 and "content filtering" in said):
        return "refusal", ""
    no_credit = named & {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    if status == 402 or no_credit or (status == 400 and "credit balance" in said):
        return "no_credit", "the {api.title} account has no credit left ({message}): add credit, then start again"
    if status == 401 or error.code == "invalid_api_key" or (status == 403 and not hosted):
        return "unauthorized", _REFUSED_KEY
    if status == 404 or "model_not_found" in named:
        advice = "check the model's name, and {api.address_advice}"
        return "not_found", "{api.title} has no model {api.name!r} ({message}): " + advice
    if status == 403 and error.kind:
        advice = "check the account, its project and its workspace"
        return "unauthorized", "{api.title} denies access to this key ({message}): " + advice
    if status == 429 and "request too large" in said:
        return "bad_request", ""  # larger than all the tokens that the account may send in a minute: no wait helps
    if 300 <= status < 400:
        advice = "which is not followed: correct {api.address_advice}"
        return f"http_{status}", "{api.title} redirects (HTTP {status}), " + advice
    return "", ""


def _reason(status: int, error: ErrorBody) -> str:
    """Return the reason of an error of which nothing more is known."""
    if status in (400, 413, 422):
        too_long = status == 413 or _CONTEXT_TOO_LONG.search(f"{error.code} {error.kind} {error.text}")
        return "context_length" if too_long else "bad_request"
    return _SLOW_DOWN.get(status, f"http_{status}")


def read_error_body(body: object, key: str | None) -> ErrorBody:
    """Read the error in a body: parsed JSON in the shape of OpenAI or a similar one, or the text of a gateway."""
    if isinstance(body, bytes):
        return ErrorBody(text=clean(_start(body), key))
    inner: Any = body.get("error", body) if isinstance(body, dict) else body
    named: Any = inner if isinstance(inner, dict) else {}
    text = named.get("message") or named.get("detail") or inner or ""
    words = [value if isinstance(value := named.get(name), str) else "" for name in ("type", "code", "param")]
    return ErrorBody(words[0], words[1], words[2], clean(text if isinstance(text, str) else json.dumps(text), key))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) as seconds; None where absent, in the past, or
    longer than any call may take."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if 0 <= seconds <= LONGEST_ASKED:
            return seconds
    return None


# --- Texts ------------------------------------------------------------------------------------------------------


def clean(text: str, key: str | None = None) -> str:
    """Return at most 200 characters on one line, without control characters and without any part of a key."""
    one_line = " ".join(_KEY.sub("[key]", masked(text, key, "[key]"))[: 20 * _QUOTED].split())
    shown = one_line if one_line.isprintable() else "".join(c for c in one_line if c.isprintable())
    return shown[:_QUOTED]


def well_formed(text: str, key: str | None = None) -> str:
    """Replace half surrogate pairs, which JSON may hold and UTF-8 files cannot, by U+FFFD, and mask the key: a server
    may repeat what it was sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return masked(text, key)
