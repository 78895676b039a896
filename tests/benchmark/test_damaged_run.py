"""A run folder that somebody edited, or that a disk damaged, is refused in one line: never believed, never a crash."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import h2htalk
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.run import read_run_data
from h2htalk.benchmark.score_run import report, score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import read_summary
from h2htalk.curation.release.card import read_results
from h2htalk.data.files import read_json_object
from h2htalk.errors import H2HTalkError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    scoring = {"limit": 22, "embedder": "none", "baselines": False}
    evaluate(EvaluateSpec(model="baseline:constant", split="mini@1", out=str(out), **scoring))
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def change(path: Path, place: Sequence[str], value: object) -> None:
    """Put a value into a JSON file; NaN is written as Python writes it."""
    record = json.loads(path.read_text())
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(record))


def spec_of(run: Path) -> EvaluateSpec:
    return replace(EvaluateSpec.from_dict(read_json_object(run / "run.json")["spec"], "run.json"), out=str(run))


def refusal(read: Callable[[], object], path: Path) -> str:
    with pytest.raises(H2HTalkError) as raised:
        read()
    text = str(raised.value)
    assert all(line.startswith(f"{path}") for line in text.splitlines())
    assert raised.value.exit_code == 2
    return text


# --- summary.json -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("rows", "lexical", "overall", "value"), 99.0),
        (("model",), "better"),
        (("rows",), None),
        (("sha256",), None),
        (("scores_sha256",), None),
    ],
)
def test_an_edited_summary_is_refused(run: Path, place: Sequence[str], value: object) -> None:
    change(run / "summary.json", place, value)
    for read in (lambda: read_summary(run / "summary.json"), lambda: report(run), lambda: list(read_results(run))):
        assert "was edited, or is of another version; run `h2htalk score` again" in refusal(read, run / "summary.json")


# --- run.json ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("signature",), 5),
        (("signature", "protocol"), {}),
        (("spec",), {}),
        (("spec", "limit"), True),
        (("split",), ["source"]),
    ],
)
def test_a_run_json_that_no_run_wrote_is_refused(run: Path, place: Sequence[str], value: object) -> None:
    change(run / "run.json", place, value)
    refusal(lambda: read_run_data(run).folder.signature(), run / "run.json")


# --- Answers, scores and inputs ----------------------------------------------------------------------------------


def test_edited_scores_are_refused(run: Path) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    (path,) = (run / "scores").iterdir()
    table = pq.read_table(path)
    place = table.schema.get_field_index("bleu_1")
    pq.write_table(table.set_column(place, "bleu_1", pc.add(table["bleu_1"], 0.1)), path)
    for read in (lambda: h2htalk.load_run(run), lambda: h2htalk.leaderboard([run])):
        assert "edited since the summary was made; run `h2htalk score` again" in refusal(read, path)
    path.unlink()
    assert "missing" in refusal(lambda: h2htalk.load_run(run), path)


def test_an_edited_answer_has_no_score(run: Path) -> None:
    path = run / "calls.jsonl"
    first, *rest = path.read_text().splitlines()
    edited = {**json.loads(first), "text": "Much better."}
    path.write_text("\n".join([json.dumps(edited), *rest]) + "\n")
    for read in (lambda: report(run), lambda: h2htalk.leaderboard([run]), lambda: evaluate(spec_of(run))):
        assert f"1 item with answers that are not those that were scored ('{edited['id']}')" in refusal(read, run)
    score(run)
    report(run)


def test_an_answer_that_came_after_scoring_is_not_read_with_the_scores(run: Path) -> None:
    path = run / "calls.jsonl"
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-1]))
    score(run)
    h2htalk.load_run(run)
    path.write_text("".join(whole))
    assert "1 item with answers that are not those that were scored" in refusal(lambda: h2htalk.load_run(run), run)


# --- Links -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["calls.jsonl", "tables"])
def test_a_run_that_holds_a_link_is_neither_read_nor_written(run: Path, tmp_path: Path, name: str) -> None:
    """What it names is somebody's file."""
    path, elsewhere = run / name, tmp_path / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.stat().st_mtime_ns
    for read in (lambda: report(run), lambda: score(run), lambda: evaluate(spec_of(run))):
        assert "is a symbolic link" in refusal(read, path)
    assert elsewhere.stat().st_mtime_ns == before
