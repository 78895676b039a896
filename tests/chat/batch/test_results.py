"""What providers may answer about batch jobs, well-formed or not, and what is made of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.batch.job_apis import JobCallError, json_lines
from h2htalk.chat.hosted import hosted_chat
from h2htalk.chat.hosted.hosted_chat import (
    AnthropicChat,
    HostedChat,
    OpenAIChat,
    connection_failure,
)
from h2htalk.chat.store.call_records import BatchRecord
from support.doubles.batch_double import BatchDouble, fail_at
from support.hosted_apis import Api

RECORD = BatchRecord("0123456789ab", "generate", "m", 1_800_000_000.0, file="file-1")


@given(st.lists(st.text(max_size=20), max_size=10), st.integers(1, 30), st.booleans())
def test_lines_are_the_same_however_the_stream_is_cut(
    texts: list[str], size: int, ended: bool
) -> None:
    rows = [json.dumps({"text": text}, ensure_ascii=len(text) % 2 == 0) for text in texts]
    content = "\n".join(rows + [""] * ended).encode("utf-8", "backslashreplace")
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    assert list(json_lines(chunks)) == [{"text": text} for text in texts]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"7", b"null", b'"x"', b"\xff\xfe{}", b"{}{}", b"[" * 100_000]
)
def test_a_line_that_is_no_object_is_none(line: bytes) -> None:
    assert list(json_lines([line + b"\n", b'{"a": 1}\n'])) == [None, {"a": 1}]


def test_a_line_without_end_is_an_error_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("h2htalk.chat.batch.job_apis.LONGEST_LINE", 1000)
    with pytest.raises(JobCallError, match="longer than"):
        list(json_lines(b"x" * 100 for _ in range(20)))


def read_one(double: BatchDouble, row: dict[str, Any]) -> Any:
    job = double.create(double.provider, [("x-0", {"messages": [{"content": "a"}]})])
    double.now += 100.0
    double.end(job)
    job.results = [row]
    jobs = double.jobs_api()
    return next(iter(jobs.results(jobs.retrieve(job.id))))


ERROR = {"error": {"message": "no", "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    ("provider", "row", "kind", "status"),
    [
        (
            "openai",
            {"response": {"status_code": 200, "request_id": "r", "body": {}}, "error": None},
            "succeeded",
            200,
        ),
        (
            "openai",
            {"response": {"status_code": 400, "body": ERROR}, "error": None},
            "errored",
            400,
        ),
        (
            "openai",
            {"response": None, "error": {"code": "batch_expired", "message": "x"}},
            "expired",
            500,
        ),
        (
            "openai",
            {"response": None, "error": {"code": "request_timeout", "message": "x"}},
            "errored",
            500,
        ),
        ("anthropic", {"result": {"type": "succeeded", "message": {"id": "m"}}}, "succeeded", 200),
        (
            "anthropic",
            {"result": {"type": "errored", "error": {"type": "error", "error": {}}}},
            "errored",
            0,
        ),
        ("anthropic", {"result": {"type": "canceled"}}, "canceled", 200),
        ("anthropic", {"result": {"type": "expired"}}, "expired", 200),
    ],
)
def test_a_line_says_how_it_ended(
    provider: str, row: dict[str, Any], kind: str, status: int, tmp_path: Path
) -> None:
    result = read_one(BatchDouble(provider, tmp_path), {"custom_id": "x-0"} | row)
    assert (result.custom_id, result.kind, result.status) == ("x-0", kind, status)
    assert result.free == (kind == "errored" and provider == "anthropic")


@pytest.mark.parametrize(
    "row",
    [
        *({}, {"custom_id": ""}, {"custom_id": 7}, {"custom_id": "x-0"}),
        *({"custom_id": "x-0", "response": {"status_code": code}} for code in ("200", True)),
        {"custom_id": "x-0", "response": [], "error": "broken"},
        {"custom_id": "x-0", "error": {"message": "without a code"}},
        *(
            {"custom_id": "x-0", "result": found}
            for found in ("succeeded", {"type": "vanished"}, {"type": None})
        ),
        {"custom_id": ["x-0"], "result": {"type": "expired"}},
    ],
)
def test_a_line_that_says_nothing_is_none(double: BatchDouble, row: dict[str, Any]) -> None:
    assert read_one(double, row) is None


REACHED = (
    httpx2.ReadError,
    httpx2.ReadTimeout,
    httpx2.WriteError,
    httpx2.WriteTimeout,
    httpx2.RemoteProtocolError,
)
NOT_REACHED = (httpx2.ConnectError, httpx2.ConnectTimeout)


@pytest.mark.parametrize(
    ("error", "reached"), [*((e, True) for e in REACHED), *((e, False) for e in NOT_REACHED)]
)
def test_trouble_says_whether_anything_was_sent(
    double: BatchDouble, error: type[Exception], reached: bool
) -> None:
    double.before = fail_at("", error("x"))
    with pytest.raises(JobCallError) as caught:
        double.jobs_api().create(RECORD, [])
    assert (caught.value.status, caught.value.reached) == (None, reached)
    assert len(double.calls) == 1, "the SDK's own retries are off"


HOSTED: dict[str, type[HostedChat]] = {"openai": OpenAIChat, "anthropic": AnthropicChat}
MOST = hosted_chat.LARGEST_REPLY


class Body(httpx2.SyncByteStream):
    read = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.read += 65536
            yield b" " * 65536


def ask_for_a_job(
    provider: Api, patch: pytest.MonkeyPatch, answer: httpx2.Response
) -> JobCallError:
    """Ask for a job through the SDK, at a provider that answers by that; returns the error."""
    hosts = []
    patch.setattr(
        httpx2.HTTPTransport,
        "handle_request",
        lambda _, asked: hosts.append(asked.url.host) or answer,
    )
    chat = HOSTED[provider.name]
    with (
        chat.open_client(*chat.read_environment()) as client,
        pytest.raises(JobCallError) as caught,
    ):
        chat.jobs(client, chat.wire("made-up"), connection_failure).retrieve("job")
    assert len(hosts) == 1, "what is refused is not sent again, nor elsewhere"
    return caught.value


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_answer_about_a_job_is_cut(
    provider: Api, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    body = Body()
    error = ask_for_a_job(provider, monkeypatch, httpx2.Response(status, stream=body))
    assert "larger than 16 MB" in error.failed.message
    assert MOST <= body.read < 2 * MOST


def test_a_compressed_answer_is_bounded_before_it_is_unpacked(
    provider: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_chat, "LARGEST_COMPRESSED", 10_000)
    answer = httpx2.Response(
        200, headers={"content-encoding": "gzip"}, content=iter([gzip.compress(b" " * 2**24)])
    )
    assert "larger than" in ask_for_a_job(provider, monkeypatch, answer).failed.message


def test_a_redirect_is_not_followed_and_gets_no_key(
    provider: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = httpx2.Response(307, headers={"location": "https://elsewhere.example/v1"})
    error = ask_for_a_job(provider, monkeypatch, elsewhere)
    assert (error.status, error.refused) == (307, True)


def test_results_of_a_job_have_no_bound_but_that_of_a_line(
    hosted_loop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = Body()
    answer = httpx2.Response(200, stream=body)
    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", lambda *_: answer)
    with (
        hosted_chat.open_connection("https://api.example/v1") as pool,
        pool.stream(
            "GET", "https://api.example/v1", headers={"accept": hosted_chat.BINARY}
        ) as results,
    ):
        chunks = results.iter_bytes()
        while body.read <= MOST:
            next(chunks)
