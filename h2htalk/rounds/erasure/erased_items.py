"""What a round keeps of items that were erased from it: ids without content, and what annotators are paid for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# In the private folder; one line.
FILE = "erased.jsonl"


@dataclass(frozen=True, slots=True)
class ErasedItems:
    """The ids of all items that were erased from a round.

    Attributes:
        pending: those whose removal has begun and is not finished.
        events: number of the round's events when it began.
        given_to: ids of the annotators to whom they were assigned by name.
        paid: annotator id -> completed and skipped items among them, which stay paid.
    """

    items: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    events: int = 0
    given_to: tuple[str, ...] = ()
    paid: Mapping[str, tuple[int, int]] = field(default_factory=dict)
