"""Hosted models beside the plain run: forms, a change from calls to batches and back, somebody else's hand, reprs."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosted_runs import ANTHROPIC_FIRST, BOTH, MODELS, OPENAI_FIRST, HostedRun, name
from key_search import require_no_key
from providers import KEY, JobPlan, ProviderServer
from pydantic import BaseModel, Field

from h2htalk.chat.base import ChatOptions, Message, Outcome, Reply, Request, Sampling, open_chat
from h2htalk.chat.structured import Form
from h2htalk.data.run import Failure


class Rating(BaseModel):
    """One judgement."""

    evidence: str
    score: int = Field(ge=1, le=10)


RATING = Form("rating", Rating)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        for key, value in running.environment().items():
            monkeypatch.setenv(key, value)
        yield running


def ask(provider: str, *texts: str, form: Form | None = RATING) -> list[Outcome]:
    """One call a text, each to be answered in that form."""
    sampling = Sampling(temperature=None, max_tokens=64)
    requests = [Request(text, (Message("user", text),), sampling, form=form) for text in texts]
    chat = open_chat(MODELS[provider], ChatOptions(timeout=2))
    try:
        return chat.complete(requests)
    finally:
        chat.close()


@BOTH
def test_structured_output_is_filled_or_a_typed_failure(provider: str, server: ProviderServer) -> None:
    server.plan.at = {
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


@ANTHROPIC_FIRST
def test_a_run_goes_on_in_batches_and_live_again(tmp_path: Path, provider: str) -> None:
    with ProviderServer(after={"no_credit": 3}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 12, {"concurrency": 1})
        run.run(code=2)
        assert len(run.stored()) == 3
        server.mend()
        server.plan.at = {"item7": "context_length"}
        run.run(code=3, batch=True)
        assert len(run.stored()) == 11
        server.mend()
        run.run()
        assert [charge.batch for charge in server.charged()] == [False] * 3 + [True] * 8 + [False]
        assert run.require_true_books().paid == server.bill()


@OPENAI_FIRST
def test_a_job_that_somebody_cancels_leaves_failures_that_a_restart_repairs(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(jobs=JobPlan(polls=10_000)) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 4, {"batch": True})
        process = run.start()
        while not any(job.polls for job in server.jobs.all):
            assert process.poll() is None
        server.jobs.all[0].canceled = True
        run.finish(process, code=3)
        assert {failure["reason"] for failure in run.failures().values()} == {"canceled"}
        assert server.charged() == []
        assert run.require_true_books().ends == {"free": 4}
        server.jobs.plan.polls = 0
        run.run()
        assert len(run.stored()) == 4


@BOTH
def test_our_job_is_found_behind_pages_of_others(tmp_path: Path, provider: str) -> None:
    with ProviderServer(jobs=JobPlan(strangers=45, create_dropped=1)) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 3, {"batch": True})
        run.run()
        assert sum(not job.strange for job in server.jobs.all) == 1
        assert run.require_true_books().paid == server.bill()


def test_samples_of_an_item_come_in_one_call_of_a_batch_too(tmp_path: Path) -> None:
    with ProviderServer() as server:
        settings = {"batch": True, "samples": 3, "temperature": 0.7}
        run = HostedRun(server, tmp_path, MODELS["openai"], 4, settings)
        run.run()
        assert [charge.samples for charge in server.charged()] == [3] * 4
        assert len(set(run.stored().values())) == 12
        assert run.require_true_books().paid == server.bill()


@OPENAI_FIRST
def test_a_provider_that_goes_away_leaves_reasons_and_no_bill_beyond_the_books(
    tmp_path: Path, provider: str
) -> None:
    with ProviderServer(latency=0.05) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 24, {"concurrency": 4, "attempts": 2})
        process = run.start()
        run.wait_until_stored(3, process)
    ended = run.finish(process, code=3)
    assert "INCOMPLETE" in ended.stdout
    assert {failure["reason"] for failure in run.failures().values()} == {"connection"}
    run.require_true_books()


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


@BOTH
def test_a_wrong_key_is_not_repeated_though_the_provider_does(provider: str, server: ProviderServer) -> None:
    server.plan.shares = {"unauthorized": 1.0}
    with pytest.raises(Exception, match="_API_KEY") as found:
        ask(provider, "Hello", form=None)
    require_no_key("".join(traceback.format_exception(found.value)).encode(), "the error")
    assert KEY not in repr(found.value)


@OPENAI_FIRST
def test_the_sdks_log_neither_the_key_nor_prompts_though_they_are_told_to(
    tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_LOG", "debug")
    with ProviderServer(faults_at={"item1": "http_500:1"}) as server:
        run = HostedRun(server, tmp_path, MODELS[provider], 3)
        ended = run.finish(run.start())
        assert ended.errors == []


def test_names_of_items_in_failures_are_those_of_the_split(tmp_path: Path) -> None:
    """A guard of this file's own means: the n-th item's prompt carries its mark."""
    with ProviderServer(faults_at={"item1": "context_length"}) as server:
        run = HostedRun(server, tmp_path, MODELS["openai"], 12)
        run.run(code=3)
        assert list(run.failures()) == [name(1)]
