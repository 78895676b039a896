"""Find a LoRA adapter and check that it fits the model, before the engine starts (which may take minutes).

An engine matches adapter and model by the last part of each module's name, so it would silently apply the adapter of
another model to some layers or to none. So the adapter's shapes are checked against the model's.
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
        """Its rank, and the ranks of modules with another one."""
        return {int(self.config["r"]), *map(int, (self.config.get("rank_pattern") or {}).values())}

    @property
    def max_rank(self) -> int:
        """The smallest of `RANKS` that is not below its largest rank."""
        return next((limit for limit in RANKS if limit >= max(self.ranks)), RANKS[-1])

    def identity(self) -> dict[str, str]:
        """Return `lora` (its name) and `lora_sha256`, over weights and configuration (which holds the scaling)."""
        hashes = "".join(f"{name} {sha256_of(self.folder / name)}\n" for name in (CONFIG, WEIGHTS))
        return {"lora": self.name, "lora_sha256": hashlib.sha256(hashes.encode()).hexdigest()}


def find_adapter(given: str) -> Adapter:
    """Find the adapter in a folder, or in a repository of the Hub (downloaded unless it is in the cache).

    Raises:
        ConfigError: there is no adapter, it is not a LoRA, or its weights are not safetensors.
    """
    path = Path(given).expanduser()
    if path.is_dir():
        return read_adapter(path.resolve().name, path)
    if path.exists() or given.count("/") != 1 or given[0] in "./~":
        raise ConfigError(f"lora={given}: no such folder; name one that holds {CONFIG}, or OWNER/NAME on the Hub")
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
    """Read the adapter of a folder; see `find_adapter`."""
    where = f"lora={name}"
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{where}: contains no {CONFIG}, so it is not a PEFT adapter") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: {CONFIG} cannot be read: {error}") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        kind = config.get("peft_type") if isinstance(config, dict) else None
        raise ConfigError(f"{where}: its peft_type is {kind!r}; only LORA is supported")
    ranks = config.get("rank_pattern") or {}
    for rank in (config.get("r"), *(ranks.values() if isinstance(ranks, dict) else [ranks])):
        if type(rank) is not int or not 1 <= rank <= RANKS[-1]:
            raise ConfigError(f"{where}: its rank r is {rank!r}; it must be 1 to {RANKS[-1]}")
    if not (folder / WEIGHTS).is_file():
        raise ConfigError(f"{where}: contains no {WEIGHTS}; save it with safe_serialization=True (no pickle is read)")
    return Adapter(name, folder, config)


def parameter_shapes(config: Any) -> Shapes | None:
    """Return every parameter's shape as transformers builds the model; None where it cannot build it.

    Args:
        config: the model's configuration; multimodal and unknown models give None.
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
    """Raise ConfigError unless the model has every module of the adapter, with the same shape.

    Args:
        adapter: the adapter on disk.
        shapes: of the model's parameters; None leaves the check to the engine.
        where: the model as the user wrote it.
    """
    if shapes is None:
        return
    for module, shape in sorted(_adapter_shapes(adapter).items()):
        there = shapes.get(f"{module}.weight")
        if there == shape:
            continue
        have = f"the model's is {there}" if there else "the model has none"
        base = adapter.config.get("base_model_name_or_path")
        trained = f" ({base})" if base else ""
        raise ConfigError(
            f"lora={adapter.name}: does not fit {where}: its {module} is for a matrix of {shape}, {have}; name the "
            f"model that this adapter was trained on{trained}"
        )


def _check_rank(adapter: Adapter, module: str, rank: int) -> None:
    """Raise ConfigError for another rank than the configuration's: the scaling, which divides by it, would be wrong."""
    if rank not in adapter.ranks and not adapter.config.get("target_parameters"):  # experts' ranks are joined
        raise ConfigError(
            f"lora={adapter.name}: its {module} has rank {rank}, its {CONFIG} has r = {adapter.config['r']}; copy "
            "both files of one training again"
        )


def _adapter_shapes(adapter: Adapter) -> dict[str, tuple[int, int]]:
    """Return (outputs, inputs) of each matrix that the adapter changes, from the header of its weights."""
    from safetensors import SafetensorError, safe_open

    found: dict[str, list[int]] = {}
    try:
        with safe_open(adapter.folder / WEIGHTS, framework="numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118, which is no dict
                module, side, _ = name.removeprefix(_PREFIX).rpartition(".lora_")
                if not side or not name.endswith((".lora_A.weight", ".lora_B.weight")):
                    continue  # other tensors, such as embeddings: the engine checks them
                shape = tensors.get_slice(name).get_shape()
                down = name.endswith("A.weight")  # (rank, inputs); the other one is (outputs, rank)
                _check_rank(adapter, module, shape[0 if down else -1] if shape else 0)
                found.setdefault(module, [0, 0])[down] = shape[-1 if down else 0]
    except (SafetensorError, OSError) as error:
        raise ConfigError(f"lora={adapter.name}: {WEIGHTS} cannot be read: {error}; copy it again") from error
    if not found:
        raise ConfigError(f"lora={adapter.name}: {WEIGHTS} contains no LoRA matrices; name a PEFT adapter")
    return {module: (pair[0], pair[1]) for module, pair in found.items()}
