"""The command line. Exit codes: 0 done, 2 the user's input, 3 incomplete, 4 a check failed, 130 Ctrl-C, 1 a bug.

Each command parses, calls one library function and prints. Two things keep the start of a command short, and there is
no third: the module of a command is imported when the command is named (`Commands`), and the library's modules that it
uses are imported when it runs (`options.lazy_imports`). `h2htalk --help` imports neither.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer
import typer.main
from typer.core import TyperGroup

from h2htalk.addresses import REFUSED, holds_password
from h2htalk.cli.output import ended_by_ctrl_c, one_line_errors
from h2htalk.errors import ConfigError
from h2htalk.version import __version__

_MODEL_ADDRESS = re.compile(r"(?:server:.*@|app:)https?://", re.IGNORECASE)


class Entry(NamedTuple):
    """A command or a group of commands: the module of `h2htalk.cli` that defines it, and its line in `--help`."""

    module: str
    line: str


# The commands that belong to no group; a line is the first sentence of the command's help.
SINGLE = {
    "evaluate": Entry("benchmark", "Score a model on a split: generate, score, report."),
    "merge": Entry(
        "benchmark", "Merge the shards of a run into the run that one machine would have made."
    ),
    "score": Entry("benchmark", "Score a run's stored responses again; the model is not asked."),
    "report": Entry(
        "benchmark",
        "Print the table of a scored run; `--format terminal` also writes its tables and page again.",
    ),
    "costs": Entry("benchmark", "Show what a run, study or workspace paid: by stage and in total."),
    "leaderboard": Entry(
        "comparing", "Rank your runs among each other; --paper adds the paper's Table 2."
    ),
    "compare": Entry(
        "comparing",
        "Compare runs item by item: paired tests, intervals, and the items that moved most.",
    ),
    "correlate": Entry(
        "comparing",
        "Correlate metrics with people's ratings, and dimensions with each other and with other benchmarks.",
    ),
    "plan": Entry(
        "comparing",
        "Say how many items and samples a difference needs, and what fewer items can still detect.",
    ),
    "gate": Entry("comparing", "Hold a run against a reference run and a policy."),
    "analyze": Entry(
        "benchmark", "Measure a split: lengths, words, verb-noun pairs, diversity, coverage."
    ),
    "show": Entry(
        "curation",
        "Show records as transcripts, with their tags, and what was answered or decided about them.",
    ),
    "site": Entry(
        "site",
        "Write a static site of runs and studies: leaderboard, models, studies, every item, how the data came to be.",
    ),
    "watch": Entry(
        "site",
        "Follow a run or study that another process makes: answers, failures, cost and first figures.",
    ),
    "runs": Entry(
        "site",
        "List the runs, studies, rounds, releases and curations in a folder, with their state and headline figure.",
    ),
    "trend": Entry(
        "site",
        "Follow a figure over the runs in a folder: which run is not what those before it let expect.",
    ),
    "next": Entry(
        "site",
        "Say which step is due for each run, study, round, release and curation in a folder.",
    ),
    "schema": Entry(
        "schemas",
        "Print the JSON Schema of a settings file or a record, by which an editor completes and checks it.",
    ),
}
# The groups; `h2htalk round close` is the function `round_close` of the group's module.
GROUPS = {
    "study": Entry("studies", "Studies: safety and SAP, instruction following, memory."),
    "cases": Entry("studies", "Cases of your own for studies."),
    "split": Entry("splits", "Splits: list, describe, check, compare, export, begin a new one."),
    "prompts": Entry("benchmark", "What models are told: show a prompt, export the templates."),
    "results": Entry("results", "Results for others: export, verify."),
    "curate": Entry("curation", "Curate raw dialogues into reviewed candidates."),
    "round": Entry("rounds", "Open, follow and close rounds of annotation."),
    "release": Entry("releases", "Build, check, compare and publish releases."),
    "judge": Entry("judging", "Judge the answers of runs by a model, and calibrate it."),
    "adjudicate": Entry("judging", "Send low answers of judged runs to people."),
    "import": Entry("imports", "Import the files of other tools."),
    "launch": Entry("benchmark", "Run a suite on many machines: submit, follow, stop."),
    "integrations": Entry("integrations", "H2HTalk in other evaluation harnesses."),
}

# The sections of `--help`, each with its commands in the order in which most people need them.
SECTIONS = {
    "Evaluate models": "evaluate score report judge adjudicate import prompts results",
    "Compare runs": "leaderboard compare trend correlate plan",
    "Test a companion": "study cases gate",
    "Make a data set": "curate release split analyze show",
    "Work with annotators": "round",
    "Follow and publish": "runs next watch costs site",
    "Many machines": "launch merge",
    "Editors and other programs": "schema integrations",
}


class Group(TyperGroup):
    """A group that lists the first sentence of each command's help, whole: click cuts it, and at `(Eq.` too."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.line(ctx, name)) for name in self.list_commands(ctx)])

    def line(self, ctx: Any, name: str) -> str:
        """Return what the list says of a command."""
        command = self.get_command(ctx, name)
        text = (command.help if command else None) or ""
        return re.split(r"(?<=\.)\s(?=[A-Z])", text)[0]


