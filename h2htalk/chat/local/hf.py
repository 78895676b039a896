"""`hf:REPO_OR_PATH`: any causal language model of transformers, in this process.

Requests are batched by length. Greedy answers and seeded samples depend on the request alone, except for rounding:
in a batch with other neighbours the same prompt is computed in another order, which can decide a near-tie between two
tokens differently (very rarely in float32, sometimes in bfloat16). The order of the requests never matters. Only the
end-of-text tokens of the checkpoint's generation config are used; the request alone decides the sampling.

transformers' `generate` decodes a batch greedily, while a logits processor leaves each row only the token that its own
seed drew, and a stopping criterion delivers each row at its own end or budget.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.local.chat_template import (
    ChatTemplate,
    TokenRequest,
    read_reply,
    refuse_response_schema,
    tokenize_requests,
)
from h2htalk.chat.local.checkpoints import engine_versions, open_checkpoint
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

CPU_CACHE_BYTES = 2 << 30
GPU_CACHE_SHARE = 0.5  # of the memory that the weights leave free; activations need part of the rest
# Prompt tokens (padding included) of a forward pass: bounds the memory of the prefill's activations.
PREFILL_TOKENS = 8192

# Called when a row ends: its place in the batch, the new token ids (a stop token included), and whether it
# ended at a stop token (else at its max_tokens).
OnRow = Callable[[int, list[int], bool], None]


class TransformersChat:
    """A checkpoint from a folder or the Hugging Face Hub.

    Raises:
        ConfigError: no such model, no chat template, or a model that cannot be run.
        MissingExtraError: torch or transformers is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        checkpoint, self._model = open_checkpoint(name, options.download)
        self._where = f"hf:{name}"
        self._template = ChatTemplate(checkpoint.tokenizer, self._where)
        if not has_cache(self._model):
            raise ConfigError(f"hf:{name}: its architecture has no KV cache; serve it and use server:MODEL@URL")
        self._rows = 1 if is_recurrent(self._model) else max(1, options.concurrency)
        self._stop_tokens = checkpoint.stop_tokens()
        self._model.generation_config = type(self._model.generation_config)()  # the rest of it is not used
        self._context = checkpoint.context_tokens()
        self._subject = {
            "engine": "hf",
            **checkpoint.identity(),
            "chat_template_sha256": self._template.sha256,
            "system_role": "folded" if self._template.folds_system else "native",
            "engine_version": engine_versions(),
            "precision": str(self._model.dtype).removeprefix("torch."),
            "device": self._model.device.type,
        }

    @property
    def subject(self) -> Mapping[str, str]:
        """Engine, model and its weights, chat template, engine and versions, precision, device."""
        return self._subject

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`.

        Failures: `context_length`, `chat_template` (the template refuses the roles), `special_tokens` (a message
        contains one that cannot be read as plain text), `unreadable_text` (not valid Unicode), `out_of_memory`.
        """
        outcomes: list[Outcome | None] = [None] * len(requests)

        def finish(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            if on_done is not None:
                on_done(index, outcome)

        jobs = tokenize_requests(self._template, self._where, self._context, requests, finish)
        for job in jobs:
            refuse_response_schema(job.request, "hf:")
        for batch in self._batches(jobs):
            self._answer(batch, finish)
        return [outcome for outcome in outcomes if outcome is not None]

    def close(self) -> None:
        """Free the memory of the weights."""
        self._model = None

    def _batches(self, jobs: Sequence[TokenRequest]) -> Iterator[list[TokenRequest]]:
        """Group jobs of equal sampling and similar length, longest first, as many as rows and cache allow.

        Ties are ordered by id and sample: batches are the same for any order of the requests.
        """
        budget = self._cache_tokens()
        batch: list[TokenRequest] = []
        longest = 0
        for job in sorted(jobs, key=_batch_order):
            if batch and (
                len(batch) >= self._rows
                or _drawing(job) != _drawing(batch[0])
                or max(longest, job.tokens) * (len(batch) + 1) > budget
            ):
                yield batch
                batch, longest = [], 0
            batch.append(job)
            longest = max(longest, job.tokens)
        if batch:
            yield batch

    def _cache_tokens(self) -> int:
        """Return how many tokens (padding included) the cache of one batch may hold."""
        config = self._model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        token_bytes: int = 2 * config.num_hidden_layers * heads * width * int(self._model.dtype.itemsize)
        return _cache_bytes(self._model) // token_bytes

    def _answer(self, batch: Sequence[TokenRequest], finish: OnDone) -> None:
        """Decode a batch; on out of memory decode its halves; a single request then fails."""
        left = dict(enumerate(batch))

        def on_row(place: int, tokens: list[int], stopped: bool) -> None:
            job = left.pop(place)
            # Decoding leaves out special tokens only, and a stop token may be an ordinary one.
            text, thinking = read_reply(self._template.decode(tokens[: len(tokens) - stopped]), job.thinks)
            usage = Usage(len(job.prompt), len(tokens))
            finish(job.index, Reply(text, "stop" if stopped else "length", usage, thinking))

        rows = [Row(job.prompt, job.sampling.budget, job.sampling.seed) for job in batch]
        temperature, top_p = _drawing(batch[0])
        try:
            generate_batch(self._model, rows, self._stop_tokens, on_row, temperature, top_p)
            return
        except OutOfMemory as error:
            message = str(error).splitlines()[0]
        _release(self._model)
        if len(batch) == 1:
            failure = Failure("out_of_memory", f"{batch[0].tokens} tokens do not fit in memory: {message}")
            finish(batch[0].index, failure)
            return
        rest = list(left.values())
        middle = (len(rest) + 1) // 2
        for half in (rest[:middle], rest[middle:]):
            if half:
                self._answer(half, finish)


def _batch_order(job: TokenRequest) -> tuple[Any, ...]:
    return (_drawing(job), -len(job.prompt), -job.sampling.budget, job.request.id, job.request.sample)


def _drawing(job: TokenRequest) -> tuple[float, float]:
    """Return temperature and top_p; greedy requests are equal whatever their top_p."""
    temperature = job.sampling.require_temperature()
    return (temperature, job.sampling.top_p) if temperature > 0 else (0.0, 1.0)


def _cache_bytes(model: Any) -> int:
    """Return how many bytes the cache of one batch may take.

    It depends on model and device, not on the free memory, so that batches are the same in every run.
    """
    import torch

    if model.device.type != "cuda":
        return CPU_CACHE_BYTES
    total = torch.cuda.get_device_properties(model.device).total_memory
    return int(GPU_CACHE_SHARE * max(0, total - model.get_memory_footprint()))


def _release(model: Any) -> None:
    """Free a failed batch's memory before its halves are tried."""
    import gc

    import torch

    gc.collect()
    if model.device.type == "cuda":
        torch.cuda.empty_cache()


# --- Decoding a batch ----------------------------------------------------------------------------------------------


class OutOfMemory(Exception):
    """The batch does not fit the device's memory. Internal: the engine halves the batch."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt to continue by at most `max_tokens` (1 or more) tokens."""

    prompt: array[int]
    max_tokens: int
    seed: int


def generate_batch(
    model: Any,
    rows: Sequence[Row],
    stop_tokens: frozenset[int],
    on_row: OnRow,
    temperature: float = 0.0,
    top_p: float = 1.0,
) -> None:
    """Continue all rows; `on_row` gets each in the step in which it ends.

    Args:
        model: a causal language model of transformers whose own generation config is empty.
        rows: at least one, each with a prompt that is not empty.
        stop_tokens: any of these ends a row.
        on_row: see `OnRow`; an exception from it stops the batch and is raised.
        temperature, top_p: shared by the batch; temperature 0 is greedy.

    Raises:
        OutOfMemory: rows that `on_row` got are valid, the others must be decoded again.
    """
    import torch
    from transformers import GenerationConfig

    width = max(len(row.prompt) for row in rows)
    longest = max(row.max_tokens for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, width - len(row.prompt) :] = torch.frombuffer(row.prompt, dtype=torch.int32)
        mask[place, width - len(row.prompt) :] = 1
    columns = max(1, PREFILL_TOKENS // len(rows))
    config = GenerationConfig(
        do_sample=False,
        max_new_tokens=longest,
        prefill_chunk_size=columns if columns < width and not is_recurrent(model) else None,
    )
    draw = [_SeededDraw(rows, temperature, top_p, model.device)] if temperature > 0 else []
    try:
        model.generate(
            ids.to(model.device),
            attention_mask=mask.to(model.device),
            generation_config=config,
            logits_processor=draw,
            stopping_criteria=[_RowEnds(rows, stop_tokens, on_row, width)],
        )
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(str(error)) from error
    except RuntimeError as error:
        # The CPU allocator has no type of its own.
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise OutOfMemory(str(error)) from error


class _SeededDraw:
    """A logits processor that leaves each row only the token that its own seed draws (Gumbel-max: the largest quotient
    of a probability and an exponential number), whatever the other rows are."""

    def __init__(self, rows: Sequence[Row], temperature: float, top_p: float, device: Any) -> None:
        import torch
        from transformers import TemperatureLogitsWarper, TopPLogitsWarper

        self._warpers = [TemperatureLogitsWarper(float(temperature)), TopPLogitsWarper(top_p)]
        self._generators = [torch.Generator(device).manual_seed(row.seed) for row in rows]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        for warper in self._warpers:
            scores = warper(input_ids, scores)
        noise = [torch.empty_like(scores[0]).exponential_(generator=one) for one in self._generators]
        tokens = (scores.softmax(-1) / torch.stack(noise)).argmax(-1, keepdim=True)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens, 0.0)


@dataclass(slots=True)
class _RowEnds:
    """A stopping criterion that ends a row at a stop token or at its own budget, and then delivers it."""

    rows: Sequence[Row]
    stop_tokens: frozenset[int]
    on_row: OnRow
    width: int
    ended: set[int] = field(default_factory=set)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        import torch

        written = input_ids.shape[1] - self.width
        for place, token in enumerate(input_ids[:, -1].tolist()):
            stopped = token in self.stop_tokens
            if place not in self.ended and (stopped or written >= self.rows[place].max_tokens):
                self.ended.add(place)
                self.on_row(place, input_ids[place, self.width :].tolist(), stopped)
        return torch.tensor([place in self.ended for place in range(len(self.rows))], device=input_ids.device)


def has_cache(model: Any) -> bool:
    """Whether the model's forward pass takes a KV cache and an attention mask, which a padded batch needs."""
    return {"past_key_values", "attention_mask"} <= set(inspect.signature(model.forward).parameters)


def is_recurrent(model: Any) -> bool:
    """Whether some layers keep a running state: padding would change it, so each row must run alone."""
    from transformers import DynamicCache
    from transformers.cache_utils import LinearAttentionCacheLayerMixin

    layers = DynamicCache(config=model.config).layers
    return any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
