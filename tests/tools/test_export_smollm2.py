"""The exporter: the packaged GGUF as a checkpoint that answers as the GGUF does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.errors import ConfigError
from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged

pytestmark = [pytest.mark.local, pytest.mark.slow]
torch = pytest.importorskip("torch", reason="the exporter needs torch")

_PATH = Path(__file__).parents[2] / "tools" / "export_smollm2.py"
_SPEC = importlib.util.spec_from_file_location("export_smollm2", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
tool = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tool)

MESSAGES = (Message("user", "What is the capital of France? Answer in one word."),)


@pytest.fixture(scope="module")
def from_gguf() -> Any:
    return tool.load_gguf(find_packaged(SMOLLM2_GGUF, "this test"))


@pytest.fixture(scope="module")
def folder(from_gguf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("export") / "smollm2"
    tool.write_checkpoint(*from_gguf, folder)
    return folder


def test_the_checkpoint_holds_the_values_of_the_gguf(from_gguf: Any, folder: Path) -> None:
    from safetensors.torch import load_file

    model, _ = from_gguf
    written, own = load_file(folder / "model.safetensors"), model.state_dict()
    assert own.keys() - written.keys() == {"lm_head.weight"}  # tied to the embeddings
    assert all(torch.equal(written[name], own[name]) for name in written)


def test_the_checkpoint_answers_as_the_gguf_does(from_gguf: Any, folder: Path) -> None:
    model, tokenizer = from_gguf
    chat = open_chat(f"hf:{folder}")
    (reply,) = chat.complete([Request("x", MESSAGES, Sampling(max_tokens=12))])
    assert isinstance(reply, Reply)

    turns = [{"role": m.role, "content": m.content} for m in MESSAGES]
    inputs = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")
    with torch.inference_mode():
        output = model.generate(**inputs, max_new_tokens=12, do_sample=False, pad_token_id=2)
    answer = output[0, inputs["input_ids"].shape[1] :]
    assert reply.text == tokenizer.decode(answer, skip_special_tokens=True)
    assert reply.usage.output_tokens == len(answer)
    assert reply.finish_reason == "stop"
    assert "<|" not in reply.text
    assert chat.subject["model"] == "smollm2"


def test_the_template_is_the_model_s_own(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert prompt == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer("<|im_start|>").input_ids == [1]


def test_answers_end_with_the_end_of_turn(folder: Path) -> None:
    generation = json.loads((folder / "generation_config.json").read_text())
    tokens = json.loads((folder / "tokenizer_config.json").read_text())
    assert (generation["eos_token_id"], tokens["eos_token"]) == (2, "<|im_end|>")
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not an empty folder"):
        tool.export(tmp_path)
