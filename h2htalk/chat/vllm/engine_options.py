"""Options of the vLLM engine: `--engine-option KEY=VALUE`, or the table `[engine_options]` of a specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from h2htalk.errors import ConfigError, quoted

# Keys whose value changes the answers by more than rounding.
CHANGE_ANSWERS = ("quantization", "kv_cache_dtype", "reasoning_parser", "tokenizer", "batch_invariant")

Count = Annotated[int, Field(ge=1, le=2**40)]
Share = Annotated[float, Field(ge=0.01, le=1)]
Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class VLLMOptions:
    """How vLLM runs a model; None is vLLM's default unless the attribute names another.

    Attributes:
        tensor_parallel_size, pipeline_parallel_size: GPUs that share one copy of the model.
        data_parallel_size: copies of the model, each answering a part of the requests.
        dtype: of weights and activations; None is float32 on a CPU, as for `hf:`, and the checkpoint's own on a GPU
            and for quantised checkpoints.
        max_model_len: tokens that prompt and reply may have together; None is the model's limit.
        gpu_memory_utilization: share of each GPU's memory for weights and KV cache, 0.01 to 1.
        kv_cache_gb: GiB of KV cache for each GPU; None: the rest of `gpu_memory_utilization`, or 2 on a CPU.
        max_num_seqs: requests that are computed together. max_num_batched_tokens: tokens of one step.
        quantization: quantises the checkpoint while loading (`fp8`); not needed for checkpoints that are quantised.
        kv_cache_dtype: of the KV cache.
        lora: folder or repository of a LoRA adapter.
        revision: branch, tag or commit of a repository. tokenizer: another folder or repository of a tokenizer.
        enforce_eager: compile nothing; None is true on a CPU, where compiling takes longer than it saves.
        enable_prefix_caching: compute common prefixes of prompts once.
        reasoning_parser: vLLM's parser for this model's reasoning, for marks other than `<think>`.
        batch_invariant: equal logits whatever the batch (GPUs of compute capability 9 and above; slower).
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
        """Parse the options that the user gave.

        Raises:
            ConfigError: an unknown key (the message lists the known ones), or an invalid value.
        """
        known = sorted(field.name for field in fields(cls))
        if unknown := [key for key in given if key not in known]:
            raise ConfigError(f"vllm has no engine option {quoted(unknown[0])}; choose from {', '.join(known)}")
        try:
            return TypeAdapter(cls).validate_python({key: value.strip() for key, value in given.items()})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ConfigError(f"engine option {first['loc'][0]} is {quoted(first['input'])}: {first['msg']}") from error

    def subject(self) -> dict[str, str]:
        """Return the options that are set and change answers, for the signature."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # `auto` is the default.
        return {key: _as_text(values[key]) for key in CHANGE_ANSWERS if values[key] not in (None, False, "auto")}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
