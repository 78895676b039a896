"""Run OpenVINO GenAI's continuous batching so that an answer depends on its request alone.

By default the requests of a batch change each other's logits in the last bits; two tokens that are nearly tied then
change places, and the rest of the answer changes. Comparing log probabilities bit by bit showed four causes:

1. Reduced precision depends on the batch. `PRECISION` switches it off.
2. A step of a single row uses another matrix product than a step of more rows. So a *companion*, a short request
   whose text is discarded, always runs beside the others.
3. A prompt gives the same bits whether it is computed whole or after a cached prefix, unless a single token is left
   to compute: that one is computed like a generated token. So prompts are never split (a step admits one prompt, of
   any length), and where the cache may leave one token, it always does (`_must_prime`) or never (`_forget`).
4. On processors without AVX-512 a step with 80 or more rows of one prompt also uses another product. So a longer
   prompt is computed in parts of PART_TOKENS beforehand, each after the cached blocks of the part before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2htalk.chat.protocol import Sampling
from h2htalk.errors import ConfigError, ModelCallError
from h2htalk.text.openvino_runtime import import_openvino

FEATURE = "the embedded model"
PRECISION = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
CONTEXT_TOKENS = 8192  # the model's training length; beyond it the engine returns noise, not an error
CACHE_GB = 1
BLOCK_TOKENS = 32  # the cache's unit
# A token of the cache: 30 layers x 3 key-value heads x 64 values x (key and value) x 4 bytes.
CACHE_BLOCKS = CACHE_GB * 2**30 // (30 * 3 * 64 * 2 * 4 * BLOCK_TOKENS)
SPECIAL_TOKENS = 17  # the first tokens of the vocabulary
COMPANION_TOKENS = 256
# Two blocks, and two tokens of the next: a part that is computed again then leaves more than one token to compute.
PART_TOKENS = 2 * BLOCK_TOKENS + 2

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of the request `index`. `tokens`: the generated ones, the end token included."""

    index: int
    tokens: Sequence[int]
    log_probabilities: Sequence[float]
    stopped: bool


@dataclass(frozen=True, slots=True)
class _Job:
    index: int
    prompt: Tokens
    max_tokens: int
    handle: Any


