"""Tests, tools and examples import names that exist: mypy reads the package alone, and live tests run seldom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS_OF_PACKAGES = {"h2htalk": ROOT, "support": ROOT / "tests"}


def file_of(module: str) -> Path | None:
    """The file of a module of the package or of what tests share; None where there is none."""
    folder = FOLDERS_OF_PACKAGES[module.split(".")[0]].joinpath(*module.split("."))
    for path in (folder.with_suffix(".py"), folder / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def names_bound_in(path: Path) -> frozenset[str]:
    """Every name that a file binds outside functions and classes, in branches too."""
    names: set[str] = set()
    waiting: list[ast.AST] = [*ast.parse(path.read_text(encoding="utf-8")).body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return frozenset(names)


def missing_names(source: str) -> Iterator[str]:
    """What a source imports from the package or from `tests/support` and nobody defines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        else:
            continue
        for module in modules:
            if module.split(".")[0] not in FOLDERS_OF_PACKAGES:
                continue
            path = file_of(module)
            is_folder = (
                FOLDERS_OF_PACKAGES[module.split(".")[0]].joinpath(*module.split(".")).is_dir()
            )
            if path is None and not is_folder:
                yield f"line {node.lineno}: no module {module}"
            elif isinstance(node, ast.ImportFrom):
                bound = names_bound_in(path) if path else frozenset()
                if "__getattr__" in bound:
                    continue  # a package that loads its names when they are asked for
                for alias in node.names:
                    if alias.name not in bound and file_of(f"{module}.{alias.name}") is None:
                        yield f"line {node.lineno}: {module} has no {alias.name}"


def test_tests_tools_and_examples_import_names_that_exist() -> None:
    missing = []
    for folder in ("tests", "tools", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for problem in missing_names(path.read_text(encoding="utf-8")):
                missing.append(f"{path.relative_to(ROOT)}, {problem}")
    assert missing == []


def test_the_guard_finds_planted_imports_of_what_is_not_there() -> None:
    source = "from support.runs import no_such_name\nimport h2htalk.no_such_module\nfrom h2htalk.data import splits"
    assert [*missing_names(source)] == [
        "line 1: support.runs has no no_such_name",
        "line 2: no module h2htalk.no_such_module",
    ]
