"""A model's parameters by name and shape, without its weights: what a checkpoint or an adapter is held against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.errors import ConfigError

Shapes = Mapping[str, tuple[int, ...]]

_LAYER = re.compile(r"\.\d+\.")


def outline(config: Any) -> Shapes | None:
    """Every parameter's shape as transformers builds the model; None where it cannot be said.

    Args:
        config: the model's configuration. Models of more than text and unknown ones have no outline.
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


def check_whole(folder: Path, shapes: Shapes, where: str) -> None:
    """Raise ConfigError for a weight that one layer lacks and another has, or that is missing outside the layers.

    vLLM joins some matrices (of gate and up projection, of query, key and value) and takes the joint one for
    loaded as soon as one of its parts is, and embeddings and head in any case: the missing part would be whatever
    was in memory. Some checkpoints name all their weights otherwise, and quantised ones some. So a name is missed
    in a layer only if it stands for another layer in the same files, and outside them only if another name from
    there does stand in the files, and none of the same module.
    """
    there = weight_names(folder, where)
    kinds = {_LAYER.sub(".*.", name) for name in there}
    modules = {name.rpartition(".")[0] for name in there}
    outside = {name for name in shapes if not _LAYER.search(name)}
    missing = [name for name in shapes if name not in there and _LAYER.sub(".*.", name) in kinds]
    if outside & there:
        missing += [name for name in outside if name.rpartition(".")[0] not in modules]
    if missing := sorted(missing):
        raise ConfigError(
            f"{where}: {len(missing)} weights are missing, such as {missing[0]}; check that the checkpoint is whole"
        )


def weight_names(folder: Path, where: str) -> set[str]:
    """The names of all tensors in a folder's safetensors. ConfigError: a file that cannot be read."""
    from safetensors import SafetensorError, safe_open

    names: set[str] = set()
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="numpy") as tensors:
                names.update(tensors.keys())
        except (SafetensorError, OSError) as error:
            raise ConfigError(f"{where}: {path.name} cannot be read: {error}; copy it again") from error
    return names
