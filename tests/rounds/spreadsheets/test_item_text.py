"""Texts in cells: harmless whatever they are, whole however they are cut, and answers in every form that counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import KEEP_LABELS, KINDS, QUESTIONS, SUBTASK, Question, questions_for
from h2htalk.rounds.spreadsheets.guideline_text import guideline_lines
from h2htalk.rounds.spreadsheets.item_text import cell_text, line_count
from h2htalk.rounds.spreadsheets.row_answers import Choices
from h2htalk.rounds.spreadsheets.xlsx_styles import add_styles, write_cell
from h2htalk.rounds.texts.interface import label_text, rating_text

ANY = st.text(st.characters(), max_size=200)
LINES = st.text(st.sampled_from("ab 番茄=@\n\t_xX0"), max_size=300)


@given(ANY | LINES)
def test_a_cells_text_begins_no_formula_and_hides_nothing(text: str) -> None:
    shown = cell_text(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert all(sign == "\n" or sign.isprintable() or sign.isspace() or ord(sign) > 0x2000 for sign in shown)
    assert "\ufffe" not in shown
    assert cell_text(shown) == shown


def test_chinese_takes_twice_the_room() -> None:
    assert (line_count("番" * 39, 40), line_count("a" * 39, 40), line_count("a\n\nb", 40)) == (2, 1, 3)


@settings(max_examples=30, deadline=None)
@given(st.lists(ANY | LINES, min_size=1, max_size=8))
def test_what_is_put_into_cells_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
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


# --- Choices ------------------------------------------------------------------------------------------------------

CHOSEN = [
    (question, value)
    for kind in KINDS
    for question in QUESTIONS[kind]
    if question.form in ("label", "rating")
    for value in question.ratings or question.labels
]


@given(
    st.sampled_from(CHOSEN),
    st.sampled_from(["en", "zh"]),
    st.sampled_from(["", " ", "\t\u3000", "\u00a0"]),
    st.booleans(),
)
def test_every_choice_is_read_in_every_form(
    chosen: tuple[Question, str | int], language: str, blanks: str, upper: bool
) -> None:
    question, value = chosen
    form = rating_text if question.form == "rating" else label_text
    choices = Choices((question,), "en")
    for text in (str(value), form(question.name, value, language)):  # type: ignore[arg-type]
        typed = blanks + (text.upper() if upper else text) + blanks
        assert choices.read(question, Item("x", "en"), typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "stored"),
    [
        *(("quality", typed, 4) for typed in (4, 4.0, "4.0", "４", "4：good", "4 :good", "4：较好")),
        *(("keep", typed, "drop") for typed in ("DROP", "drop \t", "删掉", "ＤＲＯＰ")),
        # A curly apostrophe and two blanks, which phones and pasting put in by themselves.
        ("subtask", "Reply  with the day`s plan\u00a0in mind", "dialogue_schedule"),
        ("subtask", "Reply with the day’s plan in mind", "dialogue_schedule"),
    ],
)
def test_what_a_keyboard_makes_of_a_choice_is_that_choice(name: str, typed: Any, stored: Any) -> None:
    (question,) = (one for one in QUESTIONS["crowd"] if one.name == name)
    assert Choices((question,), "en").read(question, Item("x", "en"), typed) == stored


@pytest.mark.parametrize(
    ("labels", "doubtful"),
    [(("May", "may"), "MAY"), (("m²", "m2"), "Ｍ2"), (("day's-end", "Day’s‑End"), "DAY'S-END")],
)
def test_of_labels_that_a_keyboard_makes_alike_the_exact_one_is_meant(
    labels: tuple[str, ...], doubtful: str
) -> None:
    label = Question("label", "label", labels)
    choices, item = Choices((label,), "en"), Item("x", "en", labels=labels)
    assert [choices.read(label, item, f"{typed} ") for typed in labels] == list(labels)
    with pytest.raises(Exception, match="choose from"):
        choices.read(label, item, doubtful)


def test_no_two_of_our_words_fall_together_however_they_are_typed() -> None:
    ties = questions_for("adjudication", [["yes", "no", *KEEP_LABELS], SUBTASK.labels])
    for question in [*ties, *(question for asked in QUESTIONS.values() for question in asked)]:
        forms = Choices((question,), "en").forms(question, Item("x", "en"))
        assert [typed for typed, found in forms.items() if len(found) > 1] == []


def test_markdown_becomes_lines() -> None:
    text = "# Title\n\nA **bold** word, a `code`; 2 * 3 * 4.\n## Part\n- one\n- [two](https://x.org)\n"
    text += "\n1. first\n\n---\n中文"
    assert list(guideline_lines(text)) == [
        ("title", "Title"),
        ("line", ""),
        ("line", "A bold word, a code; 2 * 3 * 4."),
        ("heading", "Part"),
        ("line", "• one"),
        ("line", "• two (https://x.org)"),
        ("line", ""),
        ("line", "1. first"),
        ("line", ""),
        ("line", "中文"),
    ]
