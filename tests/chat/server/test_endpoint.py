"""`server:MODEL@URL`: what the name may be, and where key and proxy come from."""

from __future__ import annotations

from hashlib import sha256

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.hosted.hosted_chat import OpenAIChat
from h2htalk.chat.server import KEY_VARIABLE, ServerChat, parse_endpoint, read_key, read_proxy
from h2htalk.errors import ConfigError

PATH_HASH = sha256(b"/team-4711/openai").hexdigest()[:12]


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("qwen2.5@http://127.0.0.1:8000/v1", "qwen2.5", "http://127.0.0.1:8000/v1/chat/completions"),
        ("Qwen/Qwen2.5-7B@https://host/v1/", "Qwen/Qwen2.5-7B", "https://host/v1/chat/completions"),
        ("llama3:8b@http://host", "llama3:8b", "http://host/chat/completions"),
        ("a@b:c/d@http://host:1/x", "a@b:c/d", "http://host:1/x/chat/completions"),
        ("m@http://old@http://host/v1", "m@http://old", "http://host/v1/chat/completions"),
        ("m@http://[::1]:8000/v1", "m", "http://[::1]:8000/v1/chat/completions"),
        ("m@http://host/v1/chat/completions", "m", "http://host/v1/chat/completions"),
        ("m@http://h/v1?api-version=2024-10-21", "m", "http://h/v1/chat/completions?api-version=2024-10-21"),
    ],
)
def test_a_name_is_split_at_its_last_url(name: str, model: str, url: str) -> None:
    endpoint = parse_endpoint(name)
    assert (endpoint.model, endpoint.url) == (model, url)


@pytest.mark.parametrize(
    "name",
    ["", "qwen@", " @http://host/v1", "m@ftp://host", "m@host:80"],
)
def test_a_name_without_model_or_url_is_answered_with_an_example(name: str) -> None:
    with pytest.raises(ConfigError, match=r"such as server:qwen2\.5@http://127\.0\.0\.1:8000/v1$"):
        open_chat(f"server:{name}")


@pytest.mark.parametrize(
    "url",
    ["http:///v1", "http://[::1", "http://host:99999/v1", "http://a b/v1", "http://" + "é" * 80 + "/v1"],
)
def test_a_url_without_a_usable_host_or_port_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no usable URL"):
        open_chat(f"server:m@{url}")


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:hunter2@host/v1",
        "http://h/v1?t=hunter2",
        "http://h/v1?api-version=1&sig=hunter2",
        "http://h/#hunter2",
    ],
)
def test_a_url_that_may_hold_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match=KEY_VARIABLE) as caught:
        open_chat(f"server:m@{url}")
    assert "hunter2" not in str(caught.value)


def test_the_subject_is_the_model_not_the_place() -> None:
    here, there = (open_chat(f"server:m@http://{host}/v1") for host in ("127.0.0.1:8000", "node7:9000"))
    assert here.subject == there.subject == {"engine": "server", "model": "m"}


@pytest.mark.parametrize(("value", "key"), [("", None), (" \n", None), ("sk-1", "sk-1"), ("sk-1\n", "sk-1")])
def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, key: str | None) -> None:
    monkeypatch.setenv(KEY_VARIABLE, value)
    assert read_key() == key


@pytest.mark.parametrize("value", ["sk-1\r\nx-admin: yes", "sk 1", "sk-é", "sk-\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, value)
    with pytest.raises(ConfigError, match=KEY_VARIABLE) as caught:
        open_chat("server:m@http://host/v1")
    assert value not in str(caught.value)


def test_a_proxy_is_used_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("https_proxy", "http://proxy:3129")
    monkeypatch.setenv("no_proxy", "inside.example")
    found = {
        url: read_proxy(parse_endpoint(f"m@{url}"))
        for url in (
            "http://far.example/v1",
            "https://far.example/v1",
            "http://inside.example/v1",
            "http://127.0.0.1:80/v1",
            "http://127.3.2.1/v1",
            "http://localhost/v1",
            "http://[::1]:8/v1",
        )
    }
    assert list(found.values()) == ["http://proxy:3128", "http://proxy:3129", None, None, None, None, None]


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"attempts": 0}, {"timeout": 0.0}, {"timeout": float("nan")}])
def test_options_that_would_never_ask_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="1 or more"):
        ChatOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        (None, "https://api.openai.com/v1"),
        ("https://API.openai.com/v1/", "https://api.openai.com/v1"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://gateway.example/team-4711/openai?api-version=1", f"https://gateway.example/sha256:{PATH_HASH}"),
    ],
)
def test_the_endpoint_that_a_run_records_holds_nothing_secret(
    address: str | None, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert OpenAIChat("gpt-4o", ChatOptions()).endpoint == endpoint
    assert ServerChat("m@http://Host:8/v1/chat/completions?api-version=1", ChatOptions()).endpoint == "http://host:8/v1"
