"""Files, logs and links: what is broken is named by file and line; what is written appears whole and is never lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.data import files
from h2htalk.data.files import (
    AppendLog,
    json_line,
    read_jsonl,
    refuse_links,
    write_jsonl,
    write_text,
    writer_lock,
)
from h2htalk.data.links import Link, add_link, link_folder, read_links
from h2htalk.data.parquet import write_parquet
from h2htalk.errors import DataError

HALF = st.characters() | st.characters(categories=["Cs"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(path: Path, **options: bool) -> list[dict[str, Any]]:
    return [record for _, record in read_jsonl(path, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b'{"id":"a"}\n{"id":"b"}\n',
        b'{"id":"a"}\n{"id":"b"}',
        b'\xef\xbb\xbf{"id":"a"}\r\n{"id":"b"} ',
        b'\n\r\n  \n{"id":"a"}\n\n\t\n{"id":"b"}\n\n',
        b'\xef\xbb\xbf\n{"id":"a"}\n{"id":"b"}\n',
    ],
)
@pytest.mark.parametrize("torn_tail", [False, True])
def test_all_these_hold_the_same_two_records(
    tmp_path: Path, content: bytes, torn_tail: bool
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    assert read(path, torn_tail=torn_tail) == [{"id": "a"}, {"id": "b"}]
    # U+2028, U+0085 and form feed end a line for `str.splitlines`, not for JSONL.
    path.write_bytes(content.replace(b'"b"', '"a\u2028b\x85c"'.encode()))
    assert read(path, torn_tail=torn_tail)[1] == {"id": "a\u2028b\x85c"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "a"', "broken JSON"),
        (b'{"id": NaN}', "broken JSON: NaN is not JSON"),
        (b'{"id": 1' + b"0" * 5000 + b"}", "broken JSON"),
        (b'{"id":' * 100_000 + b"1" + b"}" * 100_000, "broken JSON"),
        (b'{"id": "caf\xe9"}', "not UTF-8 (byte 11)"),
        (b"[1, 2]", "must be a JSON object, not list"),
    ],
)
def test_line_17_is_named_when_it_is_broken(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "a"}\n' * 16 + line + b"\n")
    with pytest.raises(DataError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}:17: {message}")
    assert "\n" not in str(raised.value)


def test_an_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b" " * (1 << 20) + b"{}\n")
    with pytest.raises(DataError, match=r"x\.jsonl:1: line longer than 1 MiB"):
        read(path)


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "n" * 300])
def test_what_cannot_be_read_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / name)


def test_a_torn_last_line_is_left_out_only_where_a_writer_may_have_been_killed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": "b')
    assert read(path, torn_tail=True) == [{"id": "a"}]
    with pytest.raises(DataError, match=r"x\.jsonl:2: broken JSON"):
        read(path)


def test_a_key_that_stands_twice_is_refused_where_asked(tmp_path: Path) -> None:
    """A scenario with two references was read with the second one, silently."""
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"id": "a", "inputs": {"n": 1}}\n{"id": "b", "inputs": {"n": 1, "m": 2, "n": 3}}\n'
    )
    assert read(path)[1] == {"id": "b", "inputs": {"n": 3, "m": 2}}
    with pytest.raises(
        DataError, match=r"x\.jsonl:2: broken JSON: the key 'n' is repeated; keep one"
    ):
        read(path, unique_keys=True)


@given(record=st.dictionaries(st.text(HALF), JSON | st.text(HALF)))
def test_a_record_is_one_line_and_comes_back(record: dict[str, Any]) -> None:
    """A model cut in the middle of an emoji gives a lone surrogate; it must not cost the reply."""
    line = json_line(record)
    assert line.encode().count(b"\n") == 1
    assert json.loads(line) == record


def test_written_texts_stay_readable_and_half_a_character_is_escaped(tmp_path: Path) -> None:
    """It broke the page of a run in which a model had answered half an emoji."""
    assert "\\u4f60" not in json_line({"text": "你好"})
    write_text(tmp_path / "x.html", "<p>\ud83d</p>")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == "<p>\\ud83d</p>"


def test_a_file_that_its_writer_moves_meanwhile_is_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a run beside its writer ended in a traceback about a temporary file."""
    monkeypatch.setattr(os, "walk", lambda place: [(str(place), [], [".summary.json.7"])])
    refuse_links(tmp_path)


