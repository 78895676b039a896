"""Commands that import the files of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from h2htalk.cli import options
from h2htalk.cli.output import say

with options.lazy_imports():
    from h2htalk.benchmark import score_run
    from h2htalk.data.imports import response_files
    from h2htalk.integrations import import_log

AuthorsFolder = Annotated[Path, Argument(help="The folder of the authors' released files.")]
InspectLog = Annotated[Path, Argument(help="A log (.eval or .json) of the task h2htalk/mini.")]
OpenCompassLog = Annotated[
    Path, Argument(help="A folder WORK/TIME, of data sets of `integrations opencompass`.")
]
TaskEmbedder = Annotated[str | None, Option(help=f"{options.EMBEDDER} Default: that of the task.")]


def import_responses(
    file: Annotated[Path, Argument(help="JSONL of id, response.")],
    split: options.SplitOption,
    out: options.Out,
    name: Annotated[str, Option(help="The model's name in tables.")] = "imported",
    embedder: options.Embedder = "bge-m3",
    human: Annotated[
        bool, Option("--human", help="People wrote the responses; tables say so.")
    ] = False,
) -> None:
    """Score responses that another tool produced, or people wrote."""
    options.finish(score_run.import_responses(file, name, split, out, embedder, human), out)


def import_inspect(
    log: InspectLog,
    out: options.Out,
    embedder: TaskEmbedder = None,
    split: Annotated[
        str | None,
        Option(help="The split of the log's items; the log's own if it is not on the Hub."),
    ] = None,
) -> None:
    """Make a run of a log of Inspect AI."""
    options.finish(import_log.import_inspect(log, out, embedder, split), out)


def import_opencompass(
    log: OpenCompassLog, out: options.Out, embedder: TaskEmbedder = None
) -> None:
    """Make a run of a log of OpenCompass."""
    options.finish(import_log.import_opencompass(log, out, embedder), out)


def import_authors(folder: AuthorsFolder, out: options.Out) -> None:
    """Import the authors' released references under their true subtasks, and list what is missing."""
    written, number, missing = response_files.import_authors(folder, out)
    say(*(f"missing  {line}" for line in missing), err=True)
    say(f"{number:,} references in {written}")
