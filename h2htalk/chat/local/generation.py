"""Decode a batch with transformers' `generate`, each row with its own seed, budget and end.

`generate` itself samples from one global generator, so a row's text would depend on its neighbours. Here it decodes
greedily, and a logits processor leaves each row only the token that its own seed drew. A stopping criterion ends each
row at its own budget and delivers it in that step.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Prompt tokens (padding included) of a forward pass: bounds the memory of the prefill's activations.
PREFILL_TOKENS = 8192

# Called when a row ends: its place in the batch, the new token ids (a stop token included), and whether it
# ended at a stop token (else at its max_tokens).
OnRow = Callable[[int, list[int], bool], None]


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
    draw = [_SeededDraw(rows, temperature, top_p, width)] if temperature > 0 else []
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
    """A logits processor that leaves each row only the token that its own seed draws."""

    def __init__(self, rows: Sequence[Row], temperature: float, top_p: float, width: int) -> None:
        import torch

        self._temperature, self._top_p, self._width = temperature, top_p, width
        # The CPU's generator gives the same numbers whatever device the model runs on.
        self._uniforms = torch.zeros((len(rows), max(row.max_tokens for row in rows)), dtype=torch.float64)
        for place, row in enumerate(rows):
            generator = torch.Generator().manual_seed(row.seed)
            self._uniforms[place, : row.max_tokens] = torch.rand(
                row.max_tokens, generator=generator, dtype=torch.float64
            )

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        uniform = self._uniforms[:, input_ids.shape[1] - self._width].to(scores.device)
        tokens = sample_tokens(scores, self._temperature, self._top_p, uniform)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens[:, None], 0.0)


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


def sample_tokens(logits: Any, temperature: float, top_p: float, uniform: Any) -> Any:
    """Sample one token for each row by inverting the cumulative distribution at the row's own uniform number.

    A row's token depends on its logits and its number alone, never on other rows.

    Args:
        logits: (rows, vocabulary).
        temperature: above 0.
        top_p: in (0, 1]; below 1 only the smallest set of most likely tokens whose sum reaches it is
            considered (nucleus sampling, Holtzman et al. 2020).
        uniform: (rows,), float64 in [0, 1).

    Returns:
        (rows,) token ids.
    """
    import torch

    # float64: over 150,000 tokens the rounding of a float32 sum would exceed many tokens' probability.
    probabilities = torch.softmax(logits.double() / temperature, dim=-1)
    order = None
    if top_p < 1:
        probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = probabilities.cumsum(-1) - probabilities
        probabilities = probabilities.masked_fill(before >= top_p, 0.0)
    cumulative = probabilities.cumsum(-1)
    target = uniform[:, None] * cumulative[:, -1:]
    place = torch.searchsorted(cumulative, target, right=True).clamp(max=cumulative.shape[-1] - 1)
    return (place if order is None else order.gather(-1, place)).squeeze(-1)


def has_cache(model: Any) -> bool:
    """Whether the model's forward pass takes a KV cache and an attention mask, which a padded batch needs."""
    return {"past_key_values", "attention_mask"} <= set(inspect.signature(model.forward).parameters)


def is_recurrent(model: Any) -> bool:
    """Whether some layers keep a running state: padding would change it, so each row must run alone."""
    from transformers import DynamicCache
    from transformers.cache_utils import LinearAttentionCacheLayerMixin

    layers = DynamicCache(config=model.config).layers
    return any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
