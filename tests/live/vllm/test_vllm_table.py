"""`h2htalk evaluate vllm:PATH` gives the table of `hf:PATH`; each item that differs is a near-tie, or this fails."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from near_ties import MARGIN, Judge
from vllm_runs import evaluate_command

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split

# Two evaluations and their comparison, on machines that do other work as well.
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

ITEMS, TOKENS = 22, 24


def evaluate(model: str, out: Path, *options: object) -> dict[str, Any]:
    # Without SAP, which makes prompts four times as long: transformers reads every one anew.
    command = evaluate_command(model, out, "--limit", ITEMS, "--max-tokens", TOKENS, "--sap", "none", *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    # vLLM's own words do not reach the terminal: progress is all that stands on stderr.
    assert all(line.startswith(("generate", "score")) for line in done.stderr.splitlines()), done.stderr
    return summary


def answers(out: Path) -> dict[str, Response]:
    found = RunFolder(out).answers()
    return {key[0]: answer for key, answer in found.items() if isinstance(answer, Response)}


def test_the_table_is_that_of_hf_and_every_difference_is_a_near_tie(smollm2: Path, tmp_path: Path) -> None:
    vllm = evaluate(f"vllm:{smollm2}", tmp_path / "vllm", "--engine-option", "max_model_len=8192")
    local = evaluate(f"hf:{smollm2}", tmp_path / "hf")
    ours, theirs = answers(tmp_path / "vllm"), answers(tmp_path / "hf")
    assert ours.keys() == theirs.keys()
    assert len(ours) == ITEMS == vllm["counts"]["scored"] == local["counts"]["scored"]

    differing = sorted(key for key in ours if ours[key].text != theirs[key].text)
    judge = Judge(str(smollm2))
    split, prompts, sap = load_split("mini@1"), PromptSet.load(None), Sap.parse("none")
    scenarios = {s.id: s for s in split.scenarios}
    for key in differing:
        scenario = scenarios[key]
        messages = prompts.messages(scenario, split.personas[scenario.persona], sap)
        tie = judge.explain(messages, ours[key].text, TOKENS)
        print(f"{key}: {tie}")
        assert tie is not None, f"{key}: transformers alone writes vLLM's answer"
        assert tie.margin < MARGIN, f"{key}: at token {tie.step} the two are {tie.margin} apart"
    for key in ours.keys() - set(differing):
        assert ours[key].usage == theirs[key].usage
        assert ours[key].finish_reason == theirs[key].finish_reason
    # float32 on both sides: ties are rare, and the table is the same wherever there is none.
    assert len(differing) <= ITEMS // 10
    if not differing:
        assert figures(tmp_path / "vllm") == figures(tmp_path / "hf")


def figures(out: Path) -> Any:
    """The summary without what names the engine, the times and the hashes of files."""
    summary = json.loads((out / "summary.json").read_text())
    own = ("model", "signature", "answering", "sha256", "scores_sha256")
    return {key: value for key, value in summary.items() if key not in own}


def test_the_judge_tells_a_near_tie_from_a_wrong_answer(smollm2: Path) -> None:
    """A test of the test: another answer than the model's is far from a tie."""
    judge = Judge(str(smollm2))
    asked = (Message("user", "What is the capital of France?"),)
    apart = judge.explain(asked, "Zebra crossings are nice.", 10)
    assert apart is not None
    assert apart.step == 0
    assert apart.margin > 1
