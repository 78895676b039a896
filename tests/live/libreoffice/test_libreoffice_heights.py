"""Workbooks of a round in LibreOffice: every row shows all its texts, and a printed page every column."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.splits import load_split
from support import spreadsheet_rounds as made

SOFFICE = shutil.which("soffice")
HEADING = "<!DOCTYPE library:library PUBLIC '-//OpenOffice.org//DTD OfficeDocument 1.0//EN' 'library.dtd'>"
LIBRARY = (
    f"<?xml version='1.0' encoding='UTF-8'?>{HEADING}"
    "<library:library xmlns:library='http://openoffice.org/2000/library' library:name='Standard' "
    "library:readonly='false' library:passwordprotected='false'><library:element library:name='Measure'/>"
    "</library:library>"
)


@dataclass(frozen=True)
class MeasuredRow:
    """A row that LibreOffice shows: its height, and the height that shows all its texts (1/100 mm)."""

    sheet: str
    number: int
    height: int
    needed: int


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of LibreOffice with a macro that measures rows."""
    if SOFFICE is None:
        pytest.skip(
            "opens workbooks in LibreOffice: apt-get install libreoffice-calc fonts-noto-cjk"
        )
    folder = tmp_path_factory.mktemp("libreoffice") / "profile"
    office(folder, "--terminate_after_init")
    basic = folder / "user" / "basic" / "Standard"
    (basic / "script.xlb").write_text(LIBRARY, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("measure.xba"), basic / "Measure.xba")
    return folder


def office(profile: Path, *arguments: str) -> None:
    command = [str(SOFFICE), "--headless", f"-env:UserInstallation={profile.as_uri()}", *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def measured(profile: Path, workbook: Path, folder: Path) -> list[MeasuredRow]:
    """The rows that LibreOffice shows, with what they would need."""
    target = folder / f"{workbook.stem}.tsv"
    office(profile, f'macro:///Standard.Measure.Rows("{workbook}","{target}")')
    rows = [line.split("\t") for line in target.read_text(encoding="utf-8").splitlines()]
    return [
        MeasuredRow(sheet=sheet, number=int(number), height=int(height), needed=int(needed))
        for sheet, number, height, needed, shown in rows
        if shown == "True"
    ]


def cut_columns(profile: Path, workbook: Path, folder: Path) -> list[str]:
    """The columns that are wider than their printed page, of which LibreOffice prints the first part only."""
    target = folder / f"{workbook.stem}-columns.tsv"
    office(profile, f'macro:///Standard.Measure.Columns("{workbook}","{target}")')
    lines = target.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 10
    cut = []
    for line in lines:
        sheet, number, width, room, visible = line.split("\t")
        if visible == "True" and int(width) > int(room):
            cut.append(f"{sheet} {number}: {width} of {room}")
    return cut


def items(language: str) -> list[dict[str, Any]]:
    """Items of the split `mini`, one about a crisis, one that is too long for a row, one with a long word."""
    scenarios = [one for one in load_split("mini@1").scenarios if one.language == language][:14]
    asked = []
    for number, one in enumerate(scenarios):
        passages = {name: text for name, text in one.inputs.items() if isinstance(text, str)}
        answers = {"response": one.reference, "suggested": {"violation": "no"}}
        asked.append(made.item(number, language, context=passages, **answers))
    long = " ".join(made.SAID[language]) * 40
    asked.append(made.item(90, language, prompt=long, response=long, context={"persona": long}))
    asked.append(made.item(91, language, crisis=True))
    asked.append(
        made.item(
            92,
            language,
            prompt="https://example.org/" + "a1b2" * 60,
            response="😀 SHOUTED WORDS, " * 9,
        )
    )
    return asked


@pytest.mark.live
@pytest.mark.parametrize(("kind", "stems"), [("safety", ("anna", "li", "bi")), ("crowd", ("bi",))])
def test_every_row_shows_all_its_texts_in_libreoffice(
    profile: Path, tmp_path: Path, kind: str, stems: tuple[str, ...]
) -> None:
    """Every row was one line high: "Who the companion is" was shown, and not one word of the reply."""
    asked = [*items("en"), *items("zh")]
    if kind == "crowd":
        asked = [one | {"suggested": {"keep": "drop"}} for one in asked]
    round = made.opened(
        tmp_path, kind, asked, annotators="anna,en;li,zh;bi,zh en", overlap=2, suggest=True
    )
    for stem in stems:
        rows = measured(profile, made.workbook_path(round, stem), tmp_path)
        # A row of rotated headings is fitted as if they were not wrapped.
        rows = [row for row in rows if not (row.number == 2 and row.sheet.startswith("Session"))]
        assert len(rows) > 40
        assert [row for row in rows if row.height < row.needed] == []
        # A screen shows some items at once.
        assert sum(row.height for row in rows) < 1.6 * sum(row.needed for row in rows)


@pytest.mark.live
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_printed_page_shows_every_column(profile: Path, tmp_path: Path, language: str) -> None:
    """The ends of long lines of the guidelines were missing on paper and in a PDF."""
    round = made.opened(tmp_path, "safety", items(language), annotators=f"anna,{language}")
    assert cut_columns(profile, made.workbook_path(round), tmp_path) == []
