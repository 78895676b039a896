"""Answers are pulled incrementally: what has not changed is not read again, and nothing is missed by that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, named, opened

from h2htalk.data.files import json_line, read_jsonl
from h2htalk.rounds.argilla.platform import SEEN, ArgillaPlatform
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.reopening import reopen_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import status

CHINESE = DATASET.replace("en", "zh")
ANSWER = {"subtask": "dialogue_base", "keep": "keep", "quality": 4}


@pytest.fixture
def round(server: ArgillaDouble, tmp_path: Path) -> RoundFolder:
    made = opened(tmp_path)
    ArgillaPlatform().collect(made)
    server.read.clear()
    return made


def test_a_dataset_in_which_nothing_happened_is_not_read_again(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **ANSWER)
    assert status(round.path).new == 3
    assert set(server.read) == {DATASET}
    server.read.clear()
    assert status(round.path).new == 0
    assert server.read == []


def test_what_was_seen_before_is_still_told(server: ArgillaDouble, round: RoundFolder) -> None:
    server.respond(DATASET, named(round, "a"), "ann", subtask="dialogue_base", keep="perhaps", quality=4)
    server.respond(DATASET, named(round, "a"), "ben", "draft", subtask="dialogue_base")
    server.respond(DATASET, named(round, "b"), "argilla", **ANSWER)
    first = ArgillaPlatform().collect(round)
    server.read.clear()
    again = ArgillaPlatform().collect(round)
    assert server.read == []
    assert again == first
    assert len(again.mistakes) == 1
    assert again.started == {"ben": 1}
    assert any("who is no annotator of this round" in note for note in again.notes)


def test_a_changed_answer_and_one_taken_back_are_seen(server: ArgillaDouble, round: RoundFolder) -> None:
    server.respond(CHINESE, named(round, "d"), "cem", **ANSWER)
    status(round.path)
    server.respond(CHINESE, named(round, "d"), "cem", **{**ANSWER, "quality": 2})
    assert status(round.path).new == 1
    server.respond(CHINESE, named(round, "d"), "cem", "discarded")
    found = status(round.path)
    assert (found.answers, found.skipped) == (0, 1)


def test_a_record_that_was_deleted_leaves_no_stamp_and_is_missed_all_the_same(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    del server.dataset(DATASET)["records"][named(round, "a")]
    (told,) = status(round.path).notes
    assert f"{DATASET}: 1 of 3 items that want answers are not there, the first: 'a'" in told
    assert set(server.read) == {DATASET}


def test_closing_reads_everything_once_more(server: ArgillaDouble, round: RoundFolder) -> None:
    close_round(round.path, force=True)
    assert set(server.read) == {DATASET, CHINESE}


def test_what_is_put_out_again_is_read_again(server: ArgillaDouble, round: RoundFolder) -> None:
    open_round(round.spec(), round.path)
    server.read.clear()
    status(round.path)
    assert set(server.read) == {DATASET, CHINESE}


def test_a_broken_or_edited_file_of_looks_costs_a_reading_and_nothing_else(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **ANSWER)
    assert status(round.path).new == 3
    path = round.private / SEEN
    edits: tuple[dict[str, Any], ...] = (
        {"offered": None}, {"responses": [{}]}, {"total": None}, {"offered": {"a": "x"}}, {"stamp": 3},
    )  # fmt: skip
    edited = ["".join(json_line(record | one) for _, record in read_jsonl(path)) for one in edits]
    for text in ("", "{", "[]\n", '{"dataset": 1}\n', '{"dataset": "x", "responses": [3]}\n', *edited):
        path.write_text(text)
        server.read.clear()
        found = status(round.path)
        assert (found.new, found.notes, set(server.read)) == (0, (), {DATASET, CHINESE}), text


def test_without_a_stamp_of_activity_everything_is_read(server: ArgillaDouble, round: RoundFolder) -> None:
    for dataset in server.datasets.values():
        dataset["last_activity_at"] = None
    server.read.clear()
    status(round.path)
    status(round.path)
    assert server.read.count(DATASET) == 2


def test_a_assignment_set_that_was_not_put_out_is_put_out_by_the_same_command(
    server: ArgillaDouble, round: RoundFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of the first assignment set were taken for the second's: a third was written, and the second never put
    out.
    """
    server.respond(DATASET, named(round, "a"), "ann", **ANSWER)
    server.respond(DATASET, named(round, "a"), "cem", **{**ANSWER, "keep": "drop"})
    with monkeypatch.context() as patch:
        patch.setattr(ArgillaPlatform, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            reopen_round(round.path)
    assert len(round.assignment_sets()) == 2
    assert any("w2-en-01 is not there" in note for note in status(round.path).notes)
    reopen_round(round.path)
    assert len(round.assignment_sets()) == 2
    assert {one["name"] for one in server.datasets.values()} == {
        DATASET,
        CHINESE,
        DATASET.replace("w1", "w2"),
    }
    assert not status(round.path).notes


def killed(*_: Any) -> None:
    raise KeyboardInterrupt
