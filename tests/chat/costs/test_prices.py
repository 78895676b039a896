"""The bundled price file: every entry says where and when it was read, and its prices stand in their order."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from h2htalk.chat.costs.prices import load_prices

TEXT = files("h2htalk.chat.costs").joinpath("prices.toml").read_text(encoding="utf-8")
FILE = tomllib.loads(TEXT)
MODELS: dict[str, dict[str, Any]] = FILE["models"]
OWN_PAGES = {
    "openai": {"developers.openai.com", "openai.com", "platform.openai.com"},
    "anthropic": {"platform.claude.com", "www.anthropic.com", "claude.com"},
}


@pytest.mark.parametrize("name", MODELS)
def test_prices_are_text_and_stand_in_their_order(name: str) -> None:
    entry = MODELS[name]
    assert all(isinstance(entry[key], str) for key in ("input", "output", "batch"))
    price = load_prices().models[name]
    assert price.output > price.input > 0
    assert price.batch == Decimal("0.5")
    assert price.cache_read is None or price.cache_read < price.input
    assert price.cache_write is None or price.cache_write == Decimal("1.25") * price.input
    assert price.cache_write_1h is None or price.cache_write_1h == 2 * price.input


@pytest.mark.parametrize("name", MODELS)
def test_a_price_is_the_providers_own_word(name: str) -> None:
    host = urlsplit(MODELS[name]["source"]).hostname
    assert host in OWN_PAGES[name.partition(":")[0]]


def test_the_example_in_the_comments_is_a_price_file(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("\n".join(line[6:] for line in TEXT.splitlines() if line.startswith("#     ")))
    own = load_prices(path)
    assert own.find("openai:gpt-4o-2024-11-20") is not None
    assert load_prices().find("openai:gpt-4o-2024-11-20") is None
    assert len(own.models) == len(MODELS) + 1
