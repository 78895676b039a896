"""Runs of logs of Inspect's task `mini`, without Inspect: logs as it writes them, made by hand."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.run import load_run
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.errors import ConfigError, DataError
from h2htalk.integrations import import_log
from h2htalk.integrations.harness_split import HarnessSplit
from h2htalk.integrations.import_log import about_split, import_inspect
from support.splits import changed

ASKED = {"split": "mini", "language": "en", "limit": 11, "sap": "full", "embedder": "none"}


HARNESS_SPLIT = HarnessSplit("mini", language="en", limit=11)
ASKED_OF = {item.id: list(map(dict, item.messages)) for item in HARNESS_SPLIT.items}
BUDGETS = {item.id: item.max_tokens for item in HARNESS_SPLIT.items}


def sample_of(
    item: str, text: str, epoch: int = 1, stop: str = "stop", **overrides: Any
) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "output_tokens": 9,
        "input_tokens_cache_read": 20,
        "input_tokens_cache_write": None,
    }
    message = {"role": "assistant", "content": text}
    choices = [{"message": message, "stop_reason": stop}]
    output = {"model": "demo", "choices": choices, "completion": text, "usage": usage, "time": 1.5}
    times = {"completed_at": "2026-11-26T15:00:00+00:00"}
    prompt = {"input": ASKED_OF[item], "messages": [*ASKED_OF[item], message]}
    calls = [
        {
            "event": "model",
            "config": {"temperature": 0.0, "max_tokens": BUDGETS[item], "max_retries": 0},
        }
    ]
    about = {
        "id": item,
        "epoch": epoch,
        "target": "",
        "scores": {},
        "events": [{"event": "span_begin"}, *calls],
    }
    return {**about, **prompt, "output": output, **times, **overrides}


def log_of() -> dict[str, Any]:
    ids = [*ASKED_OF]
    about = {
        "task": "h2htalk/mini",
        "model": "openai/demo",
        "model_generate_config": {"temperature": None, "max_tokens": None},
        "dataset": {"sample_ids": ids},
        "config": {"epochs": 1},
        "packages": {"inspect_ai": "0.3.285"},
        "metadata": about_split(HARNESS_SPLIT.split, HARNESS_SPLIT.protocol, ASKED),
    }
    times = {"started_at": "2026-11-26T14:59:00+00:00", "completed_at": "2026-11-26T15:00:01+00:00"}
    samples = [sample_of(item, f"I hear you, {n}.") for n, item in enumerate(ids)]
    log = {"version": 2, "status": "success", "eval": about, "stats": times, "samples": samples}
    return log | {"plan": {"config": {"temperature": 0.0}}}


def write(folder: Path, log: dict[str, Any]) -> Path:
    (folder / "log.json").write_text(json.dumps(log), encoding="utf-8")
    return folder / "log.json"


def test_replies_tokens_times_and_failures_become_a_run(tmp_path: Path) -> None:
    log = log_of()
    ids = log["eval"]["dataset"]["sample_ids"]
    log["samples"][0] |= {
        "error": {"message": "InternalServerError('it fell over')"},
        "output": {"choices": []},
    }
    log["samples"][1] = sample_of(
        ids[1], "maximum context length is 2048 tokens", stop="model_length"
    )
    log["samples"][1]["output"]["usage"] = None
    log["samples"][2] = sample_of(ids[2], "A reply that was", stop="max_tokens")
    log["samples"][3] = sample_of(ids[3], "")
    del log["samples"][4]
    summary = import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    failed = {
        item: answer.failure
        for (item, _), answer in run.answers.items()
        if isinstance(answer, FailedResponse)
    }
    assert {item: failure.reason for item, failure in failed.items()} == {
        ids[0]: "error",
        ids[1]: "model_length",
    }
    assert "fell over" in failed[ids[0]].message
    assert run.item_scores[ids[4]].unscored == "missing"
    cut = run.answers[ids[2], 0]
    empty = run.answers[ids[3], 0]
    assert isinstance(cut, Response)
    values = (cut.finish_reason, cut.usage.input_tokens, cut.usage.cache_read_tokens, cut.seconds)
    assert values == ("length", 120, 20, 1.5)
    assert isinstance(empty, Response)
    assert run.item_scores[ids[3]].lexical == 0
    assert summary.counts.unscored == 3
    assert summary.signature.subject["model"] == "openai/demo"
    assert summary.run_facts.ended.startswith("2026-11-26T15:00:01")
    assert "the log is partial" in " ".join(summary.warnings)
    assert run.data.prompt_of is not None


def test_epochs_are_samples(tmp_path: Path) -> None:
    log = log_of()
    log["eval"]["config"]["epochs"] = 2
    log["eval"]["config"]["epochs_reducer"] = ["max"]
    log["plan"]["config"]["temperature"] = 0.7
    for sample in log["samples"]:
        sample["events"][1]["config"]["temperature"] = 0.7
    log["samples"] += [
        sample_of(sample["id"], "Another one.", epoch=2, events=[]) for sample in log["samples"]
    ]
    summary = import_inspect(write(tmp_path, log), tmp_path / "run")
    assert "its own figures are of each item's max of 2 epochs" in " ".join(summary.warnings)
    run = load_run(tmp_path / "run")
    assert run.data.spec.samples == 2
    assert run.data.spec.temperature == 0.7
    assert len(run.answers) == 22


def test_items_that_inspect_itself_left_out_are_not_of_the_run(tmp_path: Path) -> None:
    log = log_of()
    log["eval"]["dataset"]["sample_ids"] = [sample["id"] for sample in log["samples"][:3]]
    log["samples"] = log["samples"][:3]
    assert import_inspect(write(tmp_path, log), tmp_path / "run").counts.unscored == 0
    assert len(load_run(tmp_path / "run").data.split.scenarios) == 3


ABOUT = "eval.metadata.h2htalk"
MESSAGES = "its messages are not those of h2htalk"
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
    (
        {"plan.config.system_message": "You are a parrot."},
        MESSAGES,
    ),  # Inspect adds it when it asks: no sample has it
    (
        {"samples.3.events.1.config.max_tokens": 4000},
        "'mini-en-.*' was asked with max_tokens 4000, which no option had",
    ),
    ({"invalidated": True}, "marked as invalid"),
    ({f"{ABOUT}.asked.colour": "red"}, "colour"),
    # Edited logs.
    ({"samples.0.completed_at": "garbage"}, f"{FORM}a value is of another kind"),
    ({"samples.0.output.usage": "garbage"}, f"{FORM}a value is of another kind"),
    ({"samples.0.output.usage": {"output_tokens": 9}}, f"{FORM}without 'input_tokens'"),
    ({"samples.0.epoch": ...}, f"{FORM}without 'epoch'"),
    ({"eval.config.epochs": "garbage"}, f"{FORM}a value is of another kind"),
    ({f"{ABOUT}.asked": ...}, f"{FORM}without 'asked'"),
]


@pytest.mark.parametrize(("fields", "message"), OTHERS)
def test_other_and_edited_logs_leave_no_folder(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
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


def test_the_signature_has_every_setting_of_the_log_and_none_that_was_not_sent(
    tmp_path: Path,
) -> None:
    log = log_of()
    import_inspect(write(tmp_path, log), tmp_path / "plain")
    plain = load_run(tmp_path / "plain").summary.signature.subject
    assert {name: plain[name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": "0", "top_p": "model's own", "seed": "model's own"
    }  # fmt: skip
    assert plain["max_tokens"].startswith("by-subtask@")
    sent = {
        "top_p": 0.1,
        "seed": 9,
        "stop_seqs": ["I"],
        "frequency_penalty": 1.0,
        "max_tokens": 4000,
    }
    log["eval"]["model_generate_config"] |= sent | {
        "max_retries": 0,
        "extra_headers": {"key": "secret"},
    }
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
    item, second = [*ASKED_OF][:2]
    log["samples"][0] = sample_of(item, "The prompt was filtered.", stop="content_filter")
    log["samples"][0]["output"]["usage"] = None
    log["samples"][1] = sample_of(
        second, "I hear you, but", stop="content_filter"
    )  # cut by a filter on its way
    import_inspect(write(tmp_path, log), tmp_path / "run")
    run = load_run(tmp_path / "run")
    values = [run.answers[name, 0] for name in (item, second)]
    assert [(response.text, response.finish_reason) for response in values if isinstance(response, Response)] == [
        ("", "content_filter"), ("I hear you, but", "content_filter")
    ]  # fmt: skip
    assert run.item_scores[item].lexical == 0


@pytest.mark.parametrize(
    "split", ["hub:somebody/split@v1", "hub:somebody/split@" + "0" * 40, "s3://somebody/split"]
)
def test_nobody_is_asked_for_a_split_that_only_a_log_names(
    split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign log made `import inspect` ask the Hub, with the user's token, for whatever it named."""

    def load(*_: object) -> None:
        raise AssertionError("the split was loaded")

    def connect(*_: object, **__: object) -> None:
        raise AssertionError("a server was asked")

    monkeypatch.setattr("h2htalk.benchmark.evaluate.load_split", load)
    # Whatever loads the split, nothing leaves this machine.
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    log = log_of()
    log["eval"]["metadata"]["h2htalk"]["asked"]["split"] = split
    with pytest.raises(
        DataError, match=r"for which nobody is asked because a log says so.*--split"
    ):
        import_inspect(write(tmp_path, log), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_user_names_the_split_of_a_log(tmp_path: Path) -> None:
    log = log_of()
    log["eval"]["metadata"]["h2htalk"]["asked"]["split"] = "hub:somebody/split@v1"
    assert import_inspect(write(tmp_path, log), tmp_path / "run", split="mini").counts.scored == 11
