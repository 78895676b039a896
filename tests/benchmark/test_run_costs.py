"""A run's books: what is made when, what stays after an error, what a restart without batches may do."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from splits_made import write_split

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.run_costs import GENERATE, RunCosts, batch_folder, read_calls, read_costs
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.batch.job_journal import BatchJournal
from h2htalk.chat.calls import Bound
from h2htalk.chat.costs.ledger import Ledger
from h2htalk.chat.costs.reservations import Reservation, Settlement, Totals
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder, RunWriter
from h2htalk.data.signature import Signature
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError

MODEL = "openai:gpt-4o"
SIGNATURE = Signature({"items": "x"}, {"engine": "openai", "model": "gpt-4o"})
CALL = Bound(1000, 100)
PRICES = """date = "2026-11-20"
currency = "USD"
[models."openai:gpt-4o"]
input = "2"
output = "10"
batch = "0.5"
"""
WORST, USED, SPENT = Decimal("0.003"), Usage(400, 50), Decimal("0.0013")


def spec_of(folder: Path, **settings: Any) -> EvaluateSpec:
    (folder / "prices.toml").write_text(PRICES)
    common = {"model": MODEL, "split": str(folder / "split"), "out": str(folder / "run"), "embedder": "none"}
    return EvaluateSpec(**{**common, "prices": str(folder / "prices.toml"), **settings})


def writer_of(folder: Path) -> RunWriter:
    if not (folder / "split").exists():
        write_split(folder / "split", 3)
    return RunWriter(RunFolder(folder / "run"), {"samples": 1}, SIGNATURE, load_split(str(folder / "split")), {})


def ledger_of(costs: RunCosts) -> Ledger:
    ledger = costs.options().ledger
    assert ledger is not None
    return ledger


def things(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in (folder / "run").rglob("*")}


# --- What is made ------------------------------------------------------------------------------------------------


def test_nothing_is_made_before_the_run_folder_is_accepted(tmp_path: Path) -> None:
    costs = RunCosts(spec_of(tmp_path, batch=True))
    assert costs.options().batch == batch_folder(tmp_path / "run")
    costs.close()
    assert not (tmp_path / "run").exists()


def test_engines_that_cost_nothing_have_no_books(tmp_path: Path) -> None:
    costs = RunCosts(spec_of(tmp_path, model="embedded", prices=None))
    with pytest.raises(AssertionError):
        ledger_of(costs)
    writer = writer_of(tmp_path)
    costs.open(writer)
    writer.close()
    assert costs.spent() == ""
    assert not costs.unsettled
    assert read_costs(tmp_path / "run") == {}
    assert not (tmp_path / "run" / "costs").exists()


def test_the_engine_is_run_as_the_specification_says(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, concurrency=3, timeout=7.0, attempts=2, deadline=30.0, max_cost=0.1)
    options = RunCosts(spec).options()
    assert (options.concurrency, options.timeout, options.attempts, options.deadline) == (3, 7.0, 2, 30.0)
    assert options.batch is None
    ledger = options.ledger
    assert ledger is not None
    # 0.1 dollars are ten cents and not the binary fraction beside it.
    assert ledger.fits(Bound(0, 10_000))
    assert not ledger.fits(Bound(0, 10_001))


def test_a_limit_without_a_price_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the price of openai:house-model is unknown"):
        RunCosts(spec_of(tmp_path, model="openai:house-model", max_cost=1.0))
    assert not (tmp_path / "run").exists()


def test_a_refused_run_folder_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    write_split(tmp_path / "split", 3)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match=r"holds other files and no run\.json"):
        evaluate(spec_of(tmp_path, batch=True, baselines=False))
    assert things(tmp_path) == {"run/thesis.txt"}


# --- What a kill leaves ------------------------------------------------------------------------------------------


def killed(folder: Path, *stored: str, batch: str | None = None) -> None:
    """A start that reserved a call for each of three items, stored those, and was killed."""
    writer, costs = writer_of(folder), RunCosts(spec_of(folder, batch=batch is not None))
    costs.open(writer)
    for number in range(3):
        ledger_of(costs).reserve(((f"made-{number:05}", 0),), CALL, batch)
    for name in stored:
        writer.store(Response(name, 0, "I hear you.", "stop", USED))
    writer.store(FailedResponse("made-00002", 0, Failure("timeout", "none")))
    costs.close()
    writer.close()


def test_calls_that_a_kill_left_open_are_settled_by_the_stored_answers(tmp_path: Path) -> None:
    killed(tmp_path, "made-00001")
    assert read_costs(tmp_path / "run")[GENERATE].open == 3  # looking settles nothing
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
    costs.open(writer)
    assert costs.spent() == f"{SPENT} (+ 0.0060 possibly) US dollars"
    costs.close()
    writer.close()
    totals = read_costs(tmp_path / "run")[GENERATE]
    assert (totals.paid, totals.possibly_paid, totals.open) == (1, 2, 0)
    assert (totals.usd_paid, totals.usd_possible) == (SPENT, 2 * WORST)


def test_a_run_that_waits_for_a_batch_job_is_not_asked_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path, batch="0123456789ab")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0123456789ab")
    with BatchJournal(batch_folder(tmp_path / "run")) as journal:
        (record,) = journal.plan(MODEL, [[(("made-00000", 0),)]], 0.0)
        journal.note(record, "sending", 1.0)
        journal.note(record, "submitted", job="batch_77")
    before = (tmp_path / "run/costs/generate.jsonl").read_bytes()
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
    with pytest.raises(ConfigError, match=r"run: waits for batch job batch_77: add --batch$"):
        costs.open(writer)
    assert not costs.discard(writer)
    costs.close()
    again = RunCosts(spec_of(tmp_path, batch=True))
    again.open(writer)
    assert again.unsettled
    again.close()
    writer.close()
    assert (tmp_path / "run/costs/generate.jsonl").read_bytes() == before


@pytest.mark.parametrize("batch", [True, False])
def test_a_job_whose_journal_was_removed_is_possibly_paid_and_open_no_longer(batch: bool, tmp_path: Path) -> None:
    killed(tmp_path, batch="0123456789ab")
    open_calls = read_costs(tmp_path / "run")[GENERATE].open
    assert open_calls > 0
    costs, writer = RunCosts(spec_of(tmp_path, batch=batch)), writer_of(tmp_path)
    costs.open(writer)
    totals = ledger_of(costs).totals()
    assert (totals.open, totals.possibly_paid, totals.usd_possible) == (0, open_calls, open_calls * WORST / 2)
    costs.close()
    writer.close()


def test_a_batch_that_was_never_sent_gives_its_money_back(tmp_path: Path) -> None:
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path, batch=True))
    costs.open(writer)
    items = (("made-00000", 0),)
    with BatchJournal(batch_folder(tmp_path / "run")) as journal:
        (record,) = journal.plan(MODEL, [[items]], 0.0)
    ledger_of(costs).reserve(items, CALL, record.group)
    costs.close()
    live = RunCosts(spec_of(tmp_path))
    live.open(writer)
    assert ledger_of(live).totals().free == 1
    assert not live.unsettled
    live.close()
    writer.close()


# --- What an error leaves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("billing", ["free", "possibly_paid", "paid"])
def test_after_an_error_only_what_cost_nothing_is_removed(tmp_path: Path, billing: str) -> None:
    """A call that may have been paid stays on the books even where no answer came of it."""
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
    costs.open(writer)
    ledger = ledger_of(costs)
    reservation = ledger.reserve((("made-00000", 0),), CALL)
    if billing == "free":
        ledger.free(reservation, "unauthorized")
    elif billing == "possibly_paid":
        ledger.possibly_paid(reservation, "timeout")
    else:
        ledger.paid(reservation, USED)
    if costs.discard(writer):
        writer.discard()
    writer.close()
    assert (tmp_path / "run").exists() == (billing != "free")
    if billing != "free":
        assert read_costs(tmp_path / "run")[GENERATE].usd_committed in (WORST, SPENT)
        writer_of(tmp_path).close()  # and the same command goes on there


def test_the_books_of_an_earlier_session_are_never_removed(tmp_path: Path) -> None:
    for _ in range(2):
        writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
        costs.open(writer)
        ledger_of(costs).free(ledger_of(costs).reserve((("made-00000", 0),), CALL), "overloaded")
        costs.close()
        writer.close()
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
    costs.open(writer)
    assert not costs.discard(writer)
    writer.close()
    assert read_costs(tmp_path / "run")[GENERATE].free == 2


# --- What it says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
def test_an_unknown_price_is_said_and_not_shown_as_nothing(tmp_path: Path, lost: bool) -> None:
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path, model="openai:house-model"))
    costs.open(writer)
    ledger = ledger_of(costs)
    assert costs.spent() == "0.00 US dollars"  # nothing was asked yet
    call = ledger.reserve((("made-00000", 0),), CALL)
    if lost:
        ledger.possibly_paid(call, "timeout")
    else:
        ledger.paid(call, USED)
    assert costs.spent() == "price unknown"
    costs.close()
    writer.close()
    if not lost:
        assert read_costs(tmp_path / "run")[GENERATE] == Totals(
            calls=1, paid=1, input_tokens=400, output_tokens=50, usd_paid=None
        )


def test_every_call_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    writer, costs = writer_of(tmp_path), RunCosts(spec_of(tmp_path))
    costs.open(writer)
    ledger = ledger_of(costs)
    first, second = (ledger.reserve(((f"made-0000{n}", 0),), CALL) for n in range(2))
    ledger.paid(second, USED, "req_9")
    found = list(read_calls(tmp_path / "run"))
    costs.close()
    writer.close()
    assert found == [
        (GENERATE, Settlement(replace(second, worst=WORST), "paid", USED, SPENT, "req_9")),
        (GENERATE, Reservation(1, first.items, CALL, WORST)),
    ]
