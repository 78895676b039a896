"""The command line: parse, call one library function, print. Exit codes: 0 done, 2 input, 3 incomplete, 1 a bug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2htalk import __version__
from h2htalk.errors import ConfigError
from h2htalk.output import one_line_errors, say

if TYPE_CHECKING:
    from h2htalk.benchmark.summary import Summary

app = typer.Typer(
    name="h2htalk",
    help="Score language models that act as emotional companions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
split_app = typer.Typer(help="Splits: list, describe, export.", no_args_is_help=True)
import_app = typer.Typer(help="Read what other tools made.", no_args_is_help=True)
app.add_typer(split_app, name="split")
app.add_typer(import_app, name="import")

RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]
SplitOption = Annotated[
    str, typer.Option("--split", help="A bundled split, a folder, or a .jsonl or .parquet file.")
]


def _folder(name: str) -> Path:
    if not name.strip():  # Path("") is the folder one stands in
        raise ConfigError("--out is empty; name a folder")
    return Path(name)


OutOption = Annotated[
    Path, typer.Option("--out", help="The folder to write.", parser=_folder, metavar="FOLDER")
]
EmbedderHelp = "bge-m3, minilm (English), none, or a name."
FormatOption = Annotated[str, typer.Option("--format", help="terminal, csv, json or latex.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"h2htalk {__version__}")
        raise typer.Exit


@app.command()
def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="embedded, hf:PATH, server:MODEL@URL, baseline:NAME ...")
    ] = None,
    split: Annotated[str | None, typer.Option(help="A bundled split, a folder or a file.")] = None,
    out: Annotated[str | None, typer.Option(help="The run folder; an unfinished run goes on.")] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A TOML file with any of these; options win over it.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="en or zh; both when left out.")] = None,
    subtask: Annotated[list[str] | None, typer.Option(help="A subtask; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(help="A stratified sample of this many scenarios.")] = None,
    sap: Annotated[str | None, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = None,
    embedder: Annotated[str | None, typer.Option(help=EmbedderHelp)] = None,
    rouge: Annotated[
        str | None, typer.Option(help="f1 (the authors' code) or recall (the paper's words).")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Answers an item; above 1 needs a temperature.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus sampling.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Reply budget; each subtask's own when left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the sampling.")] = None,
    prompts: Annotated[
        str | None, typer.Option(help="A folder of templates laid over the bundled ones.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests in flight.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds an attempt may take.")] = None,
    floors: Annotated[
        bool | None, typer.Option("--floors/--no-floors", help="Score trivial answers beside.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked; write nothing.")
    ] = False,
) -> None:
    """Score a model on a split: generate, score, report. The same command again resumes."""
    # Before anything else is local: exactly the options.
    given = {k: v for k, v in locals().items() if k not in ("spec", "subtask", "dry_run") and v is not None}
    if subtask:
        given["subtasks"] = tuple(subtask)
    from h2htalk.benchmark.evaluate import estimate
    from h2htalk.benchmark.evaluate import evaluate as run
    from h2htalk.benchmark.spec import EvaluateSpec, read_spec

    parsed = read_spec(spec, given) if spec else EvaluateSpec.from_dict(given, "command line")
    if dry_run:
        say(estimate(parsed))
        return
    try:
        summary = run(parsed)
    except KeyboardInterrupt:
        say(f"stopped; everything finished is in {parsed.out}: the same command goes on from there", err=True)
        raise
    _finish(summary, parsed.out_path)


@app.command()
def score(
    run: RunArgument,
    embedder: Annotated[str | None, typer.Option(help=f"{EmbedderHelp} The run's own when left out.")] = None,
    rouge: Annotated[str | None, typer.Option(help="f1 or recall. The run's own when left out.")] = None,
) -> None:
    """Score a run's stored responses again; the model is not asked."""
    from h2htalk.benchmark.results import score as run_score

    _finish(run_score(run, embedder, rouge), run)


@app.command()
def report(run: RunArgument, format: FormatOption = "terminal") -> None:
    """Print a scored run's table; in the form `terminal`, write its tables and page again too."""
    _require_format(format)
    if format == "terminal":
        from h2htalk.benchmark.results import report as run_report

        _finish(run_report(run), run)
    from h2htalk.benchmark.report.rows import model_rows
    from h2htalk.benchmark.report.tables import table_text
    from h2htalk.benchmark.summary import read_summary

    summary = read_summary(run / "summary.json")
    typer.echo(table_text(model_rows(summary), format), nl=False)
    if summary.incomplete:
        raise typer.Exit(3)


