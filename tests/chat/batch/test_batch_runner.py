"""Batch jobs of both providers, through their real SDKs: what is sent, what comes back, what it costs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest
from batch_double import CALL_USD, KEY, PROVIDERS, BatchDouble, fates

from h2htalk.errors import ConfigError, ModelCallError


def test_replies_come_in_the_order_of_the_requests_and_are_settled_before_they_are_given(double: BatchDouble) -> None:
    names = [f"item {n}" for n in range(40)]
    seen: list[tuple[int, int]] = []  # places, and calls that are open then
    texts = double.ask(*names, on_done=lambda index, _: seen.append((index, double.totals.open)))
    assert texts == [f"re: {name}" for name in names]
    assert {index for index, _ in seen} == {*range(40)}
    assert [still_open for _, still_open in seen] == list(range(39, -1, -1))
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


def test_results_of_others_are_ignored_and_counted(double: BatchDouble, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_broken_stream_gives_each_outcome_once(double: BatchDouble, capsys: pytest.CaptureFixture[str]) -> None:
    double.cut = 3
    seen: list[int] = []
    names = [f"item {n}" for n in range(20)]
    assert double.ask(*names, on_done=lambda index, _: seen.append(index)) == [f"re: {name}" for name in names]
    assert sorted(seen) == list(range(20))
    assert double.totals.usd_paid == double.bill
    assert json.loads((double.folder / "calls.jsonl").read_text().splitlines()[-1])["succeeded"] == 20
    assert "ignored" not in capsys.readouterr().err


def test_results_that_are_no_longer_kept_are_possibly_paid_and_asked_for_anew(double: BatchDouble) -> None:
    double.before = lambda call: [setattr(job, "archived", True) for job in double.jobs[:1]]
    assert double.ask("a") == ["re: a"]
    found = double.totals
    assert (found.paid, found.possibly_paid) == (1, 1)
    assert (found.usd_paid or 0) + (found.usd_possible or 0) >= double.bill == 2 * CALL_USD


def test_a_batch_that_might_pass_the_limit_is_refused_whole_before_anything_is_sent(double: BatchDouble) -> None:
    with pytest.raises(ConfigError, match=r"max_cost 0\.01: 0\.00 .* may cost 0\.\d+ more: .*; nothing .* sent"):
        double.ask(*"abcdefgh", limit=Decimal("0.01"))
    assert (double.calls, double.totals.usd_committed, double.open_jobs) == ([], 0, [])


def test_a_later_batch_that_might_pass_the_limit_fails_its_items_and_keeps_the_others(double: BatchDouble) -> None:
    double.fate = fates(b="expired")
    double.interrupted("a", "b")
    assert double.ask("a", "b", limit=Decimal("0.001")) == ["re: a", "max_cost"]
    assert len(double.jobs) == 1


def test_trouble_that_no_call_survives_stops_the_run_and_is_free(double: BatchDouble) -> None:
    double.fate = lambda text, times: "fatal"
    with pytest.raises(ModelCallError, match="API_KEY"):
        double.ask("a", "b")
    assert (double.totals.free, double.totals.open) == (2, 0)
    double.fate = lambda text, times: "ok"
    assert double.ask("a", "b") == ["re: a", "re: b"]


def test_network_trouble_ends_a_run_after_hours_and_the_job_is_not_lost(double: BatchDouble) -> None:
    def trouble(call: str) -> None:
        if double.jobs:
            raise httpx2.ConnectError("unplugged")

    double.before = trouble
    with pytest.raises(ModelCallError, match=r"24 hours.*batch_0 is not lost, the same command attaches"):
        double.ask("a")
    double.before = lambda call: None
    assert double.ask("a") == ["re: a"]
    assert len(double.jobs) == 1


def test_a_job_that_the_key_does_not_know_is_an_error_that_says_what_to_do(double: BatchDouble) -> None:
    double.after = lambda call: double.jobs.clear()
    with pytest.raises(ModelCallError, match=r"use the key of the workspace.*remove"):
        double.ask("a")
    assert [str(job.job).endswith("batch_0") for job in double.open_jobs] == [True]


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 413])
def test_a_refused_job_is_free_and_an_error(double: BatchDouble, status: int) -> None:
    double.refuse_jobs(status, f"no {KEY}")
    with pytest.raises(ConfigError, match="the batch was refused, nothing was charged") as caught:
        double.ask("a", "b")
    assert KEY not in str(caught.value) + (double.folder / "calls.jsonl").read_text()
    assert (double.totals.free, double.totals.open, double.open_jobs) == (2, 0, [])


@pytest.mark.parametrize("status", [429, 529])
def test_a_job_that_is_refused_for_now_is_sent_again_and_then_given_up(double: BatchDouble, status: int) -> None:
    double.refuse_jobs(status, "busy", pauses=2)
    assert double.ask("a") == ["re: a"]
    double.refuse_jobs(status, "busy")
    with pytest.raises(ModelCallError, match="could not be submitted"):
        double.ask("b")
    assert (double.totals.free, double.totals.open, len(double.jobs)) == (1, 0, 1)


@pytest.mark.parametrize("junk", [[], "text", 5, None, {}, {"data": [5]}, {"data": [{"id": "batch_9"}]}, 503])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_an_answer_that_describes_no_job_is_asked_for_again(double: BatchDouble, number: int, junk: object) -> None:
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
    openai.problems = [{"code": "invalid_json_line", "line": n, "message": f"Broken ({n})."} for n in range(1, 9)]
    with pytest.raises(ConfigError, match=r"batch_0 was refused, nothing was charged: line 1: .*line 3.*5 more"):
        openai.ask("a")
    assert (openai.totals.free, openai.totals.open, openai.open_jobs) == (1, 0, [])


def test_a_job_that_found_the_queue_full_waits_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openai = BatchDouble("openai", tmp_path)
    monkeypatch.setattr(type(openai.jobs_api()), "most_calls", 2)
    full = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    openai.after = lambda call: setattr(openai, "problems", [full] if len(openai.jobs) == 1 else [])
    assert openai.ask(*"abcd", attempts=1) == [f"re: {t}" for t in "abcd"]
    assert [bool(job.problems) for job in openai.jobs] == [False, True, False]
    assert openai.totals.usd_paid == openai.bill
