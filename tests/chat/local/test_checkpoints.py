"""Opening a checkpoint: quietly from a folder, and one line of advice for each way in which it fails."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from tiny_llama import write_tiny_llama

from h2htalk.chat.engines import open_chat
from h2htalk.chat.local.checkpoints import describe_checkpoint
from h2htalk.chat.protocol import Message, Request, Sampling
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.local
pytest.importorskip("torch", reason="hf: needs torch")
pytest.importorskip("transformers", reason="hf: needs transformers")


tiny = pytest.fixture(lambda tmp_path: write_tiny_llama(tmp_path / "tiny"), name="tiny")


@pytest.fixture
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing here may use the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("_offline")
def test_a_folder_is_read_without_the_network_and_without_a_word(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    chat = open_chat(f"hf:{tiny}")
    asked = (Message("user", "Good morning, how are you?"),)
    chat.complete([Request("a", asked, Sampling(max_tokens=5)), Request("b", asked, Sampling(0.7, 0.9, 5))])
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_offline")
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("", "hf:OWNER/NAME"),
        ("/no/such/folder", "not a folder with a config.json"),
        ("./no-such-folder", "not a folder with a config.json"),
        ("nobody/no-such-model", "not in the local Hugging Face cache: fetch it with --download"),
    ],
)
def test_a_model_that_is_not_there(name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        open_chat(f"hf:{name}")


# What happened to a file (None: it is gone) -> the one line of advice.
DAMAGED: dict[str, tuple[str, bytes | None, str]] = {
    # It says what ends an answer: without it the model would write on to its budget.
    "generation config": ("generation_config.json", b'{"eos_token_id": [0, ', "generation_config.json"),
    "tokenizer": ("tokenizer.json", None, "tokenizer.json is missing or damaged; check that"),
    "weights": ("model.safetensors", b"half", "check that the checkpoint is complete"),
    "no weights": ("model.safetensors", None, "contains no *.safetensors"),
    "own code": ("config.json", b'{"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}', "which h2htalk never"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_checkpoint_is_one_line_of_advice_and_its_code_is_never_run(name: str, tiny: Path) -> None:
    file, content, advice = DAMAGED[name]
    (tiny / "own.py").write_text("raise SystemExit('this code was run')")
    (tiny / file).unlink()
    if content is not None:
        (tiny / file).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^.*{re.escape(advice)}.*$"):
        open_chat(f"hf:{tiny}")
    if name != "weights":  # vllm: reads them itself
        with pytest.raises(ConfigError, match="vllm:"):
            describe_checkpoint("vllm", str(tiny))


def test_missing_weights_are_not_made_up(tiny: Path) -> None:
    """transformers fills a missing tensor with random numbers and only logs it."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(tiny / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, tiny / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"1 weights are missing.*layers\.1\.mlp\.up_proj"):
        open_chat(f"hf:{tiny}")


def test_an_edited_setting_is_another_model_in_the_signature(tiny: Path) -> None:
    found = [describe_checkpoint("hf", str(tiny)).identity()]
    for name in ("config.json", "generation_config.json", "tokenizer.json", "README.md"):  # answers ignore the last
        with (tiny / name).open("a") as file:
            file.write("\n")
        found.append(describe_checkpoint("hf", str(tiny)).identity())
    assert [len({one[key] for one in found}) for key in ("weights_sha256", "settings_sha256")] == [1, 4]
    assert found[-1] == found[-2]
