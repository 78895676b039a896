"""Answers about batch jobs that never end, are compressed or lead elsewhere: read so far and no further."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import httpx2
import pytest
from hosted_made import Api

from h2htalk.chat.batch.job_apis import JobCallError
from h2htalk.chat.hosted import hosted_chat
from h2htalk.chat.hosted.hosted_chat import AnthropicChat, HostedChat, OpenAIChat, connection_failure

CHATS: dict[str, type[HostedChat]] = {"openai": OpenAIChat, "anthropic": AnthropicChat}
MOST = hosted_chat.LARGEST_REPLY


class Body(httpx2.SyncByteStream):
    """A body without end, counted as it is read."""

    read = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.read += 65536
            yield b" " * 65536


def ask(provider: Api, patch: pytest.MonkeyPatch, answer: httpx2.Response) -> JobCallError:
    """Ask for a job through the SDK, at a provider that answers by that; returns the error."""
    hosts = []
    patch.setattr(httpx2.HTTPTransport, "handle_request", lambda _, asked: hosts.append(asked.url.host) or answer)
    chat = CHATS[provider.name]
    with chat.open_client(*chat.read_environment()) as client, pytest.raises(JobCallError) as caught:
        chat.jobs(client, chat.wire("made-up"), connection_failure).retrieve("job")
    assert len(hosts) == 1, "what is refused is not sent again, nor elsewhere"
    return caught.value


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_answer_about_a_job_is_cut(provider: Api, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    body = Body()
    assert "larger than 16 MB" in ask(provider, monkeypatch, httpx2.Response(status, stream=body)).failed.message
    assert MOST <= body.read < 2 * MOST


def test_a_compressed_answer_is_bounded_before_it_is_unpacked(provider: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_chat, "LARGEST_COMPRESSED", 10_000)
    answer = httpx2.Response(200, headers={"content-encoding": "gzip"}, content=iter([gzip.compress(b" " * 2**24)]))
    assert "larger than" in ask(provider, monkeypatch, answer).failed.message


def test_a_redirect_is_not_followed_and_gets_no_key(provider: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = httpx2.Response(307, headers={"location": "https://elsewhere.example/v1"})
    error = ask(provider, monkeypatch, elsewhere)
    assert (error.status, error.refused) == (307, True)


def test_results_of_a_job_have_no_bound_but_that_of_a_line(hosted_loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    body = Body()
    answer = httpx2.Response(200, stream=body)
    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", lambda *_: answer)
    with (
        hosted_chat.open_connection("https://api.example/v1") as pool,
        pool.stream("GET", "https://api.example/v1", headers={"accept": hosted_chat.BINARY}) as results,
    ):
        chunks = results.iter_bytes()
        while body.read <= MOST:
            next(chunks)
