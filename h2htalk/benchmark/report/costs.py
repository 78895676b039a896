"""`h2htalk costs`: what a run paid, as lines for people, or as CSV or JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

from h2htalk.benchmark.report.cost_text import (
    IN_ALL,
    call_lines,
    calls_csv,
    costs_csv,
    costs_json,
    totals_text,
)
from h2htalk.benchmark.run_costs import read_calls, read_costs
from h2htalk.chat.costs.reservations import sum_totals
from h2htalk.data.run_folder import RunFolder


def costs_text(run: Path, calls: bool = False, format: str = "terminal") -> str:
    """What a run paid, by stage and in all; it may still be running.

    Args:
        run: its folder.
        calls: every single call as well (in CSV: instead).
        format: `terminal`, `csv` or `json`.

    Raises:
        DataError: no run folder, or a journal that is damaged.
    """
    RunFolder(run).read_run()
    costs = read_costs(run)
    if format == "json":
        # ASCII, as ids may hold anything and this may be printed on a terminal.
        return json.dumps(costs_json(costs, read_calls(run) if calls else None), indent=2)
    if format == "csv":
        return (calls_csv(read_calls(run)) if calls else costs_csv(costs)).rstrip("\n")
    if not costs:
        return "No call of this run cost money."
    lines = [*call_lines(read_calls(run))] if calls else []
    lines += [f"{stage}: {totals_text(totals)}" for stage, totals in costs.items()]
    if len(costs) > 1:
        lines.append(f"{IN_ALL}: {totals_text(sum_totals(costs.values()))}")
    return "\n".join(lines)
