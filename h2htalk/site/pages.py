"""The index and the pages of runs, and the files beside them: tables as CSV and LaTeX, charts as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from h2htalk.benchmark.report.charts import clipped
from h2htalk.benchmark.report.paper_rows import paper_rows, unreadable_rows
from h2htalk.benchmark.report.table2 import COLUMNS
from h2htalk.progress import QUICK, Progress
from h2htalk.site.board_view import board_view
from h2htalk.site.boards import boards_of
from h2htalk.site.cells import LONGEST, worded_table
from h2htalk.site.context import Context, Panel, Words, noted_panel
from h2htalk.site.model_page import model_page, run_words, subtask_chart
from h2htalk.site.studies import study_groups, study_list
from h2htalk.text.tables import NONE, Table

_REFERENCE = Markup('<span class="reference"></span>{}')


def write_boards(context: Context) -> dict[str, str]:
    """Return the index, a page for each run, and their tables and figures: path in the site -> text."""
    sources = context.sources
    words = context.words["board"]
    groups = list(study_groups(sources, context.words["studies"]))
    funnels = list(_funnels(context))
    panels: list[Panel] = []
    for group in groups:
        panels += group["panels"]
    panels += funnels
    boards = boards_of(sources.runs)
    views = []
    pages: dict[str, str] = {}
    progress = Progress("drawing models", sum(len(board.entries) for board in boards), silent=QUICK)
    for board in boards:
        view = board_view(board, boards[0], words)
        views.append(view)
        for entry in board.entries:
            chart = subtask_chart(entry, run_words(context))
            panels.append(chart)
            pages[f"models/{entry.source.key}.html"] = model_page(entry, board, chart, context)
            progress.advance()
        panels += view["charts"]
    progress.end()
    index = {
        "heading": words["title"],
        "boards": views,
        "paper": _paper(words),
        "unreadable": ", ".join(unreadable_rows()),
        "studies": study_list(sources, context.words["studies"]),
        "groups": groups,
        "funnels": funnels,
    }
    files = {"index.html": context.page("index.html", index), **pages}
    for panel in panels:
        files |= panel.files
    return files


def _paper(words: Words) -> Table:
    """Return the rows of the paper's Table 2: dimensions and overall."""
    averages = [column.key for column in COLUMNS if column.key.endswith("_avg")]
    keys = ("overall", *averages)
    lines = []
    for row in paper_rows():
        figures = [row.text(key) for key in keys]
        lines.append([_REFERENCE.format(row.model), row.group, words["paper_mark"], *figures])
    header = [words["model"], words["size_class"], "", *(words[key] for key in keys)]
    return Table(words["paper"], header, lines)


def _funnels(context: Context) -> Iterator[Panel]:
    """Yield the bars of the stages of each funnel (Fig. 3), with what went for which reason."""
    words = context.words["funnel"]
    for number, funnel in enumerate(context.sources.funnels, 1):
        title = words["release" if funnel.name else "curation"].format(
            number=number, name=clipped(funnel.name, LONGEST)
        )
        rows = []
        for stage, unit, *figures, reasons in funnel.rows:
            name = words["stages"].get(stage, clipped(stage, 20))
            rows.append([name, words["units"][unit], *figures, clipped(reasons, 960) or NONE])
        table = worded_table(words, "stage unit read kept went share reasons", rows)
        titled = replace(table, title=title, notes=[words["says"]])
        chart = context.page("funnel_chart.html", {"heading": title, "rows": rows})
        yield noted_panel(f"funnel-{number}", chart, words["says"], titled)
