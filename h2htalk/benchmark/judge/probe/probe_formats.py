"""A probe for the terminal, as LaTeX, CSV and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, astuple, fields

from h2htalk.benchmark.judge.probe.probe_figures import Figure, Probe
from h2htalk.errors import counted
from h2htalk.text.escaping import csv_text
from h2htalk.text.tables import NONE, Table

_VERDICTS = {None: "", True: "measures", False: "does not measure"}


def probe_text(probe: Probe, format: str) -> str:
    """Format a probe as `terminal`, `csv`, `json` or `latex`, without a line end."""
    if format == "csv":
        return csv_text([one.name for one in fields(Figure)], map(astuple, probe.figures)).rstrip("\n")
    if format == "json":
        return json.dumps(asdict(probe), ensure_ascii=False, indent=2)
    header = ("language", "figure", "value", "95 % interval", "n", "verdict")
    rows = [_cells(one) for one in probe.figures]
    title = f"Probe of the judge {probe.judge}"
    if format == "latex":
        return Table(title, header, rows).to_latex().rstrip("\n")
    return Table(title, header, rows, list(_notes(probe))).to_terminal()


def _cells(one: Figure) -> tuple[str, ...]:
    interval = "" if one.value is None else f"{one.low:z.2f} to {one.high:z.2f}"
    value = NONE if one.value is None else f"{one.value:z.2f}"
    return one.language, one.name, value, interval, f"{one.n:,}/{one.total:,}", _VERDICTS[one.measures]


def _notes(probe: Probe) -> Iterator[str]:
    if probe.failed:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in probe.failed.items())
        calls = counted(sum(probe.failed.values()), "call")
        yield f"{calls} failed ({reasons}); the same command sends only what is missing"
    for why, message in probe.unread.items():
        yield from textwrap.wrap(f"the first reply that is {why}: {message}", 100)
    yield from textwrap.wrap(verdict(probe), 100)


def verdict(probe: Probe) -> str:
    """Say in one sentence what the table shows."""
    places: dict[str, list[str]] = {}
    for one in probe.figures:
        if one.measures is False:
            places.setdefault(one.name, []).append(one.language)
    if not places:
        return "This judge measures by every rule of the table; how far it agrees with people, only labels show."
    names = "; ".join(f"{name} ({', '.join(languages)})" for name, languages in places.items())
    return f"This judge is not shown to measure by {names}: rest no result on what these rows are about."
