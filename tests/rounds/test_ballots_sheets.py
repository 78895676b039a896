"""What a workbook shows: guidelines first, texts that read well, crises announced, nothing that gives an item away."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ballot_rounds import TITLES, item, keys_of, known, opened, places, pull, sitting_of, workbook_path
from openpyxl import load_workbook

from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.spreadsheets.columns import MOST_LINES
from h2htalk.rounds.texts import question_title, word


def book_of(round: RoundFolder) -> Any:
    return load_workbook(workbook_path(round))


def row_of(round: RoundFolder, name: str) -> dict[str, Any]:
    """Column key -> cell, of an item."""
    sheet, row = sitting_of(book_of(round), places(round)[name])
    return {key: sheet.cell(row, at) for at, key in enumerate(keys_of(sheet), 1)}


def offered(round: RoundFolder, name: str, key: str) -> list[str]:
    """What a cell's drop-down list offers."""
    book = book_of(round)
    sheet, row = sitting_of(book, places(round)[name])
    cell = sheet.cell(row, keys_of(sheet).index(key) + 1).coordinate
    (rule,) = (rule for rule in sheet.data_validations.dataValidation if cell in rule.sqref)
    assert (rule.type, rule.errorStyle, rule.showErrorMessage) == ("list", "stop", True)
    found = re.fullmatch(r"'ballot'!\$(\w+)\$1:\$\w+\$(\d+)", rule.formula1)
    assert found is not None
    return [book["ballot"][f"{found[1]}{at}"].value for at in range(1, int(found[2]) + 1)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sheets_and_headings_are_in_the_voters_words(tmp_path: Path, language: Any) -> None:
    round = opened(tmp_path, "crowd", [item(1, language)])
    book = book_of(round)
    assert book.sheetnames == [word("guidelines", language), TITLES[language], "ballot"]
    assert book["ballot"].sheet_state == "hidden"
    headings = [cell.value for cell in book[TITLES[language]][2]]
    assert question_title("keep", language) in headings
    assert (
        offered(round, f"{language}-item-1", "keep")
        == {"en": ["Keep", "Drop"], "zh": ["留下", "删掉"]}[language]
    )
    assert len(offered(round, f"{language}-item-1", "subtask")) == 12
    assert offered(round, f"{language}-item-1", "quality")[3] == {"en": "4: good", "zh": "4：较好"}[language]
    assert len(offered(round, f"{language}-item-1", "skip")) == 1


def test_guidelines_stand_line_by_line_without_marks(tmp_path: Path) -> None:
    sheet = book_of(opened(tmp_path, "safety", [item(1)])).worksheets[0]
    lines = [row[0].value or "" for row in sheet.iter_rows()]
    assert sheet["A1"].font.b
    assert any("988" in line for line in lines)
    assert not any(line.startswith(("#", "- ", "* ")) or "**" in line for line in lines)
    assert sum(bool(cell.value) and cell.font.b for (cell,) in sheet.iter_rows()) >= 5
    assert all(cell.alignment.wrap_text for (cell,) in sheet.iter_rows())


def test_only_cells_to_answer_in_can_be_changed(tmp_path: Path) -> None:
    round = opened(tmp_path, "expert", [item(1)])
    for sheet in book_of(round).worksheets:
        assert sheet.protection.sheet
        assert sheet.protection.password is None
    cells = row_of(round, "en-item-1")
    free = {key for key, cell in cells.items() if not cell.protection.locked}
    assert free == {"accuracy", "consistency", "domain_compliance", "keep", "comment", "skip"}
    sheet = book_of(round)["Sitting 1"]
    assert sheet.freeze_panes == "C3"
    assert sheet.row_dimensions[1].hidden
    assert sheet.column_dimensions["A"].hidden
    assert sheet.page_setup.orientation == "landscape"
    assert sheet.print_title_rows == "$2:$2"


def test_a_conversation_is_a_line_a_message_beside_what_belongs_to_it(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hello!\nTwo lines."}, {"role": "companion", "content": "=SUM(A1)"}]
    record = item(1, prompt=said, context={"memories": "likes tea"}, note="Which is right?")
    cells = row_of(opened(tmp_path, "expert", [record]), "en-item-1")
    assert cells["text"].value == (
        "Which is right?\n\nWhat the companion remembers\nlikes tea\n\n"
        "Conversation\nUser: Hello!\nTwo lines.\nCompanion: =SUM(A1)"
    )
    assert cells["reply"].value.startswith("Reply to judge\nAfter all")
    assert "\n\nProposed reply\n" in cells["reply"].value


def test_no_cell_is_a_formula_or_an_error_whatever_the_texts_are(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "＝1", "#N/A", "#REF!", " \n=1", "\x01\u202e\ufffe_x000D_\t"]
    items = [
        item(n, prompt=None, context={text: text}, response=text, reference=text, note=text, labels=[])
        for n, text in enumerate(texts)
    ]
    items[0]["labels"] = items[1]["labels"] = ["=a", "#N/A"]
    for record in items[2:]:
        record["labels"] = ["@b", "c"]
    round = opened(tmp_path, "adjudication", items)
    with zipfile.ZipFile(workbook_path(round)) as parts:
        for name in parts.namelist():
            xml = parts.read(name).decode()
            assert "<f>" not in xml
            assert "<f " not in xml
            assert 't="e"' not in xml
    assert offered(round, "en-item-0", "label") == ["'=a", "#N/A"]
    assert offered(round, "en-item-5", "label") == ["'@b", "c"]
    for sheet in book_of(round).worksheets[1:2]:
        for line in sheet.iter_rows(min_row=3):
            for cell in line:
                assert not str(cell.value or "").lstrip().startswith(("=", "+", "-", "@", "＝"))
    sealed = row_of(round, "en-item-8")["text"].value
    # As the file holds it: a program that decodes `_x005F_` shows the text as it was.
    assert "\\x01\\u202e\\ufffe_x005F_x000D_\\t" in sealed


def test_a_crisis_is_announced_and_its_text_a_click_away(tmp_path: Path) -> None:
    items = [item(n) for n in range(4)]
    items += [
        item(9, crisis=True, prompt="I cannot go on.", reference="I am here with you.", note="About keep.")
    ]
    round = opened(tmp_path, "crowd", items)
    book, number = book_of(round), places(round)["en-item-9"]
    cells = row_of(round, "en-item-9")
    assert cells["notice"].value == word("crisis_notice", "en")
    assert cells["text"].value == f"About keep.\n\nThe text stands on the sheet “Text {number}”, row 4."
    assert cells["reply"].value is None
    assert cells["text"].hyperlink.location == f"'Text {number}'!A4"
    shown = "\n".join(
        str(c.value) for name in ("Sitting 1", "ballot") for r in book[name].iter_rows() for c in r
    )
    assert "cannot go on" not in shown
    text = book[f"Text {number}"]
    assert text["B3"].value == word("crisis_notice", "en")
    assert [text["B4"].value, text["B5"].value] == ["Note", "About keep."]
    assert [text["A8"].value, text["B8"].value] == ["User", "I cannot go on."]
    assert text["B2"].hyperlink.location == f"'Sitting 1'!B{number + 2}"
    assert book["Sitting 1"][f"B{number + 2}"].value == number
    # After the sittings, before the record.
    assert book.sheetnames == ["Guidelines", "Sitting 1", f"Text {number}", "ballot"]


def test_a_text_too_long_for_a_row_stands_whole_on_a_sheet_of_its_own(tmp_path: Path) -> None:
    said = [
        {
            "role": "user" if n % 2 == 0 else "companion",
            "content": f"{n}: " + "walk by the river " * (60 if n == 7 else 6),
        }
        for n in range(40)
    ]
    said[11]["content"] = "很长的一句话，" * 9_000
    round = opened(tmp_path, "crowd", [item(1, prompt=said), item(2)])
    book, number = book_of(round), places(round)["en-item-1"]
    assert row_of(round, "en-item-1")["text"].value.startswith("The text stands on the sheet")
    assert "notice" not in row_of(round, "en-item-2")
    sheet = book[f"Text {number}"]
    written: list[str] = []
    for speaker, cell in sheet.iter_rows(min_row=5, max_col=2):
        if speaker.value:
            written.append("")
        if cell.value and written and len(written) <= 40:
            written[-1] += cell.value
            assert sheet.row_dimensions[cell.row].height <= 409
            assert len(cell.value) <= 32_767
    assert [one.split() for one in written[:39]] == [one["content"].split() for one in said[:39]]
    ordinary = book["Sitting 1"].row_dimensions[2 + places(round)["en-item-2"]].height
    assert 20 < ordinary < 200


def test_a_note_longer_than_a_cell_stands_with_its_text(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1, note="word " * 12_000), item(2)])
    number = places(round)["en-item-1"]
    assert row_of(round, "en-item-1")["text"].value == f"The text stands on the sheet “Text {number}”, row 4."
    cells = [str(row[1].value or "") for row in book_of(round)[f"Text {number}"].iter_rows(min_row=5)]
    assert " ".join(cells).split().count("word") == 12_000
    assert pull(round).mistakes == ()


