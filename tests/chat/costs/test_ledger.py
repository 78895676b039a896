"""The ledger: every call is reserved before it is sent, none is forgotten, and the limit always holds."""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.calls import Bound
from h2htalk.chat.costs.cost_log import RunningTotals, read_cost_log
from h2htalk.chat.costs.ledger import CostLimitError, Ledger
from h2htalk.chat.costs.prices import Price
from h2htalk.chat.costs.reservations import Reservation, Totals
from h2htalk.data.responses import SampleKey, Usage
from h2htalk.errors import ConfigError, DataError

MODEL = "openai:m"
PRICE = Price(Decimal(2), Decimal(10), batch=Decimal("0.5"), max_input_tokens=10_000, date="2026-11-20")
CALL = Bound(1000, 100)  # at most 0.003 dollars
WORST = Decimal("0.003")
USED = Usage(400, 50)  # 0.0013 dollars
SPENT = Decimal("0.0013")
ITEM: tuple[SampleKey, ...] = (("a", 0),)


def opened(path: Path | None, **options: Any) -> Ledger:
    return Ledger(path, **{"model": MODEL, "price": PRICE} | options).open()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_call_is_on_disk_before_it_is_sent_and_settled_after(tmp_path: Path) -> None:
    path = tmp_path / "costs" / "generate.jsonl"
    with opened(path, limit=Decimal(5)) as ledger:
        reservation = ledger.reserve((("a", 0), ("a", 1)), CALL)
        assert reservation == Reservation(1, (("a", 0), ("a", 1)), CALL, WORST)
        assert lines(path) == [
            {"event": "opened", "stage": "generate", "model": MODEL, "prices": "2026-11-20", "limit": "5"},
            {"event": "sent", "call": 1, "items": [["a", 0], ["a", 1]], "bound": [1000, 100], "usd": "0.003"},
        ]
        assert ledger.totals() == Totals(calls=1, open=1, usd_open=WORST, prices="2026-11-20")
        ledger.paid(reservation, USED, "req_1")
    assert lines(path)[2] == {
        "event": "paid",
        "call": 1,
        "usage": {"input_tokens": 400, "output_tokens": 50},
        "usd": "0.0013",
        "request_id": "req_1",
    }


def test_every_end_of_a_call_is_counted_apart() -> None:
    ledger = opened(None)
    ends = [ledger.reserve(((name, 0),), CALL) for name in "abcde"]
    ledger.paid(ends[0], Usage(400, 50, cache_read_tokens=300, reasoning_tokens=20))
    ledger.paid(ends[1], None)  # a reply without its bill
    ledger.free(ends[2], "rate_limited")
    ledger.possibly_paid(ends[3], "timeout")
    totals = ledger.totals()
    assert totals == Totals(
        calls=5,
        paid=2,
        free=1,
        possibly_paid=1,
        unmetered=1,
        open=1,
        input_tokens=400,
        cache_read_tokens=300,
        output_tokens=50,
        usd_paid=SPENT,
        usd_possible=2 * WORST,
        usd_open=WORST,
        prices="2026-11-20",
    )
    assert totals.usd_committed == SPENT + 3 * WORST
    assert ledger.open_count == 1
    assert ledger.open_reservations() == [ends[4]]


def test_a_batch_is_booked_at_its_price_and_found_by_its_mark() -> None:
    ledger = opened(None)
    first, second = ledger.reserve_all([(ITEM, CALL), ((("b", 0),), CALL)], batch="mark")
    ledger.reserve(ITEM, CALL, batch="other")
    assert first.worst == WORST / 2
    ledger.paid(second, USED)
    assert ledger.open_reservations("mark") == [first]
    assert ledger.totals().usd_paid == SPENT / 2


def test_a_call_is_settled_once() -> None:
    ledger = opened(None)
    reservation = ledger.reserve(ITEM, CALL)
    ledger.free(reservation, "refused")
    for settle in (
        lambda: ledger.paid(reservation, USED),
        lambda: ledger.possibly_paid(reservation, "timeout"),
    ):
        with pytest.raises(ValueError, match="call 1 is settled already"):
            settle()
    assert ledger.totals().usd_committed == 0


# --- What is unknown --------------------------------------------------------------------------------------------


