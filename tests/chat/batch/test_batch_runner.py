"""Batch jobs of both providers, through their real SDKs: what is sent, what comes back, what it costs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from unittest import mock

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from h2htalk.chat.batch.batch_runner import LONGEST_POLL, RESULTS_WAIT
from h2htalk.chat.refused_parameters import RefusedParameterError
from h2htalk.data.files import AppendLog
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, ModelCallError
from support.doubles.batch_double import (
    CALL_USD,
    KEY,
    PRICE,
    PROVIDERS,
    BatchDouble,
    Killed,
    fail_at,
    fates,
    requests,
)
from support.doubles.providers import Refused

DAY = 24 * 3600.0


@pytest.mark.parametrize("broken", [0, 3])  # readings of results whose stream breaks
def test_replies_come_in_the_order_of_the_requests_each_settled_before_it_is_given(
    double: BatchDouble, broken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"item {n}" for n in range(40)]
    seen: list[tuple[int, int]] = []  # places, and calls that are open then
    double.cut = broken
    texts = double.ask(*names, on_done=lambda index, _: seen.append((index, double.totals.open)))
    assert texts == [f"re: {name}" for name in names]
    assert sorted(index for index, _ in seen) == [*range(40)]
    assert [still_open for _, still_open in seen] == [*range(39, -1, -1)]
    assert double.totals.usd_paid == double.bill
    assert (
        json.loads((double.folder / "calls.jsonl").read_text().splitlines()[-1])["succeeded"] == 40
    )
    assert "ignored" not in capsys.readouterr().err
    double.calls.clear()
    assert double.ask() == double.calls == []  # nothing is asked for, and no job is open


@pytest.mark.parametrize(
    ("fate", "reason", "paid", "possibly_paid", "free"),
    [
        ("invalid", "context_length", 1, 0, 1),
        ("garbage", "malformed_reply", 2, 0, 0),  # a reply that cannot be used
        ("missing", "missing_result", 1, 1, 0),
        ("uncomputed", "missing_result", 1, 0, 1),  # every reply that the provider counts has come
    ],
)
def test_what_asking_again_cannot_help_is_asked_once(
    double: BatchDouble, fate: str, reason: str, paid: int, possibly_paid: int, free: int
) -> None:
    double.fate = fates(b=fate)
    assert double.ask("a", "b") == ["re: a", reason]
    assert double.asked == {"a": 1, "b": 1}
    found = double.totals
    assert (found.paid, found.possibly_paid, found.free) == (paid, possibly_paid, free)
    assert found.usd_paid == paid * CALL_USD
    assert found.usd_paid + (found.usd_possible or 0) >= double.bill


def test_results_of_others_are_ignored_and_counted(
    double: BatchDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    def repeat(call: str) -> None:
        if double.jobs and double.jobs[0].results and not double.extra:
            ours = double.jobs[0].results[0]
            mark = ours["custom_id"].partition("-")[0]
            names = ("stranger-1", f"{mark}-2", f"{mark}-01", f"{mark}-²", "", f"{mark}-{'9' * 30}")
            double.extra = [ours | {"custom_id": name} for name in names]
            double.extra += [ours, b"not json", b"[1]", b"{}", b""]

    double.before = repeat
    seen: list[int] = []
    assert double.ask("a", "b", on_done=lambda index, _: seen.append(index)) == ["re: a", "re: b"]
    assert sorted(seen) == [0, 1]
    assert double.totals.usd_paid == double.bill
    # OpenAI's strange lines come with each of the two files.
    assert f"ignored {20 if double.provider == 'openai' else 10} results" in capsys.readouterr().err


def test_results_that_are_no_longer_kept_are_possibly_paid_and_asked_for_anew(
    double: BatchDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second purchase was made without a word."""
    double.interrupted("a")
    double.jobs[0].archived = True
    double.now += 31 * DAY
    assert double.ask("a") == ["re: a"]
    message = r"batch_0: its results are no longer kept .*1 call count.* as possibly paid"
    assert re.search(message, capsys.readouterr().err)
    found = double.totals
    assert (found.paid, found.possibly_paid) == (1, 1)
    assert (found.usd_paid or 0) + (found.usd_possible or 0) >= double.bill == 2 * CALL_USD


@pytest.mark.parametrize("part", ["job", "place", "results"])
def test_what_is_not_there_yet_is_asked_for_again_and_not_bought_again(
    double: BatchDouble, part: str
) -> None:
    """Results that came a minute after the end of their job were taken for lost, and the batch was bought again."""
    double.not_yet[part] = 3
    assert double.ask("a", "b") == ["re: a", "re: b"]
    assert (len(double.jobs), double.totals.paid, double.totals.possibly_paid) == (1, 2, 0)
    assert double.totals.usd_paid == double.bill


