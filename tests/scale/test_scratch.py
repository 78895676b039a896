"""What attempts on object storage leave on this machine: nothing, after a kill too once the next command began."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.scratch import scratch_folder
from h2htalk.errors import DataError
from h2htalk.scale.attempt_erasure import erase_stored
from h2htalk.scale.attempts import Shard
from h2htalk.scale.shards import RunningAttempt, evaluate_shard
from h2htalk.scale.storage_folder import StorageFolder
from support.doubles.loopback import LoopbackServer
from support.kills import killed_in
from support.shards import attempt_all, own_words, spec_of

BUCKET = "memory://bucket/scratch"
GONE = "made-00003"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    MemoryFileSystem.store.clear()
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    MemoryFileSystem.store.clear()


@pytest.fixture
def killed(tmp_path: Path, temporary: Path) -> Iterator[EvaluateSpec]:
    """The specification of a run, of which an attempt got kill -9 when its replies were stored here alone."""

    def kill(work: RunningAttempt) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with LoopbackServer(reply=own_words) as server:
        spec = spec_of(server, tmp_path, BUCKET)

        def attempt() -> None:
            with patch.object(RunningAttempt, "upload_calls", kill):
                evaluate_shard(spec, Shard(1, 2))

        assert killed_in(attempt)
        assert _texts(temporary)
        yield spec


def _texts(folder: Path) -> list[Path]:
    """Files that hold words of an item."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if re.search(rb"item\d", path.read_bytes())]


def test_the_next_attempt_removes_what_a_killed_one_left(
    killed: EvaluateSpec, temporary: Path
) -> None:
    """The split and the replies stayed in TMPDIR as plain text, and no command removed them."""
    evaluate_shard(killed, Shard(2, 2))
    assert not _texts(temporary)


def test_an_erasure_removes_what_a_killed_attempt_left(
    killed: EvaluateSpec, temporary: Path
) -> None:
    done = erase_stored(f"{BUCKET}/1-of-2/20260101T000000-00000000", ErasedIds(frozenset({GONE})))
    assert not _texts(temporary)
    assert any("deleted, left by a command that was killed" in message for message in done.messages)


def test_another_run_leaves_it(killed: EvaluateSpec, temporary: Path) -> None:
    with scratch_folder("memory://bucket/another"):
        assert _texts(temporary)


def test_nobody_else_can_read_it(killed: EvaluateSpec, temporary: Path) -> None:
    for path in _texts(temporary):
        above = [folder for folder in path.parents if temporary in folder.parents]
        assert stat.S_IMODE(above[-1].stat().st_mode) == 0o700


def test_an_erasure_reaches_replies_that_the_storage_did_not_take(
    tmp_path: Path, temporary: Path
) -> None:
    def failing(self: MemoryFileSystem, path: str, value: bytes, mode: str = "overwrite") -> None:
        if "/calls/" in path:
            raise OSError("connection reset")
        pipe_file(self, path, value, mode)

    pipe_file = MemoryFileSystem.pipe_file
    with LoopbackServer(reply=own_words) as server:
        spec = spec_of(server, tmp_path, BUCKET)
        with (
            patch.object(MemoryFileSystem, "pipe_file", failing),
            pytest.raises(DataError, match="are kept in"),
        ):
            evaluate_shard(spec, Shard(1, 1))
        attempt_all(spec, 1)  # which leaves them, as they are nowhere else
    copies = [
        path for path in _texts(temporary) if path.name == "calls.jsonl" or "split" in path.parts
    ]
    assert any(b"item3" in path.read_bytes() for path in copies)
    names = StorageFolder(f"{BUCKET}/1-of-1").names()
    erase_stored(f"{BUCKET}/1-of-1/{names[0]}", ErasedIds(frozenset({GONE})))
    assert not [path for path in _texts(temporary) if re.search(rb"\bitem3\b", path.read_bytes())]


@pytest.mark.parametrize("planted", ["link", "open", "file"])
def test_a_place_that_another_can_write_is_refused(planted: str, temporary: Path) -> None:
    """Whoever made the folder first could read the split, or have another folder emptied through a link."""
    scratch_home = temporary / f"h2htalk-{os.getuid()}"
    victim = temporary / "victim"
    victim.mkdir()
    (victim / "file").touch()
    if planted == "link":
        scratch_home.symlink_to(victim)
    elif planted == "open":
        scratch_home.mkdir()
        scratch_home.chmod(0o777)
    else:
        scratch_home.touch()
    with (
        pytest.raises(DataError, match="set TMPDIR to a folder of your own"),
        scratch_folder(BUCKET),
    ):
        pass
    assert (victim / "file").exists()


def test_a_link_in_the_place_is_not_followed(temporary: Path) -> None:
    with scratch_folder(BUCKET) as scratch:
        scratch_home = scratch.path.parent
    victim = temporary / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (scratch_home / "work-linked").symlink_to(victim)
    with scratch_folder(BUCKET):
        pass
    assert (victim / "file").exists()


def test_a_folder_in_use_stays(temporary: Path) -> None:
    with scratch_folder(BUCKET) as first:
        (first.path / "reply").touch()
        with scratch_folder(BUCKET):
            assert (first.path / "reply").exists()
