"""Answers that never end, or are too large, live and about batch jobs: read so far and no further."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import httpx2
import openai
import pytest
from hosted_made import PROVIDERS, Api, Books, completion, reasons, requests_of
from loopback import message

from h2htalk.chat import server
from h2htalk.chat.batch.job_apis import AnthropicJobs, JobCallError, OpenAIJobs
from h2htalk.chat.hosted import hosted_chat
from h2htalk.chat.hosted.hosted_chat import connection_failure, open_connection
from h2htalk.data.responses import Failure

pytestmark = pytest.mark.usefixtures("hosted_loop")
MOST = 2**20


class Flood(BaseHTTPRequestHandler):
    """Answers with the status and the kind that the last message or the end of the path names: `200 endless`."""

    protocol_version = "HTTP/1.1"
    sent = 0

    def do_GET(self) -> None:
        self.flood(self.path.rsplit("/", 1)[-1].replace("-", " "))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.flood(asked["messages"][-1]["content"])

    def flood(self, order: str) -> None:
        status, _, kind = order.partition(" ")
        plain = completion("I am here.") if "chat" in self.path else message("I am here.")
        body = json.dumps(plain).encode()
        self.send_response(int(status))
        self.send_header("content-type", "application/json")
        if kind == "endless":
            self.send_header("connection", "close")
            self.end_headers()
            self.pour()
            return
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pour(self) -> None:
        try:
            while True:
                Flood.sent += self.wfile.write(b" " * 65536)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for transport in (hosted_chat, server):
        monkeypatch.setattr(transport, "LARGEST_REPLY", MOST)
    Flood.sent = 0
    flood = ThreadingHTTPServer(("127.0.0.1", 0), Flood)
    thread = threading.Thread(target=flood.serve_forever, args=(0.02,))
    thread.start()
    url = f"http://127.0.0.1:{flood.server_port}"
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    yield url
    flood.shutdown()
    thread.join()
    flood.server_close()


def test_an_endless_answer_is_cut_paid_and_not_asked_again(url: str, api: Api) -> None:
    books = Books()
    chat = api.open(f"{url}/v1", calls=books, concurrency=1, timeout=20)
    outcomes = chat.complete(requests_of("200 plain", "200 endless", "500 endless", "200 plain"))
    large = Failure("malformed_reply", "the answer is larger than 1 MB")
    assert outcomes[1:3] == [large, large]
    assert reasons(outcomes) == ["ok", "malformed_reply", "malformed_reply", "ok"]
    assert not api.paid or (books.totals().paid, books.totals().possibly_paid) == (4, 0)
    assert Flood.sent < 64 * MOST  # the sockets between hold some, too


def retrieve(api: str, pool: httpx2.Client, job: str) -> object:
    """Ask about a job through the provider's SDK."""
    if api == "openai":
        return OpenAIJobs(openai.OpenAI(http_client=pool), connection_failure).retrieve(job)
    return AnthropicJobs(anthropic.Anthropic(http_client=pool), connection_failure).retrieve(job)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("api", PROVIDERS)
def test_an_endless_answer_about_a_job_is_cut(url: str, api: str, status: int) -> None:
    with open_connection(url) as pool, pytest.raises(JobCallError, match="larger than 1 MB"):
        retrieve(api, pool, f"{status}-endless")


def test_results_of_a_job_have_no_bound_but_that_of_a_line(url: str) -> None:
    with open_connection(url) as pool:
        headers = {"accept": hosted_chat.BINARY}
        with pool.stream("GET", f"{url}/200-endless", headers=headers) as results:
            read = 0
            for chunk in results.iter_bytes():
                read += len(chunk)
                if read > 3 * MOST:
                    break
        assert read > 3 * MOST
