"""A log loses nothing that was appended: not to a kill at any byte, a full disk or a second writer."""

from __future__ import annotations

import random
import signal
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


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_records_are_there_as_soon_as_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "made" / "part-0.jsonl"
    with AppendLog(path) as log:
        for number in range(3):
            log.append({"n": number})
            assert stored(path)[-1] == {"n": number}
    with AppendLog(path) as log:
        log.append({"n": 3})
    assert [record["n"] for record in stored(path)] == [0, 1, 2, 3]


@settings(deadline=None, max_examples=25)
@given(texts=st.lists(TEXT, min_size=1, max_size=4))
def test_a_kill_at_any_byte_costs_the_line_being_written_and_no_other(texts: list[str]) -> None:
    lines = [json_line({"text": text}).encode() for text in texts]
    content = b"".join(lines)
    ends = list(accumulate(map(len, lines)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part-0.jsonl"
        for offset in range(len(content) + 1):
            path.write_bytes(content[:offset])
            whole = sum(offset >= end - 1 for end in ends)  # a line that lacks its line end alone is whole
            seen: list[str] = []
            with AppendLog(path, lambda record, where, seen=seen: seen.append(record["text"])) as log:  # type: ignore[misc]
                assert seen == texts[:whole]
                log.append({"text": "new"})
            assert [record["text"] for record in stored(path)] == [*texts[:whole], "new"]


def test_records_that_belong_together_are_one_write(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    with AppendLog(path) as log:
        log.append(*({"n": number} for number in range(3)))
        log.append()
        with pytest.raises(DataError, match="holds NaN or infinity"):
            log.append({"n": 3}, {"n": float("nan")})
    assert stored(path) == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize("tail", ['{"n":1}', '{"n":1} \r', '{"text":"你好"}'])
def test_a_whole_last_line_without_its_line_end_is_kept(tmp_path: Path, tail: str) -> None:
    """An editor that leaves out the last line end cost a finished answer."""
    path = tmp_path / "part-0.jsonl"
    path.write_text('{"n":0}\n' + tail, encoding="utf-8", newline="")
    seen: list[dict[str, Any]] = []
    with AppendLog(path, lambda record, where: seen.append(record)) as log:
        log.append({"n": 2})
    assert [record for _, record in read_jsonl(path)] == [*seen, {"n": 2}]
    assert len(seen) == 2


APPENDER = """
import sys
from pathlib import Path
from h2htalk.data.files import AppendLog
seen = []
with AppendLog(Path(sys.argv[1]), lambda record, where: seen.append(record)) as log:
    print("open", flush=True)
    number = len(seen)
    while True:
        log.append({"n": number, "text": "你好 " * (number % 400)})
        print(number, flush=True)
        number += 1
"""


def test_kill_9_at_random_moments_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    moments = random.Random(3)
    finished = -1
    for _ in range(6):
        child = run_python(APPENDER, path)
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        timer = threading.Timer(moments.uniform(0.001, 0.06), child.send_signal, [signal.SIGKILL])
        timer.start()
        # What the child said it had stored before it died; its last line may be torn.
        said = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        timer.join()
        assert child.wait() == -signal.SIGKILL
        child.communicate()
        finished = max([finished, *map(int, said)])
        with AppendLog(path):
            numbers = [record["n"] for record in stored(path)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) - 1 - finished in (0, 1)
    assert finished > 10


@pytest.mark.parametrize("line", ["nonsense\n", "[1]"])
def test_a_whole_line_that_is_no_record_is_an_error_and_gives_the_lock_back(tmp_path: Path, line: str) -> None:
    path = tmp_path / "part-0.jsonl"
    path.write_text('{"n":0}\n' + line)
    for _ in range(2):
        with pytest.raises(DataError, match=r"part-0\.jsonl:2: "):
            AppendLog(path)
    assert path.read_text() == '{"n":0}\n' + line


# --- A second writer --------------------------------------------------------------------------------------------

REFUSED = "another process is writing it; wait for it, or choose another --out"


def test_a_second_process_is_refused_with_one_line_until_the_first_is_done(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    holder = run_python(
        "import sys; from pathlib import Path; from h2htalk.data.files import AppendLog\n"
        "with AppendLog(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()",
        path,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        start = time.monotonic()
        with pytest.raises(DataError) as raised:
            AppendLog(path)
        assert str(raised.value) == f"{path}: {REFUSED}"
        assert time.monotonic() - start < 2
    finally:
        holder.kill()
        holder.communicate()
    AppendLog(path).close()


def test_the_lock_alone_keeps_writers_out_and_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    content = b'{"n":0}\nnonsense\n{"torn'
    path.write_bytes(content)
    with writer_lock(path), pytest.raises(DataError, match=r"wait for the other one$"):
        writer_lock(path, "wait for the other one").__enter__()
    with writer_lock(path):
        for take in (lambda: AppendLog(path), lambda: writer_lock(path).__enter__()):
            with pytest.raises(DataError) as raised:
                take()
            assert str(raised.value) == f"{path}: {REFUSED}"
    with writer_lock(path):
        pass
    assert path.read_bytes() == content


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
from h2htalk.data.files import read_jsonl
from h2htalk.data.files import AppendLog
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
print(stored)
"""


def test_a_file_size_limit_leaves_the_file_at_its_last_whole_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path / "part-0.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3
