"""Texts in cells: harmless whatever they are, whole however they are cut, and read back as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook as Book

from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import KEEP, KINDS, QUESTIONS, SUBTASK, Question, questions_for
from h2htalk.rounds.spreadsheets.answers import Choices, require_apart
from h2htalk.rounds.spreadsheets.guideline_sheets import guideline_lines
from h2htalk.rounds.spreadsheets.record import Record, SheetRecord
from h2htalk.rounds.spreadsheets.styles import add_styles, put
from h2htalk.rounds.spreadsheets.text import cell_text, line_count, lines_shown, portions, wrapped
from h2htalk.rounds.spreadsheets.workbook import Workbook
from h2htalk.rounds.texts import label_text, rating_text

ANY = st.text(st.characters(), max_size=200)
LINES = st.text(st.sampled_from("ab 番茄=@\n\t_xX0"), max_size=300)


@given(ANY | LINES)
def test_a_cells_text_begins_no_formula_and_hides_nothing(text: str) -> None:
    shown = cell_text(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert all(sign == "\n" or sign.isprintable() or sign.isspace() or ord(sign) > 0x2000 for sign in shown)
    assert "\ufffe" not in shown
    assert cell_text(shown) == shown


@given(LINES, st.integers(3, 40), st.integers(1, 9))
def test_portions_hold_a_text_whole(text: str, width: int, most: int) -> None:
    parts = list(portions(text, width, most))
    assert "".join(parts).replace("\n", "") == text.replace("\n", "")
    assert all(line_count(part, width) <= most for part in parts)


@given(LINES.map(lambda text: text.replace("\n", "")), st.integers(3, 40))
def test_a_wrapped_line_is_whole_and_no_piece_too_wide(line: str, width: int) -> None:
    pieces = wrapped(line, width)
    assert "".join(pieces) == line
    # The narrowest of these signs, a blank, takes four of a unit's seven pixels.
    assert all(len(piece) <= width * 7 / 4 + 1 for piece in pieces)
    assert all(piece.count("番") <= width * 7 / 13 for piece in pieces)


def test_chinese_takes_twice_the_room() -> None:
    assert line_count("番" * 40, 40) == 2
    assert line_count("a" * 40, 40) == 1
    assert wrapped("one two three", 8) == ["one two ", "three"]


@settings(max_examples=40, deadline=None)
@given(st.lists(ANY | LINES, min_size=1, max_size=8))
def test_what_is_put_into_cells_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("cells") / "a.xlsx"
    book = Book()
    add_styles(book)
    for row, text in enumerate(texts, 1):
        put(book.active, row, 1, text, "ballot text")
        # Bold beside plain: as a conversation is written.
        put(book.active, row, 2, [("User: ", True), (lines_shown(text), False)], "ballot text")
    book.save(path)
    with Workbook(path) as read:
        cells = read.sheet("Sheet").cells
    for row, text in enumerate(texts, 1):
        plain = cells.get((row, 1))
        shown = cell_text(text)
        assert (plain.value if plain else "") == (shown if shown.strip() else "")
        assert cells[row, 2].value == "User: " + lines_shown(text)


@given(
    ANY,
    st.lists(ANY, max_size=3),
    st.dictionaries(ANY, st.lists(st.tuples(ANY, ANY), max_size=3), max_size=3),
)
def test_a_record_is_read_back(
    name: str, codes: list[str], choices: dict[str, list[tuple[str, str]]]
) -> None:
    record = Record(name, 2, "abc", (SheetRecord(name, ("row",), tuple(codes)),), choices)
    assert record.to_text().isascii()
    assert Record.from_text(record.to_text()) == record


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
    st.sampled_from(["", " ", "\t\u3000"]),
    st.booleans(),
)
def test_every_choice_is_read_in_every_form(
    chosen: tuple[Question, str | int], language: str, blanks: str, upper: bool
) -> None:
    question, value = chosen
    form = rating_text if question.form == "rating" else label_text
    choices = Choices((question,), "en", {})
    for text in (str(value), form(question.name, value, language)):  # type: ignore[arg-type]
        typed = blanks + (text.upper() if upper else text) + blanks
        assert choices.read(question, Item("x", "en"), typed) == value


def test_words_of_an_older_version_count_as_they_were_shown() -> None:
    keep = Question("keep", "label", ("keep", "drop"))
    choices = Choices((keep,), "en", {"keep": [("keep", "Stays in"), ("gone", "Gone")]})
    assert choices.read(keep, Item("x", "en"), "stays in") == "keep"


def test_of_labels_that_differ_in_case_alone_the_exact_one_is_meant() -> None:
    label = Question("label", "label", ("May", "may"))
    choices = Choices((label,), "en", {})
    item = Item("x", "en", labels=("May", "may"))
    assert [choices.read(label, item, typed) for typed in ("May", "may ")] == ["May", "may"]
    with pytest.raises(Exception, match="choose from"):
        choices.read(label, item, "MAY")


def test_no_two_of_our_words_fall_together_however_they_are_typed() -> None:
    ties = questions_for("adjudication", [["yes", "no", *KEEP], SUBTASK.labels])
    require_apart([*ties, *(question for asked in QUESTIONS.values() for question in asked)])
    with pytest.raises(ValueError, match="word one of the two otherwise"):
        require_apart([Question("label", "label", ("day's-end", "Day’s‑End"))])


def test_labels_that_a_keyboard_makes_alike_are_told_apart_by_their_own_signs() -> None:
    labels = ("m²", "m2")
    label = Question("label", "label", labels)
    choices, item = Choices((label,), "en", {}), Item("x", "en", labels=labels)
    assert [choices.read(label, item, typed) for typed in labels] == list(labels)
    with pytest.raises(Exception, match="choose from"):
        choices.read(label, item, "Ｍ2")


# --- Guidelines ---------------------------------------------------------------------------------------------------


def test_markdown_becomes_lines(tmp_path: Path) -> None:
    text = (
        "# Title\n\nA **bold** word, a `code`, and\nthe *rest*; 2 * 3 * 4.\n\n## Part\n- one\n  more\n- [two](https://x.org)\n\n"
        "1. first\n2. second\n\n---\n中文一行\n接着一行\n"
    )
    assert list(guideline_lines(text)) == [
        ("title", "Title"),
        ("line", "A bold word, a code, and the rest; 2 * 3 * 4."),
        ("line", ""),
        ("heading", "Part"),
        ("line", "• one more"),
        ("line", "• two (https://x.org)"),
        ("line", ""),
        ("line", "1. first"),
        ("line", "2. second"),
        ("line", ""),
        ("line", "中文一行接着一行"),
    ]
