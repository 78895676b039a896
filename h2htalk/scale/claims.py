"""Claims of attempts on a shard's share of `--max-cost`.

Money is claimed before it is spent, in files of which each can be made once: what is claimed in all, or spent without a
claim, never exceeds the share, and what a killed attempt held is not given back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

from h2htalk.chat.prices import dollars_text, money_text
from h2htalk.chat.store.stage_calls import CostLimitError
from h2htalk.errors import ConfigError, DataError
from h2htalk.scale.storage_folder import StorageFolder

CLAIMS = 100  # of a share one claim is at least this part


@dataclass
class Claims:
    """What an attempt may spend of a shard's share: files 0001, 0002, ... with the name of an attempt and dollars.

    Attributes:
        claimed: what this attempt has claimed.
        spent_before: what earlier attempts spent at most, by their calls, in case they made no claims.
    """

    storage: StorageFolder
    attempt: str
    share: Decimal
    claimed: Decimal = Decimal(0)
    spent_before: Mapping[str, Decimal] = field(default_factory=dict)

    def claim(self, needed: Decimal) -> Decimal:
        """Claim until `needed` dollars in all are claimed; returns what is.

        Raises CostLimitError where less is left, ConfigError where the storage lets two writers make the same file.
        """
        probe = f"probe-{self.attempt}"
        if self.storage.create(probe, b"") and self.storage.create(probe, b""):
            raise ConfigError(
                f"{self.storage.address}: this storage does not keep two writers apart: leave out --max-cost"
            )
        while needed > self.claimed:
            committed, number = self._committed()
            lacking = needed - self.claimed
            available = self.share - committed
            if lacking > available:
                raise CostLimitError(
                    f"max_cost: {dollars_text(committed)} of this shard's share of {dollars_text(self.share)} US "
                    f"dollars are spent or claimed, and {dollars_text(lacking, True)} more may be needed: raise it "
                    "(--max-cost)"
                )
            self._write(number, min(max(lacking, self.share / CLAIMS), available))
        return self.claimed

    def give_back(self, spent: Decimal | None) -> None:
        """Give back what this attempt did not spend, at its end."""
        with suppress(DataError):  # the storage failed: it stays claimed
            while spent is not None and spent < self.claimed:
                _, number = self._committed()
                self._write(number, spent - self.claimed)

    def _committed(self) -> tuple[Decimal, int]:
        """What is claimed, or was spent without a claim, and the number of the next claim."""
        names = [name for name in self.storage.names() if name.isdecimal()]
        claimed = dict.fromkeys(self.spent_before, Decimal(0))
        for name in names:
            try:
                claim = json.loads(self.storage.read(name) or b"")
                # No NaN and no infinity can be quantized.
                dollars = Decimal(claim["usd"]).quantize(Decimal("1e-12"))
                if not dollars.is_finite():
                    raise ValueError("no number")
                attempt = claim["attempt"]
                claimed[attempt] = claimed.get(attempt, Decimal(0)) + dollars
            except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                raise DataError(
                    f"{self.storage.address}/{name}: not a claim that can be read; put it back"
                ) from error
        committed = Decimal(0)
        for attempt, dollars in claimed.items():
            committed += max(dollars, self.spent_before.get(attempt, Decimal(0)))
        return committed, 1 + max(map(int, names), default=0)

    def _write(self, number: int, amount: Decimal) -> None:
        content = json.dumps({"attempt": self.attempt, "usd": money_text(amount)}).encode()
        if self.storage.create(f"{number:04}", content):
            self.claimed += amount
