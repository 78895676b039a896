"""Read and render prompt templates in Jinja's sandbox, so that one text has one fingerprint.

Each package that sends prompts has its own templates; this module is what they share.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from h2htalk.errors import ConfigError

# Errors that a template can cause while it is compiled or renders, beside Jinja's own.
FAULTS = (
    *(jinja2.TemplateError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError),
    *(RecursionError, SyntaxError, TypeError, ValueError),
)
_MAX_SIZE = 1_000_000  # of a product: characters or elements; of a power: bits
TemplateFiles = Mapping[str, tuple[Path, str]]  # name -> path and text
# Python's default text of an object: `<generator object sync_do_map at 0x7f3c0a2b9e40>`.
_ADDRESS = re.compile(r"<[^<>]+ at 0x[0-9a-fA-F]+>")


@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """Templates by name (`en/dialogue_base.j2`): text and file of each; compiled on use."""

    sources: Mapping[str, str]
    _origins: Mapping[str, str]
    _environment: Sandbox

    @classmethod
    def of(cls, *layers: TemplateFiles) -> Self:
        """Combine folders of templates, as `read_templates` reads them; a later one replaces its namesakes."""
        templates = {name: read for layer in layers for name, read in layer.items()}
        sources = {name: text for name, (_, text) in sorted(templates.items())}
        origins = {name: str(path) for name, (path, _) in templates.items()}
        return cls(sources, origins, open_environment(sources, origins))

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """Render one template, without outer white space. Raises ConfigError, which names file and line, where it fails
        (an undefined variable, for example)."""
        try:
            text = ""
            for part in self._environment.get_template(name).generate(values):
                text += part
                if len(text) > _MAX_SIZE:
                    raise OverflowError(f"gives more than the {_MAX_SIZE:,} characters that a prompt may have")
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
    """Read the `.j2` files of a folder: name (`en/dialogue_base.j2`) -> path and text. Raises ConfigError for a folder
    that is not there, or a file that is not UTF-8."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such prompts folder")
    templates = {}
    for path in sorted(folder.rglob("*.j2")):
        try:
            # Opening a pipe would wait for its writer.
            if not path.is_file() or path.stat().st_size > _MAX_SIZE:
                raise ConfigError(f"{path}: not a file of at most {_MAX_SIZE:,} bytes, so no template")
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not a readable UTF-8 template: {error}") from error
        templates[path.relative_to(folder).as_posix()] = (path, text)
    return templates


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which equal values always give equal text and no operator fills the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # Prompts are plain text; HTML pages escape it.
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=_repeatable,
        )
        # One fingerprint names one text: nothing random is available.
        del self.filters["random"], self.globals["lipsum"]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if _size(operator, left, right) > _MAX_SIZE:
            raise OverflowError(f"the result of {operator} is too large for a prompt")
        return super().call_binop(context, operator, left, right)


def _repeatable(value: object) -> object:
    """Return what an expression prints, unless it holds an address in memory, which differs in every run."""
    if not isinstance(value, str) and _ADDRESS.search(str(value)):
        raise TypeError(f"prints a {type(value).__name__}, not text; call it, or add | list or | join")
    return value


def _size(operator: str, left: object, right: object) -> int:
    """Compute how large a product or power would be; see `_MAX_SIZE`."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * right if operator == "**" else 0
    if isinstance(left, Sized) and isinstance(right, int):
        return len(left) * right
    if isinstance(right, Sized) and isinstance(left, int):
        return len(right) * left
    return 0


def open_environment(sources: Mapping[str, str], origins: Mapping[str, str]) -> Sandbox:
    """Open an environment of templates by name; `origins` are the files that they came from, for messages."""
    templates = {name: (text, origins[name], None) for name, text in sources.items()}
    return Sandbox(jinja2.FunctionLoader(templates.get))


def _reason(error: Exception) -> str:
    """Describe an error in one line."""
    return " ".join(str(error).split()) or type(error).__name__
