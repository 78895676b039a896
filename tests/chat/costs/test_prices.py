"""What calls cost: exact to the last digit, unknown where a price is unknown, never zero by accident."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.prices import Price, load_prices
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError

SONNET = Price(*map(Decimal, ("3", "15", "0.30", "3.75", "6", "0.5")), max_input_tokens=200_000)
US = replace(SONNET, factors={"us": Decimal("1.1"), "flex": Decimal("0.5")})
BARE = Price(Decimal("2.50"), Decimal(10))
HEAD = 'date = "2026-11-20"\ncurrency = "USD"\n'
RATES = st.decimals(0, 100, places=4)
COUNTS = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("price", "usage", "batch", "dollars"),
    [
        (SONNET, Usage(1_000_000 // 5, 0), False, "0.6"),
        # 400 plain, 300 read, 200 written for minutes, 100 for an hour: each at its own price.
        (SONNET, Usage(1000, 0, 300, 200, 100), False, "0.00264"),
        (
            SONNET,
            Usage(1000, 100, reasoning_tokens=90),
            False,
            "0.0045",
        ),  # reasoning is part of the output
        (
            BARE,
            Usage(1000, 100, 800),
            False,
            "0.0035",
        ),  # no price for reading the cache: as any input
        # What is not known is unknown and not zero.
        (SONNET, Usage(None, 10), False, None),
        (SONNET, Usage(10, None), False, None),
        (SONNET, Usage(200_001, 1), False, None),  # beyond it another price holds
        (BARE, Usage(100, 1, 0, 5), False, None),  # written to a cache at a price that nobody named
        (BARE, Usage(100, 1), True, None),  # what a batch costs is not known
        (SONNET, Usage(100, 1, 60, 50), False, None),  # more from the cache than there is
    ],
)
def test_a_call_costs_its_parts_at_their_prices(
    price: Price, usage: Usage, batch: bool, dollars: str | None
) -> None:
    assert price.cost(usage, batch) == (Decimal(dollars) if dollars else None)


@given(
    rates=st.tuples(*[RATES] * 5),
    batch=st.booleans(),
    counts=st.tuples(*[COUNTS] * 5),
    spare=COUNTS,
)
def test_the_worst_case_is_never_passed_and_no_digit_is_lost(
    rates: tuple[Decimal, ...], batch: bool, counts: tuple[int, ...], spare: int
) -> None:
    price = Price(*rates, batch=Decimal("0.5"))
    plain, output, *cached = counts
    if not batch:
        cached[-1] = 0  # caches of an hour are asked for in batches only
    usage = Usage(plain + sum(cached), output, *cached)
    cost = price.cost(usage, batch)
    worst = price.worst(plain + sum(cached) + spare, output + spare, batch)
    assert cost <= worst
    tokens = zip((plain, output, *cached), rates, strict=True)
    exact = sum((n * Fraction(rate) for n, rate in tokens), Fraction()) / 10**6
    assert Fraction(cost) == (exact / 2 if batch else exact)


# 200,000 tokens of input, live and in a batch, at a price that knows `us` and `flex`.
WORDS = """
speed=standard service_tier=default        0.6      0.3
inference_geo=not_available                0.6      0.3
inference_geo=global service_tier=batch    unknown  0.3
inference_geo=us                           0.66     0.33
inference_geo=us service_tier=flex         0.33     0.165
inference_geo=us speed=fast                unknown  unknown
service_tier=priority                      unknown  unknown
inference_geo=eu                           unknown  unknown
"""


@pytest.mark.parametrize("line", WORDS.strip().splitlines())
def test_an_answer_costs_what_its_words_say_or_an_unknown_sum(line: str) -> None:
    """Inference in the US and other tiers were counted at the list price."""
    *words, live, batch = line.split()
    usage = Usage(200_000, 0, **dict(word.split("=") for word in words))
    for text, is_batch in ((live, False), (batch, True)):
        dollars = None if text == "unknown" else Decimal(text)
        assert US.cost(usage, is_batch) == dollars


def test_the_worst_case_counts_the_dearest_word_of_an_answer() -> None:
    """A call to a workspace whose models run in the US alone could cost more than was reserved for it."""
    dearest = Usage(1000, 100, 0, 1000, inference_geo="us")
    assert US.worst(1000, 100) == US.cost(dearest) == SONNET.worst(1000, 100) * Decimal("1.1")


def test_models_that_have_a_price_of_the_us_know_it() -> None:
    """The US price was told as the list's, exact to four digits."""
    usage = Usage(11_000, 220, inference_geo="us")
    models = load_prices().models
    assert models["anthropic:claude-opus-5"].cost(usage) == Decimal("0.06655")
    assert models["anthropic:claude-haiku-4-5"].cost(usage) is None


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_the_users_is_laid_over_the_bundled_one(tmp_path: Path) -> None:
    text = (
        'date = 2027-01-31\ncurrency = "USD"\n[models."openai:gpt-4o"]\ninput = 0.15\noutput = 3\n'
        '[models."openai:house-model"]\ninput = "1"\noutput = "2"\nbatch = 0.75\nmax_input_tokens = 1000\n'
        'seen = 2027-01-30\nsource = "the contract"\n'
    )
    prices = load_prices(written(tmp_path, text))
    assert prices.models.get("openai:house-model") == Price(
        Decimal(1), Decimal(2), batch=Decimal("0.75"), max_input_tokens=1000, date="2027-01-31"
    )
    # The whole entry is replaced, and a TOML number is the decimal that stands there.
    assert prices.models.get("openai:gpt-4o") == Price(
        Decimal("0.15"), Decimal(3), date="2027-01-31"
    )
    bundled = load_prices()
    assert prices.models.get("anthropic:claude-haiku-4-5") == bundled.models.get(
        "anthropic:claude-haiku-4-5"
    )
    assert len(prices.models) == len(bundled.models) + 1


