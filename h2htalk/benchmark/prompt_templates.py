"""The prompt templates: where they are read from, what is checked on the way, and how one is rendered.

A user's folder overrides the bundled templates file by file. Its templates are code, so they run in Jinja's
sandbox, and a slip in them is an error before any model is asked: names that mean nothing, syntax, text or
blocks that would never show.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from h2htalk.data.dialogue import LANGUAGES
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError

# What a template can do wrong while it is compiled or renders, beside Jinja's own errors.
_FAULTS = (
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
# How Python prints what has no text of its own: `<generator object sync_do_map at 0x7f3c0a2b9e40>`.
_ADDRESS = re.compile(r"<[^<>]+ at 0x[0-9a-fA-F]+>")


@dataclass(frozen=True, slots=True, eq=False)
class TemplateSet:
    """All templates by name (`en/dialogue_base.j2`): their text, the file each came from, compiled on use."""

    sources: Mapping[str, str]
    _origins: Mapping[str, str]
    _environment: ImmutableSandboxedEnvironment

    @classmethod
    def load(cls, folder: Path | None = None, alone: bool = False) -> TemplateSet:
        """The bundled templates, with those of `folder` in place of their namesakes; `alone`: the folder's only.

        Raises:
            ConfigError: no such folder, or a `.j2` file in it that cannot work; names the file and line.
        """
        own = {} if folder is None else _read_folder(folder)
        for name, (path, _) in own.items():
            if not alone and name not in _bundled():
                raise ConfigError(
                    f"{path}: no prompt has this name; a prompts folder holds LANGUAGE/SUBTASK.j2, "
                    "LANGUAGE/_companion.j2 and LANGUAGE/sap/PRINCIPLE.j2, with LANGUAGE one of "
                    f"{', '.join(LANGUAGES)}"
                )
        found = own if alone else {**_bundled(), **own}
        sources = {name: text for name, (_, text) in sorted(found.items())}
        origins = {name: str(path) for name, (path, _) in found.items()}
        templates = cls(sources, origins, _environment(sources, origins))
        # A companion template of one's own may drop a block that bundled subtasks fill.
        for name in sources if any(name.endswith("/_companion.j2") for name in own) else own:
            templates._check(name)
        return templates

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """One template's text without outer white space.

        Raises:
            ConfigError: the template fails (an undefined variable, say); names its file and line.
        """
        try:
            return self._environment.get_template(name).render(values).strip()
        except _FAULTS as error:
            reason = _reason(error)
            if isinstance(error, jinja2.UndefinedError):
                reason = f"{reason}; this template may use {', '.join(sorted(values))}"
            raise ConfigError(f"{self._place(name, error)}: {reason}") from error

    def origin(self, name: str) -> str:
        """The file that a template came from, for messages."""
        return self._origins[name]

    def _check(self, name: str) -> None:
        try:
            self._environment.get_template(name)
            tree = self._environment.parse(self.sources[name])
        except _FAULTS as error:
            raise ConfigError(f"{self._place(name, error)}: {_reason(error)}") from error
        language, _, rest = name.partition("/")
        companion = f"{language}/_companion.j2"
        # Without the switch, the material of a task would stand in the system text and again after it.
        if name == companion and "part" not in meta.find_undeclared_variables(tree):
            raise ConfigError(
                f'{self._origins[name]}:1: must choose its block by {{% if part == "system" %}}'
            )
        if rest.removesuffix(".j2") in SUBTASKS:
            self._check_subtask(tree, self._origins[name], companion)

    def _check_subtask(self, tree: nodes.Template, origin: str, companion: str) -> None:
        """A subtask's template extends the companion's, and all that it says stands in blocks of that one."""
        parents = [getattr(node.template, "value", None) for node in tree.find_all(nodes.Extends)]
        if parents != [companion]:
            raise ConfigError(f'{origin}:1: must begin with {{% extends "{companion}" %}}')
        blocks = [b.name for b in self._environment.parse(self.sources[companion]).find_all(nodes.Block)]
        for node in tree.body:
            where, choices = f"{origin}:{node.lineno}", ", ".join(blocks)
            if isinstance(node, nodes.Block) and node.name not in blocks:
                raise ConfigError(f"{where}: block {node.name!r} would never show; choose from {choices}")
            if isinstance(node, nodes.Output) and not _is_blank(node):
                raise ConfigError(f"{where}: text outside a block would never show; put it into {choices}")

    def _place(self, name: str, error: Exception) -> str:
        """`file:line` of the innermost template that an error passed through."""
        if isinstance(error, jinja2.TemplateSyntaxError):
            return f"{error.filename or self._origins[name]}:{error.lineno}"
        paths = set(self._origins.values())
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            if frame.f_code.co_filename in paths:
                return f"{frame.f_code.co_filename}:{line}"
        return self._origins[name]


def _is_blank(node: nodes.Output) -> bool:
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes)


@cache
def _bundled() -> Mapping[str, tuple[Path, str]]:
    return _read_folder(Path(str(files("h2htalk.benchmark") / "prompts")))


def _read_folder(folder: Path) -> dict[str, tuple[Path, str]]:
    """The templates of a folder: name -> path and text."""
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


class _Sandbox(ImmutableSandboxedEnvironment):
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


def _environment(sources: Mapping[str, str], origins: Mapping[str, str]) -> _Sandbox:
    def load(name: str) -> tuple[str, str, None] | None:
        return (sources[name], origins[name], None) if name in sources else None

    return _Sandbox(jinja2.FunctionLoader(load))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
