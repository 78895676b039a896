"""A specification: from options, from TOML or from an earlier run; every wrong value is named before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.errors import ConfigError, H2HTalkError

WORK: dict[str, Any] = {"model": "embedded", "split": "mini@1", "out": "runs/a"}
NUMBERS = ("timeout", "deadline", "temperature", "top_p", "max_cost")
OPTIONS = {"model": "MODEL", "split": "--split", "out": "--out", "prompts": "--prompts"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "x"}, "unknown key modle; did you mean 'model'? choose from model, split"),
        ({"limit": 0}, "--limit: must be 1 or more, not 0"),
        ({"max_tokens": 10**30}, "--max-tokens: must be 1,000,000 or less, not 1000"),
        *(({key: float("nan")}, f"--{key.replace('_', '-')}: must be a finite number") for key in NUMBERS),
        *(({key: float("inf")}, f"--{key.replace('_', '-')}: must be a finite number") for key in NUMBERS),
        ({"top_p": 0}, "--top-p: must be above 0, not 0"),
        ({"language": "fr"}, "--language: no language 'fr'; choose from en, zh"),
        ({"subtasks": ["dialog"]}, "--subtask.1: unknown subtask 'dialog'"),
        # These were taken for 1, for False and for 5.
        ({"limit": True}, "--limit: must be a whole number, not True"),
        ({"baselines": "no"}, "--baselines: must be true or false, not 'no'"),
        ({"temperature": True}, "--temperature: must be a number, not True"),
        *(({key: " "}, f"{OPTIONS[key]}: must be text that is not empty") for key in ("model", "split", "out")),
        *(({key: "x\0y"}, f"{OPTIONS[key]} holds the character NUL") for key in ("model", "split", "out", "prompts")),
    ],
)
def test_a_wrong_value_names_its_option(change: dict[str, Any], message: str) -> None:
    with pytest.raises(H2HTalkError) as raised:
        EvaluateSpec.from_dict({**WORK, **change}, "eval.toml")
    assert str(raised.value).startswith(f"eval.toml: {message}")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_minus_zero_is_zero() -> None:
    """It signed as `-0`, and was another run than temperature 0."""
    assert str(EvaluateSpec.from_dict({**WORK, "temperature": -0.0}, "command line").temperature) == "0.0"


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "eval.toml"
    path.write_text('model = "embedded"\nsplit = "mini@1"\nlimit = 5\nsubtasks = ["dialogue_base"]\nsamples = 2\n')
    spec = read_spec(path, {"out": "runs/b", "limit": 7, "temperature": 0.7})
    assert (spec.model, spec.out, spec.limit, spec.samples) == ("embedded", "runs/b", 7, 2)
    assert spec.subtasks == ("dialogue_base",)


def test_the_spec_of_a_run_goes_on_in_the_folder_that_holds_it(tmp_path: Path) -> None:
    """A run that was moved was begun anew where it had been."""
    (tmp_path / "moved").mkdir()
    path = tmp_path / "moved" / "run.json"
    path.write_text(json.dumps({"spec": EvaluateSpec(**WORK).to_dict()}))
    assert read_spec(path).out_path == tmp_path / "moved"


def test_imported_answers_cannot_be_asked_for_but_by_a_model_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"spec": {**WORK, "model": "imported:mine"}}))
    with pytest.raises(ConfigError) as raised:
        read_spec(path)
    assert str(raised.value) == f"{path}: imported answers cannot be asked for; use `h2htalk score`"
    assert read_spec(path, {"model": "embedded", "out": "runs/b"}).model == "embedded"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("eval.toml", b"model = 'caf\xe9'"),
        ("eval.toml", None),
        ("eval.toml", b"limit = " + b"[" * 100_000),
        ("run.json", b"[" * 100_000),
        ("run.json", b"{}"),
        ("run.json", b'{"spec": null}'),
    ],
)
def test_a_file_that_is_no_specification_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=f"{name}: not a readable specification"):
        read_spec(tmp_path / name)


# --- Engines: their options, reasoning, sampling that is not ours to set, money -----------------------------------


def spec_of(model: str, **given: Any) -> EvaluateSpec:
    return EvaluateSpec(**{**WORK, "model": model, **given})


def test_an_engines_options_are_texts_whether_they_come_as_toml_or_json(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'model = "vllm:m"\nsplit = "mini@1"\nout = "r"\n'
        "[engine_options]\ntensor_parallel_size = 8\nenforce_eager = true\ngpu_memory_utilization = 0.85\n"
    )
    spec = read_spec(path)
    options = {"tensor_parallel_size": "8", "enforce_eager": "true", "gpu_memory_utilization": "0.85"}
    assert spec.engine_options == options
    assert EvaluateSpec.from_dict(json.loads(json.dumps(spec.to_dict())), "run.json") == spec


def test_sampling_is_the_models_own_where_its_api_takes_none_or_it_is_left_to_it() -> None:
    anthropic, openai = "anthropic:claude-sonnet-5-5", "openai:gpt-4o"
    assert spec_of(anthropic, samples=3).sampling_temperature is None
    assert spec_of(openai).sampling_temperature == 0.0
    assert spec_of(openai, samples=3, model_sampling=True).sampling_temperature is None


PAID = "is for openai and anthropic only, not for "


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("hf:m", {"engine_options": {"dtype": "half"}}, r"--engine-option: hf has no engine options \(dtype\); vllm"),
        ("baseline:constant", {"engine_options": {"dtype": "half"}}, "--engine-option: baseline has no"),
        ("embedded", {"thinking": 0}, "--thinking is for .* only, not for embedded"),
        ("baseline:constant", {"thinking": 100}, "--thinking is for .* only, not for baseline"),
        ("embedded", {"model_sampling": True}, "--model-sampling is for .* only, not for embedded"),
        ("openai:m", {"samples": 3}, "set --temperature"),
        ("openai:m", {"model_sampling": True, "temperature": 0.7}, "leave out --temperature, or --model-sampling"),
        ("openai:m", {"model_sampling": True, "top_p": 0.9}, "leave out --top-p, or --model-sampling"),
        ("openai:m", {"model_sampling": True, "seed": 5}, "leave out --seed, or --model-sampling"),
        ("anthropic:m", {"seed": 5}, "leave out --seed, the model draws by itself"),
        ("server:m@http://127.0.0.1:1/v1", {"batch": True}, f"--batch {PAID}server"),
        ("vllm:m", {"max_cost": 1.0}, f"--max-cost {PAID}vllm"),
        ("hf:m", {"prices": "mine.toml"}, f"--prices {PAID}hf"),
    ],
)
def test_what_an_engine_cannot_do_is_refused_before_anything_is_opened(
    model: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        spec_of(model, **given)
