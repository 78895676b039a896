"""`embedded`: SmolLM2-135M-Instruct in OpenVINO GenAI, on any machine, without torch.

The model is small and knows English only: it is for trying all steps of an evaluation, not for its answers. A request
gets the same answer in any order and at any concurrency. In OpenVINO's continuous batching the requests of a batch
change each other's logits in the last bits; two tokens that are nearly tied then change places, and the rest of the
answer changes. Comparing log probabilities bit by bit showed four causes:

1. Reduced precision depends on the batch. `PRECISION` switches it off.
2. A step of a single row uses another matrix product than a step of more rows. So a *companion*, a short request
   whose text is discarded, always runs beside the others.
3. A prompt gives the same bits whether it is computed whole or after a cached prefix, unless a single token is left
   to compute: that one is computed like a generated token. So prompts are never split (a step admits one prompt, of
   any length), and where the cache may leave one token, it always does or never (`EmbeddedEngine._offer`).
4. On processors without AVX-512 a step with 80 or more rows of one prompt also uses another product. So a longer
   prompt is computed in parts of PART_TOKENS beforehand, each after the cached blocks of the part before.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.local.chat_template import Prompt, TokenRequest, tokenize_requests
from h2htalk.chat.protocol import Message, OnDone, Outcome, Reply, Request, Sampling
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError, ModelCallError
from h2htalk.extras import EMBEDDED_MODEL
from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged, import_openvino

FEATURE = EMBEDDED_MODEL.feature
PRECISION = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
CONTEXT_TOKENS = 8192  # the model's training length; beyond it the engine returns noise, no error
CACHE_GB = 1
BLOCK_TOKENS = 32  # the cache's unit
# A token of the cache: 30 layers x 3 key-value heads x 64 values x (key and value) x 4 bytes.
CACHE_BLOCKS = CACHE_GB * 2**30 // (30 * 3 * 64 * 2 * 4 * BLOCK_TOKENS)
SPECIAL_TOKENS = 17  # the first tokens of the vocabulary
COMPANION_TOKENS = 256
# Two blocks, and two tokens of the next: a part that is computed again then leaves more than one token to compute.
PART_TOKENS = 2 * BLOCK_TOKENS + 2

Tokens = NDArray[np.int64]
NO_TOKENS: Tokens = np.empty(0, np.int64)


class EmbeddedChat:
    """The embedded model; `name` is empty or `smollm2`. The first call loads it (2-3 s). Raises ConfigError for another
    name or changed weights, MissingExtraError where OpenVINO or weights are missing."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        if name not in ("", "smollm2"):
            raise ConfigError(
                f"unknown embedded model {name!r}; choose embedded or embedded:smollm2"
            )
        openvino_version = import_openvino("openvino_genai", FEATURE).get_version()
        self.subject = {
            "engine": "embedded",
            "model": "SmolLM2-135M-Instruct.Q4_1",
            "weights_sha256": SMOLLM2_GGUF.sha256,
            "engine_version": f"openvino-genai {openvino_version}",
            "precision": " ".join(f"{key}={value}" for key, value in PRECISION.items()),
        }
        self._weights = find_packaged(SMOLLM2_GGUF, FEATURE)
        self._concurrency = options.concurrency
        self._engine: EmbeddedEngine | None = None

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Failures: `context_length` (prompt and answer exceed 8,192 tokens),
        `unreadable_text` (no valid Unicode)."""
        if self._engine is None:
            self._engine = EmbeddedEngine(self._weights, self._concurrency)
        engine = self._engine
        try:
            jobs, outcomes = tokenize_requests(
                engine.prompt, CONTEXT_TOKENS, requests, on_done, "embedded"
            )
            # Prompts with a common beginning are neighbours: big-endian bytes sort as the numbers do.
            jobs.sort(key=lambda job: np.array(job.prompt, ">u4").tobytes())
            for job, output in engine.run(jobs):
                tokens = output.generated_ids
                text = str(engine.tokenizer.decode(tokens, skip_special_tokens=True))
                finish_reason = "stop" if output.finish_reason.name == "STOP" else "length"
                usage = Usage(len(job.prompt), len(tokens))
                job.finish(Reply(text, finish_reason, usage))
        finally:
            engine.abandon()
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """Free the memory of model and cache."""
        self._engine = None


class EmbeddedEngine:
    """A loaded model (a GGUF file, which includes the tokenizer), its chat template and its requests in flight.

    `log_probabilities`: whether outputs have them (else zeros). Raises ConfigError for a file that cannot be loaded.
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
                str(weights), scheduler, "CPU", PRECISION
            )
        except RuntimeError as error:
            raise ConfigError(f"{weights}: OpenVINO GenAI cannot load it: {error}") from error
        self.tokenizer: Any = self._pipeline.get_tokenizer()
        self._end_token = int(self._pipeline.get_config().eos_token_id)
        # Positions within special tokens where a text is cut, so that they are read as plain text.
        cuts = []
        for number in range(SPECIAL_TOKENS):
            token = str(self.tokenizer.decode([number], skip_special_tokens=False))
            cuts.append(f"(?<={re.escape(token[0])})(?={re.escape(token[1:])})")
        self._marks = re.compile("|".join(cuts))
        self._next_id = 0
        self._running: list[tuple[Tokens, TokenRequest, Any]] = []
        self._throwaways: list[Any] = []
        self._companion: Any = None
        self._computed = NO_TOKENS  # the prompt whose blocks were cached last
        self._primed = NO_TOKENS
        self._last_prompt = NO_TOKENS

    def pieces(self, messages: Sequence[Message]) -> list[str]:
        """The messages in the chat template, open for the assistant's turn; cut within special tokens of a message."""
        if not messages or messages[0].role != "system":
            # The model's own template would add one about an assistant named SmolLM.
            messages = (Message("system", ""), *messages)
        pieces = [""]
        for message in messages:
            first, *later = self._marks.split(message.content)
            pieces[-1] += f"<|im_start|>{message.role}\n{first}"
            pieces += later
            pieces[-1] += "<|im_end|>\n"
        pieces[-1] += "<|im_start|>assistant\n"
        return pieces

    def prompt(self, messages: Sequence[Message], thinking: int | None = None) -> Prompt:
        """Return the tokens of a conversation. Raises UnicodeEncodeError for half of a surrogate pair."""
        tokens = np.concatenate([self._encode(piece) for piece in self.pieces(messages)])
        return Prompt(array("i", tokens.tolist()), thinks=False)

    def _encode(self, piece: str) -> Tokens:
        piece.encode("utf-8")  # the tokenizer's own error would be a misleading TypeError
        encoded = self.tokenizer.encode(piece, add_special_tokens=False)
        return np.asarray(encoded.input_ids.data[0], np.int64)

    def run(self, jobs: Sequence[TokenRequest]) -> Iterator[tuple[TokenRequest, Any]]:
        """Admit the jobs in their order; yields each with its output when it ends."""
        waiting = [(np.array(job.prompt, np.int64), job) for job in jobs][::-1]
        while waiting or self._running:
            if waiting and self._offer(*waiting[-1]):
                waiting.pop()
            if self._companion is None or not self._runs(self._companion):
                companion = self._encode("<|im_start|>user\n")
                self._companion = self._add(companion, Sampling(max_tokens=COMPANION_TOKENS))
            self._pipeline.step()  # one token of every request in flight
            self._throwaways = [handle for handle in self._throwaways if self._runs(handle)]
            ended = [request for request in self._running if not self._runs(request[2])]
            self._running = [request for request in self._running if self._runs(request[2])]
            for prompt, job, handle in ended:
                status = handle.get_status()
                if status != self._genai.GenerationStatus.FINISHED:
                    advice = "start again with a lower --concurrency: finished answers are kept"
                    raise ModelCallError(
                        f"OpenVINO GenAI dropped a request ({status.name}); {advice}"
                    )
                output = handle.read_all()[0]
                if len(output.generated_ids) == 1:
                    # Add a token to the cached block that this answer left, so that the block ends with no prompt.
                    self._throw_away(prompt, 2)
                yield job, output

    def _offer(self, prompt: Tokens, job: TokenRequest) -> bool:
        """Admit a job if concurrency and cache allow it; at most one a step."""
        if len(self._running) >= self._concurrency or self._throwaways:
            return False
        if not self._fits(prompt, job):
            return False
        start = _shared(self._computed, prompt) // BLOCK_TOKENS * BLOCK_TOKENS
        if len(prompt) - start > PART_TOKENS:
            self._computed = prompt[: start + PART_TOKENS]
            self._throw_away(self._computed, 2)  # two: see `run`
            return False
        # Only whole blocks are cached, and never the whole prompt. Where that would leave a single token of an equal
        # prompt to compute, the prompt is computed once beforehand, so that always one token is left.
        if len(prompt) % BLOCK_TOKENS in (0, 1) and not np.array_equal(prompt, self._primed):
            self._throw_away(prompt, 1)
            self._primed = prompt
            return False
        if np.array_equal(prompt, self._last_prompt):
            # The equal prompt of the step before has a last block that ends with the prompt, until its next step.
            self._last_prompt = NO_TOKENS
            return False
        self._primed = NO_TOKENS
        self._last_prompt = prompt
        self._computed = prompt
        handle = self._add(prompt, job.sampling, ends_at_stop=True)
        self._running.append((prompt, job, handle))
        return True

    def abandon(self) -> None:
        """Cancel all requests in flight, after the last request, an error or Ctrl-C."""
        handles = [handle for _, _, handle in self._running]
        for handle in filter(None, [*handles, *self._throwaways, self._companion]):
            handle.cancel()
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        self._running = []
        self._throwaways = []
        self._companion = None
        self._computed = self._primed = self._last_prompt = NO_TOKENS

    def _fits(self, prompt: Tokens, job: TokenRequest) -> bool:
        """Whether the cache can hold all running requests and this one to their ends: a full one drops and recomputes.
        Blocks that two neighbours in the order of prompts have in common are stored once."""
        blocks = 4 + (3 + COMPANION_TOKENS) // BLOCK_TOKENS  # companion and rounding
        requests = [(tokens, request) for tokens, request, _ in self._running]
        before = NO_TOKENS
        for tokens, request in [*requests, (prompt, job)]:
            blocks += 1 + request.tokens // BLOCK_TOKENS
            blocks -= _shared(before, tokens) // BLOCK_TOKENS
            before = tokens
        return blocks <= CACHE_BLOCKS

    def _throw_away(self, prompt: Tokens, tokens: int) -> None:
        self._throwaways.append(self._add(prompt, Sampling(max_tokens=tokens)))

    def _runs(self, handle: Any) -> bool:
        return bool(handle.get_status() == self._genai.GenerationStatus.RUNNING)

    def _add(self, prompt: Tokens, sampling: Sampling, ends_at_stop: bool = False) -> Any:
        """Add a request and return its handle. `ends_at_stop`: it may end before its budget."""
        config = self._genai.GenerationConfig()
        config.eos_token_id = self._end_token
        config.stop_token_ids = {self._end_token}
        config.apply_chat_template = False
        config.ignore_eos = not ends_at_stop
        config.max_new_tokens = sampling.budget
        config.logprobs = self._log_probabilities
        temperature = sampling.require_temperature()
        if temperature > 0:
            config.do_sample = True
            config.temperature = temperature
            config.top_p = sampling.top_p
            config.rng_seed = sampling.seed
        self._next_id += 1
        return self._pipeline.add_request(self._next_id, self._tensor(prompt[None, :]), config)


def _shared(first: Tokens, second: Tokens) -> int:
    """Count the tokens at the start of two prompts that are equal."""
    length = min(len(first), len(second))
    equal = np.append(first[:length] == second[:length], False)
    return int(np.argmin(equal))
