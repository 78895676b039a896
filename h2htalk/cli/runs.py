"""Commands on run folders: score, report, costs, leaderboard. Each command parses, calls one function and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import h2htalk
from h2htalk.cli.options import (
    EMBEDDER_HELP,
    FormatOption,
    RunArgument,
    VerboseOption,
    console,
    finish,
    require_format,
)
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError
from h2htalk.text.escaping import printable


def score(
    run: RunArgument,
    embedder: Annotated[str | None, typer.Option(help=f"{EMBEDDER_HELP} The run's own when left out.")] = None,
    rouge: Annotated[str | None, typer.Option(help="f1 or recall. The run's own when left out.")] = None,
    references: Annotated[
        Path | None, typer.Option(help="The file of the split's private references (JSONL of id, references).")
    ] = None,
    verbose: VerboseOption = False,
) -> None:
    """Score a run's stored responses again; the model is not asked."""
    from h2htalk.benchmark.score_run import score as run_score

    finish(run_score(run, embedder, rouge, references), run, verbose)


def report(run: RunArgument, format: FormatOption = "terminal", verbose: VerboseOption = False) -> None:
    """Print the table of a scored run; `--format terminal` also writes its tables and page again."""
    require_format(format)
    if format == "terminal":
        from h2htalk.benchmark.run import report as run_report

        finish(run_report(run), run, verbose)
    from h2htalk.benchmark.report.table2 import model_rows, table_text

    summary = h2htalk.load_run(run).summary
    typer.echo(table_text(model_rows(summary), format), nl=False)
    if summary.incomplete:
        raise typer.Exit(3)


def costs(
    run: RunArgument,
    calls: Annotated[bool, typer.Option("--calls", help="List every call.")] = False,
    format: Annotated[str, typer.Option("--format", help="terminal, csv or json.")] = "terminal",
) -> None:
    """Show what a run, study or workspace paid: by stage and in total."""
    from h2htalk.benchmark.report.costs import costs_text

    require_format(format, "csv", "json")
    say(costs_text(run, calls, format))


def leaderboard(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders.")] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Add the rows of the paper's Table 2.")] = False,
    check_paper: Annotated[bool, typer.Option("--check-paper", help="Recompute the paper's averages instead.")] = False,
    metric: Annotated[str | None, typer.Option(help="s: by S alone, whichever judge read the runs.")] = None,
    format: FormatOption = "terminal",
) -> None:
    """Rank your runs among each other; --paper adds the paper's Table 2."""
    require_format(format, *(("json",) if check_paper else ()))
    if check_paper:
        _check_paper(bool(runs or paper), format)
        return
    if not runs and not paper:
        raise ConfigError("no run folder is named: name one or more, or add --paper for the paper's rows")
    board = h2htalk.leaderboard(runs or [], paper=paper, metric=metric)
    if format == "terminal":
        from h2htalk.benchmark.report.leaderboard import print_leaderboard

        print_leaderboard(board, console())
    else:
        from h2htalk.benchmark.report.table2 import table_text

        typer.echo(table_text(board.rows, format), nl=False)


def _check_paper(more: bool, format: str) -> None:
    from h2htalk.benchmark.report import table2
    from h2htalk.benchmark.report.leaderboard import print_check

    if more:
        raise ConfigError("--check-paper takes neither run folders nor --paper: leave them out")
    rows = table2.check_paper()
    if format == "json":
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        print_check(rows, console())


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="The reference run, then the runs to compare with it; also other harnesses' logs."),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", help="s, lexical, ..., compliance; a log's SCORER/KEY; a study's ARM/FIGURE. One, or one a run."
        ),
    ] = None,
    scale: Annotated[
        list[str] | None, typer.Option("--scale", help="LOW-HIGH of logs' values (0-1). One, or one a log.")
    ] = None,
    format: FormatOption = "terminal",
    out: Annotated[Path | None, typer.Option("--out", help="A folder for compare.html, .csv, .json and .tex.")] = None,
) -> None:
    """Compare runs item by item: paired tests, intervals, and the items that moved most."""
    from h2htalk.benchmark.compare import formats

    require_format(format)
    comparison = h2htalk.compare(*runs, metric=metric or None, scale=scale or "0-1")
    if out is not None:
        from h2htalk.benchmark.compare.formats import write_comparison
        from h2htalk.data.links import link_copies

        link_copies(runs, out)
        write_comparison(comparison, out)
    writers = {"csv": formats.to_csv, "json": formats.to_json, "latex": formats.to_latex}
    if format != "terminal":
        typer.echo(writers[format](comparison), nl=False)
        return
    for line in formats.to_lines(comparison):
        say(printable(line))  # ids of logs are anybody's
    if out is not None:
        say(f"page: {(out / 'compare.html').resolve()}")


def correlate(
    runs: Annotated[list[Path], typer.Argument(help="Scored run folders of one protocol.")],
    ratings: Annotated[Path | None, typer.Option("--ratings", help="CSV of id, rating[, sample, run].")] = None,
    scores: Annotated[Path | None, typer.Option("--with", help="CSV of other benchmarks: a row a model.")] = None,
    format: Annotated[str, typer.Option("--format", help="terminal, csv or json.")] = "terminal",
    out: Annotated[Path | None, typer.Option("--out", help="A folder for correlate.csv, .json and figures.")] = None,
) -> None:
    """Correlate metrics with people's ratings, and dimensions with each other and with other benchmarks."""
    from h2htalk.benchmark.compare.correlation import column_title as title
    from h2htalk.benchmark.compare.correlation import pairs_table, to_lines

    require_format(format, "csv", "json")
    found = h2htalk.correlate(runs, ratings=ratings, scores=scores)
    texts = {kind: pairs_table(found).to(kind) for kind in ("csv", "json")}
    if out is not None:
        from h2htalk.analysis.figures.correlation import draw_correlations
        from h2htalk.analysis.figures.saving import save_figure
        from h2htalk.data.files import write_text

        for kind, text in texts.items():
            write_text(out / f"correlate.{kind}", text)
        for level in dict.fromkeys(pair.level for pair in found.pairs):
            cells = {(title(one.a), title(one.b)): one[3:6] for one in found.pairs if one.level == level}
            save_figure(draw_correlations(cells, f"over {level}s"), out, f"correlate-{level}s")
    if format == "terminal":
        for line in to_lines(found):
            say(line)
    else:
        typer.echo(texts[format], nl=False)


def plan(
    difference: Annotated[float, typer.Option("--difference", help="Points (0-100) that should be found.")],
    runs: Annotated[
        tuple[Path, Path] | None, typer.Option("--runs", help="Two runs whose differences vary as yours will.")
    ] = None,
    limit: Annotated[
        list[int] | None, typer.Option("--limit", min=2, help="Items whose detectable difference is told.")
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="As of compare.")] = None,
) -> None:
    """Say how many items and samples a difference needs, and what fewer items can still detect."""
    from h2htalk.benchmark.compare.comparison import LIMITS, plan_lines

    for line in plan_lines(h2htalk.plan(difference, runs or (), limit or LIMITS, metric)):
        say(line)
