"""Streams that nobody asked for: told from a whole reply by the body, and a reason to stop at the first one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from h2htalk.chat.reply_streams import stream_form
from h2htalk.errors import ConfigError
from support.doubles.loopback import REPLY, Answer, LoopbackServer
from support.hosted_apis import Api, reasons, requests_of

pytestmark = pytest.mark.usefixtures("hosted_loop")
CHUNK = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "I am"}}]}
PIECE = json.dumps(CHUNK)
SSE = f"data: {PIECE}\n\ndata: [DONE]\n\n"
FORMS = {
    "sse": (
        SSE,
        SSE.replace("\n", "\r\n"),
        SSE.replace("\n", "\r"),
        f": keep-alive\n\n{SSE}",
        f"\ufeff\n\nevent: message\nid: 1\nretry: 10\ndata:{PIECE}",
        f'event: message_start\ndata: {PIECE}\n\nevent: ping\ndata: {{"type": "ping"}}\n\n',
        "data: I hear\n\ndata: you.\n\n",
        f"data: {PIECE[:20]}",
    ),
    "lines": (f"{PIECE}\n{PIECE}", f"{PIECE}\r\n{PIECE}\r\n", f'{PIECE}\n{{"done": tr'),
    "json": (
        PIECE,
        f"\n{PIECE}\n",
        json.dumps(CHUNK, indent=1),
        '"data: I hear you"',
        "[]",
        "null",
    ),
    None: (
        "",
        "<html>data: no</html>",
        "I hear you.\ndata: nothing",
        "{not json",
        "upstream error\n{}",
    ),
}


@pytest.mark.parametrize(
    ("form", "body"), [(form, body) for form, bodies in FORMS.items() for body in bodies]
)
def test_the_form_of_a_body(form: str | None, body: str) -> None:
    assert stream_form(body) == form
    assert stream_form(body.encode()) == form


@pytest.mark.parametrize("name", ["server", "openai", "anthropic"])
@pytest.mark.parametrize("header", ["text/event-stream; charset=utf-8", "application/json"])
def test_a_server_that_streams_stops_a_run_at_its_first_reply(
    name: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item was asked for four times, and all were malformed."""
    api = Api(name, monkeypatch)
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], _: int) -> Answer:
        bodies.append(body)
        if body.get("stream") is False:
            return Answer(api.answer())
        return Answer(SSE, headers={"content-type": header})

    with LoopbackServer(reply=reply) as server:
        chat = api.open(server.url, concurrency=2)
        with pytest.raises(
            ConfigError, match=r"a stream of server-sent events .*--engine-option stream=false"
        ):
            chat.complete(requests_of(*"abcdefgh"))
        assert len(bodies) <= 2
        asked = api.open(server.url, concurrency=2, engine_options={"stream": "false"})
        assert reasons(asked.complete(requests_of(*"abcdefgh"))) == ["ok"] * 8
        assert asked.subject["request_form"] == "stream=false"


def test_a_server_that_streams_whatever_is_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackServer(reply=lambda *_: Answer(SSE)) as server:
        chat = Api("server", monkeypatch).open(server.url, engine_options={"stream": "false"})
        with pytest.raises(ConfigError, match="turn streaming off at the server or gateway"):
            chat.complete(requests_of("a"))


def test_one_stream_after_replies_were_read_fails_one_item(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, _, server = Api("server", monkeypatch).run({"b": [Answer(SSE)]}, "a", "b", "c")
    assert reasons(outcomes) == ["ok", "ok", "ok"]
    assert server.requests == 4  # asked once more, as after any malformed reply


@pytest.mark.parametrize(
    "message",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "Non-streaming output is not supported by this model",
        "stream must be set to true",
        "该模型仅支持流式调用",
        "parameter.enable_thinking must be set to false for non-streaming calls",  # Qwen's open models
    ],
)
def test_a_model_that_only_streams_stops_a_run(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = Answer({"error": {"message": message, "code": "invalid_parameter_error"}}, 400)
    with LoopbackServer(reply=lambda *_: error) as server:
        chat = Api("server", monkeypatch).open(server.url, concurrency=1)
        with pytest.raises(ConfigError, match="in streams only"):
            chat.complete(requests_of(*"abcd"))
        assert server.requests == 1


def test_a_reply_that_speaks_of_data_is_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (REPLY, SSE, "data: three cups of tea, no sleep."):
        outcomes, _, _ = Api("server", monkeypatch).run({"a": [text]}, "a")
        assert reasons(outcomes) == ["ok"]
