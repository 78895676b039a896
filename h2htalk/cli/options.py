"""Options of the commands, built from the fields of the specifications, and how runs and rounds are printed."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typer import Argument, Exit, Option

from h2htalk.chat.engines import ENGINES
from h2htalk.cli.output import say
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.settings import field_info, option_of
from h2htalk.errors import ConfigError, quoted


class _LazyFinder(PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, path, target)
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextlib.contextmanager
def lazy_imports() -> Iterator[None]:
    """Load the modules that are imported in this block when they are first used, so that `--help` loads none."""
    sys.meta_path.insert(0, _LazyFinder)
    try:
        yield
    finally:
        sys.meta_path.remove(_LazyFinder)


with lazy_imports():
    from h2htalk.benchmark import summary as summaries
    from h2htalk.benchmark import watch as following
    from h2htalk.benchmark.report import terminal as run_terminal
    from h2htalk.rounds import status as statuses


def read_folder(name: str) -> Path:
    if not name.strip():  # Path("") is the current folder
        raise ConfigError("--out is empty; name a folder")
    return Path(name)


SPLIT = (
    "A bundled split, a folder, a .jsonl or .parquet file, a curation's workspace or stage (WORKSPACE/compose), a "
    "release, or hub:OWNER/NAME@TAG."
)
EMBEDDER = "bge-m3, minilm (English), none, or a name."
MODEL = f"ENGINE:NAME, with ENGINE one of {', '.join(ENGINES)}"
# A reader's replies follow a schema, but for guards in a form of their own, and the small model is refused.
_READERS = [engine.name for engine in ENGINES.values() if engine.schemas and not engine.small]
READER_MODEL = (
    f"ENGINE:NAME, with ENGINE one of {', '.join(_READERS)}; Qwen3Guard and Llama Guard also by hf."
)
LANGUAGE = f"{', '.join(LANGUAGES)}; all when left out."
Run = Annotated[Path, Argument(help="A run folder.")]
Round = Annotated[Path, Argument(help="Folder of the round.", metavar="ROUND")]
Workspace = Annotated[Path, Argument(help="A workspace made by `curate run`.")]
Split = Annotated[str, Argument(help=SPLIT)]
Embedder = Annotated[str, Option(help=EMBEDDER)]
SplitOption = Annotated[str, Option(help=SPLIT)]
Out = Annotated[Path, Option(help="The folder to write.", parser=read_folder, metavar="FOLDER")]
Examples = Annotated[str, Option(help="Language of the examples: en or zh.")]
Settings = Annotated[Path | None, Option(help="TOML file with these and all other settings.")]
References = Annotated[
    Path | None, Option(help="The split's private references (JSONL of id, references).")
]
Filtered = Annotated[
    Literal["refusal", "unscored"] | None,
    Option(
        help="What a provider's filter declined counts as: refusal or unscored. The run's own when left out."
    ),
]
RunPrompts = Annotated[
    Path | None,
    Option(
        "--prompts",
        help="The templates to render, where a run's are not those of this version: RUN/inputs/prompts.",
    ),
]
ShardPrompts = Annotated[
    Path | None,
    Option(
        "--prompts",
        help="The templates that the shards were asked with, if not those of this version.",
    ),
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Print what would be done and cost; send and write nothing.")
]
Yes = Annotated[bool, Option("--yes", help="Do not ask; required in scripts.")]
Watch = Annotated[
    bool, Option("--watch", help="Show replies, failures, cost and first figures as they come.")
]
Verbose = Annotated[
    bool, Option("--verbose", help="Print everything the page shows: notes, slices, signature.")
]
RayAddress = Annotated[
    str, Option(help="A running Ray cluster, HOST:PORT; default: one of its own on this machine.")
]
DataFormat = Annotated[Literal["terminal", "csv", "json"], Option(help="terminal, csv or json.")]
TableFormat = Annotated[
    Literal["terminal", "csv", "json", "latex"], Option(help="terminal, csv, json or latex.")
]


def finish(summary: summaries.Summary, folder: Path, verbose: bool = False) -> None:
    """Print a run's table; exit code 3 when items are unscored."""
    run_terminal.print_summary(
        summary, console(), {"report": (folder / "report.html").resolve()}, verbose
    )
    raise Exit(3 if summary.incomplete else 0)


