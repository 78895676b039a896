"""Prompt templates in Jinja's sandbox: reading a folder of them, and rendering so that a text has one fingerprint.

Each room that sends prompts keeps its own templates; what is common to them is here.
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

# What a template can do wrong while it is compiled or renders, beside Jinja's own errors.
FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_MAX_SIZE = 1_000_000  # of a product: characters or elements; of a power: bits
TemplateFiles = Mapping[str, tuple[Path, str]]  # name -> path and text
# How Python prints what has no text of its own: `<generator object sync_do_map at 0x7f3c0a2b9e40>`.
_ADDRESS = re.compile(r"<[^<>]+ at 0x[0-9a-fA-F]+>")


@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """Templates by name (`en/dialogue_base.j2`): their text, the file each came from, compiled on use."""

    sources: Mapping[str, str]
    _origins: Mapping[str, str]
    _environment: Sandbox

    @classmethod
    def of(cls, *layers: TemplateFiles) -> Self:
        """The templates of folders, as `read_templates` reads them; a later one stands in place of its namesake."""
        found = {name: read for layer in layers for name, read in layer.items()}
        sources = {name: text for name, (_, text) in sorted(found.items())}
        origins = {name: str(path) for name, (path, _) in found.items()}
        return cls(sources, origins, open_environment(sources, origins))

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """One template's text without outer white space.

        Raises:
            ConfigError: the template fails (an undefined variable, say); names its file and line.
        """
        try:
            return self._environment.get_template(name).render(values).strip()
        except FAULTS as error:
            why = reason(error)
            if isinstance(error, jinja2.UndefinedError):
                why = f"{why}; this template may use {', '.join(sorted(values))}"
            raise ConfigError(f"{place(name, error, self._origins)}: {why}") from error

    def parse(self, name: str) -> nodes.Template:
        """A template's tree. Raises ConfigError where it cannot be compiled; names file and line."""
        try:
            self._environment.get_template(name)
            return self._environment.parse(self.sources[name])
        except FAULTS as error:
            raise ConfigError(f"{place(name, error, self._origins)}: {reason(error)}") from error

    def origin(self, name: str) -> str:
        """The file that a template came from, for messages."""
        return self._origins[name]


def read_templates(folder: Path) -> dict[str, tuple[Path, str]]:
    """The `.j2` files of a folder: name (`en/dialogue_base.j2`) -> path and text.

    Raises:
        ConfigError: no such folder, or a file that is not UTF-8.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such prompts folder")
    found = {}
    for path in sorted(folder.rglob("*.j2")):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not a readable UTF-8 template: {error}") from error
        found[path.relative_to(folder).as_posix()] = (path, text)
    return found


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which the same values always give the same text and no operator fills the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # Prompts are plain text; what is written to HTML is escaped there.
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=_repeatable,
        )
        # One fingerprint names one text: nothing random is at hand.
        del self.filters["random"], self.globals["lipsum"]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if _size(operator, left, right) > _MAX_SIZE:
            raise OverflowError(f"the result of {operator} is too large for a prompt")
        return super().call_binop(context, operator, left, right)


def _repeatable(value: object) -> object:
    """What an expression prints, unless that is a place in memory, which every run has another of."""
    if not isinstance(value, str) and _ADDRESS.search(str(value)):
        raise TypeError(f"prints a {type(value).__name__}, no text; call it, or add | list or | join")
    return value


def _size(operator: str, left: object, right: object) -> int:
    """How large a product or power gets, before it is computed; see `_MAX_SIZE`."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * right if operator == "**" else 0
    if isinstance(left, Sized) and isinstance(right, int):
        return len(left) * right
    if isinstance(right, Sized) and isinstance(left, int):
        return len(right) * left
    return 0


def open_environment(sources: Mapping[str, str], origins: Mapping[str, str]) -> Sandbox:
    """Templates by name; `origins` are the files that they came from, for messages."""

    def load(name: str) -> tuple[str, str, None] | None:
        return (sources[name], origins[name], None) if name in sources else None

    return Sandbox(jinja2.FunctionLoader(load))


def reason(error: Exception) -> str:
    """What a fault says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def place(name: str, error: Exception, origins: Mapping[str, str]) -> str:
    """`file:line` of the innermost template that an error passed through; the file of `name` where none is known."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or origins[name]}:{error.lineno}"
    paths = set(origins.values())
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename in paths:
            return f"{frame.f_code.co_filename}:{line}"
    return origins[name]
