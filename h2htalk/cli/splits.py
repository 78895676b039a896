"""Commands of splits: list, describe, check, compare, export, begin a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option

from h2htalk.cli import options
from h2htalk.cli.output import say
from h2htalk.curation.stages import find_stage
from h2htalk.errors import counted

with options.lazy_imports():
    from h2htalk.analysis import split_description
    from h2htalk.benchmark import split_changes
    from h2htalk.curation import workspace as workspaces
    from h2htalk.curation.release import content
    from h2htalk.data import split_output, splits
    from h2htalk.data.releases import release_folder
    from h2htalk.text import record_diff
    from h2htalk.text.contracts import split_check as contracts

FileFormat = Annotated[Literal["jsonl", "parquet"], Option(help="jsonl or parquet.")]
CandidateStage = Annotated[
    str | None, Option(help="compose or review; default: the last finished one of them.")
]
CasesInstead = Annotated[
    str, Option(help="Cases instead: high_risk, look_alike, instructions or arcs.")
]
MovedRuns = Annotated[
    list[Path] | None, Option(help="A run whose moved cells are listed; repeatable.")
]
NewFolder = Annotated[Path, Argument(help="The folder to write.")]
NewSplit = Annotated[str, Argument(help="Another version of it.")]


def split_list() -> None:
    """List the bundled splits."""
    say(*(f"{name}  {description}" for name, description in splits.list_splits().items()))


def split_info(name: options.Split) -> None:
    """Describe a split: counts by subtask and language, personas, fingerprint."""
    say(split_description.describe_split(splits.load_split(name)).rstrip("\n"))


def split_check(name: options.Split) -> None:
    """Check the items of a split: every error of every line, and references against their contract."""
    number, errors = contracts.check_split(name)
    say(*errors, err=True)
    say(f"{counted(number, 'item')}, {counted(len(errors), 'error')}")
    raise Exit(2 if errors else 0)


def split_new(
    folder: NewFolder, language: options.Examples = "en", study: CasesInstead = ""
) -> None:
    """Write a split to begin with: one example of each subtask, or of a study, to replace by your own items."""
    say(*map(str, split_output.write_new_split(folder, language, study)))


def split_diff(old: options.Split, new: NewSplit, runs: MovedRuns = None) -> None:
    """List the items that differ between two splits, and the cells of runs that the difference moves."""
    diff, tables = split_changes.diff_splits(old, new, runs or ())
    say(record_diff.format_diff(diff), *(table.to_terminal() for table in tables))


def split_export(name: options.Split, out: options.Out, format: FileFormat = "jsonl") -> None:
    """Write a split as a folder that can be edited and evaluated."""
    split = splits.load_split(name)
    say(*map(str, split_output.export_split(split, out, format)))
    items = tuple(map(content.ReleaseItem, split.scenarios)) if split.surrogates else ()
    if items and (values := content.InventedValues.find(name, items)):
        say(f"{values.write(release_folder.private_folder(out), items)}: never publish it")


def split_from(
    workspace: options.Workspace,
    out: options.Out,
    stage: CandidateStage = None,
    format: FileFormat = "jsonl",
) -> None:
    """Make a split from the candidates of a workspace's stage."""
    workspaces.Workspace(workspace).require_begun()
    split_export(str(workspace / find_stage(stage).name if stage else workspace), out, format)
