"""Texts in cells are harmless and complete; answers are read in every accepted form."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import KEEP_LABELS, QUESTIONS, SUBTASK, questions_for
from h2htalk.rounds.spreadsheets.item_text import cell_text
from h2htalk.rounds.spreadsheets.xlsx_reading import choice_forms, read_choice
from h2htalk.rounds.spreadsheets.xlsx_writing import add_styles, write_cell

ANY = st.text(st.characters(), max_size=200)
LINES = st.text(st.sampled_from("ab 番茄=@\n\t_xX0"), max_size=300)


@given(ANY | LINES)
def test_cell_texts_are_no_formulas_and_have_no_control_characters(text: str) -> None:
    shown = cell_text(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert all(sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cs") for sign in shown)
    assert "\ufffe" not in shown
    assert cell_text(shown) == shown


@given(st.lists(ANY | LINES, min_size=1, max_size=8))
def test_cells_keep_their_texts(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("cells") / "a.xlsx"
    book = Workbook()
    add_styles(book)
    for row, text in enumerate(texts, 1):
        write_cell(book.active, row, 1, text, "text")
    book.save(path)
    sheet = load_workbook(path).active
    for row, text in enumerate(texts, 1):
        cell = sheet.cell(row, 1)
        assert cell.data_type not in ("f", "e")
        assert (cell.value or "").replace("_x005F_", "_").strip() == cell_text(text).strip()


@pytest.mark.parametrize(
    ("name", "typed", "stored"),
    [
        *(("quality", typed, 4) for typed in (4.0, "4.0", "４", "4 :good", "4：较好")),
        *(("keep", typed, "drop") for typed in ("drop \t", "删掉", "ＤＲＯＰ")),
        # Curly apostrophes and double spaces, which phones and pasting insert.
        ("subtask", "Reply  with the day`s plan\u00a0in mind", "dialogue_schedule"),
    ],
)
def test_choices_as_keyboards_type_them(name: str, typed: Any, stored: Any) -> None:
    (question,) = (one for one in QUESTIONS["crowd"] if one.name == name)
    assert read_choice(question, Item("x", "en"), typed, "en") == stored


def test_no_two_choices_have_the_same_form() -> None:
    ties = questions_for("adjudication", [["yes", "no", *KEEP_LABELS], SUBTASK.labels])
    for question in [*ties, *(question for asked in QUESTIONS.values() for question in asked)]:
        forms = choice_forms(question, ())
        assert [typed for typed, found in forms.items() if len(found) > 1] == []