@pytest.mark.parametrize("part", ["job", "place", "results"])
def test_results_that_do_not_come_end_the_run_and_the_next_one_asks_the_same_job(
    double: BatchDouble, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each start bought all of it anew, and the run ended with an error instead of incomplete."""
    double.not_yet[part] = 10**6
    assert double.ask("a", "b") == ["results_late", "results_late"]
    assert RESULTS_WAIT <= sum(double.pauses) < RESULTS_WAIT + 3 * LONGEST_POLL
    assert double.pauses == sorted(double.pauses), "the pauses grow"
    assert (double.totals.open, double.totals.paid, double.totals.possibly_paid) == (2, 0, 0)
    message = capsys.readouterr().err
    assert "the same command asks this job again and pays for nothing; to give it up" in message
    double.now += DAY
    double.not_yet.clear()
    assert double.ask("a", "b") == ["re: a", "re: b"]
    assert (len(double.jobs), double.totals.usd_paid) == (1, double.bill)


def test_results_that_hold_fewer_replies_than_are_counted_are_read_again(
    double: BatchDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    """A proxy cut the results: the other calls counted as possibly paid, and the next start bought them again."""
    double.not_yet["rest"] = 4
    assert double.ask("a", "b", "c") == ["re: a", "re: b", "re: c"]
    assert (len(double.jobs), double.totals.paid, double.totals.possibly_paid) == (1, 3, 0)
    assert double.totals.usd_paid == double.bill
    assert re.search(
        "1 of 3 replies that the provider counts are there; asking again", capsys.readouterr().err
    )


def test_replies_that_are_counted_and_never_come_are_possibly_paid_with_a_message(
    double: BatchDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    double.fate = fates(b="missing")
    assert double.ask("a", "b") == ["re: a", "missing_result"]
    assert RESULTS_WAIT <= sum(double.pauses) < RESULTS_WAIT + 3 * LONGEST_POLL
    assert "are there; 1 call counts as possibly paid" in capsys.readouterr().err


def test_a_job_whose_results_are_late_holds_up_no_other(
    double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(double.jobs_api()), "most_calls", 1)

    def refuse(call: str) -> None:
        is_of_results = call.endswith(("/results", "/content"))
        if is_of_results and "batch_0" in call:
            raise Refused(404, "not_found_error", "no results")

    double.before = refuse
    assert double.ask("a", "b") == ["results_late", "re: b"]
    assert len(double.jobs) == 2
    double.before = lambda call: None
    assert double.ask("a") == ["re: a"]
    assert (len(double.jobs), double.totals.usd_paid) == (2, double.bill)


@pytest.mark.parametrize(
    ("counts", "late"),
    [
        ({"total": 3, "completed": 3, "failed": 0}, True),
        ({"total": 3, "completed": 0, "failed": 0}, True),  # not counted yet
        ({"total": 3, "completed": 0, "failed": 3}, False),  # no call gave a reply
        (None, True),
    ],
)
def test_a_job_that_counts_replies_and_names_no_file_is_late(
    tmp_path: Path, counts: dict[str, int] | None, late: bool
) -> None:
    jobs = BatchDouble("openai", tmp_path).jobs_api()
    raw = {"id": "batch_0", "status": "completed", "request_counts": counts}
    assert jobs.read_job(raw).late == late
    if counts and counts["completed"]:
        assert jobs.read_job(raw | {"error_file_id": "file-1"}).late
    assert not jobs.read_job(raw | {"output_file_id": "file-1"}).late


def test_a_batch_that_might_pass_the_limit_is_not_sent(double: BatchDouble) -> None:
    with pytest.raises(
        ConfigError, match=r"max_cost 0\.01: 0\.00 .* may cost 0\.\d+ more: .*; nothing .* sent"
    ):
        double.ask(*"abcdefgh", limit=Decimal("0.01"))
    assert (double.calls, double.totals.usd_committed, double.open_jobs) == ([], 0, [])
    double.fate = fates(b="expired")
    double.interrupted("a", "b")
    assert double.ask("a", "b", limit=Decimal("0.001")) == [
        "re: a",
        "max_cost",
    ]  # a later one keeps the others
    assert len(double.jobs) == 1


def test_trouble_that_no_call_survives_stops_the_run_and_is_free(double: BatchDouble) -> None:
    double.fate = lambda text, times: "fatal"
    with pytest.raises(ModelCallError, match="API_KEY"):
        double.ask("a", "b")
    assert (double.totals.free, double.totals.open) == (2, 0)
    double.fate = lambda text, times: "ok"
    assert double.ask("a", "b") == ["re: a", "re: b"]


def test_a_parameter_that_every_call_of_a_batch_has_refused_is_asked_for_in_another_form(
    double: BatchDouble,
) -> None:
    """Each item failed, and the run's folder refused the option that the error named."""
    double.fate = lambda text, times: "no system"
    seen: list[int] = []
    with pytest.raises(RefusedParameterError) as raised:
        double.ask("a", "b", on_done=lambda index, _: seen.append(index))
    assert raised.value.next_form == {"system": "fold"}
    assert seen == []
    assert (double.totals.free, double.totals.open, double.open_jobs) == (2, 0, [])
    assert double.store.is_disposable()


def test_a_parameter_that_other_calls_of_a_batch_were_answered_with_fails_one_item(
    double: BatchDouble,
) -> None:
    double.fate = lambda text, times: "no system" if text == "b" else "ok"
    outcomes = double.run(requests("a", "b", "c"))
    assert [isinstance(outcome, Failure) for outcome in outcomes] == [False, True, False]
    failure = outcomes[1]
    assert isinstance(failure, Failure)
    assert failure.reason == "bad_request"
    assert failure.message.endswith("other calls that sent it were answered")
    assert "system=fold" in failure.message
    assert double.asked == {"a": 1, "b": 1, "c": 1}


def test_network_trouble_ends_a_run_after_hours_and_the_job_is_not_lost(
    double: BatchDouble,
) -> None:
    def trouble(call: str) -> None:
        if double.jobs:
            raise httpx2.ConnectError("unplugged")

    double.before = trouble
    with pytest.raises(
        ModelCallError, match=r"24 hours.*batch_0 is not lost, the same command attaches"
    ):
        double.ask("a")
    double.before, jobs = lambda call: None, [*double.jobs]
    double.jobs.clear()  # the key does not know it
    with pytest.raises(ModelCallError, match=r"use the key of the workspace.*remove"):
        double.ask("a")
    assert [str(job.job).endswith("batch_0") for job in double.open_jobs] == [True]
    double.jobs += jobs
    assert double.ask("a") == ["re: a"]
    assert len(double.jobs) == 1


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 413])
def test_a_refused_job_is_free_and_an_error(double: BatchDouble, status: int) -> None:
    double.refuse_jobs(status, f"no {KEY}")
    with pytest.raises(ConfigError, match="the batch was refused, nothing was charged") as caught:
        double.ask("a", "b")
    assert KEY not in str(caught.value) + (double.folder / "calls.jsonl").read_text()
    assert (double.totals.free, double.totals.open, double.open_jobs) == (2, 0, [])


