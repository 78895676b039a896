"""The pages of boards and of models, and the files beside them: tables as CSV and LaTeX, charts as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.metrics.composite import all_columns
from h2htalk.benchmark.observations import p_text
from h2htalk.benchmark.report import notes, table2
from h2htalk.benchmark.report.charts import Mark, clipped, heat_map, interval_plot, scatter
from h2htalk.benchmark.report.leaderboard import paper_rows, unreadable_rows
from h2htalk.benchmark.report.table2 import COLUMNS, PERCENT, TableRow, items_text, value_text
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import Totals, add, dollars_text, sum_totals
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT
from h2htalk.site.boards import Board, Entry, boards_of, size_class
from h2htalk.site.context import Context, Panel, Words
from h2htalk.site.studies import study_groups, study_list
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.tables import NONE, Table

_LONG, _NAMED = 120, 2
_ENDS, _CELL = Markup('<span class="ends">{}</span>'), Markup('{} <span class="ends below">{}</span>')
_REFERENCE, _MEAN = Markup('<span class="reference"></span>{}'), Markup('<span class="mean">{}</span>')
_PLACE = Markup('<span class="place"><span class="rank{}">{}</span><span>{}</span></span>')


def write_boards(context: Context) -> dict[str, str]:
    """Return the index, a page for each run, and their tables and figures: path in the site -> text."""
    sources, files, words, views = context.sources, dict[str, str](), context.words, []
    w, groups, funnels = words["board"], [*study_groups(sources, words["studies"])], [*_funnels(context)]
    boards, rows = boards_of(sources.runs), paper_rows()
    panels = [*(panel for group in groups for panel in group["panels"]), *funnels]
    for board in boards:
        judging = board.summary.judging if board.summary.judged else None
        measure = [w[f"measure_{'judged' if judging else board.summary.measure}"]]
        own = {**w, board.figure: f"{w[board.figure]}: {measure[0]}"}
        table, linked = _board_tables(board, own)
        charts, says = _board_charts(board, table, own), [*_sentences(board, boards[0], w)]
        measure += map(clipped, judging.judges if judging else ())
        parts = {"board": board, "heading": table.title, "measure": ", ".join(measure), "says": says}
        views.append({**parts, "charts": charts, "table": linked})
        for entry in board.entries:
            view = _model_view(entry, board, words)
            named = ((key, one) for key, one in sources.studies if one.model == entry.source.run.summary.model)
            view["studies"] = [(key, words["studies"]["kinds"][one.study.spec.study]) for key, one in named]
            panels += view["charts"]
            files[f"models/{entry.source.key}.html"] = context.page("model.html", view, depth=1)
        panels += charts
    models = {one.run.summary.model for one in sources.runs}
    under = w["under"].format(runs=len(sources.runs), models=len(models), boards=len(boards))
    says = w["paper_says"].format(unreadable=", ".join(unreadable_rows()))
    view = {"heading": w["title"], "under": under, "boards": views, "paper": _paper(rows, w), "paper_says": says}
    view |= {"studies": study_list(sources, words["studies"]), "groups": groups, "funnels": funnels}
    drawn = {path: text for panel in panels for path, text in panel.files.items()}
    return {"index.html": context.page("index.html", view), **files, **drawn}


def _columns(cell: Cell | None) -> tuple[str, str]:
    value, ends = _mark("", cell).figures
    return value, _ENDS.format(ends)


def _mark(label: str, cell: Cell | None, **more: Any) -> Mark:
    return Mark(label, *((cell.value, cell.low, cell.high) if cell else (None, None, None)), **more)


def _sentences(board: Board, reference: Board, w: Words) -> Iterable[str]:
    """Say what the board shows, and what it does not, by its figures."""
    ranks = [one.rank for one in board.entries if one.rank]
    if (found := board.contest) is not None:
        model, tied = clipped(board.entries[0].source.label, _LONG), ranks.count(1)
        yield w["first" if tied == 1 else "shared"].format(model=model, tied=tied, ranked=len(ranks))
        items, clusters, apart, pairs = (f"{n:,}" for n in (found.items, found.clusters, *found.pairs))
        yield w["test"].format(items=items, clusters=clusters, apart=apart, pairs=pairs)
        if left := len(board.entries) - len(ranks):
            yield w["incomplete"].format(count=left)
    shares = sorted(((one.count / TOTAL_COUNT, one.column) for one in SUBTASKS.values()), reverse=True)
    yield from (
        *([] if found else [w["unranked"]]),
        w[f"{board.figure}_says"].format(weights=", ".join(f"{name} {share:.0%}" for share, name in shares)),
        w["overlap"],
        w["references"],
    )
    if different := reference.summary.signature.differing(board.summary.signature):
        yield w["differing"].format(keys=clipped(", ".join(different), 4 * _LONG))


def _board_tables(board: Board, w: Words) -> tuple[Table, Table]:
    """The runs and their baselines with all figures: as texts, for files, and with links, for the page, where the rank
    stands before the name."""
    figure, plain, linked, last = board.figure, list[Sequence[str]](), list[Sequence[str]](), ""
    for one in board.entries:
        summary, chance = one.source.run.summary, NONE if one.first is None else f"{100 * one.first:.0f} %"
        kept, items = (row.get("items_mean") for row in (summary.rows.compliance, one.row.cells))
        name, rank = clipped(one.source.label, _LONG), str(one.rank or NONE)
        size = (f"{one.size:g}" if one.size else w["unknown"], size_class(one.size) or NONE)
        rest = [chance, value_text(kept, form=PERCENT), items_text(items), cost_text(summary.costs, w), *size]
        tied, none = [*map(clipped, one.tied)], w["nobody"] if one.rank else NONE
        plain.append([name, rank, *_mark("", one.row.cells.get(figure)).figures, *rest, "; ".join(tied) or none])
        link = Markup('<a href="models/{}.html">{}</a>{}').format(one.source.key, name, _states(one.row, w))
        more = w["more"].format(names=", ".join(tied[:_NAMED]), count=len(tied) - _NAMED)
        first, shown = _PLACE.format(" begins" * (rank != last), rank, link), more if tied[_NAMED:] else ", ".join(tied)
        linked.append([first, *_columns(one.row.cells.get(figure)), *rest, shown or none])
        last = rank
    for row in board.baselines:
        name, rest = f"{row.model} ({w['unjudged' if board.summary.judged else 'baseline']})", [NONE] * 7
        rest[2] = items_text(row.cells.get("items_mean"))
        plain.append([name, NONE, *_mark("", row.cells.get(figure)).figures, *rest])
        first = _PLACE.format(" reference", "\N{NO-BREAK SPACE}", name)
        linked.append([first, *_columns(row.cells.get(figure)), *rest])
    title = w["heading"].format(number=board.number, split=clipped(board.summary.split, _LONG))
    header = _table(w, f"model rank {figure} interval chance contract scored cost size size_class tied", ()).header
    page = [_PLACE.format("", w["rank"], w["model"]), *header[2:]]
    return Table(title, header, plain), Table(title, page, linked)


def _table(w: Words, heads: str, rows: Sequence[Sequence[Any]], *first: str) -> Table:
    return Table("", [*first, *(w[name] for name in heads.split())], rows)


def cost_text(costs: Mapping[str, Totals], w: Words) -> str:
    """What all stages cost, with what they may have cost besides; `-` where no call had a price."""
    totals = sum_totals(costs.values())
    if not costs or totals.usd_paid is None:
        return str(w["unknown"]) if costs else NONE
    most, paid = add(totals.usd_possible, totals.usd_open), dollars_text(totals.usd_paid).replace("less than", "<")
    told = "" if most == 0 else "unknown_more" if most is None else "at_most"
    return str(w[told].format(paid=paid, most=dollars_text(most, True))) if told else paid


def _states(row: TableRow, w: Words) -> Markup:
    found = ["people"] * (row.source == "human") + ["incomparable"] * (row.measure == "s" and not row.comparable)
    found += [] if row.complete else ["not_scored" if row.private else "state_incomplete"]
    return Markup().join(Markup(' <span class="state">{}</span>').format(w[name]) for name in found)


def _board_charts(board: Board, whole: Table, w: Words) -> list[Panel]:
    """The intervals, the heat map of subtasks, and where a name states a size the scatter."""
    path, figure, title = f"board-{board.number}", board.figure, whole.title
    ticks = tuple(value for row in board.baselines if (value := row.value(figure)) is not None)
    own = [(one, clipped(one.source.label, _LONG), one.row.cells.get(figure)) for one in board.entries]
    marks = [_mark(name, cell, group=str(one.rank or ""), ticks=ticks) for one, name, cell in own]
    says = w["plot_says"].format(baselines=", ".join(row.model for row in board.baselines) or w["no_baselines"])
    charts = [Panel(path, interval_plot(f"{title}. {w['plot']}", says, w[figure], marks), says, None, "", whole)]
    asked = [c for c in COLUMNS if c.key in SUBTASKS and any(c.key in one.row.cells for one in board.entries)]
    heads = [(w[f"{SUBTASKS[c.key].dimension}_avg"], c.heading) for c in asked]
    values = [(name, [one.row.value(c.key) for c in asked]) for one, name, _ in own]
    lines = [[n, *(_CELL.format(*_mark("", one.row.cells.get(c.key)).figures) for c in asked)] for one, n, _ in own]
    table = Table("", [w["model"], *(c.heading for c in asked)], lines)
    drawn = heat_map(f"{title}. {w['heat']}", w["heat_says"], heads, values)
    charts.append(Panel(f"{path}-subtasks", drawn, w["heat_says"], table, w["heat"]))
    sized = [_mark(name, cell, x=one.size) for one, name, cell in own if one.size and cell and cell.value is not None]
    if sized:
        says = w["scatter_says"].format(count=len(own) - len(sized))
        drawn = scatter(f"{title}. {w['scatter']}", says, (w["scatter_x"], w[figure]), sized)
        rows = [[m.label, f"{m.x:g}", size_class(m.x), *m.figures] for m in sized]
        table = Table("", [w[k] for k in ("model", "size", "size_class", figure, "interval")], rows)
        charts.append(Panel(f"{path}-size", drawn, says, table, w["scatter"]))
    return charts


def _paper(rows: Sequence[TableRow], w: Words) -> Table:
    keys = ("overall", *(c.key for c in COLUMNS if c.key.endswith("_avg")))
    lines = [[_REFERENCE.format(r.model), r.group, w["paper_mark"], *(r.text(key) for key in keys)] for r in rows]
    return Table(w["paper"], [w["model"], w["size_class"], "", *(w[key] for key in keys)], lines)


def _funnels(context: Context) -> Iterator[Panel]:
    """Yield the bars of the stages of each funnel (Fig. 3), with what went for which reason."""
    w, heads = context.words["funnel"], ("stage", "unit", "read", "kept", "went", "share", "reasons")
    for number, one in enumerate(context.sources.funnels, 1):
        title = w["release" if one.name else "curation"].format(number=number, name=clipped(one.name, _LONG))
        rows = [
            [w["stages"].get(stage, clipped(stage, 20)), w["units"][unit], *figures, clipped(reasons, 960) or NONE]
            for stage, unit, *figures, reasons in one.rows
        ]
        plain = Table(title, [w[head] for head in heads], rows, [w["says"]])
        chart = context.page("funnel_chart.html", {"heading": title, "rows": rows})
        yield Panel(f"funnel-{number}", chart, w["says"], replace(plain, notes=()), title, plain)


def _model_view(entry: Entry, board: Board, words: Words) -> dict[str, Any]:
    """What model.html shows of a run; its notes are those of the run's own page."""
    summary, facts = entry.source.run.summary, words["facts"]
    w = {**words["board"], **words["model"]}
    cell, kept, counts = entry.row.cells.get(board.figure), summary.rows.compliance.get("items_mean"), summary.counts
    ranked = sum(one.rank is not None for one in board.entries)
    place = w["rank_note"].format(ranked=ranked, tied=len(entry.tied)) if entry.rank else ""
    tiles = [
        (w[board.figure], *_mark("", cell).figures),
        (w["rank"], str(entry.rank or NONE), place),
        (w["contract"], value_text(kept, form=PERCENT), ""),
        (w["scored"], f"{counts.scored:,}", w["items_note"].format(total=f"{counts.items:,}")),
        (w["cost"], cost_text(summary.costs, w), ""),
    ]
    tables = {"pairs": [_pairs(entry, board, w)], "metrics": [_metrics(summary, w)], "slices": list[Table]()}
    for tag, own in table2.ordered_slices(summary).items():
        rows = [[value, items_text(one), *_columns(one)] for value, one in own.items()]
        table = _table(w, "scored score interval", rows, words["tags"].get(tag, tag))
        tables["slices"] += [table] * (len(own) > 1)
    share = 100 / max(1, counts.samples)
    broken = [(k, n, f"{share * n:.1f}", RULES.get(k, "")) for k, n in table2.most_first(summary.violations)]
    failures = _table(w, "unscored replies", table2.most_first(counts.failures))
    tables["contracts"] = [_table(w, "rule replies share meaning", broken), failures]
    answering = replace(summary.answering, endpoints={})  # addresses stay at home
    for name, pairs in (("judge", notes.judge_facts(summary)), ("answering", answering.facts())):
        tables[name] = [_table(w, "fact value", [(facts.get(fact, fact), text) for fact, text in pairs])]
    stages = {**summary.costs, w["total"]: sum_totals(summary.costs.values())} if summary.costs else {}
    costs = [[k, t.calls, t.input_tokens, t.output_tokens, cost_text({k: t}, w)] for k, t in stages.items()]
    tables["costs"] = [_table(w, "stage calls tokens_in tokens_out cost", costs)]
    parts = summary.signature.to_dict().items()
    tables["signature"] = [_table(w, "value", [*own.items()], w[f"part_{part}"]) for part, own in parts]
    answers = {name: f"{getattr(counts, name):,}" for name in ("samples", "empty", "truncated", "refused")}
    says = {"contracts": w["contracts_says"].format(**answers), "pairs": w["pairs_says"]}
    more = [(text, False) for text in (*notes.spread_lines(summary), *summary.warnings)]
    return {
        "heading": clipped(entry.source.label, _LONG),
        "under": w["under"].format(split=clipped(summary.split, _LONG)),
        "entry": entry,
        "board": board,
        "states": _states(entry.row, w),
        "notes": [*notes.notes(summary), *more],
        "tiles": [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles],
        "charts": [_subtask_chart(entry, w)],
        "tables": tables,
        "says": {**says, "signature": w["signature_says"].format(version=summary.package_version)},
    }


