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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.settings import APP, APP_MODEL, StudySpec
from h2htalk.chat.live_calls import doubling_wait, run_all, run_alone
from h2htalk.chat.protocol import FailedCall
from h2htalk.chat.server import exchange, open_session
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.wires import clean
from h2htalk.data.case import Case, script
from h2htalk.data.files import masked, read_toml
from h2htalk.data.records import read_record
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.errors import ConfigError, quoted
from h2htalk.progress import Progress

if TYPE_CHECKING:
    from aiohttp import ClientSession

NAMES = ("session", "text", "days", "case", "language", "history")  # the placeholders of a call
SHORTEST_SECRET = 8
TRIED = {"en": "Hello, how are you today?", "zh": "你好，今天过得怎么样？"}  # the message of --try
_PLACE = re.compile(r"\{(\w+)\}")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


class Call(BaseModel):
    """One HTTP call of the adapter; the placeholders `NAMES` in its path and its JSON are replaced."""

    model_config = _STRICT

    path: str = Field(pattern="^/")
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    body: Any = Field(None, alias="json")
    ok: list[int] = []

    @property
    def names(self) -> list[str]:
        """The placeholders that stand in the call."""
        return _PLACE.findall(self.path + json.dumps(self.body, ensure_ascii=False))


class Start(Call):
    """`session`: the place of the session's id in the reply, such as `data.id`."""

    session: str = Field(min_length=1)


class Send(Call):
    """`reply`: the place of the text in the reply, or in each piece of a stream."""

    reply: str = Field(min_length=1)
    stream: Literal["sse", "lines"] | None = None


class Adapter(BaseModel):
    """The whole file; `headers` may name variables of the environment as `$NAME`."""

    model_config = _STRICT

    send: Send
    start: Start | None = None
    pause: Call | None = None
    reset: Call | None = None
    headers: dict[str, str] = {}

    @model_validator(mode="after")
    def _can_be_sent(self) -> Adapter:
        for name, call in (("start", self.start), ("send", self.send), ("pause", self.pause), ("reset", self.reset)):
            names = call.names if call is not None else []
            for unknown in (one for one in names if one not in NAMES):
                raise ValueError(f"{name}: no value {{{unknown}}}; choose from {', '.join(NAMES)}")
            if "session" in names and self.start in (None, call):
                raise ValueError(f"{name} needs {{session}}, and there is no [start] before it that gives one")
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
    found = os.environ.get(name, "")
    if len(found) < SHORTEST_SECRET or not found.isprintable():
        what = f"has fewer than {SHORTEST_SECRET} characters" if found.isprintable() else "holds a control character"
        raise ConfigError(
            f"the adapter's headers need the environment variable {name}, which {what if found else 'is not set'}; set "
            "it to a key of one line that replies cannot hold by chance, because it is masked in them"
        )
    return found


def filled(body: Any, values: Mapping[str, Any]) -> Any:
    """A JSON value with its placeholders filled; one that is a whole text becomes the value itself."""
    if isinstance(body, dict):
        return {key: filled(value, values) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, values) for value in body]
    if not isinstance(body, str):
        return body
    if (whole := _PLACE.fullmatch(body)) is not None:
        return values.get(whole[1], "")
    return _PLACE.sub(lambda match: str(values.get(match[1], "")), body)


