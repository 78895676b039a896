"""What calls cost: prices from a dated file, exact to the last digit. A price that is not known is None, never 0.

Money is US dollars as `Decimal`. Prices have at most 8 decimals, so that a call's cost has at most 18, and sums of
up to a thousand million dollars stay exact in Python's 28 digits.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.data.run import Usage
from h2htalk.errors import ConfigError, quoted

_MILLION = Decimal(1_000_000)
_HIGHEST = Decimal(100_000)  # dollars per million tokens: beyond it somebody mixed up the unit
_DECIMALS, _BATCH_DECIMALS = 8, 4
_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_OTHER_KEYS = ("batch", "batch_cache", "max_input_tokens", "source", "seen")
# Calls to these write into the provider's cache at a price of its own.
_CACHE_WRITERS = ("anthropic:",)


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs: US dollars per million tokens.

    Attributes:
        input, output: of the prompt, and of all that is written, reasoning included.
        cache_read: of the part of a prompt that was read from the provider's cache; None: as `input`.
        cache_write, cache_write_1h: of the part that was written there, for minutes or for an hour; None: unknown.
        batch: what a call in a batch costs of this, above 0 to 1; None: unknown.
        batch_cache: whether `cache_read` holds in batches; where it does not, such input counts as any other there.
        max_input_tokens: of a longer prompt the price is unknown.
        date: of the price list that says so.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    batch: Decimal | None = None
    batch_cache: bool = True
    max_input_tokens: int | None = None
    date: str = ""

    def cost(self, usage: Usage, batch: bool = False) -> Decimal | None:
        """What a call cost, in US dollars; None where usage or price are not known.

        A usage without counts of the cache is one without a cache.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = self.cache_read if self.batch_cache or not batch else None
        parts = (
            (usage.cache_read_tokens or 0, self.input if cached is None else cached),
            (usage.cache_write_tokens or 0, self.cache_write),
            (usage.cache_write_1h_tokens or 0, self.cache_write_1h),
        )
        plain = usage.input_tokens - sum(tokens for tokens, _ in parts)
        if plain < 0 or not self._covers(usage.input_tokens):
            return None
        dollars = plain * self.input + usage.output_tokens * self.output
        for tokens, rate in parts:
            if tokens and rate is None:
                return None
            dollars += tokens * (rate or 0)
        return self._in_batch(dollars / _MILLION, batch)

    def worst(self, input_tokens: int, output_tokens: int, batch: bool = False) -> Decimal | None:
        """The most that a call of so many tokens can cost: all input at the dearest rate; None where unknown.

        Caches that last an hour are asked for in batches only, so their rate counts there alone.
        """
        if not self._covers(input_tokens):
            return None
        rates = (self.input, self.cache_read, self.cache_write, self.cache_write_1h if batch else None)
        dearest = max(rate for rate in rates if rate is not None)
        return self._in_batch((input_tokens * dearest + output_tokens * self.output) / _MILLION, batch)

    def _covers(self, input_tokens: int) -> bool:
        return self.max_input_tokens is None or input_tokens <= self.max_input_tokens

    def _in_batch(self, dollars: Decimal, batch: bool) -> Decimal | None:
        if not batch:
            return dollars
        return None if self.batch is None else dollars * self.batch


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by `BACKEND:MODEL`; `date` is the list's own, of an entry that a user's file gave see `Price.date`."""

    date: str
    models: Mapping[str, Price]

    def find(self, model: str) -> Price | None:
        """The price of exactly this model (a dated snapshot may cost another than its family); None: unknown."""
        return self.models.get(model)


def load_prices(path: Path | None = None) -> PriceList:
    """The bundled prices, with those of a user's file laid over them, model by model.

    Raises:
        ConfigError: the file cannot be read, or an entry is not a price; names file, model and key.
    """
    bundled = _read(files("h2htalk.chat").joinpath("prices.toml").read_text(encoding="utf-8"), "prices.toml")
    if path is None:
        return bundled
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the price file cannot be read: {error}") from error
    own = _read(text, str(path))
    return PriceList(own.date, {**bundled.models, **own.models})


def _read(text: str, where: str) -> PriceList:
    try:
        # Numbers become Decimal at once, so that 0.15 is fifteen hundredths and not the nearest binary fraction.
        raw = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, InvalidOperation, RecursionError) as error:
        # ValueError: no TOML, or a number with thousands of digits.
        raise ConfigError(f"{where}: not a price file: {error}") from error
    unknown = sorted(set(raw) - {"date", "currency", "models"})
    if unknown:
        raise ConfigError(f"{where}: unknown key {quoted(unknown[0])}; choose from date, currency, models")
    if raw.get("currency") != "USD":
        raise ConfigError(f'{where}: currency is {quoted(raw.get("currency"))}; it must be "USD"')
    date, models = _read_date(raw.get("date"), f"{where}: date"), raw.get("models")
    if not isinstance(models, dict):
        raise ConfigError(f'{where}: names no model: write [models."openai:NAME"] above its input and output')
    return PriceList(date, {name: _read_price(entry, name, date, where) for name, entry in models.items()})


def _read_price(raw: object, model: str, date: str, where: str) -> Price:
    where = f"{where}: {quoted(model)}"
    if not isinstance(raw, dict):
        raise ConfigError(f"{where} must be a table of prices")
    known = (*_RATES, *_OTHER_KEYS)
    unknown = sorted(set(raw) - set(known))
    if unknown:
        raise ConfigError(f"{where}: unknown key {quoted(unknown[0])}; choose from {', '.join(known)}")
    required = ["input", "output"]
    if model.startswith(_CACHE_WRITERS):
        required += ["cache_write", "cache_write_1h"]
    missing = [key for key in required if key not in raw]
    if missing:
        raise ConfigError(f"{where}: {missing[0]} is missing: US dollars per million tokens")
    longest = raw.get("max_input_tokens")
    if longest is not None and (not isinstance(longest, int) or isinstance(longest, bool) or longest < 1):
        raise ConfigError(
            f"{where}: max_input_tokens is {quoted(longest)}; it must be a whole number above 0"
        )
    if not isinstance(raw.get("batch_cache", True), bool):
        raise ConfigError(f"{where}: batch_cache is {quoted(raw['batch_cache'])}; it must be true or false")
    if "seen" in raw:
        _read_date(raw["seen"], f"{where}: seen")
    batch = _read_number(raw["batch"], f"{where}: batch", _BATCH_DECIMALS) if "batch" in raw else None
    if batch is not None and not 0 < batch <= 1:
        raise ConfigError(f"{where}: batch is {batch}; it must be above 0, at most 1, such as 0.5")
    rates = {key: _read_number(raw[key], f"{where}: {key}", _DECIMALS) for key in _RATES if key in raw}
    return Price(
        **rates,
        batch=batch,
        batch_cache=raw.get("batch_cache", True),
        max_input_tokens=longest,
        date=date,
    )


def _read_number(value: Any, where: str, decimals: int) -> Decimal:
    """A number of at least 0, from text or a TOML number."""
    try:
        number = Decimal(value) if isinstance(value, str | int | Decimal) else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(value, bool) or not number.is_finite() or not 0 <= number <= _HIGHEST:
        raise ConfigError(f"{where} is {quoted(value)}; it must be a number from 0 to {_HIGHEST:,}")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > decimals:
        raise ConfigError(f"{where} is {quoted(value)}; it may have {decimals} decimals at most")
    return number


def _read_date(value: object, where: str) -> str:
    try:
        if isinstance(value, str):
            value = datetime.date.fromisoformat(value)
    except ValueError:
        value = None
    if not isinstance(value, datetime.date):
        raise ConfigError(f'{where} must be a day, such as "2026-11-20"')
    return value.isoformat()[:10]
