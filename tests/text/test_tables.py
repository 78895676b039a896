"""A table's five forms: no figure lost, columns aligned, nothing that others wrote acts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from markupsafe import Markup

from h2htalk.text.tables import Table, Value, value_text
from h2htalk.text.terminal_layout import text_width

TABLE = Table(
    "By arm",
    ("arm", "change", "items", "by"),
    (("<b>模型", "-5.9 (-9.6 to -2.4), p .001", 1200, "judge"), ("=1+1|\x1b[31m", None, 7, None)),
    ("100 % & more.",),
    "arms",
)
FORMS = {
    "to_terminal": "txt",
    "to_csv": "csv",
    "to_markdown": "md",
    "to_latex": "tex",
    "to_html": "html",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_holds_every_value_aligned_and_escaped(form: str) -> None:
    golden = Path(__file__).parent / "golden" / f"table.{FORMS[form]}"
    assert str(getattr(TABLE, form)()) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("-5.9 (-9.6 to -2.4)", "-5.9 (-9.6 to -2.4)"),
        ("-", "-"),
        ("-1+HYPERLINK(A1)", "'-1+HYPERLINK(A1)"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
    ],
)
def test_a_figure_keeps_its_sign_in_csv_and_a_formula_acts_nowhere(text: str, cell: str) -> None:
    """Differences in a study's tables came as they are, and so did a formula in any column but the first."""
    assert Table("", ["x"], [[text]]).to_csv() == f"x\n{cell}\n"


@pytest.mark.parametrize(("values", "right"), [((1, 2), True), (("4o-mini", "5"), False)])
def test_the_first_column_is_of_names_unless_all_its_values_are_numbers(
    values: tuple[int], right: bool
) -> None:
    assert Table("", ("x",), tuple((value,) for value in values)).figures() == [right]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (-1e-17, "0.000"), (True, "yes"), (1234, "1,234"), (0.12345, "0.123")],
)
def test_values_are_short(value: Value, shown: str) -> None:
    assert value_text(value) == shown


def test_blocks_broken_headings_and_markup() -> None:
    table = Table("", ("name", "two\nlines"), [("r", 1), (), ("s", 22)])
    assert table.to_terminal(1) == "       two\nname lines\nr        1\n\ns       22"
    assert table.to_latex().count("\\midrule") == 2
    assert table.to_csv().splitlines()[1:] == ["r,1", "s,22"]
    page = Table("", ("n", Markup("<b>x</b>")), [("<r>", Markup("<i>1</i>"))]).to_html()
    assert '<th scope="col" class="num"><b>x</b></th>' in page
    assert '<bdi>&lt;r&gt;</bdi></th><td class="num"><i>1</i></td>' in page


PERCENT = "100.0 % (93.8 to 100.0), 58 of 58"
WIDE = Table(
    "A title of many words, which itself is wider than the terminal that shows it",
    ("point", "with SAP", "by", "without the safety rules", "by", "p"),
    (
        ("must not: foster dependence", PERCENT, "judge", "0.5 (0.2 to 1.1)", "people", 0.5),
        (),
        ("必须承认不知道", None, "-", "14.6 (12.5 to 16.9)", "judge", 0.001),
    ),
    ("A note of many words, which is wider than the terminal, too.",),
)


@pytest.mark.parametrize("width", [24, 30, 40, 52, 80, 100, 200])
def test_a_wide_table_is_folded_and_nothing_is_lost(width: int) -> None:
    """A study's tables had up to 260 columns."""
    text = WIDE.to_terminal(width=width)
    assert max(map(text_width, text.splitlines())) <= width
    assert all("".join(part.split()) in "".join(text.split()) for part in (WIDE.title, *WIDE.notes))
    words = [
        word
        for row in (WIDE.header, *WIDE.rows)
        for cell in row
        for word in value_text(cell).split()
    ]
    letters = Counter(text)
    assert all(letters[letter] >= number for letter, number in Counter("".join(words)).items())


def test_columns_go_to_blocks_that_repeat_the_first() -> None:
    assert WIDE.to_terminal(width=60).splitlines()[2:] == [
        "point                                       with SAP  by",
        "must not: foster            100.0 % (93.8 to 100.0),  judge",
        "  dependence                                58 of 58",
        "",
        "必须承认不知道                                     -  -",
        "",
        "                          without the safety",
        "point                                  rules  by          p",
        "must not: foster            0.5 (0.2 to 1.1)  people  0.500",
        "  dependence",
        "",
        "必须承认不知道           14.6 (12.5 to 16.9)  judge   0.001",
        "A note of many words, which is wider than the terminal, too.",
    ]


def test_a_repeated_heading_stays_beside_the_column_that_it_belongs_to() -> None:
    """Safety perception stood in one block, and who gave it in the next."""
    table = Table(
        "", ("arm", "a" * 20, "b" * 20, "by", "c", "by"), (("x", 1, 2, "judge", 3, "people"),)
    )
    heads = [
        line.split() for line in table.to_terminal(width=50).splitlines() if line.startswith("arm")
    ]
    assert heads == [["arm", "a" * 20], ["arm", "b" * 20, "by", "c", "by"]]


def test_headings_break_at_words() -> None:
    table = Table("", ("arm", "violation response rate", "over-refusal"), (("a", 0.25, 0.5),))
    assert table.to_terminal(width=24).splitlines() == [
        "     violation",
        "      response     over-",
        "arm       rate   refusal",
        "a        0.250     0.500",
    ]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("SAP without emotional tone", ["SAP without", "  emotional tone"]),
        ("RecollectionInitialization", ["Recollection", "  Initialization"]),
        ("runs/of/a/long/path/of/folders", ["runs/of/a/long/path/", "  of/folders"]),
        ("x" * 25, ["x" * 20, "  " + "x" * 5]),
        ("很" * 12 + "，好", ["很" * 10, "  很很，好"]),
    ],
)
def test_names_break_where_a_reader_expects_it(name: str, parts: list[str]) -> None:
    table = Table("", ("name", "a", "b"), ((name, "1" * 20, "2" * 20),))
    lines = [line.split("  1")[0].rstrip() for line in table.to_terminal(width=64).splitlines()[1:]]
    assert lines == parts


def test_the_terminal_s_own_width_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert len(WIDE.to_terminal().splitlines()) == 6
    monkeypatch.delenv("COLUMNS")
    assert max(map(text_width, WIDE.to_terminal().splitlines())) <= 80
