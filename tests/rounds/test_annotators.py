"""Lists of annotators."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import annotator_id, merge_annotators, placeholder_annotators, read_annotators

SALT = b"salt"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_read_a_list(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", '\ufeffname,languages,crisis\nana,en zh,no\n李雷,"zh,en",\nbo,en,YES\n')
    annotators = read_annotators(path, SALT)
    assert [(v.name, v.languages, v.crisis) for v in annotators] == [
        ("ana", ("en", "zh"), False), ("李雷", ("zh", "en"), False), ("bo", ("en",), True),
    ]  # fmt: skip
    assert all(
        v.name not in v.id and v.id == annotator_id(v.name, SALT) != annotator_id(v.name, b"other") for v in annotators
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nana\n", "its first row is 'name', without languages"),
        ("Annotator;Tongue\nana;en\n", "its first row is 'annotator, tongue', without name and languages"),
        ("name,languages,Name\nana,en,bo\n", "names a column twice"),
        ("name,languages\n", "is empty; add a heading"),
        ("name,languages\n,\n\n", "is empty; add a heading"),
        ("name,languages\n\nana,fr\n", "v.csv:3: languages"),
        ("", "a heading with name and languages"),
        ("name,languages\nana,fr\n", r"v.csv:2: languages is 'fr'; choose from en, zh"),
        ("name,languages\nana,\n", "v.csv:2: languages"),
        ("name,languages\n../../etc,en\n", "v.csv:2: name is"),
        ("name,languages\n.hidden,en\n", "v.csv:2: name is"),
        ("name,languages\n=1+1,en\n", "v.csv:2: name is"),
        (f"name,languages\n{'a' * 61},en\n", "up to 60"),
        ("name,languages,crisis\nana,en,perhaps\n", "write yes or no"),
        ("name,languages\nAna,en\nana,zh\n", "differ only in case"),
    ],
)
def test_invalid_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RoundError, match=message):
        read_annotators(write(tmp_path / "v.csv", text), SALT)


def test_merged_lists_have_distinct_names(tmp_path: Path) -> None:
    """`bo` and `BO` had spreadsheets of the same name on many file systems."""
    path = tmp_path / "v.csv"
    known = read_annotators(write(path, "name,languages\nana,en\nbo,en\nconrad,en\n"), SALT)
    both = merge_annotators(
        known, read_annotators(write(path, "name,languages,crisis\nbo,zh,no\ncy,en,\n"), SALT), path
    )
    assert list(both) == ["ana", "bo", "conrad", "cy"]
    assert (both["bo"].languages, both["bo"].crisis) == (("zh",), False)
    with pytest.raises(RoundError, match="'BO' and 'bo' differ only in case"):
        merge_annotators(known, read_annotators(write(path, "name,languages\nBO,en\n"), SALT), path)


def test_unreadable_lists(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_bytes(b"name,languages\n\xff\xfe,en\n")
    for path, says in (
        (tmp_path / "v.csv", "cannot be read as CSV in UTF-8"),
        (tmp_path / "none.csv", "does not exist"),
        (tmp_path, "cannot be read as CSV"),
    ):
        with pytest.raises(RoundError, match=says):
            read_annotators(path, SALT)


@pytest.mark.parametrize(
    ("text", "languages", "crisis"),
    [
        # A misspelt column, or an empty cell, counted as consent.
        ("name,languages\nana,en\n", ("en",), False),
        ("name,languages,crises\nana,en,yes\n", ("en",), False),
        ("name,languages,crisis\nana,en,\n", ("en",), False),
        # Forms that spreadsheet programs write.
        ("name;languages;crisis\r\nana;en zh;yes\r\n", ("en", "zh"), True),
        ("Name\tLanguages\tCrisis\nana\ten+zh\tYes\n", ("en", "zh"), True),
        (' NAME ,mail,"Languages",crisis\nana,x@example.org,"en,zh",yes\n\n', ("en", "zh"), True),
    ],
)
def test_separators_spellings_and_consent(tmp_path: Path, text: str, languages: tuple[str, ...], crisis: bool) -> None:
    (annotator,) = read_annotators(write(tmp_path / "v.csv", text), SALT)
    assert (annotator.name, annotator.languages, annotator.crisis) == ("ana", languages, crisis)


def test_placeholder_annotators() -> None:
    annotators = placeholder_annotators(2, ["en", "zh"], SALT)
    assert [annotator.name for annotator in annotators] == ["en-01", "en-02", "zh-01", "zh-02"]
