"""Decoding a batch in transformers: left padding, KV cache, each row with its own end.

`generate()` is not used: it draws from one global generator, so a row's text would depend on its neighbours;
it keeps computing rows that have ended until the longest one ends; and it returns all rows at once. This loop
draws from each row's own seed, drops a row from the cache when it ends, and hands it over at that moment.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from h2htalk.chat.kv_cache import make_cache, survivors_order

# Prompt tokens (padding included) a forward pass: bounds the memory of the prefill's activations.
PREFILL_TOKENS = 8192

# Called when a row ends: its place in the batch, the new token ids (a stop token included), and whether it
# ended at a stop token (else at its max_tokens).
OnRow = Callable[[int, list[int], bool], None]


class OutOfMemory(Exception):
    """The batch does not fit the device's memory. Never leaves the package: batches are halved on it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt to continue by at most `max_tokens` (1 or more) tokens."""

    prompt: array[int]
    max_tokens: int
    seed: int


def decode_batch(
    model: Any,
    rows: Sequence[Row],
    stop_tokens: frozenset[int],
    on_row: OnRow,
    temperature: float = 0.0,
    top_p: float = 1.0,
) -> None:
    """Continue all rows; each is handed to `on_row` in the step in which it ends.

    Args:
        model: a causal language model of transformers, in evaluation mode.
        rows: at least one, each with a prompt that is not empty.
        stop_tokens: any of these ends a row.
        on_row: see `OnRow`; what it raises stops the batch and is passed on.
        temperature, top_p: shared by the batch, as top_p below 1 costs a sort of the vocabulary; 0 is greedy.

    Raises:
        OutOfMemory: rows that were handed over stand, the others must be decoded anew.
    """
    import torch

    with torch.inference_mode():
        longest = max(row.max_tokens for row in rows)
        batch = _Batch(model, [row.prompt for row in rows], longest)
        uniforms = _uniforms(rows, batch.device) if temperature > 0 else None
        running = list(range(len(rows)))
        written: list[list[int]] = [[] for _ in rows]
        logits = batch.prefill()
        for step in range(longest):
            if uniforms is None:
                tokens = logits.argmax(-1)
            else:
                tokens = sample_tokens(logits, temperature, top_p, uniforms[running, step])
            ended = []
            for place, (index, token) in enumerate(zip(running, tokens.tolist(), strict=True)):
                written[index].append(token)
                if token in stop_tokens or len(written[index]) >= rows[index].max_tokens:
                    ended.append(place)
                    on_row(index, written[index], token in stop_tokens)
            if len(ended) == len(running):
                return
            if ended:
                order = survivors_order(len(running), ended)
                running = [running[place] for place in order]
                tokens = tokens[order]
                batch.keep(order)
            logits = batch.step(tokens)


def sample_tokens(logits: Any, temperature: float, top_p: float, uniform: Any) -> Any:
    """Draw one token a row by inverting the cumulative distribution at the row's own uniform number.

    A row's token is a function of its logits and its number alone, so neighbours cannot change it.

    Args:
        logits: (rows, vocabulary).
        temperature: above 0.
        top_p: in (0, 1]; below 1 only the smallest set of most likely tokens whose sum reaches it is drawn
            from (nucleus sampling, Holtzman et al. 2020).
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


def _uniforms(rows: Sequence[Row], device: Any) -> Any:
    """(rows, longest max_tokens) numbers in [0, 1), each row's from its own seed.

    Drawn on the CPU, whose generator gives the same numbers whatever the model runs on.
    """
    import torch

    table = torch.zeros((len(rows), max(row.max_tokens for row in rows)), dtype=torch.float64)
    for place, row in enumerate(rows):
        generator = torch.Generator().manual_seed(row.seed)
        table[place, : row.max_tokens] = torch.rand(row.max_tokens, generator=generator, dtype=torch.float64)
    return table.to(device)


class _Batch:
    """The rows that still run: their cache, attention mask (rows, columns) and last positions."""

    def __init__(self, model: Any, prompts: Sequence[array[int]], max_tokens: int) -> None:
        import torch

        self.device = model.device
        self._model = model
        self._optional = forward_arguments(model) & {"position_ids", "logits_to_keep"}
        width = max(map(len, prompts))
        self._cache = make_cache(model.config, width + max_tokens)
        ids = torch.zeros((len(prompts), width), dtype=torch.long)
        mask = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.frombuffer(prompt, dtype=torch.int32)
            mask[row, width - len(prompt) :] = 1
        self._ids, self._mask = ids.to(self.device), mask.to(self.device)
        self._positions = (self._mask.cumsum(-1) - 1).clamp(min=0)

    def prefill(self) -> Any:
        """Read the prompts, some columns at a time; returns the logits (rows, vocabulary) that follow."""
        rows, width = self._ids.shape
        columns = width if is_recurrent(self._model) else max(1, PREFILL_TOKENS // rows)
        logits = None
        for start in range(0, width, columns):
            part = slice(start, min(width, start + columns))
            logits = self._forward(self._ids[:, part], self._mask[:, : part.stop], self._positions[:, part])
        self._positions = self._positions[:, -1:]
        return logits

    def step(self, tokens: Any) -> Any:
        """Append one token (rows,) to each row; returns the logits (rows, vocabulary) that follow."""
        import torch

        self._mask = torch.cat((self._mask, self._mask.new_ones((len(tokens), 1))), dim=1)
        self._positions = self._positions + 1
        return self._forward(tokens[:, None], self._mask, self._positions)

    def keep(self, places: Sequence[int]) -> None:
        """Go on with only the rows at these places, in this order (see `survivors_order`)."""
        import torch

        index = torch.tensor(places, device=self.device)
        with _memory_guard():
            self._cache.batch_select_indices(index)
        self._mask, self._positions = self._mask[index], self._positions[index]

    def _forward(self, ids: Any, mask: Any, positions: Any) -> Any:
        optional = {"position_ids": positions, "logits_to_keep": 1}
        with _memory_guard():
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                past_key_values=self._cache,
                use_cache=True,
                **{name: optional[name] for name in self._optional},
            )
        return output.logits[:, -1]


def forward_arguments(model: Any) -> frozenset[str]:
    """The names that the model's forward pass takes."""
    import inspect

    return frozenset(inspect.signature(model.forward).parameters)


def is_recurrent(model: Any) -> bool:
    """Whether some layers keep a running state: padding would flow into it, so its rows must run alone."""
    from transformers import DynamicCache
    from transformers.cache_utils import LinearAttentionCacheLayerMixin

    layers = DynamicCache(config=model.config).layers
    return any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)


@contextmanager
def _memory_guard() -> Iterator[None]:
    """Turn the engine's ways of saying that memory is short into OutOfMemory."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(str(error)) from error
    except RuntimeError as error:
        # The CPU allocator has no type of its own.
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise OutOfMemory(str(error)) from error
