"""Texts of the tables of boards and runs: figures with their intervals, costs, and what a row is marked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.report.charts import Mark
from h2htalk.benchmark.report.table2 import TableRow
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.chat.prices import Totals, add, dollars_text, sum_totals
from h2htalk.site.context import Words
from h2htalk.text.tables import NONE, Table

LONGEST = 120  # characters of a name
INTERVAL = Markup('<span class="ends">{}</span>')
_FIGURE = Markup('{} <span class="ends below">{}</span>')
_STATE = Markup(' <span class="state">{}</span>')


def mark_of(label: str, cell: Estimate | None, **options: Any) -> Mark:
    """Return the mark of a figure in a chart; `options` are fields of `Mark`."""
    if cell is None:
        return Mark(label, None, **options)
    return Mark(label, cell.value, cell.low, cell.high, **options)


def figure_texts(cell: Estimate | None) -> tuple[str, str]:
    """Return the value and the interval of a figure as texts."""
    return mark_of("", cell).figures


def figure_columns(cell: Estimate | None) -> tuple[str, Markup]:
    """Return the value and the interval of a figure for two columns of a page's table."""
    value, interval = figure_texts(cell)
    return value, INTERVAL.format(interval)


def figure_cell(cell: Estimate | None) -> Markup:
    """Return a figure with its interval below it, for one column of a page's table."""
    return _FIGURE.format(*figure_texts(cell))


def worded_table(words: Words, keys: str, rows: Sequence[Sequence[Any]], *first: str) -> Table:
    """Return a table whose headings are the words of some keys; `first` are headings before them."""
    return Table("", [*first, *(words[key] for key in keys.split())], rows)


def cost_text(costs: Mapping[str, Totals], words: Words) -> str:
    """Return what all stages cost, with what they may have cost besides; `-` without a call."""
    if not costs:
        return NONE
    totals = sum_totals(costs.values())
    if totals.usd_paid is None:
        return str(words["unknown"])
    paid = dollars_text(totals.usd_paid).replace("less than", "<")
    most = add(totals.usd_possible, totals.usd_open)
    if most == 0:
        return paid
    key = "unknown_more" if most is None else "at_most"
    return str(words[key].format(paid=paid, most=dollars_text(most, at_most=True)))


def row_states(row: TableRow, words: Words) -> Markup:
    """Return what a reader must know of a run before its figures, such as that it is incomplete."""
    states = []
    if row.source == "human":
        states.append("people")
    if row.measure == "s" and not row.comparable:
        states.append("incomparable")
    if not row.complete:
        states.append("not_scored" if row.private else "state_incomplete")
    return Markup().join(_STATE.format(words[state]) for state in states)
