"""Scoring and reporting a run folder alone: damaged folders, people's replies, private references."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

import h2htalk
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.report.notes import notes
from h2htalk.benchmark.report.table_files import table_text
from h2htalk.benchmark.results_export.export import export_results
from h2htalk.benchmark.results_export.verify import verify_results
from h2htalk.benchmark.run import load_run, read_run_data
from h2htalk.benchmark.score_run import import_responses, report, score
from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.benchmark.summary import read_summary
from h2htalk.curation.release.card import read_results
from h2htalk.data.files import AppendLog, read_json_object, read_jsonl, sha256_of, write_jsonl
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from support.byte_search import files_with
from support.command_line import h2htalk_here, scripted
from support.runs import baseline_run


def spec_in(folder: Path) -> EvaluateSpec:
    write_jsonl(folder / "script.jsonl", [{"id": "*", "text": "I hear you."}])
    subtasks = ("dialogue_base", "recollection_synthesis")
    places = {"split": "mini@1", "out": str(folder / "run")}
    return EvaluateSpec(
        model=f"scripted:{folder}/script.jsonl", embedder="none", subtasks=subtasks, **places
    )


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
    return Path(shutil.copytree(finished, tmp_path / "copy"))


@pytest.mark.parametrize("model", [None, "baseline:constant"])
def test_a_restart_scores_nothing_anew(
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
    assert (made.signature.protocol["contracts"], dict(made.violations), means.value) == (
        "none",
        {},
        None,
    )
    assert not made.incomplete
    assert score(spec.out_path) == made
    assert load_run(spec.out_path).items().column("compliance").unique().to_pylist() == [None]
    (bundle,) = export_results(spec.out_path, "bundle", tmp_path / "bundle.zip")
    assert verify_results(bundle, "mini@1").differs == []
    with pytest.raises(ConfigError, match="--contracts: must be 'package' or 'none', not 'mine'"):
        replace(spec, contracts="mine")


def test_a_restart_repairs_a_page_that_was_not_written(
    spec: EvaluateSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary was new and the page old, and a restart believed the summary."""
    evaluate(spec)
    folder = RunFolder(spec.out_path)
    folder.page.write_text("INCOMPLETE")
    folder.calls_file.touch()
    with monkeypatch.context() as patch:
        patch.setattr(
            "h2htalk.benchmark.score_run.write_page",
            Mock(side_effect=DataError("the disk is full")),
        )
        with pytest.raises(DataError):
            evaluate(spec)
    evaluate(spec)
    assert "INCOMPLETE" not in folder.page.read_text()


def change(path: Path, place: Sequence[str], value: object) -> None:
    """Put a value into a JSON file; NaN is written as Python writes it."""
    record = json.loads(path.read_text())
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(record))


def restart(run: Path) -> object:
    return evaluate(read_spec(run / "run.json"))


@pytest.mark.parametrize("key", ["items", "prompts", "samples"])
def test_what_was_edited_is_not_scored_by_the_old_signature(run: Path, key: str) -> None:
    if key == "items":
        path = run / "inputs" / "split" / "scenarios.jsonl"
        write_jsonl(path, [record | {"reference": "I hear you."} for _, record in read_jsonl(path)])
    elif key == "prompts":
        (run / "inputs" / "prompts" / "en" / "sap" / "secure_base.j2").write_text(
            "Be somebody else."
        )
    else:
        change(run / "run.json", ("spec", "samples"), 2)
        change(run / "run.json", ("spec", "temperature"), 0.7)
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
    lost = {"id": "mini-en-dialogue-base-01", "failure": {"reason": "timeout", "message": ""}}
    write_jsonl(Path(spec.model.partition(":")[2]), [{"id": "*", "text": "I hear you."}, lost])
    summary = evaluate(spec)
    for row in (
        summary.rows.lexical,
        *(baseline.lexical for baseline in summary.baselines.values()),
    ):
        assert (row["dialogue_base"].n, row["dialogue_base"].total) == (13, 14)


def refusal(read: Callable[[], object], path: Path) -> str:
    with pytest.raises(H2HTalkError) as raised:
        read()
    text = str(raised.value)
    assert all(line.startswith(f"{path}") for line in text.splitlines())
    assert raised.value.exit_code == 2
    return text


