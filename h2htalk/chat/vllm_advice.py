"""What went wrong in vLLM, in one line that says what to change.

The cause often stands in the log of a process of vLLM's alone: its parent only hears that something failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_LONGEST = 300

# An exception's last line, wherever the log's own prefix ends: `(EngineCore pid=7) ERROR ... ValueError: ...`.
_RAISED = re.compile(r"(?:^|[\s\]])((?:\w+\.)*\w*(?:Error|Exception)): (\S.*)$", re.MULTILINE)
# Say only that another process failed.
_SECOND_HAND = re.compile(
    r"core initialization failed|Engine core proc|WorkerProc initialization failed|EngineDeadError|EngineCore "
    r"encountered|Executor failed|cancelled|Worker proc|shm_broadcast|Connection closed by peer|died unexpectedly"
)
_PYDANTIC = re.compile(r"validation errors? for .*?(?:Value error|Assertion failed), (.*?) \[type=")
# What Python says to a script that starts processes while it is imported.
_UNGUARDED = "before the\n        current process has finished its bootstrapping phase"
_MEMORY = (
    "raise gpu_memory_utilization, lower max_model_len, share the weights with tensor_parallel_size or take a "
    "quantised checkpoint"
)


def root_cause(log: str) -> str | None:
    """The first exception in the log that does not merely pass another on; None: none is there."""
    for found in _RAISED.finditer(log):
        if not _SECOND_HAND.search(found[0]):
            return f"{found[1].rpartition('.')[2]}: {found[2].strip()}"
    return None


def advice(reason: str, log: str = "", log_file: Path | None = None, on_cpu: bool = False) -> str:
    """One line: the cause in vLLM's own numbers, and what to change.

    Args:
        reason: what was raised in this process.
        log: what vLLM's processes printed.
        log_file: named where the cause is none of the known ones.
        on_cpu: which options the advice names.
    """
    if _UNGUARDED in log:
        return (
            "vLLM's processes import your script again: put what it does under `if __name__ == '__main__':`, or "
            "use the command h2htalk"
        )
    # What was raised here is the cause itself, unless it only says that another process failed.
    cause = (root_cause(log) or reason) if _SECOND_HAND.search(reason) else reason
    cause = " ".join(cause.split())
    if found := _PYDANTIC.search(cause):
        cause = found[1]
    for pattern, say in _KNOWN:
        if found := re.search(pattern, cause, re.IGNORECASE):
            return say(found, on_cpu)
    cause = cause.removeprefix("ValueError: ").removeprefix("RuntimeError: ")[:_LONGEST].rstrip(". ")
    return cause + (f"; vLLM's log: {log_file}" if log_file else "")


def _cache_too_small(found: re.Match[str], on_cpu: bool) -> str:
    """The message names the length asked for, the GiB needed and at hand, and the length that would fit."""
    length, needed, there, fits = found.groups()
    shorter = f"set max_model_len to {fits} or less" if fits else "lower max_model_len"
    more = (
        f"raise kv_cache_gb to {needed} or more (or VLLM_CPU_KVCACHE_SPACE)"
        if on_cpu
        else "raise gpu_memory_utilization or tensor_parallel_size, or take a quantised checkpoint"
    )
    return (
        f"one request of {length} tokens (max_model_len) needs {needed} GiB of KV cache and there are {there}: "
        f"{shorter}, or {more}"
    )


def _no_cache(found: re.Match[str], on_cpu: bool) -> str:
    return (
        f"the weights leave no memory for a KV cache: {'lower kv_cache_gb, or ' if on_cpu else ''}{_MEMORY}"
    )


def _cpu_memory(found: re.Match[str], on_cpu: bool) -> str:
    return f"{found[0][:_LONGEST]}: lower kv_cache_gb (or VLLM_CPU_KVCACHE_SPACE), or end other programs"


def _busy_gpu(found: re.Match[str], on_cpu: bool) -> str:
    free, total, asked = found.groups()
    return (
        f"{free} of {total} GiB of the device's memory are free and {asked} were asked for: lower "
        "gpu_memory_utilization, or end what else uses the device"
    )


def _out_of_memory(found: re.Match[str], on_cpu: bool) -> str:
    told = re.search(r"tr(?:ied|ying) to allocate [\d.]+ ?\w+", found.string, re.IGNORECASE)
    size = f" ({told[0]})" if told else ""
    if on_cpu:
        return (
            f"the machine's memory is too small{size}: lower kv_cache_gb, set dtype=bfloat16, or take a "
            "smaller model"
        )
    return f"the device's memory is too small{size}: {_MEMORY}; lower max_num_seqs"


def _architecture(found: re.Match[str], on_cpu: bool) -> str:
    return f"vLLM cannot run its architecture {found[1]}; hf:MODEL may"


def _length(found: re.Match[str], on_cpu: bool) -> str:
    return (
        f"max_model_len {found[1]} is more than the {found[2]} tokens that the model was made for: lower it"
    )


def _quantisation(found: re.Match[str], on_cpu: bool) -> str:
    device = "a CPU" if on_cpu else "this device"
    return f"{found[0][:_LONGEST].rstrip('. ')}: this quantisation does not run on {device}; take another checkpoint"


def _not_quantised(found: re.Match[str], on_cpu: bool) -> str:
    return (
        f"the checkpoint is not quantised with {found[1]}: leave quantization out, a quantised checkpoint says so "
        "itself"
    )


def _unknown_quantisation(found: re.Match[str], on_cpu: bool) -> str:
    return f"{found[0].rstrip('. ')}; choose one, or leave quantization out"


def _no_kernel(found: re.Match[str], on_cpu: bool) -> str:
    device = "this CPU build" if on_cpu else "this build"
    kernel = found[1] or found[2]
    return f"{device} of vLLM has no {kernel}: this quantisation does not run here; take another checkpoint"


def _own_code(found: re.Match[str], on_cpu: bool) -> str:
    return "it needs code of its own, which is never run here; serve it and use server:MODEL@URL"


def _no_safetensors(found: re.Match[str], on_cpu: bool) -> str:
    return "it has no safetensors, and nothing else is read (no pickle); convert it, or take another revision"


def _heads(found: re.Match[str], on_cpu: bool) -> str:
    return f"{found[0]}: choose another tensor_parallel_size"


def _unbound_cores(found: re.Match[str], on_cpu: bool) -> str:
    return (
        f"each of the {found[1]} parts of the model needs cores of its own: name them in VLLM_CPU_OMP_THREADS_BIND, "
        "such as '0-3|4-7', or lower tensor_parallel_size and pipeline_parallel_size"
    )


def _too_few_devices(found: re.Match[str], on_cpu: bool) -> str:
    return f"{found[0][:_LONGEST]}: lower tensor_parallel_size, pipeline_parallel_size or data_parallel_size"


_KNOWN: tuple[tuple[str, Callable[[re.Match[str], bool], str]], ...] = (
    (
        r"max seq len \(?(\d+)\)?,? \(?([\d.]+) GiB KV cache is needed.{0,80}?\(([\d.]+) GiB\)"
        r"(?:.{0,60}?estimated maximum model length is (\d+))?",
        _cache_too_small,
    ),
    (r"No available memory for the cache blocks", _no_cache),
    (
        r"Free memory on device .{0,40}?\(([\d.]+)/([\d.]+) GiB\).{0,80}?less than desired GPU memory "
        r"utilization \([\d.]+, ([\d.]+) GiB\)",
        _busy_gpu,
    ),
    (
        r"(?:Available|Requested) memory on node [^:]{0,200}?(?:less than|exceeds|larger than)[^:]{0,120}?GiB\)",
        _cpu_memory,
    ),
    (
        r"out of memory|OutOfMemoryError|DefaultCPUAllocator|not enough memory|Cannot allocate memory|bad_alloc",
        _out_of_memory,
    ),
    (r"Model architectures? (\[.*?\]|\S+) (?:is|are) not supported", _architecture),
    (
        r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len.{0,60}?=(\d+)",
        _length,
    ),
    (r"trust[-_]remote[-_]code", _own_code),
    (r"Cannot find any model weights|no safetensors", _no_safetensors),
    (r"Cannot find the config file for (\w+)", _not_quantised),
    (r"Unknown quantization method: [^\]]*\]", _unknown_quantisation),
    (
        r"_C::(\w*(?:quant|fp8|scaled)\w*)\(\) expected at most 0|has no attribute '(\w*(?:quant|fp8)\w*)'",
        _no_kernel,
    ),
    (r"Total number of attention heads \(\d+\) must be divisible by tensor parallel size \(\d+\)", _heads),
    (r"Not enough allowed NUMA nodes to bind threads of (\d+)", _unbound_cores),
    (
        r"World size \(\d+\) is larger than the number of available GPUs[^.]*|Not enough CPUs?[^.]*",
        _too_few_devices,
    ),
    (
        r"(?:The )?(?:quantization method|quantization)\b[^;]{0,120}?not (?:currently )?support[^;]{0,160}"
        r"|\S+ quantization is (?:currently )?not supported[^;]{0,100}",
        _quantisation,
    ),
)
