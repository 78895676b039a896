"""Runs of logs of Inspect's task `mini`, without Inspect: logs as it writes them, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from splits_made import changed

from h2htalk.benchmark.run import load_run
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.errors import ConfigError, DataError
from h2htalk.integrations import import_log
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import about_split, import_inspect

ASKED = {"split": "mini", "language": "en", "limit": 11, "sap": "full", "embedder": "none"}


DOOR = Door("mini", language="en", limit=11)
ASKED_OF = {one.id: [dict(message) for message in one.messages] for one in DOOR.items}
BUDGETS = {one.id: one.max_tokens for one in DOOR.items}


def sample_of(item: str, text: str, epoch: int = 1, stop: str = "stop", **own: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 9, "input_tokens_cache_read": 20, "input_tokens_cache_write": None}
    message = {"role": "assistant", "content": text}
    choices = [{"message": message, "stop_reason": stop}]
    output = {"model": "demo", "choices": choices, "completion": text, "usage": usage, "time": 1.5}
    times = {"completed_at": "2026-11-26T15:00:00+00:00"}
    asked = {"input": ASKED_OF[item], "messages": [*ASKED_OF[item], message]}
    calls = [{"event": "model", "config": {"temperature": 0.0, "max_tokens": BUDGETS[item], "max_retries": 0}}]
    about = {"id": item, "epoch": epoch, "target": "", "scores": {}, "events": [{"event": "span_begin"}, *calls]}
    return {**about, **asked, "output": output, **times, **own}


def log_of() -> dict[str, Any]:
    ids = [*ASKED_OF]
    about = {
        "task": "h2htalk/mini",
        "model": "openai/demo",
        "model_generate_config": {"temperature": None, "max_tokens": None},
        "dataset": {"sample_ids": ids},
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
        "metadata": about_split(DOOR.split, DOOR.protocol, ASKED),
    }
    times = {"started_at": "2026-11-26T14:59:00+00:00", "completed_at": "2026-11-26T15:00:01+00:00"}
    samples = [sample_of(one, f"I hear you, {n}.") for n, one in enumerate(ids)]
    log = {"version": 2, "status": "success", "eval": about, "stats": times, "samples": samples}
    return log | {"plan": {"config": {"temperature": 0.0}}}


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
    found = (cut.finish_reason, cut.usage.input_tokens, cut.usage.cache_read_tokens, cut.seconds)
    assert found == ("length", 120, 20, 1.5)
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
    for sample in log["samples"]:
        sample["events"][1]["config"]["temperature"] = 0.7
    log["samples"] += [sample_of(one["id"], "Another one.", epoch=2, events=[]) for one in log["samples"]]
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


ABOUT, MESSAGES = "eval.metadata.h2htalk", "its messages are not those of h2htalk"
FORM = r"log\.json: is not in the form that its name promises \("
FIRST, SECOND = [*ASKED_OF][:2]
OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"eval.task": "theirs/mini", "eval.metadata": {}}, "only logs of h2htalk/mini"),
    ({"eval.task": "h2htalk/arcs"}, "only logs of h2htalk/mini"),
    ({f"{ABOUT}.protocol.items": "0" * 16}, "differs from this version in items"),
    ({f"{ABOUT}.protocol.prompts": "0" * 16}, "differs from this version in prompts"),
    ({"samples.3.messages.-2.content": "Hi"}, MESSAGES),  # a solver rewrote it; `input` stays
    ({"samples.3.input": "Hi"}, MESSAGES),
    ({"samples.0.id": SECOND, "samples.1.id": FIRST}, MESSAGES),
    ({"plan.config.system_message": "You are a parrot."}, MESSAGES),  # Inspect adds it when it asks: no sample has it
    (
        {"samples.3.events.1.config.max_tokens": 4000},
        "'mini-en-.*' was asked with max_tokens 4000, which no option had",
    ),
    ({"invalidated": True}, "marked as invalid"),
    ({f"{ABOUT}.asked.colour": "red"}, "colour"),
    # Edited logs.
    ({"samples.0.completed_at": "garbage"}, f"{FORM}ValueError: .*garbage"),
    ({"samples.0.output.usage": "garbage"}, f"{FORM}AttributeError"),
    ({"samples.0.output.usage": {"output_tokens": 9}}, f"{FORM}without 'input_tokens'"),
    ({"samples.0.epoch": ...}, f"{FORM}without 'epoch'"),
    ({"eval.config.epochs": "garbage"}, f"{FORM}TypeError"),
    ({f"{ABOUT}.asked": ...}, f"{FORM}without 'asked'"),
]


@pytest.mark.parametrize(("fields", "message"), OTHERS)
def test_other_and_edited_logs_leave_no_folder(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, ConfigError), match=message):
        import_inspect(write(tmp_path, changed(log_of(), fields)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ids", [None, [], [1]])
def test_a_log_without_ids_of_its_items_has_those_of_its_settings(tmp_path: Path, ids: Any) -> None:
    log = write(tmp_path, changed(log_of(), {"eval.dataset.sample_ids": ids}))
    assert import_inspect(log, tmp_path / "run").counts.scored == 11
    with pytest.raises(DataError, match="holds a run already"):
        import_inspect(log, tmp_path / "run")


def test_an_import_whose_scoring_fails_leaves_no_folder_and_the_same_command_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, log_of())

    def fail(*_: object, **__: object) -> None:
        raise ConfigError("metric 'x' failed")

    monkeypatch.setattr(import_log, "score_run_data", fail)
    with pytest.raises(ConfigError, match="metric 'x' failed"):
        import_inspect(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    assert import_inspect(path, tmp_path / "run").counts.scored == 11


def test_the_signature_has_every_setting_of_the_log_and_none_that_was_not_sent(tmp_path: Path) -> None:
    log = log_of()
    import_inspect(write(tmp_path, log), tmp_path / "plain")
    plain = load_run(tmp_path / "plain").summary.signature.subject
    assert {name: plain[name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": "0", "top_p": "model's own", "seed": "model's own"
    }  # fmt: skip
    assert plain["max_tokens"].startswith("by-subtask@")
    sent = {"top_p": 0.1, "seed": 9, "stop_seqs": ["I"], "frequency_penalty": 1.0, "max_tokens": 4000}
    log["eval"]["model_generate_config"] |= sent | {"max_retries": 0, "extra_headers": {"key": "secret"}}
    for sample in log["samples"]:
        sample["events"][1]["config"] |= sent
    import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    subject = run.summary.signature.subject
    assert {name: subject[name] for name in sent} == {
        "top_p": "0.1", "seed": "9", "stop_seqs": "['I']", "frequency_penalty": "1", "max_tokens": "4000"
    }  # fmt: skip
    assert not {"max_retries", "extra_headers"} & subject.keys()


def test_a_filtered_prompt_is_an_empty_reply(tmp_path: Path) -> None:
    """Inspect makes a reply of the provider's message, without usage; our own run has an empty reply."""
    log = log_of()
    item, other = [*ASKED_OF][:2]
    log["samples"][0] = sample_of(item, "The prompt was filtered.", stop="content_filter")
    log["samples"][0]["output"]["usage"] = None
    log["samples"][1] = sample_of(other, "I hear you, but", stop="content_filter")  # cut by a filter on its way
    import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    found = [run.answers[one, 0] for one in (item, other)]
    assert [(one.text, one.finish_reason) for one in found if isinstance(one, Response)] == [
        ("", "refusal"), ("I hear you, but", "refusal")
    ]  # fmt: skip
    assert run.item_scores[item].lexical == 0
