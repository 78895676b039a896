"""Opening a checkpoint: quietly from a folder, and one line of advice for each way in which it fails."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_llama import write_tiny_llama

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.local.checkpoints import describe_checkpoint, find_source
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.errors import ConfigError, MissingExtraError

pytestmark = pytest.mark.local
pytest.importorskip("torch", reason="hf: needs torch")
pytest.importorskip("transformers", reason="hf: needs transformers")


def refuse(*_: Any) -> None:
    raise AssertionError("nothing here may use the network")


def test_a_folder_is_read_without_the_network_and_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    capfd.readouterr()

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    chat = open_chat(f"hf:{folder}")
    asked = (Message("user", "Good morning, how are you?"),)
    chat.complete([Request("a", asked, Sampling(max_tokens=5)), Request("b", asked, Sampling(0.7, 0.9, 5))])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("", "hf:OWNER/NAME"),
        ("/no/such/folder", "not a folder with a config.json"),
        ("./no-such-folder", "not a folder with a config.json"),
        ("nobody/no-such-model", "not in the local Hugging Face cache: fetch it with --download"),
    ],
)
def test_a_model_that_is_not_there(name: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(ConfigError, match=advice) as caught:
        open_chat(f"hf:{name}")
    assert "\n" not in str(caught.value)


def test_a_repository_is_fetched_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"cannot be loaded.*name a folder"):
        open_chat("hf:nobody/no-such-model", ChatOptions(download=True))


@pytest.mark.parametrize("opening", ["hf", "vllm"])
def test_a_damaged_generation_config_is_not_passed_over(tmp_path: Path, opening: str) -> None:
    """It says what ends an answer: without it the model would write on to its budget."""
    folder = write_tiny_llama(tmp_path / "tiny")
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, ')
    with pytest.raises(ConfigError, match=r"generation_config\.json.*check that the checkpoint is complete"):
        _ = open_chat(f"hf:{folder}") if opening == "hf" else describe_checkpoint(find_source("vllm", str(folder)))


def test_without_its_tokenizer_a_checkpoint_is_not_whole(tmp_path: Path) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.json is missing or damaged; check"):
        describe_checkpoint(find_source("vllm", str(folder)))


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_the_extra_the_error_says_what_to_type(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'h2htalk\[local\]'"):
        open_chat("hf:some/model")


def test_damaged_checkpoints_are_one_line_errors(tmp_path: Path) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(ConfigError, match=r"cannot be loaded.*checkpoint is complete") as caught:
        open_chat(f"hf:{folder}")
    assert "\n" not in str(caught.value)
    weights.unlink()
    with pytest.raises(ConfigError, match=r"contains no \*\.safetensors"):
        open_chat(f"hf:{folder}")


def test_missing_weights_are_not_made_up(tmp_path: Path) -> None:
    """transformers fills a missing tensor with random numbers and only logs it."""
    from safetensors.torch import load_file, save_file

    weights = write_tiny_llama(tmp_path / "tiny") / "model.safetensors"
    tensors = load_file(weights)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"1 weights are missing.*layers\.1\.mlp\.up_proj"):
        open_chat(f"hf:{weights.parent}")


def test_code_of_a_checkpoint_is_never_run(tmp_path: Path) -> None:

    folder = write_tiny_llama(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": dict.fromkeys(("AutoConfig", "AutoModelForCausalLM"), "own.Own"),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(ConfigError, match="which h2htalk never runs"):
        open_chat(f"hf:{folder}")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json"])
def test_an_edited_setting_is_another_model_in_the_signature(tmp_path: Path, name: str) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    before = describe_checkpoint(find_source("hf", str(folder))).identity()
    (folder / name).write_text((folder / name).read_text() + "\n")
    (folder / "README.md").write_text("Says nothing that an answer depends on.")
    after = describe_checkpoint(find_source("hf", str(folder))).identity()
    assert after["weights_sha256"] == before["weights_sha256"]
    assert after["settings_sha256"] != before["settings_sha256"]
