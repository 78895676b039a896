"""How a run was answered and what it cost: `h2htalk costs`, lines for the terminal, `run.csv` and `costs.csv`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import Totals, dollars_text, money_text, sum_totals
from h2htalk.chat.store.call_store import PaidCall, read_costs, read_stores
from h2htalk.data.erasure.erased_ids import require_erased
from h2htalk.data.files import refuse_links, write_text
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import counted
from h2htalk.text.tables import Table

UNKNOWN = "unknown"
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")
_CALL_FIELDS = ("stage", "call", "items", "billing", "reason", *_TOKENS, "usd", "usd_at_most", "batch", "request_id")


def costs_text(run: Path, calls: bool = False, format: str = "terminal") -> str:
    """Format what a run, study or workspace paid, by stage and in total; it may still be in progress.

    `calls`: list every call as well (in CSV: instead). `format`: `terminal`, `csv` or `json`.
    """
    if not any((run / name).exists() for name in ("study.json", "workspace.json")):
        RunFolder(run).read_run()
    else:
        require_erased(run)
        refuse_links(run)
    costs = read_costs(run)
    listed = call_table(call for store in read_stores(run) for call in store.calls) if calls else None
    if format == "json":
        # ASCII, because ids may contain anything and this may be printed on a terminal.
        stages = {name: totals.to_dict() for name, totals in costs.items()}
        table = {"stages": stages, "in_all": sum_totals(costs.values()).to_dict()}
        return json.dumps(table | ({"calls": json.loads(listed.to("json"))["rows"]} if listed else {}), indent=2)
    if format == "csv":
        return (listed or cost_table(costs)).to_csv().rstrip("\n")
    if not costs:
        return "No call has a recorded price."
    lines = (f"{stage}: {totals_text(totals)}" for stage, totals in _rows(costs).items())
    return "\n".join([*([listed.to_terminal(), ""] if listed else []), *lines])


def cost_lines(costs: Mapping[str, Totals]) -> list[str]:
    """Describe what a run cost in one sentence; no line where no call cost anything."""
    return [f"Cost: {totals_text(sum_totals(costs.values()))}"] if costs else []


def totals_text(totals: Totals) -> str:
    """Describe money, calls and tokens."""
    cached = f", {totals.cache_read_tokens:,} from cache" if totals.cache_read_tokens else ""
    price = "price unknown" if totals.usd_paid is None else f"{dollars_text(totals.usd_paid)} US dollars"
    tokens = f"({totals.input_tokens:,} tokens in{cached}; {totals.output_tokens:,} out)"
    parts = [f"{price} for {counted(totals.paid - totals.unmetered, 'call')} {tokens}"]
    doubtful = (
        (totals.possibly_paid, "whose reply never arrived"),
        (totals.unmetered, "whose reply named no usage"),
    )
    if named := " and ".join(f"{counted(n, 'call')} {why}" for n, why in doubtful if n):
        parts.append(f"{_at_most(totals.usd_possible)} for {named}")
    if totals.open:
        parts.append(f"{_at_most(totals.usd_open)} for {counted(totals.open, 'call')} still open")
    return "; ".join([*parts, *([f"prices of {totals.prices}"] if totals.prices else [])])


def _at_most(dollars: Decimal | None) -> str:
    return "an unknown amount more" if dollars is None else f"at most {dollars_text(dollars, True)} more"


def limit_lines(summary: Summary) -> list[str]:
    """Describe how far `--max-cost` let the run go, and how to continue; no line where it did not stop the run."""
    if not (left := summary.counts.failures.get("max_cost", 0)):
        return []
    totals = sum_totals(summary.costs.values())
    rest = ""
    metered = totals.paid - totals.unmetered  # the others are no part of what was paid
    if totals.usd_paid and metered:
        # The average cost of a paid call: a call may hold several samples, so this is an upper estimate.
        rest = f", the rest will cost about {dollars_text(totals.usd_paid / metered * left)} at this rate"
    return [
        f"--max-cost stopped the run: {counted(left, 'answer')} not asked for; "
        f"{dollars_text(totals.usd_committed, True)} US dollars are spent or may be{rest}. "
        "Raise --max-cost in the same command to go on."
    ]


def _rows(costs: Mapping[str, Totals]) -> dict[str, Totals]:
    """The stages, and the total where there are several."""
    return dict(costs) | ({"in all": sum_totals(costs.values())} if len(costs) > 1 else {})


def cost_table(costs: Mapping[str, Totals]) -> Table:
    """One row for each stage, and a total where there are several, exact; the note says what the run cost."""
    rows = [
        (name, *(UNKNOWN if v is None else v for v in one.to_dict().values())) for name, one in _rows(costs).items()
    ]
    return Table("Costs", ("stage", *Totals().to_dict()), rows, cost_lines(costs))


def call_table(calls: Iterable[PaidCall]) -> Table:
    """One row for each call. `usd` is what it cost, or where that is unknown `usd_at_most` the most."""
    rows = []
    for call in calls:
        known, (_, dollars) = call.cost[0] == "usd_paid", call.cost
        amount = UNKNOWN if dollars is None else money_text(dollars)
        items = " ".join(f"{item_id}#{sample}" for item_id, sample in call.items)
        tokens = (getattr(call.usage, key, None) for key in _TOKENS)
        costs = (amount, None) if known or dollars is None else (None, amount)
        ended = (call.billing, call.reason or None)
        rows.append((call.stage, call.number, items, *ended, *tokens, *costs, call.batch, call.request_id))
    return Table("", _CALL_FIELDS, rows)


def write_facts(summary: Summary, folder: Path) -> None:
    """Write `run.csv`, how the run was answered, and `costs.csv`, what each stage paid, if any."""
    facts = Table("", ("fact", "value"), [("model", summary.model), *summary.answering.facts()])
    write_text(folder / "run.csv", facts.to_csv())
    if summary.costs:
        write_text(folder / "costs.csv", cost_table(summary.costs).to_csv())
