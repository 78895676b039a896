"""The wire formats: how calls are written for an API, live and in batches, and what its answers mean.

A provider is a subclass of `WireFormat` (`openai_wire`, `anthropic_wire`). Here are the parts that replies of all APIs
have in common, and the one table of errors, which says what an error means, what the call cost, and whether to send it
again. No connection is made here.
"""

from __future__ import annotations

import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from h2htalk.chat.error_bodies import (
    ACCOUNT_REFUSED,
    PERHAPS_ANSWERED,
    REFUSED_KEY,
    RETRIED,
    SLOW_DOWN,
    beginning,
    clean,
    error_reason,
    error_rule,
    read_error_body,
    requested_wait,
    well_formed,
)
from h2htalk.chat.inner_errors import ERROR_IN_REPLY, InnerError, find_inner_error
from h2htalk.chat.prices import PRICE_WORDS
from h2htalk.chat.protocol import (
    Answer,
    Billing,
    Bound,
    Call,
    CallOutcome,
    FailedCall,
    Outcome,
    Reply,
    Request,
)
from h2htalk.chat.provider_filters import (
    filtered_body,
    find_filter,
    names_account,
    quotable,
    was_written,
)
from h2htalk.chat.refused_parameters import (
    RefusedParameterError,
    find_refused,
    limit_of_reply,
    refusal,
)
from h2htalk.chat.reply_streams import FORM_NAMES, stream_form
from h2htalk.chat.wire_options import PARAMETERS, WireOptions
from h2htalk.data.replies.finish_reasons import FILTERED
from h2htalk.data.responses import FILTERED_REPLY, Failure, Usage


class ParsedReply(NamedTuple):
    """One reply of an answer, as its API wrote it.

    `finish`: a word of `finish_reasons`, or the API's own. `filtered_by`: how the answer says that a filter
    stopped it.
    """

    text: str
    finish: str
    thinking: str | None = None
    filtered_by: str | None = None


TOOL_CALL = "tool_call"  # the reason of a failed call: a tool is called, which nobody offered, and nothing is said


class ToolCallOnly(ValueError):
    """A reply that calls a tool and has no text."""


