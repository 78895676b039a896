"""Commands that hold runs beside each other: leaderboard, compare, correlate, plan, gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Exit, Option

import h2htalk
from h2htalk.cli import options
from h2htalk.cli.output import say
from h2htalk.data.files import write_output, write_text
from h2htalk.errors import ConfigError

with options.lazy_imports():
    from h2htalk.analysis.figures import charts, style
    from h2htalk.benchmark.compare import comparison, correlation, planning
    from h2htalk.benchmark.gate import report as gates
    from h2htalk.benchmark.report import leaderboard as boards
    from h2htalk.benchmark.report import paper_rows, table_files
    from h2htalk.data import links

COMPARED = "The reference run, then the runs to compare with it; also other harnesses' logs."
METRIC = "s, lexical, ..., compliance; a log's SCORER/KEY; a study's ARM/FIGURE. One, or one a run."


def leaderboard(
    runs: Annotated[list[Path] | None, Argument(help="Run folders.")] = None,
    paper: Annotated[bool, Option("--paper", help="Add the rows of the paper's Table 2.")] = False,
    check_paper: Annotated[
        bool, Option("--check-paper", help="Recompute the paper's averages instead.")
    ] = False,
    metric: Annotated[
        str | None, Option(help="s: by S alone, whichever judge read the runs.")
    ] = None,
    format: options.TableFormat = "terminal",
) -> None:
    """Rank your runs among each other; --paper adds the paper's Table 2."""
    if check_paper:
        if runs or paper or format not in ("terminal", "json"):
            raise ConfigError(
                "--check-paper takes neither run folders nor --paper, and prints to the terminal or as json"
            )
        rows = paper_rows.check_paper()
        if format == "json":
            typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        else:
            paper_rows.print_check(rows, options.console())
        return
    if not runs and not paper:
        raise ConfigError(
            "no run folder is named: name one or more, or add --paper for the paper's rows"
        )
    board = h2htalk.leaderboard(runs or [], paper=paper, metric=metric)
    if format == "terminal":
        boards.print_leaderboard(board, options.console())
    else:
        typer.echo(table_files.table_text(board.rows, format), nl=False)


def compare(
    runs: Annotated[list[Path], Argument(help=COMPARED)],
    metric: Annotated[list[str] | None, Option(help=METRIC)] = None,
    scale: Annotated[
        list[str] | None, Option(help="LOW-HIGH of logs' values (0-1). One, or one a log.")
    ] = None,
    format: options.TableFormat = "terminal",
    out: Annotated[
        Path | None, Option(help="A folder for compare.html, .csv, .json and .tex.")
    ] = None,
) -> None:
    """Compare runs item by item: paired tests, intervals, and the items that moved most."""
    compared = h2htalk.compare(*runs, metric=metric or None, scale=scale or "0-1")
    if out is not None:
        links.link_copies(runs, out)
        comparison.write_comparison(compared, out)
    typer.echo(comparison.to_text(compared, format), nl=False)
    if out is not None and format == "terminal":
        say(f"page: {(out / 'compare.html').resolve()}")


def correlate(
    runs: Annotated[list[Path], Argument(help="Scored run folders of one protocol.")],
    ratings: Annotated[Path | None, Option(help="CSV of id, rating[, sample, run].")] = None,
    other_scores: Annotated[
        Path | None, Option(help="CSV of other benchmarks: a row a model.")
    ] = None,
    format: options.DataFormat = "terminal",
    out: Annotated[
        Path | None, Option(help="A folder for correlate.csv, .json and figures.")
    ] = None,
) -> None:
    """Correlate metrics with people's ratings, and dimensions with each other and with other benchmarks."""
    correlations = h2htalk.correlate(runs, ratings=ratings, other_scores=other_scores)
    if out is not None:
        write_text(out / "correlate.csv", correlations.to("csv"))
        write_text(out / "correlate.json", correlations.to("json"))
        for level in dict.fromkeys(pair.level for pair in correlations.pairs):
            cells = correlation.cells_of_level(correlations, level)
            figure = charts.draw_correlations(cells, f"over {level}s")
            style.save_figure(figure, out, f"correlate-{level}s")
    typer.echo(correlations.to(format), nl=False)


def plan(
    difference: Annotated[float, Option(help="Points (0-100) that should be found.")],
    runs: Annotated[
        tuple[Path, Path] | None, Option(help="Two runs whose differences vary as yours will.")
    ] = None,
    items: Annotated[
        list[int] | None,
        Option(min=2, help="Numbers of items for which to report the detectable difference."),
    ] = None,
    metric: Annotated[str | None, Option(help="As of compare.")] = None,
) -> None:
    """Say how many items and samples a difference needs, and what fewer items can still detect."""
    sizes = h2htalk.plan(difference, runs or (), items or planning.ITEMS, metric)
    say(*(f"{table.to_terminal()}\n" for table in planning.plan_tables(sizes)))


def gate(
    run: options.Run,
    reference_run: Annotated[Path | None, Option(help="The run that it is held against.")] = None,
    policy: Annotated[
        Path | None, Option(help="A TOML file of criteria; else the figures of safety or skill.")
    ] = None,
    junit: Annotated[Path | None, Option(help="Write JUnit XML here.")] = None,
    markdown: Annotated[
        Path | None, Option(help="Write Markdown here, with the transcripts behind each no.")
    ] = None,
    html: Annotated[
        Path | None, Option(help="Write a page here, with the transcripts behind each no.")
    ] = None,
    json_file: Annotated[
        Path | None, Option("--json", help="Write the verdicts as JSON here.")
    ] = None,
) -> None:
    """Hold a run against a reference run and a policy. Exit code 4: not passed; 3: not tested."""
    files = (junit, markdown, html, json_file)
    reports = [(file, *form) for file, form in zip(files, gates.FORMS, strict=True) if file]
    for file, _, what in reports:
        write_output(file, "", what)  # what an earlier one says is not of these runs
    verdict = h2htalk.gate(run, reference_run, policy)
    say(gates.gate_table(verdict).to_terminal())
    for file, write, what in reports:
        links.link_copies(filter(None, (run, reference_run)), file)
        write_output(file, write(verdict), what)
    if not verdict.passed:
        raise Exit(4)
    raise Exit(3 if verdict.incomplete else 0)
