"""What is no workbook, or one made to do harm, is named, and never takes the memory of the machine."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import pytest
from ballot_rounds import fill, item, opened, pull, workbook_path

from h2htalk.errors import RoundError
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.spreadsheets.files import MAX_FILE
from h2htalk.rounds.spreadsheets.parts import MAX_CELLS, address, merged_rows, unescaped
from h2htalk.rounds.spreadsheets.workbook import MAX_UNPACKED, Workbook

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = (
    '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{LINKS}/sharedStrings" Target="/xl/sharedStrings.xml"/></Relationships>'
)
BOOK = f'<workbook {MAIN} xmlns:r="{LINKS}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>'


def made(path: Path, sheet: str | bytes, strings: str = "", **parts: str) -> Path:
    """A workbook of one sheet, from its XML."""
    whole = {
        "xl/workbook.xml": BOOK,
        "xl/_rels/workbook.xml.rels": RELATIONS,
        "xl/worksheets/sheet1.xml": sheet,
        "xl/sharedStrings.xml": f"<sst {MAIN}>{strings}</sst>",
    } | parts
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in whole.items():
            if text:
                file.writestr(name, text)
    return path


def cells(rows: str) -> str:
    return f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"


def read(path: Path) -> dict[str, object]:
    with Workbook(path) as book:
        return {address(*at): cell.value for at, cell in book.sheet("One").cells.items()}


def test_every_kind_of_cell_is_read(tmp_path: Path) -> None:
    strings = "<si><t>plain</t></si><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>aid</t></rPh></si>"
    sheet = cells(
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1"><v>4</v></c>'
        '<c r="D1"><v>4.5</v></c><c r="E1" t="b"><v>1</v></c>'
        '<c r="F1" t="inlineStr"><is><r><t>a</t></r><r><t>_x005F_b</t></r></is></c></row>'
        '<row r="1048576"><c r="XFD1048576" t="str"><f>"x"</f><v>x</v></c><c r="A9" s="2"/></row>'
        "<row><c><v>7</v></c><c><v>8</v></c></row>"
    )
    assert read(made(tmp_path / "a.xlsx", sheet, strings)) == {
        "A1": "plain", "B1": "rich", "C1": 4, "D1": 4.5, "E1": True, "F1": "a_b", "XFD1048576": "x",
        "A10": 7, "B10": 8,
    }  # fmt: skip
    with Workbook(tmp_path / "a.xlsx") as book:
        assert [cell.value for cell in book.sheet("One").cells.values() if cell.formula] == ["x"]


def test_small_readers() -> None:
    assert [address(7, column) for column in (1, 26, 27, 702, 703, 16384)] == [
        "A7",
        "Z7",
        "AA7",
        "ZZ7",
        "AAA7",
        "XFD7",
    ]
    assert merged_rows("B3:C5") == range(3, 6)
    assert merged_rows("B3") == range(3, 4)
    assert merged_rows("nonsense") == range(0)
    assert unescaped("a_x000A_b_x0000_c_xD800__x00zz_") == "a\nb_x0000_c_xD800__x00zz_"


@pytest.fixture
def crowd(tmp_path: Path) -> RoundFolder:
    return opened(tmp_path, "crowd", [item(1)], voters="anna,en;bert,en")


def test_one_broken_file_keeps_no_other_from_being_read(crowd: RoundFolder) -> None:
    fill(workbook_path(crowd, "bert"), {1: {"subtask": "none", "keep": "keep", "quality": 1}})
    whole = workbook_path(crowd).read_bytes()
    sitting = whole.index(b"xl/worksheets/sheet2.xml") + 40
    for raw, told in (
        (whole[: len(whole) // 2], "no whole workbook"),
        (whole[:-30], "no whole workbook"),
        (whole[:sitting] + bytes(200) + whole[sitting + 200 :], "broken"),
        (b"", "it is empty"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "password"),
        (b"Dear all, here are my answers", "no whole workbook"),
        (b"PK\x03\x04 and no more", "no whole workbook"),
    ):
        workbook_path(crowd).write_bytes(raw)
        pulled = pull(crowd)
        assert len(pulled.answers) == 3
        (mistake,) = pulled.mistakes
        assert mistake.startswith("ballots/anna.xlsx: ")
        assert told in mistake


def test_lock_files_and_other_files_in_the_folder(crowd: RoundFolder) -> None:
    folder = crowd.path / "ballots"
    for name in ("~$anna.xlsx", ".~lock.anna.xlsx#", ".DS_Store", "Thumbs.db", "desktop.ini"):
        (folder / name).write_bytes(b"x")
    assert (pull(crowd).mistakes, pull(crowd).notes) == ((), ())
    (folder / "anna.ods").write_bytes(b"x")
    (folder / "anna.XLS").write_bytes(b"x")
    (folder / "bert-copy.xlsx").write_bytes(workbook_path(crowd, "bert").read_bytes())
    (folder / "letter.docx").write_bytes(b"x")
    (folder / "old").mkdir()
    (folder / "gina.xlsx").mkdir()
    pulled = pull(crowd)
    assert [mistake.partition(":")[0] for mistake in pulled.mistakes] == [
        "ballots/anna.XLS", "ballots/anna.ods", "ballots/bert-copy.xlsx", "ballots/gina.xlsx",
    ]  # fmt: skip
    assert "is a folder, and nothing in it is read" in pulled.mistakes[-1]
    assert pulled.notes == (
        "ballots/letter.docx: no ballot; left alone",
        "ballots/old: no ballot; left alone",
    )


def test_a_download_is_read_where_the_ballot_itself_says_nothing(crowd: RoundFolder) -> None:
    """A browser calls the second download `bert (1).xlsx`: its work stayed unread until somebody renamed it."""
    folder = crowd.path / "ballots"
    full = {"subtask": "none", "keep": "keep", "quality": 1}
    blank = workbook_path(crowd, "bert").read_bytes()
    fill(workbook_path(crowd, "bert"), {1: full})
    workbook_path(crowd, "bert").rename(folder / "Bert (1).xlsx")
    for beside in (None, blank):
        if beside is not None:
            workbook_path(crowd, "bert").write_bytes(beside)
        pulled = pull(crowd)
        assert (len(pulled.answers), pulled.mistakes) == (3, ())
        assert "ballots/Bert (1).xlsx: read as bert.xlsx, which is absent or blank" in pulled.notes[0]
    # Two of them, or one beside a ballot that says something: people decide.
    (folder / "bert(2).xlsx").write_bytes(blank)
    pulled = pull(crowd)
    assert (len(pulled.answers), len(pulled.mistakes)) == (0, 2)
    assert "not the one of its name" in pulled.mistakes[0]
    (folder / "bert(2).xlsx").unlink()
    fill(workbook_path(crowd, "bert"), {1: full | {"quality": 5}})
    pulled = pull(crowd)
    assert [one.value for one in pulled.answers if one.question == "quality"] == [5]
    assert [mistake.partition(":")[0] for mistake in pulled.mistakes] == ["ballots/Bert (1).xlsx"]
    # Somebody else's under that name is nobody's.
    workbook_path(crowd, "bert").unlink()
    (folder / "Bert (1).xlsx").write_bytes(workbook_path(crowd).read_bytes())
    assert "it holds the ballot 'anna'" in pull(crowd).mistakes[0]


# --- Made to do harm ----------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    """What is said of a file, which must not take 60 MiB to say."""
    tracemalloc.start()
    try:
        with pytest.raises(RoundError) as error:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    return str(error.value)


def test_a_bomb_is_refused_by_what_it_unpacks_to(tmp_path: Path) -> None:
    bomb = made(tmp_path / "a.xlsx", b"<worksheet>" + b" " * (MAX_UNPACKED + 1))
    assert bomb.stat().st_size < 1 << 20
    assert "unpacks to more than 128 MiB" in refused(bomb)


def test_a_million_cells_are_refused(tmp_path: Path) -> None:
    row = "<row>" + "<c><v>1</v></c>" * 1000 + "</row>"
    assert "more than 200,000 filled cells" in refused(
        made(tmp_path / "a.xlsx", cells(row * (MAX_CELLS // 1000 + 1)))
    )


def test_a_million_texts_are_refused(tmp_path: Path) -> None:
    sheet = cells('<row><c t="s"><v>0</v></c></row>')
    assert "more than 200,000 texts" in refused(made(tmp_path / "a.xlsx", sheet, "<si/>" * (MAX_CELLS + 1)))


def test_a_file_of_half_a_gigabyte_is_not_opened(tmp_path: Path) -> None:
    path = made(tmp_path / "a.xlsx", cells(""))
    with path.open("ab") as file:
        file.truncate(500 << 20)
    assert f"no ballot has more than {MAX_FILE >> 20}" in refused(path)


def test_a_hundred_thousand_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(30_000):
            file.writestr(f"xl/part-{number}.xml", "")
    assert "more parts than any ballot" in refused(path)


def test_entities_unfold_to_nothing(tmp_path: Path) -> None:
    sheet = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>' + cells(
        "<row><c><v>&b;</v></c></row>"
    )
    assert "document type" in refused(made(tmp_path / "a.xlsx", sheet))


@pytest.mark.parametrize(
    ("sheet", "parts", "told"),
    [
        ("<worksheet><sheetData>", {}, "broken"),
        (cells('<row><c r="1A"><v>1</v></c></row>'), {}, "broken"),
        (cells("<row><c><v>many</v></c></row>"), {}, "broken"),
        (cells('<row><c t="s"><v>5</v></c></row>'), {}, "a text that is not there"),
        ("", {}, "missing"),
        (cells(""), {"xl/workbook.xml": ""}, "no workbook of Excel's kind"),
        (cells(""), {"xl/_rels/workbook.xml.rels": ""}, "missing"),
    ],
)
def test_broken_parts_are_named(tmp_path: Path, sheet: str, parts: dict[str, str], told: str) -> None:
    assert told in refused(made(tmp_path / "a.xlsx", sheet, **parts))


def test_a_part_with_a_password_is_named(tmp_path: Path) -> None:
    path = made(tmp_path / "a.xlsx", cells(""))
    raw = bytearray(path.read_bytes())
    # The flag of encryption, in the list and before each part.
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(mark)
        while at >= 0:
            raw[at + offset] |= 1
            at = raw.find(mark, at + 1)
    path.write_bytes(raw)
    assert "password" in refused(path)
