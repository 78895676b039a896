"""The exporter: the packaged GGUF as a checkpoint that answers as the GGUF does."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
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
