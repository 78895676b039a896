"""Records of Every Eval Ever: valid by its schemas, and consistent where schemas do not look."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

import h2htalk
from h2htalk.benchmark.results_export.export import write_every_eval_ever
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses
from h2htalk.data.files import write_jsonl
from h2htalk.data.subtasks import FIGURES
from h2htalk.errors import ConfigError

SCHEMAS = Path(__file__).parent / "schemas"
UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
WHO = {"organization": "Lab", "model": "lab/m"}


def problems(schema: str, record: Any) -> list[str]:
    validator = Draft7Validator(json.loads((SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8")))
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(record)]


def export(run: Path, out: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The aggregate and the rows, each valid by its schema."""
    aggregate, samples = h2htalk.export_results(run, "every-eval-ever", out, **{**WHO, **options})
    record, rows = json.loads(aggregate.read_text()), list(map(json.loads, samples.read_text().splitlines()))
    assert problems("eval", record) == []
    assert [problem for row in rows for problem in problems("instance_level_eval", row)] == []
    return record, rows


def test_the_schemas_refuse_what_they_should() -> None:
    """A validator that passes everything would pass here too."""
    assert problems("eval", {"schema_version": "0.3.0"})
    assert problems("instance_level_eval", {"schema_version": "0.3.0"})
    assert "MIT License" in (SCHEMAS / "LICENSE-every_eval_ever.txt").read_text()


def test_paths_hashes_and_counts_agree(run_with_s: Path, tmp_path: Path) -> None:
    record, rows = export(run_with_s, tmp_path)
    found = record["detailed_evaluation_results"]
    samples = tmp_path / found["file_path"]
    assert re.fullmatch(rf"data/h2htalk/lab/m/{UUID4}_samples\.jsonl", found["file_path"])
    assert samples.with_name(samples.name.replace("_samples.jsonl", ".json")).is_file()
    assert found["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert found["total_rows"] == len(rows) == 2 * 77
    assert {row["evaluation_id"] for row in rows} == {record["evaluation_id"]}
    assert {row["model_id"] for row in rows} == {record["model_info"]["id"]} == {"lab/m"}
    assert len({(row["sample_id"], row["metadata"]["sample"]) for row in rows}) == len(rows)
    again, _ = export(run_with_s, tmp_path / "again")
    assert again == record
    other, _ = export(run_with_s, tmp_path / "other", model="lab/n")
    assert other["detailed_evaluation_results"]["file_path"].rpartition("/")[2] != samples.name


def test_each_subtask_is_the_mean_of_its_samples_within_its_bounds(run_with_s: Path, tmp_path: Path) -> None:
    record, rows = export(run_with_s, tmp_path)
    results = {result["evaluation_result_id"]: result for result in record["evaluation_results"]}
    assert list(results) == list(FIGURES)
    by_result = defaultdict(list)
    for row in rows:
        by_result[row["evaluation_result_id"]].append(row["evaluation"]["score"])
    assert len(by_result) == 11
    for name, scores in by_result.items():
        assert results[name]["score_details"]["score"] == pytest.approx(math.fsum(scores) / len(scores), abs=1e-12)
    for result in results.values():
        score, about = result["score_details"], result["metric_config"]
        interval = score["uncertainty"]["confidence_interval"]
        assert about["min_score"] <= interval["lower"] <= score["score"] <= interval["upper"] <= about["max_score"]
        assert about["additional_details"] == {"comparable_with_paper": "false"}
    assert results["overall"]["score_details"]["uncertainty"]["num_samples"] == 77
    assert {result["source_data"]["source_type"] for result in results.values()} == {"other"}


def test_conversations_are_messages_and_other_material_one_turn(run_with_s: Path, tmp_path: Path) -> None:
    _, rows = export(run_with_s, tmp_path)
    run = load_run(run_with_s)
    scenarios = {s.id: s for s in run.data.split.scenarios}
    kinds = set()
    for row in rows:
        scenario, (given,) = scenarios[row["sample_id"]], row["answer_attribution"]
        answer = run.answers[scenario.id, int(row["metadata"]["sample"])].answer  # type: ignore[union-attr]
        assert given["extracted_value"] == answer.replace("\ud83d", "?")
        assert row["input"]["reference"] == list(scenario.references)
        kinds.add(row["interaction_type"])
        if row["interaction_type"] == "multi_turn":
            assert [m["turn_idx"] for m in row["messages"]] == list(range(given["turn_idx"] + 1))
            roles = [m["role"] for m in row["messages"]]
            assert (roles[0], roles[-2:], "assistant" in roles[:-1]) == ("system", ["user", "assistant"], True)
            assert row["messages"][-2]["content"] == scenario.turns[-1].content == row["input"]["raw"]
        else:
            assert row["output"]["raw"][0].endswith(given["extracted_value"])
            assert row["input"]["raw"] in row["input"]["formatted"]
    assert kinds == {"multi_turn", "single_turn"}


def test_a_release_on_the_hub_is_named_with_its_commit(lexical_run: Path, tmp_path: Path) -> None:
    run = load_run(lexical_run)
    split = replace(run.data.split, source="hub:lab/h2htalk@v1.0", commit="c" * 40)
    hub = replace(run, data=replace(run.data, split=split))
    aggregate, _ = write_every_eval_ever(hub, tmp_path, "lab/m", "Lab")
    record = json.loads(aggregate.read_text())
    assert problems("eval", record) == []
    (source,) = {json.dumps(r["source_data"] | {"additional_details": 0}) for r in record["evaluation_results"]}
    assert json.loads(source)["hf_repo"] == "lab/h2htalk"
    assert record["evaluation_results"][0]["source_data"]["additional_details"]["revision"] == "c" * 40
    assert [r["evaluation_name"] for r in record["evaluation_results"]][15:17] == ["overall_zh", "dialogue_zh"]


def test_imported_answers_show_the_scenarios_own_texts(tmp_path: Path) -> None:
    scenarios = h2htalk.load_split("mini@1").scenarios
    write_jsonl(tmp_path / "answers.jsonl", ({"id": s.id, "response": "I am here."} for s in scenarios))
    import_responses(tmp_path / "answers.jsonl", "theirs", "mini@1", tmp_path / "run", "none")
    by_id = {row["sample_id"]: row for row in export(tmp_path / "run", tmp_path / "out")[1]}
    for scenario in scenarios:
        row = by_id[scenario.id]
        if row["interaction_type"] == "multi_turn":
            assert [m["content"] for m in row["messages"][:-1]] == [turn.content for turn in scenario.turns]
        elif scenario.subtask.startswith("dialogue"):
            assert row["input"]["raw"] == scenario.turns[-1].content
        else:
            assert json.loads(row["input"]["raw"]) == scenario.to_dict()["inputs"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"organization": None}, "--organization NAME"),
        ({"relationship": "friend"}, "--relationship 'friend': choose from first_party, third_party"),
        *(({"model": name}, "--model DEVELOPER/NAME") for name in (None, "m", "../lab/m", "lab/m.")),
    ],
)
def test_names_that_are_needed_are_asked_for(
    change: dict[str, Any], message: str, lexical_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        export(lexical_run, tmp_path / "out", **change)
    assert not (tmp_path / "out").exists()
