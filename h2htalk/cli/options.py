"""Options that several commands share, and the end of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from h2htalk.data.arguments import field_info
from h2htalk.errors import ConfigError, quoted

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
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the number of calls and their cost; send and write nothing.")
]
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


Command = Callable[..., None]


def with_options(kind: Any, *names: str) -> Callable[[Command], Command]:
    """Add the options of a record of settings to a command: those named, or all, but those that it has itself.

    The command gets the values that were given, under the names of the fields, as keywords.
    """

    def add(command: Command) -> Command:
        taken = inspect.signature(command, eval_str=True).parameters
        made = {name: one for name, one in _options(kind) if one.name not in taken and (not names or name in names)}

        def run(**given: Any) -> None:
            values = {name: given.pop(one.name) for name, one in made.items()}
            command(**given, **{name: _field(name, value) for name, value in values.items() if value is not None})

        return _with_signature(run, command, made.values())

    return add


def with_parameters(command: Command, other: Command) -> Command:
    """Add the parameters of another function to a command."""
    return _with_signature(
        lambda **given: command(**given), command, inspect.signature(other, eval_str=True).parameters.values()
    )


def _with_signature(run: Command, command: Command, more: Iterable[inspect.Parameter]) -> Command:
    own = inspect.signature(command, eval_str=True).parameters.values()
    options = [one.replace(kind=one.KEYWORD_ONLY) for one in (*own, *more) if one.kind is not one.VAR_KEYWORD]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


@cache
def _options(kind: Any) -> list[tuple[str, inspect.Parameter]]:
    """The options of a record of settings, by field: of each field whose type has a description."""
    hints, options = get_type_hints(kind, include_extras=True), []
    for one in fields(kind):
        info = field_info(hints[one.name])
        if info.description is None:
            continue
        name, default = info.title or one.name, one.default
        option = f"--{name.replace('_', '-')}"
        flag = f"{option}/--no-{option.removeprefix('--')}" if default is True else option
        text = info.description
        if default not in (MISSING, None, (), "") and not isinstance(default, bool):
            text += f"  [default: {default:g}]" if isinstance(default, float) else f"  [default: {default}]"
        parsed = _parsed(hints[one.name]) | None
        annotation: Any = Annotated[parsed, typer.Option(flag, help=text)]
        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        options.append((one.name, parameter))
    return options


def _parsed(hint: Any) -> Any:
    """What the command line parses for a field of this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in (Union, UnionType):
        return _parsed(next(one for one in inner if one is not NoneType))
    if origin in (tuple, Mapping):
        return list[str]
    return str if origin is Literal else hint


def _field(name: str, value: Any) -> Any:
    """The value of a field that a command line gave."""
    if name == "engine_options":
        return _pairs(value)
    return tuple(value) if isinstance(value, list) else value


def _pairs(words: list[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` arguments into a table."""
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--engine-option {quoted(word)}: write KEY=VALUE, such as dtype=bfloat16")
        if key.strip() in pairs:
            raise ConfigError(f"--engine-option: {key.strip()} is given twice")
        pairs[key.strip()] = value.strip()
    return pairs
