"""`hf:REPO_OR_PATH`: any causal language model of transformers, in this process.

Requests are batched by length. Answers depend on the request alone, except for rounding: other neighbours in a batch
can decide a near-tie between two tokens differently (very rarely in float32, sometimes in bfloat16). The order of the
requests never matters. Only the end-of-text tokens of the checkpoint's generation config are used.

transformers' `generate` decodes a batch greedily, while a logits processor leaves each row only the token that its own
seed drew, and a stopping criterion delivers each row at its own end or budget.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.local.chat_template import (
    ChatTemplate,
    TokenRequest,
    read_reply,
    tokenize_requests,
)
from h2htalk.chat.local.checkpoints import library_versions, open_checkpoint
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

CPU_CACHE_BYTES = 2 << 30
# Share of the memory that the weights leave free; activations need a part of what remains.
GPU_CACHE_SHARE = 0.5
# Prompt tokens (padding included) of a forward pass: bounds the memory of the prefill's activations.
PREFILL_TOKENS = 8192


class TransformersChat:
    """A checkpoint from a folder or the Hugging Face Hub.

    `subject`: engine, model and its weights, chat template, engine and versions, precision, device. Raises ConfigError
    for a model that is not there or cannot be run, MissingExtraError where torch or transformers is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        checkpoint, self._model = open_checkpoint(name, options.download)
        from transformers import DynamicCache
        from transformers.cache_utils import LinearAttentionCacheLayerMixin

        self._template = ChatTemplate(checkpoint.tokenizer, f"hf:{name}")
        parameters = inspect.signature(self._model.forward).parameters
        # A padded batch needs both; the second is `cache` from 5.24 on.
        has_cache = "past_key_values" in parameters or "cache" in parameters
        if "attention_mask" not in parameters or not has_cache:
            raise ConfigError(
                f"hf:{name}: its architecture has no KV cache; serve it and use server:MODEL@URL"
            )
        layers = DynamicCache(config=self._model.config).layers
        # Padding would change the running state of such layers, so each row must run alone.
        self._recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
        self._rows = 1 if self._recurrent else options.concurrency
        self._stop_tokens = checkpoint.stop_tokens()
        generation_config = type(self._model.generation_config)
        self._model.generation_config = generation_config()  # nothing else of it is used
        self._context = checkpoint.context_tokens()
        self.subject = {
            "engine": "hf",
            **checkpoint.identity(),
            **self._template.identity(),
            "engine_version": library_versions(),
            "precision": str(self._model.dtype).removeprefix("torch."),
            "device": self._model.device.type,
        }

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Failures: `context_length`, `chat_template` (it refuses the roles),
        `special_tokens` (one in a message cannot be read as plain text), `unreadable_text`, `out_of_memory`."""
        jobs, outcomes = tokenize_requests(
            self._template.prompt, self._context, requests, on_done, "hf:"
        )
        for batch in self._batches(jobs):
            self._answer(batch)
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """Free the memory of the weights."""
        self._model = None

    def _batches(self, jobs: Sequence[TokenRequest]) -> Iterator[list[TokenRequest]]:
        """Group jobs of equal sampling and similar length, longest first, as many as rows and cache allow.

        Ties are ordered by id and sample: batches are the same for any order of the requests.
        """

        def order(job: TokenRequest) -> tuple[Any, ...]:
            sizes = (-len(job.prompt), -job.sampling.budget)
            return (_drawing(job), *sizes, job.request.id, job.request.sample)

        cache_tokens = self._cache_tokens()
        longest = 0
        batch: list[TokenRequest] = []
        for job in sorted(jobs, key=order):
            longest = max(longest, job.tokens)
            full = len(batch) >= self._rows or longest * (len(batch) + 1) > cache_tokens
            if batch and (full or _drawing(job) != _drawing(batch[0])):
                yield batch
                batch = []
                longest = job.tokens
            batch.append(job)
        if batch:
            yield batch

    def _cache_tokens(self) -> int:
        """Return how many tokens (padding included) the cache of one batch may hold.

        It depends on model and device, not on the free memory, so that batches are the same in every run.
        """
        import torch

        model = self._model
        config = model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None)
        if not width:
            width = config.hidden_size // config.num_attention_heads
        values = 2 * config.num_hidden_layers * heads * width
        token_bytes: int = values * int(model.dtype.itemsize)
        if model.device.type != "cuda":
            return CPU_CACHE_BYTES // token_bytes
        total = torch.cuda.get_device_properties(model.device).total_memory
        free = max(0, total - model.get_memory_footprint())
        return int(GPU_CACHE_SHARE * free) // token_bytes

    def _answer(self, batch: Sequence[TokenRequest]) -> None:
        """Decode a batch; on out of memory decode the halves of the unfinished part; a single request then fails."""
        import gc

        import torch

        unfinished = list(batch)

        def on_row(job: TokenRequest, tokens: list[int], stopped: bool) -> None:
            unfinished.remove(job)
            # Decoding leaves out special tokens only, and a stop token may be an ordinary one.
            answer = tokens[:-1] if stopped else tokens
            text, thinking = read_reply(self._template.decode(answer), job.thinks)
            usage = Usage(len(job.prompt), len(tokens))
            finish_reason = "stop" if stopped else "length"
            job.finish(Reply(text, finish_reason, usage, thinking))

        try:
            self._generate(batch, on_row)
            return
        except RuntimeError as error:  # the CPU allocator has no type of its own
            out_of_cpu_memory = "DefaultCPUAllocator" in str(error)
            if not isinstance(error, torch.OutOfMemoryError) and not out_of_cpu_memory:
                raise
            message = str(error).splitlines()[0]
        gc.collect()  # frees the failed batch's memory
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        if len(batch) == 1:
            what = f"{batch[0].tokens} tokens do not fit in memory: {message}"
            batch[0].finish(Failure("out_of_memory", what))
            return
        middle = (len(unfinished) + 1) // 2
        for half in (unfinished[:middle], unfinished[middle:]):
            if half:
                self._answer(half)

    def _generate(
        self, batch: Sequence[TokenRequest], on_row: Callable[[TokenRequest, list[int], bool], None]
    ) -> None:
        """Continue all prompts of a batch; `on_row` gets each in the step in which it ends, with its new tokens (a stop
        token included), and whether it ended at a stop token, else at its budget."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from transformers import GenerationConfig

        model = self._model
        width = max(len(job.prompt) for job in batch)
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, job in enumerate(batch):
            start = width - len(job.prompt)
            ids[row, start:] = torch.frombuffer(job.prompt, dtype=torch.int32)
            mask[row, start:] = 1
        ended = set[int]()

        def row_ends(input_ids: Any, scores: Any, **_: Any) -> Any:
            """A stopping criterion: a row ends at a stop token or at its budget, and is delivered then."""
            written = input_ids.shape[1] - width
            for row, token in enumerate(input_ids[:, -1].tolist()):
                stopped = token in self._stop_tokens
                if row not in ended and (stopped or written >= batch[row].sampling.budget):
                    ended.add(row)
                    on_row(batch[row], input_ids[row, width:].tolist(), stopped)
            flags = [row in ended for row in range(len(batch))]
            return torch.tensor(flags, device=input_ids.device)

        columns = max(1, PREFILL_TOKENS // len(batch))
        in_chunks = columns < width and not self._recurrent
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=max(job.sampling.budget for job in batch),
            prefill_chunk_size=columns if in_chunks else None,
        )
        temperature, top_p = _drawing(batch[0])
        processors = []
        if temperature > 0:
            seeds = [job.sampling.seed for job in batch]
            processors.append(_SeededDraw(seeds, temperature, top_p, model.device))
        # cuDNN's attention is left out: it rounds the same batch differently from run to run (docs/measurements.md).
        backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        with sdpa_kernel(backends):
            model.generate(
                ids.to(model.device),
                attention_mask=mask.to(model.device),
                generation_config=settings,
                logits_processor=processors,
                stopping_criteria=[row_ends],
            )


def _drawing(job: TokenRequest) -> tuple[float, float]:
    """Return temperature and top_p; greedy requests are equal whatever their top_p."""
    temperature = job.sampling.require_temperature()
    return (temperature, job.sampling.top_p) if temperature > 0 else (0.0, 1.0)


class _SeededDraw:
    """A logits processor that leaves each row only the token that its own seed draws (Gumbel-max: the largest quotient
    of a probability and an exponential number), whatever the other rows are."""

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float, device: Any) -> None:
        import torch
        from transformers import TemperatureLogitsWarper, TopPLogitsWarper

        self._warpers = [TemperatureLogitsWarper(float(temperature)), TopPLogitsWarper(top_p)]
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        for warper in self._warpers:
            scores = warper(input_ids, scores)
        noise = []
        for generator in self._generators:
            noise.append(torch.empty_like(scores[0]).exponential_(generator=generator))
        quotients = scores.softmax(-1) / torch.stack(noise)
        tokens = quotients.argmax(-1, keepdim=True)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens, 0.0)
