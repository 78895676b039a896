"""A LoRA adapter for `vllm:`: find it, and check that it fits the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.chat.local.checkpoints import hash_files
from h2htalk.errors import ConfigError

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # the limits that vLLM can be started with


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter on disk."""

    name: str
    folder: Path
    rank: int

    def identity(self) -> dict[str, str]:
        """Return `lora` (its name) and `lora_sha256`, over weights and configuration (which holds the scaling)."""
        return {
            "lora": self.name,
            "lora_sha256": hash_files([self.folder / CONFIG, self.folder / WEIGHTS]),
        }


def find_adapter(location: str) -> Adapter:
    """Find the adapter in a folder, or in a repository of the Hub (downloaded unless it is in the cache).

    Raises ConfigError where there is no adapter, it is not a LoRA, or its weights are not safetensors.
    """
    from huggingface_hub import snapshot_download

    folder = Path(location).expanduser()
    name = location
    try:
        if folder.exists() or location.count("/") != 1 or location[0] in "./~":
            name = folder.resolve().name
        else:
            folder = Path(snapshot_download(location, allow_patterns=[CONFIG, WEIGHTS]))
        (folder / WEIGHTS).open("rb").close()
        config = json.loads((folder / CONFIG).read_bytes())
        kind = config["peft_type"]
        rank = config["r"]
        if kind != "LORA" or type(rank) is not int or not 1 <= rank <= RANKS[-1]:
            raise ValueError(f"a {kind} of rank {rank}, not a LORA of 1 to {RANKS[-1]}")
    except (OSError, ValueError, LookupError, TypeError) as error:  # the Hub's errors are OSErrors
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")
        advice = (
            f"name OWNER/NAME on the Hub, or a folder that holds {CONFIG} and {WEIGHTS} of a LoRA"
        )
        raise ConfigError(
            f"lora={name}: no adapter ({reason}); {advice} (no pickle is read)"
        ) from error
    return Adapter(name, folder.resolve(), rank)


def check_fits(adapter: Adapter, model_config: Any, where: str) -> None:
    """Raise ConfigError unless the model has every matrix of the adapter, with the same shape and rank.

    vLLM silently leaves out modules whose names do not match, and scales the others by the configuration's rank. Models
    that transformers cannot build from their configuration alone (multimodal, unknown) are left to vLLM.
    """
    import torch
    from safetensors import SafetensorError, safe_open
    from transformers import AutoModelForCausalLM

    if model_config.get_text_config() is not model_config:
        return
    try:
        with torch.device("meta"):  # shapes only: no memory, no weights
            model = AutoModelForCausalLM.from_config(model_config, trust_remote_code=False)
    except (ValueError, KeyError, ImportError, RuntimeError, AttributeError, TypeError):
        return
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    try:
        with safe_open(adapter.folder / WEIGHTS, framework="numpy") as tensors:
            matrices = {}
            for name in sorted(tensors.keys()):
                # vLLM checks other tensors, such as embeddings.
                if name.endswith((".lora_A.weight", ".lora_B.weight")):
                    matrices[name] = tuple(tensors.get_slice(name).get_shape())
    except (SafetensorError, OSError) as error:
        raise ConfigError(
            f"lora={adapter.name}: {WEIGHTS} cannot be read: {error}; copy it again"
        ) from error
    problems = [] if matrices else ["it holds no LoRA matrix"]
    for name, shape in matrices.items():
        module, _, side = name.removeprefix("base_model.model.").partition(".lora_")
        if ".experts" in module:  # vLLM checks joined matrices of experts
            continue
        outputs, inputs = (*shapes.get(f"{module}.weight", ()), 0, 0)[:2]
        fitting = (adapter.rank, inputs) if side == "A.weight" else (outputs, adapter.rank)
        if shape != fitting:
            expected = f"{fitting} fits" if outputs else "the model has none"
            matrix = name.removesuffix(".weight")
            problems.append(f"its {matrix} is a matrix of {shape}, where {expected}")
    if problems:
        advice = (
            "name the model that this adapter was trained on, and copy all files of one training"
        )
        raise ConfigError(f"lora={adapter.name}: does not fit {where}: {problems[0]}; {advice}")
