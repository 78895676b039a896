"""Annotations, annotators, questions, settings, files of a round: what is read and refused; status on a terminal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.show import show
from h2htalk.errors import ConfigError, DataError, RoundError
from h2htalk.rounds.annotations import Annotation, changes, latest
from h2htalk.rounds.annotators import annotator_id, merge_annotators, read_annotators
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, remove_annotator, reopen_round, round_status
from h2htalk.rounds.questions import QUESTIONS, questions_for
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec, make_spec
from h2htalk.rounds.status import (
    ProgressRow,
    item_lines,
    list_rounds,
    progress_table,
    rounds_table,
    status_lines,
)
from h2htalk.text.tables import Table
from support.command_line import h2htalk_here
from support.rounds import answer, begin, crowd, expert, files_of, split
from support.spreadsheet_rounds import fill, item, opened, workbook_path
from support.tables import table

ITEMS = st.sampled_from("ab")
ANNOTATORS = st.sampled_from("xyz")
VALUES = st.none() | st.sampled_from(["keep", "drop"]) | st.integers(1, 5)
ASKED = st.sampled_from(["keep", "quality"])
ANSWERS = st.builds(Annotation, st.just("r"), ITEMS, ANNOTATORS, ASKED, VALUES, st.just("2026"))


@given(st.lists(ANSWERS), st.lists(ANSWERS))
def test_storing_changes_gives_what_the_platform_holds(
    stored: list[Annotation], seen: list[Annotation]
) -> None:
    new = changes({answer.key: answer for answer in stored}, seen)
    now = {answer.key: answer for answer in seen}
    kept = {key: answer for key, answer in latest(stored).items() if key not in now}
    held = kept | {key: answer for key, answer in now.items() if answer.value is not None}
    after = latest([*stored, *new])
    assert {key: answer.value for key, answer in after.items()} == {
        key: answer.value for key, answer in held.items()
    }
    assert changes({answer.key: answer for answer in [*stored, *new]}, seen) == []


SALT = b"salt"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_lists_of_annotators_are_read_and_merged(tmp_path: Path) -> None:
    path = write(
        tmp_path / "v.csv", '\ufeffname,languages,crisis\nana,en zh,no\n李雷,"zh,en",\nbo,en,YES\n'
    )
    annotators = read_annotators(path, SALT)
    assert [(v.name, v.languages, v.crisis) for v in annotators] == [
        ("ana", ("en", "zh"), False), ("李雷", ("zh", "en"), False), ("bo", ("en",), True),
    ]  # fmt: skip
    for v in annotators:
        assert v.name not in v.id == annotator_id(v.name, SALT) != annotator_id(v.name, b"other")
    # `bo` and `BO` had spreadsheets of the same name on many file systems.
    path = tmp_path / "v.csv"
    known = read_annotators(write(path, "name,languages\nana,en\nbo,en\nconrad,en\n"), SALT)
    more = read_annotators(write(path, "name,languages,crisis\nbo,zh,no\ncy,en,\n"), SALT)
    both = merge_annotators(known, more, path)
    assert list(both) == ["ana", "bo", "conrad", "cy"]
    assert (both["bo"].languages, both["bo"].crisis) == (("zh",), False)
    with pytest.raises(RoundError, match="'BO' and 'bo' differ only in case"):
        merge_annotators(known, read_annotators(write(path, "name,languages\nBO,en\n"), SALT), path)


def test_separators_spellings_consent_and_invalid_lists(tmp_path: Path) -> None:
    for text, languages, crisis in table("rounds", "lists_of_annotators"):
        (annotator,) = read_annotators(write(tmp_path / "v.csv", text), SALT)
        assert (annotator.name, [*annotator.languages], annotator.crisis) == (
            "ana",
            languages,
            crisis,
        ), text
    for text, message in table("rounds", "invalid_lists"):
        with pytest.raises(RoundError, match=message):
            read_annotators(write(tmp_path / "v.csv", text), SALT)


LABEL = QUESTIONS["crowd"][1]
RATING = QUESTIONS["crowd"][2]
SEVERAL = QUESTIONS["safety"][2]


def test_values_and_questions() -> None:
    assert [RATING.read(raw) for raw in (4, 4.0, " 4 ")] == [4] * 3
    for raw in (True, 0, 4.5, "", None, [4], float("nan"), "9" * 5000):
        with pytest.raises(RoundError, match="choose from 1, 2, 3, 4, 5"):
            RATING.read(raw)
    assert LABEL.read("keep") == "keep"
    for raw in ("KEEP", None, ["keep"]):
        with pytest.raises(RoundError, match="choose from keep, drop"):
            LABEL.read(raw)
    assert SEVERAL.read(["privacy", "boundary", "privacy"]) == ("boundary", "privacy")
    assert SEVERAL.read("privacy") == ("privacy",)
    with pytest.raises(RoundError, match="is not valid for violations"):
        SEVERAL.read(["privacy", "rude"])
    # Adjudications ask for a label or a rating.
    assert questions_for("adjudication", [(), ()])[0].name == "rating"
    question = questions_for("adjudication", [("keep", "drop"), ("drop", "none")])[0]
    assert (question.name, question.labels) == ("label", ("drop", "keep", "none"))
    for mixed in ([("keep", "drop"), ()], [("keep",), ("keep", "drop")]):
        with pytest.raises(RoundError, match="open two rounds"):
            questions_for("adjudication", mixed)
    # Other kinds ignore the labels of items.
    assert questions_for("crowd", [("keep", "drop")]) == QUESTIONS["crowd"]


def test_options_override_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "round.toml"
    text = 'overlap = 5\nseed = 3\nannotators = "people.csv"\n[adaptive]\non = true\n[care]\nsession_items = 10\n'
    path.write_text(text)
    spec = make_spec("crowd", "mini@1", {"overlap": 7}, path)
    assert (spec.overlap, spec.seed, spec.adaptive.on, spec.care.session_items) == (7, 3, True, 10)
    assert spec.annotators == str(tmp_path / "people.csv")
    assert RoundSpec.from_dict(spec.to_dict(), "x") == spec
    for text, message in (
        ("over_lap = 3", "over_lap: no such field; did you mean 'overlap'"),
        ("[care]\ncrisis_share = 1.5", "care.crisis_share: must be 1 or less"),
        ("overlap = 2\n[adaptive]\non = true", "adaptive.minimum is 3, above the overlap of 2"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            make_spec("crowd", "mini@1", {}, path)


@pytest.mark.parametrize(
    ("field", "suggested"), [("turns", "prompt"), ("promt", "prompt"), ("respons", "response")]
)
def test_a_misspelt_field_of_an_item_is_not_suggested_itself(field: str, suggested: str) -> None:
    """For the record's own name of a field: "turns: no such field; did you mean 'turns'?"."""
    raw = {"id": "a", "language": "en", "prompt": "Hello", field: "Hello"}
    with pytest.raises(DataError, match=f"{field}: no such field; did you mean '{suggested}'"):
        Item.from_dict(raw)


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
def test_files_that_do_not_fit_are_named(
    tmp_path: Path, file: str, edited: str | None, message: str
) -> None:
    """They caused tracebacks, or were used."""
    path = answered(tmp_path)
    text = (
        (path / file).read_text().splitlines(keepends=True)[0] if edited is FIRST_LINE else edited
    )
    if text is None:
        (path / file).unlink()
    else:
        (path / file).write_text(text)
    before = files_of(path)
    for call in CALLS:
        with pytest.raises(DataError, match=message):
            call(path)
    assert files_of(path) == before


