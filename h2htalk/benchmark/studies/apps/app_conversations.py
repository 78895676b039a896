"""Talk to a companion application: a session of its own for each case, turn by turn, with pauses between sessions.

The application keeps its own state, so a case that breaks off (an error, a timeout, a session that expired) begins
again in a new session, and its replies are stored only when it is whole: a killed study repeats the cases in flight.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.benchmark.studies.apps.app_adapter import Adapter, Call, at_place, filled, filled_path, read_adapter
from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.settings import APP, APP_MODEL, StudySpec
from h2htalk.benchmark.studies.study_folder import Study
from h2htalk.chat.live_calls import doubling_wait, run_all, run_alone
from h2htalk.chat.protocol import FailedCall
from h2htalk.chat.provider_answers import clean
from h2htalk.chat.server.aiohttp_transport import exchange, open_session
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.case import Case, script
from h2htalk.data.responses import FailedResponse, Failure, Response
from h2htalk.errors import ConfigError
from h2htalk.progress import Progress

if TYPE_CHECKING:
    from aiohttp import ClientSession

REFUSED = "http_401"
TRIED = {"en": "Hello, how are you today?", "zh": "你好，今天过得怎么样？"}  # the message of --try
NEEDS_HISTORY = "needs_history"
Outcome = Response | FailedResponse


class AppError(Exception):
    """A call to the application failed; `reason` is a short code. The message may hold a key and be long."""

    def __init__(self, reason: str, message: str, place: str = "") -> None:
        super().__init__(message)
        self.reason, self.place = reason, place


@dataclass(slots=True)
class _App:
    """An application: its address, how to talk to it, and the open connections."""

    url: str
    adapter: Adapter
    seconds: float  # that a call may take
    session: ClientSession
    reached: bool = False  # whether it ever answered: then a connection that drops concerns one case

    async def call(self, call: Call, values: dict[str, Any]) -> str:
        """Make a call and return its body. Raises AppError."""
        body, url = filled(call.body, values), self.url + filled_path(call.path, values)
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
        return self.adapter.masked("".join(texts))  # not before: a stream may cut a key in two, and JSON escape it

    def shown(self, error: AppError) -> str:
        """What an error says, short and without the key."""
        return clean(self.adapter.masked(str(error)))


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
async def _open_app(spec: StudySpec, adapter: Adapter, headers: dict[str, str]) -> AsyncIterator[_App]:
    ask = spec.ask
    async with open_session(ask.concurrency, ask.timeout, headers) as session:
        yield _App(ask.model.removeprefix(APP_MODEL).rstrip("/"), adapter, ask.timeout, session)


def try_app(spec: StudySpec) -> str:
    """Send one message to an application; return it with the reply that the adapter reads. Nothing is written.

    Raises:
        ConfigError: the application cannot be reached or refuses, or the adapter does not fit its reply.
    """
    adapter, language = read_adapter(Path(str(spec.app))), spec.ask.language or "en"
    headers = adapter.read_headers()
    values: dict[str, Any] = {"case": "try", "language": language, "history": []}

    async def talk() -> str:
        async with _open_app(spec, adapter, headers) as app:
            try:
                async with app.begun(values):
                    return await app.send(values | {"text": TRIED[language]})
            except AppError as error:
                raise ConfigError(f"{app.url}: {error.reason}: {app.shown(error)}") from error

    return f"sent: {TRIED[language]}\nread at {adapter.send.reply}: {run_alone(talk)}"


def converse(study: Study, calls: CallStore) -> None:
    """Talk through every case that is not stored whole.

    Raises:
        ConfigError: the adapter cannot be used, or the application cannot be reached or refuses the key.
        DataError: replies cannot be stored.
    """
    ask, adapter = study.spec.ask, read_adapter(Path(str(study.spec.app)))
    headers = adapter.read_headers()
    whole = {name for name, one in study.replies().items() if isinstance(one, Response)}
    cases = [case for case in study.cases if not whole.issuperset(_name(case, place) for place, *_ in script(case))]
    todo = iter(cases)

    async def talk() -> None:
        with Progress("cases", len(cases)) as progress:
            async with _open_app(study.spec, adapter, headers) as app:

                async def work() -> None:
                    for case in todo:
                        outcomes = await _talk(app, case, ask.attempts)
                        calls.append(*({**one.to_dict(), "stage": APP, "item": case.id} for one in outcomes))
                        progress.advance(isinstance(outcomes[-1], FailedResponse))

                await run_all([asyncio.create_task(work()) for _ in range(min(ask.concurrency, len(cases)))])

    if cases:
        run_alone(talk)


def _name(case: Case, place: str) -> str:
    return StudyReply(APP, case.id, place, LIVE).key


async def _talk(app: _App, case: Case, attempts: int) -> list[Outcome]:
    """Talk through a case; after a failure again from its beginning. The replies, or the last attempt's failure."""
    start = app.adapter.start
    if case.history and (start is None or not start.uses("history")):
        failure = Failure(NEEDS_HISTORY, "the case begins within a conversation; use {history} in [start]", 0)
        return [FailedResponse(_name(case, "s1.t1"), 0, failure)]
    history = [turn.to_dict() for turn in case.history]
    for attempt in range(1, attempts + 1):
        try:
            return await _turns(app, case, {"case": case.id, "language": case.language, "history": history})
        except AppError as error:
            if error.reason == REFUSED:  # so would every other case be
                raise ConfigError(f"{app.url}: refuses the key (401), check [headers]: {app.shown(error)}") from error
            last = error
        if attempt < attempts:
            await asyncio.sleep(doubling_wait(attempt))
    if last.reason == "connection" and not app.reached:
        raise ConfigError(f"{app.url}: cannot be reached: {app.shown(last)}")
    failure = Failure(last.reason, app.shown(last), attempts)
    return [FailedResponse(_name(case, last.place or "s1.t1"), 0, failure)]


async def _turns(app: _App, case: Case, values: dict[str, Any]) -> list[Outcome]:
    replies: list[Outcome] = []
    sessions = iter(case.sessions[1:])
    async with app.begun(values):
        for place, turn, message in script(case):
            text = message.content
            if place.endswith(".t1") and place != "s1.t1":
                days = next(sessions).gap_days
                if app.adapter.pause is not None:
                    await app.call(app.adapter.pause, values | {"days": days})
                    text = turn.user
            started = time.monotonic()
            try:
                reply = await app.send(values | {"text": text})
            except AppError as error:
                error.place = place
                raise
            seconds = round(time.monotonic() - started, 3)
            replies.append(Response(_name(case, place), 0, reply, "stop", seconds=seconds))
    return replies
