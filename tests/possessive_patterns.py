"""Find possessive quantifiers and atomic groups, which `re` matches wrongly before Python 3.11.5 (Debian 12: 3.11.2).

Static: the strings of a source or of a TOML file. At run time: `refuse_possessive` sees what is put together there.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
# Escapes and character classes are read over; what else matches is one of the two.
_READ = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?>|(?:[*+?]|\{(?:\d+,?\d*|,\d*)\})\+", re.DOTALL)


def possessive_parts(pattern: str) -> list[str]:
    """The possessive quantifiers and the openings of atomic groups of a regular expression."""
    return [found[0] for found in _READ.finditer(pattern) if found[0][0] not in "\\["]


def possessive_strings(text: str, suffix: str) -> list[str]:
    """The strings of a source that imports `re` (docstrings left out), or of a TOML file, that hold any."""
    strings = _toml_strings(tomllib.loads(text)) if suffix == ".toml" else _python_strings(ast.parse(text))
    return [string for string in strings if possessive_parts(string)]


def _toml_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _toml_strings(each)


def _python_strings(tree: ast.Module) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    imported = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    if "re" not in imported | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}:
        return
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def refuse_possessive() -> None:
    """Let `re` refuse to compile such a pattern for a file of this repository."""
    from re import _parser  # type: ignore[attr-defined]  # the one place that every pattern passes

    def checked(pattern: str | bytes, *rest: Any, **named: Any) -> Any:
        if isinstance(pattern, str) and possessive_parts(pattern) and (where := _place(sys._getframe(1))):
            raise AssertionError(
                f"{where}: `re` of Python 3.11.2 matches {possessive_parts(pattern)} wrongly: {pattern!r}"
            )
        return parse(pattern, *rest, **named)

    parse: Callable[..., Any] = _parser.parse
    _parser.parse = checked


def _place(frame: FrameType | None) -> str | None:
    """The file and line that asks `re`; None where it is not ours."""
    while frame and Path(frame.f_code.co_filename).parent == Path(re.__file__).parent:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename) if frame else ROOT
    ours = any(path.is_relative_to(ROOT / name) for name in ("h2htalk", "tools", "tests"))
    return f"{path.name}:{frame.f_lineno}" if frame and ours else None
