"""The page of a run: its subtasks, slices, contracts, judge, costs and signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.estimate_text import (
    PERCENT,
    format_interval,
    format_p,
    items_text,
    value_text,
)
from h2htalk.benchmark.metrics.composite import all_columns
from h2htalk.benchmark.report import notes, run_tables
from h2htalk.benchmark.report.charts import clipped, interval_plot
from h2htalk.benchmark.report.table2 import ALL_COLUMNS, table_row
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import sum_totals
from h2htalk.data.model_names import text_without_paths, without_paths
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.boards import Board, Entry
from h2htalk.site.cells import (
    INTERVAL,
    LONGEST,
    cost_text,
    figure_cell,
    figure_columns,
    figure_texts,
    mark_of,
    row_states,
    worded_table,
)
from h2htalk.site.context import Context, Panel, Words
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.tables import NONE, Table

_MEAN = Markup('<span class="mean">{}</span>')
_LINK = Markup('<a href="{}.html">{}</a>')


def model_page(entry: Entry, board: Board, chart: Panel, context: Context) -> str:
    """Render the page of a run; its notes are those of the run's own page. `chart` is its `subtask_chart`."""
    summary = entry.source.run.summary
    words = run_words(context)
    studies = []
    for key, result in context.sources.studies:
        if result.model == summary.model:
            studies.append((key, context.words["studies"]["kinds"][result.study.spec.study]))
    quiet_notes = [
        (text, False)
        for text in (*notes.spread_lines(summary), *map(text_without_paths, summary.warnings))
    ]
    view = {
        "heading": clipped(entry.source.label, LONGEST),
        "split": clipped(summary.split, LONGEST),
        "entry": entry,
        "board": board,
        "states": row_states(entry.row, words),
        "notes": [*notes.notes(summary), *quiet_notes],
        "tiles": _tiles(entry, board, words),
        "charts": [chart],
        "tables": {
            "pairs": [_pairs(entry, board, words)],
            "metrics": [_metrics(summary, words)],
            "slices": _slices(summary, words, context.words["tags"]),
            **_fact_tables(summary, words, context.words["facts"]),
        },
        "studies": studies,
    }
    return context.page("model.html", view, depth=1)


def run_words(context: Context) -> Words:
    """Return the words of the page of a run, which also uses those of boards."""
    return {**context.words["board"], **context.words["model"]}


def _tiles(entry: Entry, board: Board, words: Words) -> list[dict[str, str]]:
    """Return the five figures at the head of the page."""
    summary = entry.source.run.summary
    counts = summary.counts
    value, interval = figure_texts(entry.row.cells.get(board.figure))
    rank_note = ""
    if entry.rank:
        ranked = sum(ranked_entry.rank is not None for ranked_entry in board.entries)
        rank_note = words["rank_note"].format(ranked=ranked, tied=len(entry.tied))
    compliance = value_text(summary.rows.compliance.get("items_mean"), form=PERCENT)
    return [
        {"label": words[board.figure], "value": value, "note": interval},
        {"label": words["rank"], "value": str(entry.rank or NONE), "note": rank_note},
        {"label": words["contract"], "value": compliance, "note": ""},
        {
            "label": words["scored"],
            "value": f"{counts.scored:,}",
            "note": words["items_note"].format(counts=counts),
        },
        {"label": words["cost"], "value": cost_text(summary.costs, words), "note": ""},
    ]


def _slices(summary: Summary, words: Words, tag_names: Words) -> list[Table]:
    """Return a table for each tag of which the items have several values."""
    tables = []
    for tag, cells in run_tables.ordered_slices(summary).items():
        if len(cells) > 1:
            rows = [
                [value, items_text(cell), *figure_columns(cell)] for value, cell in cells.items()
            ]
            tables.append(
                worded_table(words, "scored score interval", rows, tag_names.get(tag, tag))
            )
    return tables


