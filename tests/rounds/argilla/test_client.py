"""Address, key and version of a server: messages about mistakes, none of which contains the key."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from argilla_double import OWNER_KEY, ArgillaDouble
from tables import table

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import connect, hub_headers, require_search_engine

pytest.importorskip("httpx")


def refused() -> str:
    with pytest.raises(RoundError) as error:
        require_search_engine(connect(0.0))
    assert OWNER_KEY not in str(error.value)
    return str(error.value)


def test_connect_to_any_patch_version(server: ArgillaDouble) -> None:
    for version in (server.version, "2.8.3"):
        server.version = version
        client = connect(0.0)
        assert (client.role, client.url) == ("owner", server.url)


@pytest.mark.parametrize(("facts", "message"), table("rounds", "unusable_servers"))
def test_unusable_servers(server: ArgillaDouble, facts: dict[str, Any], message: str) -> None:
    for name, value in facts.items():
        setattr(server, name, value)
    assert message in refused()


@pytest.mark.parametrize(("key", "message"), table("rounds", "invalid_keys"))
def test_invalid_keys(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch, key: str | None, message: str) -> None:
    monkeypatch.delenv("ARGILLA_API_KEY") if key is None else monkeypatch.setenv("ARGILLA_API_KEY", key)
    text = refused()
    assert message in text
    assert key is None or key not in text


def test_no_server_or_another_program(server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", f"{server.url}/elsewhere")
    assert "does not run Argilla" in refused()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ARGILLA_API_URL", f"http://who:secret@127.0.0.1:{closed.getsockname()[1]}")
        message = refused()
    assert "does not answer (ConnectError)" in message
    assert "secret" not in message


@pytest.mark.parametrize(("address", "message"), table("rounds", "server_addresses"))
def test_invalid_addresses(monkeypatch: pytest.MonkeyPatch, address: str, message: str) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", address)
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    assert message in refused()


@pytest.mark.parametrize(("address", "sent"), table("rounds", "addresses_of_spaces"))
def test_the_hub_s_token_is_sent_to_its_spaces_only(monkeypatch: pytest.MonkeyPatch, address: str, sent: bool) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    assert hub_headers(address) == ({"Authorization": "Bearer hf_token"} if sent else {})
    monkeypatch.delenv("HF_TOKEN")
    assert hub_headers(address) == {}
