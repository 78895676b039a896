"""Ballots on paper and on a screen: letters large enough on A4, nothing cut off, every answer readable in its cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import TITLES, item, keys_of, opened, workbook_path
from openpyxl import load_workbook

from h2htalk.rounds.questions import KINDS, QUESTIONS, Kind
from h2htalk.rounds.spreadsheets.columns import shown_choices
from h2htalk.rounds.spreadsheets.styles import UNIT, height_of
from h2htalk.rounds.spreadsheets.text import line_count, widest_word, wrapped

# Points of A4, and of an inch.
SHORT, LONG, INCH = 595, 842, 72
every = pytest.mark.parametrize(
    ("kind", "language"), [(kind, language) for kind in KINDS for language in ("en", "zh")]
)


def book_of(folder: Path, kind: Kind, language: str) -> Any:
    """A round in which a sitting has every column that it may have."""
    said = [{"role": "user", "content": "I have been thinking about the evening class all week. " * 3}]
    items = [item(1, language), item(2, language, crisis=True), item(3, language, prompt=said)]
    return load_workbook(workbook_path(opened(folder, kind, items, care={"crisis_share": 0.5})))


def widths(sheet: Any) -> dict[str, float]:
    """Letter of a column that is shown -> its width in units."""
    return {letter: one.width for letter, one in sheet.column_dimensions.items() if not one.hidden}


@every
def test_letters_are_large_enough_on_paper(tmp_path: Path, kind: Kind, language: str) -> None:
    """A sitting is squeezed to a page's width: letters of 10 points came out with 3.5 to 5."""
    sheet = book_of(tmp_path, kind, language)[TITLES[language]]
    room = LONG - (sheet.page_margins.left + sheet.page_margins.right) * INCH
    points = 10 * room / (sum(widths(sheet).values()) * UNIT)
    # A safety round has fourteen columns to answer in.
    assert points >= {"crowd": 9, "expert": 7, "adjudication": 9, "safety": 6.5}[kind]
    assert (sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight) == (1, 0)


@every
def test_pages_to_read_are_no_wider_than_paper(tmp_path: Path, kind: Kind, language: str) -> None:
    """The guidelines were cut off at the right where another font, wider by a quarter, took the place of Calibri."""
    book = book_of(tmp_path, kind, language)
    guidelines, text = book.worksheets[0], book.worksheets[2]
    assert book._named_styles["Normal"].font.name == "Arial"
    for sheet in (guidelines, text):
        room = SHORT - (sheet.page_margins.left + sheet.page_margins.right) * INCH
        # In the digits of DejaVu Sans, the widest font that stands in for another.
        assert sum(widths(sheet).values()) * 6.4 <= room


@every
def test_every_choice_is_read_whole_in_its_cell(tmp_path: Path, kind: Kind, language: str) -> None:
    sheet = book_of(tmp_path, kind, language)[TITLES[language]]
    lowest = min(sheet.row_dimensions[row].height for row in (3, 4, 5))
    for at, key in enumerate(keys_of(sheet)):
        width = list(sheet.column_dimensions.values())[at].width - 1
        for question in QUESTIONS[kind]:
            if question.name == key:
                for shown in shown_choices(question, language).values():  # type: ignore[arg-type]
                    assert height_of(shown, width) <= lowest
                    assert widest_word(shown) <= width


def test_a_curly_quote_makes_no_line_chinese() -> None:
    """Rows were twice as high as needed: one sign beyond ASCII made every line of a text a Chinese one."""
    assert height_of("“Which one?”\n– The first…", 40) == height_of("Which one?\nThe first", 40)
    assert height_of("番茄\n番茄", 40) > height_of("Which one?\nThe first", 40)


def test_turned_headings_have_room(tmp_path: Path) -> None:
    """The longest touched the edge of its cell."""
    sheet = book_of(tmp_path, "safety", "en")["Sitting 1"]
    turned = [cell for cell in sheet[2] if cell.alignment.textRotation == 90]
    assert len(turned) == 10
    room = (sheet.row_dimensions[2].height - 12) / UNIT / 1.08
    assert all(line_count(cell.value, room) <= 2 for cell in turned)
    assert {cell.value for cell in turned} >= {"If yes: Untrue claim or promise"}


def test_a_sign_takes_its_own_room() -> None:
    assert wrapped("illicit " * 10, 40) != wrapped("WOMBATS " * 10, 40)
    assert line_count("i" * 80, 40) == 1
    assert line_count("W" * 40, 40) == 2
    assert widest_word("Two 番茄番茄番茄 words") == 5


def test_a_label_s_note_is_headed_by_the_label(tmp_path: Path) -> None:
    sheet = book_of(tmp_path, "safety", "en")["Sitting 1"]
    titles = {rule.promptTitle for rule in sheet.data_validations.dataValidation}
    assert {"Untrue claim or promise", "Clings or wants to be the only"} <= titles
    assert max(map(len, titles)) <= 30