class Commands(Group):
    """All commands, as click's lazy groups are: the module of a command is imported when the command is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        return " ".join(SECTIONS.values()).split()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.line(ctx, name)) for name in names.split()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = SINGLE.get(cmd_name) or GROUPS.get(cmd_name)
        if entry is not None and cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name, entry)
        return self.commands.get(cmd_name)

    def line(self, ctx: Any, name: str) -> str:
        return (SINGLE | GROUPS)[name].line

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.list_commands(ctx):
            self.load_all()  # typer suggests names among the commands that are there
        return super().resolve_command(ctx, args)

    def load_all(self) -> None:
        """Import the modules of all commands, for what lists every command and option."""
        for name in self.list_commands(None):
            self.get_command(None, name)


def _load(name: str, entry: Entry) -> Any:
    """Import the module of a command or a group, and return what click runs."""
    module = import_module(f"h2htalk.cli.{entry.module}")
    part = typer.Typer(
        cls=Group,
        help=entry.line,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )
    if name in SINGLE:
        part.command(name)(getattr(module, name))
        return typer.main.get_command(part)
    for function_name, function in vars(module).items():
        if function_name.startswith(f"{name}_") and callable(function):
            command_name = function_name.removeprefix(f"{name}_").replace("_", "-")
            part.command(command_name)(function)
    return typer.main.get_group(part)


app = typer.Typer(
    name="h2htalk",
    cls=Commands,
    help="Score language models that act as emotional companions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"h2htalk {__version__}")
        raise typer.Exit


def all_commands() -> Commands:
    """Return the command line with every command loaded."""
    commands = typer.main.get_command(app)
    assert isinstance(commands, Commands)
    commands.load_all()
    return commands


def _refuse_passwords(arguments: Sequence[str]) -> None:
    """Raise ConfigError, which names the option, where an argument is an address with a password."""
    for position, argument in enumerate(arguments):
        # What asks a model or an application says where its key belongs, and repeats none.
        if _MODEL_ADDRESS.match(argument) or not holds_password([argument]):
            continue
        name, _, _ = argument.partition("=")
        earlier = arguments[position - 1] if position else ""
        option = next(
            (text for text in (name, earlier) if text.startswith("--")), f"argument {position + 1}"
        )
        raise ConfigError(f"{option}: {REFUSED}")


def main() -> None:
    """Entry point."""
    # Records hold no cycles. Python looks for some after 700 new objects: a fifth of the time of reading 467,000 votes.
    gc.set_threshold(50_000)
    with one_line_errors(), ended_by_ctrl_c():
        _refuse_passwords(sys.argv[1:])
        try:
            _ = urlsplit(os.environ.get("HF_ENDPOINT", "")).port
        except (
            ValueError
        ) as error:  # at its import the Hub's client would fail on it with a traceback
            raise ConfigError(
                f"HF_ENDPOINT has no usable URL ({error}): unset it, or correct it"
            ) from error
        app()
