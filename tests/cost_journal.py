"""The money in a run's `calls.jsonl`, read by what `chat/store/call_store` documents alone, and added up by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

NOTHING = Decimal(0)


@dataclass(slots=True)
class JournalCall:
    """One call. `worst`: what was reserved for it; `usd`: what it cost, where a reply told."""

    number: int
    items: tuple[tuple[str, int], ...]
    worst: Decimal
    end: str = "open"
    usd: Decimal | None = None
    request_id: str | None = None

    @property
    def most(self) -> Decimal:
        """The most that it can have cost."""
        if self.end == "free":
            return NOTHING
        return self.worst if self.usd is None else self.usd

    def close(self, line: dict[str, Any]) -> None:
        """Take the line of its end; there is one at most."""
        assert self.end == "open", f"call {self.number} ended twice"
        self.end = {"possible": "possibly_paid"}.get(line.get("cost", "paid"), line.get("cost", "paid"))
        self.request_id = line.get("request_id")
        if line.get("usd") is not None:
            self.usd = Decimal(line["usd"])
            assert self.usd <= self.worst, "a call cost more than was reserved for it"


@dataclass(slots=True)
class Books:
    """All calls of a journal."""

    calls: list[JournalCall] = field(default_factory=list)

    @classmethod
    def read(cls, lines: Iterable[dict[str, Any]]) -> Books:
        calls: dict[int, JournalCall] = {}
        for line in lines:
            if "reserved" in line:
                items = tuple((line["id"], sample) for sample in line["samples"])
                calls[line["reserved"]] = JournalCall(line["reserved"], items, Decimal(line["worst"]))
            elif "call" in line:
                calls[line["call"]].close(line)
        books = cls(list(calls.values()))
        twice = [items for items, count in Counter(c.items for c in books.metered).items() if count > 1]
        assert not twice, f"{twice} were paid twice"
        return books

    @property
    def metered(self) -> list[JournalCall]:
        """Calls whose reply came and told what it cost."""
        return [call for call in self.calls if call.usd is not None]

    @property
    def open(self) -> list[JournalCall]:
        return [call for call in self.calls if call.end == "open"]

    @property
    def ends(self) -> Counter[str]:
        return Counter(call.end for call in self.calls if call.end != "open")

    @property
    def paid(self) -> Decimal:
        """US dollars for replies that came."""
        return sum((call.most for call in self.metered), NOTHING)

    @property
    def possible(self) -> Decimal:
        """US dollars at most, for calls that ended and whose bill nobody knows."""
        return sum((call.most for call in self.calls if call.usd is None and call.end != "open"), NOTHING)

    @property
    def most(self) -> Decimal:
        """The most that all calls can have cost, open ones included."""
        return sum((call.most for call in self.calls), NOTHING)

    def most_by_item(self) -> dict[str, Decimal]:
        """The same by item."""
        sums: defaultdict[str, Decimal] = defaultdict(Decimal)
        for call in self.calls:
            sums[call.items[0][0]] += call.most
        return sums
