"""Commands on splits and on the files of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import EMBEDDER_HELP, SPLIT_HELP, OutOption, SplitOption, finish
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError, counted

FileFormatOption = Annotated[str, typer.Option("--format", help="jsonl or parquet.")]


def split_list() -> None:
    """List the bundled splits."""
    from h2htalk.data.splits import list_splits

    for name, description in list_splits().items():
        say(f"{name}  {description}")


def split_info(name: Annotated[str, typer.Argument(help=SPLIT_HELP)]) -> None:
    """Describe a split: counts by subtask and language, personas, fingerprint."""
    from h2htalk.data.split_output.export import describe_split
    from h2htalk.data.splits import load_split

    say(describe_split(load_split(name)).rstrip("\n"))


def split_check(name: Annotated[str, typer.Argument(help="A split's folder or file.")]) -> None:
    """Check the items of a split: every error of every line, and references against their contract."""
    from h2htalk.text.contracts.split_check import check_split

    number, errors = check_split(name)
    for error in errors:
        say(error, err=True)
    say(f"{counted(number, 'item')}, {counted(len(errors), 'error')}")
    if errors:
        raise typer.Exit(2)


def split_new(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    language: Annotated[str, typer.Option(help="Of the examples: en or zh.")] = "en",
    study: Annotated[
        str | None,
        typer.Option(help="In place of scenarios: high_risk, look_alike, instructions or arcs."),
    ] = None,
) -> None:
    """Write a split to begin with: one example of each subtask, or of a study, to replace by your own items."""
    from h2htalk.data.split_output.export import write_new_split

    for path in write_new_split(folder, language, study or ""):
        say(str(path))


def split_diff(
    old: Annotated[str, typer.Argument(help=SPLIT_HELP)],
    new: Annotated[str, typer.Argument(help="Another version of it.")],
    runs: Annotated[
        list[Path] | None, typer.Option("--runs", help="A run whose moved cells are listed; repeatable.")
    ] = None,
) -> None:
    """List the items that differ between two splits, and the cells of runs that the difference moves."""
    from h2htalk.benchmark.split_changes import diff_splits, format_changes

    say(format_changes(diff_splits(old, new, runs or ())))


def split_export(
    name: Annotated[str, typer.Argument(help=SPLIT_HELP)],
    out: OutOption,
    format: FileFormatOption = "jsonl",
) -> None:
    """Write a split as a folder that can be edited and evaluated."""
    from h2htalk.data.releases.release_folder import private_folder
    from h2htalk.data.split_output.export import export_split
    from h2htalk.data.splits import load_split

    if format not in ("jsonl", "parquet"):
        raise ConfigError(f"--format {format!r}: choose from jsonl, parquet")
    split = load_split(name)
    for path in export_split(split, out, format):  # type: ignore[arg-type]
        say(str(path))
    if split.surrogates:
        from h2htalk.curation.release.invented_values import InventedValues
        from h2htalk.curation.release.items import ReleaseItem

        items = tuple(map(ReleaseItem, split.scenarios))
        if known := InventedValues.find(name, items):
            say(f"{known.write(private_folder(out), items)}: never publish it")


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
    from h2htalk.benchmark.score_run import import_responses as run_import

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
