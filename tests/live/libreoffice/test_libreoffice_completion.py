"""The sheet with the completion code in LibreOffice: it counts answers, and shows the code when all are there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from support import spreadsheet_rounds as made

pytestmark = pytest.mark.live
SOFFICE = shutil.which("soffice")
EXPERT = {"accuracy": 4, "consistency": 4, "domain_compliance": 4, "keep": "keep", "harmful": "no"}
LINK = 'https://app.example.org/submissions/complete?cc="C1X2'


def shown(workbook: Path, folder: Path, title: str) -> list[list[Any]]:
    """The texts and numbers of a sheet as LibreOffice computes them."""
    if SOFFICE is None:
        pytest.skip(
            "opens workbooks in LibreOffice: apt-get install libreoffice-calc fonts-noto-cjk"
        )
    folder.mkdir(exist_ok=True)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [
        SOFFICE,
        "--headless",
        profile,
        "--convert-to",
        "xlsx",
        "--outdir",
        str(folder),
        str(workbook),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    book = load_workbook(folder / workbook.name, data_only=True)
    return [[cell.value for cell in row] for row in book[title].iter_rows()]


@pytest.mark.parametrize(
    ("language", "title", "waiting", "code"),
    [
        ("en", "When you are done", "not yet: some items are open", "C1X2Y3"),
        ("zh", "全部做完以后", "还没有：有条目没做完", LINK),
    ],
)
def test_the_code_appears_when_everything_is_answered_or_skipped(
    tmp_path: Path, language: str, title: str, waiting: str, code: str
) -> None:
    """The code stood in the guidelines: somebody who read nothing else had it."""
    items = [made.item(n, language) for n in range(5)]
    care = {"session_items": 3}
    round = made.opened(
        tmp_path, "expert", items, annotators=f"anna,{language}", completion=code, care=care
    )
    path = made.workbook_path(round)

    def state(step: str, answers: Mapping[int, Mapping[str, Any]]) -> list[list[Any]]:
        made.fill(path, answers)
        return [row[1:3] for row in shown(path, tmp_path / step, title)[3:]]

    assert state("blank", {}) == [[0, 3], [0, 2], [0, 5], [waiting, None]]
    half = {1: {"accuracy": 4, "keep": "keep", "harmful": "no"}, 2: EXPERT, 4: {"skip": "yes"}}
    assert state("half", half) == [[1, 3], [1, 2], [2, 5], [waiting, None]]
    almost = {1: EXPERT, 3: EXPERT, 5: EXPERT | {"keep": None}}
    assert state("almost", almost) == [[3, 3], [1, 2], [4, 5], [waiting, None]]
    assert state("done", {5: {"skip": "yes", "keep": None}}) == [
        [3, 3],
        [2, 2],
        [5, 5],
        [code, None],
    ]
    assert len({one.item for one in made.collect(round).annotations}) == 5
