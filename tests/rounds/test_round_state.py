"""Files of a round that are missing, broken, or do not fit each other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rounds_made import answer, begin, expert, files_of

from h2htalk.errors import DataError
from h2htalk.rounds.lifecycle import close_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import list_rounds

CALLS = (round_status, close_round, reopen_round)
FIRST_LINE = "only the first line"


def answered(folder: Path, count: int = 2) -> Path:
    path = begin(folder, count=count, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)
    return path


@pytest.mark.parametrize(
    ("file", "edited", "message"),
    [
        ("assignment_sets.jsonl", "{}\n", r"assignment_sets.jsonl:1: number: is missing"),
        ("private/annotators.jsonl", FIRST_LINE, "annotators with items are missing"),
        ("private/salt", "00fg\n", "salt: no annotator can be identified"),
        ("private/salt", None, "salt: no annotator can be identified without it"),
        ("items.jsonl", FIRST_LINE, "the item 'en-item-1' is missing"),
        ("events.jsonl", '{"when":"2026"}\n', r"events.jsonl:1: an event needs a name"),
    ],
)
def test_files_that_do_not_fit_are_named_and_nothing_is_written(
    tmp_path: Path, file: str, edited: str | None, message: str
) -> None:
    """They caused tracebacks, or were used."""
    path = answered(tmp_path)
    text = (path / file).read_text().splitlines(keepends=True)[0] if edited is FIRST_LINE else edited
    if text is None:
        (path / file).unlink()
    else:
        (path / file).write_text(text)
    before = files_of(path)
    for call in CALLS:
        with pytest.raises(DataError, match=message):
            call(path)
    assert files_of(path) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"annotator": "0123456789ab"}, "'0123456789ab' is not an annotator of this round"),
        ({"item": "en-item-9"}, "not a valid annotation of this round"),
        ({"value": "perhaps"}, "not a valid annotation"),
    ],
)
def test_invalid_annotations_are_named(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    """Annotations of other annotators, and a rating of 99, were counted."""
    path = answered(tmp_path)
    lines = (path / "annotations.jsonl").read_text().splitlines()
    added = next(json.loads(line) for line in lines if '"question":"keep"' in line) | changed
    (path / "annotations.jsonl").write_text("\n".join([*lines, json.dumps(added), ""]))
    with pytest.raises(DataError, match=rf"annotations.jsonl:{len(lines) + 1}: .*{message}"):
        close_round(path)


def test_a_broken_round_does_not_affect_the_list(tmp_path: Path) -> None:
    """An event without a name ended `round list` in a traceback."""
    for name in ("a", "b", "c"):
        begin(tmp_path / name, count=2)
    (tmp_path / "b" / "round" / "events.jsonl").write_text("{}\n")
    found = list(list_rounds(tmp_path))
    assert [one.state for one in found] == ["open", "cannot be read", "open"]
    assert "events.jsonl:1" in found[1].notes[0]


def test_copies_without_names_can_be_read_and_an_open_round_needs_them(tmp_path: Path) -> None:
    """A new salt was created, under which nobody was known."""
    path = answered(tmp_path)
    shutil.copytree(path, tmp_path / "copies" / "round")
    shutil.rmtree(path / "private")
    for call in CALLS:
        with pytest.raises(DataError, match=r"annotators.jsonl: the file is missing.*restore the round's folder"):
            call(path)
    with pytest.raises(DataError, match="salt: no annotator can be identified"):
        RoundFolder(path).salt()
    copy = tmp_path / "copies" / "round"
    close_round(copy)
    shutil.rmtree(copy / "private")
    assert [one.state for one in list_rounds(tmp_path / "copies")] == ["closed"]
    assert round_status(copy).completed == 4
