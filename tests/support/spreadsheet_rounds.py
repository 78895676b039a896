"""Rounds with spreadsheets for tests: open them, fill them in, collect them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openpyxl import Workbook, load_workbook

from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from h2htalk.rounds.spreadsheets.xlsx_writing import Spreadsheet, spreadsheets_of

SAID = {
    "en": (
        "My tomatoes have their first flowers!",
        "After all that watering. Which one was first?",
    ),
    "zh": ("番茄终于开花了！", "浇了那么久的水，总算等到了。"),
}
TITLES = {"en": "Session 1", "zh": "第 1 组"}


def item(number: int, language: str = "en", **more: Any) -> dict[str, Any]:
    """An item as a JSON object."""
    said, answered = SAID[language]
    record = {
        "id": f"{language}-item-{number}",
        "language": language,
        "prompt": f"{said} ({number})",
    }
    return record | {"response": answered, "reference": answered[:-1]} | more


def opened(
    folder: Path,
    kind: str,
    items: list[dict[str, Any]],
    *,
    annotators: str = "anna,en zh",
    name: str = "round",
    **spec: Any,
) -> RoundFolder:
    """An open round with spreadsheets. `annotators`: "anna,en;bert,zh"; all of them agreed to crises."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    rows = ["name,languages,crisis", *(f"{annotator},yes" for annotator in annotators.split(";"))]
    (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    settings = {
        "kind": kind,
        "items": str(folder / f"{name}.jsonl"),
        "annotators": str(folder / f"{name}.csv"),
    }
    open_round(
        RoundSpec.from_dict(
            {"overlap": len(rows) - 1, "planted": False, **settings, **spec}, "test"
        ),
        folder / name,
    )
    return RoundFolder(folder / name)


def spreadsheets(round: RoundFolder) -> list[Spreadsheet]:
    return [one for one in spreadsheets_of(read_state(round)).values() if one]


def known(round: RoundFolder, stem: str = "anna") -> Spreadsheet:
    return next(spreadsheet for spreadsheet in spreadsheets(round) if spreadsheet.stem == stem)


def stems(round: RoundFolder) -> list[str]:
    """The stems of all spreadsheets; with a small overlap, the round's salt determines who gets one."""
    return [spreadsheet.stem for spreadsheet in spreadsheets(round)]


def places(round: RoundFolder, stem: str = "anna") -> dict[str, int]:
    """Item -> number in a spreadsheet."""
    return {one.item: number for number, one in enumerate(known(round, stem).assignments, 1)}


def collect(round: RoundFolder) -> Collected:
    return SpreadsheetPlatform().collect(read_state(round))


def only(round: RoundFolder, answers: int) -> str:
    """The only mistake, after checking the number of annotations."""
    pulled = collect(round)
    assert len(pulled.annotations) == answers
    (mistake,) = pulled.mistakes
    return mistake


def values(pulled: Collected, annotator: str | None = None) -> dict[tuple[str, str], Any]:
    """(item, question) -> value."""
    return {
        (a.item, a.question): a.value
        for a in pulled.annotations
        if annotator in (None, a.annotator)
    }


def workbook_path(round: RoundFolder, stem: str = "anna") -> Path:
    return round.path / "spreadsheets" / f"{stem}.xlsx"


@contextmanager
def edited(path: Path) -> Iterator[Workbook]:
    """A workbook that is saved at the end."""
    book = load_workbook(path)
    yield book
    book.save(path)


def keys_of(sheet: Any) -> list[str]:
    return [cell.value for cell in sheet[1] if cell.value]


def session_of(book: Workbook, number: int) -> tuple[Any, int]:
    """Sheet and row of an item number."""
    for sheet in book.worksheets:
        if "skip" in keys_of(sheet):
            for row in range(3, sheet.max_row + 1):
                if sheet.cell(row, 1).value == number:
                    return sheet, row
    raise LookupError(number)


def fill(path: Path, answers: Mapping[int, Mapping[str, Any]]) -> None:
    """Fill in cells: item number -> column key -> value."""
    with edited(path) as book:
        for number, row_answers in answers.items():
            sheet, row = session_of(book, number)
            for key, value in row_answers.items():
                sheet.cell(row, keys_of(sheet).index(key) + 1).value = value


def where(path: Path, number: int, key: str) -> str:
    """The name of a cell in messages."""
    book = load_workbook(path)
    sheet, row = session_of(book, number)
    letter = sheet.cell(row, keys_of(sheet).index(key) + 1).coordinate
    return f"spreadsheets/{path.name}: {sheet.title}, {letter}"


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a workbook by item number: column key -> text of its cell, empty for none."""
    rows = []
    for sheet in load_workbook(path).worksheets:
        keys = [cell.value for cell in sheet[1]]
        for cells in sheet.iter_rows(min_row=3, values_only=True) if "skip" in keys else ():
            rows.append(
                {
                    key: str("" if value is None else value)
                    for key, value in zip(keys, cells, strict=True)
                }
            )
    return sorted((row for row in rows if row["item"]), key=lambda row: int(row["item"]))


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    """Fill in a workbook: column key -> text of its cell; `violations` marks the column of one label."""
    answers = {}
    for row in rows:
        typed = {
            f"{key}:{value}" if key == "violations" else key: value for key, value in row.items()
        }
        marked = {
            key: "yes" if key.startswith("violations:") and value else value
            for key, value in typed.items()
        }
        answers[int(row["item"])] = {
            key: value or None for key, value in marked.items() if key != "item"
        }
    fill(path, answers)


STRICT_NAMESPACES = {  # Transitional (ISO/IEC 29500-4) -> Strict (29500-1)
    b"http://schemas.openxmlformats.org/spreadsheetml/2006/main": b"http://purl.oclc.org/ooxml/spreadsheetml/main",
    b"http://schemas.openxmlformats.org/officeDocument/2006/": b"http://purl.oclc.org/ooxml/officeDocument/",
    b"http://schemas.openxmlformats.org/drawingml/2006/main": b"http://purl.oclc.org/ooxml/drawingml/main",
}


def save_strict(path: Path) -> None:
    """Write a workbook again in the namespaces that Excel uses in a *Strict Open XML Spreadsheet*."""
    contents = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            for transitional, strict in STRICT_NAMESPACES.items():
                content = content.replace(transitional, strict)
            contents[name] = content
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
