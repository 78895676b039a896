"""Append-only JSONL files with one writer, which survive a kill at any byte and a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from h2htalk.data.files import is_whole, json_line, read_jsonl, write_problem
from h2htalk.errors import DataError

if TYPE_CHECKING:
    from filelock import BaseFileLock

# Advice where another process writes.
_ADVICE = "wait for it, or choose another --out"
WAIT = "wait for it, then start the same command again"


class AppendLog:
    """An append-only JSONL file with one writer.

    Each `append` is one write to the operating system, so a killed process loses at most the line it was
    writing. Opening cuts a torn last line, and completes a whole one that lacks its line end (somebody edited the
    file). A full disk leaves the file at its last whole line.
    """

    def __init__(self, path: Path, check: Callable[[dict[str, Any], str], object] | None = None) -> None:
        """Open for appending and take the writer's lock.

        Args:
            path: the file; its folder is created when missing.
            check: called with each existing record and its position (`name:line`).

        Raises:
            DataError: another process writes this file, or a whole line is not a record.
        """
        self.path = path
        self._lock = _take_lock(path)
        try:
            if path.exists():
                for where, record in read_jsonl(path, torn_tail=True):
                    if check is not None:
                        check(record, where)
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
            self._mend_tail()
        except OSError as error:
            self._lock.release()
            raise DataError(f"{path}: {write_problem(error)}") from error
        except BaseException:
            self._lock.release()
            raise

    def _mend_tail(self) -> None:
        """Repair a last line without a line end: complete a whole one, cut a torn one."""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            end = size
            while end > 0:
                start = max(0, end - 65536)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
            file.seek(end)
            tail = file.read()
        if tail and is_whole(tail):
            self._write(b"\n", size)
        elif tail:
            os.truncate(self.path, end)

    def _write(self, lines: bytes, size: int) -> None:
        """Add lines to the file of `size` bytes, all or nothing; raises OSError."""
        try:
            if self._file.write(lines) != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.truncate(self.path, size)
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record. Raises DataError when it cannot be stored whole; the file stays intact."""
        self.append_all((record,))

    def append_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Store records in one write: all of them or none. A kill during the write may leave the first ones.

        Raises:
            DataError: they cannot be stored whole; the file stays intact.
        """
        lines = "".join(map(json_line, records)).encode()
        before = self._file.seek(0, os.SEEK_END)
        try:
            self._write(lines, before)
        except OSError as error:
            raise DataError(f"{self.path}: {write_problem(error)}") from error

    def close(self) -> None:
        """Close the file and release the lock."""
        if not self._file.closed:
            self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def writer_lock(path: Path, advice: str = _ADVICE, timeout: float = 0) -> Iterator[None]:
    """Hold a log's lock without opening the log: no other process writes it meanwhile.

    Raises:
        DataError: another process writes the log, for longer than `timeout` seconds; ends with `advice`.
    """
    lock = _take_lock(path, advice, timeout)
    try:
        yield
    finally:
        lock.release()


def _take_lock(path: Path, advice: str = _ADVICE, timeout: float = 0) -> BaseFileLock:
    """Take the lock of a log; create its folder when missing."""
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # thread_local=False: a log may be closed by another thread than opened it.
        lock = FileLock(path.with_suffix(".lock"), thread_local=False)
        lock.acquire(timeout=timeout)
    except Timeout:
        raise DataError(f"{path}: another process is writing it; {advice}") from None
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    return lock
