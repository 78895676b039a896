"""What a killed run left behind: every batch job is found again, no call is lost, and none is paid twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from unittest import mock

import httpx2
import pytest
from batch_double import CALL_USD, PRICE, PROVIDERS, BatchDouble, Killed, fail_at, fates, requests
from hypothesis import example, given
from hypothesis import strategies as st
from provider_model import Refused

from h2htalk.data.files import AppendLog
from h2htalk.errors import ModelCallError


@pytest.fixture
def claude(tmp_path: Path) -> BatchDouble:
    """Anthropic's jobs carry nothing of ours."""
    return BatchDouble("anthropic", tmp_path)


def test_the_lines_of_a_job_are_on_disk_before_it_is_sent(double: BatchDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, path = [0], double.folder / "calls.jsonl"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    posts: list[bool] = []
    double.before = lambda call: posts.append(not call.startswith("POST") or synced[-1] == path.stat().st_size > 0)
    double.resume()
    assert posts
    assert all(posts)


@pytest.mark.parametrize("broken", [None, *(Refused(status, "api_error", "broken") for status in (408, 500, 504))])
@pytest.mark.parametrize("list_lag", [0.0, 40.0])
def test_a_job_whose_id_never_arrived_is_found(double: BatchDouble, list_lag: float, broken: Refused | None) -> None:
    double.list_lag = list_lag
    double.after = fail_at(f"POST {double.place}", broken)
    if broken is None:
        double.killed()
    double.resume()
    double.require_paid_once()
    assert len(double.jobs) == 1


@pytest.mark.parametrize("moment", ["POST", "GET"])
def test_a_job_that_was_never_made_is_no_try(double: BatchDouble, moment: str) -> None:
    double.fate = lambda text, times: "expired" if times == 1 else "ok"
    # A call before anything is sent, and the creation itself.
    early = "POST /v1/files" if double.provider == "openai" else "GET /v1/messages/batches"
    double.before = fail_at(early if moment == "GET" else f"POST {double.place}")
    double.killed()
    double.resume(attempts=2)
    double.require_paid_once()


def test_a_job_that_can_never_be_made_is_an_error_after_so_many_tries(double: BatchDouble) -> None:
    def broken(call: str) -> None:
        if call == f"POST {double.place}":
            raise httpx2.ReadError("cut")

    double.before = broken
    with pytest.raises(ModelCallError, match="4 batch jobs in a row gave no results"):
        double.resume()
    assert double.jobs == []


def test_jobs_of_others_are_not_ours(double: BatchDouble) -> None:
    for calls in (3, 2, 3, 5, 3):
        double.stranger(calls, -30.0)
    double.after = fail_at(f"POST {double.place}")
    double.killed()
    for calls in (3, 4, 3):
        double.stranger(calls)
    double.resume()
    assert double.is_whole()
    assert double.totals.usd_paid == 3 * CALL_USD
    assert len(double.jobs) == 9


@pytest.mark.parametrize("deleted", [False, True])
def test_a_job_that_was_made_before_ours_is_never_taken_for_ours(claude: BatchDouble, deleted: bool) -> None:
    """One of as many calls, whose results nobody can read, made ours possibly paid that was never made."""
    for seconds in (-3 * 24 * 3600.0, -30.0):
        older = claude.stranger(3, seconds)
        claude.end(older)
        older.archived = True
    claude.charged.clear()
    claude.before = fail_at(f"POST {claude.place}")
    claude.killed()
    if deleted:  # the one that was the newest before ours
        claude.jobs.remove(older)
    claude.resume()
    claude.require_paid_once()


@pytest.mark.parametrize("error", [httpx2.ReadError("cut"), Refused(500, "api_error", "x"), Refused(429, "slow", "x")])
def test_a_job_that_cannot_be_read_for_now_is_asked_again(claude: BatchDouble, error: Exception) -> None:
    claude.after = fail_at(f"POST {claude.place}")
    claude.killed()
    claude.now += 24 * 3600.0  # the list of jobs is surely up to date
    (job,) = claude.jobs
    claude.end(job)
    claude.before = fail_at("/results", error)
    claude.resume()
    claude.require_paid_once()
    assert claude.jobs == [job]
    assert sum(call.endswith("/results") for call in claude.calls) > 1


def test_a_job_that_can_no_longer_be_told_from_another_is_possibly_paid(claude: BatchDouble) -> None:
    claude.after = fail_at(f"POST {claude.place}")
    claude.killed()
    claude.now += 30 * 24 * 3600.0
    claude.end(claude.jobs[0])
    claude.jobs[0].archived = True
    claude.resume()
    assert claude.is_whole()
    assert (claude.totals.paid, claude.totals.possibly_paid) == (3, 3)
    assert claude.bill == 6 * CALL_USD
    assert claude.totals.usd_paid == 3 * CALL_USD
    assert (claude.totals.usd_possible or 0) >= 3 * CALL_USD


@contextmanager
def killed_at(double: BatchDouble, kind: str, number: int, share: float) -> Iterator[None]:
    """Kill a run in the middle of its so-many-th `write` to a journal, that share of its bytes on disk, or at its
    so-many-th `call`, after (share 1) or before the provider did its part."""
    left, whole = [number], AppendLog._write

    def is_due() -> bool:
        left[0] -= 1
        return left[0] == 0

    def write(log: AppendLog, lines: bytes, size: int) -> None:
        if not is_due():
            whole(log, lines, size)
            return
        with log.path.open("ab") as file:
            file.write(lines[: int(len(lines) * share)])
        raise Killed

    def call(_: str) -> None:
        if is_due():
            raise Killed

    target = (AppendLog, "_write", write) if kind == "write" else (double, "after" if share else "before", call)
    with mock.patch.object(*target):
        yield


WRITES = st.tuples(st.just("write"), st.integers(1, 24), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
CALLS = st.tuples(st.just("call"), st.integers(1, 12), st.sampled_from([0.0, 1.0]))
FATES = ("ok", "ok", "ok expired ok", "expired ok", "overloaded ok", "uncomputed ok", "expired overloaded ok")


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@given(
    kills=st.lists(WRITES | CALLS, min_size=1, max_size=5),
    words=st.lists(st.sampled_from(FATES), min_size=1, max_size=4),
    samples=st.integers(1, 2),
    strangers=st.booleans(),
)
@example(kills=[("write", 4, 0.3), ("call", 3, 1.0)], words=["ok", "expired ok"], samples=2, strangers=True)
def test_killed_anywhere_every_call_is_paid_once(
    provider: str,
    kills: list[tuple[str, int, float]],
    words: list[str],
    samples: int,
    strangers: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever byte of a journal or call of the API a run is killed at, however often: in the end every request has
    its reply, nothing that is stored was asked for again, and the store says what the provider charged."""
    # Anthropic has a result for every request.
    words = [fate.replace("uncomputed", "expired") if provider == "anthropic" else fate for fate in words]
    orders = {f"item {number}": fate for number, fate in enumerate(words)}
    asked, each = requests(*orders, samples=samples), samples if provider == "anthropic" else 1  # calls of an item
    double = BatchDouble(provider, tmp_path_factory.mktemp("killed"), fates(each, **orders), asked)
    bounds = [double.api.bound(call) for call in double.api.calls(asked)]
    # No more than one batch of everything may cost: what a kill leaves reserved would otherwise be in the way.
    limit = sum((PRICE.worst(one.input_tokens, one.output_tokens, batch=True) or 0 for one in bounds), Decimal(0))
    if strangers:
        double.stranger(len(asked), -5.0)
    for kind, number, share in kills:
        try:
            with killed_at(double, kind, number, share):
                double.resume(limit=limit)
        except Killed:
            if strangers:
                double.stranger(len(asked))
    # Failures are asked for again by hand, as `uncomputed` ones are.
    for _ in range(4):
        if not double.is_whole():
            double.resume(limit=limit)
    assert double.resume(limit=limit) == []
    assert double.is_whole()
    ours = sum(count for text, count in double.charged.items() if text in orders)
    assert ours == len(orders) * each, "each call is computed once"
    assert double.totals.usd_paid == CALL_USD * ours
    assert (double.totals.open, double.totals.possibly_paid, double.open_jobs) == (0, 0, [])
