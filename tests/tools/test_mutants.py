"""Small breaks of the package, and the tests that find them: `tools/mutants.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from mutants import choose_tests, mutants_of, run_tests, write

SOURCE = """from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import nothing


def size(text: str | None, least: int = 3) -> int:
    if text is None or len(text) < least:
        raise ValueError(f"{least + 1}")
    while len(text) > 9:
        text = text[1:]
    seen = []
    seen.append(
        text,
    )
    return len(text) + 1
"""
TEST = """
import pytest
from h2htalk.made.one import size

def test_size():
    assert size("abc") == 4
    assert size("a" * 20) == 10
    with pytest.raises(ValueError):
        size("ab")
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (
        ("h2htalk/made/one.py", SOURCE),
        ("tests/made/test_one.py", TEST),
        ("h2htalk/made/__init__.py", ""),
        ("h2htalk/__init__.py", ""),  # else the installed package is found
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n live: x\n slow: x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "line", "result"),
    [
        ("operator", 16, "killed"),
        ("removed statement", 13, "survived"),
        ("negated condition", 10, "timed out"),
    ],
)
def test_results_of_tests(tree: Path, kind: str, line: int, result: str) -> None:
    found = mutants_of(Path("h2htalk/made/one.py"), SOURCE)
    one = next(one for one in found if (one.kind, one.node.lineno) == (kind, line))
    write(tree / one.path, str(one.text(SOURCE)))
    assert run_tests(tree, choose_tests(tree, one), 2 if result == "timed out" else 60, 0) == result
