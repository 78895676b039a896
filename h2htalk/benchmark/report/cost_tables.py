"""What a run, a study or a workspace paid: totals by stage, each call, and what `--max-cost` stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import Totals, dollars_text, money_text, sum_totals
from h2htalk.chat.store.call_records import PaidCall
from h2htalk.chat.store.call_store import read_costs, read_stores
from h2htalk.data.erasure.folder_kinds import require_erased
from h2htalk.data.files import refuse_links
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import counted
from h2htalk.text.tables import Table

UNKNOWN = "unknown"
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")
_CALL_FIELDS = (
    "stage",
    "call",
    "items",
    "billing",
    "reason",
    *_TOKENS,
    "usd",
    "usd_at_most",
    "batch",
    "request_id",
)


def costs_text(run: Path, calls: bool = False, format: str = "terminal") -> str:
    """Format what a run, study or workspace paid, by stage and in total; it may still be in progress.

    `calls`: list every call as well (in CSV: instead). `format`: `terminal`, `csv` or `json`.
    """
    if any((run / name).exists() for name in ("study.json", "workspace.json")):
        require_erased(run)
        refuse_links(run)
    else:
        RunFolder(run).read_run()
    costs = read_costs(run)
    paid_calls = None
    if calls:
        all_calls: list[PaidCall] = []
        for store in read_stores(run):
            all_calls += store.calls
        paid_calls = call_table(all_calls)
    if format == "json":
        # ASCII, because ids may contain anything and this may be printed on a terminal.
        stages = {name: totals.to_dict() for name, totals in costs.items()}
        record = {"stages": stages, "in_all": sum_totals(costs.values()).to_dict()}
        if paid_calls is not None:
            record["calls"] = json.loads(paid_calls.to("json"))["rows"]
        return json.dumps(record, indent=2)
    if format == "csv":
        return (paid_calls or cost_table(costs)).to_csv().rstrip("\n")
    if not costs:
        return "No call has a recorded price."
    lines = []
    if paid_calls is not None:
        rows = [(f"{stage} {call}", *cells) for stage, call, *cells in paid_calls.rows]
        lines += [Table("", ("call", *_CALL_FIELDS[2:]), rows).to_terminal(), ""]
    for stage, totals in _with_total(costs).items():
        lines.append(f"{stage}: {totals_text(totals)}")
    return "\n".join(lines)


def cost_lines(costs: Mapping[str, Totals]) -> list[str]:
    """Describe what a run cost in one sentence; no line where no call cost anything."""
    return [f"Cost: {totals_text(sum_totals(costs.values()))}"] if costs else []


def totals_text(totals: Totals) -> str:
    """Describe money, calls and tokens."""
    cached = ""
    if totals.cache_read_tokens:
        cached = f", {totals.cache_read_tokens:,} from cache"
    tokens = f"({totals.input_tokens:,} tokens in{cached}; {totals.output_tokens:,} out)"
    price = "price unknown"
    if totals.usd_paid is not None:
        price = f"{dollars_text(totals.usd_paid)} US dollars"
    elif totals.unpriced:
        price = f"price unknown (answers say {totals.unpriced})"
    texts = [f"{price} for {counted(totals.paid - totals.unmetered, 'call')} {tokens}"]
    doubtful = []
    if totals.possibly_paid:
        doubtful.append(f"{counted(totals.possibly_paid, 'call')} whose reply never arrived")
    if totals.unmetered:
        doubtful.append(f"{counted(totals.unmetered, 'call')} whose reply named no usage")
    if doubtful:
        texts.append(f"{_at_most(totals.usd_possible)} for {' and '.join(doubtful)}")
    if totals.open:
        texts.append(f"{_at_most(totals.usd_open)} for {counted(totals.open, 'call')} still open")
    if totals.prices:
        texts.append(f"prices of {totals.prices}")
    return "; ".join(texts)


def _at_most(dollars: Decimal | None) -> str:
    if dollars is None:
        return "an unknown amount more"
    return f"at most {dollars_text(dollars, at_most=True)} more"


def limit_lines(summary: Summary) -> list[str]:
    """Describe how far `--max-cost` let the run go, and how to continue; no line where it did not stop the run."""
    missing = summary.counts.failures.get("max_cost", 0)
    if not missing:
        return []
    totals = sum_totals(summary.costs.values())
    metered = totals.paid - totals.unmetered  # the others are no part of what was paid
    outlook = ""
    if totals.usd_paid and metered:
        # The average cost of a paid call: a call may hold several samples, so this is an upper estimate.
        dollars = dollars_text(totals.usd_paid / metered * missing)
        outlook = f", the rest will cost about {dollars} at this rate"
    return [
        f"--max-cost stopped the run: {counted(missing, 'answer')} not asked for; "
        f"{dollars_text(totals.usd_committed, True)} US dollars are spent or may be{outlook}. "
        "Raise --max-cost in the same command to go on."
    ]


def _with_total(costs: Mapping[str, Totals]) -> dict[str, Totals]:
    """The stages, and the total where there are several."""
    rows = dict(costs)
    if len(costs) > 1:
        rows["in all"] = sum_totals(costs.values())
    return rows


def cost_table(costs: Mapping[str, Totals]) -> Table:
    """One row for each stage, and a total where there are several, exact; the note says what the run cost."""
    rows = []
    for name, totals in _with_total(costs).items():
        values = totals.to_dict().values()
        rows.append([name, *(UNKNOWN if value is None else value for value in values)])
    return Table("Costs", ("stage", *Totals().to_dict()), rows, cost_lines(costs))


def call_table(calls: Iterable[PaidCall]) -> Table:
    """One row for each call. `usd` is what it cost, or where that is unknown `usd_at_most` the most."""
    rows = []
    for call in calls:
        items = " ".join(f"{item_id}#{sample}" for item_id, sample in call.items)
        tokens = [getattr(call.usage, key, None) for key in _TOKENS]
        sum_name, dollars = call.cost
        costs: tuple[str | None, ...] = (UNKNOWN, None)
        if dollars is not None:
            amount = money_text(dollars)
            costs = (amount, None) if sum_name == "usd_paid" else (None, amount)
        facts = (call.stage, call.number, items, call.billing, call.reason or None)
        rows.append((*facts, *tokens, *costs, call.batch, call.request_id))
    return Table("", _CALL_FIELDS, rows)