def _fact_tables(summary: Summary, words: Words, fact_names: Words) -> dict[str, list[Table]]:
    """Return the tables of contracts, judge, answers, costs and signature."""
    share = 100 / max(1, summary.counts.samples)
    broken = []
    for rule, count in run_tables.most_first(summary.violations):
        broken.append((rule, count, f"{share * count:.1f}", RULES.get(rule, "")))
    run_facts = replace(summary.run_facts, endpoints={})  # addresses stay at home
    facts = {"judge": notes.judge_facts(summary), "answering": run_facts.texts()}
    tables = {
        "contracts": [
            worded_table(words, "rule replies share meaning", broken),
            worded_table(words, "unscored replies", run_tables.most_first(summary.counts.failures)),
        ],
    }
    for name, pairs in facts.items():
        rows = [(fact_names.get(fact, fact), text) for fact, text in pairs]
        tables[name] = [worded_table(words, "fact value", rows)]
    stages = dict(summary.costs)
    if stages:
        stages[words["total"]] = sum_totals(summary.costs.values())
    costs = []
    for stage, totals in stages.items():
        tokens = (totals.calls, totals.input_tokens, totals.output_tokens)
        costs.append([stage, *tokens, cost_text({stage: totals}, words)])
    tables["costs"] = [worded_table(words, "stage calls tokens_in tokens_out cost", costs)]
    tables["signature"] = []
    for part, values in summary.signature.to_dict().items():
        rows = list(without_paths(values).items())
        tables["signature"].append(worded_table(words, "value", rows, words[f"part_{part}"]))
    return tables


def _metrics(summary: Summary, words: Words) -> Table:
    names = all_columns(summary.metrics.values())
    rows = []
    for subtask, cells in summary.metrics.items():
        texts = [figure_cell(cells.get(name)) for name in names]
        rows.append([SUBTASKS[subtask].title, *texts])
    headings = [name.upper().replace("_", "-") for name in names]
    return Table("", [words["subtask"], *headings], rows)


def _pairs(entry: Entry, board: Board, words: Words) -> Table:
    """Return what the paired test says of a run and each other run of its board."""
    compared = board.compared
    row = entry.column
    rows: list[Sequence[Any]] = []
    for opponent in board.entries:
        column = opponent.column
        if compared is None or row is None or column is None or column == row:
            continue
        difference = compared.means[row] - compared.means[column]
        limits = None
        if compared.low is not None and compared.high is not None:
            limits = (compared.low[row, column], compared.high[row, column])
        interval = format_interval(limits, "+.2f", separator=words["range"])
        verdict = "same"
        if compared.apart[row, column]:
            verdict = "better" if difference > 0 else "worse"
        link = _LINK.format(opponent.source.key, clipped(opponent.source.label, LONGEST))
        rows.append(
            [
                link,
                f"{difference:+.2f}",
                INTERVAL.format(interval),
                format_p(compared.p[row, column]),
                words[verdict],
            ]
        )
    return worded_table(words, "other difference interval p verdict", rows)


def subtask_chart(entry: Entry, words: Words) -> Panel:
    """Draw the intervals of the subtasks with the baselines, beside a table that has the averages as well."""
    summary = entry.source.run.summary
    baselines = [table_row(summary, name) for name in summary.baselines]
    marks = []
    rows: list[Sequence[Any]] = []
    for column in ALL_COLUMNS[:-1]:
        key = column.key
        cell = entry.row.cells.get(key)
        if cell is None:
            continue
        title: str = _MEAN.format(words.get(key, ""))
        if key in SUBTASKS:
            title = SUBTASKS[key].title
            group = words[f"{SUBTASKS[key].dimension}_avg"]
            values = [baseline.value(key) for baseline in baselines]
            ticks = tuple(value for value in values if value is not None)
            marks.append(mark_of(title, cell, group=group, ticks=ticks))
        texts = map(str.strip, run_tables.baseline_cells(summary, key))
        rows.append([title, items_text(cell), *figure_columns(cell), *texts])
    heads = [words[key] for key in ("subtask", "scored", "score", "interval")]
    if summary.judged:
        heads.append("S")
    heads += run_tables.lexical_headings(summary, words["lexical"], words["folded"])
    heads += [words["contract"], *summary.baselines]
    says = words["subtasks_says"]
    title = f"{clipped(entry.source.label, LONGEST)}. {words['subtasks']}"
    drawing = interval_plot(title, says, words["score"], marks)
    return Panel(
        f"{entry.source.key}-subtasks", drawing, says, Table("", heads, rows), words["subtasks"]
    )
