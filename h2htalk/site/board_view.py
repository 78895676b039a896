"""What the index shows of a board: its runs and baselines in a table, and what the test says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.estimate_text import PERCENT, items_text, value_text
from h2htalk.benchmark.report.charts import clipped
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT
from h2htalk.site.board_charts import board_charts
from h2htalk.site.boards import Board, Entry, size_class
from h2htalk.site.cells import (
    LONGEST,
    cost_text,
    figure_columns,
    figure_texts,
    row_states,
    worded_table,
)
from h2htalk.site.context import Words
from h2htalk.text.tables import NONE, Table

_NAMED = 2  # ties that the page names; it counts the others
_HEADINGS = "model rank {} interval chance contract scored cost size size_class tied"
_LINK = Markup('<a href="models/{}.html">{}</a>{}')
_RANKED = Markup('<span class="place"><span class="rank{}">{}</span><span>{}</span></span>')


def board_view(board: Board, first: Board, words: Words) -> dict[str, Any]:
    """Return what index.html shows of a board; `first` is the board whose protocol it is compared with."""
    judging = board.summary.judging if board.summary.judged else None
    measure = words["measure_judged" if judging else f"measure_{board.summary.measure}"]
    judges = judging.judges if judging else ()
    table_words = {**words, board.figure: f"{words[board.figure]}: {measure}"}
    plain, linked = _tables(board, table_words)
    shares = [(subtask.count / TOTAL_COUNT, subtask.column) for subtask in SUBTASKS.values()]
    shares.sort(reverse=True)
    different = first.summary.signature.differing(board.summary.signature)
    return {
        "board": board,
        "heading": plain.title,
        "measure": ", ".join([measure, *map(clipped, judges)]),
        "leader": clipped(board.entries[0].source.label, LONGEST),
        "ranks": [entry.rank for entry in board.entries if entry.rank],
        "weights": ", ".join(f"{column} {share:.0%}" for share, column in shares),
        "differing": clipped(", ".join(different), 4 * LONGEST),
        "charts": board_charts(board, plain, table_words),
        "table": linked,
    }


def _tables(board: Board, words: Words) -> tuple[Table, Table]:
    """Return the runs and baselines as texts, for files, and with links and ranks before the names, for the page."""
    figure = board.figure
    plain: list[Sequence[str]] = []
    linked: list[Sequence[str]] = []
    rank_above = ""
    for entry in board.entries:
        name = clipped(entry.source.label, LONGEST)
        rank = str(entry.rank or NONE)
        cell = entry.row.cells.get(figure)
        facts = _facts(entry, words)
        tied = list(map(clipped, entry.tied))
        nobody = words["nobody"] if entry.rank else NONE
        all_ties = "; ".join(tied) or nobody
        plain.append([name, rank, *figure_texts(cell), *facts, all_ties])
        ties = ", ".join(tied[:_NAMED]) or nobody
        if len(tied) > _NAMED:
            ties = words["more"].format(names=ties, count=len(tied) - _NAMED)
        link = _LINK.format(entry.source.key, name, row_states(entry.row, words))
        begins = "" if rank == rank_above else " begins"
        ranked = _RANKED.format(begins, rank, link)
        linked.append([ranked, *figure_columns(cell), *facts, ties])
        rank_above = rank
    kind = words["unjudged" if board.summary.judged else "baseline"]
    for row in board.baselines:
        name = f"{row.model} ({kind})"
        cell = row.cells.get(figure)
        facts = [NONE] * 7
        facts[2] = items_text(row.cells.get("items_mean"))
        plain.append([name, NONE, *figure_texts(cell), *facts])
        linked.append(
            [
                _RANKED.format(" reference", "\N{NO-BREAK SPACE}", name),
                *figure_columns(cell),
                *facts,
            ]
        )
    title = words["heading"].format(
        number=board.number, split=clipped(board.summary.split, LONGEST)
    )
    header = worded_table(words, _HEADINGS.format(figure), ()).header
    ranked = _RANKED.format("", words["rank"], words["model"])
    return Table(title, header, plain), Table(title, [ranked, *header[2:]], linked)


def _facts(entry: Entry, words: Words) -> list[str]:
    """Return the columns of a run between its figure and its ties."""
    summary = entry.source.run.summary
    compliance = summary.rows.compliance.get("items_mean")
    chance = NONE if entry.first is None else f"{100 * entry.first:.0f} %"
    scored = items_text(entry.row.cells.get("items_mean"))
    size = f"{entry.size:g}" if entry.size else words["unknown"]
    return [
        chance,
        value_text(compliance, form=PERCENT),
        scored,
        cost_text(summary.costs, words),
        size,
        size_class(entry.size) or NONE,
    ]
