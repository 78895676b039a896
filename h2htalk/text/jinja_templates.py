"""Read and render prompt templates in Jinja's sandbox, so that one text has one fingerprint.

Each package that sends prompts has its own templates; this module is what they share.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinMethodType
from typing import Any, Self

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from h2htalk.errors import ConfigError

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
_MAX_SIZE = 1_000_000  # of a prompt and of any value in it: characters or elements; of a power: bits
_MAX_WORK = 10 * _MAX_SIZE  # characters that one call may make before its result can be measured
_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
_MAX_SECONDS = 1.0  # of the processor, for one prompt
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
        """Render one template, without outer white space.

        Raises:
            ConfigError: the template fails (an undefined variable, for example); names its file and line.
        """
        try:
            return self._environment.get_template(name).render(values).strip()
        except FAULTS as error:
            why = reason(error)
            if isinstance(error, jinja2.UndefinedError):
                why = f"{why}; this template may use {', '.join(sorted(values))}"
            raise ConfigError(f"{place(name, error, self._origins)}: {why}") from error

    def parse(self, name: str) -> nodes.Template:
        """Parse a template into its tree. Raises ConfigError where it cannot be compiled; names file and line."""
        try:
            self._environment.get_template(name)
            return self._environment.parse(self.sources[name])
        except FAULTS as error:
            raise ConfigError(f"{place(name, error, self._origins)}: {reason(error)}") from error

    def origin(self, name: str) -> str:
        """The file that a template came from, for messages."""
        return self._origins[name]


def read_templates(folder: Path) -> dict[str, tuple[Path, str]]:
    """Read the `.j2` files of a folder: name (`en/dialogue_base.j2`) -> path and text.

    Raises:
        ConfigError: no such folder, or a file that is not UTF-8.
    """
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


class _Bounded(NodeTransformer):
    """Let each pass of a loop, and each joining of texts with `~`, ask the sandbox."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        size = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        node.body.insert(0, nodes.ExprStmt(_ask("spend", [nodes.Const(size)], node.lineno), lineno=node.lineno))
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _ask("measure", [node.expr], node.lineno)
        for operand in node.ops:
            operand.expr = _ask("measure", [operand.expr], node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _ask("join_texts", node.nodes, node.lineno)


def _ask(method: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None, lineno=line)


class _Template(jinja2.Template):
    def render(self, *args: Any, **kwargs: Any) -> str:
        environment = self.environment
        assert isinstance(environment, Sandbox)
        environment.begin()
        return super().render(*args, **kwargs)


class _Spent(threading.local):
    """What a render in this thread has spent."""

    size = 0
    deadline = math.inf


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which equal values always give equal text, and no template fills the memory or hangs."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    template_class = _Template

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # Prompts are plain text; HTML pages escape it.
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=self._print,
        )
        # One fingerprint names one text: nothing random is available. A format may hold a width of any size.
        del self.filters["random"], self.filters["format"], self.filters["attr"], self.globals["lipsum"]
        self.filters |= {name: self._bounded(name, made) for name, made in self.filters.items()}
        self._spent = _Spent()

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        self.begin()  # constants are computed now
        return str(super()._generate(_Bounded().visit(source), *args, **kwargs))

    def begin(self) -> None:
        """Begin a prompt of this thread."""
        self._spent.size, self._spent.deadline = 0, time.thread_time() + _MAX_SECONDS

    def spend(self, size: int = 0) -> None:
        """Count characters of the prompt, and look at the clock; raises OverflowError."""
        self._spent.size += size
        if self._spent.size > _MAX_SIZE:
            raise OverflowError(f"makes more than {_MAX_SIZE:,} characters: too large for a prompt")
        if time.thread_time() > self._spent.deadline:
            raise OverflowError(f"takes more than {_MAX_SECONDS:g} s of the processor: too long for a prompt")

    def measure(self, value: object) -> object:
        return _measured(value, "an expression")

    def join_texts(self, *parts: object) -> str:
        text = "".join(str(_measured(part, "an expression")) for part in parts)
        _measured(text, "~")
        return text

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise TypeError("texts take no %; use ~ to join them")
        if _size(operator, left, right) > _MAX_SIZE:
            raise OverflowError(f"the result of {operator} is too large for a prompt")
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        own = getattr(__obj, "__self__", None)
        if own is __self:
            return __obj(*args)
        __self.spend()
        if not isinstance(__obj, BuiltinMethodType):
            return super().call(__context, __obj, *args, **kwargs)
        _check_work(__obj.__name__, own, *args, *kwargs.values())
        return _measured(super().call(__context, __obj, *args, **kwargs), __obj.__name__)

    def getattr(self, obj: Any, attribute: str) -> Any:
        _refuse_format(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        _refuse_format(obj, argument)
        return super().getitem(obj, argument)

    def _bounded(self, name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(made)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            if name != "truncate":
                _check_work(name, *args, *kwargs.values())
            found = made(*args, **kwargs)
            return self._count(found) if isinstance(found, Iterator) else _measured(found, name)

        return bounded

    def _count(self, values: Iterator[Any]) -> Iterator[Any]:
        total = 0
        for value in values:
            self.spend()
            total += _weight(value)
            if total > _MAX_SIZE:
                raise OverflowError("a list is too large for a prompt")
            yield value

    def _print(self, value: object) -> object:
        self.spend(len(str(_measured(value, "an expression"))))
        return _repeatable(value)


def _refuse_format(value: object, name: object) -> None:
    if isinstance(value, str) and name in ("format", "format_map"):
        raise TypeError("texts have no format here; use ~ to join them")


def _weight(value: object) -> int:
    """Count the characters and elements of a value, those of nested ones too; stops beyond `_MAX_SIZE`."""
    total, waiting = 0, [value]
    while waiting and total <= _MAX_SIZE:
        one = waiting.pop()
        total += len(one) if isinstance(one, str | bytes) else 1
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, _SIZED) and not isinstance(one, str | bytes):
            waiting += one
    return total


def _check_work(name: str, *values: object) -> None:
    """Raise OverflowError where a call could make a result of absurd size: the product of its texts and numbers."""
    if any(isinstance(value, _SIZED) for value in values):
        sizes = [max(1, abs(value) if isinstance(value, int) else _weight(value)) for value in values]
        if math.prod(sizes) > _MAX_WORK or max(map(_weight, values)) > _MAX_SIZE:
            raise OverflowError(f"the result of {name} is too large for a prompt")


def _measured(value: Any, name: str) -> Any:
    if _weight(value) > _MAX_SIZE:
        raise OverflowError(f"the result of {name} is too large for a prompt")
    return value


def _repeatable(value: object) -> object:
    """Return what an expression prints, unless it holds an address in memory, which differs in every run."""
    if not isinstance(value, str) and _ADDRESS.search(str(value)):
        raise TypeError(f"prints a {type(value).__name__}, not text; call it, or add | list or | join")
    return value


def _size(operator: str, left: object, right: object) -> int:
    """Compute how large a sum, product or power would be; see `_MAX_SIZE`."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * right if operator == "**" else 0
    sizes = [len(one) if isinstance(one, _SIZED) else one if isinstance(one, int) else 0 for one in (left, right)]
    return sum(sizes) if isinstance(left, _SIZED) and isinstance(right, _SIZED) else math.prod(sizes)


def open_environment(sources: Mapping[str, str], origins: Mapping[str, str]) -> Sandbox:
    """Open an environment of templates by name; `origins` are the files that they came from, for messages."""

    def load(name: str) -> tuple[str, str, None] | None:
        return (sources[name], origins[name], None) if name in sources else None

    return Sandbox(jinja2.FunctionLoader(load))


def reason(error: Exception) -> str:
    """Describe an error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def place(name: str, error: Exception, origins: Mapping[str, str]) -> str:
    """Return `file:line` of the innermost template that an error passed through; else the file of `name`."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or origins[name]}:{error.lineno}"
    paths = set(origins.values())
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename in paths:
            return f"{frame.f_code.co_filename}:{line}"
    return origins[name]
