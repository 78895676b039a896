"""CSV spreadsheets: content, encodings, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spreadsheet_rounds import collect, csv_rows, fill_csv, item, only, opened, places, values, write_csv_rows

from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.spreadsheets.assigned_files import MAX_FILE
from h2htalk.rounds.texts.interface import interface_text

FULL = {"subtask": "dialogue_base", "keep": "keep", "quality": "4"}
Rows = list[dict[str, str]]


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """A round with three items, all annotated."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)], format="csv")
    fill_csv(path_of(round), dict.fromkeys(range(1, 4), FULL))
    return round


def path_of(round: RoundFolder) -> Path:
    return round.path / "spreadsheets" / "anna.csv"


def test_content_of_a_csv_file(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "=1+1?\r\n- yes\t\x07"}, {"role": "companion", "content": "二"}]
    items = [item(1, prompt=said, reference="@2"), item(2, context={"=cmd": "x"}, prompt=None)]
    round = opened(tmp_path, "crowd", items, format="csv")
    raw = path_of(round).read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfsession,row,item,text,reply,subtask,keep,quality,skip\r\n")
    rows, at = csv_rows(path_of(round)), places(round)
    row = rows[at["en-item-1"] - 1]
    assert row["text"].endswith("User: =1+1?\n- yes\\t\\x07\nCompanion: 二")
    assert row["reply"].endswith("Proposed reply\n@2")
    assert rows[at["en-item-2"] - 1]["text"] == "'=cmd\nx"
    assert {path.name for path in (round.path / "spreadsheets").iterdir()} == {
        "anna.csv",
        "guidelines-en.txt",
    }


def test_guidelines_list_the_codes(tmp_path: Path) -> None:
    items = [item(1), item(2, "zh")]
    round = opened(tmp_path, "safety", items, annotators="anna,en;bert,zh", overlap=1, format="csv")
    for language, line in (("en", "  yes = Yes: something in the reply could harm"), ("zh", "  yes = ")):
        text = (round.path / "spreadsheets" / f"guidelines-{language}.txt").read_text(encoding="utf-8-sig")
        assert line in text
        assert "988" in text
        assert "**" not in text


def test_crises_and_long_texts_are_in_a_separate_file(tmp_path: Path) -> None:
    items = [item(1), item(2, crisis=True, prompt="I cannot go on.", reference="I am here with you.")]
    items.append(item(3, prompt="tea " * 24_000, context={"memories": "sea " * 24_000}))
    round = opened(tmp_path, "crowd", items, format="csv")
    assert b"cannot go on" not in path_of(round).read_bytes()
    number = places(round)["en-item-2"]
    row = csv_rows(path_of(round))[number - 1]
    assert row["notice"] == interface_text("crisis_notice", "en")
    assert row["text"] == f"Show the text: anna.texts.txt, Item {number}"
    text = (round.path / "spreadsheets" / "anna.texts.txt").read_text(encoding="utf-8-sig")
    assert text.index(interface_text("crisis_notice", "en")) < text.index("I cannot go on.") < text.index("I am here")
    assert "tomatoes" not in text
    assert "sea sea" in text
    fill_csv(path_of(round), dict.fromkeys(range(1, 4), FULL))
    assert (len(collect(round).annotations), collect(round).mistakes) == (9, ())


def test_adjudications_list_the_choices_of_each_row(tmp_path: Path) -> None:
    items = [item(1, labels=["keep", "drop"]), item(2, labels=["a, b", "=c"])]
    round = opened(tmp_path, "adjudication", items, format="csv")
    at = places(round)
    assert csv_rows(path_of(round))[at["en-item-2"] - 1]["choices"] == "a, b | =c"
    fill_csv(path_of(round), {at["en-item-1"]: {"label": "DROP"}, at["en-item-2"]: {"label": "a, b"}})
    assert values(collect(round)) == {("en-item-1", "label"): "drop", ("en-item-2", "label"): "a, b"}


@pytest.mark.parametrize(
    "saved",
    [{"delimiter": ";"}, {"delimiter": "\t"}, {"coding": "utf-8"}, {"delimiter": "\t", "coding": "utf-16"}],
)
def test_delimiters_order_of_columns_and_empty_rows(crowd: RoundFolder, saved: dict[str, str]) -> None:
    rows = [dict(reversed(row.items())) for row in csv_rows(path_of(crowd))]
    rows.insert(1, dict.fromkeys(rows[0], " "))
    write_csv_rows(path_of(crowd), [rows[3], *rows[:3]], **saved)
    assert (len(collect(crowd).annotations), collect(crowd).mistakes) == (9, ())


@pytest.mark.parametrize(
    ("coding", "language", "comment"),
    [("gb18030", "zh", "有点生硬"), ("gb18030", "en", "很好"), ("cp1252", "en", "a bit naïve – “déjà vu”")],
)
def test_other_encodings(tmp_path: Path, coding: str, language: str, comment: str) -> None:
    """The right encoding is the one in which the texts of the items are unchanged."""
    round = opened(tmp_path, "expert", [item(1, language, note="“Quoted”")], format="csv")
    scores = dict.fromkeys(("accuracy", "consistency", "domain_compliance"), "3")
    fill_csv(path_of(round), {1: {**scores, "keep": "keep", "comment": comment}}, coding=coding)
    assert values(collect(round))[f"{language}-item-1", "comment"] == comment


@pytest.mark.parametrize(
    ("change", "message", "left"),
    [
        (lambda rows: rows.pop(1), "spreadsheets/anna.csv: the row of item 2 is missing", 6),
        (lambda rows: rows.append(rows[0] | {"keep": "drop"}), "row 5: the row of item 1 occurs twice", 6),
        (lambda rows: rows[1].update(text="x"), "row 3: the text of item 2 was changed", 6),
        (lambda rows: rows[1].update(quality="6"), "row 3, column quality: '6' is not a valid answer", 6),
        (lambda rows: rows[1].update(keep=""), "row 3, column keep (keep)", 6),
        (lambda rows: [row.update(row="r0") for row in rows], "no row belongs to the round 'round'", 0),
        (lambda rows: [row.update(mine="Drop" * (n == 1)) for n, row in enumerate(rows)], "", 9),
    ],
)
def test_changed_tables_are_mistakes(
    crowd: RoundFolder, change: Callable[[Rows], Any], message: str, left: int
) -> None:
    rows = csv_rows(path_of(crowd))
    change(rows)
    write_csv_rows(path_of(crowd), rows)
    pulled = collect(crowd)
    assert len(pulled.annotations) == left
    assert all(mistake.startswith("spreadsheets/anna.csv") and message in mistake for mistake in pulled.mistakes)
    assert len(pulled.mistakes) == bool(message)


def test_cells_outside_the_table_and_missing_columns(crowd: RoundFolder) -> None:
    with path_of(crowd).open("a", encoding="utf-8") as file:
        file.write(",,,,,,,,,Drop\r\n")
    assert "'Drop' is outside the table" in only(crowd, 9)
    rows = csv_rows(path_of(crowd))[:3]
    write_csv_rows(path_of(crowd), [{k: v for k, v in row.items() if k and k != "keep"} for row in rows])
    assert "the column 'keep' is missing in row 1" in collect(crowd).mistakes[0]


def test_large_files_are_not_opened(crowd: RoundFolder) -> None:
    with path_of(crowd).open("ab") as file:
        file.truncate(MAX_FILE * 40)
    assert "1,280 MiB; the maximum is 32" in only(crowd, 0)
