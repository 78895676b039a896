"""Runs of logs of Inspect's task `mini`, without Inspect: logs as it writes them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.run import load_run
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.errors import ConfigError, DataError
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import about_split, import_inspect

ASKED = {"split": "mini", "language": "en", "limit": 11, "sap": "full", "embedder": "none"}


def sample_of(item: str, text: str, epoch: int = 1, stop: str = "stop", **changed: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 9, "input_tokens_cache_read": 20, "input_tokens_cache_write": None}
    message = {"role": "assistant", "content": text}
    choices = [{"message": message, "stop_reason": stop}]
    output = {"model": "demo", "choices": choices, "completion": text, "usage": usage, "time": 1.5}
    times = {"completed_at": "2026-11-26T15:00:00+00:00"}
    return {"id": item, "epoch": epoch, "input": "Hi", "target": "", "output": output, "scores": {}, **times, **changed}


def log_of() -> dict[str, Any]:
    door = Door("mini", language="en", limit=11)
    ids = [one.id for one in door.items]
    about = {
        "task": "h2htalk/mini",
        "model": "openai/demo",
        "model_generate_config": {"temperature": None, "max_tokens": None},
        "dataset": {"sample_ids": ids},
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
        "metadata": about_split(door.split, door.protocol, ASKED),
    }
    times = {"started_at": "2026-11-26T14:59:00+00:00", "completed_at": "2026-11-26T15:00:01+00:00"}
    samples = [sample_of(one, f"I hear you, {n}.") for n, one in enumerate(ids)]
    plan = {"config": {"temperature": 0.0}}
    return {
        "version": 2,
        "status": "success",
        "eval": about,
        "plan": plan,
        "stats": times,
        "samples": samples,
    }


def write(folder: Path, log: dict[str, Any]) -> Path:
    (folder / "log.json").write_text(json.dumps(log), encoding="utf-8")
    return folder / "log.json"


def test_replies_tokens_times_and_failures_become_a_run(tmp_path: Path) -> None:
    log = log_of()
    ids = log["eval"]["dataset"]["sample_ids"]
    log["samples"][0] |= {"error": {"message": "InternalServerError('it fell over')"}, "output": {"choices": []}}
    log["samples"][1] = sample_of(ids[1], "maximum context length is 2048 tokens", stop="model_length")
    log["samples"][1]["output"]["usage"] = None
    log["samples"][2] = sample_of(ids[2], "A reply that was", stop="max_tokens")
    log["samples"][3] = sample_of(ids[3], "")
    del log["samples"][4]
    summary = import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    failed = {item: one.failure for (item, _), one in run.answers.items() if isinstance(one, FailedResponse)}
    assert {item: one.reason for item, one in failed.items()} == {ids[0]: "error", ids[1]: "model_length"}
    assert "fell over" in failed[ids[0]].message
    assert run.item_scores[ids[4]].unscored == "missing"
    cut, empty = run.answers[ids[2], 0], run.answers[ids[3], 0]
    assert isinstance(cut, Response)
    assert (cut.finish_reason, cut.usage.input_tokens, cut.usage.cache_read_tokens, cut.seconds) == (
        "length",
        120,
        20,
        1.5,
    )
    assert isinstance(empty, Response)
    assert run.item_scores[ids[3]].lexical == 0
    assert summary.counts.unscored == 3
    assert summary.signature.subject["model"] == "openai/demo"
    assert summary.answering.ended.startswith("2026-11-26T15:00:01")
    assert "the log is partial" in " ".join(summary.warnings)
    assert run.data.prompt_of is not None


def test_epochs_are_samples(tmp_path: Path) -> None:
    log = log_of()
    log["eval"]["config"]["epochs"] = 2
    log["plan"]["config"]["temperature"] = 0.7
    log["samples"] += [sample_of(one["id"], "Another one.", epoch=2) for one in log["samples"]]
    import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.data.spec.samples == 2
    assert run.data.spec.temperature == 0.7
    assert len(run.answers) == 22


def test_items_that_inspect_itself_left_out_are_not_of_the_run(tmp_path: Path) -> None:
    log = log_of()
    log["eval"]["dataset"]["sample_ids"] = [one["id"] for one in log["samples"][:3]]
    log["samples"] = log["samples"][:3]
    assert import_inspect(write(tmp_path, log), tmp_path / "run").counts.unscored == 0
    assert len(load_run(tmp_path / "run").data.split.scenarios) == 3


def of_another_task(log: dict[str, Any]) -> None:
    log["eval"]["task"] = "theirs/mini"
    log["eval"]["metadata"] = {}


def of_cases(log: dict[str, Any]) -> None:
    log["eval"]["task"] = "h2htalk/arcs"


def of_other_items(log: dict[str, Any]) -> None:
    log["eval"]["metadata"]["h2htalk"]["protocol"]["items"] = "0" * 16


def of_other_prompts(log: dict[str, Any]) -> None:
    log["eval"]["metadata"]["h2htalk"]["protocol"]["prompts"] = "0" * 16


def invalidated(log: dict[str, Any]) -> None:
    log["invalidated"] = True


def with_an_unknown_argument(log: dict[str, Any]) -> None:
    log["eval"]["metadata"]["h2htalk"]["asked"]["colour"] = "red"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_another_task, "only logs of h2htalk/mini"),
        (of_cases, "only logs of h2htalk/mini"),
        (of_other_items, "differs from this version in items"),
        (of_other_prompts, "differs from this version in prompts"),
        (invalidated, "marked as invalid"),
        (with_an_unknown_argument, "colour"),
    ],
)
def test_other_logs_are_refused(change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path) -> None:
    log = log_of()
    change(log)
    with pytest.raises((DataError, ConfigError), match=message):
        import_inspect(write(tmp_path, log), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, log_of())
    import_inspect(path, tmp_path / "run")
    with pytest.raises(DataError, match="holds a run already"):
        import_inspect(path, tmp_path / "run")
