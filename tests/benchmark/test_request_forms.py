"""Runs, studies and judges at servers that refuse a parameter: which form is asked in, printed and signed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.judge_run import judge_run
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec, JudgeSpec
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from h2htalk.errors import ConfigError
from h2htalk.scale.merge import merge
from support.doubles.loopback import Answer, LoopbackServer
from support.judged_runs import answered_run, verdict
from support.shards import attempt_all, spec_of
from support.splits import write_split
from support.studies import REPLY, spec

NEEDS_OTHER_NAME = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
UNAVAILABLE = "This response_format type is unavailable now"


def refuse(message: str, status: int = 400) -> Answer:
    return Answer({"error": {"message": message, "type": "invalid_request_error"}}, status)


def modern(body: dict[str, Any], _: int) -> str | Answer:
    """A server that knows `max_completion_tokens` alone."""
    return refuse(NEEDS_OTHER_NAME) if "max_tokens" in body else "I hear you."


def run_spec(server: LoopbackServer, folder: Path, **settings: Any) -> EvaluateSpec:
    split = folder / "split"
    if not split.exists():
        write_split(split, 20)
    given = {
        "model": server.spec,
        "split": split,
        "out": folder / "run",
        "embedder": "none",
        "baselines": False,
    }
    return EvaluateSpec(**{**given, **settings})


def test_a_run_is_asked_in_the_form_that_the_server_takes_and_goes_on_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All 20 items were asked with `max_tokens`, all failed, and the run said only HTTP 400."""
    broken = ["item7"]

    def reply(body: dict[str, Any], count: int) -> str | Answer:
        out_of_order = broken and broken[0] in str(body["messages"]) and "max_tokens" not in body
        return (
            Answer({"error": "broken"}, 500, {"x-should-retry": "false"})
            if out_of_order
            else modern(body, count)
        )

    with LoopbackServer(reply=reply) as server:
        summary = evaluate(run_spec(server, tmp_path, concurrency=4))
        assert (summary.counts.scored, summary.counts.unscored) == (19, 1)
        assert server.requests <= 24
        assert (
            capsys.readouterr().err.count("--engine-option max_tokens_name=max_completion_tokens")
            == 1
        )
        signed = summary.signature.subject
        assert signed["request_form"] == "max_tokens_name=max_completion_tokens"
        # The same command asks for what failed alone, in the form that the run began with.
        broken.clear()
        before = server.requests
        assert not evaluate(run_spec(server, tmp_path)).incomplete
        assert server.requests == before + 1
    assert load_run(tmp_path / "run").summary.signature.subject == signed