def breaking_records() -> Iterator[dict[str, Any]]:
    yield {"id": "a"}
    raise KeyboardInterrupt


WRITERS: dict[str, Callable[[Path, Any], object]] = {
    "jsonl": write_jsonl,
    "text": lambda path, records: write_text(path, map(str, records)),
    "parquet": write_parquet,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_interrupted_writer_leaves_the_old_file_alone(
    tmp_path: Path, write: Callable[[Path, Any], object]
) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(path, breaking_records())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("place", ["a file/x", "a folder"])
def test_an_unwritable_place_is_one_line(
    tmp_path: Path, write: Callable[[Path, Any], object], place: str
) -> None:
    (tmp_path / "a file").write_text("")
    (tmp_path / "a folder" / "in it").mkdir(parents=True)
    with pytest.raises(DataError, match=f"^{tmp_path / place}: cannot be written") as raised:
        write(tmp_path / place, [{"id": "a"}])
    assert "\n" not in str(raised.value)


def test_records_are_there_as_soon_as_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "made" / "part-0.jsonl"
    with AppendLog(path) as log:
        log.append({"n": 0})
        assert read(path) == [{"n": 0}]
    with AppendLog(path) as log:
        log.append({"n": 1}, {"n": 2})
        log.append()
        with pytest.raises(DataError, match="holds NaN or infinity"):
            log.append({"n": 3}, {"n": float("nan")})
    assert read(path) == [{"n": 0}, {"n": 1}, {"n": 2}]


@settings(deadline=None, max_examples=25)
@given(
    texts=st.lists(st.text(HALF, max_size=12), min_size=1, max_size=4),
    end=st.sampled_from(["", " \r"]),
)
def test_a_kill_at_any_byte_costs_the_line_being_written_and_no_other(
    texts: list[str], end: str
) -> None:
    """An editor that leaves out the last line end costs nothing."""
    lines = [json_line({"text": text}).replace("\n", f"{end}\n").encode() for text in texts]
    content = b"".join(lines)
    ends = list(accumulate(map(len, lines)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part-0.jsonl"
        for offset in range(len(content) + 1):
            path.write_bytes(content[:offset])
            whole = sum(
                offset >= last - 1 - len(end) for last in ends
            )  # its line end alone may be missing
            seen: list[str] = []
            with AppendLog(
                path, lambda record, where, seen=seen: seen.append(record["text"])
            ) as log:  # type: ignore[misc]
                assert seen == texts[:whole]
                log.append({"text": "new"})
            assert [record["text"] for record in read(path)] == [*texts[:whole], "new"]


@pytest.mark.parametrize("line", ["nonsense\n", "[1]"])
def test_a_whole_line_that_is_no_record_is_an_error_and_gives_the_lock_back(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "part-0.jsonl"
    path.write_text('{"n":0}\n' + line)
    for _ in range(2):
        with pytest.raises(DataError, match=r"part-0\.jsonl:2: "):
            AppendLog(path)
    assert path.read_text() == '{"n":0}\n' + line


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
        assert holder.stdout.readline() == "open\n"
        start = time.monotonic()
        with pytest.raises(DataError) as raised:
            AppendLog(path)
        assert (
            str(raised.value)
            == f"{path}: another process is writing it; wait for it, or choose another --out"
        )
        with pytest.raises(DataError, match=r"is writing it; wait for the other one$"):
            writer_lock(path, "wait for the other one").__enter__()
        assert time.monotonic() - start < 2
    finally:
        holder.kill()
        holder.communicate()
    AppendLog(path).close()


FILL = """
import resource, sys
from pathlib import Path
from h2htalk.data.files import AppendLog, read_jsonl, write_jsonl
from h2htalk.data.parquet import write_parquet
from h2htalk.errors import DataError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
stored = 0
with AppendLog(Path(sys.argv[1])) as log:
    try:
        while True:
            log.append({"n": stored, "text": "你" * 1500}, {"n": stored + 1, "text": "你" * 1500})
            stored += 2
    except DataError as error:
        print(error)
    assert [record["n"] for _, record in read_jsonl(log.path)] == list(range(stored))
    assert log.path.read_bytes().endswith(b"}\\n")
    for write in (write_jsonl, write_parquet):
        try:
            write(Path(sys.argv[2]), [{"id": f"{i ** 99:0250}"} for i in range(4000)])
        except DataError as error:
            print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    log.append({"n": "small"})
assert stored > 3
"""


def test_a_full_disk_leaves_a_log_at_its_last_whole_line_and_a_file_as_it_was(
    tmp_path: Path,
) -> None:
    """A file-size limit stands for the disk: the operating system refuses the write in the middle."""
    log = tmp_path / "part-0.jsonl"
    old = tmp_path / "old"
    old.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FILL, log, old], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("the disk is full; what was stored is kept: free space") == 3, (
        done.stdout
    )
    assert old.read_text() == "old"
    assert (
        {"old", "part-0.jsonl"} <= {*os.listdir(tmp_path)} <= {"old", "part-0.jsonl", "part-0.lock"}
    )


def test_links_are_kept_once_in_the_order_of_adding(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    assert read_links(folder) == ()
    for _ in range(2):
        add_link(folder, "round", tmp_path / "rounds" / "crowd")
        add_link(folder, "run", folder / "inside")
        add_link(folder, "hub", "hub:lab/set@v1.0")
    assert read_links(folder) == (
        Link("round", "../rounds/crowd", tmp_path / "rounds" / "crowd"),
        Link("run", "inside", folder / "inside"),
        Link("hub", "hub:lab/set@v1.0", None),
    )
    with ThreadPoolExecutor(20) as pool:  # runs that start together
        list(
            pool.map(
                lambda number: add_link(folder, "run", tmp_path / f"run-{number // 2}"), range(20)
            )
        )
    assert len(read_links(folder)) == 3 + 10


def test_a_target_is_found_through_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep" / "workspace").mkdir(parents=True)
    (tmp_path / "round").mkdir()
    (tmp_path / "shortcut").symlink_to(tmp_path / "disk" / "deep" / "workspace")
    add_link(tmp_path / "shortcut", "round", tmp_path / "round")
    for folder in ("shortcut", "disk/deep/workspace"):
        (link,) = read_links(tmp_path / folder)
        assert link.path == tmp_path / "round"
    with writer_lock(
        tmp_path / "disk" / "deep" / "workspace" / "links.jsonl"
    ):  # one that is there needs no right
        add_link(
            tmp_path / "disk" / "deep" / "workspace", "round", tmp_path / "round"
        )  # it would wait a minute
    assert len(read_links(tmp_path / "shortcut")) == 1
    (tmp_path / "disk").rename(tmp_path / "moved")
    assert read_links(tmp_path / "moved" / "deep" / "workspace")[0].target == "../../../round"


@pytest.mark.parametrize(
    ("kind", "target"),
    [("rounds", "a"), ("round", 1), (["round"], "a"), ("hub", "nonsense"), ("run", "hub:a/b@c")],
)
def test_a_line_that_is_no_link_is_named(tmp_path: Path, kind: object, target: object) -> None:
    add_link(tmp_path, "run", tmp_path / "run")
    with (tmp_path / "links.jsonl").open("a") as file:
        file.write(json.dumps({"kind": kind, "target": target}) + "\n")
    for call in (
        lambda: read_links(tmp_path),
        lambda: add_link(tmp_path, "run", tmp_path / "other"),
    ):
        with pytest.raises(DataError, match=r"links\.jsonl:2: a link must hold kind"):
            call()


def test_what_links_for_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    release = tmp_path / "release"
    for file in (
        workspace / "workspace.json",
        workspace / "review" / "stage.json",
        release / "release.json",
    ):
        write_text(file, "{}")
    assert link_folder(workspace) == link_folder(workspace / "review") == workspace
    assert link_folder(tmp_path) is link_folder(workspace / "missing") is None
    monkeypatch.chdir(workspace)
    assert link_folder("") is None
    # A downloaded release has no private folder.
    assert link_folder(release) is None
    (tmp_path / "release.private").mkdir()
    assert link_folder(release) == link_folder(f"{release}#dev") == tmp_path / "release.private"
