"""Options of the vLLM engine: `--engine KEY=VALUE`, or the table `[engine]` of a specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from h2htalk.errors import ConfigError, quoted

DTYPES = ("float32", "bfloat16", "float16")
KV_CACHE_DTYPES = ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")
# Keys whose value changes what the model answers, beyond the rounding of another order of computing.
CHANGE_ANSWERS = ("quantization", "kv_cache_dtype", "reasoning_parser", "tokenizer", "batch_invariant")

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_LEAST: dict[str, float] = {"kv_cache_gb": 0.01, "gpu_memory_utilization": 0.01}
_MOST: dict[str, float] = {"gpu_memory_utilization": 1.0}


@dataclass(frozen=True, slots=True)
class VLLMOptions:
    """How vLLM runs a model; None is vLLM's own choice, except where an attribute says another.

    Attributes:
        tensor_parallel_size, pipeline_parallel_size: GPUs that share one copy of the model.
        data_parallel_size: copies of the model, each answering its part of the requests.
        dtype: of weights and activations; None is float32 on a CPU, as `hf:` has it, and the checkpoint's own on
            a GPU. A quantised checkpoint's own everywhere.
        max_model_len: tokens that prompt and reply may have together; None is all that the model can.
        gpu_memory_utilization: share of each GPU's memory for weights and KV cache, 0.01 to 1.
        kv_cache_gb: GiB of KV cache a GPU; None is what `gpu_memory_utilization` leaves, 2 on a CPU.
        max_num_seqs: requests that are computed together. max_num_batched_tokens: tokens of one step.
        quantization: only to quantise a checkpoint while it is loaded (`fp8`); a quantised one says so itself.
        kv_cache_dtype: of the KV cache.
        lora: folder or repository of a LoRA adapter that is laid over the model.
        revision: branch, tag or commit of a repository. tokenizer: another folder or repository of a tokenizer.
        enforce_eager: compile nothing; None is true on a CPU, where compiling takes longer than it saves.
        enable_prefix_caching: compute what prompts begin with in common once.
        reasoning_parser: vLLM's reader of this model's reasoning, for marks other than `<think>`.
        batch_invariant: the same bits whatever is computed together (GPUs of compute capability 9 on; slower).
    """

    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    dtype: str | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_gb: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    lora: str | None = None
    revision: str | None = None
    tokenizer: str | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool = True
    reasoning_parser: str | None = None
    batch_invariant: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> VLLMOptions:
        """The options that the user typed.

        Raises:
            ConfigError: an unknown key, or a value that cannot be; names the choices.
        """
        kinds = get_type_hints(cls)
        if unknown := [key for key in given if key not in kinds]:
            raise ConfigError(
                f"vllm has no engine option {quoted(unknown[0])}; choose from {', '.join(sorted(kinds))}"
            )
        # Each value was read as the type of its attribute.
        values: dict[str, Any] = {key: _read(key, value, kinds[key]) for key, value in given.items()}
        options = cls(**values)
        _check_choice("dtype", options.dtype, DTYPES)
        _check_choice("kv_cache_dtype", options.kv_cache_dtype, KV_CACHE_DTYPES)
        return options

    def subject(self) -> dict[str, str]:
        """What a signature must name: set options that change answers (others are named where they are resolved)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # `auto` is what is done by itself.
        return {key: _word(values[key]) for key in CHANGE_ANSWERS if values[key] not in (None, False, "auto")}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(key: str, value: str, kind: Any) -> object:
    """One value of the type that the option's annotation names."""
    text = value.strip()
    if not text:
        raise ConfigError(f"engine option {key} is empty; leave it out for vLLM's own choice")
    if bool in (kind, *getattr(kind, "__args__", ())):
        if text.lower() not in _TRUTH:
            raise ConfigError(f"engine option {key} is {quoted(text)}; it must be true or false")
        return _TRUTH[text.lower()]
    if str in getattr(kind, "__args__", ()):
        return text
    whole = float not in getattr(kind, "__args__", ())
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = -1
    least, most = _LEAST.get(key, 1), _MOST.get(key)
    if not least <= number <= (most or 2**40):
        wanted = f"{least} to {most:g}" if most else f"{least} or more"
        raise ConfigError(
            f"engine option {key} is {quoted(text)}; it must be a {'whole ' if whole else ''}number, {wanted}"
        )
    return number


def _check_choice(key: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise ConfigError(f"engine option {key} is {quoted(value)}; choose from {', '.join(choices)}")