def at_place(record: Any, place: str) -> Any:
    """The value at a place such as `choices.0.message.content`; None where there is none."""
    for part in place.split("."):
        try:
            record = record[int(part)] if isinstance(record, list) else record[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return record


class AppError(Exception):
    """A call to the application failed: a short code, and a message that may hold a key and be long."""


@dataclass(slots=True)
class _App:
    """An application: its address, how to talk to it, what to mask in its replies, and the open connections."""

    url: str
    adapter: Adapter
    keys: Sequence[str]
    seconds: float  # that a call may take
    session: ClientSession
    reached: bool = False  # whether it ever answered: then a connection that drops concerns one case

    async def call(self, call: Call, values: dict[str, Any]) -> str:
        """Make a call and return its body. Raises AppError."""
        path = _PLACE.sub(lambda match: quote(str(values.get(match[1], "")), safe="", errors="replace"), call.path)
        body, url = filled(call.body, values), self.url + path
        found = await exchange(self.session, call.method, url, self.seconds, json=body)
        if isinstance(found, FailedCall):
            self.reached |= found.billing != "free"
            raise AppError(found.reason, found.message)
        self.reached = True
        text = found.content.decode("utf-8", errors="replace")
        if found.status not in (call.ok or range(200, 300)):
            raise AppError(f"http_{found.status}", text)
        return text

    @asynccontextmanager
    async def begun(self, values: dict[str, Any]) -> AsyncIterator[None]:
        """Begin a session, whose id joins the values; what the application says at its end matters to nobody."""
        start, reset = self.adapter.start, self.adapter.reset
        try:
            if start is not None:
                body = await self.call(start, values)
                found = at_place(_parse(body), start.session)
                if not isinstance(found, str | int) or found in ("", ".", ".."):
                    message = f"[start] of the adapter: no session id at {start.session} in {body}"
                    raise AppError("malformed_reply", message)
                values["session"] = found
            yield
        finally:
            if reset is not None and ("session" in values or start is None):
                with suppress(AppError):
                    await self.call(reset, values)

    async def send(self, values: dict[str, Any]) -> str:
        """Send a turn and return the reply's text."""
        send = self.adapter.send
        body = await self.call(send, values)
        found = list(_pieces(body, send.stream))
        if any(isinstance(one, dict) and one.get("error") for one in found):
            raise AppError("stream_error", "the application reported an error within its reply")
        texts = [text for one in found if isinstance(text := at_place(one, send.reply), str)]
        if not texts:
            raise AppError("malformed_reply", f"[send] of the adapter: no text at {send.reply} in {body}")
        return self.masked("".join(texts))  # not before: a stream may cut a key in two, and JSON escape it

    def masked(self, text: str) -> str:
        """A text without the keys."""
        return reduce(masked, self.keys, text)

    def refused(self, error: AppError) -> ConfigError:
        """The error for a call after which no other can succeed."""
        reason, message = error.args
        if reason == "http_401":
            reason = "refuses the key (401); put the right one into [headers] of the application's TOML file"
        return ConfigError(f"{self.url}: {reason}: {clean(self.masked(message))}")


def _pieces(body: str, stream: str | None) -> Iterator[Any]:
    """The JSON values of a reply: one, or those of a stream's events or lines."""
    if stream is None:
        yield _parse(body)
        return
    for line in re.split(r"\r\n|\r|\n", body.removeprefix("\ufeff")):
        if stream == "sse" and re.fullmatch(r"event: ?error", line):
            raise AppError("stream_error", "the application reported an error within its reply")
        data = line.removeprefix("data:").strip() if stream == "sse" else line.strip()
        if (stream != "sse" or line.startswith("data:")) and data not in ("", "[DONE]"):
            yield _parse(data)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AppError("malformed_reply", f"not JSON: {text}") from error


@asynccontextmanager
async def _open_app(spec: StudySpec) -> AsyncIterator[_App]:
    ask, adapter = spec.ask, read_adapter(spec.app)
    values = {name: _secret(name) for text in adapter.headers.values() for name in _VARIABLE.findall(text)}
    headers = {name: _VARIABLE.sub(lambda found: values[found[1]], text) for name, text in adapter.headers.items()}
    words = [word for value in values.values() for word in value.split() if len(word) >= SHORTEST_SECRET]
    async with open_session(ask.concurrency, ask.timeout, headers) as session:
        url, keys = ask.model.removeprefix(APP_MODEL).rstrip("/"), [*values.values(), *words]  # `Bearer KEY`
        yield _App(url, adapter, keys, ask.timeout, session)


def try_app(spec: StudySpec) -> str:
    """Send one message to an application; return it with the reply that the adapter reads. Raises ConfigError."""
    language = spec.ask.language or "en"
    values: dict[str, Any] = {"case": "try", "language": language, "history": []}

    async def talk() -> str:
        async with _open_app(spec) as app:
            try:
                async with app.begun(values):
                    reply = await app.send(values | {"text": TRIED[language]})
                    return f"sent: {TRIED[language]}\nread at {app.adapter.send.reply}: {reply}"
            except AppError as error:
                raise app.refused(error) from error

    return run_alone(talk)


def converse(spec: StudySpec, cases: Sequence[Case], stored: Answers, calls: CallStore) -> None:
    """Talk through every case that is not stored whole. Raises ConfigError: it refuses the key, or is not there."""
    whole = {name for (name, _), one in stored.items() if isinstance(one, Response)}
    cases = [case for case in cases if not whole.issuperset(_name(case, place) for place, *_ in script(case))]
    todo = iter(cases)

    async def talk() -> None:
        with Progress("cases", len(cases)) as progress:
            async with _open_app(spec) as app:

                async def work() -> None:
                    for case in todo:
                        outcomes = await _talk(app, case, spec.ask.attempts)
                        calls.append(*({**one.to_dict(), "stage": APP, "item": case.id} for one in outcomes))
                        progress.advance(isinstance(outcomes[-1], FailedResponse))

                await run_all([asyncio.create_task(work()) for _ in range(min(spec.ask.concurrency, len(cases)))])

    if cases:
        run_alone(talk)


def _name(case: Case, place: str) -> str:
    return StudyReply(APP, case.id, place, LIVE).key


async def _talk(app: _App, case: Case, attempts: int) -> Sequence[Response | FailedResponse]:
    """Talk through a case; after a failure again from its beginning. The replies, or the last attempt's failure."""
    replies, start = list[Response](), app.adapter.start
    failure = Failure("needs_history", "the case begins within a conversation; use {history} in [start]", 0)
    if case.history and (start is None or "history" not in start.names):
        attempts = 0
    for attempt in range(1, attempts + 1):
        try:
            return await _replies(app, case, replies := [])
        except AppError as error:
            failure = Failure(error.args[0], clean(app.masked(error.args[1])), attempts)
            if failure.reason == "http_401":  # so would every other case be
                raise app.refused(error) from error
        if attempt < attempts:
            await asyncio.sleep(doubling_wait(attempt))
    if failure.reason == "connection" and not app.reached:
        raise ConfigError(f"{app.url}: cannot be reached: {failure.message}")
    places = [place for place, *_ in script(case)]
    return [FailedResponse(_name(case, places[len(replies)]), 0, failure)]


async def _replies(app: _App, case: Case, replies: list[Response]) -> list[Response]:
    """Send the turns of a case in one session, and add the replies to a list. Raises AppError at the first failure."""
    history, gaps = [turn.to_dict() for turn in case.history], iter([one.gap_days for one in case.sessions[1:]])
    values: dict[str, Any] = {"case": case.id, "language": case.language, "history": history}
    async with app.begun(values):
        for place, turn, message in script(case):
            text = message.content
            if place.endswith(".t1") and place != "s1.t1":
                days = next(gaps)
                if app.adapter.pause is not None:
                    await app.call(app.adapter.pause, values | {"days": days})
                    text = turn.user
            started = time.monotonic()
            reply = await app.send(values | {"text": text})
            seconds = round(time.monotonic() - started, 3)
            replies.append(Response(_name(case, place), 0, reply, "stop", seconds=seconds))
    return replies
