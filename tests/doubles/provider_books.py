"""The provider double's own books: every call that it computed and so charged for, delivered or not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from provider_model import Tokens

# US dollars per million tokens: what the double charges for its models, by kind of token.
PRICES: dict[str, dict[str, str]] = {
    "openai:gpt-test": {"input": "2.50", "output": "10.00", "cache_read": "1.25"},
    "openai:reasoner-test": {"input": "2.00", "output": "8.00", "cache_read": "0.50"},
    "anthropic:claude-test": {
        "input": "3.00",
        "output": "15.00",
        "cache_read": "0.30",
        "cache_write": "3.75",
        "cache_write_1h": "6.00",
    },
}
BATCH_FACTOR = Decimal("0.5")


@dataclass(frozen=True, slots=True)
class Charge:
    """One computed call.

    Attributes:
        model: `PROVIDER:MODEL`. item: its last user message. samples: how many replies it holds.
        delivered: every byte of the reply was handed to the connection, as far as the server can know.
        reported: the reply told its usage.
    """

    model: str
    item: str
    samples: int
    tokens: Tokens
    batch: bool
    request_id: str
    delivered: bool = False
    reported: bool = True

    @property
    def dollars(self) -> Decimal:
        """What this call costs by `PRICES`."""
        prices = PRICES[self.model]
        kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        sums = (getattr(self.tokens, kind) * Decimal(prices.get(kind, prices["input"])) for kind in kinds)
        return sum(sums, Decimal(0)) / 1_000_000 * (BATCH_FACTOR if self.batch else 1)


class Books:
    """All charges, in the order in which they were made; safe to read from another thread."""

    def __init__(self) -> None:
        self._charges: list[Charge] = []
        self._lock = threading.Lock()

    def add(self, charge: Charge) -> int:
        """Book a charge; its number is for `delivered`."""
        with self._lock:
            self._charges.append(charge)
            return len(self._charges) - 1

    def delivered(self, number: int) -> None:
        with self._lock:
            self._charges[number] = replace(self._charges[number], delivered=True)

    def charged(self) -> list[Charge]:
        with self._lock:
            return list(self._charges)

    def bill(self) -> Decimal:
        """US dollars in all."""
        return sum((charge.dollars for charge in self.charged()), Decimal(0))

    def by_item(self) -> Counter[str]:
        """Last user message -> replies that were charged for it."""
        counts: Counter[str] = Counter()
        for charge in self.charged():
            counts[charge.item] += charge.samples
        return counts


def price_file(prices: Mapping[str, Mapping[str, str]] = PRICES) -> str:
    """The double's prices as a price file that h2htalk reads."""
    lines = ['date = "2026-11-20"', 'currency = "USD"']
    for model, kinds in prices.items():
        lines.append(f'[models."{model}"]')
        lines += [f'{kind} = "{dollars}"' for kind, dollars in kinds.items()]
        lines += [f'batch = "{BATCH_FACTOR}"', 'source = "made up for a test"']
    return "\n".join(lines) + "\n"