def _metrics(summary: Summary, w: Words) -> Table:
    names, rows = all_columns(summary.metrics.values()), list[Sequence[Any]]()
    for subtask, own in summary.metrics.items():
        rows.append([SUBTASKS[subtask].title, *(_CELL.format(*_mark("", own.get(name)).figures) for name in names)])
    return Table("", [w["subtask"], *(name.upper().replace("_", "-") for name in names)], rows)


def _pairs(entry: Entry, board: Board, w: Words) -> Table:
    """What the paired test says of a run and each other one of its board."""
    found, at, rows = board.contest, entry.place, list[Sequence[Any]]()
    for other in board.entries:
        if found is None or at is None or (to := other.place) is None or to == at:
            continue
        mean, ends = float(found.means[at] - found.means[to]), ""
        if found.low is not None and found.high is not None:
            ends = w["range"].format(low=found.low[at, to], high=found.high[at, to])
        said = w["same" if not found.apart[at, to] else "better" if mean > 0 else "worse"]
        link = Markup('<a href="{}.html">{}</a>').format(other.source.key, clipped(other.source.label, _LONG))
        rows.append([link, f"{mean:+.2f}", _ENDS.format(ends), p_text(float(found.p[at, to])), said])
    return _table(w, "other difference interval p verdict", rows)