@pytest.mark.parametrize("status", [429, 529])
def test_a_job_that_is_refused_for_now_is_sent_again_and_then_given_up(
    double: BatchDouble, status: int
) -> None:
    double.refuse_jobs(status, "busy", pauses=2)
    assert double.ask("a") == ["re: a"]
    double.refuse_jobs(status, "busy")
    with pytest.raises(ModelCallError, match="could not be submitted"):
        double.ask("b")
    assert (double.totals.free, double.totals.open, len(double.jobs)) == (1, 0, 1)


@pytest.mark.parametrize(
    "junk", [[], "text", 5, None, {}, {"data": [5]}, {"data": [{"id": "batch_9"}]}, 503]
)
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_an_answer_that_describes_no_job_is_asked_for_again(
    double: BatchDouble, number: int, junk: object
) -> None:
    def before(call: str) -> None:
        if len(double.calls) == number:
            double.answers = [httpx2.Response(503 if junk == 503 else 200, json=junk)]

    double.before = before
    assert double.ask("a") == ["re: a"]
    assert double.charged["a"] == 1


def test_a_folder_with_an_open_job_of_another_model_is_refused(double: BatchDouble) -> None:
    double.interrupted("a")
    other = BatchDouble(next(name for name in PROVIDERS if name != double.provider), double.folder)
    with pytest.raises(ConfigError, match=f"of {double.api.model}"):
        other.ask("a")


def test_a_job_whose_validation_failed_is_a_free_error_with_its_first_lines(tmp_path: Path) -> None:
    openai = BatchDouble("openai", tmp_path)
    openai.problems = [
        {"code": "invalid_json_line", "line": n, "message": f"Broken ({n})."} for n in range(1, 9)
    ]
    with pytest.raises(
        ConfigError, match=r"batch_0 was refused, nothing was charged: line 1: .*line 3.*5 more"
    ):
        openai.ask("a")
    assert (openai.totals.free, openai.totals.open, openai.open_jobs) == (1, 0, [])


def test_a_job_that_found_the_queue_full_waits_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai = BatchDouble("openai", tmp_path)
    monkeypatch.setattr(type(openai.jobs_api()), "most_calls", 2)
    full = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    openai.after = lambda call: setattr(openai, "problems", [full] if len(openai.jobs) == 1 else [])
    assert openai.ask(*"abcd", attempts=1) == [f"re: {t}" for t in "abcd"]
    assert [bool(job.problems) for job in openai.jobs] == [False, True, False]
    assert openai.totals.usd_paid == openai.bill


