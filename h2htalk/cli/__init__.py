"""The command line. Exit codes: 0 done, 2 the user's input, 3 incomplete, 4 a check failed, 130 Ctrl-C, 1 a bug.

Each command parses, calls one library function and prints; the modules that it needs are loaded when it runs
(`options.lazy_imports`), so that `h2htalk --help` loads nothing heavy.
"""

from __future__ import annotations

import gc
import os
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from h2htalk.cli import benchmark, curation, integrations, site
from h2htalk.cli.options import one_line_errors
from h2htalk.errors import ConfigError
from h2htalk.version import __version__

# The groups of commands; `h2htalk round close` is the function `round_close` of the group's module.
GROUPS = {
    "study": (benchmark, "Studies: safety and SAP, instruction following, memory."),
    "cases": (benchmark, "Cases of your own for studies."),
    "split": (curation, "Splits: list, describe, check, compare, export, begin a new one."),
    "prompts": (benchmark, "What models are told: show a prompt, export the templates."),
    "results": (benchmark, "Results for others: export, verify."),
    "curate": (curation, "Curate raw dialogues into reviewed candidates."),
    "round": (curation, "Open, follow and close rounds of annotation."),
    "release": (curation, "Build, check, compare and publish releases."),
    "judge": (benchmark, "Judge the answers of runs by a model, and calibrate it."),
    "adjudicate": (benchmark, "Send low answers of judged runs to people."),
    "import": (curation, "Import the files of other tools."),
    "launch": (benchmark, "Run a suite on many machines: submit, follow, stop."),
    "integrations": (integrations, "H2HTalk in other evaluation harnesses."),
}


class Commands(TyperGroup):
    """A group that lists the first sentence of each command's help, whole: click cuts it, and at `(Eq.` too."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        texts = [(name, one.help or "") for name, one in found if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl([(name, re.split(r"(?<=\.)\s(?=[A-Z])", text)[0]) for name, text in texts])


app = typer.Typer(
    name="h2htalk",
    cls=Commands,
    help="Score language models that act as emotional companions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for name in ("evaluate", "merge", "score", "report", "costs", "leaderboard", "compare", "correlate", "plan", "gate"):
    app.command()(getattr(benchmark, name))
for command in (benchmark.analyze, curation.show, site.site, site.watch, site.runs):
    app.command()(command)
for group, (module, text) in GROUPS.items():
    commands = typer.Typer(help=text, cls=Commands, no_args_is_help=True)
    for name, command in vars(module).items():
        if name.startswith(f"{group}_") and callable(command):
            commands.command(name.removeprefix(f"{group}_").replace("_", "-"))(command)
    app.add_typer(commands, name=group)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"h2htalk {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point."""
    # Records hold no cycles. Python looks for some after 700 new objects: a fifth of the time of reading 467,000 votes.
    gc.set_threshold(50_000)
    with one_line_errors():
        try:
            _ = urlsplit(os.environ.get("HF_ENDPOINT", "")).port
        except ValueError as error:  # at its import the Hub's client would fail on it with a traceback
            raise ConfigError(f"HF_ENDPOINT has no usable URL ({error}): unset it, or correct it") from error
        app()
