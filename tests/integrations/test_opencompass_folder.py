"""OpenCompass without OpenCompass: the folder, the scorer that its evaluator starts, runs of its logs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product, repeat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from h2htalk.benchmark.run import load_run
from h2htalk.cli import app
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError
from h2htalk.integrations.harness_split import HarnessSplit
from h2htalk.integrations.import_log import import_opencompass
from h2htalk.integrations.opencompass import write_folder
from support.command_line import h2htalk_here


def config_of(folder: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec((folder / "h2htalk_mini.py").read_text(encoding="utf-8"), names)
    return names


def score(folder: Path, *replies: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "h2htalk.integrations.opencompass", str(folder)]
    lines = map(json.dumps, replies)
    return subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=60
    )


def test_the_command_writes_a_data_set_for_each_language_and_subtask(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["integrations", "opencompass", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    names = [
        "h2htalk_about.json",
        "h2htalk_en.jsonl",
        "h2htalk_mini.py",
        "h2htalk_opencompass.py",
        "h2htalk_zh.jsonl",
    ]
    assert [Path(line).name for line in result.stdout.splitlines()] == names
    config = config_of(tmp_path)
    budgets = {
        dataset["abbr"]: dataset["infer_cfg"]["inferencer"]["max_out_len"]
        for dataset in config["datasets"]
    }
    names_of_sets = ["_".join(("h2htalk", *names)) for names in product(("en", "zh"), SUBTASKS)]
    assert budgets == dict(
        zip(names_of_sets, [subtask.max_tokens for subtask in SUBTASKS.values()] * 2, strict=True)
    )
    groups = {group["name"]: group for group in config["summarizer"]["summary_groups"]}
    assert groups.keys() == {"h2htalk_en", "h2htalk_zh"}
    for language in ("en", "zh"):
        weights = groups[f"h2htalk_{language}"]["weights"]
        assert weights == {
            f"h2htalk_{language}_{subtask.name}": subtask.count for subtask in SUBTASKS.values()
        }
    lines = [
        json.loads(line)
        for line in (tmp_path / "h2htalk_zh.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert lines == [
        json.loads(json.dumps(item.to_dict())) for item in HarnessSplit("mini", "zh").items
    ]
    assert {line["canary"] for line in lines} == {load_split("mini").canary}


def test_an_embedder_adds_the_overall_of_s_for_its_languages(tmp_path: Path) -> None:
    write_folder(tmp_path, embedder="minilm", limit=44)
    groups = config_of(tmp_path)["summarizer"]["summary_groups"]
    metrics = [(group["name"], group["metric"]) for group in groups]
    assert metrics == [
        ("h2htalk_en", "overall_lexical"),
        ("h2htalk_en", "overall_s"),
        ("h2htalk_zh", "overall_lexical"),
    ]


def test_the_scorer_answers_each_reply_with_the_values_of_our_own(tmp_path: Path) -> None:
    write_folder(tmp_path, language="zh", limit=11)
    harness_split = HarnessSplit("mini", "zh", limit=11)
    replies = [
        {"id": item.id, "reply": f"{item.references[0][:9]}\n 🙂"} for item in harness_split.items
    ]
    done = score(tmp_path, *replies, {"id": harness_split.items[0].id, "reply": ""})
    about, *answers, empty = map(json.loads, done.stdout.splitlines())
    assert about["h2htalk"]["protocol"] == harness_split.protocol
    assert about["canary"] == harness_split.split.canary
    for reply, values in zip(replies, answers, strict=True):
        assert values == {
            "id": reply["id"],
            "unscored": "",
            **harness_split.score(reply["id"], reply["reply"]),
        }  # type: ignore[dict-item]
    assert empty["lexical"] == 0


def test_an_item_without_a_reference_has_no_value_and_a_reason(tmp_path: Path) -> None:
    records = [
        {**record, "references": []}
        for record in map(plain, HarnessSplit("mini", "en", limit=11).split.scenarios)
    ]
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "scenarios.jsonl").write_text(
        "\n".join(map(json.dumps, records)), encoding="utf-8"
    )
    write_folder(tmp_path / "out", str(tmp_path / "split"))
    done = score(tmp_path / "out", {"id": records[0]["id"], "reply": "Hm."})
    values = json.loads(done.stdout.splitlines()[1])
    assert values.pop("unscored") == "private_reference"
    assert values.pop("id") == records[0]["id"]
    assert set(values.values()) == {None}


def plain(scenario: Any) -> dict[str, Any]:
    record: dict[str, Any] = scenario.to_dict()
    record.pop("reference", None)
    return record


def test_the_scorer_refuses_a_folder_of_another_version(tmp_path: Path) -> None:
    write_folder(tmp_path, language="en", limit=11)
    about = json.loads((tmp_path / "h2htalk_about.json").read_text(encoding="utf-8"))
    about["h2htalk"]["protocol"]["prompts"] = "0" * 16
    (tmp_path / "h2htalk_about.json").write_text(json.dumps(about), encoding="utf-8")
    done = score(tmp_path)
    assert done.returncode == 1
    assert "differs from this h2htalk in prompts" in done.stderr.splitlines()[-1]


# --- Logs -------------------------------------------------------------------------------------------------------


def write_log(folder: Path, replicas: int = 1) -> Path:
    """What OpenCompass writes for a folder of ours, of a model that says the same to all."""
    write_folder(folder / "h2htalk", language="en", limit=22)
    about = json.loads((folder / "h2htalk" / "h2htalk_about.json").read_text(encoding="utf-8"))
    roles = {"system": "SYSTEM", "user": "HUMAN", "assistant": "BOT"}
    log = folder / "20261126_120000"
    harness_split = HarnessSplit("mini", "en", limit=22)
    for subtask in dict.fromkeys(item.subtask for item in harness_split.items):
        items = [item for item in harness_split.items if item.subtask == subtask]
        name = f"h2htalk_en_{subtask}"
        predictions = {}
        for position, item in enumerate(items * replicas):
            prompt = []
            for message in item.messages:
                text = message["content"]
                prompt.append({"role": roles[message["role"]], "content": text, "prompt": text})
            predictions[str(position)] = {
                "origin_prompt": prompt,
                "prediction": f"I hear you, {position}.",
                "gold": list(item.references),
            }
        details = []
        for position, item in enumerate(items):
            ids = list(repeat(item.id, replicas))
            unscored = list(repeat("", replicas))
            details.append({"example_abbr": f"{name}_{position}", "id": ids, "unscored": unscored})
        abouts = list(repeat({**about, "opencompass": "0.5.4"}, replicas))
        results = {"unscored": 0, "about": abouts, "details": details}
        for kind, content in (("predictions", predictions), ("results", results)):
            (log / kind / "demo").mkdir(parents=True, exist_ok=True)
            (log / kind / "demo" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (log / "configs").mkdir()
    (log / "configs" / "20261126_120000.py").write_text(
        "models=[dict(abbr='demo', temperature=0.7)]\n"
    )
    return log


def edit(
    log: Path, kind: str, change: Callable[[dict[str, Any]], object], names: str = "*.json"
) -> None:
    for path in (log / kind / "demo").glob(names):
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")


def test_a_log_becomes_a_run_with_our_scores(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    result = CliRunner().invoke(
        app, ["import", "opencompass", str(log), "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 0, result.output
    run = load_run(tmp_path / "run")
    harness_split = HarnessSplit("mini", "en", limit=22)
    assert run.data.spec.temperature == 0.7
    assert run.summary.signature.subject["harness"] == "OpenCompass 0.5.4"
    for (item, _), answer in run.answers.items():
        assert run.item_scores[item].lexical == harness_split.score(item, answer.answer)["lexical"]  # type: ignore[union-attr,index]
    assert len(run.answers) == 22
    with pytest.raises(DataError, match="holds a run already"):
        import_opencompass(log, tmp_path / "run")
    assert import_opencompass(log / "predictions" / "demo", tmp_path / "again").counts.unscored == 0


def test_replicas_are_samples(tmp_path: Path) -> None:
    import_opencompass(write_log(tmp_path, replicas=2), tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.data.spec.samples == 2
    assert len(run.answers) == 44


def test_items_of_a_data_set_that_did_not_end_are_unscored(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    for kind in ("predictions", "results"):
        (log / kind / "demo" / "h2htalk_en_dialogue_base.json").unlink()
    (log / "predictions" / "demo" / "tmp_h2htalk_en_dialogue_base.jsonl").write_text("")
    summary = import_opencompass(log, tmp_path / "run")
    assert summary.counts.unscored == 2
    assert "did not end" in " ".join(summary.warnings)


BASE = "h2htalk_en_dialogue_base.json"
PROTOCOL = [f"differs from this version in {name}" for name in ("items", "prompts")]


def about(content: dict[str, Any]) -> Any:
    return content["about"][0]["h2htalk"]


OTHERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda log: shutil.rmtree(log / "results"), "has no results"),
    (lambda log: (log / "results" / "demo" / BASE).unlink(), "has no results"),
    (
        lambda log: edit(log, "results", lambda payload: payload.pop("about")),
        "not all are of one folder",
    ),
    (
        lambda log: edit(
            log, "results", lambda payload: about(payload)["asked"].update(sap="none"), BASE
        ),
        "not all are of one f",
    ),
    (
        lambda log: edit(
            log, "results", lambda payload: about(payload)["protocol"].update(items="0" * 16)
        ),
        PROTOCOL[0],
    ),
    (
        lambda log: edit(
            log, "results", lambda payload: about(payload)["protocol"].update(prompts="0" * 16)
        ),
        PROTOCOL[1],
    ),
    (
        lambda log: edit(
            log,
            "predictions",
            lambda payload: payload["0"]["origin_prompt"][0].update(prompt="Be brief."),
        ),
        "its messages are not those of h2htalk",
    ),
]


@pytest.mark.parametrize(("change", "message"), OTHERS)
def test_other_logs_are_refused(
    change: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    log = write_log(tmp_path)
    change(log)
    with pytest.raises(DataError, match=message):
        import_opencompass(log, tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_every_row_has_the_canary_and_an_unknown_language_is_named() -> None:
    harness_split = HarnessSplit("mini", limit=11)
    assert {item.to_dict()["canary"] for item in harness_split.items} == {
        harness_split.split.canary
    }
    assert harness_split.split.canary.startswith("mini")
    with pytest.raises(ConfigError, match=r"no language 'fr'; choose from en, zh"):
        HarnessSplit("mini", "fr")


def test_settings_may_be_texts_and_an_embedder_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {
        "language": "en",
        "subtasks": "dialogue_base,itinerary_basic",
        "limit": None,
        "version": 1,
    }
    assert {item.subtask for item in HarnessSplit.of(settings).items} == {
        "dialogue_base",
        "itinerary_basic",
    }
    monkeypatch.setenv("H2HTALK_EMBEDDER", "nomic")
    with pytest.raises(ConfigError, match="nomic"):
        HarnessSplit.of(settings)
    assert HarnessSplit.of({**settings, "embedder": "none"}).protocol["embedder"] == "none"


def test_the_command_prints_the_folder_of_lm_evals_tasks() -> None:
    folder = Path(h2htalk_here("integrations", "lm-eval").stdout.removesuffix("\n"))
    assert {path.stem for path in folder.glob("*.yaml")} == {
        f"h2htalk_mini{part}" for part in ("", "_en", "_zh")
    }
