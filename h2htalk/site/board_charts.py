"""The charts of a board: intervals, a heat map of subtasks, and figures by size."""

from __future__ import annotations

from h2htalk.benchmark.report.charts import clipped, heat_map, interval_plot, scatter
from h2htalk.benchmark.report.table2 import COLUMNS
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.boards import Board, size_class
from h2htalk.site.cells import LONGEST, figure_cell, mark_of, worded_table
from h2htalk.site.context import Panel, Words
from h2htalk.text.tables import Table


def board_charts(board: Board, table: Table, words: Words) -> list[Panel]:
    """Return the charts of a board whose runs are in `table`; sizes are drawn where a name states one."""
    charts = [_interval_chart(board, table, words), _heat_map(board, table.title, words)]
    figure = board.figure
    marks = []
    for entry in board.entries:
        if entry.size and entry.row.value(figure) is not None:
            name = clipped(entry.source.label, LONGEST)
            marks.append(mark_of(name, entry.row.cells[figure], x=entry.size))
    if marks:
        says = words["scatter_says"].format(count=len(board.entries) - len(marks))
        title = f"{table.title}. {words['scatter']}"
        drawing = scatter(title, says, (words["scatter_x"], words[figure]), marks)
        rows = [[mark.label, f"{mark.x:g}", size_class(mark.x), *mark.figures] for mark in marks]
        sizes = worded_table(words, f"model size size_class {figure} interval", rows)
        charts.append(Panel(f"board-{board.number}-size", drawing, says, sizes, words["scatter"]))
    return charts


def _interval_chart(board: Board, table: Table, words: Words) -> Panel:
    """Draw the intervals of the runs, with the baselines as ticks."""
    figure = board.figure
    values = [row.value(figure) for row in board.baselines]
    ticks = tuple(value for value in values if value is not None)
    marks = []
    for entry in board.entries:
        name = clipped(entry.source.label, LONGEST)
        marks.append(
            mark_of(name, entry.row.cells.get(figure), group=str(entry.rank or ""), ticks=ticks)
        )
    baselines = ", ".join(row.model for row in board.baselines) or words["no_baselines"]
    says = words["plot_says"].format(baselines=baselines)
    title = f"{table.title}. {words['plot']}"
    drawing = interval_plot(title, says, words[figure], marks)
    return Panel(f"board-{board.number}", drawing, says, None, "", table)


def _heat_map(board: Board, title: str, words: Words) -> Panel:
    """Draw the figures of the runs by subtask, of the subtasks that a run has."""
    keys: set[str] = set()
    for entry in board.entries:
        keys |= entry.row.cells.keys()
    columns = [column for column in COLUMNS if column.key in SUBTASKS and column.key in keys]
    headings = [column.heading for column in columns]
    dimensions = [words[f"{SUBTASKS[column.key].dimension}_avg"] for column in columns]
    values = []
    lines = []
    for entry in board.entries:
        name = clipped(entry.source.label, LONGEST)
        cells = [entry.row.cells.get(column.key) for column in columns]
        values.append((name, [entry.row.value(column.key) for column in columns]))
        lines.append([name, *map(figure_cell, cells)])
    says = words["heat_says"]
    heads = list(zip(dimensions, headings, strict=True))
    drawing = heat_map(f"{title}. {words['heat']}", says, heads, values)
    table = Table("", [words["model"], *headings], lines)
    return Panel(f"board-{board.number}-subtasks", drawing, says, table, words["heat"])
