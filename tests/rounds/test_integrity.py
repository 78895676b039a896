"""Files of a round that were edited, emptied or restored from elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rounds_made import adjudicated, answer, begin, decisions, expert, files_of, split

from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.lifecycle import close_round, reopen_round, round_status
from h2htalk.rounds.round_folder import RoundFolder, items_fingerprint
from h2htalk.rounds.status import list_rounds


def answered(folder: Path, count: int = 2) -> Path:
    path = begin(folder, count=count, overlap=2)
    answer(path, lambda *_: expert())
    round_status(path)
    return path


def first_line(text: str) -> str:
    return text.splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    ("file", "edited", "message"),
    [
        ("assignment_sets.jsonl", lambda _: "{}\n", r"assignment_sets.jsonl:1: number: is missing"),
        (
            "assignment_sets.jsonl",
            lambda text: text.replace('"place":1', '"place":"1"'),
            r"assignment_sets.jsonl:1: assignments",
        ),
        (
            "assignment_sets.jsonl",
            lambda text: text.replace('"groups":[]', '"groups":[["x"]]'),
            "the published item 'x' is missing",
        ),
        ("assignment_sets.jsonl", lambda text: text * 2, "found assignment set 1 in place of assignment set 2"),
        ("assignment_sets.jsonl", lambda _: "", "contains no assignment set"),
        ("private/annotators.jsonl", lambda _: "{}\n", r"annotators.jsonl:1: "),
        ("private/annotators.jsonl", lambda text: text.replace('"en"', '"de"'), r"annotators.jsonl:1: "),
        ("private/annotators.jsonl", first_line, "annotators with items are missing"),
        ("private/annotators.jsonl", lambda text: text + first_line(text), "'annalena' occurs twice"),
        ("private/salt", lambda _: "00ff\n", "must contain 16 hexadecimal bytes"),
        ("private/annotators.jsonl", None, "the file is missing, and annotations cannot be attributed"),
        ("private/salt", None, "salt: the file is missing, and no annotator can be identified"),
        ("items.jsonl", lambda text: text.replace("?", "!", 1), "differs from the items that were published"),
        ("items.jsonl", lambda text: text.replace("}", ',"gold":{"keep":"drop"}}', 1), "prompt.1.gold: no such field"),
        ("items.jsonl", first_line, "the published item 'en-item-1' is missing"),
        ("items.jsonl", lambda text: text + first_line(text), "'en-item-0' occurs twice"),
        ("sources.jsonl", lambda text: text + '{"id":"en-item-0","record":{}}\n', "sources.jsonl: differs from"),
        ("sources.jsonl", None, "sources.jsonl: differs from what was written with the items, or is missing"),
        ("events.jsonl", lambda _: '{"when":"2026"}\n', r"events.jsonl:1: an event needs a name"),
    ],
)  # fmt: skip
def test_changed_files_are_named_and_nothing_is_written(
    tmp_path: Path, file: str, edited: Callable[[str], str] | None, message: str
) -> None:
    """Changed files caused tracebacks, or were used."""
    path = answered(tmp_path)
    if edited is None:
        (path / file).unlink()
    else:
        (path / file).write_text(edited((path / file).read_text()))
    before = files_of(path)
    calls = (round_status, close_round, reopen_round, lambda _: begin(tmp_path, count=2, overlap=2))
    for call in calls:
        with pytest.raises(DataError, match=message):
            call(path)
    assert files_of(path) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"annotator": "0123456789ab"}, "'0123456789ab' is not an annotator of this round"),
        ({"round": "other"}, "this annotation is of the round 'other'"),
        ({"item": "en-item-9"}, "'en-item-9' is not an item of this round"),
        ({"question": "quality", "value": 4}, "'quality' is not a question of this round"),
        ({"value": "perhaps"}, "'perhaps' is not valid for keep"),
        ({"value": 4}, "4 is not valid for keep"),
        ({"value": ["keep"]}, "is not valid for keep"),
        ({"question": "accuracy", "value": 99}, "99 is not valid for accuracy"),
        ({"question": "accuracy", "value": "4"}, "'4' is not the stored form of accuracy: use 4"),
        ({"question": "skipped", "value": "no"}, "'no' is not valid for skipped"),
        ({"question": "skipped", "value": "yes"}, ""),
        ({"value": None}, ""),
        ({"question": "comment", "value": "A fine reply."}, ""),
    ],
)
def test_invalid_annotations_are_named(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    """Annotations of other annotators or rounds, and a rating of 99, were counted."""
    path = answered(tmp_path)
    lines = (path / "annotations.jsonl").read_text().splitlines()
    added = next(json.loads(line) for line in lines if '"question":"keep"' in line) | changed
    (path / "annotations.jsonl").write_text("\n".join([*lines, json.dumps(added), ""]))
    if not message:
        round_status(path)
        return
    for call in (round_status, close_round, reopen_round):
        with pytest.raises(DataError, match=rf"annotations.jsonl:{len(lines) + 1}: .*{message}"):
            call(path)


def test_adjudicated_labels_must_be_choices_of_the_item(tmp_path: Path) -> None:
    path = begin(tmp_path, count=1, people=2, overlap=2)
    answer(path, split("keep", "drop"))
    close_round(path)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    lines = [json.loads(line) for line in (ties / "items.jsonl").read_text().splitlines()]
    other = lines[0] | {"id": "en-item-9#keep", "labels": ["drop", "revise"]}
    (ties / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (*lines, other)))
    facts = json.loads((ties / "round.json").read_text())
    facts["items_sha256"] = items_fingerprint(one.to_dict() for one in RoundFolder(ties).items())
    (ties / "round.json").write_text(json.dumps(facts))
    stored = (ties / "annotations.jsonl").read_text()
    (ties / "annotations.jsonl").write_text(stored.replace('"value":"keep"', '"value":"revise"'))
    with pytest.raises(DataError, match=r"'revise' is not a choice of this item: drop, keep"):
        close_round(ties)


def test_a_broken_round_does_not_affect_the_list(tmp_path: Path) -> None:
    """An event without a name ended `round list` in a traceback."""
    for name in ("a", "b", "c"):
        answered(tmp_path / name)
    (tmp_path / "b" / "round" / "events.jsonl").write_text("{}\n")
    found = list(list_rounds(tmp_path))
    assert [one.state for one in found] == ["open", "cannot be read", "open"]
    assert "events.jsonl:1" in found[1].notes[0]


def test_copies_without_names_can_be_read(tmp_path: Path) -> None:
    path = answered(tmp_path)
    close_round(path)
    for file in (path / "private").iterdir():
        file.unlink()
    (path / "private").rmdir()
    assert [one.state for one in list_rounds(tmp_path)] == ["closed"]
    assert round_status(path).completed == 4


def test_an_open_round_needs_its_private_folder(tmp_path: Path) -> None:
    """It ended in a KeyError, and a new salt was created under which nobody was known."""
    path = answered(tmp_path)
    shutil.rmtree(path / "private")
    before = files_of(path)
    for call in (round_status, close_round, reopen_round):
        with pytest.raises(
            DataError, match=r"annotators.jsonl: the file is missing.*restore the round's folder `private`"
        ):
            call(path)
    with pytest.raises(DataError, match="salt: the file is missing"):
        RoundFolder(path).salt()
    assert files_of(path) == before
    assert [one.state for one in list_rounds(tmp_path)] == ["open"]


def test_items_with_blank_texts_are_unchanged(tmp_path: Path) -> None:
    """A blank input is stored in the file, but left out when the item is read."""
    path = answered(tmp_path)
    lines = [json.loads(line) for line in (path / "items.jsonl").read_text().splitlines()]
    lines[0]["context"] = {**lines[0].get("context", {}), "retrieved": ""}
    (path / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    facts = json.loads((path / "round.json").read_text()) | {"items_sha256": items_fingerprint(lines)}
    (path / "round.json").write_text(json.dumps(facts))
    assert round_status(path).completed == 4


# --- A closed round -----------------------------------------------------------------------------------------------


def test_closing_again_needs_unchanged_annotations(tmp_path: Path) -> None:
    """Closing a closed round decided again from what was left of its annotations."""
    path = answered(tmp_path)
    close_round(path)
    before, stored = decisions(path), path / "annotations.jsonl"
    whole = stored.read_text()
    for cut in (whole[: len(whole) // 3], ""):
        stored.write_text(cut)
        with pytest.raises(RoundError, match=r"16 annotations then, .* now.* Restore the file, or .*round reopen"):
            close_round(path)
        assert decisions(path) == before
    stored.write_text(whole)
    close_round(path)
    assert decisions(path) == before


def test_reopening_collects_deleted_annotations_again(tmp_path: Path) -> None:
    path = answered(tmp_path)
    reopen_round(path, without=["annalena"])
    close_round(path)
    before = decisions(path)
    (path / "annotations.jsonl").write_text("")
    reopen_round(path)
    assert RoundFolder(path).state == "open"
    close_round(path)
    assert decisions(path) == before


@pytest.mark.parametrize("there", [True, False])
def test_reopening_after_a_change_works_if_no_items_need_annotators(tmp_path: Path, there: bool) -> None:
    """Also if the spreadsheets are missing, and nothing can be collected."""
    path = answered(tmp_path)
    close_round(path)
    lines = (path / "annotations.jsonl").read_text()
    (path / "annotations.jsonl").write_text(lines.replace('"value":4', '"value":5', 1))
    with pytest.raises(RoundError, match="the file was changed"):
        close_round(path)
    if not there:
        shutil.rmtree(path / "spreadsheets")
    reopen_round(path)
    assert (path / "decisions.before-2.jsonl").is_file()
    close_round(path)


def test_adjudications_need_unchanged_annotations(tmp_path: Path) -> None:
    path = begin(tmp_path, count=2, people=2, overlap=2)
    answer(path, split("keep", "drop"))
    close_round(path)
    ties = adjudicated(path, tmp_path / "ties", lambda *_: {"label": "keep"})
    (ties / "annotations.jsonl").write_text("")
    with pytest.raises(RoundError, match=r"ties/annotations.jsonl: the file was changed .*2 annotations then, 0 now"):
        close_round(path, adjudication=ties)
