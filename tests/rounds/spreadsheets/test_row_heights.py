"""Heights of rows: every row of a workbook shows all its texts, whichever program opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from h2htalk.rounds.questions import VIOLATIONS, questions_for
from h2htalk.rounds.spreadsheets.row_heights import MAX_HEIGHT, line_count, text_height
from h2htalk.rounds.spreadsheets.xlsx_writing import item_choices
from support import spreadsheet_rounds as made

LONG = {
    "en": "After all that watering, which one was first? " * 60,
    "zh": "浇了那么久的水，总算等到了。" * 200,
}


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, 1),
        ("four words of five", 40, 1),
        ("aaaa bbbb cccc", 10, 2),  # no word is divided
        ("aaaa bbbb cccc", 6, 3),
        ("one\n\nthree", 40, 3),
        ("番茄终于开花了", 20, 1),  # 7 wide characters
        ("番茄终于开花了", 10, 2),
        ("e\u0301" * 9, 10, 1),  # combining accents have no width
    ],
)
def test_lines_of_a_wrapped_text(text: str, width: int, lines: int) -> None:
    assert line_count(text, width) == lines


def test_large_bold_and_wide_letters_are_higher() -> None:
    assert (
        text_height("a", 40)
        < text_height("番", 40)
        < text_height("a", 40, "heading")
        < text_height("a", 40, "title")
    )
    assert text_height("word " * 20, 40) < text_height("word " * 20, 40, "notice")


def rows_of(path: Path) -> list[tuple[Any, int, float | None, float]]:
    """Sheet, number and height of each row that is shown, with the height of its highest text."""
    rows = []
    for sheet in load_workbook(path).worksheets:
        for cells in sheet.iter_rows() if sheet.sheet_state == "visible" else ():
            row = sheet.row_dimensions[cells[0].row]
            texts = [cell for cell in cells if cell.value is not None and not row.hidden]
            needed = [
                text_height(
                    str(one.value),
                    sheet.column_dimensions[one.column_letter].width,
                    one.style.split()[-1],
                )
                for one in texts
                if not sheet.column_dimensions[one.column_letter].hidden
                and not one.alignment.textRotation
            ]
            if needed:
                rows.append((sheet, row.index, row.height, max(needed)))
    return rows


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", ["crowd", "safety"])
def test_every_row_has_the_height_of_its_texts(tmp_path: Path, kind: str, language: Any) -> None:
    """LibreOffice showed one line of every row, of a title, a conversation and a reply, and sheets are protected."""
    items = [
        made.item(n, language, context={"persona": LONG[language][: 200 * n]}) for n in range(4)
    ]
    items.append(made.item(7, language, crisis=True, response=LONG[language]))
    guides = tmp_path / "guides"
    guides.mkdir()
    (guides / f"{language}.md").write_text(
        f"# {LONG[language]}\n\n## {LONG[language]}\n\n{LONG[language]}\n"
    )
    round = made.opened(tmp_path, kind, items, guidelines=str(guides))
    rows = rows_of(made.workbook_path(round))
    assert len(rows) > 20
    assert [
        (sheet.title, number) for sheet, number, height, needed in rows if (height or 0) < needed
    ] == []
    assert max(height or 0 for *_, height, _ in rows) <= MAX_HEIGHT


def test_a_row_shows_every_answer_that_may_be_chosen(tmp_path: Path) -> None:
    """A chosen answer of four lines would be cut off in the row of a short text."""
    round = made.opened(
        tmp_path, "expert", [made.item(1, prompt="Hi", response="Yes", reference="")]
    )
    sheet, row = made.session_of(load_workbook(made.workbook_path(round)), 1)
    questions = questions_for("expert", [])
    choices = [text for one in questions for text in item_choices(one, (), "en").values()]
    assert sheet.row_dimensions[row].height >= max(text_height(text, 16) for text in choices) > 45


def test_long_suggestions_are_on_the_sheet_of_texts(tmp_path: Path) -> None:
    """The suggested labels of a safety round are higher than any row that Excel shows."""
    suggested = {
        "perception": 1,
        "violation": "yes",
        "violations": list(VIOLATIONS),
        "comment": "Read it again. " * 30,
    }
    round = made.opened(
        tmp_path, "safety", [made.item(1, suggested=suggested), made.item(2)], suggest=True
    )
    book = load_workbook(made.workbook_path(round))
    sheet, row = made.session_of(book, made.places(round)["en-item-1"])
    assert "is on the sheet" in sheet.cell(row, made.keys_of(sheet).index("text") + 1).value
    lines = [
        str(cell.value) for (cell,) in book["Texts"].iter_rows(min_col=3, max_col=3) if cell.value
    ]
    assert "A model's suggestion" in lines
    assert any("Insults or looks down on people" in line for line in lines)
    made.fill(made.workbook_path(round), {made.places(round)["en-item-1"]: {"skip": "yes"}})
    assert made.collect(round).mistakes == ()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_printed_page_holds_the_guidelines(tmp_path: Path, language: str) -> None:
    """LibreOffice cuts off a column that is wider than the page, even if the sheet is fitted to one page."""
    round = made.opened(tmp_path, "safety", [made.item(1, language)], annotators=f"anna,{language}")
    sheet = load_workbook(made.workbook_path(round)).worksheets[0]
    margins = sheet.page_margins.left + sheet.page_margins.right
    # A page of A4, and the digit of the font that LibreOffice puts in place of the workbook's (inches).
    room = (8.27 - margins) / 0.096
    assert sheet.column_dimensions["A"].width <= room
