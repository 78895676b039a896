"""Prices of hosted models, and totals of tokens and money."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal, InvalidOperation
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from h2htalk.chat.protocol import Request
from h2htalk.data.files import reading
from h2htalk.data.records import STRICT, read_record
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError, quoted, suggest

_NOTHING = Decimal(0)
# Dollars per million tokens: beyond the highest somebody mixed up the unit.
_Rate = Annotated[Decimal, Field(ge=0, le=100_000, decimal_places=8)]


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs: US dollars per million tokens. A price file has an entry of these fields for each model.

    Attributes:
        input, output: of the prompt, and of all that is written, reasoning included.
        cache_read: of the part of a prompt that was read from the provider's cache; None: as `input`.
        cache_write, cache_write_1h: of the part that was written there, for minutes or for an hour; None: unknown.
        batch: what a call in a batch costs of this, above 0 to 1; None: unknown.
        batch_cache: whether `cache_read` holds in batches; where it does not, such input counts as any other there.
        max_input_tokens: of a longer prompt the price is unknown.
        date: of the price list that says so. source, seen: where and when an entry was read.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    input: _Rate
    output: _Rate
    cache_read: _Rate | None = None
    cache_write: _Rate | None = None
    cache_write_1h: _Rate | None = None
    batch: Annotated[Decimal, Field(gt=0, le=1, decimal_places=4)] | None = None
    batch_cache: Annotated[bool, Field(strict=True)] = True
    max_input_tokens: Annotated[int, Field(gt=0, strict=True)] | None = None
    date: str = ""
    source: str = field(default="", compare=False)
    seen: datetime.date | None = field(default=None, compare=False)

    def cost(self, usage: Usage, batch: bool = False) -> Decimal | None:
        """What a call cost, in US dollars; None where usage or price are not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = self.cache_read if self.batch_cache or not batch else None
        parts = (
            (usage.cache_read_tokens or 0, self.input if cached is None else cached),
            (usage.cache_write_tokens or 0, self.cache_write),
            (usage.cache_write_1h_tokens or 0, self.cache_write_1h),
        )
        plain = usage.input_tokens - sum(tokens for tokens, _ in parts)
        if plain < 0 or any(n and rate is None for n, rate in parts):
            return None
        dollars = plain * self.input + usage.output_tokens * self.output + sum(n * (rate or 0) for n, rate in parts)
        return self._per_million(dollars, usage.input_tokens, batch)

    def worst(self, input_tokens: int, output_tokens: int, batch: bool = False) -> Decimal | None:
        """The most that a call of so many tokens can cost: all input at the dearest rate; None where unknown. The rate
        of caches that last an hour counts in batches alone, which ask for them."""
        rates = (self.input, self.cache_read, self.cache_write, self.cache_write_1h if batch else None)
        dearest = max(rate for rate in rates if rate is not None)
        return self._per_million(input_tokens * dearest + output_tokens * self.output, input_tokens, batch)

    def _per_million(self, dollars: Decimal, input_tokens: int, batch: bool) -> Decimal | None:
        """Return a millionth, at the price of batches; None where the price is unknown."""
        factor = self.batch if batch else 1
        covered = self.max_input_tokens is None or input_tokens <= self.max_input_tokens
        return dollars / 1_000_000 * factor if covered and factor is not None else None


class _File(BaseModel):
    model_config = STRICT

    date: datetime.date
    currency: Literal["USD"]
    models: dict[str, Price]


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by `ENGINE:MODEL`, exactly: a dated snapshot has its own price. `date` is the list's own, of an entry that
    a user's file gave see `Price.date`."""

    date: str
    models: Mapping[str, Price]

    def suggest(self, model: str) -> str:
        """Suggest the model of the same engine whose name resembles this one's."""
        engine, _, name = model.partition(":")
        own = [one for one in self.models if one.startswith(f"{engine}:")]
        return suggest(model, [one for one in own if suggest(name, [one.removeprefix(f"{engine}:")])])


def load_prices(path: Path | str = "") -> PriceList:
    """Load the bundled prices; models of a user's file replace bundled ones of the same name. Raises ConfigError, with
    file, model and key, for a file that cannot be read, or an entry that is not a price."""
    bundled = _read(files("h2htalk.chat").joinpath("prices.toml").read_text(encoding="utf-8"), "prices.toml")
    if not path:
        return bundled
    with reading(Path(path), ConfigError):
        own = _read(Path(path).read_text(encoding="utf-8-sig"), str(path))
    return PriceList(own.date, {**bundled.models, **own.models})


