"""Where money shows: a sentence, tables, the page, the command. The unknown reads `unknown`, never 0."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hosted_made import call_of
from rich.console import Console
from summaries_made import made_summary

from h2htalk.benchmark.report.html_page import write_page
from h2htalk.benchmark.report.notes import cost_lines, costs_text, limit_lines, write_facts
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.summary import RunCounts
from h2htalk.chat.prices import Price, PriceList, Totals, dollars_text
from h2htalk.chat.protocol import Answer, Bound, FailedCall, Reply
from h2htalk.chat.store.call_store import CallStore, StageCalls
from h2htalk.data.responses import Usage

TOKENS = {"input_tokens": 38_211, "cache_read_tokens": 12_000, "output_tokens": 9_120}
MONEY = {"usd_paid": Decimal("1.234"), "usd_possible": Decimal("0.0499001")}
TOTALS = Totals(calls=470, paid=462, free=5, possibly_paid=3, **TOKENS, **MONEY, prices="2026-11-20")
LINE = "Cost: 1.23 US dollars for 462 calls (38,211 tokens in, 12,000 from cache; 9,120 out); at most 0.0500 more for 3"


@pytest.mark.parametrize(
    ("dollars", "shown", "at_most"),
    [
        ("0", "0.00", "0.00"),
        ("0.00001", "less than 0.0001", "0.0001"),
        ("0.01234", "0.0123", "0.0124"),
        ("12345.601", "12,345.60", "12,345.61"),
    ],
)
def test_money_for_people(dollars: str, shown: str, at_most: str) -> None:
    assert (dollars_text(Decimal(dollars)), dollars_text(Decimal(dollars), at_most=True)) == (shown, at_most)
    assert dollars_text(None) == "unknown"


def test_what_is_unknown_is_said() -> None:
    unknown = replace(TOTALS, usd_paid=None, usd_possible=None, unmetered=1, open=2, usd_open=None, prices="")
    assert cost_lines({"generate": unknown}) == [
        "Cost: price unknown for 461 calls (38,211 tokens in, 12,000 from cache; 9,120 out); an unknown amount more "
        "for 3 calls whose reply never arrived and 1 call whose reply named no usage; an unknown amount more for "
        "2 calls still open"
    ]


# --- A run's summary, tables and page ----------------------------------------------------------------------------


def test_the_terminal_the_tables_and_the_page_say_it(tmp_path: Path) -> None:
    summary = made_summary(costs={"generate": TOTALS})
    stream = io.StringIO()
    print_summary(summary, Console(file=stream, width=200))
    assert LINE in stream.getvalue()
    write_facts(summary, tmp_path / "tables")
    assert (tmp_path / "tables" / "costs.csv").read_text().splitlines()[1].startswith("generate,470,462,5,3,0,0,")
    write_page(tmp_path / "report.html", summary, iter(()))
    page = (tmp_path / "report.html").read_text()
    assert LINE in page
    assert '<a href="#costs">Costs</a>' in page


def test_after_the_limit_the_last_line_says_what_to_raise() -> None:
    counts = RunCounts(10, 6, 6, failures={"max_cost": 4})
    money = {"usd_paid": Decimal("1.2"), "usd_possible": Decimal("0.1")}
    summary = made_summary(costs={"generate": Totals(calls=8, paid=8, unmetered=2, **money)}, counts=counts)
    stream = io.StringIO()
    print_summary(summary, Console(file=stream, width=300), {"report": Path("report.html")})
    assert stream.getvalue().splitlines()[-1] == (
        "--max-cost stopped the run: 4 answers not asked for; 1.30 US dollars are spent or may be, the rest will cost "
        "about 0.8000 at this rate. Raise --max-cost in the same command to go on."
    )
    assert limit_lines(made_summary()) == []


# --- The command -------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a call of each end, one of them still open."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text('{"spec": {}}')
    price = Price(Decimal(2), Decimal(10), batch=Decimal("0.5"), date="2026-11-20")
    monkeypatch.setattr("secrets.token_hex", lambda size: "mark")
    with CallStore(folder / "calls.jsonl") as store:
        calls = StageCalls(store, "generate", "openai:m", prices=PriceList("", {"openai:m": price}))
        made = [calls.reserve(call_of(name), Bound(1000, 100)) for name in ("a", "b", "=c", "d")]
        calls.settle(
            made[0], Answer((Reply("Hi.", request_id="req_1"),), Usage(400, 50, cache_read_tokens=128), "req_1")
        )
        calls.settle(made[1], Answer((Reply("Hi."),), Usage()))
        calls.settle(made[2], FailedCall("rate_limited", "", "free"))
        calls.settle(made[3], FailedCall("timeout", "", "possibly_paid"))
        calls.plan([[(call_of("e", 2), Bound(1000, 100))]], 0.0)
    return folder


def test_every_call_is_listed_with_its_end(run: Path) -> None:
    _, *calls, _, total = costs_text(run, calls=True).splitlines()
    assert [" ".join(line.split()) for line in calls] == [
        "generate 1 a#0 paid - 400 128 50 0.0013 - - req_1",
        "generate 2 b#0 paid - - - - - 0.003 - -",
        "generate 3 =c#0 free rate_limited - - - 0 - - -",
        "generate 4 d#0 possibly_paid timeout - - - - 0.003 - -",
        "generate 5 e#0 e#1 open - - - - - 0.0015 mark -",
    ]
    assert total == (
        "generate: 0.0013 US dollars for 1 call (400 tokens in, 128 from cache; 50 out); at most 0.0060 more for 1 "
        "call whose reply never arrived and 1 call whose reply named no usage; at most 0.0015 more for 1 call still "
        "open; prices of 2026-11-20"
    )


def test_the_tables_hold_the_same(run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(costs_text(run, calls=True, format="csv"))))
    assert [row["usd"] or row["usd_at_most"] for row in rows] == ["0.0013", "0.003", "0", "0.003", "0.0015"]
    assert rows[2]["items"] == "'=c#0"  # no formula
    found = json.loads(costs_text(run, calls=True, format="json"))
    assert found["in_all"] == found["stages"]["generate"]
    assert [call["call"] for call in found["calls"]] == [1, 2, 3, 4, 5]
    assert "calls" not in json.loads(costs_text(run, format="json"))
    assert costs_text(run, format="csv").splitlines()[1].startswith("generate,5,2,1,1,1,1,400,128,50,0.0013,0.006,")
