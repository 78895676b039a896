"""Address, key and version: each mistake is told in words, and the key in none of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from argilla_double import OWNER_KEY, ArgillaDouble

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla_server import wire as wires
from h2htalk.rounds.argilla_server.wire import connect, headers_for, require_search

pytest.importorskip("argilla")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    with ArgillaDouble() as double:
        monkeypatch.setenv("ARGILLA_API_URL", double.url)
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield double


def refused() -> str:
    with pytest.raises(RoundError) as error:
        require_search(connect(0.0))
    assert OWNER_KEY not in str(error.value)
    return str(error.value)


def test_the_right_server_is_found(server: ArgillaDouble) -> None:
    wire = connect(0.0)
    assert (wire.role, wire.url) == ("owner", server.url)


def test_a_newer_patch_is_welcome(server: ArgillaDouble) -> None:
    server.version = "2.8.3"
    assert connect(0.0).role == "owner"


@pytest.mark.parametrize("version", ["2.7.1", "2.80.0", "3.0.0", "1.29.0"])
def test_another_version_is_refused_and_both_are_named(server: ArgillaDouble, version: str) -> None:
    server.version = version
    assert f"runs Argilla {version}; rounds need 2.8.*" in refused()


def test_a_wrong_key(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", "not.the.key")
    assert "refuses the key in ARGILLA_API_KEY" in refused()


@pytest.mark.parametrize("key", ["schlüssel", "a\nb", "a b"])
def test_a_key_that_is_none(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", key)
    told = refused()
    assert "ARGILLA_API_KEY holds signs that no key has" in told
    assert key not in told


def test_an_annotators_key(server: ArgillaDouble) -> None:
    server.role = "annotator"
    assert "belongs to 'argilla', who may only answer" in refused()


def test_no_search_engine(server: ArgillaDouble) -> None:
    server.search = False
    assert "its search engine does not" in refused()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ARGILLA_API_URL", f"http://who:secret@127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        told = refused()
    assert "does not answer (ConnectError)" in told
    assert "secret" not in told


def test_another_program_answers(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", f"{server.url}/elsewhere")
    assert "is no Argilla server" in refused()


@pytest.mark.parametrize("address", ["localhost:6900", "ftp://x", "http://", "http://[", "http://x:99999"])
def test_an_address_that_is_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", address)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    assert "ARGILLA_API_URL is no address" in refused()


@pytest.mark.parametrize("sign", [" ", "\u200b", "\u00a0", "\t", "\x07"])
def test_an_address_with_signs_that_nobody_sees(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", f"http://local{sign}host:6900")
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    assert "a space or a sign that cannot be seen; type it anew: write it like http" in refused()


@pytest.mark.parametrize("address", ["http://exa%mple:80:80/", "http://-\u2603.example..org"])
def test_an_address_that_only_the_client_refuses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", address)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    assert "ARGILLA_API_URL is no address of a server; write it like" in refused()


def test_a_search_engine_that_hangs_is_asked_once(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h2htalk.rounds.argilla_server.wire.LOOK", 0.2)
    wire = connect(60.0)
    free = threading.Event()

    def hang(number: int, method: str, path: str) -> None:
        if path == "/api/v1/status":
            free.wait(10)

    server.before = hang
    start = time.monotonic()
    with pytest.raises(RoundError, match="its search engine does not"):
        require_search(wire)
    took = time.monotonic() - start
    free.set()
    assert took < 5
    assert sum(path == "/api/v1/status" for _, path in server.requests) == 1


@pytest.mark.parametrize("name", ["ARGILLA_API_URL", "ARGILLA_API_KEY"])
def test_nothing_is_set(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    assert f"set {name}" in refused()


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
    assert headers_for(address) == ({"Authorization": "Bearer hf_token"} if sent else {})
    monkeypatch.delenv("HF_TOKEN")
    assert headers_for(address) == {}


def test_a_token_that_is_none_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_to\nken")
    with pytest.raises(RoundError, match="HF_TOKEN holds signs") as error:
        headers_for("https://lab-round.hf.space")
    assert "ken" not in str(error.value).replace("token", "")


def test_every_request_carries_what_a_space_wants(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(wires, "headers_for", lambda address: {"Authorization": "Bearer hf_token"})
    monkeypatch.setattr(server, "heard", lambda headers: seen.append(headers.get("Authorization")))
    require_search(connect(0.0))
    assert len(seen) >= 4
    assert set(seen) == {"Bearer hf_token"}
