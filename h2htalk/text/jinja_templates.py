"""Read and render prompt templates in Jinja's sandbox, so that one text has one fingerprint.

Each package that sends prompts has its own templates; this module is what they share.
"""

from __future__ import annotations

import itertools
import re
import traceback
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from h2htalk.errors import ConfigError
from h2htalk.text.template_process import TOO_LARGE, Renderer, render_apart, serve

# Errors that a template can cause while it is compiled or renders, beside Jinja's own.
FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_MAX_SIZE = 1_000_000  # of a product: characters or elements; of a power: bits
_MOST_FILES = 1_000  # of a folder; the bundled ones are some 50
_LARGEST_FILE = 100_000  # bytes; the bundled ones have up to 10,000, and to compile one of a megabyte takes 2 GB
_MOST_BYTES = 1_000_000  # of a folder, together
_numbers = itertools.count(1)  # of sets of templates
_PACKAGE = Path(__file__).absolute().parents[1]
TemplateFiles = Mapping[str, tuple[Path, str]]  # name -> path and text
_WIDTH = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(?:[0-9]*\.)?([0-9]+|\*)")
# Python's default text of an object: `<generator object sync_do_map at 0x7f3c0a2b9e40>`.
_ADDRESS = re.compile(r"<[^<>]+ at 0x[0-9a-fA-F]+>")


@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """Templates by name (`en/dialogue_base.j2`): text and file of each; compiled on use."""

    sources: Mapping[str, str]
    _origins: Mapping[str, str]
    _environment: Sandbox
    # Not 0 where one of them did not come with this package: then a child process renders them.
    _foreign: int = 0

    @classmethod
    def of(cls, *layers: TemplateFiles) -> Self:
        """Combine folders of templates, as `read_templates` reads them; a later one replaces its namesakes."""
        templates: dict[str, tuple[Path, str]] = {}
        for layer in layers:
            templates.update(layer)
        sources = {name: text for name, (_, text) in sorted(templates.items())}
        origins = {name: str(path) for name, (path, _) in templates.items()}
        is_foreign = any(_PACKAGE not in path.absolute().parents for path, _ in templates.values())
        foreign = next(_numbers) if is_foreign else 0
        return cls(sources, origins, open_environment(sources, origins), foreign)

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """Render one template, without outer white space.

        Raises ConfigError, which names file and line, where it fails (an undefined variable, for example).
        """
        if self._foreign:
            return render_apart(self._foreign, (self.sources, self._origins), name, values)
        return self.render_here(name, values)

    def render_here(self, name: str, values: Mapping[str, object]) -> str:
        """Render in this process, whatever the template takes of memory and time."""
        try:
            text = ""
            for piece in self._environment.get_template(name).generate(values):
                text += piece
                if len(text) > _MAX_SIZE:
                    raise OverflowError(
                        f"gives more than the {_MAX_SIZE:,} characters that a prompt may have"
                    )
            return text.strip()
        except FAULTS as error:
            why = _reason(error)
            if isinstance(error, jinja2.UndefinedError):
                why = f"{why}; this template may use {', '.join(sorted(values))}"
            raise ConfigError(f"{self._place(name, error)}: {why}") from error

    def parse(self, name: str) -> nodes.Template:
        """Parse a template into its tree. Raises ConfigError where it cannot be compiled; names file and line."""
        try:
            self._environment.get_template(name)
            return self._environment.parse(self.sources[name])
        except FAULTS as error:
            raise ConfigError(f"{self._place(name, error)}: {_reason(error)}") from error

    def origin(self, name: str) -> str:
        """The file that a template came from, for messages."""
        return self._origins[name]

    def _place(self, name: str, error: Exception) -> str:
        # `file:line` of the innermost template that the error passed through; else the file of `name`.
        if isinstance(error, jinja2.TemplateSyntaxError):
            return f"{error.filename or self._origins[name]}:{error.lineno}"
        paths = set(self._origins.values())
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            if frame.f_code.co_filename in paths:
                return f"{frame.f_code.co_filename}:{line}"
        return self._origins[name]


