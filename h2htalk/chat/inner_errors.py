"""Errors inside HTTP 200: what a server says of a call that failed after it had sent the status.

OpenRouter and other gateways begin an answer before the provider behind them has finished: `{"error": {...}}` beside or
in place of the choices, an `error` in a choice, or the finish reason `error`. Others always answer with 200 and a code:
`base_resp` (MiniMax), `error_code` (Baidu), `code` and `message` (iFlytek), `Response.Error` (Tencent), `detail`.
None of these is a reply, whatever text stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.chat.provider_filters import filtered_choice, objects_of
from h2htalk.data.replies.finish_reasons import ERROR, read_finish_reason

Fields = Mapping[str, Any]
ERROR_IN_REPLY = "error_in_reply"  # the reason of a failed call: the server broke off
_NO_CODE = frozenset({"", "0", "none", "null", "false"})  # the message decides
_NO_ERROR = _NO_CODE | {"200", "ok", "success"}
# What servers write where nothing failed.
_ALL_WELL = re.compile(
    r"(?i)[\W_]*(?:|0|200|ok|none|null|false|no errors?|(?:request )?succe\w+|无错误|正常|.{0,8}成功)[\W_]*"
)
_LONGEST = 2000
# Fields of a message that a model has written.
_OF_REPLIES = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls")


@dataclass(frozen=True, slots=True)
class InnerError:
    """An error inside HTTP 200: `body` as an answer that reports an error has it, `status` (0: it names none)."""

    body: Fields
    status: int = 0


def find_inner_error(body: object) -> InnerError | None:
    """Return the error that the JSON of an answer holds, None where it holds none."""
    if not isinstance(body, Mapping):
        return None
    choices = objects_of(body.get("choices"))
    messages = objects_of([choice.get("message") for choice in choices])
    for holder in (body, *choices, *messages):
        error = holder.get("error")
        if _is_error(error):
            return _inner_error(body, error)
    for choice in choices:
        # The provider's own word, where the gateway says nothing.
        reason = choice.get("finish_reason") or choice.get("native_finish_reason")
        broke_off = isinstance(reason, str) and read_finish_reason(reason) == ERROR
        # The provider behind a gateway may name its filter.
        if broke_off and filtered_choice(choice) is None:
            return InnerError({"error": {"message": f"finish reason {reason}"}})
    reason = body.get("stop_reason")
    if isinstance(reason, str) and read_finish_reason(reason) == ERROR:
        return InnerError({"error": {"message": f"stop reason {reason}"}})
    base = body.get("base_resp")
    if isinstance(base, Mapping):
        code = str(base.get("status_code") or 0)
        if code not in _NO_ERROR:
            message = str(base.get("status_msg") or "")
            return _inner_error(body, {"code": code, "message": message})
    if body.get("content") or any(map(_says_something, choices)):
        return None
    error = _error_without_reply(body)
    return None if error is None else _inner_error(body, error)


def _says_something(choice: Fields) -> bool:
    """Whether a choice has a reply, or a filter's word in its place: an error beside it would be about neither."""
    if filtered_choice(choice) is not None:
        return True
    message = choice.get("message")
    return isinstance(message, Mapping) and any(message.get(name) for name in _OF_REPLIES)


def _is_error(error: object) -> bool:
    """Whether a value says that something failed: some servers send an empty error, or one whose code is 0."""
    if isinstance(error, Mapping):
        code = str(error.get("code", "")).lower()
        if code not in _NO_CODE:
            return code not in _NO_ERROR
        texts = [value for name, value in error.items() if name != "code"]
        message = error.get("message") or error.get("msg")
        return _says_failure(message) if message else any(texts)
    if isinstance(error, str):
        return _says_failure(error)
    return bool(error)


def _says_failure(message: object) -> bool:
    """Whether the message of an error names one."""
    return _ALL_WELL.fullmatch(message) is None if isinstance(message, str) else bool(message)


def _error_without_reply(body: Fields) -> object:
    """The error of an answer without a reply, in the words of servers that always say 200."""
    response = body.get("Response")
    if isinstance(response, Mapping) and _is_error(response.get("Error")):
        return response["Error"]
    for code, message in (
        ("error_code", "error_msg"),
        ("code", "message"),
        ("code", "msg"),
        ("errcode", "errmsg"),
    ):
        value = body.get(code)
        words = body.get(message)
        if not isinstance(value, str | int) or not isinstance(words, str):
            continue
        name = str(value).lower()
        if name not in _NO_ERROR or (name in _NO_CODE and _says_failure(words)):
            return {"code": str(value), "message": words}
    for name in ("errors", "detail", "Error"):
        if body.get(name):
            return body[name]
    says_error = "error" in (body.get("object"), body.get("type"), body.get("status"))
    failed = body.get("status") == "failed" or body.get("success") is False
    if says_error or failed:
        return {"message": str(body.get("message") or body.get("msg") or "")[:_LONGEST]}
    return None


def _inner_error(body: Fields, error: object) -> InnerError:
    """Return the error with the fields around it that may name a filter."""
    context = {name: body[name] for name in ("contentFilter", "base_resp") if name in body}
    status = 0
    if isinstance(error, Mapping):
        status = _status(error)
    elif isinstance(error, list):
        error = {"message": "; ".join(map(_message, error))[:_LONGEST]}
    elif not isinstance(error, str):
        error = {"message": str(error)[:_LONGEST]}
    return InnerError({"error": error, **context}, status)


def _message(error: object) -> str:
    if isinstance(error, Mapping):
        return str(error.get("message") or error.get("msg") or dict(error))
    return str(error)


def _status(error: Fields) -> int:
    """The HTTP status that an error names; 0 where it names none."""
    for name in ("code", "status", "http_code", "status_code"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value[:6])
        if type(value) is int and 400 <= value <= 599:
            return value
    return 0
