"""Batch jobs of both providers, through their real SDKs: what is sent, what comes back, what it costs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from batch_double import CALL_USD, BatchDouble, both, fates, requests, texts, totals

from h2htalk.errors import ModelCallError

# --- The plain course of things ---------------------------------------------------------------------------------


@both
def test_replies_come_in_the_order_of_the_requests_whatever_the_order_of_results(provider: str, tmp_path: Path) -> None:
    names = [f"item {n}" for n in range(40)]
    seen: list[int] = []
    double = BatchDouble(provider)
    outcomes = double.run(requests(*names), tmp_path, on_done=lambda index, _: seen.append(index))
    assert texts(outcomes) == [f"re: {name}" for name in names]
    assert sorted(seen) == list(range(40))
    assert seen != sorted(seen)


@both
def test_a_call_is_settled_before_its_answer_is_given(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider)
    calls = double.calls_at(tmp_path)
    still_open: list[int] = []
    double.run(requests("a", "b", "c"), calls, lambda *_: still_open.append(totals(calls).open))
    assert still_open == [2, 1, 0]
    double.calls.clear()
    assert double.run([], tmp_path) == double.calls == []  # nothing is asked for, and no job is open


@both
def test_more_calls_than_a_job_may_hold_make_several(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = BatchDouble(provider)
    calls = double.calls_at(tmp_path)
    monkeypatch.setattr(type(double.jobs_api()), "most_calls", 3)
    assert len(double.run(requests(*"abcdefgh"), calls)) == 8
    assert [len(job.lines) for job in double.jobs] == [3, 3, 2]
    assert totals(calls).usd_paid == double.bill == 8 * CALL_USD


# --- Results ----------------------------------------------------------------------------------------------------


@both
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
    provider: str, fate: str, reason: str, paid: int, possibly_paid: int, free: int, tmp_path: Path
) -> None:
    double = BatchDouble(provider, fates(b=fate))
    calls = double.calls_at(tmp_path)
    assert texts(double.run(requests("a", "b"), calls)) == ["re: a", reason]
    assert double.asked == {"a": 1, "b": 1}
    found = totals(calls)
    assert (found.paid, found.possibly_paid, found.free) == (paid, possibly_paid, free)
    assert found.usd_paid == paid * CALL_USD
    assert possibly_paid or found.usd_paid == double.bill
    assert (found.usd_paid or 0) + (found.usd_possible or 0) >= double.bill


@both
@pytest.mark.parametrize("fate", ["expired", "overloaded"])
def test_what_was_not_computed_is_asked_again_in_a_new_batch(provider: str, fate: str, tmp_path: Path) -> None:
    double = BatchDouble(provider, fates(b=f"{fate} {fate} ok"))
    calls = double.calls_at(tmp_path)
    assert texts(double.run(requests("a", "b"), calls)) == ["re: a", "re: b"]
    assert double.asked == {"a": 1, "b": 3}
    assert [len(job.lines) for job in double.jobs] == [2, 1, 1]
    assert totals(calls).usd_paid == double.bill
    assert totals(calls).free == 2


@both
def test_results_that_are_not_ours_or_come_twice_are_ignored_and_counted(
    provider: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    double = BatchDouble(provider)
    ours: list[dict[str, Any]] = []

    def repeat(call: str) -> None:
        if double.jobs and double.jobs[0].results and not ours:
            mark = double.jobs[0].results[0]["custom_id"].partition("-")[0]
            ours.append(double.jobs[0].results[0])
            names = ("stranger-1", f"{mark}-2", f"{mark}-01", f"{mark}-²", "", f"{mark}-{'9' * 30}")
            double.extra = [double.jobs[0].results[0] | {"custom_id": name} for name in names]
            double.extra += [ours[0], b"not json", b"[1]", b"{}", b""]

    double.before = repeat
    seen: Counter[int] = Counter()
    calls = double.calls_at(tmp_path)
    outcomes = double.run(requests("a", "b"), calls, lambda index, _: seen.update([index]))
    assert texts(outcomes) == ["re: a", "re: b"]
    assert seen == {0: 1, 1: 1}
    assert totals(calls).usd_paid == double.bill
    # OpenAI's strange lines come with each of the two files.
    files = {"openai": 2, "anthropic": 1}[provider]
    assert f"ignored {10 * files} results" in capsys.readouterr().err


@both
def test_a_results_stream_that_breaks_is_read_again_and_gives_each_outcome_once(
    provider: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    double = BatchDouble(provider)
    double.cut = 3
    calls = double.calls_at(tmp_path)
    seen: Counter[int] = Counter()
    names = [f"item {n}" for n in range(20)]
    outcomes = double.run(requests(*names), calls, lambda index, _: seen.update([index]))
    assert texts(outcomes) == [f"re: {name}" for name in names]
    assert set(seen.values()) == {1}
    assert totals(calls).usd_paid == double.bill
    assert json.loads((tmp_path / "calls.jsonl").read_text().splitlines()[-1])["succeeded"] == 20
    assert "ignored" not in capsys.readouterr().err


@both
def test_trouble_that_no_call_survives_stops_the_run_and_is_free(provider: str, tmp_path: Path) -> None:
    double = BatchDouble(provider, lambda text, times: "fatal")
    calls = double.calls_at(tmp_path)
    with pytest.raises(ModelCallError, match="API_KEY"):
        double.run(requests("a", "b"), calls)
    assert (totals(calls).free, totals(calls).open) == (2, 0)
    double.fate = lambda text, times: "ok"
    assert texts(double.run(requests("a", "b"), tmp_path)) == ["re: a", "re: b"]