def print_status(
    status: statuses.Status,
    messages: list[str] | None = None,
    *,
    table: bool = False,
    each_mistake: bool = False,
) -> None:
    """Print how far a round is, and what is wrong in it."""
    say(*(messages or ()), *statuses.status_lines(status))
    if table and status.progress:
        say(statuses.progress_table(status).to_terminal())
    say(*statuses.grouped(status.notes))
    say(*(status.mistakes if each_mistake else statuses.grouped(status.mistakes)), err=True)


def watched(watch: bool, folder: Path, work: Callable[[Any], Any], spec: Any) -> Any:
    """Do the work that a specification describes, and show the run or study meanwhile, or say on a terminal how to."""
    if not watch and sys.stderr.isatty():
        say(f"to follow it: --watch, or in a second terminal: h2htalk watch {folder}", err=True)
    with following.watching(folder) if watch else contextlib.nullcontext():
        return work(spec)


def console() -> Any:
    from rich.console import Console

    return Console()


Command = Callable[..., None]


def with_options(kind: Any, *names: str) -> Callable[[Command], Command]:
    """Add the options of a record of settings to a command: those named, or all, but those that it has itself. It gets
    the values that were given as keywords, under the names of the fields."""

    def add(command: Command) -> Command:
        of_command = inspect.signature(command, eval_str=True).parameters
        of_record: dict[str, inspect.Parameter] = {}
        for field, option in _options(kind).items():
            if field in (names or (field,)) and option.name not in of_command:
                of_record[field] = option

        def run(**values: Any) -> None:
            for field, option in of_record.items():
                value = values.pop(option.name)
                if value is not None:
                    values[field] = _field(field, value)
            command(**values)

        options = []
        for option in (*of_command.values(), *of_record.values()):
            if option.kind is not option.VAR_KEYWORD:
                options.append(option.replace(kind=option.KEYWORD_ONLY))
        run.__name__ = command.__name__
        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        return run

    return add


@cache
def _options(kind: Any) -> dict[str, inspect.Parameter]:
    """The options of a record of settings, by field: of each field whose type has a description."""
    hints = get_type_hints(kind, include_extras=True)
    options = {}
    for field in fields(kind):
        info = field_info(hints[field.name])
        if info.description is None:
            continue
        name = info.title or field.name
        text = info.description
        default = field.default
        if default not in (MISSING, None, (), "") and not isinstance(default, bool):
            text += f"  [default: {str(default).removesuffix('.0')}]"
        flag = (
            f"{option_of(name)}/{option_of(f'no_{name}')}" if default is True else option_of(name)
        )
        annotation: Any = Annotated[_parsed(hints[field.name]) | None, Option(flag, help=text)]
        options[field.name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
    return options


def _parsed(hint: Any) -> Any:
    """What the command line parses for a field of this type."""
    origin = get_origin(hint)
    if origin in (Annotated, Union, UnionType):
        return _parsed(next(part for part in get_args(hint) if part is not NoneType))
    if origin in (tuple, Mapping):
        return list[str]
    return str if origin is Literal else hint


def _field(name: str, value: Any) -> Any:
    """The value of a field that a command line gave."""
    if not isinstance(value, list):
        return value
    if not name.endswith("_options"):
        return tuple(value)
    option = option_of(name.removesuffix("s"))
    pairs: dict[str, str] = {}
    for word in value:
        key, equals, text = map(str.strip, word.partition("="))
        if not equals or not key:
            raise ConfigError(f"{option} {quoted(word)}: write KEY=VALUE, such as dtype=bfloat16")
        if key in pairs:
            raise ConfigError(f"{option}: {key} is given twice")
        pairs[key] = text
    return pairs
