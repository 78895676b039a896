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
from h2htalk.integrations import import_log
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import about_split, import_inspect

ASKED = {"split": "mini", "language": "en", "limit": 11, "sap": "full", "embedder": "none"}


DOOR = Door("mini", language="en", limit=11)
ASKED_OF = {one.id: [dict(message) for message in one.messages] for one in DOOR.items}
BUDGETS = {one.id: one.max_tokens for one in DOOR.items}


def sample_of(item: str, text: str, epoch: int = 1, stop: str = "stop", **changed: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 9, "input_tokens_cache_read": 20, "input_tokens_cache_write": None}
    message = {"role": "assistant", "content": text}
    choices = [{"message": message, "stop_reason": stop}]
    output = {"model": "demo", "choices": choices, "completion": text, "usage": usage, "time": 1.5}
    times = {"completed_at": "2026-11-26T15:00:00+00:00"}
    asked = {"input": ASKED_OF[item], "messages": [*ASKED_OF[item], message]}
    calls = [{"event": "model", "config": {"temperature": 0.0, "max_tokens": BUDGETS[item], "max_retries": 0}}]
    own = {"id": item, "epoch": epoch, "target": "", "scores": {}, "events": [{"event": "span_begin"}, *calls]}
    return {**own, **asked, "output": output, **times, **changed}


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


def of_another_task(log: dict[str, Any]) -> None:
    log["eval"]["task"] = "theirs/mini"
    log["eval"]["metadata"] = {}


def of_cases(log: dict[str, Any]) -> None:
    log["eval"]["task"] = "h2htalk/arcs"


def of_other_items(log: dict[str, Any]) -> None:
    log["eval"]["metadata"]["h2htalk"]["protocol"]["items"] = "0" * 16


def of_other_prompts(log: dict[str, Any]) -> None:
    log["eval"]["metadata"]["h2htalk"]["protocol"]["prompts"] = "0" * 16


def with_another_prompt(log: dict[str, Any]) -> None:
    """A solver that rewrites the last user message of one item; `input` stays."""
    log["samples"][3]["messages"] = [*log["samples"][3]["input"][:-1], {"role": "user", "content": "Hi"}]


def with_another_input(log: dict[str, Any]) -> None:
    log["samples"][3]["input"] = "Hi"


def with_two_ids_swapped(log: dict[str, Any]) -> None:
    first, second = log["samples"][:2]
    first["id"], second["id"] = second["id"], first["id"]


def with_a_system_message(log: dict[str, Any]) -> None:
    """Inspect adds it when it asks: no sample holds it."""
    log["plan"]["config"]["system_message"] = "You are a parrot."


def with_another_budget(log: dict[str, Any]) -> None:
    """A solver that sets a budget of its own."""
    log["samples"][3]["events"][1]["config"]["max_tokens"] = 4000


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
        (with_another_prompt, "its messages are not those of h2htalk"),
        (with_another_input, "its messages are not those of h2htalk"),
        (with_two_ids_swapped, "its messages are not those of h2htalk"),
        (with_a_system_message, "its messages are not those of h2htalk"),
        (with_another_budget, r"'mini-en-\S+' was asked with max_tokens 4000, which no option had set"),
        (invalidated, "marked as invalid"),
        (with_an_unknown_argument, "colour"),
    ],
)
def test_other_logs_are_refused(change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path) -> None:
    log = log_of()
    change(log)
    with pytest.raises((DataError, ConfigError), match=message):
        import_inspect(write(tmp_path, log), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def with_a_time_that_is_none(log: dict[str, Any]) -> None:
    log["samples"][0]["completed_at"] = "garbage"


def with_usage_as_text(log: dict[str, Any]) -> None:
    log["samples"][0]["output"]["usage"] = "garbage"


def with_usage_without_tokens(log: dict[str, Any]) -> None:
    log["samples"][0]["output"]["usage"] = {"output_tokens": 9}


def without_epoch(log: dict[str, Any]) -> None:
    del log["samples"][0]["epoch"]


def with_epochs_as_text(log: dict[str, Any]) -> None:
    log["eval"]["config"]["epochs"] = "garbage"


def without_what_was_asked(log: dict[str, Any]) -> None:
    del log["eval"]["metadata"]["h2htalk"]["asked"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_a_time_that_is_none, "ValueError: .*garbage"),
        (with_usage_as_text, "AttributeError"),
        (with_usage_without_tokens, "without 'input_tokens'"),
        (without_epoch, "without 'epoch'"),
        (with_epochs_as_text, "TypeError"),
        (without_what_was_asked, "without 'asked'"),
    ],
)
def test_an_edited_log_is_named_and_leaves_no_folder(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    log = log_of()
    change(log)
    with pytest.raises(DataError, match=rf"log\.json: is not in the form that its name promises \({message}"):
        import_inspect(write(tmp_path, log), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ids", [None, [], [1]])
def test_a_log_without_ids_of_its_items_has_those_of_its_settings(tmp_path: Path, ids: Any) -> None:
    log = log_of()
    log["eval"]["dataset"]["sample_ids"] = ids
    assert import_inspect(write(tmp_path, log), tmp_path / "run").counts.scored == 11


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


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, log_of())
    import_inspect(path, tmp_path / "run")
    with pytest.raises(DataError, match="holds a run already"):
        import_inspect(path, tmp_path / "run")