def _subtask_chart(entry: Entry, w: Words) -> Panel:
    """The intervals of the subtasks with the baselines, and a table that has the averages as well."""
    summary, marks, rows, cells = entry.source.run.summary, [], list[Sequence[Any]](), entry.row.cells
    baselines = [table2.table_row(summary, name) for name in summary.baselines]
    for column in table2.ALL_COLUMNS[:-1]:
        if (cell := cells.get(key := column.key)) is None:
            continue
        title: str = _MEAN.format(w.get(key, ""))
        if key in SUBTASKS:
            title, group = SUBTASKS[key].title, w[f"{SUBTASKS[key].dimension}_avg"]
            ticks = tuple(value for row in baselines if (value := row.value(key)) is not None)
            marks.append(_mark(title, cell, group=group, ticks=ticks))
        rows.append([title, items_text(cell), *_columns(cell), *map(str.strip, table2.beside(summary, key))])
    says, drawn = w["subtasks_says"], f"{clipped(entry.source.label, _LONG)}. {w['subtasks']}"
    heads = [*(w[name] for name in ("subtask", "scored", "score", "interval")), *["S"] * summary.judged]
    heads += [*[w["lexical"]] * (summary.measure == "s"), w["contract"], *summary.baselines]
    plot = interval_plot(drawn, says, w["score"], marks)
    return Panel(f"{entry.source.key}-subtasks", plot, says, Table("", heads, rows), w["subtasks"])
