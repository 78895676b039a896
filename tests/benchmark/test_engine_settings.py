"""What a specification says of engines: their options, reasoning, sampling that is not ours to set, money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.errors import ConfigError

WORK: dict[str, Any] = {"split": "mini@1", "out": "runs/a"}
OPENAI = {**WORK, "model": "openai:gpt-4o"}
ANTHROPIC = {**WORK, "model": "anthropic:claude-sonnet-5-5"}


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


@pytest.mark.parametrize("model", ["hf:m", "embedded", "openai:m", "baseline:constant", "scripted:f"])
def test_an_engine_without_options_refuses_them_before_anything_is_opened(model: str) -> None:
    with pytest.raises(ConfigError, match=r"--engine-option: \w+ has no engine options \(dtype\); vllm has"):
        EvaluateSpec(**WORK, model=model, engine_options={"dtype": "half"})


@pytest.mark.parametrize("model", ["embedded", "baseline:constant"])
@pytest.mark.parametrize("tokens", [0, 100])
def test_what_never_reasons_gets_no_tokens_for_it(model: str, tokens: int) -> None:
    with pytest.raises(ConfigError, match=r"--thinking is for .* only, not for \w+"):
        EvaluateSpec(**WORK, model=model, thinking=tokens)


def test_a_provider_without_sampling_draws_as_the_model_does() -> None:
    assert EvaluateSpec(**ANTHROPIC).sampling_temperature is None
    assert EvaluateSpec(**OPENAI).sampling_temperature == 0.0
    assert EvaluateSpec(**OPENAI, model_sampling=True).sampling_temperature is None


def test_several_samples_need_a_temperature_or_a_model_that_draws_by_itself() -> None:
    assert EvaluateSpec(**ANTHROPIC, samples=3).samples == 3
    assert EvaluateSpec(**OPENAI, samples=3, model_sampling=True).samples == 3
    with pytest.raises(ConfigError, match="set --temperature"):
        EvaluateSpec(**OPENAI, samples=3)


@pytest.mark.parametrize("given", [{"temperature": 0.7}, {"top_p": 0.9}, {"seed": 5}])
def test_sampling_is_either_named_or_left_to_the_model(given: dict[str, Any]) -> None:
    option = next(iter(given)).replace("_", "-")
    with pytest.raises(ConfigError, match=f"leave out --{option}, or --model-sampling"):
        EvaluateSpec(**OPENAI, model_sampling=True, **given)


@pytest.mark.parametrize("model", ["hf:m", "vllm:m", "embedded", "server:m@http://127.0.0.1:1/v1"])
@pytest.mark.parametrize("given", [{"batch": True}, {"max_cost": 1.0}, {"prices": "mine.toml"}])
def test_money_and_batches_are_for_hosted_models(model: str, given: dict[str, Any]) -> None:
    option = next(iter(given)).replace("_", "-")
    with pytest.raises(ConfigError, match=f"--{option} is for openai and anthropic only, not for "):
        EvaluateSpec(**WORK, model=model, **given)