def test_rows_within_the_limit_are_no_higher_than_excel_shows(tmp_path: Path) -> None:
    items = [item(n, prompt="番茄开花了，" * 10 * n) for n in range(1, 30)]
    round = opened(tmp_path, "crowd", items, care={"sitting": 40, "crisis_share": 0.2})
    sheet = book_of(round)["Sitting 1"]
    heights = [sheet.row_dimensions[row].height for row in range(3, sheet.max_row + 1)]
    assert max(heights) <= 409
    assert max(heights) > MOST_LINES * 10
    assert min(heights) < 60


def test_a_models_suggestion_shows_only_where_the_round_allows_it(tmp_path: Path) -> None:
    items = [item(1, suggested={"keep": "drop", "quality": 2}), item(2)]
    blind = opened(tmp_path, "crowd", items)
    assert "suggestion" not in row_of(blind, "en-item-1")
    seeing = opened(tmp_path, "crowd", items, name="seeing", suggest=True)
    assert row_of(seeing, "en-item-1")["suggestion"].value.splitlines()[1::2] == ["Drop", "2: poor"]
    assert row_of(seeing, "en-item-2")["suggestion"].value is None


def test_nothing_in_a_ballot_names_an_item_its_subtask_or_its_gold(tmp_path: Path) -> None:
    items = [item(n, subtask="itinerary_basic", gold={"keep": "drop"}, id=f"hidden-id-{n}") for n in range(3)]
    items[0]["context"] = {"memories": "tea"}
    round = opened(tmp_path, "expert", items)
    for name in ("anna.xlsx", "anna.csv"):
        path = round.path / "ballots" / name
        if path.suffix == ".csv":
            texts = [path.read_text(encoding="utf-8-sig")]
        else:
            with zipfile.ZipFile(path) as parts:
                texts = [parts.read(part).decode() for part in parts.namelist()]
        assert not any(hint in text for text in texts for hint in ("hidden-id", "itinerary_basic", '"gold"'))


def test_who_reads_two_languages_gets_headings_in_one_that_is_asked(tmp_path: Path) -> None:
    round = opened(tmp_path, "crowd", [item(1, "zh")], voters="anna,en zh")
    assert known(round)[1].language == "zh"
    both = opened(tmp_path, "crowd", [item(1, "zh"), item(2)], voters="anna,en zh", name="both")
    assert known(both)[1].language == "en"
