"""Asking a model: what stops a run whose replies are all alike worthless."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from h2htalk.benchmark.evaluate import STARVED_REPLIES, evaluate, make_plan, missing_requests
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError

CUT = {"text": "", "finish_reason": "length"}
CUT_IN_THOUGHT = CUT | {"text": "<think>The user seems"}
REPLY = {"text": "Tell me more.", "finish_reason": "stop"}
IDS = [s.id for s in load_split("mini@1").select("en", (), 20).scenarios]


def spec(tmp_path: Path, lines: list[Mapping[str, str]], **more: float) -> EvaluateSpec:
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
        evaluate(spec(tmp_path, [cut]))
    assert len(RunFolder(tmp_path / "run").answers()) == STARVED_REPLIES


def test_one_reply_with_a_word_in_it_lets_the_run_go_on(tmp_path: Path) -> None:
    summary = evaluate(spec(tmp_path, [CUT] * (STARVED_REPLIES - 1) + [REPLY] + [CUT]))
    assert summary.counts.scored == 20


def test_what_was_never_asked_comes_before_what_failed(tmp_path: Path) -> None:
    """A few items that always fail would pause each restart before the others are asked."""
    plan = make_plan(spec(tmp_path, [REPLY], samples=2, temperature=0.7))
    first, *others = [scenario.id for scenario in plan.split.scenarios]
    answers: Answers = {(first, 0): FailedResponse(first, 0, Failure("timeout")), (first, 1): Response(first, 1, "a")}
    keys = [(request.id, request.sample) for request in missing_requests(plan, answers)]
    assert keys == [*((name, sample) for name in others for sample in range(2)), (first, 0)]
