"""What other tools made is read strictly: foreign ids, doubles and broken lines are named, never skipped."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.imports.response_files import AUTHORS_FILES, import_authors, read_foreign_responses
from h2htalk.data.responses import FailedResponse, Failure, Response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

IDS = [f"s-{number}" for number in range(12)]


def write(folder: Path, *records: dict[str, Any]) -> Path:
    write_jsonl(folder / "answers.jsonl", records)
    return folder / "answers.jsonl"


def test_a_response_key_or_a_text_key_both_do(tmp_path: Path) -> None:
    """Null fields, and fields that are not scored, are no hindrance, whatever their kind."""
    path = write(
        tmp_path,
        {"id": "s-0", "response": "Hi.", "usage": {"prompt": "12"}, "finish_reason": None, "failure": None},
        {"id": "s-1", "text": "Hello.", "finish_reason": 3, "seconds": "fast", "at": 1.8e12},
        {"id": "s-2", "response": "", "sample": 0, "model": "ours", "thinking": {"a": 1}},
        {"id": "s-3", "failure": {"reason": "timeout", "message": "x"}},
        {"id": "s-4", "response": "cut", "text": None, "finish_reason": "length"},
    )
    assert read_foreign_responses(path, IDS) == [
        Response("s-0", 0, "Hi."),
        Response("s-1", 0, "Hello."),
        Response("s-2", 0, ""),
        FailedResponse("s-3", 0, Failure("timeout", "x")),
        Response("s-4", 0, "cut", "length"),
    ]


def test_a_call_store_is_read_and_a_reply_wins_over_the_failure_before_it(tmp_path: Path) -> None:
    reserved = {"stage": "generate", "asked": "openai:m", "worst": "1"}
    reply = {"call": 1, "stage": "generate", "id": "s-0", "text": "Hi.", "more": [{"sample": 1, "text": "Ho."}]}
    path = write(
        tmp_path,
        {"job": "ab", "event": "planned", "stage": "generate", "asked": "openai:m", "when": 0.0},
        {"reserved": 1, "id": "s-0", "samples": [0, 1], **reserved},
        {"id": "s-0", "sample": 0, "failure": {"reason": "timeout", "message": "x"}, "stage": "generate"},
        reply,
        {"reserved": 2, "id": "s-1", "samples": [0], **reserved},
        {"call": 2, "id": "s-1", "cost": "possible", "reason": "timeout"},
    )
    assert read_foreign_responses(path, IDS) == [Response("s-0", 0, "Hi."), Response("s-0", 1, "Ho.")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([("s-0", 2_000_000_000)], ":1: s-0 lacks sample 0; give every answered item the samples 0 to 0"),
        ([("s-0", 1), ("s-0", 0), ("s-1", 0)], ":3: s-1 lacks sample 1; give every answered item the samples 0 to 1"),
        ([("s-1", 1), ("s-0", 0), ("s-0", 1), ("s-1", 0)], ""),
    ],
)
def test_every_answered_item_has_the_same_samples_from_0(
    tmp_path: Path, lines: list[tuple[str, int]], message: str
) -> None:
    """A sample of 2,000,000,000 was taken for as many samples an item, and the import never ended."""
    path = write(tmp_path, *({"id": item, "sample": sample, "response": "x"} for item, sample in lines))
    with pytest.raises(DataError, match=message) if message else nullcontext():
        assert {(one.id, one.sample) for one in read_foreign_responses(path, IDS)} == set(lines)


def test_foreign_ids_are_counted_and_the_first_five_named_with_their_lines(tmp_path: Path) -> None:
    """A Cyrillic letter was printed as it was: `s-a is not in the split`, of a split with `s-a`."""
    foreign = [{"id": f"{other}-{number}", "response": "x"} for number in range(3) for other in ("other", "s-\u0430")]
    with pytest.raises(DataError) as raised:
        read_foreign_responses(write(tmp_path, {"id": "s-0", "response": "Hi."}, *foreign), IDS)
    assert str(raised.value) == (
        f"{tmp_path / 'answers.jsonl'}: 6 ids are not in the split: id (line) 'other-0' (2), 's-\\u0430-0' (3), "
        "'other-1' (4), 's-\\u0430-1' (5), 'other-2' (6) and 1 more; name the split these responses answer"
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "s-0", "response": "again"}, ":2: a second response to s-0, sample 0"),
        ({"id": "s-1", "response": None}, ":2: response must be text, not NoneType"),
        ({"id": "s-1"}, ":2: s-1: text: is missing"),
        ({"id": "s-1", "response": "x", "failure": {"reason": "timeout"}}, ":2: holds a response and a failure"),
        # One of the two was scored, and nobody was told which.
        ({"id": "s-1", "response": "x", "text": "y"}, ":2: holds a response and a text; keep one of them"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match="holds no response"):
        read_foreign_responses(write(tmp_path), IDS)
    with pytest.raises(DataError) as raised:
        read_foreign_responses(write(tmp_path, {"id": "s-0", "response": "Hi."}, record), IDS)
    assert str(raised.value).startswith(f"{tmp_path / 'answers.jsonl'}{message}")


# --- The authors' released files --------------------------------------------------------------------------------


def release(folder: Path, **sizes: int) -> Path:
    """The eleven files as they were released, each line saying in which file it lies."""
    for name, subtask in AUTHORS_FILES.items():
        size = sizes.get(name, SUBTASKS[subtask].count)
        write_jsonl(folder / f"{name}.jsonl", ({"response": f"{name} {row}"} for row in range(size)))
    return folder


def test_every_file_is_read_as_its_true_subtask_and_written_with_ids(tmp_path: Path) -> None:
    """Two files lie under each other's names."""
    path, number, missing = import_authors(release(tmp_path / "in"), tmp_path / "out")
    rows = [row for _, row in read_jsonl(path)]
    assert number == len(rows) == len({row["id"] for row in rows}) == 4650
    assert Counter(row["subtask"] for row in rows) == {s.name: s.count for s in SUBTASKS.values()}
    assert len(missing) == 1
    found = {row["id"]: row for row in rows}
    name = "authors-dialogue_schedule-0001"
    expected = {"subtask": "dialogue_schedule", "language": "zh", "reference": "itinerary_initialize 0"}
    assert found[name] == {"id": name, **expected}
    assert found["authors-itinerary_initialization-0001"]["reference"] == "dialogue_schedule 0"
    with pytest.raises(DataError, match=r"references\.jsonl: is there already; name a new folder"):
        import_authors(tmp_path / "in", tmp_path / "out")  # it was written over


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Sizes as released: 41 of 102 rows in one file; another file taken away."""
    release(tmp_path, recollection_initialize=41)
    (tmp_path / "dialogue_emotion.jsonl").unlink()
    path, _, missing = import_authors(tmp_path, tmp_path / "out")
    assert "dialogue_emotion" not in path.read_text()
    assert missing == [
        "DialogueEmotion: no file dialogue_emotion.jsonl",
        "RecollectionInitialization: 41 references of Table 1's 102 (recollection_initialize.jsonl)",
        "every subtask: the inputs (persona, history, memories, schedules) and ids were never released",
    ]


def test_wrong_files_of_theirs_are_named(tmp_path: Path) -> None:
    def refused(message: str, folder: Path = tmp_path) -> None:
        with pytest.raises(DataError, match=message):
            import_authors(folder, tmp_path / "out")

    refused(r"none of the authors' files is there, such as dialogue_base\.jsonl", tmp_path / "nowhere")
    (tmp_path / "itinerary_basic.jsonl").write_text('{"response": "x"}\n{"response": 3}\n')
    refused(r"itinerary_basic\.jsonl:2: needs a response that is text")
    (tmp_path / "itinerary_basic.txt").write_text('{"response": "x"}\n')
    refused(r"both itinerary_basic\.jsonl and itinerary_basic\.txt; keep one")
