"""Find a LoRA adapter and check that it fits the model, before the engine starts (which may take minutes).

vLLM matches adapter and model by the names of modules and silently leaves out what does not match, so it would apply
the adapter of another model to some layers or to none. What else can be wrong with an adapter vLLM itself says.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # the limits that vLLM can be started with


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter on disk. `ranks`: its rank, and those of modules with another one."""

    name: str
    folder: Path
    ranks: frozenset[int]

    @property
    def max_rank(self) -> int:
        """The smallest of `RANKS` that is not below its largest rank."""
        return next(limit for limit in RANKS if limit >= max(self.ranks))

    def identity(self) -> dict[str, str]:
        """Return `lora` (its name) and `lora_sha256`, over weights and configuration (which holds the scaling)."""
        hashes = "".join(f"{name} {sha256_of(self.folder / name)}\n" for name in (CONFIG, WEIGHTS))
        return {"lora": self.name, "lora_sha256": hashlib.sha256(hashes.encode()).hexdigest()}


def find_adapter(given: str) -> Adapter:
    """Find the adapter in a folder, or in a repository of the Hub (downloaded unless it is in the cache).

    Raises:
        ConfigError: there is no adapter, it is not a LoRA, or its weights are not safetensors.
    """
    from huggingface_hub import snapshot_download

    folder, name = Path(given).expanduser(), given
    try:
        if folder.exists() or given.count("/") != 1 or given[0] in "./~":
            name = folder.resolve().name
        else:
            folder = Path(snapshot_download(given, allow_patterns=[CONFIG, WEIGHTS]))
        (folder / WEIGHTS).open("rb").close()
        config = json.loads((folder / CONFIG).read_bytes())
        ranks = frozenset((config["r"], *(config.get("rank_pattern") or {}).values()))
        if config["peft_type"] != "LORA" or any(type(r) is not int or not 1 <= r <= RANKS[-1] for r in ranks):
            raise ValueError(
                f"a {config['peft_type']} of rank {sorted(ranks, key=str)}, not a LORA of 1 to {RANKS[-1]}"
            )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:  # the Hub's errors are OSErrors
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")
        raise ConfigError(
            f"lora={name}: no adapter ({reason}); name OWNER/NAME on the Hub, or a folder that holds {CONFIG} and "
            f"{WEIGHTS} of a LoRA (no pickle is read)"
        ) from error
    return Adapter(name, folder.resolve(), ranks)


def check_fits(adapter: Adapter, model_config: Any, where: str) -> None:
    """Raise ConfigError unless the model has every matrix of the adapter, with the same shape and rank.

    Models that transformers cannot build from their configuration alone (multimodal, unknown) are left to vLLM.
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
            matrices = {
                name: tuple(tensors.get_slice(name).get_shape())
                for name in sorted(tensors.keys())
                if name.endswith((".lora_A.weight", ".lora_B.weight"))  # vLLM checks others, such as embeddings
            }
    except (SafetensorError, OSError) as error:
        raise ConfigError(f"lora={adapter.name}: {WEIGHTS} cannot be read: {error}; copy it again") from error
    problem = "" if matrices else "holds no LoRA matrices"
    for name, shape in matrices.items():
        module, _, side = name.removeprefix("base_model.model.").partition(".lora_")
        outputs, inputs = shapes.get(f"{module}.weight", (0, 0))
        wanted = [(rank, inputs) if side == "A.weight" else (outputs, rank) for rank in sorted(adapter.ranks)]
        # vLLM scales by the configuration's rank, so another rank would be too strong or too weak.
        if shape not in wanted and not problem:
            problem = f"its {name.removesuffix('.weight')} is a matrix of {shape}, where "
            problem += f"{' or '.join(map(str, wanted))} fits" if outputs else "the model has none"
    if problem:
        raise ConfigError(
            f"lora={adapter.name}: does not fit {where}: {problem}; name the model that this adapter was "
            "trained on, and copy all files of one training"
        )
