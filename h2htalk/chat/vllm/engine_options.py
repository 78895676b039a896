"""Options of the vLLM engine: `--engine KEY=VALUE`, or the table `[engine]` of a specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from h2htalk.errors import ConfigError, quoted

# Keys whose value changes what the model answers, beyond the rounding of another order of computing.
CHANGE_ANSWERS = ("quantization", "kv_cache_dtype", "reasoning_parser", "tokenizer", "batch_invariant")

Count = Annotated[int, Field(ge=1, le=2**40)]
Share = Annotated[float, Field(ge=0.01, le=1)]
Text = Annotated[str, Field(min_length=1)]


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

    tensor_parallel_size: Count = 1
    data_parallel_size: Count = 1
    pipeline_parallel_size: Count = 1
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    max_model_len: Count | None = None
    gpu_memory_utilization: Share | None = None
    kv_cache_gb: Annotated[float, Field(ge=0.01, le=2**40)] | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    quantization: Text | None = None
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = None
    lora: Text | None = None
    revision: Text | None = None
    tokenizer: Text | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool = True
    reasoning_parser: Text | None = None
    batch_invariant: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> VLLMOptions:
        """The options that the user typed.

        Raises:
            ConfigError: an unknown key, or a value that cannot be; names the choices.
        """
        known = sorted(field.name for field in fields(cls))
        if unknown := [key for key in given if key not in known]:
            raise ConfigError(
                f"vllm has no engine option {quoted(unknown[0])}; choose from {', '.join(known)}"
            )
        try:
            return TypeAdapter(cls).validate_python({key: value.strip() for key, value in given.items()})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ConfigError(
                f"engine option {first['loc'][0]} is {quoted(first['input'])}: {first['msg']}"
            ) from error

    def subject(self) -> dict[str, str]:
        """What a signature must name: set options that change answers (others are named where they are resolved)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # `auto` is what is done by itself.
        return {key: _word(values[key]) for key in CHANGE_ANSWERS if values[key] not in (None, False, "auto")}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
