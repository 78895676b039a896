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
_Factor = Annotated[Decimal, Field(gt=0, le=100, decimal_places=4)]
# The fields of `Usage` whose word may name another price than the list's, and the words by which the list's holds.
PRICE_WORDS: Mapping[str, tuple[str, ...]] = {
    "inference_geo": ("global", "not_available"),
    "speed": ("standard",),
    "service_tier": ("default", "standard"),
}
_BATCH = "batch"  # the tier of a batch job's answers, whose price is the factor `batch`


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs: US dollars per million tokens. A price file has an entry of these fields for each model.

    Attributes:
        input: price of the prompt.
        output: price of the whole reply, reasoning included.
        cache_read: price of the part of a prompt that was read from the provider's cache; None: as `input`.
        cache_write, cache_write_1h: price of the part that was written there, for minutes or for an hour; None:
            unknown.
        batch: factor on the price of a batch call, 0 < batch <= 1; None: unknown.
        batch_cache: whether `cache_read` holds in batches; where it does not, such input costs `input` there.
        max_input_tokens: the longest prompt with this price; a longer one has no known price.
        factors: what an answer costs that says one of these words of its price (`PRICE_WORDS`), as a factor of all of
            these; another word makes the price unknown.
        date: date of the price list.
        source, seen: where and when an entry was read.
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
    factors: Mapping[str, _Factor] = field(default_factory=dict)
    date: str = ""
    source: str = field(default="", compare=False)
    seen: datetime.date | None = field(default=None, compare=False)

    def cost(self, usage: Usage, batch: bool = False) -> Decimal | None:
        """Return the cost of a call, in US dollars; None where usage or price are not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cache_read = self.cache_read
        if cache_read is None or (batch and not self.batch_cache):
            cache_read = self.input
        cached = (
            (usage.cache_read_tokens or 0, cache_read),
            (usage.cache_write_tokens or 0, self.cache_write),
            (usage.cache_write_1h_tokens or 0, self.cache_write_1h),
        )
        uncached_tokens = usage.input_tokens
        dollars = usage.output_tokens * self.output
        for tokens, rate in cached:
            uncached_tokens -= tokens
            if tokens and rate is None:
                return None
            if rate:
                dollars += tokens * rate
        if uncached_tokens < 0:
            return None
        dollars += uncached_tokens * self.input
        for word in price_words(usage, batch):
            factor = self.factors.get(word)
            if factor is None:
                return None
            dollars *= factor
        return self._per_million(dollars, usage.input_tokens, batch)

    def worst(self, input_tokens: int, output_tokens: int, batch: bool = False) -> Decimal | None:
        """Return the most that a call of so many tokens can cost: all input at the highest rate, and the answer at the
        highest factor that the price knows; None where unknown.

        The rate of caches that last an hour counts in batches alone, which ask for them.
        """
        rates = [self.input, self.cache_read, self.cache_write]
        if batch:
            rates.append(self.cache_write_1h)
        highest = max(rate for rate in rates if rate is not None)
        dollars = input_tokens * highest + output_tokens * self.output
        for factor in self.factors.values():
            if factor > 1:
                dollars *= factor
        return self._per_million(dollars, input_tokens, batch)

    def _per_million(self, dollars: Decimal, input_tokens: int, batch: bool) -> Decimal | None:
        """Return a millionth, at the price of batches; None where the price is unknown."""
        factor = self.batch if batch else 1
        too_long = self.max_input_tokens is not None and input_tokens > self.max_input_tokens
        if factor is None or too_long:
            return None
        return dollars / 1_000_000 * factor


def price_words(usage: Usage, batch: bool = False) -> list[str]:
    """Return the words of an answer that name another price than the list's."""
    words = []
    for name, list_words in PRICE_WORDS.items():
        word = getattr(usage, name)
        is_batch_tier = batch and word == _BATCH
        if word is not None and word not in list_words and not is_batch_tier:
            words.append(word)
    return words


