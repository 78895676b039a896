"""What the tests of `vllm:` share: tiny checkpoints and the command line."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from support.tiny_llama import SYSTEM_TEMPLATE, TINY, VOCABULARY, write_tiny_llama


def write_tiny(
    folder: Path, template: str | None = SYSTEM_TEMPLATE, vocab_size: int = VOCABULARY
) -> Path:
    """A tiny Llama whose heads are of a width that vLLM's CPU kernels know."""
    from transformers import LlamaConfig

    changes = {
        "vocab_size": vocab_size,
        "hidden_size": 128,
        "intermediate_size": 256,
        "initializer_range": 0.2,
    }
    config = LlamaConfig(**(TINY | changes), max_position_embeddings=512)
    return write_tiny_llama(folder, template, config=config)


def write_adapter(base: Path, folder: Path, rank: int = 4) -> tuple[Path, Path]:
    """A LoRA adapter on every query and down projection, and the model with it added to the weights."""
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(5)
    tensors: dict[str, torch.Tensor] = {}
    for name in [n for n in weights if n.endswith(("q_proj.weight", "down_proj.weight"))]:
        outputs, inputs = weights[name].shape
        down = torch.randn(rank, inputs, generator=generator) * 0.1
        up = torch.randn(outputs, rank, generator=generator) * 0.1
        module = f"base_model.model.{name.removesuffix('.weight')}"
        tensors |= {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}
        weights[name] = weights[name] + up @ down * (8 / rank)
    adapter = folder / "adapter"
    merged = folder / "merged"
    adapter.mkdir()
    save_file(tensors, adapter / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": 8,
        "target_modules": ["q_proj", "down_proj"],
    }
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    shutil.copytree(base, merged)
    save_file(weights, merged / "model.safetensors", metadata={"format": "pt"})
    return adapter, merged


def evaluate_command(model: str, out: Path, *options: object) -> list[str]:
    """`h2htalk evaluate` as a user types it, without what these tests do not look at."""
    fixed = [
        "--split",
        "mini@1",
        "--language",
        "en",
        "--embedder",
        "none",
        "--no-baselines",
        "--out",
        str(out),
    ]
    return [sys.executable, "-m", "h2htalk", "evaluate", model, *fixed, *map(str, options)]
