"""Break the package in small ways and count how many of the breaks its tests find.

python tools/mutants.py h2htalk/chat h2htalk/benchmark [--count 60] [--seed 35] [--tree TREE] [--workers 2] [--list]

Each mutant changes one operator, comparison, constant, condition or statement in a copy of TREE; line numbers stay. The
mutants are spread over the folders by lines. Each is held against the test files that name its module, then against all
tests of its folder; the first failure ends it. Tests marked `live` or `slow` are left out. Prints Markdown.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import difflib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAIRS = (
    "Eq NotEq",
    "Is IsNot",
    "In NotIn",
    "Lt LtE",
    "Gt GtE",
    "And Or",
    "Add Sub",
    "Mult Div",
    "BitAnd BitOr",
)
OTHER = {one: other for pair in PAIRS for one, other in (pair.split(), pair.split()[::-1])}
OTHER |= {"FloorDiv": "Mult", "Mod": "Mult"}
REMOVED = ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Return
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "runs", "__pycache__", "*.egg-info", ".mypy_cache", ".ruff_cache"
)


@dataclass(frozen=True)
class Mutant:
    """A change of a file below the tree."""

    path: Path
    kind: str
    node: Any

    @property
    def name(self) -> str:
        return f"{self.path}:{self.node.lineno}"

    def text(self, source: str) -> str | None:
        """The changed file, with as many lines; None where it is the same or cannot be compiled."""
        at = self.node
        new = copy.deepcopy(self.node)
        if self.kind == "negated condition":
            new = ast.UnaryOp(ast.Not(), new)
        elif self.kind == "removed statement":
            new = ast.Return() if isinstance(new, ast.Return) else ast.Pass()
        elif self.kind == "constant":
            step = 1 if abs(new.value) < 10 else new.value
            new.value = (not new.value) if isinstance(new.value, bool) else new.value + step
        elif self.kind == "comparison":
            new.ops[0] = getattr(ast, OTHER[type(new.ops[0]).__name__])()
        else:
            new.op = getattr(ast, OTHER[type(new.op).__name__])()
        made = ast.unparse(ast.fix_missing_locations(new)) + "\n" * (at.end_lineno - at.lineno)
        made = (
            f"({made})" if isinstance(new, ast.expr) and not isinstance(new, ast.Constant) else made
        )
        lines = source.encode().splitlines(keepends=True)
        first = lines[at.lineno - 1][: at.col_offset]
        last = lines[at.end_lineno - 1][at.end_col_offset :]
        text = b"".join(
            [*lines[: at.lineno - 1], first, made.encode(), last, *lines[at.end_lineno :]]
        ).decode()
        try:
            compile(text, str(self.path), "exec")
        except SyntaxError:
            return None
        return text if text != source else None


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """What may be changed: no annotation, string, decorator, import for types alone or part of an f-string."""
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            skipped = name in ("annotation", "returns", "decorator_list") or isinstance(
                node, ast.JoinedStr
            )
            for_types = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            if isinstance(node, ast.AST) and not skipped and not for_types:
                yield node
                yield from nodes(node)


def mutants_of(path: Path, source: str) -> Iterator[Mutant]:
    for node in nodes(ast.parse(source)):
        match node:
            case ast.Compare(ops=[op, *_]) if type(op).__name__ in OTHER:
                yield Mutant(path, "comparison", node)
            case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op).__name__ in OTHER:
                yield Mutant(path, "operator", node)
            case ast.Constant(value=int() | float()):
                yield Mutant(path, "constant", node)
            case ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant()):
                pass
            case ast.Assign([ast.Name() | ast.Tuple(), *_]):
                pass
            case _ if isinstance(node, REMOVED):
                yield Mutant(path, "removed statement", node)
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                yield Mutant(path, "negated condition", node.test)
            case ast.comprehension(ifs=[test, *_]):
                yield Mutant(path, "negated condition", test)


def draw(
    tree: Path, folders: Sequence[Path], count: int, seed: int
) -> Iterator[tuple[Mutant, str, str]]:
    """Mutants of the folders, in numbers that follow their lines of Python, each with the old text and the new."""
    texts = {
        f: {p.relative_to(tree): p.read_text() for p in sorted((tree / f).rglob("*.py"))}
        for f in folders
    }
    lines = [sum(text.count("\n") for text in own.values()) for own in texts.values()]
    rng = random.Random(seed)
    before = 0
    for number, own in enumerate(texts.values(), 1):
        upto = round(count * sum(lines[:number]) / sum(lines))
        found = [one for path, text in own.items() for one in mutants_of(path, text)]
        rng.shuffle(found)
        made = (
            (one, own[one.path], text)
            for one in found
            if (text := one.text(own[one.path])) is not None
        )
        yield from sorted((next(made) for _ in range(before, upto)), key=lambda one: one[0].name)
        before = upto


def run_tests(tree: Path, tests: Sequence[str], limit: float, workers: int) -> str:
    """`killed`, `survived` or `timed out`."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        f"-n{workers}",
        "-m",
        "not live and not slow",
        *tests,
    ]
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "start_new_session": True,
    }
    with subprocess.Popen(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, **quiet
    ) as process:
        try:
            return "killed" if process.wait(limit) else "survived"
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def write(path: Path, text: str) -> None:
    """Write a module, and drop its compiled form, which a change within a second would leave valid."""
    path.write_text(text)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def choose_tests(tree: Path, one: Mutant) -> list[str]:
    """The test files that name the module, then the folder's tests."""
    module = ".".join(one.path.with_suffix("").parts).removesuffix(".__init__")
    files = (
        path for path in sorted((tree / "tests").rglob("test_*.py")) if "live" not in path.parts
    )
    return [
        *(str(path) for path in files if module in path.read_text()),
        f"tests/{one.path.parts[1]}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    for name, value in {
        "count": 60,
        "seed": 35,
        "limit": 900,
        "workers": 0,
    }.items():  # limit: seconds for one mutant
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    given = parser.parse_args()
    results = Counter[tuple[str, str]]()
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        tree = shutil.copytree(given.tree, Path(folder) / "tree", ignore=LEFT_OUT)
        for name in () if given.list else {folder.parts[1] for folder in given.folders}:
            if (
                result := run_tests(tree, [f"tests/{name}"], 4 * given.limit, given.workers)
            ) != "survived":
                sys.exit(f"tests/{name} without a mutant: {result}")
        print("| mutant | kind | result | s |\n| --- | --- | --- | ---: |", flush=True)
        for one, source, text in draw(tree, given.folders, given.count, given.seed):
            start, result = time.monotonic(), "not run"
            if not given.list:
                write(tree / one.path, text)
                result = run_tests(tree, choose_tests(tree, one), given.limit, given.workers)
                write(tree / one.path, source)
            results[one.path.parts[1], result] += 1
            print(
                f"| {one.name} | {one.kind} | {result} | {time.monotonic() - start:.0f} |",
                flush=True,
            )
            if result != "killed":
                diff = list(
                    difflib.unified_diff(source.splitlines(), text.splitlines(), n=0, lineterm="")
                )[3:]
                shown.append("\n".join([one.name, *(line for line in diff if line[1:].strip())]))
    print("\n```diff\n" + "\n\n".join(shown) + "\n```\n")
    print(*(f"* {name}: {n} {result}" for (name, result), n in sorted(results.items())), sep="\n")


if __name__ == "__main__":
    main()
