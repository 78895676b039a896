"""Inspect AI itself on our tasks, beside our own evaluation of the same model (environment: .venv-harness)."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from loopback import Answer, LoopbackServer

import h2htalk
from h2htalk.data.responses import Response

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]
pytest.importorskip("inspect_ai")
BIN = Path(sys.executable).parent
LEXICAL = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l")


def number_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def scripted_reply(request: dict[str, Any], count: int) -> str | Answer:
    """A reply that depends on the last message: part of it, nothing, or an error for some."""
    last = [one["content"] for one in request["messages"] if one["role"] == "user"][-1]
    number, words = number_of(last), last.split()
    if number % 23 == 0:  # Inspect makes the error's message a reply
        return "context_length"
    if number % 31 == 0:
        return "http_500"
    if number % 29 == 0:
        return ""
    if any("\u4e00" <= one <= "\u9fff" for one in last):
        return f"我在听。{last[number % 7 : number % 7 + 40]}"
    return f"I hear you. {' '.join(words[number % 5 : number % 5 + 25])}"


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(reply=scripted_reply) as made:
        yield made


def run_inspect(server: LoopbackServer, folder: Path, *arguments: str) -> str:
    """Run the command line in a folder of its own: a folder with our sources would hide the installed package."""
    given = {"LOOP_BASE_URL": server.url, "LOOP_API_KEY": "not-a-key", "INSPECT_DISPLAY": "plain", "PYTHONPATH": ""}
    done = subprocess.run(
        [BIN / "inspect", *arguments], cwd=folder, env={**os.environ, **given}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluate_in_inspect(server: LoopbackServer, folder: Path, task: str, *options: str) -> Any:
    from inspect_ai.log import read_eval_log

    model = ("--model", "openai-api/loop/demo", "--log-dir", str(folder / "logs"))
    folder.mkdir(exist_ok=True)
    run_inspect(server, folder, "eval", task, *model, *options)
    return read_eval_log(str(max((folder / "logs").iterdir(), key=lambda path: path.stat().st_mtime_ns)))


def metrics_of(log: Any) -> dict[str, float]:
    return {
        name: one.value
        for score in log.results.scores
        for name, one in score.metrics.items()
        if score.name == "companion"
    }


def rows_of(run: Path) -> dict[str, dict[str, Any]]:
    (file,) = (run / "scores").iterdir()
    return {row["id"]: row for row in pq.read_table(file).to_pylist()}


@pytest.fixture(scope="module", params=["en", "zh"])
def both(request: pytest.FixtureRequest, server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The log of Inspect and the run of ours, of one model on one language of `mini`."""
    language, folder = request.param, tmp_path_factory.mktemp(request.param)
    embedder = "minilm" if language == "en" else "none"
    asked = ("--max-retries", "0", "-T", f"language={language}", "-T", f"embedder={embedder}")
    log = evaluate_in_inspect(server, folder, "h2htalk/mini", *asked)
    spec: dict[str, Any] = {"language": language, "embedder": embedder}
    summary = h2htalk.evaluate(
        h2htalk.EvaluateSpec(
            model=server.spec.replace("loopback@", "demo@"), split="mini", out=str(folder / "run"), **spec
        )
    )
    return log, folder, summary, embedder


def test_every_item_has_the_same_values_and_the_same_items_are_unscored(both: Any) -> None:
    log, folder, _, embedder = both
    rows = rows_of(folder / "run")
    columns = [*LEXICAL, "lexical", *(("ss", "s") if embedder == "minilm" else ())]
    assert len(log.samples) == len(rows) == 176
    scored = 0
    for sample in log.samples:
        value, row = sample.scores["companion"].value, rows[sample.id]
        if row["unscored"]:
            assert math.isnan(value)
            continue
        scored += 1
        assert {name: value[name] for name in columns} == pytest.approx({name: row[name] for name in columns}, abs=1e-9)
        assert value["compliance"] == float(not row["violations"])
        assert sample.target == list(sample.target)
    assert 150 < scored < 176
    assert {sample.scores["companion"].reason for sample in log.samples} == {None, "failed_call"}


def test_the_weights_of_table_1_are_a_metric(both: Any) -> None:
    log, _, summary, embedder = both
    row = summary.rows.s if embedder == "minilm" else summary.rows.lexical
    found = metrics_of(log)
    name = "s" if embedder == "minilm" else "lexical"
    assert 100 * found[f"overall_{name}"] == pytest.approx(row["overall"].value)


def test_a_log_becomes_a_run_with_the_same_scores(both: Any) -> None:
    log, folder, summary, _ = both
    done = subprocess.run(
        [BIN / "h2htalk", "import", "inspect", log.location.removeprefix("file://"), "--out", str(folder / "imported")],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr  # some items failed
    ours, theirs = rows_of(folder / "run"), rows_of(folder / "imported")
    for row in (*ours.values(), *theirs.values()):
        row["unscored"] = row["unscored"] is not None  # other words for the same failure
    assert theirs == ours
    imported = h2htalk.load_run(folder / "imported")
    assert imported.summary.signature.fingerprint == summary.signature.fingerprint
    answers = [one for one in imported.answers.values() if isinstance(one, Response)]
    assert {one.usage.input_tokens for one in answers} == {120}
    assert all(one.seconds for one in answers)