def test_without_a_price_everything_is_counted_and_dollars_are_unknown() -> None:
    ledger = opened(None, price=None)
    assert ledger.totals().usd_committed == 0
    ledger.free(ledger.reserve(ITEM, CALL), "refused")
    assert ledger.totals().usd_committed == 0  # what is free is free at any price
    reservation = ledger.reserve(ITEM, CALL)
    assert ledger.totals().usd_open is None
    ledger.paid(reservation, USED)
    totals = ledger.totals()
    assert (totals.usd_paid, totals.usd_open, totals.input_tokens, totals.prices) == (None, 0, 400, "")
    ledger.possibly_paid(ledger.reserve(ITEM, CALL), "timeout")
    assert ledger.totals().usd_possible is None


def test_a_price_that_is_named_later_counts_for_earlier_calls_too(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    with opened(path, price=None) as ledger:
        ledger.paid(ledger.reserve(ITEM, CALL), USED)
        ledger.possibly_paid(ledger.reserve(ITEM, CALL), "timeout")
        ledger.paid(ledger.reserve(ITEM, Bound(20_000, 0)), Usage(20_000, 0))
    with pytest.raises(ConfigError, match="holds calls whose price is unknown"):
        opened(path, limit=Decimal(1))  # the third is longer than the price reaches
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:5]))
    with opened(path, limit=Decimal(1)) as ledger:
        totals = ledger.totals()
        assert (totals.usd_paid, totals.usd_possible) == (SPENT, WORST)


# --- The limit --------------------------------------------------------------------------------------------------


