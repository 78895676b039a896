"""Commands on splits and on what other tools made. Parse, call one library function, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import EMBEDDER_HELP, OutOption, SplitOption, finish
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError


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
    from h2htalk.benchmark.prompts.show_prompt import prompt_lines

    if (scenario_id is None) != every:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # harmless already, and a line may be long


def split_list() -> None:
    """The bundled splits."""
    from h2htalk.data.splits import list_splits

    for name, description in list_splits().items():
        say(f"{name}  {description}")


def split_info(name: Annotated[str, typer.Argument(help="A bundled split, a folder or a file.")]) -> None:
    """What a split holds: counts by subtask and language, personas, fingerprint."""
    from h2htalk.data.splits import describe_split, load_split

    say(describe_split(load_split(name)).rstrip("\n"))


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


def import_responses(
    file: Annotated[Path, typer.Argument(help="JSONL of id, response.")],
    split: SplitOption,
    out: OutOption,
    name: Annotated[str, typer.Option("--name", help="What the table calls the model.")] = "imported",
    embedder: Annotated[str, typer.Option(help=EMBEDDER_HELP)] = "bge-m3",
) -> None:
    """Score responses that another tool produced."""
    from h2htalk.benchmark.import_run import import_responses as run_import

    finish(run_import(file, name, split, out, embedder), out)


def import_authors(
    folder: Annotated[Path, typer.Argument(help="The folder of the authors' released files.")], out: OutOption
) -> None:
    """Read the authors' released references under their true subtasks, and say what is missing."""
    from h2htalk.data.imports.authors_release import read_authors_release, write_authors_references

    release = read_authors_release(folder)
    written = write_authors_references(release, out)
    for line in release.missing:
        say(f"missing  {line}", err=True)
    say(f"{sum(map(len, release.references.values())):,} references in {written}")
