"""What is written appears whole or not at all, and comes back as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl, write_json, write_jsonl, write_output, write_text
from h2htalk.data.responses import write_parquet
from h2htalk.errors import DataError


def test_write_jsonl_and_read_jsonl_are_inverse(tmp_path: Path) -> None:
    path = tmp_path / "made" / "on the way" / "x.jsonl"
    records = [{"id": "a", "text": "line\nbreak"}, {"id": "b", "text": "\ud83d"}]
    assert write_jsonl(path, iter(records)) == 2
    assert [record for _, record in read_jsonl(path)] == records
    assert list(path.parent.iterdir()) == [path]


def test_write_text_escapes_half_a_character(tmp_path: Path) -> None:
    """It broke the page of a run in which a model had answered half an emoji."""
    write_text(tmp_path / "x.html", "<p>\ud83d</p>")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == "<p>\\ud83d</p>"
    write_json(tmp_path / "x.json", {"text": "\ud83d"})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"text": "\ud83d"}


def breaking_records() -> Iterator[dict[str, Any]]:
    yield {"id": "a"}
    raise KeyboardInterrupt


WRITERS: dict[str, Callable[[Path, Any], object]] = {
    "jsonl": write_jsonl,
    "text": lambda path, records: write_text(path, map(str, records)),
    "parquet": write_parquet,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_interrupted_writer_leaves_the_old_file_and_nothing_else(
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
def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, write: Callable[[Path, Any], object], place: str
) -> None:
    (tmp_path / "a file").write_text("")
    (tmp_path / "a folder" / "in it").mkdir(parents=True)
    with pytest.raises(DataError, match=f"^{tmp_path / place}: cannot be written") as raised:
        write(tmp_path / place, [{"id": "a"}])
    assert "\n" not in str(raised.value)


def test_an_output_does_not_replace_a_link_whose_target_is_gone(tmp_path: Path) -> None:
    (link := tmp_path / "page.html").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=f"^{link}: cannot be written"):
        write_output(link, "<html>", "<html>")
    assert link.is_symlink()


FILL = """
import resource, sys
from pathlib import Path
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import write_parquet
from h2htalk.errors import DataError
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for write in (write_jsonl, write_parquet):
    try:
        write(Path(sys.argv[1]), [{"id": f"{i ** 99:0250}"} for i in range(4000)])
    except DataError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A file-size limit stands for the disk: the operating system refuses the write in the middle."""
    path = tmp_path / "x"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", FILL, path], capture_output=True, text=True, check=True)
    assert done.stdout.count("the disk is full; what was stored is kept") == 2, done.stdout
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]
