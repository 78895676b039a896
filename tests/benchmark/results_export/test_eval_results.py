"""Entries for a model's page: the Hub's own form, no nulls, quoted dates, and cautions where a figure needs one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import scripted
from huggingface_hub import EvalResultEntry, parse_eval_result_entries
from judged_made import scripted_judge

import h2htalk
from h2htalk.benchmark.results_export.export import figures_of, write_eval_results
from h2htalk.benchmark.run import load_run
from h2htalk.data.subtasks import FIGURES, task_id
from h2htalk.errors import ConfigError

COMMIT = "0123456789abcdef" * 2 + "01234567"
HUB = {"dataset": "lab/h2htalk", "revision": COMMIT}


def export(run: Path, out: Path, **options: Any) -> Path:
    (path,) = h2htalk.export_results(run, "eval-results", out, **{**HUB, **options})
    return path


def entries_of(path: Path) -> dict[str, EvalResultEntry]:
    return {entry.task_id: entry for entry in parse_eval_result_entries(yaml.safe_load(path.read_text()))}


def test_fifteen_tasks_a_language_hold_the_figures_of_the_run(run_with_s: Path, tmp_path: Path) -> None:
    path = export(run_with_s, tmp_path / "out", source_url="https://example.org/run")
    assert path == tmp_path / "out" / ".eval_results" / "lab--h2htalk.yaml"
    entries = entries_of(path)
    assert list(entries) == list(FIGURES)
    assert len(FIGURES) == 15
    summary = load_run(run_with_s).summary
    row = summary.rows.s
    assert row
    cells = {"overall": row.overall, **row.dimensions, **row.cells}
    for name, entry in entries.items():
        cell = cells[name]
        assert entry.value == pytest.approx(cell.value, abs=0.005)
        assert (entry.dataset_id, entry.dataset_revision) == ("lab/h2htalk", COMMIT)
        assert entry.source_url == "https://example.org/run"
        assert f"{cell.n} items, 95 % interval {cell.low:.2f} to {cell.high:.2f}; " in (entry.notes or "")
        assert f"protocol {summary.signature.fingerprint}" in (entry.notes or "")


def test_nothing_is_null_and_dates_are_texts(run_with_s: Path, tmp_path: Path) -> None:
    path = export(run_with_s, tmp_path)
    text, data = path.read_text(), yaml.safe_load(path.read_text())
    assert not re.search(r"null|~|: *$", text.replace("dataset:\n", ""), re.MULTILINE)
    assert {entry["date"][-1] for entry in data} == {"Z"}
    assert "\n  date: '20" in text
    assert export(run_with_s, tmp_path / "again").read_bytes() == path.read_bytes()


def test_other_measures_say_so(run_with_s: Path, lexical_run: Path, tmp_path: Path) -> None:
    with_minilm = entries_of(export(run_with_s, tmp_path / "s"))["overall"]
    assert (with_minilm.notes or "").startswith("S with embedder minilm@sha256:53aa51172d142c89, not with BGE-M3; ")
    lexical = entries_of(export(lexical_run, tmp_path / "lexical"))
    assert list(lexical) == [task_id(name, language) for language in ("en", "zh") for name in FIGURES]
    cautions = {(entry.notes or "").partition(";")[0] for entry in lexical.values()}
    assert cautions == {"mean of six lexical metrics, not S"}
    figures = figures_of(load_run(lexical_run).data.split.scenarios, load_run(lexical_run).item_scores)
    assert lexical["dialogue_zh"].value == round(figures["dialogue_zh"].cell.value or 0, 2)


def test_s_of_a_judged_run_says_that_no_rating_is_in_it(lexical_run: Path, tmp_path: Path) -> None:
    """S stood under the fingerprint of S and J, and nothing said which of the two it was."""
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, "no JSON")
    summary = h2htalk.judge_run(h2htalk.JudgeSpec(run=lexical_run, judges=(judge,)))
    label = "judge.jsonl@"
    entry = entries_of(export(lexical_run, tmp_path / "out"))["overall_zh"]
    assert f"without the ratings of scripted:{label}" in (entry.notes or "")
    assert f"protocol {summary.signature.fingerprint}" in (entry.notes or "")
    record, _ = h2htalk.export_results(lexical_run, "every-eval-ever", tmp_path, organization="Lab", model="lab/m")
    assert f'"without_ratings_of": "scripted:{label}' in record.read_text()


def test_the_run_names_its_data_set_when_it_came_from_the_hub(run_with_s: Path, tmp_path: Path) -> None:
    run = load_run(run_with_s)
    split = replace(run.data.split, source="hub:lab/theirs@v1.0", commit=COMMIT)
    hub = replace(run, data=replace(run.data, split=split))
    entry = entries_of(write_eval_results(hub, tmp_path))["overall"]
    assert (entry.dataset_id, entry.dataset_revision) == ("lab/theirs", COMMIT)
    part = replace(hub, data=replace(run.data, split=replace(split, source="hub:lab/theirs@v1.0#dev")))
    with pytest.raises(ConfigError, match="are of all items of split test"):
        write_eval_results(part, tmp_path)
    with pytest.raises(ConfigError, match="--dataset OWNER/NAME and --revision COMMIT"):
        write_eval_results(run, tmp_path, dataset="lab/theirs")


def test_a_run_that_is_no_result_is_refused(tmp_path: Path) -> None:
    base = h2htalk.EvaluateSpec(model=scripted(tmp_path), split="mini@1", out="x", embedder="none")
    lost = {"id": "mini-en-dialogue-base-01", "failure": {"reason": "timeout", "message": ""}}
    cases = {
        "incomplete: 1 item unscored": {"model": scripted(tmp_path, {"id": "*", "text": "Hello."}, lost)},
        "are of all items of split test": {"model": "baseline:constant", "limit": 22},
    }
    for number, (message, change) in enumerate(cases.items()):
        spec = replace(base, out=str(tmp_path / str(number)), **change)
        h2htalk.evaluate(spec)
        with pytest.raises(ConfigError, match=message):
            export(spec.out_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
