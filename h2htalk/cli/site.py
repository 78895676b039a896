"""Commands on what is there: watch, runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from h2htalk.cli import options
from h2htalk.cli.options import say

with options.lazy_imports():
    from h2htalk.site import runs as listing
    from h2htalk.site import watch as following


def watch(run: Annotated[Path, Argument(help="The folder of a run or study.")]) -> None:
    """Follow a run or study that another process makes: answers, failures, cost and first figures."""
    say(following.watch(run, options.console()))


def runs(
    folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path("."),
    format: options.DataFormat = "terminal",
) -> None:
    """List the runs, studies, rounds, releases and curations in a folder, with their state and headline figure."""
    say(listing.list_runs(folder).to(format).rstrip("\n"))
