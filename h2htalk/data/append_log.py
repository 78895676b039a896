"""Append-only JSONL files with one writer, which survive a kill at any byte and a full disk."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from h2htalk.data.files import is_whole, json_line, read_jsonl, write_problem
from h2htalk.errors import DataError

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
        """Open for appending and take the writer's lock; `check` gets each record that is there, and `name:line`.

        Raises:
            DataError: another process writes this file, or a whole line is not a record.
        """
        self.path = path
        with ExitStack() as stack:
            stack.enter_context(writer_lock(path))
            try:
                for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
                    if check is not None:
                        check(record, where)
                self._file = stack.enter_context(open(path, "ab", buffering=0))
                self._mend_tail()
            except OSError as error:
                raise DataError(f"{path}: {write_problem(error)}") from error
            self._stack = stack.pop_all()

    def _mend_tail(self) -> None:
        """Repair a last line without a line end: complete a whole one, cut a torn one."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read() in (b"", b"\n"):
                return
            file.seek(0)
            (tail,) = deque(file, 1)
        if is_whole(tail):
            self._write(b"\n", size)
        else:
            os.truncate(self.path, size - len(tail))

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
        """Close the file and release the lock. Calling it twice does no harm."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def writer_lock(path: Path, advice: str = _ADVICE, timeout: float = 0) -> Iterator[None]:
    """Hold the lock of a log, whose folder is created: no other process writes it meanwhile.

    Raises:
        DataError: another process writes the log, for longer than `timeout` seconds; ends with `advice`.
    """
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
    try:
        yield
    finally:
        lock.release()