def test_a_run_of_several_refused_parameters_tries_each(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        if body["messages"][0]["role"] == "system":
            return refuse("System role not supported")
        return modern(body, 1)

    with LoopbackServer(reply=reply) as server:
        summary = evaluate(run_spec(server, tmp_path, concurrency=2))
    assert not summary.incomplete
    assert (
        summary.signature.subject["request_form"]
        == "max_tokens_name=max_completion_tokens, system=fold"
    )


def test_a_run_without_a_seed_signs_that_the_model_draws_by_itself(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        extra = {
            "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]
        }
        return Answer(extra, 422) if "seed" in body else "I hear you."

    with LoopbackServer(reply=reply) as server:
        with pytest.raises(ConfigError, match=r"--engine-option seed=none .*--model-sampling"):
            evaluate(run_spec(server, tmp_path, concurrency=4))
        assert server.requests <= 4
        assert not (tmp_path / "run").exists()
        summary = evaluate(run_spec(server, tmp_path, engine_options={"seed": "none"}))
        with pytest.raises(ConfigError, match="seed=none leaves it to the model"):
            run_spec(server, tmp_path, engine_options={"seed": "none"}, seed=3)
    assert (summary.signature.subject["seed"], summary.signature.subject["temperature"]) == (
        "model's own",
        "0",
    )


def test_shards_are_asked_in_the_form_that_the_server_takes(tmp_path: Path) -> None:
    with LoopbackServer(reply=modern) as server:
        sharded = spec_of(server, tmp_path, concurrency=2)
        attempt_all(sharded, 2)
        summary = merge([str(sharded.out)], tmp_path / "merged")
    assert summary.signature.subject["request_form"] == "max_tokens_name=max_completion_tokens"


# --- Judges -------------------------------------------------------------------------------------------------------


def deepseek(body: dict[str, Any], _: int) -> str | Answer:
    """A judge's server that has `json_object` and no schema."""
    form = body.get("response_format", {"type": "text"})["type"]
    return refuse(UNAVAILABLE) if form == "json_schema" else verdict(4)


NO_ENDPOINTS = "No endpoints found that can handle the requested parameters."


def openrouter(body: dict[str, Any], _: int) -> str | Answer:
    """A judge's router none of whose providers has structured output."""
    return refuse(NO_ENDPOINTS, 404) if "response_format" in body else verdict(4)


def test_a_judge_whose_router_has_no_provider_with_json_schema_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenRouter's 404 was read as "has no model", and nothing said how to ask."""
    run = answered_run(tmp_path, ["I hear you."] * 3)
    with LoopbackServer(reply=openrouter) as server:
        judged = judge_run(JudgeSpec(run=run, judges=(server.spec,), concurrency=1))
    assert judged.judging is not None
    assert judged.judging.scored == judged.judging.total > 0
    printed = capsys.readouterr().err
    assert printed.count("--engine-option response_format=json_object") == 1
    assert printed.count("--engine-option response_format=none") == 1


def test_a_run_at_a_router_that_takes_no_seed_stops_with_what_to_type(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        return refuse(NO_ENDPOINTS, 404) if "seed" in body else "I hear you."

    with LoopbackServer(reply=reply) as server:
        with pytest.raises(ConfigError, match=r"perhaps seed .*--engine-option seed=none"):
            evaluate(run_spec(server, tmp_path, concurrency=1))
        assert server.requests == 1
        assert not evaluate(run_spec(server, tmp_path, engine_options={"seed": "none"})).incomplete


def test_a_judge_without_json_schema_judges_and_is_another_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DeepSeek's API could judge nothing: no call was answered, and nothing said how to ask it."""
    run = answered_run(tmp_path, ["I hear you."] * 6)
    with LoopbackServer(reply=deepseek) as server:
        judged = judge_run(JudgeSpec(run=run, judges=(server.spec,), concurrency=1))
        asked = server.requests
        again = judge_run(JudgeSpec(run=run, judges=(server.spec,)))
        assert server.requests == asked == 7  # one refused; the same command asks nothing anew
    assert judged.judging is not None
    assert judged.judging.scored == judged.judging.total > 0
    assert judged.signature == again.signature
    assert capsys.readouterr().err.count("--engine-option response_format=json_object") == 1
    (stored,) = (run / "judgements").glob("*.json")
    assert json.loads(stored.read_text())["forms"] == {"response_format": "json_object"}
    assert stored.stem[:8] in judged.signature.protocol["judge"]


def test_a_judge_takes_engine_options_and_refuses_unknown_ones(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["I hear you."] * 6)

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        return (
            refuse("Unsupported value: 'temperature' does not support 0")
            if "temperature" in body
            else verdict(4)
        )

    with LoopbackServer(reply=reply) as server:
        spec = JudgeSpec(run=run, judges=(server.spec,))
        with pytest.raises(ConfigError, match="--engine-option temperature=none") as refused:
            judge_run(spec)
        assert "--model-sampling" not in str(refused.value)  # `judge run` has no such flag
        assert not list((run / "judgements").glob("*.json"))
        judged = judge_run(
            JudgeSpec(run=run, judges=(server.spec,), engine_options={"temperature": "none"})
        )
        assert judged.judging is not None
        assert judged.judging.scored == 6
        with pytest.raises(
            ConfigError, match="no judge's engine has it; did you mean 'temperature'"
        ):
            JudgeSpec(run=run, judges=(server.spec,), engine_options={"temperatur": "none"})


# --- Studies ------------------------------------------------------------------------------------------------------


def test_a_study_whose_first_call_with_a_schema_comes_late_goes_on(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        return refuse(UNAVAILABLE) if "response_format" in body else REPLY["en"]

    with LoopbackServer(reply=reply) as server:
        asked = spec(
            "instructions", server.spec, tmp_path / "study", language="en", limit=40, concurrency=1
        )
        result = run_study(asked)
        before = server.requests
        run_study(asked)
        assert server.requests == before
    assert not result.incomplete
    assert result.study.folder.signature().subject["request_form"] == "response_format=none"


def test_the_judge_of_a_study_is_asked_in_another_form_which_its_specification_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "h2htalk.benchmark.studies.judge_reading.FIRST_READ", 1000
    )  # its replies cannot be read

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        if "response_format" in body and body["response_format"]["type"] == "json_schema":
            return refuse(UNAVAILABLE)
        return "no form" if "statements" in str(body["messages"]) else REPLY["en"]

    with LoopbackServer(reply=reply) as server:
        judge = server.spec.replace("server:loopback", "server:judge")
        asked = spec(
            "sap",
            server.spec,
            tmp_path / "study",
            language="en",
            limit=2,
            arms=("none",),
            judge=judge,
        )
        result = run_study(asked)
    assert result.study.spec.judge_options == {"response_format": "json_object"}
    shutil.rmtree(tmp_path / "study" / "tables", ignore_errors=True)
    assert (
        score_study(tmp_path / "study").judge
        == result.judge
        == load_study(tmp_path / "study").judge
    )
