"""A checkpoint is held against the model's own parameters: what is missing is not made up by the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_llama import VOCABULARY, write_tiny_llama

from h2htalk.chat.outlines import check_whole, outline
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.local
pytest.importorskip("torch", reason="reads checkpoints")
transformers = pytest.importorskip("transformers", reason="reads checkpoints")


def change(folder: Path, **moves: str | None) -> None:
    """Rename tensors of the checkpoint, or take them out."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    for old, new in moves.items():
        for name in [n for n in tensors if old in n]:
            tensor = tensors.pop(name)
            if new is not None:
                tensors[name.replace(old, new)] = tensor
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def check(folder: Path) -> None:
    shapes = outline(transformers.AutoConfig.from_pretrained(folder))
    assert shapes is not None
    check_whole(folder, shapes, "vllm:tiny")


def test_a_whole_checkpoint_is_fine(tmp_path: Path) -> None:
    check(write_tiny_llama(tmp_path / "tiny"))


def test_a_weight_that_one_layer_lacks_is_missed(tmp_path: Path) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    change(folder, **{"layers.1.mlp.up_proj": None})
    with pytest.raises(ConfigError, match=r"1 weights are missing, such as model\.layers\.1\.mlp\.up_proj"):
        check(folder)


@pytest.mark.parametrize("name", ["model.embed_tokens", "lm_head", "model.norm"])
def test_a_weight_outside_the_layers_is_missed(name: str, tmp_path: Path) -> None:
    """vLLM would answer with embeddings or a head of zeros."""
    folder = write_tiny_llama(tmp_path / "tiny")
    change(folder, **{name: None})
    with pytest.raises(ConfigError, match=rf"1 weights are missing, such as {name}\.weight"):
        check(folder)


def test_a_quantised_head_and_tied_embeddings_are_not_missed(tmp_path: Path) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    change(folder, **{"lm_head.weight": "lm_head.weight_packed"})
    check(folder)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        tie_word_embeddings=True,
    )
    check(write_tiny_llama(tmp_path / "tied", config=config))


def test_weights_that_are_named_otherwise_in_every_layer_are_the_engine_s_business(tmp_path: Path) -> None:
    folder = write_tiny_llama(tmp_path / "tiny")
    change(folder, up_proj="up_proj_packed")
    check(folder)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(ConfigError, match=r"model\.safetensors cannot be read"):
        check_whole(tmp_path, {}, "vllm:tiny")