def test_a_call_that_might_pass_the_limit_is_not_booked(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    with opened(path, limit=2 * WORST) as ledger:
        first = ledger.reserve(ITEM, CALL)
        assert ledger.fits(CALL)  # exactly
        second = ledger.reserve(ITEM, CALL)
        assert not ledger.fits(Bound(1, 0))
        before = path.read_bytes()
        with pytest.raises(CostLimitError, match=r"0\.0060 US dollars are spent or reserved, and this call may cost 0"):
            ledger.reserve(ITEM, Bound(1, 0))
        assert path.read_bytes() == before
        ledger.paid(first, USED)
        assert ledger.fits(Bound(800, 0))
        assert not ledger.fits(Bound(900, 0))
        assert ledger.fits(Bound(1600, 0), batch=True)
        ledger.possibly_paid(second, "timeout")  # possibly paid: nothing is given back
        assert not ledger.fits(Bound(900, 0))


def test_of_calls_that_do_not_fit_together_none_is_booked(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    with opened(path, limit=Decimal("0.004")) as ledger:
        with pytest.raises(
            CostLimitError, match=r"these 3 calls may cost 0\.0045 more: raise it, or ask less with --limit$"
        ):
            ledger.reserve_all([(ITEM, CALL)] * 3, batch="mark")
        assert ledger.open_count == 0
        assert path.read_bytes() == b""
        assert len(ledger.reserve_all([(ITEM, CALL)] * 2, batch="mark")) == 2


def test_a_call_whose_worst_case_is_unknown_never_fits_a_limit() -> None:
    ledger = opened(None, limit=Decimal(1_000_000))
    with pytest.raises(CostLimitError, match="what this call can cost is unknown"):
        ledger.reserve(ITEM, Bound(10_001, 1))
    ledger.paid(ledger.reserve(ITEM, CALL), Usage(1000, 0, cache_write_tokens=10))  # at a price nobody named
    with pytest.raises(CostLimitError, match="what was paid so far is unknown"):
        ledger.reserve(ITEM, CALL)


def test_what_earlier_starts_paid_counts_towards_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    with opened(path) as ledger:
        ledger.paid(ledger.reserve(ITEM, CALL), USED)
        ledger.possibly_paid(ledger.reserve(ITEM, CALL), "timeout")
    with opened(path, limit=SPENT + 2 * WORST) as ledger:
        assert ledger.fits(CALL)
        assert not ledger.fits(Bound(1001, 100))


# --- Kills ------------------------------------------------------------------------------------------------------


def test_what_a_kill_left_open_is_settled_by_the_stored_answers(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    usages = {("stored", 0): USED, ("several", 1): Usage(), ("unmetered", 0): Usage()}
    with opened(path) as ledger:
        for name in ("stored", "gone", "unmetered"):
            ledger.reserve(((name, 0),), CALL)
        ledger.reserve((("several", 0), ("several", 1)), CALL)
        waiting = ledger.reserve((("waiting", 0),), CALL, batch="mark")
    for _ in range(2):  # once: what was settled stays settled
        with opened(path, stored=usages.get) as ledger:
            totals = ledger.totals()
            assert (totals.paid, totals.possibly_paid, totals.unmetered, totals.open) == (3, 1, 2, 1)
            assert (totals.usd_paid, totals.usd_possible, totals.usd_open) == (SPENT, 3 * WORST, WORST / 2)
            assert ledger.open_reservations() == [waiting]
    assert [line["reason"] for line in lines(path) if line["event"] == "possibly_paid"] == ["interrupted"]


def test_the_journal_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    with opened(path) as ledger:
        ledger.reserve(ITEM, CALL)
    with pytest.raises(DataError, match="holds the calls of openai:m, not of openai:other"):
        opened(path, model="openai:other")
    opened(path).close()  # the lock was given back


# --- Whatever happens -------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(1, 4), st.integers(0, 3000), st.booleans()),
        st.tuples(st.just("settle"), st.integers(0, 9), st.sampled_from(["paid", "bare", "free", "possibly_paid"])),
        st.tuples(st.just("kill"), st.integers(0, 400)),
    ),
    max_size=30,
)


@given(steps=STEPS, limit=st.decimals(0, "0.03", places=4), share=st.integers(0, 100))
def test_the_limit_holds_whatever_breaks(steps: list[tuple[Any, ...]], limit: Decimal, share: int) -> None:
    """A provider that bills each call that went out, at its worst case at most, never gets more than the limit;
    what it billed lies within what the ledger says; and no call is settled twice or forgotten."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generate.jsonl"
        billed: dict[int, Decimal] = {}  # what the provider really took, a call
        stored: dict[SampleKey, Usage] = {}
        ledger = opened(path, limit=limit, stored=stored.get)
        for step in steps:
            if step[0] == "reserve":
                items = tuple((f"item-{len(billed)}", sample) for sample in range(step[1]))
                try:
                    reservation = ledger.reserve(items, Bound(step[2], 100), "mark" if step[3] else None)
                except CostLimitError:
                    continue
                used = Usage(step[2] * share // 100, share)
                billed[reservation.number] = PRICE.cost(used, step[3]) or Decimal(0)
            elif step[0] == "settle" and ledger.open_count:
                open_ones = ledger.open_reservations()
                reservation = open_ones[step[1] % len(open_ones)]
                used = Usage(reservation.bound.input_tokens * share // 100, share)
                if step[2] == "free":
                    billed[reservation.number] = Decimal(0)
                    ledger.free(reservation, "refused")
                elif step[2] == "possibly_paid":
                    ledger.possibly_paid(reservation, "timeout")
                else:
                    stored.update(dict.fromkeys(reservation.items, used))
                    ledger.paid(reservation, used if step[2] == "paid" else None)
            elif step[0] == "kill":
                ledger.close()
                whole = path.read_bytes()
                _lose_the_end_of_the_last_line(path, whole, step[1])
                ledger = opened(path, limit=limit, stored=stored.get)
                for number in [n for n in billed if n > ledger.totals().calls]:
                    del billed[number]  # it never went out: its line was not whole
            totals = ledger.totals()
            assert totals.usd_committed is not None
            assert totals.usd_committed <= limit
            assert sum(billed.values()) <= totals.usd_committed
            assert totals.paid + totals.free + totals.possibly_paid + totals.open == totals.calls == len(billed)
        again = RunningTotals(PRICE)
        ends = [end.reservation.number for end in read_cost_log(path, again)]
        assert len(set(ends)) == len(ends)
        assert again.totals() == ledger.totals()
        ledger.close()


def _lose_the_end_of_the_last_line(path: Path, whole: bytes, share: int) -> None:
    """As a kill in the middle of a `sent` line leaves it: that call never went out. A settlement may be torn too."""
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: start + (len(whole) - start) * share // 400])