@dataclass(frozen=True, slots=True)
class WireFormat(ABC):
    """Builds the calls of one model, and reads its answers.

    Attributes:
        title: the provider, or the URL of a server.
        answers: the provider's term for a reply.
        key_advice: what to do about a refused key.
        address_advice: what to check where an address may be wrong.
        hosted: whether a provider runs it. On a self-hosted server such an error ends the run only before the first
            reply.
        statuses: HTTP statuses by the code or type of an error, for batch results, which have no status.
        name: the model's name, as the API knows it.
        key: the key, held only to remove it from what the API returns.
        options: the forms in which parameters are sent.
    """

    engine: ClassVar[str]
    title: ClassVar[str]
    answers: ClassVar[str]
    key_advice: ClassVar[str]
    address_advice: ClassVar[str]
    hosted: ClassVar[bool] = True
    statuses: ClassVar[Mapping[str, int]]
    name: str
    key: str | None = field(default=None, repr=False)
    options: WireOptions = field(default=WireOptions(), kw_only=True)

    @property
    def model(self) -> str:
        """`ENGINE:MODEL`, as price files name it."""
        return f"{self.engine}:{self.name}"

    @abstractmethod
    def calls(self, requests: Sequence[Request]) -> Iterable[Call]:
        """Return the calls for all requests, in an order that reads each cache soon after it was written."""

    @abstractmethod
    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """Return the JSON of a call, the same live and in a batch except for the lifetime of caches.

        Raises ConfigError where the request asks for what the API does not have.
        """

    @abstractmethod
    def replies(self, body: Any) -> list[ParsedReply]:
        """Read each reply; raise LookupError, TypeError, ValueError or AttributeError where that cannot be done."""

    @abstractmethod
    def usage(self, raw: Mapping[str, Any]) -> Usage:
        """Read the API's counts of tokens."""

    def bound(self, call: Call) -> Bound:
        """Return the most that a call can be billed for: the prompt once, and every reply."""
        request = call.requests[0]
        return Bound(
            input_tokens=_input_bound(request),
            output_tokens=request.sampling.budget * len(call.requests),
        )

    def read(
        self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None
    ) -> CallOutcome:
        """Read the JSON of a successful call, which took `seconds`. A `FailedCall` is `paid` then: a reply arrived.

        Whatever is scored is read strictly; token counts that make no sense become unknown.
        """
        key = self.key
        fields = body if isinstance(body, dict) else {}
        usage = self._read_usage(fields)
        name = _text(request_id or fields.get("id"), key)
        inner_error = find_inner_error(body)
        if inner_error is not None:
            return self._read_inner_error(inner_error, usage, name)
        filtered = filtered_body(body)
        if filtered is not None:
            return filtered_call(clean(filtered, key), "paid", usage, name)
        if isinstance(body, bytes):  # no JSON value
            form = stream_form(body)
            if form is not None and form != "json":
                return self._read_stream(FORM_NAMES[form], body, name)
        try:
            parsed_replies = self.replies(body)
        except ToolCallOnly as error:
            return FailedCall(TOOL_CALL, str(error), "paid", usage=usage, request_id=name)
        except (LookupError, TypeError, ValueError, AttributeError):
            return malformed_answer(f"not {self.answers}", body, key, usage, name)
        if len(parsed_replies) != len(call.requests):
            why = f"{len(parsed_replies)} choices where {len(call.requests)} were asked for"
            return malformed_answer(why, body, key, usage, name)
        about_call = Reply(
            text="",
            usage=usage if len(parsed_replies) == 1 else Usage(),
            request_id=name,
            model=_text(fields.get("model"), key),
            system_fingerprint=_text(fields.get("system_fingerprint"), key),
            seconds=seconds,
        )
        replies = tuple(self._fill(about_call, parsed) for parsed in parsed_replies)
        return Answer(replies=replies, usage=usage, request_id=name)

    def _read_usage(self, fields: Mapping[str, Any]) -> Usage:
        """Read the tokens of an answer, and the words by which another price may hold: Anthropic's stand beside the
        counts, OpenAI's tier beside the choices."""
        counts = fields.get("usage")
        if not isinstance(counts, dict):
            counts = {}
        usage = _plausible_counts(self.usage(counts))
        words: dict[str, Any] = {}
        for name in PRICE_WORDS:
            words[name] = _text(counts.get(name) or fields.get(name), self.key)
        return replace(usage, **words)

    def _fill(self, about_call: Reply, parsed: ParsedReply) -> Reply:
        """Return the reply with the texts that the API wrote, without the key."""
        thinking = well_formed(parsed.thinking, self.key) if parsed.thinking else None
        filtered_by = clean(parsed.filtered_by, self.key) if parsed.filtered_by else None
        return replace(
            about_call,
            text=well_formed(parsed.text, self.key),
            finish_reason=clean(parsed.finish, self.key),
            thinking=thinking,
            filtered_by=filtered_by,
        )

    def _read_stream(self, form: str, body: bytes, request_id: str | None) -> FailedCall:
        """The failed call for a stream, which nobody asked for: every other call would get one too."""
        why = f"it is {form}, not {self.answers}"
        failed = malformed_answer(why, body, self.key, Usage(), request_id)
        advice = "have the whole reply asked for: add --engine-option stream=false"
        if self.options.form("stream"):
            advice = "it streams although stream=false was sent: turn streaming off at the server or gateway"
        start = clean(beginning(body), self.key)
        fatal = f"{self.title}: the reply is {form} ({start}): {advice}"
        return replace(failed, fatal=fatal, at_first=True)

    def _read_inner_error(
        self, inner: InnerError, usage: Usage, request_id: str | None
    ) -> FailedCall:
        """Read an error inside HTTP 200. It is paid, as a malformed answer is: something was computed. It is sent again
        as an error of its status would be."""
        failed = self.read_error(inner.status, inner.body, {})
        message = failed.message
        if not failed.filtered:
            error = read_error_body(inner.body, self.key)
            description = error.text or error.code or error.kind
            message = "HTTP 200 with an error"
            if inner.status:
                message += f" {inner.status}"
            if description:
                message += f": {description}"
        reason = failed.reason
        if failed.retry and not failed.limited:
            reason = ERROR_IN_REPLY
        return replace(
            failed,
            reason=reason,
            message=message,
            billing="paid",
            usage=usage,
            request_id=request_id or failed.request_id,
        )

    def read_error(
        self,
        status: int,
        body: object,
        headers: Mapping[str, str],
        request: Mapping[str, Any] | None = None,
    ) -> FailedCall:
        """Read an answer that reports an error; `body` is parsed JSON, or bytes that are none. The key is removed.
        `status` is 0 where it is unknown, as in batch results; the code or the type of the error decides then.
        `request`: the JSON that was sent; None where it is not at hand."""
        error = read_error_body(body, self.key)
        request_id = _text(headers.get("request-id") or headers.get("x-request-id"), self.key)
        provider = find_filter(status, body)
        if provider is not None:
            quote = quotable(error.text) or error.code or error.kind
            if status:
                quote = f"HTTP {status}: {quote}"
            billing: Billing = "possibly_paid" if was_written(error.text) else "free"
            return filtered_call(f"{provider} ({quote})", billing, None, request_id)
        account_refused = names_account(status, body)
        status = status or self.statuses.get(error.code) or self.statuses.get(error.kind, 500)
        reason, advice = error_rule(status, error, self.hosted)
        refused = ""
        if reason in ("", "no_endpoint"):
            refused = find_refused(status, body, request)
        if account_refused and not reason and not refused:
            reason = "unauthorized"
            advice = ACCOUNT_REFUSED
        message = f"HTTP {status}: {error.text}" if error.text else f"HTTP {status}"
        if advice == REFUSED_KEY:
            # A server likes to repeat part of the key that it refuses: it is not quoted.
            message = f"HTTP {status}: the key was refused"
        fatal = advice.format(api=self, status=status, message=message)
        if refused:
            reason = "bad_request"
            fatal = str(self.refusal(refused, message))
        limit = None if reason else limit_of_reply(status, body, request)
        if limit is not None:
            reason = "bad_request"
            fatal = f"{self.model} writes at most {limit:,} tokens in one reply ({message}): add --max-tokens {limit}"
        limited = not reason and status in SLOW_DOWN
        passing = (status in RETRIED or status >= 530) and headers.get("x-should-retry") != "false"
        retry = limited or (passing and not reason)
        wait = requested_wait(headers) if retry else None
        billing = "possibly_paid" if status in PERHAPS_ANSWERED else "free"
        ends_run = reason not in ("", "no_credit")
        return FailedCall(
            reason=reason or error_reason(status, error),
            message=message,
            billing=billing,
            retry=retry,
            wait=wait,
            limited=limited,
            fatal=fatal or None,
            at_first=ends_run and not self.hosted,
            parameter=refused,
            request_id=request_id,
        )

    def refusal(self, parameter: str, message: str) -> RefusedParameterError:
        """The error for a parameter that the model refuses."""
        form = self.options.form(PARAMETERS[parameter].option)
        return refusal(self.model, parameter, form, message)