@pytest.mark.parametrize("place", [("rows", "lexical", "overall", "value"), ("rows",), ("sha256",)])
def test_an_edited_summary_is_refused(run: Path, place: Sequence[str]) -> None:
    change(run / "summary.json", place, 99.0 if place[-1] == "value" else None)
    for read in (
        lambda: read_summary(run / "summary.json"),
        lambda: report(run),
        lambda: list(read_results(run)),
    ):
        assert "was edited, or is of another version; run `h2htalk score` again" in refusal(
            read, run / "summary.json"
        )


@pytest.mark.parametrize(
    ("place", "value"), [(("signature", "protocol"), {}), (("split",), ["source"])]
)
def test_a_run_json_that_no_run_wrote_is_refused(
    run: Path, place: Sequence[str], value: object
) -> None:
    change(run / "run.json", place, value)
    refusal(lambda: read_run_data(run).folder.signature(), run / "run.json")


def test_edited_scores_are_refused(run: Path) -> None:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    (path,) = (run / "scores").iterdir()
    table = pq.read_table(path)
    place = table.schema.get_field_index("bleu_1")
    pq.write_table(table.set_column(place, "bleu_1", pc.add(table["bleu_1"], 0.1)), path)
    for read in (lambda: load_run(run), lambda: h2htalk.leaderboard([run])):
        assert "edited since the summary was made; run `h2htalk score` again" in refusal(read, path)
    path.unlink()
    assert "missing" in refusal(lambda: load_run(run), path)


def test_an_edited_answer_has_no_score(run: Path) -> None:
    path = run / "calls.jsonl"
    first, *rest = path.read_text().splitlines()
    edited = {**json.loads(first), "text": "Much better."}
    path.write_text("\n".join([json.dumps(edited), *rest]) + "\n")
    for read in (lambda: report(run), lambda: h2htalk.leaderboard([run]), lambda: restart(run)):
        assert (
            f"1 item with answers that are not those that were scored ('{edited['id']}')"
            in refusal(read, run)
        )
    score(run)
    report(run)
    *lines, last = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines))
    score(run)
    path.write_text("".join(lines) + last)  # it came after scoring
    assert "1 item with answers that are not those that were scored" in refusal(
        lambda: load_run(run), run
    )


@pytest.mark.parametrize("name", ["calls.jsonl", "tables"])
def test_a_run_that_holds_a_link_is_neither_read_nor_written(
    run: Path, tmp_path: Path, name: str
) -> None:
    """What it names is somebody's file."""
    path = run / name
    elsewhere = tmp_path / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.stat().st_mtime_ns
    for read in (lambda: report(run), lambda: score(run), lambda: restart(run)):
        assert "is a symbolic link" in refusal(read, path)
    assert elsewhere.stat().st_mtime_ns == before


LABEL = "Human replies (panel)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Two models' runs, and replies of people to the same items."""
    folder = tmp_path_factory.mktemp("runs")
    people = folder / "people"
    for name in ("constant", "copy-last-turn"):
        baseline_run(folder / name, name, limit=None)
    # In the form of a stored response, with fields that only a call has.
    called = {"usage": {"output_tokens": 9}, "model": "m", "thinking": "so"}
    written = (
        {"id": s.id, "text": s.reference + " !", **called}
        for s in h2htalk.load_split("mini@1").scenarios
    )
    write_jsonl(folder / "replies.jsonl", written)
    import_responses(folder / "replies.jsonl", "panel", "mini@1", people, "none", human=True)
    return folder / "constant", people, folder / "copy-last-turn"


def test_the_run_says_that_people_wrote_it(runs: tuple[Path, ...]) -> None:
    folder = runs[1]
    run = load_run(folder)
    assert run.summary.model == LABEL
    assert read_json_object(folder / "summary.json")["signature"]["subject"]["engine"] == "human"
    assert "Replies written by people, not by a model." in dict(notes(run.summary))
    assert run.summary.costs == {}
    stored = [record for _, record in read_jsonl(folder / "calls.jsonl")]
    assert not any(record.get(key) for record in stored for key in ("usage", "model", "thinking"))
    for shown in (folder / "report.html", *(folder / "tables").glob("table2.*")):
        assert "Human replies" in shown.read_text(encoding="utf-8"), shown


