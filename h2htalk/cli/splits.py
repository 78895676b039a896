"""Commands on splits and on the files of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import EMBEDDER_HELP, SPLIT_HELP, OutOption, SplitOption, finish
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError

FileFormatOption = Annotated[str, typer.Option("--format", help="jsonl or parquet.")]


def prompt(
    scenario_id: Annotated[
        str | None, typer.Argument(help="A scenario's id; `all` is the same as --all unless it is an id.")
    ] = None,
    split: SplitOption = "mini",
    sap: Annotated[str, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = "full",
    prompts: Annotated[
        Path | None, typer.Option(help="A folder of templates that replace bundled ones of the same name.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every scenario as JSONL: id, messages.")] = False,
) -> None:
    """Print the exact messages that a model gets for a scenario."""
    from h2htalk.benchmark.prompts.show_prompt import prompt_lines

    if (scenario_id is None) != every:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # control characters are escaped already, and a line may be long


def split_list() -> None:
    """List the bundled splits."""
    from h2htalk.data.splits import list_splits

    for name, description in list_splits().items():
        say(f"{name}  {description}")


def split_info(name: Annotated[str, typer.Argument(help=SPLIT_HELP)]) -> None:
    """Describe a split: counts by subtask and language, personas, fingerprint."""
    from h2htalk.data.split_description import describe_split
    from h2htalk.data.splits import load_split

    say(describe_split(load_split(name)).rstrip("\n"))


def split_export(
    name: Annotated[str, typer.Argument(help=SPLIT_HELP)],
    out: OutOption,
    format: FileFormatOption = "jsonl",
) -> None:
    """Write a split as a folder that can be edited and evaluated."""
    from h2htalk.data.split_export import export_split
    from h2htalk.data.splits import load_split

    if format not in ("jsonl", "parquet"):
        raise ConfigError(f"--format {format!r}: choose from jsonl, parquet")
    for path in export_split(load_split(name), out, format):  # type: ignore[arg-type]
        say(str(path))


def split_from(
    workspace: Annotated[Path, typer.Argument(help="A workspace made by `curate run`.")],
    out: OutOption,
    stage: Annotated[
        str | None, typer.Option(help="compose or review; default: the last finished one of them.")
    ] = None,
    format: FileFormatOption = "jsonl",
) -> None:
    """Make a split from the candidates of a workspace's stage."""
    from h2htalk.curation.stage_table import find_stage
    from h2htalk.curation.workspace import Workspace

    Workspace(workspace).require_begun()
    split_export(str(workspace / find_stage(stage).name if stage else workspace), out, format)


def import_responses(
    file: Annotated[Path, typer.Argument(help="JSONL of id, response.")],
    split: SplitOption,
    out: OutOption,
    name: Annotated[str, typer.Option("--name", help="The model's name in tables.")] = "imported",
    embedder: Annotated[str, typer.Option(help=EMBEDDER_HELP)] = "bge-m3",
    human: Annotated[bool, typer.Option("--human", help="People wrote the responses; tables say so.")] = False,
) -> None:
    """Score responses that another tool produced, or people wrote."""
    from h2htalk.benchmark.import_run import import_responses as run_import

    finish(run_import(file, name, split, out, embedder, human), out)


def import_authors(
    folder: Annotated[Path, typer.Argument(help="The folder of the authors' released files.")], out: OutOption
) -> None:
    """Import the authors' released references under their true subtasks, and list what is missing."""
    from h2htalk.data.imports.authors_release import read_authors_release, write_authors_references

    release = read_authors_release(folder)
    written = write_authors_references(release, out)
    for line in release.missing:
        say(f"missing  {line}", err=True)
    say(f"{sum(map(len, release.references.values())):,} references in {written}")
