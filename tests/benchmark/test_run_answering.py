"""A run says when, how long, by what and with which versions it was answered, and does not mix endpoints unnoticed."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, LoopbackServer, completion
from rich.console import Console
from splits_made import write_split

import h2htalk
from h2htalk.benchmark.answering import Session, describe_answering
from h2htalk.benchmark.evaluate import STARVED_REPLIES, evaluate, make_plan, missing_requests
from h2htalk.benchmark.judge.rubric import rubric_of
from h2htalk.benchmark.report.leaderboard import leaderboard
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError

ITEMS = 24


def named(payload: dict[str, Any], count: int) -> Answer:
    """A reply of a server whose back end changes for some items."""
    fingerprint = "fp_new" if "item7" in payload["messages"][-1]["content"] else "fp_old"
    return Answer(completion() | {"model": "loopback-2026", "system_fingerprint": fingerprint})


def spec_of(server: LoopbackServer, folder: Path, **settings: Any) -> EvaluateSpec:
    split = folder / "split"
    if not split.exists():
        write_split(split, ITEMS)
    return EvaluateSpec(
        model=server.spec, split=str(split), out=str(folder / "run"), embedder="none", baselines=False, **settings
    )


def half_answered(folder: Path) -> LoopbackServer:
    """Answer some items; return the server, which is closed."""
    with LoopbackServer(faults={"context_length": 0.5}) as server:
        assert evaluate(spec_of(server, folder)).incomplete
    return server


def test_every_step_works_in_a_notebook(tmp_path: Path) -> None:
    """Where an event loop runs, `evaluate` ended in an error that named an internal function."""

    async def cell(server: LoopbackServer) -> list[bool]:
        summary = h2htalk.evaluate(spec_of(server, tmp_path))
        judged = h2htalk.judge_run(h2htalk.JudgeSpec(run=run, judges=(server.spec,), scope="all"))
        ask = EvaluateSpec(model=server.spec, split="high_risk", out=str(tmp_path / "study"), embedder="none", limit=1)
        study = h2htalk.run_study(h2htalk.StudySpec(study="sap", ask=ask))
        return [summary.incomplete, judged.incomplete, study.incomplete]

    run = str(tmp_path / "run")
    write_split(tmp_path / "split", ITEMS, ("dialogue_base",))
    with LoopbackServer(reply=rubric_of("dialogue_base").example()) as server:
        assert asyncio.run(cell(server)) == [False] * 3


def test_what_a_run_says_of_itself(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with LoopbackServer(reply=named) as server:
        summary = evaluate(spec_of(server, tmp_path))
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())
    told = summary.answering
    assert run["answering"] == stored["answering"]
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(told.started) <= datetime.now(UTC)
    assert (told.sessions, told.input_tokens, told.output_tokens) == (1, 120 * ITEMS, 24 * ITEMS)
    assert 0 < told.seconds < 60
    assert told.endpoints == {server.url: ITEMS}
    assert told.models == {"loopback-2026": ITEMS}
    assert told.fingerprints == {"fp_old": ITEMS - 1, "fp_new": 1}
    assert {one.partition(" ")[0] for one in told.versions} == {"h2htalk", "Python", "aiohttp"}
    assert {"numpy", "jieba", "sacrebleu"} < {one.partition(" ")[0] for one in told.scoring_versions}
    assert load_run(tmp_path / "run").summary == summary
    text = io.StringIO()
    print_summary(summary, Console(file=text, width=200))
    written = [(tmp_path / "run" / name).read_text() for name in ("tables/run.csv", "report.html")]
    for content in (text.getvalue(), *written):
        for fact in (told.started, "2,880 in, 576 out", "loopback-2026", "fp_new (1 answer)", "Python 3.", "aiohttp"):
            assert fact in content, fact
    assert "the server's system_fingerprint changed during the run" in text.getvalue()


def test_another_endpoint_is_refused_unless_accepted_and_then_in_every_table(tmp_path: Path) -> None:
    first = half_answered(tmp_path)
    with LoopbackServer() as second:
        with pytest.raises(ConfigError, match=rf"{first.url}, and {second.url} is to be asked.*--accept-endpoint"):
            evaluate(spec_of(second, tmp_path))
        assert second.requests == 0
        summary = evaluate(spec_of(second, tmp_path, accept_endpoint=True))
        assert summary == evaluate(spec_of(second, tmp_path))  # complete: nothing is asked
    assert not summary.incomplete
    assert summary.answering.sessions == 2
    assert set(summary.answering.endpoints) == {first.url, second.url}
    assert sum(summary.answering.endpoints.values()) == ITEMS
    text = io.StringIO()
    print_summary(summary, Console(file=text, width=80))
    written = [tmp_path / "run" / "report.html", *(tmp_path / "run" / "tables").glob("*2.*")]
    for table in (text.getvalue(), leaderboard([tmp_path / "run"]).rows[0].name, *map(Path.read_text, written)):
        assert "2 endpoints" in table
    assert f"{second.url} (" in text.getvalue().replace("\n", "")


def test_a_session_that_was_killed_ended_with_its_last_answer() -> None:
    start = datetime(2026, 11, 1, 12, tzinfo=UTC)
    sessions = [
        Session(start, "http://a"),
        Session(start + timedelta(hours=1), "http://a", ended=start + timedelta(hours=1, minutes=5)),
        Session(start + timedelta(hours=3), "http://a"),  # killed before its first answer
    ]
    answers = {
        (name, 0): replace(Response(name, 0, "hi"), at=(start + timedelta(minutes=minutes)).timestamp())
        for name, minutes in (("a", 2), ("b", 10), ("c", 61))
    }
    told = describe_answering(sessions, answers, {}, {})
    assert (told.seconds, told.sessions, told.ended) == (15 * 60, 2, "2026-11-01T13:05:00+00:00")
    assert told.input_tokens is None


CUT = {"text": "", "finish_reason": "length"}
CUT_IN_THOUGHT = CUT | {"text": "<think>The user seems"}
REPLY = {"text": "Tell me more.", "finish_reason": "stop"}
IDS = [s.id for s in load_split("mini@1").select("en", (), 20).scenarios]


def spec_of_lines(tmp_path: Path, lines: list[Mapping[str, str]], **more: float) -> EvaluateSpec:
    """A run of 20 items; `lines` answer the first ones, the last line all others."""
    named = [{"id": item, **line} for item, line in zip(IDS, lines, strict=False)]
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join(map(json.dumps, [*named, {"id": "*", **lines[-1]}])))
    scoring = {"embedder": "none", "baselines": False, "limit": 20, "language": "en"}
    return EvaluateSpec(model=f"scripted:{path}", split="mini@1", out=str(tmp_path / "run"), **scoring, **more)


@pytest.mark.parametrize("cut", [CUT, CUT_IN_THOUGHT], ids=["empty", "in thought"])
def test_a_model_that_only_reasons_is_stopped_with_advice_and_its_replies_are_kept(
    tmp_path: Path, cut: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="--thinking 2048"):
        evaluate(spec_of_lines(tmp_path, [cut]))
    assert len(RunFolder(tmp_path / "run").answers()) == STARVED_REPLIES


def test_one_reply_with_a_word_in_it_lets_the_run_go_on(tmp_path: Path) -> None:
    summary = evaluate(spec_of_lines(tmp_path, [CUT] * (STARVED_REPLIES - 1) + [REPLY] + [CUT]))
    assert summary.counts.scored == 20


def test_what_was_never_asked_comes_before_what_failed(tmp_path: Path) -> None:
    """A few items that always fail would pause each restart before the others are asked."""
    plan = make_plan(spec_of_lines(tmp_path, [REPLY], samples=2, temperature=0.7))
    first, *others = [scenario.id for scenario in plan.split.scenarios]
    answers: Answers = {(first, 0): FailedResponse(first, 0, Failure("timeout")), (first, 1): Response(first, 1, "a")}
    keys = [(request.id, request.sample) for request in missing_requests(plan, answers)]
    assert keys == [*((name, sample) for name in others for sample in range(2)), (first, 0)]
