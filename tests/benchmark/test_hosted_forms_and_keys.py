"""Forms and keys through both engines as a library: typed failures of forms, and no key where people might see it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosted_runs import BOTH, MODELS, OPENAI_FIRST, HostedRun
from key_search import require_no_key
from providers import ProviderServer
from pydantic import BaseModel, Field

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.responses import Failure


class Rating(BaseModel):
    """One judgement."""

    evidence: str
    score: int = Field(ge=1, le=10)


RATING = ResponseSchema("rating", Rating)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        for key, value in running.environment().items():
            monkeypatch.setenv(key, value)
        yield running


def ask(provider: str, *texts: str, form: ResponseSchema | None = RATING) -> list[Outcome]:
    """One call a text, each to be answered in that form."""
    sampling = Sampling(temperature=None, max_tokens=64)
    requests = [Request(text, (Message("user", text),), sampling, response_schema=form) for text in texts]
    chat = open_chat(MODELS[provider], ChatOptions(timeout=2))
    try:
        return chat.complete(requests)
    finally:
        chat.close()


@BOTH
def test_structured_output_is_filled_or_a_typed_failure(provider: str, server: ProviderServer) -> None:
    server.faults_at = {
        "broken": "malformed_form",
        "high": "out_of_range",
        "no": "refusal",
        "long": "truncated",
    }
    outcomes = ask(provider, "fine", "broken", "high", "no", "long")
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    read = [RATING.read(outcome) for outcome in outcomes if isinstance(outcome, Reply)]
    filled = read[0]
    assert isinstance(filled, Rating)
    assert 1 <= filled.score <= 10
    reasons = [found.reason for found in read[1:] if isinstance(found, Failure)]
    assert reasons == ["malformed_output", "out_of_range", "refusal", "truncated"]
    assert len(server.charged()) == 5, "a reply that arrived was asked for again"


@BOTH
def test_the_key_is_in_no_name_and_no_traceback(provider: str, server: ProviderServer) -> None:
    chat = open_chat(MODELS[provider], ChatOptions(timeout=2))
    require_no_key(f"{chat!r} {chat.subject!r}".encode(), "a name")

    def broken(index: int, outcome: Outcome) -> None:
        raise RuntimeError("the disk is on fire")

    request = Request("a", (Message("user", "Hello"),), Sampling(temperature=None))
    with pytest.raises(RuntimeError) as found:
        chat.complete([request], broken)
    text = "".join(traceback.format_exception(found.value))
    assert "on fire" in text
    require_no_key(text.encode(), "a traceback")
    # The call was computed and its reply came, so it is paid, whoever could not store it.
    assert len(server.charged()) == 1


@OPENAI_FIRST
def test_the_sdks_log_neither_the_key_nor_prompts_though_they_are_told_to(
    tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_LOG", "debug")
    with ProviderServer(faults_at={"item1": "http_500:1"}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 3)
        ended = run.finish(run.start())
        assert ended.errors == []
