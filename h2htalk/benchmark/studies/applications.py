"""Test a companion application with a prompt and a memory of its own, over HTTP (docs/how-to/test-an-app.md).

A TOML file, the adapter, says how to talk to it. Each case has a session of its own, turn by turn, with pauses between
the sessions of the case. The application keeps its own state, so a case that breaks off (an error, a timeout, a session
that expired) begins again in a new session, and its replies are stored only when it is whole: a killed study repeats
the cases in flight.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.settings import APP, APP_MODEL, StudySpec
from h2htalk.chat.error_bodies import clean
from h2htalk.chat.inner_errors import find_inner_error
from h2htalk.chat.live_calls import doubling_wait, run_all, run_alone
from h2htalk.chat.protocol import FailedCall
from h2htalk.chat.provider_filters import objects_of, read_ending
from h2htalk.chat.reply_streams import FORM_NAMES, stream_form
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.case import Case, script
from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record
from h2htalk.data.replies.finish_reasons import FILTERED, STOP
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.errors import ConfigError, quoted
from h2htalk.masking import hold_key, is_secret_name, masked
from h2htalk.progress import Progress

if TYPE_CHECKING:
    from aiohttp import ClientSession

NAMES = ["session", "text", "days", "case", "language", "history"]  # the placeholders of a call
SHORTEST_SECRET = 8
# After so many cases that failed for good before any reply was read, a greeting shows whether the adapter is wrong.
MOST_UNREAD = 3
TRIED = {"en": "Hello, how are you today?", "zh": "你好，今天过得怎么样？"}  # the message of --try
_PLACE = re.compile(r"\{(\w+)\}")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = [
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
]
_END_MARK = "[DONE]"  # in the place of a piece: the end of a stream
_ERROR_EVENT = re.compile(r"event: ?error")
# What messages say of an application.
_BROKE_OFF = "the application reported an error within its reply"
_NOTHING = "an empty body"
NO_END = "no_end"  # the reason of a failed call: a stream stopped before its reply's end
_NO_END = (
    "no end of the reply came in its stream; if the application never says that a reply ended, write "
    "end_mark = false into [send] of the adapter; the stream ends with"
)
_REDIRECTS = (
    "it redirects, as to a login page or to another address, which is not followed: correct the "
    "address, the path in the adapter, or what its [headers] log in with"
)
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


class Call(BaseModel):
    """One HTTP call of the adapter; the placeholders `NAMES` in its path and its JSON are replaced."""

    model_config = _STRICT

    path: str = Field(pattern="^/")  # after the application's address
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"  # of HTTP
    body: Any = Field(None, alias="json")  # what is sent
    ok: list[int] = []  # statuses that mean success; 200 to 299 when left out

    @property
    def names(self) -> list[str]:
        """The placeholders that stand in the call."""
        return _PLACE.findall(self.path + json.dumps(self.body, ensure_ascii=False))


class Start(Call):
    """The call that begins a session.

    Attributes:
        session: the place of the session's id in the reply, such as `data.id`.
    """

    session: str = Field(min_length=1)


class Send(Call):
    """The call that sends a message.

    Attributes:
        reply: the place of the text in the reply, or in each piece of a stream.
        stream: the form of a reply that comes in pieces: events, or lines of JSON.
        end_mark: whether a reply whose pieces have fields for its end (`finish_reason`, `done`, `message_start`) is
            whole only where one of them brings it; false for an application that never sets them.
    """

    reply: str = Field(min_length=1)
    stream: Literal["sse", "lines"] | None = None
    end_mark: bool = True


class Adapter(BaseModel):
    """How an application is called.

    Attributes:
        send: sends a message and gets the reply.
        start: begins a session.
        pause: says that days pass between two sessions.
        reset: ends a session, and forgets it.
        headers: of every call; they may name variables of the environment as `$NAME`.
    """

    model_config = _STRICT

    send: Send
    start: Start | None = None
    pause: Call | None = None
    reset: Call | None = None
    headers: dict[str, str] = {}

    @model_validator(mode="after")
    def _can_be_sent(self) -> Adapter:
        for name in ("start", "send", "pause", "reset"):
            call = getattr(self, name)
            names = call.names if call is not None else []
            for unknown in sorted(set(names).difference(NAMES), key=names.index):
                raise ValueError(f"{name}: no value {{{unknown}}}; choose from {', '.join(NAMES)}")
            if "session" in names and self.start in (None, call):
                raise ValueError(
                    f"{name} needs {{session}}, and there is no [start] before it that gives one"
                )
        if "text" not in self.send.names:
            raise ValueError("send: {text} stands nowhere, so no message would be sent")
        for name, text in self.headers.items():
            usable = _HEADER.fullmatch(name) and name.lower() not in _FRAMING and text.isprintable()
            if not usable or "$" in _VARIABLE.sub("", text):
                advice = "give a header that you may set, in one line, with no $ but in $NAME"
                raise ValueError(f"headers: {quoted(name)}: {advice}")
        return self


def read_adapter(path: str | Path | None) -> Adapter:
    """Read an adapter. Raises ConfigError: not readable, an unknown key or placeholder, or no session to send to."""
    return read_record(Adapter, read_toml(Path(str(path))), str(path), error=ConfigError)


def _secret(name: str) -> str:
    """A variable of the environment whose value can be sent, and masked where a reply holds it."""
    secret = os.environ.get(name, "")
    if not secret:
        problem = "is not set"
    elif not secret.isprintable():
        problem = "holds a control character"
    elif len(secret) < SHORTEST_SECRET:
        problem = f"has fewer than {SHORTEST_SECRET} characters"
    else:
        return secret
    raise ConfigError(
        f"the adapter's headers need the environment variable {name}, which {problem}; set "
        "it to a key of one line that replies cannot hold by chance, because it is masked in them"
    )


def filled(body: Any, values: Mapping[str, Any]) -> Any:
    """A JSON value with its placeholders filled; one that is a whole text becomes the value itself."""
    if isinstance(body, dict):
        return {key: filled(value, values) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, values) for value in body]
    if not isinstance(body, str):
        return body
    placeholder = _PLACE.fullmatch(body)
    if placeholder is not None:
        return values.get(placeholder[1], "")
    return _PLACE.sub(lambda match: str(values.get(match[1], "")), body)


def value_at(record: Any, path: str) -> Any:
    """The value at a path such as `choices.0.message.content`; None where there is none."""
    for key in path.split("."):
        try:
            record = record[int(key)] if isinstance(record, list) else record[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return record


class AppError(Exception):
    """A call to the application failed: a short code, and a message that may hold a key and be long."""


class WrongForm(AppError):
    """A reply is a stream where the adapter names none, or the reverse; every other reply would be too."""


@dataclass(frozen=True, slots=True)
class AppReply:
    """What an application replied.

    Attributes:
        text: the text; where a filter declined it, what came before.
        finish_reason: as in `Response`.
        filtered_by: what the application passed on of the provider's filter that declined it, or stopped it.
    """

    text: str
    finish_reason: str = STOP
    filtered_by: str | None = None


@dataclass(slots=True)
class _App:
    """An application: its address, how to talk to it, what to mask in its replies, and the open connections."""

    url: str
    adapter: Adapter
    keys: Sequence[str]
    seconds: float  # that a call may take
    session: ClientSession
    reached: bool = (
        False  # whether it ever answered: then a connection that drops concerns one case
    )
    was_read: bool = False  # whether a reply was ever read: then the adapter is right, and a failure concerns one case
    unread: int = 0  # cases whose last attempt failed before that, in a way that the adapter may be the reason of

    async def call(self, call: Call, values: dict[str, Any]) -> str:
        """Make a call and return its body. Raises AppError."""
        path = _PLACE.sub(
            lambda match: quote(str(values.get(match[1], "")), safe="", errors="replace"), call.path
        )
        body = filled(call.body, values)
        url = self.url + path
        from h2htalk.chat.server import (
            exchange,
        )  # with aiohttp, which reading a study does not need

        answer = await exchange(self.session, call.method, url, self.seconds, json=body)
        if isinstance(answer, FailedCall):
            self.reached |= answer.billing != "free"
            raise AppError(answer.reason, answer.message)
        self.reached = True
        text = answer.content.decode("utf-8", errors="replace")
        if answer.status not in (call.ok or range(200, 300)):
            redirects = 300 <= answer.status < 400
            raise AppError(f"http_{answer.status}", _REDIRECTS if redirects else text)
        return text

    @asynccontextmanager
    async def begun(self, values: dict[str, Any]) -> AsyncIterator[None]:
        """Begin a session, whose id joins the values; what the application says at its end matters to nobody."""
        start = self.adapter.start
        reset = self.adapter.reset
        try:
            if start is not None:
                body = await self.call(start, values)
                session = value_at(_parse(body), start.session)
                if not isinstance(session, str | int) or session in ("", ".", ".."):
                    message = f"[start] of the adapter: no session id at {start.session} in {body}"
                    raise AppError("malformed_reply", message)
                values["session"] = session
            yield
        finally:
            if reset is not None and ("session" in values or start is None):
                with suppress(AppError):
                    await self.call(reset, values)

    async def send(self, values: dict[str, Any]) -> AppReply:
        """Send a turn and return the reply. Raises AppError."""
        send = self.adapter.send
        body = await self.call(send, values)
        _require_form(body, send.stream)
        pieces, has_end_mark = _read_pieces(body, send.stream)
        broken = next(filter(_reports_error, pieces), None)
        if broken is not None:
            raise AppError(
                "stream_error", f"{_BROKE_OFF}: {json.dumps(broken, ensure_ascii=False)}"
            )
        needs_end = send.stream is not None and send.end_mark and not has_end_mark
        if needs_end and _lacks_end(pieces):
            raise AppError(NO_END, f"{_NO_END} {body[-80:]}")
        values_of_pieces = [value_at(piece, send.reply) for piece in pieces]
        texts = [text for text in values_of_pieces if isinstance(text, str)]
        filtered_by = _filter_of(pieces)
        if not texts and not filtered_by:
            raise AppError(
                "malformed_reply",
                f"[send] of the adapter: no text at {send.reply} in {body or _NOTHING}",
            )
        self.was_read = True
        # Not before: a stream may cut a key in two, and JSON escape it.
        text = self.masked("".join(texts))
        if filtered_by:
            return AppReply(text, FILTERED, clean(self.masked(filtered_by)))
        return AppReply(text)

    def masked(self, text: str) -> str:
        """A text without the keys."""
        return reduce(masked, self.keys, text)

    def refused(self, error: AppError) -> ConfigError:
        """The error for a call after which no other can succeed."""
        reason, message = error.args
        if isinstance(error, WrongForm):
            return ConfigError(f"{self.url}: {clean(self.masked(message))}")
        if reason == "http_401":
            reason = "refuses the key (401); put the right one into [headers] of the application's TOML file"
        return ConfigError(f"{self.url}: {reason}: {clean(self.masked(message))}")


def _require_form(body: str, stream: str | None) -> None:
    """Raise WrongForm where a reply is a stream of another kind than the adapter names, or none."""
    came = stream_form(body)
    lines = [line for line in body.splitlines() if line.strip()]
    is_one_line = stream == "lines" and len(lines) == 1 and came == "json"
    if came is None or came == (stream or "json") or is_one_line:
        return
    if came == "json" and _reports_error(_parse(body)):
        raise AppError(
            "stream_error", "the application reported an error in the place of its stream"
        )
    if came == "json":
        advice = f'leave stream = "{stream}" out of [send] of the adapter'
    else:
        advice = f'write stream = "{came}" into [send] of the adapter, with the place of the text in a piece as `reply`'
    raise WrongForm(
        "malformed_reply", f"the reply is {FORM_NAMES[came]}: {advice}; it begins with {body}"
    )


def _reports_error(piece: Any) -> bool:
    """Whether a piece of a reply says that the application, or the model behind it, broke off."""
    if not isinstance(piece, dict):
        return False
    # The other fields of an application's JSON are its own: a `code` may be anything. Vercel's SDK has `type` alone.
    if piece.get("error") or piece.get("type") == "error":
        return True
    return "choices" in piece and find_inner_error(piece) is not None


def _lacks_end(pieces: Sequence[Any]) -> bool:
    """Whether pieces announce an end that none of them brings: a finish reason of choices (OpenAI and most others),
    `done` (Ollama), or `message_stop` (Anthropic)."""
    endings: list[object] = []
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        for choice in objects_of(piece.get("choices")):
            if "finish_reason" in choice:
                endings.append(choice["finish_reason"])
        if isinstance(piece.get("done"), bool):
            endings.append(piece["done"])
        if piece.get("type") in ("message_start", "message_stop"):
            endings.append(piece["type"] == "message_stop")
    return bool(endings) and not any(endings)


def _filter_of(pieces: Sequence[Any]) -> str:
    """How the pieces of a reply in OpenAI's form say that a provider's filter declined it; empty where they do not."""
    for piece in pieces:
        choices = objects_of(piece.get("choices")) if isinstance(piece, dict) else []
        for choice in choices:
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and read_ending(reason) == FILTERED:
                return f"finish reason {reason}"
    return ""


def _read_pieces(body: str, stream: str | None) -> tuple[list[Any], bool]:
    """Return the JSON values of a reply (one, or those of a stream's events or lines), and whether a mark of the
    stream's end came."""
    if stream is None:
        return [_parse(body)], False
    lines = re.split(r"\r\n|\r|\n", body.removeprefix("\ufeff"))
    if stream == "lines":
        events = [[line.strip()] for line in lines if line.strip()]
    else:
        events = list(_events(lines))
    pieces: list[Any] = []
    has_end_mark = False
    for data in events:
        if _END_MARK in data:
            has_end_mark = True
            data = [line for line in data if line != _END_MARK]
        if data:
            pieces += _parse_event(data)
    return pieces, has_end_mark


def _events(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the data lines of each server-sent event, which an empty line ends. Raises AppError: an error's event."""
    data: list[str] = []
    for number, line in enumerate(lines, 1):
        if _ERROR_EVENT.fullmatch(line):
            raise AppError("stream_error", " ".join([f"{_BROKE_OFF}:", *lines[number:]]))
        if line.startswith("data:"):
            text = line.removeprefix("data:").strip()
            if text:
                data.append(text)
        elif not line:
            yield data
            data = []
    yield data


def _parse_event(data: Sequence[str]) -> list[Any]:
    """The JSON values in the data lines of an event: one over all of them, as the standard says, else one in each:
    many servers leave out the empty line between events."""
    if len(data) > 1:
        with suppress(AppError):
            return [_parse("\n".join(data))]
    return [_parse(line) for line in data]


def _parse(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise AppError("malformed_reply", f"not JSON: {text or _NOTHING}") from error


@asynccontextmanager
async def _open_app(spec: StudySpec) -> AsyncIterator[_App]:
    ask = spec.ask
    adapter = read_adapter(spec.app)
    texts = adapter.headers.values()
    values = {name: _secret(name) for name in chain.from_iterable(map(_VARIABLE.findall, texts))}
    headers = {
        name: _VARIABLE.sub(lambda variable: values[variable[1]], text)
        for name, text in adapter.headers.items()
    }
    # Of `Bearer KEY` the word alone too; a key may also be written into the file itself.
    secret_headers = [text for name, text in headers.items() if is_secret_name(name)]
    sent = [*values.values(), *secret_headers]
    words = [word for word in " ".join(sent).split() if len(word) >= SHORTEST_SECRET]
    hold_key(*sent)
    from h2htalk.chat.server import open_session

    async with open_session(ask.concurrency, ask.timeout, headers) as session:
        url = ask.model.removeprefix(APP_MODEL).rstrip("/")
        keys = [*values.values(), *words]
        yield _App(url, adapter, keys, ask.timeout, session)


def try_app(spec: StudySpec) -> str:
    """Send one message to an application; return it with the reply that the adapter reads. Raises ConfigError."""
    language = spec.ask.language or "en"

    async def talk() -> str:
        async with _open_app(spec) as app:
            reply = await _greet(app, language)
            text = reply.text
            if reply.filtered_by:
                text += f" (the provider's filter declined it: {reply.filtered_by})"
            return f"sent: {TRIED[language]}\nread at {app.adapter.send.reply}: {text}"

    return run_alone(talk)


async def _greet(app: _App, language: str) -> AppReply:
    """Send a greeting in a session of its own, and return the reply. Raises ConfigError where none is read."""
    values: dict[str, Any] = {"case": "try", "language": language, "history": []}
    try:
        async with app.begun(values):
            return await app.send(values | {"text": TRIED[language]})
    except AppError as error:
        raise app.refused(error) from error


def converse(spec: StudySpec, cases: Sequence[Case], stored: Answers, calls: CallStore) -> None:
    """Talk through every case that is not stored whole. Raises ConfigError: it refuses the key, or is not there."""
    answered = {name for (name, _), answer in stored.items() if isinstance(answer, Response)}
    missing = [case for case in cases if not answered.issuperset(_names(case))]
    waiting = iter(missing)

    async def talk() -> None:
        with Progress("cases", len(missing)) as progress:
            async with _open_app(spec) as app:

                async def work() -> None:
                    for case in waiting:
                        outcomes = await _talk(app, case, spec.ask.attempts)
                        lines = [outcome.to_dict() for outcome in outcomes]
                        calls.append(*({**line, "stage": APP, "item": case.id} for line in lines))
                        progress.advance(isinstance(outcomes[-1], FailedResponse))

                workers = min(spec.ask.concurrency, len(missing))
                await run_all([asyncio.create_task(work()) for _ in range(workers)])

    if missing:
        run_alone(talk)


def _names(case: Case) -> list[str]:
    """The names of the replies to the turns of a case."""
    return [StudyReply(APP, case.id, turn_id, LIVE).key for turn_id, *_ in script(case)]


async def _talk(app: _App, case: Case, attempts: int) -> Sequence[Response | FailedResponse]:
    """Talk through a case; after a failure again from its beginning. The replies, or the last attempt's failure."""
    replies = list[Response]()
    start = app.adapter.start
    failure = Failure(
        "needs_history", "the case begins within a conversation; use {history} in [start]", 0
    )
    if case.history and (start is None or "history" not in start.names):
        attempts = 0
    for attempt in range(1, attempts + 1):
        try:
            return await _replies(app, case, replies := [])
        except AppError as error:
            failure = Failure(error.args[0], clean(app.masked(error.args[1])), attempts)
            same_for_all = failure.reason == "http_401" or (
                isinstance(error, WrongForm) and not app.was_read
            )
            if same_for_all:
                raise app.refused(error) from error
        if attempt < attempts:
            await asyncio.sleep(doubling_wait(attempt))
    if failure.reason == "connection" and not app.reached:
        raise ConfigError(f"{app.url}: cannot be reached: {failure.message}")
    if attempts and not app.was_read and _is_of_adapter(failure.reason):
        app.unread += 1
        if app.unread == MOST_UNREAD:  # the cases may be what is refused: then a greeting is not
            await _greet(app, case.language)
    return [FailedResponse(_names(case)[len(replies)], 0, failure)]


def _is_of_adapter(reason: str) -> bool:
    """Whether the adapter may be the reason of a failure: replies that are not read, calls that are refused."""
    if reason in ("http_408", "http_429"):
        return False
    return (
        reason in ("malformed_reply", NO_END) or re.fullmatch(r"http_[34]\d\d", reason) is not None
    )


async def _replies(app: _App, case: Case, replies: list[Response]) -> list[Response]:
    """Send the turns of a case in one session, and add the replies to a list. Raises AppError at the first failure."""
    history = [turn.to_dict() for turn in case.history]
    gaps = iter([session.gap_days for session in case.sessions[1:]])
    values: dict[str, Any] = {"case": case.id, "language": case.language, "history": history}
    async with app.begun(values):
        for name, (turn_id, turn, message) in zip(_names(case), script(case), strict=True):
            text = message.content
            if turn_id.endswith(".t1") and turn_id != "s1.t1":
                days = next(gaps)
                if app.adapter.pause is not None:
                    await app.call(app.adapter.pause, values | {"days": days})
                    text = turn.user
            started = time.monotonic()
            reply = await app.send(values | {"text": text})
            seconds = round(time.monotonic() - started, 3)
            response = Response(
                id=name,
                sample=0,
                text=reply.text,
                finish_reason=reply.finish_reason,
                seconds=seconds,
                filtered_by=reply.filtered_by,
            )
            replies.append(response)
    return replies