@pytest.fixture
def claude(tmp_path: Path) -> BatchDouble:
    """Anthropic's jobs carry nothing of ours."""
    return BatchDouble("anthropic", tmp_path)


def test_the_lines_of_a_job_are_on_disk_before_it_is_sent(
    double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = [0]
    path = double.folder / "calls.jsonl"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    posts: list[bool] = []
    double.before = lambda call: posts.append(
        not call.startswith("POST") or synced[-1] == path.stat().st_size > 0
    )
    double.resume()
    assert {*posts} == {True}


@pytest.mark.parametrize(
    "broken", [None, *(Refused(status, "api_error", "broken") for status in (408, 500, 504))]
)
@pytest.mark.parametrize("list_lag", [0.0, 40.0])
def test_a_job_whose_id_never_arrived_is_found(
    double: BatchDouble, list_lag: float, broken: Refused | None
) -> None:
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
def test_a_job_that_was_made_before_ours_is_never_taken_for_ours(
    claude: BatchDouble, deleted: bool
) -> None:
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


@pytest.mark.parametrize(
    "error", [httpx2.ReadError("cut"), Refused(500, "api_error", "x"), Refused(429, "slow", "x")]
)
def test_a_job_that_cannot_be_read_for_now_is_asked_again(
    claude: BatchDouble, error: Exception
) -> None:
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


@pytest.mark.parametrize("part", ["place", "results"])
def test_a_job_without_an_id_whose_results_are_not_there_yet_is_found_when_they_are(
    claude: BatchDouble, part: str
) -> None:
    """It was taken for one whose results nobody keeps, and bought again."""
    claude.after = fail_at(f"POST {claude.place}")
    claude.killed()
    claude.now += DAY  # the list of jobs is surely up to date
    claude.end(claude.jobs[0])
    claude.not_yet[part] = 2
    claude.resume()
    claude.require_paid_once()
    assert len(claude.jobs) == 1


def test_a_job_that_can_no_longer_be_told_from_another_is_possibly_paid(
    claude: BatchDouble,
) -> None:
    claude.after = fail_at(f"POST {claude.place}")
    claude.killed()
    claude.now += 30 * 24 * 3600.0
    claude.end(claude.jobs[0])
    claude.jobs[0].archived = True
    claude.resume()
    assert claude.is_whole()
    assert (claude.totals.paid, claude.totals.possibly_paid) == (3, 3)
    assert (claude.bill, claude.totals.usd_paid) == (6 * CALL_USD, 3 * CALL_USD)
    assert (claude.totals.usd_possible or 0) >= 3 * CALL_USD


@contextmanager
def killed_at(double: BatchDouble, kind: str, number: int, share: float) -> Iterator[None]:
    """Kill a run in the middle of its so-many-th `write` to a journal, that share of its bytes on disk, or at its
    so-many-th `call`, after (share 1) or before the provider did its part."""
    left = [number]
    whole = AppendLog._write

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

    target = (
        (AppendLog, "_write", write)
        if kind == "write"
        else (double, "after" if share else "before", call)
    )
    with mock.patch.object(*target):
        yield


WRITES = st.tuples(st.just("write"), st.integers(1, 24), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
CALLS = st.tuples(st.just("call"), st.integers(1, 12), st.sampled_from([0.0, 1.0]))
FATES = (
    "ok",
    "ok",
    "ok expired ok",
    "expired ok",
    "overloaded ok",
    "uncomputed ok",
    "expired overloaded ok",
)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@given(
    kills=st.lists(WRITES | CALLS, min_size=1, max_size=5),
    words=st.lists(st.sampled_from(FATES), min_size=1, max_size=4),
    samples=st.integers(1, 2),
    strangers=st.booleans(),
)
@example(
    kills=[("write", 4, 0.3), ("call", 3, 1.0)],
    words=["ok", "expired ok"],
    samples=2,
    strangers=True,
)
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
    words = [
        fate.replace("uncomputed", "expired") if provider == "anthropic" else fate for fate in words
    ]
    orders = {f"item {number}": fate for number, fate in enumerate(words)}
    asked = requests(*orders, samples=samples)
    each = samples if provider == "anthropic" else 1  # calls of an item
    double = BatchDouble(provider, tmp_path_factory.mktemp("killed"), fates(each, **orders), asked)
    bounds = [double.api.bound(call) for call in double.api.calls(asked)]
    # No more than one batch of everything may cost: what a kill leaves reserved would otherwise be in the way.
    limit = sum(
        (PRICE.worst(one.input_tokens, one.output_tokens, batch=True) or 0 for one in bounds),
        Decimal(0),
    )
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