ENTRY = HEAD + '[models."openai:m"]\ninput = "1"\noutput = "2"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date = ", r"not a price file: "),
        ('currency = "USD"\nmodels = {}', r"date: is missing"),
        ('date = "2026-11-20"\ncurrency = "EUR"\nmodels = {}', r"currency: .*not 'EUR'"),
        (HEAD + '[models."openai:m"]\ninput = "1"', r"openai:m.output: is missing"),
        (ENTRY.replace('"1"', '"-1"'), r"input: .*not '-1'"),
        (ENTRY.replace('"1"', "9" * 5000), r"not a price file: Exceeds the limit"),
        (ENTRY.replace('"1"', '"0.123456789"'), r"no more than 8 decimal places"),
        (ENTRY + 'batch = "0"', r"batch: must be above 0"),
        (ENTRY + 'factors = { us = "0" }', r"factors.us: must be above 0"),
        (ENTRY.replace("openai", "anthropic"), r"'anthropic:m': cache_write"),
    ],
)
def test_a_file_that_is_no_price_list_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"prices\.toml: .*{message}|prices\.toml: {message}"):
        load_prices(written(tmp_path, text))


TEXT = files("h2htalk.chat").joinpath("prices.toml").read_text(encoding="utf-8")
MODELS: dict[str, dict[str, Any]] = tomllib.loads(TEXT)["models"]
OWN_PAGES = {
    "openai": {"developers.openai.com", "openai.com", "platform.openai.com"},
    "anthropic": {"platform.claude.com", "www.anthropic.com", "claude.com"},
}


@pytest.mark.parametrize("name", MODELS)
def test_prices_are_text_in_their_order_and_the_providers_own_word(name: str) -> None:
    entry = MODELS[name]
    price = load_prices().models[name]
    assert all(isinstance(entry[key], str) for key in ("input", "output", "batch"))
    assert price.output > price.input > 0
    assert price.batch == Decimal("0.5")
    assert price.cache_read is None or price.cache_read < price.input
    assert price.cache_write is None or price.cache_write == Decimal("1.25") * price.input
    assert price.cache_write_1h is None or price.cache_write_1h == 2 * price.input
    assert urlsplit(entry["source"]).hostname in OWN_PAGES[name.partition(":")[0]]


def test_the_example_in_the_comments_is_a_price_file(tmp_path: Path) -> None:
    example = "\n".join(line[6:] for line in TEXT.splitlines() if line.startswith("#     "))
    own = load_prices(written(tmp_path, example))
    assert own.models.keys() - MODELS.keys() == {"openai:gpt-4o-2024-11-20"}
