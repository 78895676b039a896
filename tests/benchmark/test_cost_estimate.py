"""`--dry-run`: calls, tokens and money before anything is asked, without a key and without a trace."""

from __future__ import annotations

import json
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hosted_runs import MODELS
from providers import ProviderServer, price_file
from splits_made import write_split

from h2htalk.benchmark.evaluate import estimate, evaluate
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.errors import ConfigError

PRICED = re.compile(r"Price: about ([\d.,]+) US dollars .*, at most ([\d.,]+) if no reply is lost")
ITEMS = 6


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def spec_of(folder: Path, **settings: Any) -> EvaluateSpec:
    if not (folder / "split").exists():
        write_split(folder / "split", ITEMS)
        (folder / "prices.toml").write_text(price_file())
    common = {"split": str(folder / "split"), "out": str(folder / "run"), "embedder": "none", "baselines": False}
    hosted = {"model": MODELS["openai"], "prices": str(folder / "prices.toml")}
    return EvaluateSpec(**{**common, **(hosted if "model" not in settings else {}), **settings})


def priced(text: str) -> tuple[Decimal, Decimal]:
    found = PRICED.search(text)
    assert found, text
    return Decimal(found[1]), Decimal(found[2])


@pytest.mark.parametrize("provider", MODELS)
def test_the_greatest_cost_is_what_the_run_reserves_and_the_expected_one_is_near_the_bill(
    tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path, model=MODELS[provider], prices=str(tmp_path / "prices.toml"), max_tokens=64)
    message = estimate(spec)
    expected, greatest = priced(message)
    assert f"{ITEMS} calls, about " in message
    assert "(prices of 2026-11-20)" in message
    assert not (tmp_path / "run").exists()
    with ProviderServer() as server, patch.dict(os.environ, server.environment()):
        evaluate(spec)
        bill = server.bill()
    lines = [json.loads(line) for line in (tmp_path / "run/calls.jsonl").read_text().splitlines()]
    reserved = sum(Decimal(line["worst"]) for line in lines if "reserved" in line)
    assert reserved <= greatest < reserved + Decimal("0.0001")  # rounded up
    assert expected < bill * 3
    assert bill < expected * 3
    again = estimate(spec)
    assert f"0 calls ({ITEMS} answered already)" in again
    assert again.endswith(f"Price: nothing more. Paid already: {bill:.4f} US dollars.")


def test_an_unknown_price_is_unknown_and_says_how_to_name_it(tmp_path: Path) -> None:
    message = estimate(spec_of(tmp_path, model="openai:house-model"))
    assert message.endswith("Price: unknown: name it in a file with --prices.")
    with pytest.raises(ConfigError, match="max_cost: the price of openai:house-model is unknown"):
        estimate(spec_of(tmp_path, model="openai:house-model", max_cost=1.0))
    prices = 'date = "2026-11-20"\ncurrency = "USD"\n[models."openai:gpt-test"]\ninput = 1\noutput = 2\n'
    (tmp_path / "bare.toml").write_text(prices)
    own = {"model": MODELS["openai"], "prices": str(tmp_path / "bare.toml"), "batch": True}
    message = estimate(spec_of(tmp_path, **own, max_cost=1.0))
    assert "Price: unknown of a batch under the prices of 2026-11-20: name it in a file with --prices." in message
    assert message.endswith(" --max-cost refuses what may cost an unknown amount.")


def test_a_limit_that_is_too_low_is_said_before_the_run(tmp_path: Path) -> None:
    greatest = priced(estimate(spec_of(tmp_path)))[1]
    assert "--max-cost" not in estimate(spec_of(tmp_path, max_cost=float(greatest)))
    assert "may stop the run before its end." in estimate(spec_of(tmp_path, max_cost=float(greatest / 2)))
    assert "a batch is sent whole or not at all." in estimate(spec_of(tmp_path, max_cost=0.001, batch=True))


def test_what_a_running_batch_brings_is_not_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(tmp_path, batch=True)
    with ProviderServer() as server, patch.dict(os.environ, server.environment()):
        evaluate(spec)
    path = tmp_path / "run" / "calls.jsonl"  # as a kill in the middle of reading the results leaves it
    lines = path.read_text().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if '"call"' in line]
    path.write_text("".join(lines[: ends[2]]))
    message = estimate(spec)
    assert "0 calls (2 answered already)" in message
    assert "; reserved for 4 calls still open: at most 0." in message
    with pytest.raises(ConfigError, match=r"waits for batch job .*: add --batch"):
        estimate(spec_of(tmp_path))
