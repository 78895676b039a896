"""A log loses nothing that was appended: not to a kill at any byte, a full disk or a second writer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data.files import AppendLog, json_line, read_jsonl, writer_lock
from h2htalk.errors import DataError

TEXT = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=12)


def stored(path: Path) -> list[dict[str, Any]]:
    return [record for _, record in read_jsonl(path)]


def test_records_are_there_as_soon_as_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "made" / "part-0.jsonl"
    with AppendLog(path) as log:
        log.append({"n": 0})
        assert stored(path) == [{"n": 0}]
    with AppendLog(path) as log:
        log.append({"n": 1}, {"n": 2})
        log.append()
        with pytest.raises(DataError, match="holds NaN or infinity"):
            log.append({"n": 3}, {"n": float("nan")})
    assert stored(path) == [{"n": 0}, {"n": 1}, {"n": 2}]


@settings(deadline=None, max_examples=25)
@given(texts=st.lists(TEXT, min_size=1, max_size=4), end=st.sampled_from(["", " \r"]))
def test_a_kill_at_any_byte_costs_the_line_being_written_and_no_other(texts: list[str], end: str) -> None:
    """An editor that leaves out the last line end costs nothing."""
    lines = [json_line({"text": text}).replace("\n", f"{end}\n").encode() for text in texts]
    content = b"".join(lines)
    ends = list(accumulate(map(len, lines)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part-0.jsonl"
        for offset in range(len(content) + 1):
            path.write_bytes(content[:offset])
            whole = sum(offset >= last - 1 - len(end) for last in ends)  # its line end alone may be missing
            seen: list[str] = []
            with AppendLog(path, lambda record, where, seen=seen: seen.append(record["text"])) as log:  # type: ignore[misc]
                assert seen == texts[:whole]
                log.append({"text": "new"})
            assert [record["text"] for record in stored(path)] == [*texts[:whole], "new"]


@pytest.mark.parametrize("line", ["nonsense\n", "[1]"])
def test_a_whole_line_that_is_no_record_is_an_error_and_gives_the_lock_back(tmp_path: Path, line: str) -> None:
    path = tmp_path / "part-0.jsonl"
    path.write_text('{"n":0}\n' + line)
    for _ in range(2):
        with pytest.raises(DataError, match=r"part-0\.jsonl:2: "):
            AppendLog(path)
    assert path.read_text() == '{"n":0}\n' + line


# --- A second writer --------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from h2htalk.data.files import AppendLog
with AppendLog(Path(sys.argv[1])):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_with_one_line_until_the_first_is_done(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    command = [sys.executable, "-c", HOLD, str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        start = time.monotonic()
        with pytest.raises(DataError) as raised:
            AppendLog(path)
        assert str(raised.value) == f"{path}: another process is writing it; wait for it, or choose another --out"
        with pytest.raises(DataError, match=r"is writing it; wait for the other one$"):
            writer_lock(path, "wait for the other one").__enter__()
        assert time.monotonic() - start < 2
    finally:
        holder.kill()
        holder.communicate()
    AppendLog(path).close()


def test_another_thread_may_close_the_log_twice(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "part-0.jsonl")
    for _ in range(2):
        thread = threading.Thread(target=log.close)
        thread.start()
        thread.join()
    AppendLog(log.path).close()


# --- A full disk ------------------------------------------------------------------------------------------------

FILL = """
import resource, sys
from pathlib import Path
from h2htalk.data.files import AppendLog, read_jsonl
from h2htalk.errors import DataError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
stored = 0
with AppendLog(Path(sys.argv[1])) as log:
    try:
        while True:
            log.append({"n": stored, "text": "你" * 1500}, {"n": stored + 1, "text": "你" * 1500})
            stored += 2
    except DataError as error:
        assert "the disk is full; what was stored is kept: free space" in str(error), error
    assert [record["n"] for _, record in read_jsonl(log.path)] == list(range(stored))
    assert log.path.read_bytes().endswith(b"}\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    log.append({"n": "small"})
assert stored > 3
"""


def test_a_file_size_limit_leaves_the_file_at_its_last_whole_line(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FILL, str(tmp_path / "part-0.jsonl")], check=True)
