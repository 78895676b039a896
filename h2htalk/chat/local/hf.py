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
from h2htalk.chat.local.chat_template import ChatTemplate, TokenRequest, read_reply, tokenize_requests
from h2htalk.chat.local.checkpoints import library_versions, open_checkpoint
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

CPU_CACHE_BYTES = 2 << 30
GPU_CACHE_SHARE = 0.5  # of the memory that the weights leave free; activations need part of the rest
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
        needed = {"attention_mask", "past_key_values", "cache"}  # by a padded batch; the second is `cache` from 5.24 on
        if len(needed & set(inspect.signature(self._model.forward).parameters)) < 2:
            raise ConfigError(f"hf:{name}: its architecture has no KV cache; serve it and use server:MODEL@URL")
        layers = DynamicCache(config=self._model.config).layers
        # Padding would change the running state of such layers, so each row must run alone.
        self._recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
        self._rows = 1 if self._recurrent else options.concurrency
        self._stop_tokens = checkpoint.stop_tokens()
        self._model.generation_config = type(self._model.generation_config)()  # the rest of it is not used
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
        jobs, outcomes = tokenize_requests(self._template.prompt, self._context, requests, on_done, "hf:")
        for batch in self._batches(jobs):
            self._answer(batch)
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """Free the memory of the weights."""
        self._model = None

    def _batches(self, jobs: Sequence[TokenRequest]) -> Iterator[list[TokenRequest]]:
        """Group jobs of equal sampling and similar length, longest first, as many as rows and cache allow. Ties are
        ordered by id and sample: batches are the same for any order of the requests."""

        def order(job: TokenRequest) -> tuple[Any, ...]:
            return _drawing(job), -len(job.prompt), -job.sampling.budget, job.request.id, job.request.sample

        budget, longest = self._cache_tokens(), 0
        batch: list[TokenRequest] = []
        for job in sorted(jobs, key=order):
            longest = max(longest, job.tokens)
            full = len(batch) >= self._rows or longest * (len(batch) + 1) > budget
            if batch and (full or _drawing(job) != _drawing(batch[0])):
                yield batch
                batch, longest = [], job.tokens
            batch.append(job)
        if batch:
            yield batch

    def _cache_tokens(self) -> int:
        """Return how many tokens (padding included) the cache of one batch may hold: by model and device, not by the
        free memory, so that batches are the same in every run."""
        import torch

        model, config = self._model, self._model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        token_bytes: int = 2 * config.num_hidden_layers * heads * width * int(model.dtype.itemsize)
        if model.device.type != "cuda":
            return CPU_CACHE_BYTES // token_bytes
        total = torch.cuda.get_device_properties(model.device).total_memory
        return int(GPU_CACHE_SHARE * max(0, total - model.get_memory_footprint())) // token_bytes

    def _answer(self, batch: Sequence[TokenRequest]) -> None:
        """Decode a batch; on out of memory decode the halves of what is left; a single request then fails."""
        import gc

        import torch

        left = list(batch)

        def on_row(job: TokenRequest, tokens: list[int], stopped: bool) -> None:
            left.remove(job)
            # Decoding leaves out special tokens only, and a stop token may be an ordinary one.
            text, thinking = read_reply(self._template.decode(tokens[: len(tokens) - stopped]), job.thinks)
            job.finish(Reply(text, "stop" if stopped else "length", Usage(len(job.prompt), len(tokens)), thinking))

        try:
            self._generate(batch, on_row)
            return
        except RuntimeError as error:  # the CPU allocator has no type of its own
            if not isinstance(error, torch.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
                raise
            message = str(error).splitlines()[0]
        gc.collect()  # frees the failed batch's memory
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        if len(batch) == 1:
            batch[0].finish(Failure("out_of_memory", f"{batch[0].tokens} tokens do not fit in memory: {message}"))
            return
        middle = (len(left) + 1) // 2
        for half in filter(None, (left[:middle], left[middle:])):
            self._answer(half)

    def _generate(self, batch: Sequence[TokenRequest], on_row: Callable[[TokenRequest, list[int], bool], None]) -> None:
        """Continue all prompts of a batch; `on_row` gets each in the step in which it ends, with its new tokens (a stop
        token included), and whether it ended at a stop token, else at its budget."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from transformers import GenerationConfig

        model, width, ended = self._model, max(len(job.prompt) for job in batch), set[int]()
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for place, job in enumerate(batch):
            ids[place, width - len(job.prompt) :] = torch.frombuffer(job.prompt, dtype=torch.int32)
            mask[place, width - len(job.prompt) :] = 1

        def row_ends(input_ids: Any, scores: Any, **_: Any) -> Any:
            """A stopping criterion: a row ends at a stop token or at its own budget, and is delivered then."""
            written = input_ids.shape[1] - width
            for place, token in enumerate(input_ids[:, -1].tolist()):
                stopped = token in self._stop_tokens
                if place not in ended and (stopped or written >= batch[place].sampling.budget):
                    ended.add(place)
                    on_row(batch[place], input_ids[place, width:].tolist(), stopped)
            return torch.tensor([place in ended for place in range(len(batch))], device=input_ids.device)

        columns = max(1, PREFILL_TOKENS // len(batch))
        temperature, top_p = _drawing(batch[0])
        seeds = [job.sampling.seed for job in batch]
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=max(job.sampling.budget for job in batch),
            prefill_chunk_size=columns if columns < width and not self._recurrent else None,
        )
        # cuDNN's attention is left out: it rounds the same batch differently from run to run (docs/measurements.md).
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            model.generate(
                ids.to(model.device),
                attention_mask=mask.to(model.device),
                generation_config=settings,
                logits_processor=[_SeededDraw(seeds, temperature, top_p, model.device)] if temperature > 0 else [],
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
        noise = [torch.empty_like(scores[0]).exponential_(generator=one) for one in self._generators]
        tokens = (scores.softmax(-1) / torch.stack(noise)).argmax(-1, keepdim=True)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens, 0.0)
