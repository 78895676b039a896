"""vLLM's own words, as its processes print them, made into one line that says what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.chat.vllm_advice import advice, root_cause

FAILED = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"
PREFIX = "(EngineCore pid=17598) ERROR 11-20 08:29:38 [core.py:1] "


def logged(*lines: str) -> str:
    return "\n".join(PREFIX + line for line in lines)


CACHE = (
    "ValueError: To serve at least one request with the model's max seq len (8192), (0.7 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (0.1 GiB). Based on the available memory, the estimated "
    "maximum model length is 2304. Try increasing `gpu_memory_utilization` (which also controls CPU memory)"
)
# What vLLM prints -> what must be in our line.
KNOWN = {
    CACHE: ["8192 tokens (max_model_len)", "0.7 GiB", "there are 0.1", "max_model_len to 2304 or less"],
    "ValueError: No available memory for the cache blocks. Try increasing": ["no memory for a KV cache"],
    (
        "ValueError: Free memory on device cuda:0 (12.5/79.3 GiB) on startup is less than desired GPU memory "
        "utilization (0.92, 72.96 GiB). Decrease GPU memory utilization"
    ): ["12.5 of 79.3 GiB", "72.96 were asked for", "lower gpu_memory_utilization"],
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total": [
        "Tried to allocate 896.00 MiB",
        "tensor_parallel_size",
        "quantised checkpoint",
    ],
    "ValueError: Model architectures ['OwnForCausalLM'] are not supported for now. Supported": [
        "cannot run its architecture ['OwnForCausalLM']"
    ],
    (
        "ValidationError: Value error, User-specified max_model_len (9999) is greater than the derived max_model_len "
        "(max_position_embeddings=256 or model_max_length=None in model's config.json)"
    ): ["max_model_len 9999 is more than the 256 tokens"],
    "RuntimeError: Cannot find any model weights with `/models/x`": ["no safetensors", "no pickle"],
    "ValueError: The quantization method awq_marlin is not supported for the current GPU. Minimum": [
        "quantization method awq_marlin is not supported",
        "take another checkpoint",
    ],
    "ValueError: Cannot find the config file for awq": ["not quantised with awq", "leave quantization out"],
    "RuntimeError: _C::static_scaled_fp8_quant() expected at most 0 argument(s) but received 4": [
        "has no static_scaled_fp8_quant",
        "take another checkpoint",
    ],
    "ValidationError: Unknown quantization method: x. Must be one of ['awq', 'fp8'].": [
        "['awq', 'fp8']; choose one"
    ],
    "ValueError: loading requires you to pass `trust_remote_code=True`": ["server:MODEL@URL"],
    "ValueError: Total number of attention heads (9) must be divisible by tensor parallel size (2).": [
        "another tensor_parallel_size"
    ],
    "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers. Allowed NUMA nodes are "
    "[0]. Please try to bind threads manually or decrease DP/TP/PP": [
        "each of the 2 parts of the model needs cores",
        "VLLM_CPU_OMP_THREADS_BIND",
    ],
}


@pytest.mark.parametrize("said", KNOWN, ids=lambda said: said[:40])
def test_known_causes_say_what_to_change(said: str) -> None:
    line = advice(FAILED, logged("Traceback (most recent call last):", "  File x", said), Path("/tmp/x.log"))
    for part in KNOWN[said]:
        assert part in line
    assert "\n" not in line
    # The same words when they are raised in this process.
    assert KNOWN[said][0] in advice(said.partition(": ")[2])


def test_the_first_cause_counts_and_not_those_who_pass_it_on() -> None:
    log = "\n".join(
        [
            "(Worker pid=9) ERROR 11-20 [x.py:7] OSError: disk on fire",
            "(EngineCore pid=8) ERROR 11-20 [x.py:7] RuntimeError: Worker proc VllmWorker-0 died unexpectedly",
            f"RuntimeError: {FAILED}",
        ]
    )
    assert root_cause(log) == "OSError: disk on fire"
    assert root_cause("nothing of note\nINFO all is well") is None
    assert root_cause(f"RuntimeError: {FAILED}") is None


def test_words_elsewhere_in_the_log_are_no_cause() -> None:
    """vLLM prints its whole configuration, `trust_remote_code=False` included."""
    log = "INFO config: trust_remote_code=False, out of memory policy\n" + logged("KeyError: 'x'")
    assert advice(FAILED, log) == "KeyError: 'x'"
    assert advice("no such thing", log) == "no such thing"


def test_a_validation_s_own_words_are_taken_out_of_their_wrapping() -> None:
    said = (
        "1 validation error for ModelConfig\n  Value error, No such quantisation. [type=value_error, input_value="
        "ArgsKwargs((), {'model': 'x'}), input_type=ArgsKwargs]\n    For further information visit https://e.d/2"
    )
    assert advice(said) == "No such quantisation"


def test_a_script_without_a_guard_is_told_so() -> None:
    log = """RuntimeError:
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase."""
    assert "if __name__ == '__main__':" in advice(FAILED, log)


def test_an_unknown_cause_is_quoted_with_the_place_of_the_log() -> None:
    line = advice(FAILED, logged("KeyError: 'layers.31.mlp'"), Path("/tmp/x.log"))
    assert line == "KeyError: 'layers.31.mlp'; vLLM's log: /tmp/x.log"
    assert advice("something\n  else") == "something else"
    assert len(advice("x" * 5000)) < 400


def test_on_a_cpu_the_advice_names_the_options_of_a_cpu() -> None:
    line = advice(FAILED, logged(CACHE), None, on_cpu=True)
    assert "kv_cache_gb to 0.7 or more (or VLLM_CPU_KVCACHE_SPACE)" in line
    assert "gpu_memory" not in line
