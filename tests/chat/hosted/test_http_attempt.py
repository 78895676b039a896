"""The live loop of hosted APIs: what ends a run, what stays one call's own, and what is never repeated."""

from __future__ import annotations

import socket

import httpx2
import pytest
from hosted_made import (
    KEYS,
    Books,
    Double,
    error,
    faults,
    ok,
    reasons,
    requests_of,
    run,
    slowly,
)

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.engines import open_chat
from h2htalk.chat.hosted.hosted_chat import AnthropicChat, OpenAIChat
from h2htalk.chat.hosted.sdk_transport import open_pool
from h2htalk.chat.protocol import Reply
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError

pytestmark = pytest.mark.usefixtures("hosted_loop")


# What ends the run


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(401, "bad key"), ConfigError),
        (error(402, "pay"), ModelCallError),
        (error(404, "gone"), ConfigError),
    ],
)
def test_trouble_for_all_ends_the_run_at_any_time_and_keeps_what_was_on_its_way(
    provider: str, answer: httpx2.Response, kind: type[H2HTalkError]
) -> None:
    answers = {"c": [answer], "b": [lambda: slowly(0.2, ok(provider))]}
    double = faults(answers, provider)
    books, requests = Books(), requests_of(*"abcdefgh")
    chat = double.chat(ChatOptions(concurrency=2, ledger=books))
    with pytest.raises(kind):
        chat.complete(requests, books.stored(requests))
    assert {"stored a", "paid a", "stored b", "paid b", "free c"} <= set(books.story)
    assert (books.open_count, books.totals().possibly_paid, len(double.asked)) == (0, 0, 3)


def test_what_is_not_the_api_ends_the_run_after_a_few_answers_which_may_be_paid(
    provider: str,
) -> None:
    page = [httpx2.Response(200, text="<html>Welcome</html>")]
    books, texts = Books(), [str(number) for number in range(20)]
    with pytest.raises(ConfigError, match=rf"is not the API of .*the first 8 .*Welcome.*{provider.upper()}_BASE_URL"):
        run(provider, {text: list(page) for text in texts}, *texts, ledger=books)
    assert (books.totals().unmetered, books.totals().open) == (8, 0)


@pytest.mark.parametrize("charset", ["zlib_codec", "undefined", "idna", "rot13"])
def test_an_error_in_a_charset_that_is_none_is_that_calls_own(provider: str, charset: str) -> None:
    headers = {"content-type": f"application/json; charset={charset}"}
    double = Double(provider, lambda body: httpx2.Response(500, content=b"\xff..", headers=headers))
    pool = open_pool("http://127.0.0.1", 1)
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(double), event_hooks=pool.event_hooks)
    chat_class = OpenAIChat if provider == "openai" else AnthropicChat
    assert reasons(chat_class("m", ChatOptions(attempts=1), client).complete(requests_of("a"))) == ["http_500"]


@pytest.mark.parametrize("text", ["örg", "org\nname"])
def test_a_header_that_cannot_be_sent_is_free_and_not_quoted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        books = Books()
        with pytest.raises(ModelCallError, match=r"nothing was sent: .* a header from the env") as caught:
            OpenAIChat("m", ChatOptions(ledger=books)).complete(requests_of("a"))
    assert text not in str(caught.value)
    assert (books.totals().free, books.totals().possibly_paid) == (1, 0)


@pytest.mark.parametrize("where", ["header", "id", "finish"])
def test_a_key_that_comes_back_as_a_name_or_a_reason_is_not_kept(provider: str, where: str) -> None:
    key = KEYS[provider]
    plain = ok(provider, **({"id": key} if where == "id" else {}))
    body = plain.json()
    if where == "finish":
        body |= {"stop_reason": key}
        for choice in body.get("choices", []):
            choice["finish_reason"] = key
    headers = {"x-request-id": key} if where == "header" else {}
    outcomes, _, _ = run(provider, {"a": [httpx2.Response(200, json=body, headers=headers)]}, "a")
    assert isinstance(outcomes[0], Reply)
    assert "[key]" in repr(outcomes[0])
    assert key not in repr(outcomes[0])


@pytest.mark.parametrize("failure", [httpx2.ConnectError("refused"), httpx2.ConnectTimeout("silent")])
def test_nothing_at_the_address_ends_the_run_before_the_first_answer(provider: str, failure: Exception) -> None:
    with pytest.raises(ModelCallError, match=f"{provider.upper()}_BASE_URL"):
        run(provider, {"a": [failure]}, "a", "b")
    outcomes, _, books = run(provider, {"b": [failure]}, "a", "b")
    assert reasons(outcomes) == ["ok", "ok"]
    assert books.story[3:5] == ["sent b", "free b"]


def test_a_closed_port_is_named_without_the_key(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", "http://127.0.0.1:9/v1")
    books = Books()
    with pytest.raises(ModelCallError, match=r"^http://127\.0\.0\.1:9 does not answer") as caught:
        open_chat(f"{provider}:made-up", ChatOptions(ledger=books)).complete(requests_of("a"))
    assert KEYS[provider] not in str(caught.value)
    assert (books.totals().free, books.open_count) == (1, 0)


@pytest.mark.parametrize("proxy", ["socks9://me:secret@10.0.0.1", "://", "ftp://me:secret@10.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    provider: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match="ALL_PROXY") as caught:
        open_chat(f"{provider}:made-up").complete(requests_of("a"))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