@app.command()
def prompt(
    scenario_id: Annotated[
        str | None, typer.Argument(help="A scenario's id; `all` stands for --all unless one is called so.")
    ] = None,
    split: SplitOption = "mini",
    sap: Annotated[str, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = "full",
    prompts: Annotated[
        Path | None, typer.Option(help="A folder of templates laid over the bundled ones.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="JSONL of every scenario: id, messages.")] = False,
) -> None:
    """Print exactly what a model sees for a scenario."""
    from h2htalk.benchmark.inspect_prompt import prompt_lines

    if (scenario_id is None) != every:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # harmless already, and a line may be long


@app.command()
def leaderboard(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders.")] = None,
    check_paper: Annotated[
        bool, typer.Option("--check-paper", help="Recompute the paper's averages.")
    ] = False,
    format: FormatOption = "terminal",
) -> None:
    """Your runs beside the paper's Table 2."""
    from h2htalk.benchmark import leaderboard as board
    from h2htalk.benchmark.report.board import print_check, print_leaderboard
    from h2htalk.benchmark.report.tables import table_text

    _require_format(format, *(("json",) if check_paper else ()))
    if check_paper and runs:
        raise ConfigError("--check-paper looks at the paper alone: leave the run folders out")
    if check_paper:
        rows = board.check_paper()
        if format == "json":
            typer.echo(json.dumps(board.check_table(rows), ensure_ascii=False, indent=2))
        else:
            print_check(rows, _console())
        return
    made = board.leaderboard(board.read_summaries(runs or []))
    if format == "terminal":
        print_leaderboard(made, _console())
    else:
        typer.echo(table_text(made.rows, format), nl=False)


@split_app.command("list")
def split_list() -> None:
    """The bundled splits."""
    from h2htalk.data.splits import list_splits

    for name, description in list_splits().items():
        say(f"{name}  {description}")


@split_app.command("info")
def split_info(name: Annotated[str, typer.Argument(help="A bundled split, a folder or a file.")]) -> None:
    """What a split holds: counts by subtask and language, personas, fingerprint."""
    from h2htalk.data.split_info import describe_split
    from h2htalk.data.splits import load_split

    say(describe_split(load_split(name)).rstrip("\n"))


@split_app.command("export")
def split_export(
    name: Annotated[str, typer.Argument(help="A bundled split, a folder or a file.")],
    out: OutOption,
    format: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write a split as a folder that can be edited and evaluated."""
    from h2htalk.data.split_export import export_split
    from h2htalk.data.splits import load_split

    if format not in ("jsonl", "parquet"):
        raise ConfigError(f"--format {format!r}: choose from jsonl, parquet")
    for path in export_split(load_split(name), out, format):  # type: ignore[arg-type]
        say(str(path))


@import_app.command("responses")
def import_responses(
    file: Annotated[Path, typer.Argument(help="JSONL of id, response.")],
    split: SplitOption,
    out: OutOption,
    name: Annotated[str, typer.Option("--name", help="What the table calls the model.")] = "imported",
    embedder: Annotated[str, typer.Option(help=EmbedderHelp)] = "bge-m3",
) -> None:
    """Score responses that another tool produced."""
    from h2htalk.benchmark.imported import import_responses as run_import

    _finish(run_import(file, name, split, out, embedder), out)


@import_app.command("authors")
def import_authors(
    folder: Annotated[Path, typer.Argument(help="The folder of the authors' released files.")], out: OutOption
) -> None:
    """Read the authors' released references under their true subtasks, and say what is missing."""
    from h2htalk.data.importers import read_authors_release, write_authors_references

    release = read_authors_release(folder)
    written = write_authors_references(release, out)
    for line in release.missing:
        say(f"missing  {line}", err=True)
    say(f"{sum(map(len, release.references.values())):,} references in {written}")


def _finish(summary: Summary, folder: Path) -> None:
    """Print a run's table; exit code 3 when items are unscored."""
    from h2htalk.benchmark.report.terminal import print_summary

    print_summary(summary, _console(), {"report": (folder / "report.html").resolve()})
    raise typer.Exit(3 if summary.incomplete else 0)


def _require_format(format: str, *choices: str) -> None:
    allowed = ("terminal", *(choices or ("csv", "json", "latex")))
    if format not in allowed:
        raise ConfigError(f"--format {format!r}: choose from {', '.join(allowed)}")


def _console() -> Any:
    from rich.console import Console

    return Console()


def main() -> None:
    """Entry point."""
    with one_line_errors():
        app()


__all__ = ["app", "main"]
