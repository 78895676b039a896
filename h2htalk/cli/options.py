"""Options that several commands share, and the end of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    from h2htalk.benchmark.summary import Summary

RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]
SPLIT_HELP = (
    "A bundled split, a folder, a .jsonl or .parquet file, a curation's workspace or stage (WORKSPACE/compose), a "
    "release, or hub:OWNER/NAME@TAG."
)
SplitOption = Annotated[str, typer.Option("--split", help=SPLIT_HELP)]


def read_folder(name: str) -> Path:
    if not name.strip():  # Path("") is the current folder
        raise ConfigError("--out is empty; name a folder")
    return Path(name)


OutOption = Annotated[Path, typer.Option("--out", help="The folder to write.", parser=read_folder, metavar="FOLDER")]
EMBEDDER_HELP = "bge-m3, minilm (English), none, or a name."
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print everything the page shows: notes, slices, signature.")
]
FormatOption = Annotated[str, typer.Option("--format", help="terminal, csv, json or latex.")]


def finish(summary: Summary, folder: Path, verbose: bool = False) -> None:
    """Print a run's table; exit code 3 when items are unscored."""
    from h2htalk.benchmark.report.terminal import print_summary

    print_summary(summary, console(), {"report": (folder / "report.html").resolve()}, verbose)
    raise typer.Exit(3 if summary.incomplete else 0)


def require_format(format: str, *choices: str) -> None:
    allowed = ("terminal", *(choices or ("csv", "json", "latex")))
    if format not in allowed:
        raise ConfigError(f"--format {format!r}: choose from {', '.join(allowed)}")


def console() -> Any:
    from rich.console import Console

    return Console()
