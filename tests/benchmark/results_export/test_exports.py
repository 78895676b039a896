"""Bundles, entries of a model's page, records of Every Eval Ever: figures are the run's, and changes are noticed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import EvalResultEntry, parse_eval_result_entries
from jsonschema import Draft7Validator

import h2htalk
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.results_export import export as exports
from h2htalk.benchmark.results_export.verification import Verification
from h2htalk.benchmark.results_export.verified_part import describe_part
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses, score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.files import json_line, sha256_of, write_jsonl
from h2htalk.data.model_names import without_paths
from h2htalk.data.releases.hub import publish
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.split_output import export_split
from h2htalk.data.subtasks import FIGURES, task_id
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk_here, scripted
from support.doubles.hub_double import HubDouble
from support.hubs import hub_here
from support.judged_runs import command, scripted_judge
from support.releases import make_release
from support.runs import baseline_run

MINI = h2htalk.load_split("mini@1")
ZH_ENDS = "--language zh --subtask itinerary_response --limit 3"
PART = "77 of 154 items of split mini: those of --language en"
ANSWERS = (
    {"id": "*", "text": "I hear you. (sits down) Tell me about your day."},
    {"id": "mini-en-dialogue-base-01", "text": "<think>Hm.</think>Half a face: HALF"},
)


@pytest.fixture(scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    spec = EvaluateSpec(
        model=scripted(folder, *ANSWERS),
        split="mini@1",
        out=str(folder / "lexical"),
        embedder="none",
    )
    evaluate(spec)
    evaluate(
        replace(
            spec,
            out=str(folder / "s"),
            language="en",
            embedder="minilm",
            samples=2,
            temperature=0.7,
        )
    )
    calls_file = RunFolder(folder / "s").calls_file
    calls_file.write_text(calls_file.read_text().replace("HALF", "\\ud83d"))
    score(folder / "s")
    return folder


@pytest.fixture
def run_with_s(_runs: Path, tmp_path: Path) -> Path:
    """English items with S, twice sampled; one answer ends with half a character."""
    return shutil.copytree(_runs / "s", tmp_path / "run-s")


@pytest.fixture
def lexical_run(_runs: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_runs / "lexical", tmp_path / "run-lexical")


def bundle_of(run: Path, name: str = "bundle") -> Path:
    out = run.parent / name
    h2htalk.export_results(run, "bundle", out)
    return out


def sample_rows(bundle: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, (bundle / "samples.jsonl").read_text().splitlines()))


def edited(bundle: Path, change: Callable[[list[Any]], Any]) -> Path:
    path = bundle / "samples.jsonl"
    records = list(map(json.loads, path.read_text().splitlines()))
    change(records)
    path.write_text("".join(map(json_line, records)))
    return edited_head(
        bundle, lambda head: head.update(sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    )


def edited_head(bundle: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    head = json.loads((bundle / "bundle.json").read_text())
    change(head)
    (bundle / "bundle.json").write_text(json.dumps(head))
    return bundle


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_scores_are_computed_again(name: str, run_with_s: Path) -> None:
    found = h2htalk.verify_results(bundle_of(run_with_s, name), "mini@1")
    assert (found.differs, found.unchecked, found.part) == ([], [], PART)
    assert [line[:5] for line in found.claims] == ["that ", "that "]
    columns = {
        "bleu_1",
        "bleu_2",
        "bleu_3",
        "bleu_4",
        "rouge_1",
        "rouge_l",
        "ss",
        "lexical",
        "s",
        "violations",
    }
    assert columns | {"unscored", "figures and intervals", "the items of mini 1"} <= set(
        found.matches
    )


def test_a_bundle_holds_no_folder_message_or_costs_and_needs_a_complete_run(
    lexical_run: Path, tmp_path: Path
) -> None:
    one, other = (bundle_of(lexical_run, name).read_bytes() for name in ("one.zip", "other.zip"))
    assert one == other  # the same run gives the same bytes
    with pytest.raises(DataError, match="is there already"):
        bundle_of(lexical_run, "one.zip")
    where = {"reason": "http_500", "message": "https://user:key-1234@internal.example said no"}
    model = scripted(
        tmp_path, {"id": "*", "text": "Hi."}, {"id": "mini-en-dialogue-base-01", "failure": where}
    )
    baseline_run(tmp_path / "run", model=model, limit=None, subtasks=["dialogue_base"])
    bundle = bundle_of(tmp_path / "run")
    text = "".join(path.read_text() for path in bundle.iterdir())
    for secret in (str(tmp_path), "key-1234", "internal.example", "cost", "spec"):
        assert secret not in text
    assert (
        h2htalk.verify_results(bundle, "mini@1").differs == []
    )  # the failed call is unscored here too
    with pytest.raises(ConfigError, match="incomplete: 1 item unscored"):
        export(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    folders = {"a": "bge-m3:/data/x/bge@sha256:1(en)", "b": "lab/m", "c": "~/m", "d": "./a/b/c"}
    assert list(without_paths(folders).values()) == ["bge-m3:bge@sha256:1(en)", "lab/m", "m", "c"]


def test_a_bundle_of_one_language_is_verified_and_says_which_part_it_holds(
    lexical_run: Path, tmp_path: Path
) -> None:
    """`evaluate --language en`, as every tutorial has it, ended in "not verified" and exit code 3."""
    baseline_run(
        tmp_path / "run",
        model=scripted(tmp_path),
        language="en",
        limit=None,
        subtasks=["dialogue_base"],
    )
    english = command(
        "results", "verify", bundle_of(tmp_path / "run", "english"), "--split", "mini@1"
    ).splitlines()
    assert (
        english[1]
        == "part: 7 of 154 items of split mini: those of --language en --subtask dialogue_base"
    )
    whole = command("results", "verify", bundle_of(lexical_run), "--split", "mini@1").splitlines()
    assert whole[1] == "part: all 154 items of split mini"
    assert not [line for line in whole if line.startswith("not verified")]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (
            lambda rows: rows[3].update(bleu_2=rows[3]["bleu_2"] + 1e-8),
            "bleu_2: 1 of 154 values, by up to 1e-08",
        ),
        (lambda rows: rows[3].update(violations=["x"]), "differs: violations:"),
        (lambda rows: rows[3].update(rating=5.0, j=5.0), "differs: rating:"),  # nobody judged
        (lambda rows: rows[3].update(text="We sit by the kiln and talk."), "differs: lexical:"),
        (
            lambda rows: rows.append(rows[0] | {"text": "Better."}),
            "error: samples.jsonl:155: a second line of 'mini-",
        ),
        (
            lambda rows: rows.append(rows[0] | {"id": "other"}),
            "1 item that its split lacks: 'other'",
        ),
        (lambda rows: rows[0].update(id=[1]), "samples.jsonl:1: id: must be"),
        (lambda rows: rows.clear(), "0 lines of 1 samples an item"),
    ],
)
def test_an_edited_line_is_noticed(
    change: Callable[[list[Any]], Any], differs: str, lexical_run: Path
) -> None:
    done = h2htalk_here(
        "results", "verify", edited(bundle_of(lexical_run), change), "--split", "mini@1"
    )
    assert (done.returncode, differs in done.stdout + done.stderr) in ((4, True), (2, True))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (lambda head: head["figures"]["overall_zh"].update(value=99.0), "figures and intervals"),
        (lambda head: head["protocol"].update(contracts="0"), "the versions of the metrics"),
        (lambda head: head.update(sha256="0" * 64), "the hash of the samples"),
        (lambda head: head["split"].update(fingerprint="0" * 16), "the items of mini 1"),
        (
            lambda head: head["protocol"].update(items="0" * 16),
            "the items that the signature names",
        ),
        (lambda head: head["subject"].update(samples="2"), "the samples an item"),
    ],
)
def test_an_edited_head_is_noticed(
    change: Callable[[dict[str, Any]], Any], differs: str, lexical_run: Path
) -> None:
    found = h2htalk.verify_results(edited_head(bundle_of(lexical_run), change), "mini@1")
    assert [line.partition(":")[0] for line in found.differs] == [differs]


def test_scores_by_metrics_of_another_version_are_not_verified_and_do_not_differ(
    lexical_run: Path,
) -> None:
    """An honest bundle of a version with other metrics looked tampered with."""

    def with_earlier_metrics(head: dict[str, Any]) -> None:
        head["protocol"]["metrics"] = "lexical-1,ss-1"

    bundle = edited_head(bundle_of(lexical_run), with_earlier_metrics)
    found = h2htalk.verify_results(bundle, "mini@1")
    assert found.differs == []
    assert found.unchecked[-1].startswith(
        "scores and figures: the bundle's metrics are 'lexical-1,ss-1', those of this"
    )


def test_a_part_that_was_picked_by_its_scores_is_not_verified(lexical_run: Path) -> None:
    """The best half of a language, scored anew and signed anew, ended in exit code 0."""
    whole = MINI
    scores = {row["id"]: row["lexical"] for row in sample_rows(bundle_of(lexical_run, "all"))}
    english = [one for one in whole.scenarios if one.language == "en"]
    best = sorted(english, key=lambda one: scores[one.id], reverse=True)[: len(english) // 2]
    picked = replace(whole, scenarios=tuple(sorted(best, key=lambda one: one.id)))
    part, is_a_choice = describe_part(whole, picked)
    assert (
        part
        == f"{len(best)} of 154 items of split mini; no --language, --subtask or --limit takes just these"
    )
    assert not is_a_choice


@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ({"language": "zh"}, "--language zh"),
        (
            {"subtasks": ["itinerary_response", "dialogue_base"]},
            "--subtask dialogue_base --subtask itinerary_response",
        ),
        ({"limit": 30}, "--limit 30"),
        (
            {"language": "en", "subtasks": ["dialogue_base"], "limit": 3},
            "--language en --subtask dialogue_base --limit 3",
        ),
    ],
)
def test_a_part_that_options_take_is_named_by_them(choice: dict[str, Any], options: str) -> None:
    whole = MINI
    held = whole.select(**choice)
    part, is_a_choice = describe_part(whole, held)
    assert (part, is_a_choice) == (
        f"{len(held.scenarios)} of 154 items of split mini: those of {options}",
        True,
    )


def test_answers_without_a_score_are_not_verified(tmp_path: Path) -> None:
    """A bundle whose worst answers were called missing, or filtered, was verified without a word about them."""
    refused = {"id": "mini-en-dialogue-base-01", "failure": {"reason": "http_500", "message": "no"}}
    model = scripted(tmp_path, {"id": "*", "text": "Hi."}, refused)
    baseline_run(
        tmp_path / "run", model=model, limit=None, language="en", subtasks=["dialogue_base"]
    )
    done = h2htalk_here("results", "verify", bundle_of(tmp_path / "run"), "--split", "mini@1")
    assert done.returncode == 3
    assert (
        "not verified: 1 of 7 answers without a score (http_500 1): the figures leave them out"
        in done.stdout
    )


def test_a_key_of_another_version_is_refused(lexical_run: Path) -> None:
    bundle = edited_head(bundle_of(lexical_run), lambda head: head.update(verified=True))
    with pytest.raises(DataError, match="verified"):
        h2htalk.verify_results(bundle, "mini@1")


def test_a_bundle_of_an_earlier_version_is_verified_on_it_and_says_what_was_corrected(
    tmp_path: Path,
) -> None:
    """An honest bundle of mini 3 ended in "differs: the items of mini 4"; that of cases differed on its own split."""
    baseline_run(
        tmp_path / "run", split="mini@3", language="zh", limit=None, subtasks=["itinerary_response"]
    )
    bundle = bundle_of(tmp_path / "run")
    since = "edition: mini 3, an earlier version: mini 4 corrects 1 of these items: mini-zh-itinerary-response-10"
    for named in ((), ("--split", "mini"), ("--split", "mini@3")):
        lines = command("results", "verify", bundle, *named).splitlines()
        assert lines[0] == "split: mini@3 (mini 3)"
        assert lines[2] == f"{since} (reference)"
        assert "the items of mini 3" in lines[3]
        assert not [line for line in lines if line.startswith(("differs", "not verified"))]
    baseline_run(
        tmp_path / "other",
        split="mini@3",
        language="en",
        limit=None,
        subtasks=["itinerary_response"],
    )
    assert h2htalk.verify_results(bundle_of(tmp_path / "other", "en"), "mini").edition.endswith(
        "none of these items"
    )
    baseline_run(tmp_path / "cases", split="arcs@2", language="en", limit=None, subtasks=())
    cases = h2htalk.verify_results(bundle_of(tmp_path / "cases", "of_cases"))
    assert (cases.split, cases.differs, cases.unchecked) == ("arcs@2 (arcs 2)", [], [])
    assert "arcs 3 corrects 18 of these items" in cases.edition


def test_a_bundle_of_a_version_that_is_not_kept_is_not_verified_and_does_not_differ(
    lexical_run: Path,
) -> None:
    def of_another(head: dict[str, Any]) -> None:
        head["split"].update(version="1.5", fingerprint="0" * 16)

    found = h2htalk.verify_results(edited_head(bundle_of(lexical_run), of_another), "mini@1")
    assert found.differs == []
    assert found.edition.startswith("mini 1, an earlier version: mini 4 corrects ")
    assert found.unchecked[0].startswith(
        "the items: the bundle says they are those of version '1.5', and mini@1 is"
    )


def test_what_no_bundle_can_show_was_neither_checked_nor_listed(lexical_run: Path) -> None:
    def forge(head: dict[str, Any]) -> None:
        head["model"], head["subject"]["model"] = "lab/better\nmatches: all", "lab/best"

    shown = command(
        "results", "verify", edited_head(bundle_of(lexical_run), forge)
    )  # a bundled split
    told = "claimed, which no bundle can show: that 'lab/better\\nmatches: all' gave"
    (line,) = (one for one in shown.splitlines() if one.startswith(told))
    assert "model 'lab/best'" in line


def test_a_figure_of_s_may_differ_in_the_last_digits_of_embeddings_alone(run_with_s: Path) -> None:
    def shift(by: float) -> Verification:
        bundle = bundle_of(run_with_s, f"bundle{by}")
        edited(bundle, lambda rows: rows[0].update(ss=rows[0]["ss"] + by))
        return h2htalk.verify_results(bundle, "mini@1")

    assert "ss, but for the last digits (1e-07)" in shift(1e-7).matches
    assert [line[:3] for line in shift(1e-4).differs] == ["ss:"]


def test_what_is_not_at_hand_is_said_and_the_rest_checked(run_with_s: Path) -> None:
    elsewhere = {"embedder": "/lab/unknown@1", "prompts": "0" * 16}
    bundle = edited_head(bundle_of(run_with_s), lambda head: head["protocol"].update(elsewhere))
    found = h2htalk.verify_results(bundle, "mini@1")
    no_embedder = (
        "SS and S: embedder '/lab/unknown@1' is neither bge-m3 nor minilm, and is not loaded"
    )
    assert found.unchecked[0] == no_embedder
    assert (found.unchecked[1].partition(":")[0], found.differs) == ("contract violations", [])
    assert {"bleu_1", "lexical"} <= set(found.matches)
    assert not {"ss", "s", "violations", "figures and intervals"} & set(found.matches)
    edited_head(bundle, lambda head: head["protocol"].update(embedder="minilm@sha256:0"))
    other = "SS and S: embedder 'minilm@sha256:0' is of another revision here"
    assert h2htalk.verify_results(bundle, "mini@1").unchecked[0] == other


def test_a_run_with_private_references_is_verified_by_their_owner(tmp_path: Path) -> None:
    file = tmp_path / "references.jsonl"
    split = str(tmp_path / "split")
    run = tmp_path / "run"
    write_jsonl(
        file, ({"id": s.id, "references": [s.reference, f"or {s.id}"]} for s in MINI.scenarios)
    )
    scenarios = tuple(replace(s, references=()) for s in MINI.scenarios)
    export_split(
        replace(MINI, scenarios=scenarios, references_sha256=sha256_of(file)), tmp_path / "split"
    )
    baseline_run(run, model=scripted(tmp_path), split=split)
    unscored = bundle_of(run, "unscored")
    assert h2htalk.verify_results(unscored, split).differs == []
    with pytest.raises(ConfigError, match="were not scored with private references"):
        h2htalk.verify_results(unscored, split, file)
    score(run, references=file)
    scored = bundle_of(run, "scored")
    assert f"or {MINI.scenarios[0].id}" not in "".join(
        path.read_text() for path in scored.iterdir()
    )
    found = h2htalk.verify_results(scored, split)
    missing = "the scores: name the file of private references with --references"
    part = "22 of 154 items of split mini: those of --limit 22"
    assert (found.differs, found.unchecked, found.part) == ([], [missing], part)
    found = h2htalk.verify_results(scored, split, file)
    assert (found.differs, found.unchecked, found.part) == ([], [], part)
    assert "figures and intervals" in found.matches


def test_what_is_no_bundle_is_refused(lexical_run: Path, tmp_path: Path) -> None:
    bundle = bundle_of(lexical_run)
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(
        DataError, match=r"not a bundle: bundle.json cannot be read: .*File is not a zip file"
    ):
        h2htalk.verify_results(tmp_path / "text.zip", "mini@1")
    with pytest.raises(DataError, match=r"bundle.json: not a bundle of this version: samples: "):
        h2htalk.verify_results(edited_head(bundle, lambda head: head.update(samples="2")), "mini@1")
    edited_head(bundle, lambda head: head.update(samples=1))
    with pytest.raises(
        ConfigError, match="those of 'mini', it says; if you trust them: --split mini"
    ):
        h2htalk.verify_results(
            edited_head(bundle, lambda head: head["split"].update(fingerprint="0" * 16))
        )
    (bundle / "samples.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"samples.jsonl:1: broken JSON"):
        h2htalk.verify_results(bundle, "mini@1")


SCHEMAS = Path(__file__).parent / "schemas"
UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
WHO = {"organization": "Lab", "model": "lab/m"}


def problems(schema: str, *records: Any) -> list[str]:
    validator = Draft7Validator(
        json.loads((SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8"))
    )
    return [
        f"{[*error.path]}: {error.message}"
        for record in records
        for error in validator.iter_errors(record)
    ]


def exported(run: Path, out: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    aggregate, samples = h2htalk.export_results(run, "every-eval-ever", out, **{**WHO, **options})
    record = json.loads(aggregate.read_text())
    rows = list(map(json.loads, samples.read_text().splitlines()))
    assert problems("eval", record) == problems("instance_level_eval", *rows) == []
    return record, rows


def test_paths_hashes_counts_and_means_agree(run_with_s: Path, tmp_path: Path) -> None:
    record, rows = exported(run_with_s, tmp_path)
    found = record["detailed_evaluation_results"]
    samples = tmp_path / found["file_path"]
    assert re.fullmatch(rf"data/h2htalk/lab/m/{UUID4}_samples\.jsonl", found["file_path"])
    assert found["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert found["total_rows"] == len(rows) == 2 * 77
    assert {row["evaluation_id"] for row in rows} == {record["evaluation_id"]}
    assert {row["model_id"] for row in rows} == {record["model_info"]["id"]} == {"lab/m"}
    assert exported(run_with_s, tmp_path / "again")[0] == record
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    by_result = defaultdict(list)
    assert list(results) == list(FIGURES)
    for row in rows:
        by_result[row["evaluation_result_id"]].append(row["evaluation"]["score"])
    for name, scores in by_result.items():
        assert results[name]["score_details"]["score"] == pytest.approx(
            math.fsum(scores) / len(scores), abs=1e-12
        )
    for result in results.values():
        score = result["score_details"]
        about = result["metric_config"]
        interval = score["uncertainty"]["confidence_interval"]
        assert (
            about["min_score"]
            <= interval["lower"]
            <= score["score"]
            <= interval["upper"]
            <= about["max_score"]
        )
        details = {
            key: value
            for key, value in about["additional_details"].items()
            if key != "lexical_mean_folded"
        }
        assert details == {"comparable_with_paper": "false"}
    folded = load_run(run_with_s).summary.rows.lexical_folded["overall"].value
    overall_details = results["overall"]["metric_config"]["additional_details"]
    assert 100 * float(overall_details["lexical_mean_folded"]) == pytest.approx(folded)
    assert results["overall"]["score_details"]["uncertainty"]["num_samples"] == 77


def test_conversations_are_messages_and_other_material_one_turn(
    run_with_s: Path, tmp_path: Path
) -> None:
    _, rows = exported(run_with_s, tmp_path)
    run = load_run(run_with_s)
    scenarios = {s.id: s for s in run.data.split.scenarios}
    for row in rows:
        scenario, (given,) = scenarios[row["sample_id"]], row["answer_attribution"]
        answer = run.answers[scenario.id, int(row["metadata"]["sample"])].answer
        assert given["extracted_value"] == answer.replace("\ud83d", "?")
        assert row["input"]["reference"] == list(scenario.references)
        if row["interaction_type"] == "multi_turn":
            assert [m["turn_idx"] for m in row["messages"]] == list(range(given["turn_idx"] + 1))
            roles = [m["role"] for m in row["messages"]]
            assert (roles[0], roles[-2:], "assistant" in roles[:-1]) == (
                "system",
                ["user", "assistant"],
                True,
            )
            assert (
                row["messages"][-2]["content"] == scenario.turns[-1].content == row["input"]["raw"]
            )
        else:
            assert row["output"]["raw"][0].endswith(given["extracted_value"])
            assert row["input"]["raw"] in row["input"]["formatted"]
    assert {row["interaction_type"] for row in rows} == {"multi_turn", "single_turn"}


def test_a_release_on_the_hub_is_named_with_its_commit(lexical_run: Path, tmp_path: Path) -> None:
    run = load_run(lexical_run)
    split = replace(run.data.split, source="hub:lab/h2htalk@v1.0", commit=COMMIT)
    hub = replace(run, data=replace(run.data, split=split))
    record = json.loads(exports.write_every_eval_ever(hub, tmp_path, "lab/m", "Lab")[0].read_text())
    assert problems("eval", record) == []
    assert {result["source_data"]["hf_repo"] for result in record["evaluation_results"]} == {
        "lab/h2htalk"
    }
    assert (
        record["evaluation_results"][0]["source_data"]["additional_details"]["revision"] == COMMIT
    )
    part = replace(
        hub, data=replace(run.data, split=replace(split, source="hub:lab/h2htalk@v1.0#dev"))
    )
    with pytest.raises(ConfigError, match="are of all items of split test"):
        exports.write_eval_results(part, tmp_path)
    with pytest.raises(ConfigError, match="--dataset OWNER/NAME and --revision COMMIT"):
        exports.write_eval_results(run, tmp_path, dataset="lab/theirs")


def test_imported_answers_show_the_scenarios_own_texts(tmp_path: Path) -> None:
    scenarios = MINI.scenarios
    write_jsonl(
        tmp_path / "answers.jsonl", ({"id": s.id, "response": "I am here."} for s in scenarios)
    )
    import_responses(tmp_path / "answers.jsonl", "theirs", "mini@1", tmp_path / "run", "none")
    by_id = {row["sample_id"]: row for row in exported(tmp_path / "run", tmp_path / "out")[1]}
    for scenario in scenarios:
        row = by_id[scenario.id]
        if row["interaction_type"] == "multi_turn":
            assert [m["content"] for m in row["messages"][:-1]] == [
                turn.content for turn in scenario.turns
            ]
        elif scenario.subtask.startswith("dialogue"):
            assert row["input"]["raw"] == scenario.turns[-1].content
        else:
            assert json.loads(row["input"]["raw"]) == scenario.to_dict()["inputs"]


def test_names_that_are_needed_are_asked_for(lexical_run: Path, tmp_path: Path) -> None:
    for change, message in (
        ({"organization": None}, "--organization NAME"),
        (
            {"relationship": "friend"},
            "--relationship 'friend': choose from first_party, third_party",
        ),
        *(({"model": name}, "--model DEVELOPER/NAME") for name in (None, "../lab/m")),
    ):
        with pytest.raises(ConfigError, match=message):
            exported(lexical_run, tmp_path / "out", **change)


COMMIT = "0123456789abcdef" * 2 + "01234567"
HUB = {"dataset": "lab/h2htalk", "revision": COMMIT}


def export(run: Path, out: Path, **options: Any) -> Path:
    (path,) = h2htalk.export_results(run, "eval-results", out, **{**HUB, **options})
    return path


def entries_of(path: Path) -> dict[str, EvalResultEntry]:
    return {
        entry.task_id: entry
        for entry in parse_eval_result_entries(yaml.safe_load(path.read_text()))
    }


def test_fifteen_tasks_a_language_hold_the_runs_figures(
    run_with_s: Path, lexical_run: Path, tmp_path: Path
) -> None:
    path = export(run_with_s, tmp_path / "out", source_url="https://example.org/run")
    assert path == tmp_path / "out" / ".eval_results" / "lab--h2htalk.yaml"
    text = path.read_text()
    entries = entries_of(path)
    assert list(entries) == list(FIGURES)
    summary = load_run(run_with_s).summary
    cells = {name.removesuffix("_avg"): cell for name, cell in summary.rows.s.items()}
    folded_cells = {
        name.removesuffix("_avg"): cell for name, cell in summary.rows.lexical_folded.items()
    }
    for name, entry in entries.items():
        folded = f"folded lexical mean {folded_cells[name].value:.2f}"
        cell = cells[name]
        notes = entry.notes
        assert entry.value == pytest.approx(cell.value, abs=0.005)
        assert (entry.dataset_id, entry.dataset_revision) == ("lab/h2htalk", COMMIT)
        assert entry.source_url == "https://example.org/run"
        assert notes.startswith("S with embedder minilm@sha256:53aa51172d142c89, not with BGE-M3; ")
        assert (
            f"{cell.n} items, 95 % interval {cell.low:.2f} to {cell.high:.2f}, {folded}; " in notes
        )
        assert f"protocol {summary.signature.fingerprint}" in notes
    # Nothing is null, and dates are texts.
    assert "null" not in json.dumps(yaml.safe_load(text))  # which takes no date
    assert re.search(r"\n  date: '20\S*Z'", text)
    lexical = entries_of(export(lexical_run, tmp_path / "lexical"))
    assert list(lexical) == [
        task_id(name, language) for language in ("en", "zh") for name in FIGURES
    ]
    cautions = {entry.notes.partition(";")[0] for entry in lexical.values()}
    assert cautions == {"mean of six lexical metrics, not S"}


def test_s_of_a_judged_run_says_that_no_rating_is_in_it(lexical_run: Path, tmp_path: Path) -> None:
    """S stood under the fingerprint of S and J, and nothing said which of the two it was."""
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, "no JSON")
    summary = h2htalk.judge_run(h2htalk.JudgeSpec(run=lexical_run, judges=(judge,)))
    label = "judge.jsonl@"
    entry = entries_of(export(lexical_run, tmp_path / "out"))["overall_zh"]
    assert f"without the ratings of scripted:{label}" in entry.notes
    assert f"protocol {summary.signature.fingerprint}" in entry.notes
    record, _ = h2htalk.export_results(
        lexical_run, "every-eval-ever", tmp_path, organization="Lab", model="lab/m"
    )
    assert f'"without_ratings_of": "scripted:{label}' in record.read_text()


NAME = ".eval_results/lab--made.yaml"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    with hub_here(tmp_path, monkeypatch) as hub:
        publish(make_release(tmp_path / "release"), "lab/made")
        hub.add("lab/model", "model")
        yield hub


@pytest.fixture
def hub_run(hub: HubDouble, tmp_path: Path) -> Path:
    return baseline_run(
        tmp_path / "hub_run", model=scripted(tmp_path), split="hub:lab/made@v1.0.0", limit=None
    )


def test_a_pull_request_proposes_the_entries(hub_run: Path, hub: HubDouble, tmp_path: Path) -> None:
    model = hub.repos["model", "lab/model"]
    words = ("results", "export", hub_run, "--to", "eval-results", "--out", tmp_path / "out")
    command(*words)
    assert not model.pulls  # only --push sends
    shown = command(*words, "--push", "lab/model")
    assert shown.splitlines()[-1] == f"pull request: {hub.url}/lab/model/discussions/1"
    content = model.files("refs/pr/1")[NAME]
    assert content == (tmp_path / "out" / NAME).read_bytes()
    assert NAME not in model.files()
    commit = hub.dataset("lab/made").tags["v1.0.0"]
    tasks = [
        {"id": "lab/made", "task_id": task, "revision": commit}
        for task in ("dialogue_base", "dialogue_base_zh")
    ]
    assert [entry["dataset"] for entry in yaml.safe_load(content)] == tasks
    refused = command(
        *words[:3], "--to", "bundle", "--out", tmp_path / "bundle", "--push", "lab/model", code=2
    )
    assert refused == "error: --push is for --to eval-results\n"
    assert not (tmp_path / "bundle").exists()


def test_the_repository_of_a_bundle_is_loaded_only_when_named(
    hub_run: Path, hub: HubDouble, tmp_path: Path
) -> None:
    h2htalk.export_results(hub_run, "bundle", tmp_path / "bundle")
    repo = hub.dataset("lab/made")
    asked = len(hub.requests)
    split = f"hub:lab/made@{repo.tags['v1.0.0']}"
    refused = command("results", "verify", tmp_path / "bundle", code=2)
    assert f"'hub:lab/made@v1.0.0', it says; if you trust them: --split {split}\n" in refused
    assert len(hub.requests) == asked
    repo.tags["v1.0.0"] = repo.write({"README.md": b"Another one."})
    shown = command("results", "verify", tmp_path / "bundle", "--split", split).splitlines()
    assert shown[0] == f"split: {split} (made 1.0.0, commit {split.partition('@')[2]})"
    assert "the items of made 1.0.0" in shown[2]
    assert not [line for line in shown if line.startswith("differs")]