def read_templates(folder: Path) -> dict[str, tuple[Path, str]]:
    """Read the `.j2` files of a folder: name (`en/dialogue_base.j2`) -> path and text.

    Raises ConfigError for a folder that is not there or holds too much, or a file that is not UTF-8.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such prompts folder")
    paths = sorted(itertools.islice(folder.rglob("*.j2"), _MOST_FILES + 1))
    if len(paths) > _MOST_FILES:
        raise ConfigError(
            f"{folder}: holds more than {_MOST_FILES:,} templates; a folder of prompts has one a task"
        )
    templates = {}
    total = 0
    for path in paths:
        try:
            # Opening a pipe would wait for its writer.
            if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
                raise ConfigError(
                    f"{path}: not a file of at most {_LARGEST_FILE:,} bytes, so no template"
                )
            total += path.stat().st_size
            if total > _MOST_BYTES:
                raise ConfigError(
                    f"{folder}: its templates have more than {_MOST_BYTES:,} bytes together"
                )
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not a readable UTF-8 template: {error}") from error
        templates[path.relative_to(folder).as_posix()] = (path, text)
    return templates


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which equal values always give equal text and no operator fills the memory."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # Prompts are plain text; HTML pages escape it.
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=_repeatable,
            optimized=False,  # nothing is computed while a template is compiled, which no limit holds
        )
        # One fingerprint names one text: nothing random is available.
        del self.filters["random"], self.globals["lipsum"]

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and _length(owner, __obj.__name__, args, kwargs) > _MAX_SIZE:
            raise OverflowError(f"the result of {__obj.__name__}() is too large for a prompt")
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if _size(operator, left, right) > _MAX_SIZE:
            raise OverflowError(f"the result of {operator} is too large for a prompt")
        return super().call_binop(context, operator, left, right)


def _length(text: str, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """How long a text a method may make of a text, where an argument says it: `"x".center(10**10)`."""
    if method == "replace" and len(args) >= 2:
        old, new = args[:2]
        if isinstance(old, str) and isinstance(new, str):
            return len(text) + text.count(old) * len(new)
    if method == "expandtabs":
        return text.count("\t") * _largest(args, default=8)
    if method in ("center", "ljust", "rjust", "zfill"):
        return _largest((*args, *kwargs.values()), default=0)
    return 0


def _largest(arguments: Sequence[Any], default: int) -> int:
    """The largest number among arguments, without its sign."""
    return max((abs(width) for width in arguments if isinstance(width, int)), default=default)


@jinja2.pass_context  # else Jinja would print constants while it compiles
def _repeatable(context: Context, value: object) -> object:
    """Return what an expression prints, unless it holds an address in memory, which differs in every run."""
    if not isinstance(value, str) and _ADDRESS.search(str(value)):
        raise TypeError(
            f"prints a {type(value).__name__}, not text; call it, or add | list or | join"
        )
    return value


def _size(operator: str, first: object, second: object) -> int:
    """Compute how large a product or power would be; see `_MAX_SIZE`."""
    if operator == "%":
        # The largest width or precision in a pattern such as `%10s`; `*` takes it from an argument.
        widths = _WIDTH.findall(first) if isinstance(first, str) else []
        sizes = (_MAX_SIZE + 1 if width == "*" else int(width[:9]) for width in widths)
        return max(sizes, default=0)
    if isinstance(first, int) and isinstance(second, int):
        return first.bit_length() * second if operator == "**" else 0
    if isinstance(first, Sized) and isinstance(second, int):
        return len(first) * second
    if isinstance(second, Sized) and isinstance(first, int):
        return len(second) * first
    return 0


def serve_renders(seconds: float) -> None:
    """Render what the parent process asks for (`template_process`)."""

    def open_templates(sources: Mapping[str, str], origins: Mapping[str, str]) -> Renderer:
        return Templates(sources, origins, open_environment(sources, origins)).render_here

    serve(open_templates, seconds)


def open_environment(sources: Mapping[str, str], origins: Mapping[str, str]) -> Sandbox:
    """Open an environment of templates by name; `origins` are the files that they came from, for messages."""
    templates = {name: (text, origins[name], None) for name, text in sources.items()}
    return Sandbox(jinja2.FunctionLoader(templates.get))


def _reason(error: Exception) -> str:
    """Describe an error in one line."""
    if isinstance(error, MemoryError):  # of the child under its limit; it has no text
        return TOO_LARGE
    return " ".join(str(error).split()) or type(error).__name__
