"""A probe for the terminal, as LaTeX, CSV and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, astuple, fields

from h2htalk.benchmark.judge.probe.probe_figures import Figure, Probe
from h2htalk.benchmark.report.latex import latex_escaped
from h2htalk.errors import counted
from h2htalk.text.escaping import csv_text

_VERDICTS = {None: "", True: "measures", False: "does not measure"}


def probe_text(probe: Probe, format: str) -> str:
    """Format a probe as `terminal`, `csv`, `json` or `latex`, without a line end."""
    if format == "csv":
        return csv_text([one.name for one in fields(Figure)], map(astuple, probe.figures)).rstrip("\n")
    if format == "json":
        return json.dumps(asdict(probe), ensure_ascii=False, indent=2)
    return "\n".join(_latex(probe) if format == "latex" else _lines(probe))


def _cells(one: Figure) -> tuple[str, ...]:
    interval = "" if one.value is None else f"{one.low:z.2f} to {one.high:z.2f}"
    value = "-" if one.value is None else f"{one.value:z.2f}"
    return one.language, one.name, value, interval, f"{one.n:,}/{one.total:,}", _VERDICTS[one.measures]


def _lines(probe: Probe) -> Iterator[str]:
    layout = "{:4} {:28} {:>6}  {:16} {:>9}  {}"
    yield probe.judge
    yield layout.format("", "", "value", "95 % interval", "n", "")
    yield from (layout.format(*_cells(one)).rstrip() for one in probe.figures)
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


def _latex(probe: Probe) -> Iterator[str]:
    yield from (
        "% needs \\usepackage{booktabs}",
        r"\begin{table}[t]",
        r"\centering",
        r"\begin{tabular}{llrrrl}",
        r"\toprule",
    )
    yield r"& & value & 95\,\% interval & $n$ & \\"
    yield r"\midrule"
    for one in probe.figures:
        language, name, *numbers, verdict = map(latex_escaped, _cells(one))
        yield " & ".join([language, name, *(text.replace("-", "$-$") for text in numbers), verdict]) + r" \\"
    yield from (r"\bottomrule", r"\end{tabular}")
    yield rf"\caption{{Probe of the judge {latex_escaped(probe.judge)}.}}"
    yield r"\end{table}"
