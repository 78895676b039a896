"""The journal of batch jobs: what it holds, what it refuses, what a kill leaves of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.batch.job_journal import BatchFolder, BatchJournal, BatchRecord
from h2htalk.data.responses import SampleKey
from h2htalk.errors import DataError

CALLS: list[tuple[SampleKey, ...]] = [(("a", 0), ("a", 1)), (("b", 0),)]
WHEN = 1_800_000_000.25
MARK = "0123456789ab"
PLANNED = {
    "event": "submitting",
    "batch": MARK,
    "group": MARK,
    "model": "openai:gpt-test",
    "when": "2027-01-15T08:00:00+00:00",
    "calls": [[["a", 0]]],
}


def write(folder: Path, *lines: dict[str, Any] | str) -> BatchFolder:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / "jobs.jsonl").write_text(text)
    return BatchFolder(folder)


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "batches")
    assert folder.records() == []
    with BatchJournal(folder) as journal:
        first, second = journal.plan("openai:gpt-test", [CALLS, CALLS[:1]], WHEN)
        assert first.calls == tuple(CALLS)
        assert (first.group, second.group) == (first.batch, first.batch)
        assert first.batch != second.batch
        journal.note(first, "uploaded", file="file-1")
        journal.note(first, "sending", WHEN + 1, after="msgbatch_7", worst_usd=Decimal("1E-7"))
        submitted = journal.note(first, "submitted", job="batch_1")
    assert submitted.state == "submitted"
    assert (submitted.job, submitted.file, submitted.after) == ("batch_1", "file-1", "msgbatch_7")
    assert submitted.when == WHEN + 1
    assert folder.records() == [submitted, second]
    assert folder.open_jobs() == [submitted]
    assert '"worst_usd":"0.0000001"' in folder.journal.read_text()


def test_looking_at_a_folder_makes_nothing(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "batches")
    assert folder.open_jobs() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("custom_id", "number"),
    [
        (f"{MARK}-0", 0),
        (f"{MARK}-1", 1),
        (f"{MARK}-2", None),
        (f"{MARK}-01", None),
        (f"{MARK}--1", None),
        (f"{MARK}-¹", None),
        (f"{MARK}-{'1' * 5000}", None),
        (f"{MARK}-", None),
        (MARK, None),
        ("", None),
        ("ba9876543210-0", None),
    ],
)
def test_only_our_own_names_are_ours(custom_id: str, number: int | None) -> None:
    record = BatchRecord(MARK, MARK, "openai:gpt-test", tuple(CALLS), WHEN)
    assert record.number(custom_id) == number
    assert record.custom_id(1) == f"{MARK}-1"


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_last_line_is_as_if_it_was_never_written(cut: int, tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    with BatchJournal(folder) as journal:
        [record] = journal.plan("openai:gpt-test", [CALLS], WHEN)
        before = folder.records()
        journal.note(record, "sending", WHEN)
    whole = folder.journal.read_bytes()
    folder.journal.write_bytes(whole[: -cut - 1])
    assert folder.records() == before
    with BatchJournal(folder) as journal:
        assert journal.open_records() == before
        journal.note(record, "submitted", job="batch_1")
    assert [r.job for r in folder.open_jobs()] == ["batch_1"]


def test_one_process_writes_a_journal(tmp_path: Path) -> None:
    with (
        BatchJournal(BatchFolder(tmp_path)),
        pytest.raises(DataError, match="another process"),
        BatchJournal(BatchFolder(tmp_path)),
    ):
        pass


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "broken JSON"),
        ({"event": "submitted", "batch": "ffffffffffff", "job": "x"}, "never planned"),
        ({"event": "submitted", "batch": MARK}, "job is missing"),
        ({"event": "submitted", "batch": MARK, "job": 7}, "7 is no text"),
        ({"event": "submitted", "batch": MARK, "job": ""}, "is no text"),
        ({"event": "uploaded", "batch": MARK}, "file is missing"),
        ({"event": "sending", "batch": MARK}, "when is missing"),
        ({"event": "sending", "batch": MARK, "when": "yesterday"}, "yesterday"),
        ({"event": "vanished", "batch": MARK}, "vanished"),
        ({"batch": MARK}, "event is"),
        ({"event": "ended"}, "batch is None"),
        ({"event": "ended", "batch": "../../etc"}, "batch is"),
        (PLANNED, "is planned twice"),
        (PLANNED | {"batch": "a" * 12, "calls": []}, "one call or more"),
        (PLANNED | {"batch": "a" * 12, "calls": [[]]}, "one call or more"),
        (PLANNED | {"batch": "a" * 12, "calls": [[["a", -1]]]}, "no whole number"),
        (PLANNED | {"batch": "a" * 12, "calls": [[["a", True]]]}, "no whole number"),
        (PLANNED | {"batch": "a" * 12, "calls": [[[7, 0]]]}, "7 is no text"),
        (PLANNED | {"batch": "a" * 12, "calls": 7}, "not iterable"),
        ({k: v for k, v in PLANNED.items() if k != "model"} | {"batch": "a" * 12}, "model is missing"),
    ],
)
def test_a_damaged_line_is_named(line: dict[str, Any] | str, said: str, tmp_path: Path) -> None:
    folder = write(tmp_path, PLANNED, line)
    with pytest.raises(DataError, match=r"jobs\.jsonl:2") as caught:
        folder.records()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
