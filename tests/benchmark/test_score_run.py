"""Scoring and reporting a run folder alone: what is there must be what the signature says, and nobody else writes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.results_export.export import export_results, verify_results
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import report, score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.files import AppendLog, json_line, write_jsonl
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError, DataError


def spec_in(folder: Path) -> EvaluateSpec:
    write_jsonl(folder / "script.jsonl", [{"id": "*", "text": "I hear you."}])
    subtasks = ("dialogue_base", "recollection_synthesis")
    places = {"split": "mini@1", "out": str(folder / "run")}
    return EvaluateSpec(model=f"scripted:{folder}/script.jsonl", embedder="none", subtasks=subtasks, **places)


@pytest.fixture
def spec(tmp_path: Path) -> EvaluateSpec:
    return spec_in(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = replace(spec_in(tmp_path_factory.mktemp("finished")), baselines=False)
    evaluate(spec)
    return spec.out_path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run, to be edited."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


@pytest.mark.parametrize("model", [None, "baseline:constant"])
def test_a_restart_of_a_finished_run_scores_nothing_anew(
    spec: EvaluateSpec, monkeypatch: pytest.MonkeyPatch, model: str | None
) -> None:
    spec = replace(spec, model=model or spec.model)
    summary = evaluate(spec)
    folder = RunFolder(spec.out_path)
    with monkeypatch.context() as patch:
        patch.setattr("h2htalk.benchmark.evaluate.score_run_data", None)
        assert evaluate(spec) == summary
    assert evaluate(replace(spec, baselines=False)).baselines == {}
    for path in (folder.page, folder.tables / "slices.csv"):
        path.unlink()
        evaluate(replace(spec, baselines=False))
        assert path.exists()


def test_contracts_can_be_left_out(spec: EvaluateSpec, tmp_path: Path) -> None:
    """Prompts of one's own that ask for another length had their answers counted against the package's contract."""
    made = evaluate(replace(spec, contracts="none"))
    means = made.rows.compliance["items_mean"]
    assert (made.signature.protocol["contracts"], dict(made.violations), means.value) == ("none", {}, None)
    assert not made.incomplete
    assert score(spec.out_path) == made
    assert load_run(spec.out_path).items().column("compliance").unique().to_pylist() == [None]
    (bundle,) = export_results(spec.out_path, "bundle", tmp_path / "bundle.zip")
    assert verify_results(bundle, "mini@1").differs == []
    with pytest.raises(ConfigError, match="--contracts: must be 'package' or 'none', not 'mine'"):
        replace(spec, contracts="mine")


def test_a_restart_repairs_a_page_that_could_not_be_written(
    spec: EvaluateSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary was new and the page old, and a restart believed the summary."""
    evaluate(spec)
    folder = RunFolder(spec.out_path)
    folder.page.write_text("INCOMPLETE")
    folder.calls_file.touch()
    with monkeypatch.context() as patch:
        patch.setattr("h2htalk.benchmark.score_run.write_page", Mock(side_effect=DataError("the disk is full")))
        with pytest.raises(DataError):
            evaluate(spec)
    evaluate(spec)
    assert "INCOMPLETE" not in folder.page.read_text()


def edited_references(run: Path) -> None:
    path = run / "inputs" / "split" / "scenarios.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    write_jsonl(path, ({**record, "reference": "I hear you."} for record in records))


def edited_template(run: Path) -> None:
    (run / "inputs" / "prompts" / "en" / "sap" / "secure_base.j2").write_text("Be somebody else.")


def other_spec(run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    record["spec"] |= {"samples": 2, "temperature": 0.7}
    (run / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("edit", "key"), [(edited_references, "items"), (edited_template, "prompts"), (other_spec, "samples")]
)
def test_what_was_edited_is_not_scored_under_the_old_signature(
    run: Path, edit: Callable[[Path], None], key: str
) -> None:
    edit(run)
    with pytest.raises(DataError, match=f"{key} are not those of the run's signature"):
        score(run)


def test_a_run_that_is_being_written_is_neither_scored_nor_reported(run: Path) -> None:
    before = (run / "summary.json").read_bytes()
    with AppendLog(run / "calls.jsonl"):
        for step in (score, report):
            with pytest.raises(DataError, match="another process"):
                step(run)
    assert (run / "summary.json").read_bytes() == before


def test_baselines_stand_on_the_items_that_the_model_was_scored_on(spec: EvaluateSpec) -> None:
    script = Path(spec.model.partition(":")[2])
    lost = {"id": "mini-en-dialogue-base-01", "failure": {"reason": "timeout", "message": ""}}
    script.write_text("".join(json_line(line) for line in ({"id": "*", "text": "I hear you."}, lost)))
    summary = evaluate(spec)
    for row in (summary.rows.lexical, *(baseline.lexical for baseline in summary.baselines.values())):
        assert (row["dialogue_base"].n, row["dialogue_base"].total) == (13, 14)
