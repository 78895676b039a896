"""What cannot work is refused before the engine starts, or shows the end of its log: causes from the real engine."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vllm_runs import vllm_processes, wait_until_gone, write_adapter, write_tiny

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.engines import open_chat
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A start that failed leaves no process behind."""
    before = vllm_processes(os.getpid())
    yield
    wait_until_gone(vllm_processes(os.getpid()) - before)


def failing(model: object, **engine: object) -> str:
    """The message with which opening fails: one line, but for the log of an engine that could not start."""
    options = ChatOptions(engine_options={key: str(value) for key, value in engine.items()})
    with pytest.raises(ConfigError) as caught:
        open_chat(f"vllm:{model}", options)
    message = str(caught.value)
    first = message.partition("\n")[0]
    assert ("; vLLM's log is " in first) == ("\n" in message)
    return message


@pytest.mark.parametrize("name", ["", "/no/such/folder", "./no-such-folder"])
def test_no_such_folder(name: str) -> None:
    message = failing(name)
    assert "vllm:OWNER/NAME" in message or "not a folder with a config.json" in message


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


# Engine options or configuration -> what stands in the message: vLLM's own words, and the end of its log, if any.
REFUSED: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "architecture": ({"architectures": ["OwnForCausalLM"]}, {}, "OwnForCausalLM"),
    "quantisation of another checkpoint": ({}, {"quantization": "awq"}, "awq"),
    "heads": ({}, {"tensor_parallel_size": 3}, "divisible by tensor parallel size"),
    "length": ({}, {"max_model_len": 9999}, "max_model_len (9999)"),
    "memory": ({}, {"kv_cache_gb": 50000}, "GiB"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_vllm_refuses_shows_its_words_and_its_log(name: str, tiny: Path, tmp_path: Path) -> None:
    config, engine, words = REFUSED[name]
    message = failing(changed(tiny, tmp_path / "changed", **config), **engine)
    assert ": vLLM cannot start: " in message
    assert words in message
    if log := message.partition("; vLLM's log is ")[2].partition(" and ends:")[0]:
        assert Path(log).is_file()
        shutil.rmtree(Path(log).parent)


def test_a_reasoning_parser_that_vllm_does_not_have(tiny: Path) -> None:
    message = failing(tiny, reasoning_parser="qwen9")
    assert "unknown reasoning_parser 'qwen9'; choose from" in message
    assert "deepseek_r1" in message


def test_a_reasoning_parser_of_another_model(tiny: Path) -> None:
    message = failing(tiny, reasoning_parser="deepseek_r1")
    assert "does not suit this model" in message


def test_a_cause_in_another_process_stands_in_the_end_of_the_log(smollm2: Path) -> None:
    assert "KV cache is needed" in failing(smollm2, kv_cache_gb=0.1)


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
