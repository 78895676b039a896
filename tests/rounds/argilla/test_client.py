"""Address, key and version: each mistake is told in words, and the key in none of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from argilla_double import OWNER_KEY, ArgillaDouble

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla import client as client_module
from h2htalk.rounds.argilla.client import connect, hub_headers, require_search_engine

pytest.importorskip("argilla")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    with ArgillaDouble() as double:
        monkeypatch.setenv("ARGILLA_API_URL", double.url)
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield double


def refused() -> str:
    with pytest.raises(RoundError) as error:
        require_search_engine(connect(0.0))
    assert OWNER_KEY not in str(error.value)
    return str(error.value)


def test_the_right_server_is_found_of_any_patch(server: ArgillaDouble) -> None:
    for version in (server.version, "2.8.3"):
        server.version = version
        client = connect(0.0)
        assert (client.role, client.url) == ("owner", server.url)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        *(
            ({"version": one}, f"runs Argilla {one}, but rounds need 2.8.*")
            for one in ("2.7.1", "2.80.0", "3.0.0")
        ),
        ({"role": "annotator"}, "belongs to the annotator 'argilla'"),
        ({"search": False}, "the server's search engine does not answer"),
    ],
)
def test_a_server_that_cannot_be_used(server: ArgillaDouble, facts: dict[str, Any], says: str) -> None:
    for name, value in facts.items():
        setattr(server, name, value)
    assert says in refused()


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("not.the.key", "rejects the key in ARGILLA_API_KEY"),
        *((one, "ARGILLA_API_KEY contains invalid characters") for one in ("schlüssel", "a\nb", "a b")),
        (None, "set ARGILLA_API_KEY"),
    ],
)
def test_a_key_that_is_wrong_or_none(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch, key: str | None, says: str
) -> None:
    monkeypatch.delenv("ARGILLA_API_KEY") if key is None else monkeypatch.setenv("ARGILLA_API_KEY", key)
    told = refused()
    assert says in told
    assert key is None or key not in told


def test_nobody_or_another_program_there(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", f"{server.url}/elsewhere")
    assert "is not an Argilla server" in refused()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ARGILLA_API_URL", f"http://who:secret@127.0.0.1:{closed.getsockname()[1]}")
        told = refused()
    assert "does not answer (ConnectError)" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("address", "says"),
    [
        *((one, "ARGILLA_API_URL is not an address")
          for one in ("localhost:6900", "ftp://x", "http://", "http://[", "http://x:99999")),
        *((f"http://local{sign}host:6900", "a space or an invisible character; type it again")
          for sign in (" ", "\u200b", "\u00a0", "\t", "\x07")),
        # That only the client refuses.
        *((one, "is not an address of a server; write it like")
          for one in ("http://exa%mple:80:80/", "http://-\u2603.example..org")),
        ("", "set ARGILLA_API_URL"),
    ],
)  # fmt: skip
def test_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch, address: str, says: str) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", address)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    assert says in refused()


def test_a_search_engine_that_hangs_is_asked_once(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h2htalk.rounds.argilla.client.SEARCH_TIMEOUT", 0.2)
    client = connect(60.0)
    free = threading.Event()

    def hang(number: int, method: str, path: str) -> None:
        if path == "/api/v1/status":
            free.wait(10)

    server.before = hang
    start = time.monotonic()
    with pytest.raises(RoundError, match="the server's search engine does not answer"):
        require_search_engine(client)
    took = time.monotonic() - start
    free.set()
    assert took < 5
    assert sum(path == "/api/v1/status" for _, path in server.requests) == 1


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("https://lab-round.hf.space", True),
        ("http://lab-round.hf.space", False),
        ("https://lab-round.hf.space.example.org", False),
        ("https://hf.space@example.org", False),
        ("http://localhost:6900", False),
    ],
)
def test_the_hubs_token_goes_to_its_spaces_alone(
    monkeypatch: pytest.MonkeyPatch, address: str, sent: bool
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    assert hub_headers(address) == ({"Authorization": "Bearer hf_token"} if sent else {})
    monkeypatch.delenv("HF_TOKEN")
    assert hub_headers(address) == {}


def test_a_token_that_is_none_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_to\nken")
    with pytest.raises(RoundError, match="HF_TOKEN contains invalid") as error:
        hub_headers("https://lab-round.hf.space")
    assert "ken" not in str(error.value).replace("token", "")


def test_every_request_carries_what_a_space_wants(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(client_module, "hub_headers", lambda address: {"Authorization": "Bearer hf_token"})
    monkeypatch.setattr(server, "heard", lambda headers: seen.append(headers.get("Authorization")))
    require_search_engine(connect(0.0))
    assert len(seen) >= 4
    assert set(seen) == {"Bearer hf_token"}
