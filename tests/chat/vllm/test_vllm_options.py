"""Engine options of `vllm:`, and what is said before vLLM is ever started."""

from __future__ import annotations

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.vllm.engine import VLLMOptions
from h2htalk.errors import ConfigError, MissingExtraError


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tensor_paralel_size", "8", "no such field; did you mean 'tensor_parallel_size'? choose from "),
        ("trust_remote_code", "true", "trust_remote_code: no such field"),
        ("tensor_parallel_size", "0", "tensor_parallel_size: must be 1 or more"),
        ("gpu_memory_utilization", "nan", "gpu_memory_utilization: must be 1 or less, not 'nan'"),
        ("lora", " ", "at least 1 character"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_choices(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_chat("vllm:some/model", ChatOptions(engine_options={key: value}))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_signature_names_what_changes_answers_and_no_sizes() -> None:
    sizes = {"tensor_parallel_size": "8", "data_parallel_size": "2", "kv_cache_gb": "4", "max_num_seqs": "512"}
    changing = {"quantization": "fp8", "kv_cache_dtype": "fp8", "reasoning_parser": "qwen3", "tokenizer": "a/b"}
    assert VLLMOptions.parse(sizes | {"enforce_eager": "true", "kv_cache_dtype": "auto"}).subject() == {}
    assert VLLMOptions.parse(sizes | changing).subject() == changing
    assert VLLMOptions.parse({"batch_invariant": "yes"}).subject() == {"batch_invariant": "true"}


def test_without_vllm_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.chat.vllm.engine.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'h2htalk\[vllm\]' in an environment of its own"):
        open_chat("vllm:some/model")


@pytest.mark.parametrize("model", ["embedded", "hf:some/model", "server:m@http://127.0.0.1:1/v1"])
def test_other_engines_take_no_options(model: str) -> None:
    with pytest.raises(ConfigError, match=r"has no engine options \(dtype\); vllm has"):
        open_chat(model, ChatOptions(engine_options={"dtype": "float32"}))
