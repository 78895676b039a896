"""The command that prints the JSON Schemas of files."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from h2htalk.cli import options
from h2htalk.cli.output import say

with options.lazy_imports():
    from h2htalk.data import settings


def schema(
    name: Annotated[
        str,
        Argument(help="app, case, curate, gate, release, round, scenario or suite."),
    ],
) -> None:
    """Print the JSON Schema of a settings file or a record, by which an editor completes and checks it."""
    say(settings.read_schema(name).rstrip("\n"))