# --- Prompts and replies ----------------------------------------------------------------------------------------


def outcomes(outcome: CallOutcome, call: Call, attempts: int = 1) -> list[Outcome]:
    """Return the outcome of each request of a call, in order, when the call is not sent again."""
    if isinstance(outcome, FailedCall) and not outcome.filtered:
        failure = Failure(outcome.reason, outcome.message, attempts)
        return [failure for _ in call.requests]
    return [*replies_of(outcome, len(call.requests))]


def replies_of(outcome: CallOutcome, number: int) -> tuple[Reply, ...]:
    """Return the replies to the requests of a call: those of an answer, an empty one to each where a provider's filter
    declined it, and none where it failed."""
    if isinstance(outcome, Answer):
        return outcome.replies
    if not outcome.filtered:
        return ()
    reply = Reply(
        text="",
        finish_reason=FILTERED,
        usage=Usage(0, 0) if outcome.billing == "free" else outcome.usage or Usage(),
        request_id=outcome.request_id,
        filtered_by=outcome.message,
    )
    return tuple(reply for _ in range(number))


def filtered_call(
    message: str, billing: Billing, usage: Usage | None, request_id: str | None
) -> FailedCall:
    """Return the call that a provider's filter declined; `message` names the provider and quotes it."""
    return FailedCall(
        FILTERED_REPLY, message, billing, usage=usage, request_id=request_id, filtered=True
    )


# Tokens that an API may add to a prompt: turn marks, a few of its own, and the instructions of structured output.
_AROUND_PROMPT = 256
_AROUND_MESSAGE = 16
_AROUND_SCHEMA = 1024
_MOST_TOKENS = 10**9  # of one call: beyond it a count makes no sense


def _input_bound(request: Request) -> int:
    """The most tokens that a prompt can have: a token is at least one byte of UTF-8."""
    bound = _AROUND_PROMPT
    for message in request.messages:
        bound += _AROUND_MESSAGE + _most_bytes(well_formed(message.content))
    if request.response_schema is not None:
        bound += _AROUND_SCHEMA + len(json.dumps(request.response_schema.schema()))
    return bound


def _most_bytes(text: str) -> int:
    """Return the bytes of a text, also where a tokenizer normalizes it (NFKC): a ligature may become many letters."""
    plain = len(text.encode())
    if text.isascii():
        return plain
    normalized = unicodedata.normalize("NFKC", text)
    return max(plain, len(normalized.encode()))


def read_count(raw: object, name: str) -> int | None:
    """Return a count of a provider's usage, None where it is absent or implausible."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _plausible_counts(usage: Usage) -> Usage:
    """Return the usage with parts that exceed their total set to unknown, as they cannot be priced."""
    cached = [usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens]
    if usage.input_tokens is not None and sum(count or 0 for count in cached) > usage.input_tokens:
        usage = Usage(output_tokens=usage.output_tokens, reasoning_tokens=usage.reasoning_tokens)
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        usage = replace(usage, reasoning_tokens=None)
    return usage


def malformed_answer(
    why: str, body: object, key: str | None, usage: Usage, request_id: str | None
) -> FailedCall:
    """Return the failed call for a malformed answer: it is paid, and never sent again automatically."""
    start = clean(beginning(body), key) or "empty body"
    return FailedCall(
        "malformed_reply", f"{why}: {start}", "paid", usage=usage, request_id=request_id
    )


def _text(value: object, key: str | None) -> str | None:
    """Return a name that the API gave; None where it is empty or not a text."""
    return clean(value, key) or None if isinstance(value, str) else None