def _read(text: str, where: str) -> PriceList:
    try:
        # Numbers become Decimal at once, so that 0.15 is fifteen hundredths and not the nearest binary fraction.
        raw = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, InvalidOperation, RecursionError) as error:
        # ValueError: no TOML, or a number with thousands of digits.
        raise ConfigError(f"{where}: not a price file: {error}") from error
    file = read_record(_File, raw, where, error=ConfigError, unknown="see docs/reference/costs.md", as_python=True)
    date = file.date.isoformat()
    for model, price in file.models.items():
        # Its calls write into the provider's cache, at a price of its own.
        if model.startswith("anthropic:") and None in (price.cache_write, price.cache_write_1h):
            what = "cache_write and cache_write_1h are needed: US dollars per million tokens"
            raise ConfigError(f"{where}: {quoted(model)}: {what}")
    return PriceList(date, {model: replace(price, date=date) for model, price in file.models.items()})


# --- Money ------------------------------------------------------------------------------------------------------


def add(*dollars: Decimal | None) -> Decimal | None:
    """Return a sum, None as soon as one part is unknown."""
    return None if None in dollars else sum((amount for amount in dollars if amount is not None), _NOTHING)


def dollars_text(dollars: Decimal | None, at_most: bool = False) -> str:
    """Format dollars: cents from one dollar on, four decimals below it; `at_most` is rounded up, never down."""
    if dollars is None:
        return "unknown"
    places = Decimal("0.01") if dollars >= 1 or not dollars else Decimal("0.0001")
    if not at_most and 0 < dollars < places:
        return "less than 0.0001"
    return f"{dollars.quantize(places, ROUND_CEILING if at_most else ROUND_HALF_UP):,}"


def money_text(dollars: Decimal | None) -> str | None:
    """Format dollars for files: plain decimal digits, never an exponent."""
    return None if dollars is None else f"{dollars:f}"


# --- Rough counts of tokens, before a model's tokenizer is known ---------------------------------------------------


def prompt_tokens(request: Request) -> int:
    """Tokens of a request's messages."""
    return sum(rough_tokens(message.content) for message in request.messages)


def rough_tokens(text: str) -> int:
    """Four letters or one and a half Chinese characters a token."""
    ascii_letters = len(text.encode("ascii", "ignore"))
    return round(ascii_letters / 4 + (len(text) - ascii_letters) / 1.5)


@dataclass(slots=True)
class Totals:
    """The totals of a stage's calls. Every attempt is a call; dollars are exact, and None where unknown.
    `unmetered` of the paid calls came without a count of tokens. `usd_paid`: for replies that were counted;
    `usd_possible`: the most for possibly paid and unmetered calls; `usd_open`: for those that have not ended. `prices`:
    the date of the prices of the last calls; empty where their price is unknown."""

    calls: int = 0
    paid: int = 0
    free: int = 0
    possibly_paid: int = 0
    unmetered: int = 0
    open: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    usd_paid: Decimal | None = _NOTHING
    usd_possible: Decimal | None = _NOTHING
    usd_open: Decimal | None = _NOTHING
    prices: str = ""

    @property
    def usd_committed(self) -> Decimal | None:
        """The most that all calls so far can have cost."""
        return add(self.usd_paid, self.usd_possible, self.usd_open)

    def to_dict(self) -> dict[str, Any]:
        """As summaries and JSON have it; dollars as decimal text, null where unknown."""
        values = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: money_text(v) if isinstance(v, Decimal) else v for name, v in values}


def sum_totals(stages: Iterable[Totals]) -> Totals:
    """Add the totals of several stages; `prices` lists each date among them."""
    totals = list(stages)
    values: dict[str, Any] = {item.name: [getattr(one, item.name) for one in totals] for item in fields(Totals)}
    prices = ", ".join(sorted({*values.pop("prices")} - {""}))
    for name, parts in values.items():
        values[name] = add(*parts) if name.startswith("usd_") else sum(parts)
    return Totals(**values, prices=prices)