@pytest.mark.parametrize(("changed", "message"), table("rounds", "invalid_annotations"))
def test_invalid_annotations_are_named(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    """Annotations of other annotators, and a rating of 99, were counted."""
    path = answered(tmp_path)
    lines = (path / "annotations.jsonl").read_text().splitlines()
    added = next(json.loads(line) for line in lines if '"question":"keep"' in line) | changed
    (path / "annotations.jsonl").write_text("\n".join([*lines, json.dumps(added), ""]))
    with pytest.raises(DataError, match=rf"annotations.jsonl:{len(lines) + 1}: .*{message}"):
        close_round(path)


def test_a_broken_round_does_not_affect_the_list_and_copies_without_names_can_be_read(
    tmp_path: Path,
) -> None:
    """An event without a name ended `round list` in a traceback; under a new salt nobody was known."""
    for name in ("a", "b", "c"):
        begin(tmp_path / name, count=2)
    (tmp_path / "b" / "round" / "events.jsonl").write_text("{}\n")
    found = list(list_rounds(tmp_path))
    assert [one.state for one in found] == ["open", "cannot be read", "open"]
    assert "events.jsonl:1" in found[1].notes[0]
    # An open round needs the names.
    path = answered(tmp_path / "named")
    shutil.copytree(path, tmp_path / "copies" / "round")
    shutil.rmtree(path / "private")
    for call in CALLS:
        with pytest.raises(
            DataError, match=r"annotators.jsonl: the file is missing.*restore the round's folder"
        ):
            call(path)
    with pytest.raises(DataError, match="salt: no annotator can be identified"):
        RoundFolder(path).salt()
    copy = tmp_path / "copies" / "round"
    close_round(copy)
    shutil.rmtree(copy / "private")
    assert [one.state for one in list_rounds(tmp_path / "copies")] == ["closed"]
    assert round_status(copy).completed == 4


CROWD = {"subtask": "Everyday reply", "keep": "Keep", "quality": "4: good", "harmful": "No"}


def lines(table: Table) -> list[list[str]]:
    """The printed lines of a table, split at white space."""
    return [line.split() for line in table.to_terminal().splitlines()]


def test_progress_by_language_and_annotator(tmp_path: Path) -> None:
    items = [item(n) for n in range(3)] + [item(n, "zh") for n in range(2)]
    round = opened(
        tmp_path, "crowd", items, annotators="anna,en;bert,en zh", overlap=1, name="mixed"
    )
    (bert,) = (
        one
        for one in round_status(round.path).progress
        if (one.annotator, one.language) == ("bert", "zh")
    )
    assert bert == ProgressRow("bert", "zh", items=2, done=0, open=2, started=0, skipped=0)
    round = opened(tmp_path, "crowd", items[:3], annotators="anna,en;bert,en")
    fill(workbook_path(round, "bert"), {1: CROWD, 2: {"keep": "Keep"}, 3: {"skip": "yes"}})
    status = round_status(round.path)
    assert lines(progress_table(status)) == [
        ["annotator", "language", "items", "done", "open", "started", "skipped"],
        ["all", "en", "3", "0", "3", "1", "1"],
        ["anna", "en", "3", "0", "3", "0", "0"],
        ["bert", "en", "3", "1", "1", "1", "1"],
    ]
    assert list(status_lines(status)) == [
        "round: crowd round on spreadsheets, open",
        "items: 0 of 3 done",
        "assignments: 1 of 5 completed, 1 skipped; 5 new annotations collected",
        "1 item cannot reach the overlap: no further eligible annotator is left",
    ]
    # A list does not ask the platform, so it does not know of partly filled rows.
    listed = next(one for one in list_rounds(tmp_path) if one.name == str(round.path))
    assert not any(row.started for row in listed.progress)
    assert "started" not in lines(progress_table(listed))[0]
    assert lines(rounds_table([listed]))[1][1:] == [
        "crowd",
        "spreadsheets",
        "open",
        "3",
        "0",
        "1",
        "of",
        "5",
    ]


@pytest.mark.parametrize("pilot", [False, True])
def test_items_that_nobody_is_left_to_answer_are_not_called_done(
    tmp_path: Path, pilot: bool
) -> None:
    """When the only reader of a language was removed, all items of the language were said to be done, unanswered."""
    items = [item(n) for n in range(3)] + [item(n, "zh") for n in range(2)]
    options: dict[str, Any] = {"overlap": 1}
    if pilot:
        items = [{**one, "gold": {"keep": "keep"}} for one in items]
        options = {"overlap": 0}
    round = opened(tmp_path, "crowd", items, annotators="anna,en;bert,zh", name="mixed", **options)
    remove_annotator(round.path, "anna", why="left")
    status = round_status(round.path)
    assert (status.items_done, len(status.short), status.unanswered, status.missing.keys()) == (
        *(0, 3, 3),
        {"zh-item-0", "zh-item-1"},
    )
    assert lines(progress_table(status)) == [
        ["annotator", "language", "items", "done", "open", "below", "overlap", "skipped"],
        ["all", "en", "3", "0", "0", "3", "0"],
        ["all", "zh", "2", "0", "2", "0", "0"],
        ["bert", "zh", "2", "0", "2", "-", "0"],
    ]
    shown = list(status_lines(status))
    assert shown[1] == "items: 0 of 5 done"
    assert (
        shown[-1]
        == "3 items have no complete answer, and no eligible annotator is left to give one"
    )
    assert (
        "3 items cannot reach the overlap: no further eligible annotator is left" in shown
    ) is not pilot
    each = list(item_lines(status))
    left = "nobody is left to answer it" if pilot else "1 that nobody is left to give"
    assert f"en-item-0: 0 completed, {left}" in each
    assert "zh-item-0: 0 completed, 1 missing" in each
    assert len(each) == 5
    printed = h2htalk_here("round", "status", round.path, "--items").stdout
    assert f"en-item-0: 0 completed, {left}" in printed
    listed = next(one for one in list_rounds(tmp_path) if one.name == str(round.path))
    rounds = rounds_table([listed])
    assert list(rounds.header[-4:]) == ["items", "done", "below overlap", "assignments"]
    assert list(rounds.rows[0][-4:]) == [5, 0, 3, "0 of 2"]
    # Answers that were given count, although one more cannot be had.
    more = opened(tmp_path, "crowd", items[:1], annotators="anna,en;bert,en", name="two", overlap=2)
    fill(workbook_path(more, "bert"), {1: CROWD})
    round_status(more.path)
    remove_annotator(more.path, "anna", why="left")
    status = round_status(more.path)
    assert (status.items_done, len(status.short), status.unanswered) == (0, 1, 0)
    assert "en-item-0: 1 completed, 1 that nobody is left to give" in list(item_lines(status))


def test_mistakes_and_decisions_are_listed(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", count=10, people=2, overlap=2)
    answer(path, lambda *_: crowd("perhaps"))
    assert len(h2htalk_here("round", "status", path).stderr.splitlines()) == 2
    done = h2htalk_here("round", "status", path, "--mistakes")
    assert done.returncode == 2
    assert (
        done.stderr.count("'perhaps' is not a valid answer") == len(done.stderr.splitlines()) == 20
    )
    # A round shows its items and their decisions.
    path = begin(tmp_path / "shown", count=2)
    assert "no decision yet" in "\n".join(show(str(path)))
    answer(path, split("keep"))
    close_round(path)
    text = "\n".join(show(str(path)))
    assert "keep: keep (majority, 3 of 3)" in text
    assert "2 of 2 records" in text