def test_people_stand_beside_the_models_and_take_no_place_among_them(
    runs: tuple[Path, ...],
) -> None:
    board = h2htalk.leaderboard([runs[1], runs[0], runs[2]])
    (group,) = board.runs
    assert [(row.model, row.source, row.marks.get("overall")) for row in group.rows] == [
        (LABEL, "human", None),
        ("baseline:copy-last-turn", "run", 1),
        ("baseline:constant", "run", 1),  # 22 items do not tell them apart
    ]
    assert f"{LABEL},human," in table_text(board.rows, "csv")


ITEMS = load_split("mini@1").select(limit=22)
SECRET = "a word that only the owner knows"


@pytest.fixture
def private_spec(tmp_path: Path) -> EvaluateSpec:
    """An evaluation of a split whose two references an item are in `references.jsonl` beside it."""
    lines = [{"id": s.id, "references": [s.reference, f"{SECRET} {s.id}"]} for s in ITEMS.scenarios]
    write_jsonl(tmp_path / "references.jsonl", lines)
    digest = sha256_of(tmp_path / "references.jsonl")
    scenarios = [replace(s, references=()) for s in ITEMS.scenarios]
    export_split(
        replace(ITEMS, scenarios=tuple(scenarios), references_sha256=digest), tmp_path / "split"
    )
    places = {"split": str(tmp_path / "split"), "out": str(tmp_path / "run")}
    return EvaluateSpec(model=scripted(tmp_path), embedder="none", **places)


def references_of(private_spec: EvaluateSpec) -> Path:
    return Path(private_spec.split).parent / "references.jsonl"


def test_answers_are_stored_and_not_scored(private_spec: EvaluateSpec) -> None:
    summary = evaluate(private_spec)
    counts = summary.counts
    assert (counts.items, counts.scored, counts.private, counts.unscored) == (22, 0, 22, 0)
    assert counts.failures == {"private_reference": 22}
    assert (summary.incomplete, summary.signature.protocol["references"]) == (False, "private")
    assert set(summary.baselines) == {"constant", "copy-last-turn"}
    assert {cell.value for cell in summary.rows.lexical.values()} == {None}
    public = evaluate(
        replace(private_spec, split="mini@1", limit=22, out=f"{private_spec.out}-public")
    )
    contracts = [[cell.value for cell in one.rows.compliance.values()] for one in (summary, public)]
    assert (contracts[0], summary.violations) == (contracts[1], public.violations)
    assert load_run(private_spec.out).summary == report(private_spec.out_path) == summary
    for command in ("leaderboard", "report"):
        shown = h2htalk_here(command, private_spec.out).stdout
        assert "not scored: references are private" in " ".join(shown.split())


def test_the_owner_of_the_references_scores_the_answers(private_spec: EvaluateSpec) -> None:
    evaluate(private_spec)
    done = h2htalk_here("score", private_spec.out, "--references", references_of(private_spec))
    assert done.returncode == 0, done.stderr
    assert "22 of 22 items scored, complete" in " ".join(done.stdout.split())
    run = load_run(private_spec.out)
    protocol = run.summary.signature.protocol
    digest = sha256_of(references_of(private_spec))
    assert (protocol["references"], protocol["references_sha256"]) == ("2", digest[:16])
    # The same answers and references in an open split: the same figures.
    references = [line["references"] for _, line in read_jsonl(references_of(private_spec))]
    rows = (
        replace(s, references=tuple(own))
        for s, own in zip(ITEMS.scenarios, references, strict=True)
    )
    export_split(replace(ITEMS, scenarios=tuple(rows)), Path(f"{private_spec.split}-open"))
    opened = evaluate(
        replace(private_spec, split=f"{private_spec.split}-open", out=f"{private_spec.out}-open")
    )
    assert run.summary.rows == opened.rows
    assert run.summary.baselines == {
        n: row for n, row in opened.baselines.items() if n != "random-reference"
    }
    opened = load_run(f"{private_spec.out}-open")
    assert run.scores().drop_columns("answer").equals(opened.scores().drop_columns("answer"))
    assert files_with(private_spec.out_path, SECRET) == []
    assert report(private_spec.out_path) == run.summary
    assert evaluate(private_spec) == run.summary  # a restart does not take the scores away
    assert not score(private_spec.out_path).counts.scored  # without the references there are none
