"""Start vLLM: build its arguments from our options, and report the end of its log where it cannot start."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from h2htalk.chat.local.checkpoints import Description
from h2htalk.chat.vllm.engine_options import VLLMOptions
from h2htalk.chat.vllm.lora import Adapter
from h2htalk.chat.vllm.processes import VLLMProcesses, interruptible
from h2htalk.errors import ConfigError, MissingExtraError

INSTALL_VLLM = "pip install 'h2htalk[vllm]' in an environment of its own (a CPU build: docs/tutorials/h800.md)"
CPU_CACHE_GB = 2.0
_CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
_GIB = 2**30


def require_vllm() -> None:
    """Raise MissingExtraError where vLLM is not installed, without importing it, which takes seconds."""
    if find_spec("vllm") is None:
        raise MissingExtraError("vllm:", INSTALL_VLLM)


def on_cpu() -> bool:
    """Whether this is vLLM's CPU build. Imports vLLM, which prints: call it inside `VLLMProcesses.quiet`."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def engine_arguments(
    options: VLLMOptions, description: Description, adapter: Adapter | None, cpu: bool
) -> dict[str, Any]:
    """Build the arguments of vLLM's `AsyncEngineArgs`; the others keep vLLM's defaults."""
    source = description.source
    eager = options.enforce_eager
    given: dict[str, Any] = {
        "model": source.location,
        "revision": description.commit,
        "tokenizer": options.tokenizer,
        "dtype": _dtype(options, description, cpu),
        "kv_cache_memory_bytes": _cache_bytes(options, cpu),
        "enforce_eager": cpu if eager is None else eager,
    }
    for key in (
        "tensor_parallel_size",
        "data_parallel_size",
        "pipeline_parallel_size",
        "max_model_len",
        "gpu_memory_utilization",
        "max_num_seqs",
        "max_num_batched_tokens",
        "quantization",
        "kv_cache_dtype",
        "enable_prefix_caching",
        "reasoning_parser",
    ):
        given[key] = getattr(options, key)
    if adapter is not None:
        given |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": adapter.max_rank}
    fixed = {
        "load_format": "safetensors",  # otherwise vLLM reads pickled weights where there are no others
        "trust_remote_code": False,
        "generation_config": "vllm",
        "disable_log_stats": True,
        "seed": 0,
    }
    return {key: value for key, value in given.items() if value is not None} | fixed


def check_adapter(adapter: Adapter) -> None:
    """Raise ConfigError for an adapter with parts that vLLM does not support (DoRA, trained embeddings)."""
    from vllm.config.lora import LoRAConfig
    from vllm.lora.peft_helper import PEFTHelper

    try:
        helper = PEFTHelper.from_dict(dict(adapter.config))
        helper.validate_legal(LoRAConfig(max_lora_rank=adapter.max_rank))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"lora={adapter.name}: {' '.join(str(error).split())[:300]}") from error


def check_copies(options: VLLMOptions, cores: int) -> None:
    """Raise ConfigError for more copies of the model than cores; vLLM itself would start all of them."""
    if options.data_parallel_size > cores:
        raise ConfigError(
            f"data_parallel_size is {options.data_parallel_size}: this machine has {cores} cores, and each copy of the "
            "model needs at least one; lower it"
        )


def start_engine(
    options: VLLMOptions, description: Description, adapter: Adapter | None, processes: VLLMProcesses
) -> Any:
    """Start vLLM's `AsyncLLM`.

    Raises:
        ConfigError: vLLM cannot run this model with these options on this machine.
    """
    if options.batch_invariant:
        os.environ["VLLM_BATCH_INVARIANT"] = "1"
    processes.announce()
    with interruptible(), processes.quiet(), processes.own_folder():
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        cpu = on_cpu()
        if cpu:
            check_copies(options, os.cpu_count() or 1)

        def start() -> Any:
            arguments = AsyncEngineArgs(**engine_arguments(options, description, adapter, cpu))
            config = arguments.create_engine_config()
            return AsyncLLM.from_vllm_config(config, disable_log_stats=True)

        engine = explained(start, description.source.where, processes)
    processes.ready()
    return engine


def explained(act: Callable[[], Any], where: str, processes: VLLMProcesses) -> Any:
    """Call `act`; any exception becomes a ConfigError with the end of vLLM's log."""
    try:
        return act()
    # vLLM and its libraries raise any type: the user sees its text and the log, which keeps the traceback.
    except Exception as error:
        log = processes.log_end()
        processes.note_failure(error)
        raise ConfigError(
            f"{where}: vLLM cannot start: {' '.join(str(error).split()) or type(error).__name__}{log}"
        ) from error


def engine_versions() -> str:
    """Name the libraries and their versions: `vllm 0.32.0, torch 2.13.0, transformers 5.19.0`."""
    import torch
    import transformers
    import vllm

    return f"vllm {vllm.__version__}, torch {torch.__version__}, transformers {transformers.__version__}"


def _dtype(options: VLLMOptions, description: Description, cpu: bool) -> str:
    """Return the precision that `hf:` uses on this device, unless the user names one.

    vLLM's own `auto` silently rounds float32 checkpoints to 16 bits.
    """
    if options.dtype:
        return options.dtype
    config = description.config.get_text_config()
    if options.quantization or getattr(description.config, "quantization_config", None):
        return "auto"
    own = str(getattr(config, "dtype", None)).removeprefix("torch.")
    return "float32" if cpu or own == "float32" else "auto"


def _cache_bytes(options: VLLMOptions, cpu: bool) -> int | None:
    """Return the size of the KV cache; None is vLLM's default, which is not used on a CPU: nearly all memory."""
    if options.kv_cache_gb is not None:
        os.environ.pop(_CACHE_VARIABLE, None)  # it would override the argument
        return int(options.kv_cache_gb * _GIB)
    if cpu and options.gpu_memory_utilization is None and not os.environ.get(_CACHE_VARIABLE):
        return int(CPU_CACHE_GB * _GIB)
    return None