class _File(BaseModel):
    model_config = STRICT

    date: datetime.date
    currency: Literal["USD"]
    models: dict[str, Price]


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by `ENGINE:MODEL`, exactly: a dated snapshot has its own price.

    `date`: date of the list. An entry that replaces one of the list has its own (`Price.date`).
    """

    date: str
    models: Mapping[str, Price]

    def suggest(self, model: str) -> str:
        """Suggest the model of the same engine whose name resembles this one's."""
        engine, _, name = model.partition(":")
        prefix = f"{engine}:"
        similar = []
        for listed in self.models:
            if listed.startswith(prefix) and suggest(name, [listed.removeprefix(prefix)]):
                similar.append(listed)
        return suggest(model, similar)


def load_prices(path: Path | str = "") -> PriceList:
    """Load the bundled prices; models of a user's file replace bundled ones of the same name.

    Raises ConfigError, with file, model and key, for a file that cannot be read, or an entry that is not a price.
    """
    text = files("h2htalk.chat").joinpath("prices.toml").read_text(encoding="utf-8")
    bundled = _read(text, "prices.toml")
    if not path:
        return bundled
    with reading(Path(path), ConfigError):
        user_prices = _read(Path(path).read_text(encoding="utf-8-sig"), str(path))
    return PriceList(user_prices.date, {**bundled.models, **user_prices.models})


def _read(text: str, where: str) -> PriceList:
    try:
        # Numbers become Decimal at once, so that 0.15 is fifteen hundredths and not the nearest binary fraction.
        raw = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, InvalidOperation, RecursionError) as error:
        # ValueError: no TOML, or a number with thousands of digits.
        raise ConfigError(f"{where}: not a price file: {error}") from error
    file = read_record(
        _File, raw, where, error=ConfigError, unknown="see docs/reference/costs.md", coerce=True
    )
    date = file.date.isoformat()
    for model, price in file.models.items():
        # Its calls write into the provider's cache, at a price of its own.
        if model.startswith("anthropic:") and None in (price.cache_write, price.cache_write_1h):
            needed = "cache_write and cache_write_1h are needed: US dollars per million tokens"
            raise ConfigError(f"{where}: {quoted(model)}: {needed}")
    prices = {model: replace(price, date=date) for model, price in file.models.items()}
    return PriceList(date, prices)


# --- Money ------------------------------------------------------------------------------------------------------


def add(*dollars: Decimal | None) -> Decimal | None:
    """Return a sum, None as soon as an amount is unknown."""
    total = _NOTHING
    for amount in dollars:
        if amount is None:
            return None
        total += amount
    return total


def dollars_text(dollars: Decimal | None, at_most: bool = False) -> str:
    """Format dollars: cents from one dollar on, four decimals below it; `at_most` is rounded up, never down."""
    if dollars is None:
        return "unknown"
    step = Decimal("0.01") if dollars >= 1 or not dollars else Decimal("0.0001")
    if not at_most and 0 < dollars < step:
        return "less than 0.0001"
    rounded = dollars.quantize(step, ROUND_CEILING if at_most else ROUND_HALF_UP)
    return f"{rounded:,}"


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

    Attributes:
        unmetered: paid calls that came without a count of tokens.
        usd_paid: dollars for replies that were counted.
        usd_possible: the most for possibly paid and unmetered calls.
        usd_open: the most for calls that have not ended.
        prices: date of the prices of the last calls; empty where their price is unknown.
        unpriced: what answers said of a price that the list does not know.
    """

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
    unpriced: str = ""

    @property
    def usd_committed(self) -> Decimal | None:
        """The most that all calls so far can have cost."""
        return add(self.usd_paid, self.usd_possible, self.usd_open)

    def to_dict(self) -> dict[str, Any]:
        """As summaries and JSON have it; dollars as decimal text, null where unknown."""
        values = {}
        for item in fields(self):
            value = getattr(self, item.name)
            values[item.name] = money_text(value) if isinstance(value, Decimal) else value
        return values


def sum_totals(stages: Iterable[Totals]) -> Totals:
    """Add the totals of several stages; `prices` and `unpriced` list each text among them."""
    totals = list(stages)
    sums: dict[str, Any] = {}
    for item in fields(Totals):
        values = [getattr(stage, item.name) for stage in totals]
        if item.name in ("prices", "unpriced"):
            sums[item.name] = ", ".join(sorted({*values} - {""}))
        else:
            sums[item.name] = add(*values) if item.name.startswith("usd_") else sum(values)
    return Totals(**sums)
