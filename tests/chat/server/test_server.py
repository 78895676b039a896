"""`server:MODEL@URL`: what the name may be, where key and proxy come from, and what a server is asked."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.hosted.hosted_chat import OpenAIChat
from h2htalk.chat.protocol import Call, Message, Request, Sampling
from h2htalk.chat.server import (
    KEY_VARIABLE,
    ServerChat,
    ServerWire,
    parse_endpoint,
    read_key,
    read_proxy,
)
from h2htalk.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        (
            "qwen2.5@http://127.0.0.1:8000/v1",
            "qwen2.5",
            "http://127.0.0.1:8000/v1/chat/completions",
        ),
        ("Qwen/Qwen2.5-7B@https://host/v1/", "Qwen/Qwen2.5-7B", "https://host/v1/chat/completions"),
        ("a@b:c/d@http://host:1/x", "a@b:c/d", "http://host:1/x/chat/completions"),
        ("m@http://[::1]:8000/v1/chat/completions", "m", "http://[::1]:8000/v1/chat/completions"),
        (
            "m@http://h/v1?api-version=2024-10-21",
            "m",
            "http://h/v1/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_a_name_is_split_at_its_last_url(name: str, model: str, url: str) -> None:
    assert parse_endpoint(name) == (model, url)


EXAMPLE = r"such as server:qwen2\.5@http://127\.0\.0\.1:8000/v1$"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        *(
            (name, EXAMPLE)
            for name in ("", "qwen@", " @http://host/v1", "m@ftp://host", "m@host:80")
        ),
        *(
            (f"m@http://{url}", "no usable URL")
            for url in ("/v1", "[::1", "host:99999/v1", "a b/v1", "é" * 80 + "/v1")
        ),
        *(
            (f"m@http://{url}hunter2", KEY_VARIABLE)
            for url in ("h/v1?t=", "h/v1?api-version=1&sig=", "h/#")
        ),
        ("m@http://ann:hunter2@host/v1", KEY_VARIABLE),
    ],
)
def test_a_name_that_cannot_be_used_or_may_hold_a_secret_is_refused(name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice) as caught:
        open_chat(f"server:{name}")
    assert "hunter2" not in str(caught.value)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, key in ((" \n", None), ("sk-1\n", "sk-1")):
        monkeypatch.setenv(KEY_VARIABLE, value)
        assert read_key() == key
    for value in ("sk-1\r\nx-admin: yes", "sk 1", "sk-é", "sk-\x7f"):  # no header can carry it
        monkeypatch.setenv(KEY_VARIABLE, value)
        with pytest.raises(ConfigError, match=KEY_VARIABLE) as caught:
            open_chat("server:m@http://host/v1")
        assert value not in str(caught.value)


def test_a_proxy_is_used_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = {"http": "http://proxy:3128", "https": "http://proxy:3129"}
    for name, value in (proxies | {"no": "inside.example"}).items():
        monkeypatch.setenv(f"{name}_proxy", value)
    assert [read_proxy(f"{scheme}://far.example/v1") for scheme in proxies] == [*proxies.values()]
    near = ("inside.example", "127.0.0.1:80", "127.3.2.1", "localhost", "[::1]:8")
    assert {read_proxy(f"http://{host}/v1") for host in near} == {None}


def test_options_that_would_never_ask_are_refused() -> None:
    for options in (
        {"concurrency": 0},
        {"attempts": 0},
        {"timeout": 0.0},
        {"timeout": float("nan")},
    ):
        with pytest.raises(ConfigError, match="1 or more"):
            ChatOptions(**options)  # type: ignore[arg-type]


PATH_HASH = sha256(b"/team-4711/openai").hexdigest()[:12]


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        (None, "https://api.openai.com/v1"),
        ("https://API.openai.com/v1/", "https://api.openai.com/v1"),
        (
            "https://gateway.example/team-4711/openai?api-version=1",
            f"https://gateway.example/sha256:{PATH_HASH}",
        ),
    ],
)
def test_an_endpoint_holds_no_secret(
    address: str | None, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert OpenAIChat("gpt-4o", ChatOptions()).endpoint == endpoint
    assert (
        ServerChat("m@http://Host:8/v1/chat/completions?api-version=1", ChatOptions()).endpoint
        == "http://host:8/v1"
    )
    here, there = (
        open_chat(f"server:m@http://{host}/v1") for host in ("127.0.0.1:8000", "node7:9000")
    )
    assert here.subject == there.subject == {"engine": "server", "model": "m"}  # not the place


def body_of(**sampling: Any) -> dict[str, Any]:
    messages = (Message("system", "Be kind."), Message("user", "我今天很累 \ud83d"))
    request = Request("id", messages, Sampling(**sampling))
    return dict(ServerWire("m", None, "http://host/v1").body(Call((0,), (request,))))


def test_a_request_says_model_messages_and_sampling_and_thinking_widens_its_budget() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "我今天很累 \ud83d"},
    ]
    asked = {"model": "m", "messages": messages, "max_tokens": 96}
    drawn = {"temperature": 0.7, "top_p": 0.9, "seed": 41}
    assert body_of(max_tokens=96, **drawn) == asked | drawn
    assert body_of(temperature=None, max_tokens=96, seed=41) == asked  # left to the model
    for thinking, budget in ((0, 256), (1000, 1256)):
        # Qwen's and most others' word, and DeepSeek's and Granite's.
        switch = {
            "chat_template_kwargs": dict.fromkeys(("enable_thinking", "thinking"), thinking > 0)
        }
        assert (switch | {"max_tokens": budget}).items() <= body_of(thinking=thinking).items()
    assert "chat_template_kwargs" not in body_of(thinking=None)
