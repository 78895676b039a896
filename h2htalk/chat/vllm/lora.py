"""LoRA adapters: found, and held against the model, before an engine is started for minutes.

An engine matches an adapter to a model by the last word of each module's name: an adapter of another model's
would be laid over some layers, or none, without a word. So its shapes are checked against the model's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # the limits that vLLM can be started with
_PREFIX = "base_model.model."

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter on disk. `config`: its adapter_config.json."""

    name: str
    folder: Path
    config: Mapping[str, Any]

    @property
    def ranks(self) -> set[int]:
        """Its rank, and those of modules that have another."""
        return {int(self.config["r"]), *map(int, (self.config.get("rank_pattern") or {}).values())}

    @property
    def max_rank(self) -> int:
        """The smallest of `RANKS` that its largest rank fits."""
        return next((limit for limit in RANKS if limit >= max(self.ranks)), RANKS[-1])

    def identity(self) -> dict[str, str]:
        """`lora` (its name) and `lora_sha256`, of weights and configuration, whose scaling counts as much."""
        hashes = "".join(f"{name} {sha256_of(self.folder / name)}\n" for name in (CONFIG, WEIGHTS))
        return {"lora": self.name, "lora_sha256": hashlib.sha256(hashes.encode()).hexdigest()}


def find_adapter(given: str) -> Adapter:
    """The adapter in a folder, or in a repository of the Hub (downloaded unless it is in the cache).

    Raises:
        ConfigError: there is none, it is not a LoRA, or its weights are not safetensors.
    """
    path = Path(given).expanduser()
    if path.is_dir():
        return read_adapter(path.resolve().name, path)
    if path.exists() or given.count("/") != 1 or given[0] in "./~":
        raise ConfigError(
            f"lora={given}: no such folder; name one that holds {CONFIG}, or OWNER/NAME on the Hub"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        folder = snapshot_download(given, allow_patterns=[CONFIG, WEIGHTS])
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise ConfigError(
            f"lora={given}: cannot be loaded: {reason}; check the connection, the name and your access on the Hub"
        ) from error
    return read_adapter(given, Path(folder))


def read_adapter(name: str, folder: Path) -> Adapter:
    """The adapter of a folder; see `find_adapter`."""
    where = f"lora={name}"
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{where}: no {CONFIG} in it, so it is no adapter of PEFT's") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: {CONFIG} cannot be read: {error}") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        kind = config.get("peft_type") if isinstance(config, dict) else None
        raise ConfigError(f"{where}: its peft_type is {kind!r}; only LORA can be laid over a model")
    ranks = config.get("rank_pattern") or {}
    for rank in (config.get("r"), *(ranks.values() if isinstance(ranks, dict) else [ranks])):
        if type(rank) is not int or not 1 <= rank <= RANKS[-1]:
            raise ConfigError(f"{where}: its rank r is {rank!r}; it must be 1 to {RANKS[-1]}")
    if not (folder / WEIGHTS).is_file():
        raise ConfigError(
            f"{where}: no {WEIGHTS} in it; save it with safe_serialization=True (no pickle is read)"
        )
    return Adapter(name, folder, config)


def parameter_shapes(config: Any) -> Shapes | None:
    """Every parameter's shape as transformers builds the model; None where it cannot be said.

    Args:
        config: the model's configuration; models of more than text and unknown ones are left to the engine.
    """
    import torch
    from transformers import AutoModelForCausalLM

    if config.get_text_config() is not config:
        return None
    try:
        with torch.device("meta"):  # shapes only: no memory, no weights
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (ValueError, KeyError, ImportError, RuntimeError, AttributeError, TypeError):
        return None
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def check_fits(adapter: Adapter, shapes: Shapes | None, where: str) -> None:
    """Raise ConfigError unless every module of the adapter is the model's, with its shape.

    Args:
        adapter: as found.
        shapes: of the model's parameters; None, where they cannot be said, leaves all to the engine.
        where: the model as the user wrote it.
    """
    if shapes is None:
        return
    for module, shape in sorted(_adapter_shapes(adapter).items()):
        there = shapes.get(f"{module}.weight")
        if there == shape:
            continue
        have = f"it is {there} there" if there else "there is none"
        base = adapter.config.get("base_model_name_or_path")
        trained = f", which was trained on {base}" if base else ""
        raise ConfigError(
            f"lora={adapter.name}: does not fit {where}: its {module} is for a matrix of {shape}, {have}; name the "
            f"model of this adapter{trained}"
        )


def _check_rank(adapter: Adapter, module: str, rank: int) -> None:
    """Raise ConfigError for another rank than the configuration's: the scaling, which divides by it, would be off."""
    if rank not in adapter.ranks and not adapter.config.get("target_parameters"):  # experts' ranks are joined
        raise ConfigError(
            f"lora={adapter.name}: its {module} has rank {rank}, its {CONFIG} says r = {adapter.config['r']}; copy "
            "both files of one training again"
        )


def _adapter_shapes(adapter: Adapter) -> dict[str, tuple[int, int]]:
    """(outputs, inputs) of each matrix that the adapter changes, from the header of its weights."""
    from safetensors import SafetensorError, safe_open

    found: dict[str, list[int]] = {}
    try:
        with safe_open(adapter.folder / WEIGHTS, framework="numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118, which is no dict
                module, side, _ = name.removeprefix(_PREFIX).rpartition(".lora_")
                if not side or not name.endswith((".lora_A.weight", ".lora_B.weight")):
                    continue  # embeddings and the like: the engine says what it thinks of them
                shape = tensors.get_slice(name).get_shape()
                down = name.endswith("A.weight")  # (rank, inputs); the other one is (outputs, rank)
                _check_rank(adapter, module, shape[0 if down else -1] if shape else 0)
                found.setdefault(module, [0, 0])[down] = shape[-1 if down else 0]
    except (SafetensorError, OSError) as error:
        raise ConfigError(f"lora={adapter.name}: {WEIGHTS} cannot be read: {error}; copy it again") from error
    if not found:
        raise ConfigError(
            f"lora={adapter.name}: {WEIGHTS} holds no LoRA matrices; is it an adapter of PEFT's?"
        )
    return {module: (pair[0], pair[1]) for module, pair in found.items()}
