"""What cannot work is one line that says what to change: each cause from the real engine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vllm_runs import vllm_processes, wait_until_gone, write_adapter, write_tiny

from h2htalk.chat.base import ChatOptions, open_chat
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A start that failed leaves no process behind."""
    before = vllm_processes(os.getpid())
    yield
    wait_until_gone(vllm_processes(os.getpid()) - before)


def failing(model: object, **engine: object) -> str:
    """The one line with which opening fails."""
    options = ChatOptions(engine={key: str(value) for key, value in engine.items()})
    with pytest.raises(ConfigError) as caught:
        open_chat(f"vllm:{model}", options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    return message


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./no-such-folder"])
def test_no_such_folder(name: str) -> None:
    message = failing(name)
    assert "vllm:OWNER/NAME" in message or "no folder with a config.json" in message


def test_no_such_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = failing("nobody/no-such-model")
    assert message.startswith("vllm:nobody/no-such-model: cannot be loaded")
    assert "name a folder" in message


def test_a_folder_has_no_revision(tiny: Path) -> None:
    assert "leave out the engine option revision" in failing(tiny, revision="main")


def test_no_chat_template(tmp_path: Path) -> None:
    message = failing(write_tiny(tmp_path / "base", None))
    assert "no chat template" in message
    assert "choose its instruct variant" in message


def test_no_safetensors(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "no pickle" in failing(folder)


def changed(tiny: Path, folder: Path, **values: object) -> Path:
    """The checkpoint with another configuration."""
    shutil.copytree(tiny, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))
    return folder


def test_an_architecture_that_vllm_does_not_know(tiny: Path, tmp_path: Path) -> None:
    message = failing(changed(tiny, tmp_path / "own", architectures=["OwnForCausalLM"]))
    assert "cannot run its architecture" in message
    assert "OwnForCausalLM" in message


def test_a_quantisation_that_this_device_does_not_run(tiny: Path) -> None:
    message = failing(tiny, quantization="fp8")
    assert "this quantisation does not run here; take another checkpoint" in message


def test_a_quantisation_that_the_checkpoint_does_not_have(tiny: Path) -> None:
    assert "the checkpoint is not quantised with awq: leave quantization out" in failing(
        tiny, quantization="awq"
    )
    assert "choose one, or leave quantization out" in failing(tiny, quantization="nonsense")


def test_parts_without_cores_of_their_own(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_OMP_THREADS_BIND", raising=False)
    message = failing(tiny, tensor_parallel_size=4)
    assert "each of the 4 parts" in message
    assert "VLLM_CPU_OMP_THREADS_BIND" in message


def test_heads_that_cannot_be_shared(tiny: Path) -> None:
    assert "choose another tensor_parallel_size" in failing(tiny, tensor_parallel_size=3)


def test_a_length_that_the_model_was_not_made_for(tiny: Path) -> None:
    message = failing(tiny, max_model_len=9999)
    assert "max_model_len 9999 is more than the 512 tokens" in message


def test_a_reasoning_parser_that_vllm_does_not_have(tiny: Path) -> None:
    message = failing(tiny, reasoning_parser="qwen9")
    assert "vLLM has none such; choose from" in message
    assert "deepseek_r1" in message


def test_a_reasoning_parser_of_another_model(tiny: Path) -> None:
    message = failing(tiny, reasoning_parser="deepseek_r1")
    assert "does not suit this model" in message


def test_too_little_memory_for_one_request_names_the_numbers(smollm2: Path) -> None:
    """The cause stands in the log of vLLM's engine process alone."""
    message = failing(smollm2, kv_cache_gb=0.1)
    assert "one request of 8192 tokens (max_model_len)" in message
    assert "set max_model_len to " in message
    assert "kv_cache_gb" in message


def test_more_cache_than_the_machine_has(tiny: Path) -> None:
    message = failing(tiny, kv_cache_gb=50000)
    assert "lower kv_cache_gb" in message


def test_damaged_weights(tiny: Path, tmp_path: Path) -> None:
    """vLLM by itself would take what happens to be in memory for the missing part of a joint matrix."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "damaged"
    shutil.copytree(tiny, folder)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    message = failing(folder)
    assert "1 weights are missing, such as model.layers.1.mlp.up_proj.weight" in message


# Adapter -> what is wrong with it -> what the line says. The engine is not even started.
ADAPTERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no configuration": (lambda f: (f / "adapter_config.json").unlink(), "no adapter_config.json"),
    "pickled": (
        lambda f: (f / "adapter_model.safetensors").rename(f / "adapter_model.bin"),
        "no adapter_model.safetensors",
    ),
    "damaged": (lambda f: (f / "adapter_model.safetensors").write_bytes(b"no"), "cannot be read"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_that_is_none(name: str, tiny: Path, tmp_path: Path) -> None:
    adapter, _ = write_adapter(tiny, tmp_path)
    ADAPTERS[name][0](adapter)
    assert ADAPTERS[name][1] in failing(tiny, lora=adapter)


def test_an_adapter_of_another_model_is_not_laid_over_some_layers(tiny: Path, tmp_path: Path) -> None:
    deeper = write_tiny(tmp_path / "deeper", num_hidden_layers=3)
    adapter, _ = write_adapter(deeper, tmp_path)
    message = failing(tiny, lora=adapter)
    assert "does not fit" in message
    assert "model.layers.2." in message


def test_an_adapter_with_parts_that_vllm_has_not(tiny: Path, tmp_path: Path) -> None:
    adapter, _ = write_adapter(tiny, tmp_path)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "use_dora": True}))
    assert "DoRA" in failing(tiny, lora=adapter)
