"""A KV cache with room for a whole batch from the start.

transformers' own dynamic cache copies the whole past of every layer for each token (24 rows of 1,500 tokens of
SmolLM2: 1.6 GB a step; on a CPU a step took 10 to 30 % longer). Here a token is written into its place, and
a row that ends gives its place to another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any


def make_cache(config: Any, columns: int) -> Any:
    """An empty cache for a model of that configuration.

    Args:
        config: the model's.
        columns: tokens a row, padding and answer included. Layers with a sliding window keep their own size.
    """
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    kv_cache = DynamicCache(config=config)
    room = _preallocated_layer()
    kv_cache.layers = [room(columns) if type(layer) is DynamicLayer else layer for layer in kv_cache.layers]
    return kv_cache


def survivors_order(running: int, ended: Sequence[int]) -> list[int]:
    """Which old place each new place takes its row from, so that few rows move: the last ones fill the gaps.

    Args:
        running: how many rows there were.
        ended: the places of those that ended.
    """
    gone = set(ended)
    left = running - len(gone)
    movers = [place for place in range(left, running) if place not in gone]
    return [movers.pop() if place in gone else place for place in range(left)]


@cache
def _preallocated_layer() -> Any:
    """The layer's class; made on first use, because its base comes with transformers."""
    from transformers.cache_utils import DynamicLayer

    class PreallocatedLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values (rows, heads, columns, width); `keys` and `values` are views of the part in use."""

        def __init__(self, columns: int) -> None:
            super().__init__()
            self._columns = columns

        def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
            super().lazy_initialization(key_states, value_states)
            self._rooms = [
                states.new_empty((*states.shape[:2], self._columns, states.shape[-1]))
                for states in (key_states, value_states)
            ]
            self._show(key_states.shape[0], 0)

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            start = self.keys.shape[-2]
            end = start + key_states.shape[-2]
            self._show(key_states.shape[0], end)
            self.keys[:, :, start:] = key_states
            self.values[:, :, start:] = value_states
            return self.keys, self.values

        def batch_select_indices(self, indices: Any) -> None:
            # In place: right because `survivors_order` never takes a row from before the place that it goes to.
            places = indices.tolist()
            for room in self._rooms:
                for place, source in enumerate(places):
                    if source != place:
                        room[place] = room[source]
            self._show(len(places), self.keys.shape[-2])

        def _show(self, rows: int, columns: int) -> None:
            self.keys, self.values = (room[:rows, :, :columns] for room in self._rooms)

    return PreallocatedLayer
