"""Commands on run folders: score, report, costs, leaderboard. Parse, call one library function, print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import EMBEDDER_HELP, FormatOption, RunArgument, console, finish, require_format
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError


def score(
    run: RunArgument,
    embedder: Annotated[
        str | None, typer.Option(help=f"{EMBEDDER_HELP} The run's own when left out.")
    ] = None,
    rouge: Annotated[str | None, typer.Option(help="f1 or recall. The run's own when left out.")] = None,
) -> None:
    """Score a run's stored responses again; the model is not asked."""
    from h2htalk.benchmark.score_run import score as run_score

    finish(run_score(run, embedder, rouge), run)


def report(run: RunArgument, format: FormatOption = "terminal") -> None:
    """Print a scored run's table; in the form `terminal`, write its tables and page again too."""
    require_format(format)
    if format == "terminal":
        from h2htalk.benchmark.report_run import report as run_report

        finish(run_report(run), run)
    from h2htalk.benchmark.report.table2_rows import model_rows
    from h2htalk.benchmark.report.tables import table_text
    from h2htalk.benchmark.summary import read_summary

    summary = read_summary(run / "summary.json")
    typer.echo(table_text(model_rows(summary), format), nl=False)
    if summary.incomplete:
        raise typer.Exit(3)


def costs(
    run: RunArgument,
    calls: Annotated[bool, typer.Option("--calls", help="Every single call.")] = False,
    format: Annotated[str, typer.Option("--format", help="terminal, csv or json.")] = "terminal",
) -> None:
    """What a run paid: by stage and in all."""
    from h2htalk.benchmark.report.costs import costs_text

    require_format(format, "csv", "json")
    say(costs_text(run, calls, format))


def leaderboard(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders.")] = None,
    check_paper: Annotated[
        bool, typer.Option("--check-paper", help="Recompute the paper's averages.")
    ] = False,
    format: FormatOption = "terminal",
) -> None:
    """Your runs beside the paper's Table 2."""
    from h2htalk.benchmark.report import leaderboard as board
    from h2htalk.benchmark.report import paper_table
    from h2htalk.benchmark.report.leaderboard_terminal import print_check, print_leaderboard
    from h2htalk.benchmark.report.tables import table_text

    require_format(format, *(("json",) if check_paper else ()))
    if check_paper and runs:
        raise ConfigError("--check-paper looks at the paper alone: leave the run folders out")
    if check_paper:
        rows = paper_table.check_paper()
        if format == "json":
            typer.echo(json.dumps(paper_table.check_table(rows), ensure_ascii=False, indent=2))
        else:
            print_check(rows, console())
        return
    made = board.leaderboard(board.read_summaries(runs or []))
    if format == "terminal":
        print_leaderboard(made, console())
    else:
        typer.echo(table_text(made.rows, format), nl=False)
