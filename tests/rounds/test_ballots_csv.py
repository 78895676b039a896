"""CSV ballots: what they look like without a spreadsheet program, and every mistake in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import csv_rows, fill_csv, item, opened, places, pull, values, write_csv_rows

from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.spreadsheets.files import MAX_FILE
from h2htalk.rounds.texts import word

FULL = {"subtask": "dialogue_base", "keep": "keep", "quality": "4"}
Rows = list[dict[str, str]]


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    """Three items, all answered in the CSV."""
    round = opened(tmp_path, "crowd", [item(n) for n in range(3)])
    fill_csv(path_of(round), dict.fromkeys(range(1, 4), FULL))
    assert len(pull(round).answers) == 9
    return round


def path_of(round: RoundFolder, stem: str = "anna") -> Path:
    return round.path / "ballots" / f"{stem}.csv"


def only(round: RoundFolder, answers: int) -> str:
    pulled = pull(round)
    assert len(pulled.answers) == answers
    (mistake,) = pulled.mistakes
    return mistake


def test_a_csv_ballot_opens_in_a_spreadsheet_and_reads_in_an_editor(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "=1+1?\r\n- yes\t\x07"}, {"role": "companion", "content": "二"}]
    round = opened(tmp_path, "crowd", [item(1, prompt=said, reference="@2")])
    raw = path_of(round).read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfballot,sitting,row,item,text,reply,subtask,keep,quality,skip\r\n")
    (row,) = csv_rows(path_of(round))
    assert row["text"] == "User: =1+1?\n- yes\\t\\x07\nCompanion: 二"
    assert row["reply"].endswith("Proposed reply\n@2")
    assert row["item"] == "1"
    assert "en-item" not in raw.decode()


def test_a_passage_that_begins_like_a_formula_begins_none(tmp_path: Path) -> None:
    record = item(1, context={"=cmd": "x"}, prompt=None, note="")
    round = opened(tmp_path, "expert", [record])
    (row,) = csv_rows(path_of(round))
    assert row["text"] == "'=cmd\nx"
    round = opened(tmp_path, "expert", [item(1, note="\n ＝cmd")], name="noted")
    (row,) = csv_rows(path_of(round))
    assert row["text"].startswith("'＝cmd\n")


def test_the_guidelines_beside_it_say_what_can_be_written(tmp_path: Path) -> None:
    round = opened(tmp_path, "safety", [item(1), item(2, "zh")], voters="anna,en;bert,zh", overlap=1)
    for language, line in (("en", "  yes = Yes: something in the reply could harm"), ("zh", "  yes = ")):
        text = (round.path / "ballots" / f"guidelines-{language}.txt").read_text(encoding="utf-8-sig")
        assert line in text
        assert "988" in text
        assert "**" not in text
        assert not any(one.startswith("#") for one in text.splitlines())


def test_a_crisis_stands_in_a_file_of_its_own_after_its_notice(tmp_path: Path) -> None:
    items = [item(1), item(2, crisis=True, prompt="I cannot go on.", reference="I am here with you.")]
    round = opened(tmp_path, "crowd", items)
    assert b"cannot go on" not in path_of(round).read_bytes()
    number = places(round)["en-item-2"]
    row = csv_rows(path_of(round))[number - 1]
    assert row["notice"] == word("crisis_notice", "en")
    assert row["text"] == f"Show the text: anna.texts.txt, Item {number}"
    text = (round.path / "ballots" / "anna.texts.txt").read_text(encoding="utf-8-sig")
    assert text.index(word("crisis_notice", "en")) < text.index("I cannot go on.") < text.index("I am here")
    assert "tomatoes" not in text


def test_a_text_too_long_for_a_csv_reader_stands_apart(tmp_path: Path) -> None:
    round = opened(
        tmp_path, "crowd", [item(1, prompt="tea " * 24_000, context={"memories": "sea " * 24_000})]
    )
    fill_csv(path_of(round), {1: FULL})
    assert len(pull(round).answers) == 3
    assert "sea sea" in (round.path / "ballots" / "anna.texts.txt").read_text(encoding="utf-8-sig")


def test_an_adjudication_names_each_rows_choices(tmp_path: Path) -> None:
    round = opened(
        tmp_path, "adjudication", [item(1, labels=["keep", "drop"]), item(2, labels=["a, b", "=c"])]
    )
    at = places(round)
    assert csv_rows(path_of(round))[at["en-item-2"] - 1]["choices"] == "a, b | =c"
    fill_csv(path_of(round), {at["en-item-1"]: {"label": "DROP"}, at["en-item-2"]: {"label": "a, b"}})
    assert values(pull(round)) == {("en-item-1", "label"): "drop", ("en-item-2", "label"): "a, b"}


# --- How programs save it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "saved",
    [{"delimiter": ";"}, {"delimiter": "\t"}, {"coding": "utf-8"}, {"delimiter": "\t", "coding": "utf-16"}],
)
def test_other_delimiters_and_codings_are_read(crowd: RoundFolder, saved: dict[str, str]) -> None:
    write_csv_rows(path_of(crowd), csv_rows(path_of(crowd)), **saved)
    assert pull(crowd).mistakes == ()
    assert len(pull(crowd).answers) == 9


def test_columns_in_another_order_and_empty_rows_do_no_harm(crowd: RoundFolder) -> None:
    rows = [dict(reversed(row.items())) for row in csv_rows(path_of(crowd))]
    rows.insert(1, dict.fromkeys(rows[0], " "))
    write_csv_rows(path_of(crowd), rows)
    assert pull(crowd).mistakes == ()
    assert len(pull(crowd).answers) == 9


def drop_column(rows: Rows) -> None:
    for row in rows:
        del row["keep"]


def add_column(rows: Rows) -> None:
    for row in rows:
        row["mine"] = ""
    rows[1]["mine"] = "Drop, I think"


def other_code(rows: Rows) -> None:
    rows[0]["row"] = "r000000000000-00000000"


def other_round(rows: Rows) -> None:
    rows[0]["ballot"] = "elsewhere wave 1 " + rows[0]["ballot"][-12:]


def other_wave(rows: Rows) -> None:
    rows[0]["ballot"] = rows[0]["ballot"].replace("wave 1", "wave 3")


def stranger(rows: Rows) -> None:
    rows[0]["ballot"] = rows[0]["ballot"][:-12] + "0" * 12


@pytest.mark.parametrize(
    ("change", "told", "left"),
    [
        (lambda rows: rows.reverse(), "row 2: the rows were sorted or moved (this is item 3)", 0),
        (lambda rows: rows.pop(1), "row 3: the row of item 2 is gone", 0),
        (lambda rows: rows.pop(), "the row of item 3 is gone", 0),
        (lambda rows: rows.append(rows[0]), "row 5: the row of item 1 stands here a second time", 0),
        (lambda rows: rows.insert(1, rows[0] | {"row": ""}), "row 3: a row was put in here", 0),
        (lambda rows: rows[1].update(item="9"), "row 3 (item 2): the item's number is '9', it was 2", 6),
        (lambda rows: rows[1].update(text="x"), "row 3 (item 2): the text of item 2 is not the one", 6),
        (lambda rows: rows[1].update(quality="6"), "row 3 (item 2), column quality: '6' is no answer", 6),
        (lambda rows: rows[1].update(keep=""), "row 3 (item 2), column keep (keep)", 6),
        (other_code, "row 2: the row's code was changed", 0),
        (other_round, "row 2: this is of another round, 'elsewhere'", 0),
        (other_wave, "row 2: this is of wave '3', not of 1", 0),
        (stranger, "row 2: this is of somebody outside this round", 0),
        (drop_column, "row 1: the column keep is missing", 0),
        (add_column, "row 3, column 11: 'Drop, I think' stands beside the table", 9),
    ],
)
def test_a_changed_table_is_noticed(
    crowd: RoundFolder, change: Callable[[Rows], Any], told: str, left: int
) -> None:
    rows = csv_rows(path_of(crowd))
    change(rows)
    write_csv_rows(path_of(crowd), rows)
    mistake = only(crowd, left)
    assert mistake.startswith("ballots/anna.csv: ")
    assert told in mistake


def test_the_ballot_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en")
    fill_csv(path_of(round), {1: FULL})
    shutil.copy(path_of(round), path_of(round, "bert"))
    assert "this is the ballot of anna" in only(round, 3)
    path_of(round, "bert").rename(path_of(round, "mallory"))
    assert "no ballot of this round has this name" in only(round, 3)


def test_a_download_of_a_csv_is_read_where_the_ballot_is_blank(crowd: RoundFolder) -> None:
    filled = path_of(crowd).read_bytes()
    fill_csv(path_of(crowd), dict.fromkeys(range(1, 4), dict.fromkeys(FULL, "")))
    (crowd.path / "ballots" / "anna (1).csv").write_bytes(filled)
    pulled = pull(crowd)
    assert (len(pulled.answers), pulled.mistakes) == (9, ())
    assert "anna (1).csv: read as anna.csv" in pulled.notes[0]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf\r\n", "the column ballot is missing"),
        ("票,番茄".encode("gbk"), "not in UTF-8"),
        (b'ballot,"x', "cannot be read as CSV"),
        (b"PK\x03\x04\xff", "not in UTF-8"),
        (b'"' + b"x" * 200_000 + b'"', "cannot be read as CSV"),
    ],
)
def test_what_is_no_csv_is_named(crowd: RoundFolder, raw: bytes, told: str) -> None:
    path_of(crowd).write_bytes(raw)
    assert told in only(crowd, 0)


def test_a_file_of_gigabytes_is_not_opened(crowd: RoundFolder) -> None:
    with path_of(crowd).open("ab") as file:
        file.truncate(MAX_FILE * 40)
    assert "1,280 MiB; no ballot has more than 32" in only(crowd, 0)
