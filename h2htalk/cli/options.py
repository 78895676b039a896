"""Options of the commands, built from the fields of the specifications, and what commands print."""

from __future__ import annotations

import contextlib
import errno
import inspect
import io
import os
import signal
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
from h2htalk.data.files import masked
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import field_info, option_of
from h2htalk.errors import ConfigError, H2HTalkError, quoted, shorten
from h2htalk.rounds.settings import RoundSpec
from h2htalk.text.escaping import printable


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
References = Annotated[Path | None, Option(help="The split's private references (JSONL of id, references).")]
DryRun = Annotated[bool, Option("--dry-run", help="Print what would be done and cost; send and write nothing.")]
Watch = Annotated[bool, Option("--watch", help="Show replies, failures, cost and first figures as they come.")]
Verbose = Annotated[bool, Option("--verbose", help="Print everything the page shows: notes, slices, signature.")]
RayAddress = Annotated[str, Option(help="A running Ray cluster, HOST:PORT; default: one of its own on this machine.")]
DataFormat = Annotated[Literal["terminal", "csv", "json"], Option(help="terminal, csv or json.")]
TableFormat = Annotated[Literal["terminal", "csv", "json", "latex"], Option(help="terminal, csv, json or latex.")]


def finish(summary: summaries.Summary, folder: Path, verbose: bool = False) -> None:
    """Print a run's table; exit code 3 when items are unscored."""
    run_terminal.print_summary(summary, console(), {"report": (folder / "report.html").resolve()}, verbose)
    raise Exit(3 if summary.incomplete else 0)


def print_status(
    status: statuses.Status, messages: list[str] | None = None, *, table: bool = False, each_mistake: bool = False
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
        own = inspect.signature(command, eval_str=True).parameters
        made = {name: one for name, one in _options(kind).items() if name in (names or (name,)) and one.name not in own}

        def run(**given: Any) -> None:
            values = {name: given.pop(one.name) for name, one in made.items()}
            command(**given, **{name: _field(name, value) for name, value in values.items() if value is not None})

        options = [one for one in (*own.values(), *made.values()) if one.kind is not one.VAR_KEYWORD]
        signature = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in options])
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return add


@cache
def _options(kind: Any) -> dict[str, inspect.Parameter]:
    """The options of a record of settings, by field: of each field whose type has a description."""
    hints, options = get_type_hints(kind, include_extras=True), {}
    for one in fields(kind):
        info, default = field_info(hints[one.name]), one.default
        if info.description is None:
            continue
        name, text = info.title or one.name, info.description
        if default not in (MISSING, None, (), "") and not isinstance(default, bool):
            text += f"  [default: {str(default).removesuffix('.0')}]"
        flag = f"{option_of(name)}/{option_of(f'no_{name}')}" if default is True else option_of(name)
        annotation: Any = Annotated[_parsed(hints[one.name]) | None, Option(flag, help=text)]
        options[one.name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    return options


def _parsed(hint: Any) -> Any:
    """What the command line parses for a field of this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Annotated, Union, UnionType):
        return _parsed(next(one for one in inner if one is not NoneType))
    if origin in (tuple, Mapping):
        return list[str]
    return str if origin is Literal else hint


def _field(name: str, value: Any) -> Any:
    """The value of a field that a command line gave."""
    if not isinstance(value, list):
        return value
    if name != "engine_options":
        return tuple(value)
    pairs: dict[str, str] = {}
    for word in value:
        key, equals, text = map(str.strip, word.partition("="))
        if not equals or not key:
            raise ConfigError(f"--engine-option {quoted(word)}: write KEY=VALUE, such as dtype=bfloat16")
        if key in pairs:
            raise ConfigError(f"--engine-option: {key} is given twice")
        pairs[key] = text
    return pairs


# The settings of a round that every command which opens one has as options.
round_options = with_options(RoundSpec, "where", "annotators", "overlap", "seed")


LONGEST_ERROR = 600  # characters of an error line: a quoted value may be a whole file
INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it


def ignore_sigint() -> None:
    """Ignore Ctrl-C from now on, so that it cannot interrupt the end of an interrupted command."""
    with contextlib.suppress(ValueError):  # not in the main thread, which alone may set signal handlers
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_on_sigterm() -> None:
    """End on SIGTERM, by which a cluster stops a job, as on Ctrl-C: what came is stored. A second one is ignored."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a script started the command with `&`
    signal.signal(signal.SIGTERM, end)


def say(*texts: str, err: bool = False) -> None:
    """Print texts that may come from a file, line by line, with control characters escaped and without HF_TOKEN."""
    for text in texts:
        print(_shown(text), file=sys.stderr if err else sys.stdout, flush=True)


def _shown(text: str) -> str:
    return "\n".join(map(printable, masked(text, os.environ.get("HF_TOKEN", "").strip()).split("\n")))


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of a whole command, a full disk behind its output included, into one line and an exit code.

    A reader that has closed the pipe (`| head`) ends the command quietly; Ctrl-C is exit code 130, and a second one is
    ignored. Other exceptions are bugs and show their traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        # Escape what the terminal's encoding lacks (a path that is not UTF-8) instead of raising.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a full disk can still be reported
    except KeyboardInterrupt:
        ignore_sigint()
        sys.exit(INTERRUPTED)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # as typer ends a command after Ctrl-C
            ignore_sigint()
            say("stopped; what is finished is stored: the same command continues", err=True)
        raise
    except H2HTalkError as error:
        say(f"error: {shorten(_shown(str(error)), LONGEST_ERROR)}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # Writers of files turn OSError into DataError: this one is stdout's.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE):
            raise
        # The interpreter would try to flush what is still buffered at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            sys.exit(1)
        say(f"error: the output cannot be written: {error.strerror}; free space, or print elsewhere", err=True)
        sys.exit(H2HTalkError.exit_code)