class EmbeddedEngine:
    """A loaded model and its requests in flight.

    Args:
        weights: a GGUF file, which includes the tokenizer.
        concurrency: how many requests run at once, at most.
        log_probabilities: whether `Finished` has them (else zeros).

    Raises:
        ConfigError: the engine cannot load the file.
        MissingExtraError: OpenVINO GenAI is not installed.
    """

    def __init__(self, weights: Path, concurrency: int, log_probabilities: bool = False) -> None:
        self._genai: Any = import_openvino("openvino_genai", FEATURE)
        self._tensor: Any = import_openvino("openvino", FEATURE).Tensor
        self._concurrency = concurrency
        self._log_probabilities = int(log_probabilities)
        scheduler = self._genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GB
        scheduler.enable_prefix_caching = True
        scheduler.max_num_seqs = concurrency + 8  # the companion and other throw-away requests
        scheduler.max_num_batched_tokens = CONTEXT_TOKENS + scheduler.max_num_seqs
        try:
            self._pipeline: Any = self._genai.ContinuousBatchingPipeline(
                str(weights), scheduler, "CPU", dict(PRECISION)
            )
        except RuntimeError as error:
            raise ConfigError(f"{weights}: OpenVINO GenAI cannot load it: {error}") from error
        self._tokenizer: Any = self._pipeline.get_tokenizer()
        self._end_token = int(self._pipeline.get_config().eos_token_id)
        self._next_id = 0
        self._jobs: list[_Job] = []
        self._companion: Any = None
        self._throwaways: list[Any] = []
        self._computed: Tokens = np.empty(0, np.int64)  # the prompt or part whose blocks were cached last
        self._primed: Tokens | None = None
        self._last_prompt: Tokens | None = None

    @property
    def special_tokens(self) -> list[str]:
        """Texts that the tokenizer reads as one special token, such as the end of a turn."""
        numbers = range(SPECIAL_TOKENS)
        return [str(self._tokenizer.decode([number], skip_special_tokens=False)) for number in numbers]

    @property
    def busy(self) -> bool:
        """Whether a request is in flight."""
        return bool(self._jobs)

    def encode(self, pieces: Sequence[str]) -> Tokens:
        """Tokenize the pieces one by one: ids (n,). Raises UnicodeEncodeError for half of a surrogate pair."""
        parts = []
        for piece in pieces:
            piece.encode("utf-8")  # the tokenizer's own error would be a misleading TypeError
            parts.append(self._tokenizer.encode(piece, add_special_tokens=False).input_ids.data[0])
        return np.concatenate(parts).astype(np.int64)

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode tokens without special ones."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))

    def offer(self, index: int, prompt: Tokens, sampling: Sampling) -> bool:
        """Admit a request if concurrency and cache allow it; at most one a step, in the order of their prompts.

        Args:
            index: the caller's number of the request.
            prompt: together with `sampling.budget` at most CONTEXT_TOKENS long.
        """
        if len(self._jobs) >= self._concurrency or self._throwaways or not self._fits(prompt, sampling.budget):
            return False
        start = _shared(self._computed, prompt) // BLOCK_TOKENS * BLOCK_TOKENS
        if len(prompt) - start > PART_TOKENS:
            self._computed = prompt[: start + PART_TOKENS]
            self._throw_away(self._computed, 2)  # two: see `_forget`
            return False
        if _must_prime(prompt) and not _same(prompt, self._primed):
            self._throw_away(prompt, 1)
            self._primed = prompt
            return False
        if _same(prompt, self._last_prompt):
            # The equal prompt of the step before has a last block that ends with the prompt, until its next step.
            self._last_prompt = None
            return False
        self._primed, self._last_prompt, self._computed = None, prompt, prompt
        self._jobs.append(_Job(index, prompt, sampling.budget, self._add(prompt, self._generation(sampling))))
        return True

    def step(self) -> list[Finished]:
        """Compute one token of every request in flight; returns those that ended.

        Raises:
            ModelCallError: the engine dropped a request, which `_fits` should rule out.
        """
        self._keep_companion()
        self._pipeline.step()
        self._throwaways = [handle for handle in self._throwaways if self._runs(handle)]
        ended = [job for job in self._jobs if not self._runs(job.handle)]
        if ended:
            self._jobs = [job for job in self._jobs if self._runs(job.handle)]
        return [self._finish(job) for job in ended]

    def abandon(self) -> None:
        """Cancel all requests in flight, after the last request, an error or Ctrl-C."""
        for handle in (*(job.handle for job in self._jobs), *self._throwaways, self._companion):
            if handle is not None:
                handle.cancel()
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        self._jobs, self._throwaways, self._companion = [], [], None
        self._primed = self._last_prompt = None
        self._computed = np.empty(0, np.int64)

    def _finish(self, job: _Job) -> Finished:
        status = job.handle.get_status()
        if status != self._genai.GenerationStatus.FINISHED:
            raise ModelCallError(
                f"OpenVINO GenAI dropped a request ({status.name}); start again with a lower --concurrency: "
                "finished answers are kept"
            )
        output = job.handle.read_all()[0]
        if len(output.generated_ids) == 1:
            self._forget(job.prompt)
        stopped = output.finish_reason == self._genai.GenerationFinishReason.STOP
        return Finished(job.index, output.generated_ids, output.generated_log_probs, stopped)

    def _fits(self, prompt: Tokens, max_tokens: int) -> bool:
        """Whether the cache can hold all running requests and this one to their ends: a full one drops and recomputes.

        Jobs are in the order of their prompts; blocks that two neighbours have in common are stored once.
        """
        blocks = 4 + (3 + COMPANION_TOKENS) // BLOCK_TOKENS  # companion and rounding
        before = np.empty(0, np.int64)
        for tokens, more in (*((job.prompt, job.max_tokens) for job in self._jobs), (prompt, max_tokens)):
            blocks += 1 + (len(tokens) + more) // BLOCK_TOKENS - _shared(before, tokens) // BLOCK_TOKENS
            before = tokens
        return blocks <= CACHE_BLOCKS

    def _keep_companion(self) -> None:
        if self._companion is None or not self._runs(self._companion):
            prompt = self.encode(["<|im_start|>user\n"])
            self._companion = self._add(prompt, self._endless(COMPANION_TOKENS))

    def _forget(self, prompt: Tokens) -> None:
        """Add a token to the cached block that an answer of one token left, so that the block ends with no prompt."""
        self._throw_away(prompt, 2)

    def _throw_away(self, prompt: Tokens, tokens: int) -> None:
        self._throwaways.append(self._add(prompt, self._endless(tokens)))

    def _add(self, prompt: Tokens, generation: Any) -> Any:
        self._next_id += 1
        return self._pipeline.add_request(self._next_id, self._tensor(prompt[None, :]), generation)

    def _runs(self, handle: Any) -> bool:
        return bool(handle.get_status() == self._genai.GenerationStatus.RUNNING)

    def _generation(self, sampling: Sampling) -> Any:
        config = self._genai.GenerationConfig()
        config.eos_token_id, config.stop_token_ids = self._end_token, {self._end_token}
        config.apply_chat_template = False
        config.max_new_tokens = sampling.budget
        config.logprobs = self._log_probabilities
        if (temperature := sampling.require_temperature()) > 0:
            config.do_sample = True
            config.temperature, config.top_p = temperature, sampling.top_p
            config.rng_seed = sampling.seed
        return config

    def _endless(self, tokens: int) -> Any:
        config = self._generation(Sampling(max_tokens=tokens))
        config.ignore_eos = True
        return config


def unreadable_marks(special_tokens: Sequence[str]) -> re.Pattern[str]:
    """Compile a pattern of the places within special tokens where a text must be cut to be read as plain text."""
    return re.compile("|".join(f"(?<={re.escape(t[0])})(?={re.escape(t[1:])})" for t in special_tokens))


def _must_prime(prompt: Tokens) -> bool:
    """Whether the cache of an equal prompt would leave a single token to compute.

    Only whole blocks are cached, and never the whole prompt. Such a prompt is computed once beforehand, so that
    always one token is left.
    """
    return len(prompt) % BLOCK_TOKENS in (0, 1)


def _same(prompt: Tokens, other: Tokens | None) -> bool:
    return other is not None and np.array_equal(prompt, other)


def _shared(first: Tokens, second: Tokens) -> int:
    """Count the tokens at the start of two prompts that are equal."""
    length = min(len(first), len(second))
    differs = np.flatnonzero(first[:length] != second[:length])
    return int(differs[0]) if len(differs) else length
