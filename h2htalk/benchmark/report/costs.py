"""`h2htalk costs`: the costs of a run as text, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from h2htalk.benchmark.summary import Summary
from h2htalk.chat.store.call_store import read_calls, read_costs
from h2htalk.chat.store.records import (
    PaidCall,
    Totals,
    dollars_text,
    money_text,
    sum_totals,
)
from h2htalk.data.erasure.filter_files import require_erased
from h2htalk.data.files import refuse_links
from h2htalk.data.run_folder import RunFolder
from h2htalk.text.escaping import csv_text
from h2htalk.text.tables import NONE, Table, Value


def costs_text(run: Path, calls: bool = False, format: str = "terminal") -> str:
    """Format what a run or study paid, by stage and in total. It may still be in progress.

    Args:
        run: its folder, or that of a study or a workspace.
        calls: list every call as well (in CSV: instead).
        format: `terminal`, `csv` or `json`.
    """
    if not any((run / name).exists() for name in ("study.json", "workspace.json")):
        RunFolder(run).read_run()
    else:
        require_erased(run)
        refuse_links(run)
    costs = read_costs(run)
    if format == "json":
        # ASCII, because ids may contain anything and this may be printed on a terminal.
        return json.dumps(costs_json(costs, read_calls(run) if calls else None), indent=2)
    if format == "csv":
        return (calls_csv(read_calls(run)) if calls else costs_csv(costs)).rstrip("\n")
    if not costs:
        return "No call of this run cost money."
    lines = [call_table(read_calls(run)).to_terminal(), ""] if calls else []
    lines += [f"{stage}: {totals_text(totals)}" for stage, totals in costs.items()]
    if len(costs) > 1:
        lines.append(f"{IN_ALL}: {totals_text(sum_totals(costs.values()))}")
    return "\n".join(lines)


UNKNOWN = "unknown"
IN_ALL = "in all"
_TITLES = (
    *("Stage", "Calls", "Paid", "Free", "No reply", "Open", "Tokens in", "From cache", "Tokens out"),
    *("US dollars", "Possibly more", "Prices of"),
)
_CALL_FIELDS = (
    *("stage", "call", "items", "billing", "batch", "input_tokens", "cache_read_tokens", "output_tokens"),
    *("usd", "usd_at_most", "reason", "request_id"),
)


_CALL_TITLES = (
    *("stage", "call", "items", "ended", "tokens in", "from cache", "tokens out"),
    *("US dollars", "batch", "request"),
)


# How calls ended, in words for the terminal; files have those of `Billing`.
_BILLING = {"possibly_paid": "possibly paid"}

# --- Lines ------------------------------------------------------------------------------------------------------


def cost_lines(costs: Mapping[str, Totals]) -> list[str]:
    """Describe what a run cost in one sentence; no line where no call cost anything."""
    return [f"Cost: {totals_text(sum_totals(costs.values()))}"] if costs else []


def totals_text(totals: Totals) -> str:
    """Describe money, calls and tokens."""
    cached = f", {totals.cache_read_tokens:,} from cache" if totals.cache_read_tokens else ""
    price = "price unknown" if totals.usd_paid is None else f"{dollars_text(totals.usd_paid)} US dollars"
    parts = [
        f"{price} for {_calls(totals.paid - totals.unmetered)} ({totals.input_tokens:,} tokens in{cached}; "
        f"{totals.output_tokens:,} out)"
    ]
    doubtful = (
        (totals.possibly_paid, "whose reply never arrived"),
        (totals.unmetered, "whose reply named no usage"),
    )
    named = " and ".join(f"{_calls(n)} {why}" for n, why in doubtful if n)
    if named:
        parts.append(f"{_at_most(totals.usd_possible)} for {named}")
    if totals.open:
        parts.append(f"{_at_most(totals.usd_open)} for {_calls(totals.open)} still open")
    if totals.prices:
        parts.append(f"prices of {totals.prices}")
    return "; ".join(parts)


def _calls(number: int) -> str:
    return f"{number:,} call{'' if number == 1 else 's'}"


def _at_most(dollars: Decimal | None) -> str:
    return "an unknown amount more" if dollars is None else f"at most {dollars_text(dollars, True)} more"


def limit_lines(summary: Summary) -> list[str]:
    """Describe how far `--max-cost` let the run go, and how to continue; no line where it did not stop the run."""
    left = summary.counts.failures.get("max_cost", 0)
    if not left:
        return []
    totals = sum_totals(summary.costs.values())
    spent = f"{dollars_text(totals.usd_committed, True)} US dollars are spent or may be"
    rest = ""
    metered = totals.paid - totals.unmetered  # the others are no part of what was paid
    if totals.usd_paid and metered:
        # The average cost of a paid call: a call may hold several samples, so this is an upper estimate.
        rest = f", the rest will cost about {dollars_text(totals.usd_paid / metered * left)} at this rate"
    return [
        f"--max-cost stopped the run: {left:,} answer{'' if left == 1 else 's'} not asked for; {spent}{rest}. "
        "Raise --max-cost in the same command to go on."
    ]


# --- By stage ---------------------------------------------------------------------------------------------------


def cost_table(costs: Mapping[str, Totals]) -> Table:
    """One row for each stage, and a total where there are several; the note says what the run cost."""
    rows = [(name, *_values(totals)) for name, totals in _rows(costs)]
    return Table("Costs", _TITLES, rows, cost_lines(costs))


def _rows(costs: Mapping[str, Totals]) -> list[tuple[str, Totals]]:
    rows = list(costs.items())
    return [*rows, (IN_ALL, sum_totals(costs.values()))] if len(rows) > 1 else rows


def _values(totals: Totals) -> list[Value]:
    possible = _possible(totals)
    return [
        *(totals.calls, totals.paid, totals.free, totals.possibly_paid, totals.open),
        *(totals.input_tokens, totals.cache_read_tokens, totals.output_tokens),
        dollars_text(totals.usd_paid),
        UNKNOWN if possible is None else f"at most {dollars_text(possible, True)}" if possible else NONE,
        totals.prices or NONE,
    ]


def _possible(totals: Totals) -> Decimal | None:
    if totals.usd_possible is None or totals.usd_open is None:
        return None
    return totals.usd_possible + totals.usd_open


def costs_csv(costs: Mapping[str, Totals]) -> str:
    """Format the costs as CSV: one line for each stage and one for the total, exact; unknown amounts are marked."""
    rows = [(name, totals.to_dict()) for name, totals in [*costs.items(), (IN_ALL, sum_totals(costs.values()))]]
    headings = ["stage", *Totals().to_dict()]
    return csv_text(headings, ([name, *map(_cell, fields.values())] for name, fields in rows))


def costs_json(costs: Mapping[str, Totals], calls: Iterable[PaidCall] | None) -> Any:
    """Format the costs of each stage and the total as JSON; dollars are decimal text, null where unknown."""
    table: dict[str, Any] = {
        "stages": {stage: totals.to_dict() for stage, totals in costs.items()},
        "in_all": sum_totals(costs.values()).to_dict(),
    }
    return table if calls is None else table | {"calls": list(call_records(calls))}


# --- Call by call -----------------------------------------------------------------------------------------------


def call_records(calls: Iterable[PaidCall]) -> Iterator[dict[str, Any]]:
    """Yield one record for each call. `usd` is what it cost; where that is unknown, `usd_at_most` is the most it can
    have cost."""
    for call in calls:
        known, (_, dollars) = call.cost[0] == "usd_paid", call.cost
        values: Sequence[Any] = (
            call.stage,
            call.number,
            [f"{item_id}#{sample}" for item_id, sample in call.items],
            call.billing,
            call.batch,
            *(getattr(call.usage, key, None) for key in ("input_tokens", "cache_read_tokens", "output_tokens")),
            money_text(dollars) if known else None,
            None if known else money_text(dollars),
            call.reason or None,
            call.request_id,
        )
        yield dict(zip(_CALL_FIELDS, values, strict=True))


def calls_csv(calls: Iterable[PaidCall]) -> str:
    """Format the calls as CSV, one line each; unknown amounts are marked."""
    return csv_text(_CALL_FIELDS, (_call_cells(record) for record in call_records(calls)))


def call_table(calls: Iterable[PaidCall]) -> Table:
    """One row for each call, for the terminal."""
    rows = []
    for record in call_records(calls):
        ended = _BILLING.get(record["billing"], record["billing"])
        reason = f" ({record['reason']})" if record["reason"] else ""
        tokens = [record[key] for key in ("input_tokens", "cache_read_tokens", "output_tokens")]
        at_most = f"at most {record['usd_at_most']}" if record["usd_at_most"] else UNKNOWN
        facts = (record["usd"] or at_most, record["batch"] or "", record["request_id"] or "")
        rows.append((record["stage"], record["call"], " ".join(record["items"]), ended + reason, *tokens, *facts))
    return Table("", _CALL_TITLES, rows)


def _call_cells(record: Mapping[str, Any]) -> list[Any]:
    cells = {**record, "items": " ".join(record["items"])}
    if cells["usd"] is None and cells["usd_at_most"] is None:
        cells["usd"] = UNKNOWN
    return list(cells.values())


def _cell(value: object) -> object:
    return UNKNOWN if value is None else value
