"""Files: streaming JSONL and Parquet, whole-file writes that are atomic, append-only shards that survive."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from h2htalk.errors import DataError

# A line longer than this is not a record but a broken file (64 MiB).
MAX_LINE = 1 << 26


def read_jsonl(path: Path, *, torn_tail: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a JSONL file; `where` is `name:line` for messages. Empty lines are skipped.

    Args:
        path: UTF-8, with or without a byte order mark.
        torn_tail: leave out a last line without a line end (a writer was killed in the middle of it).

    Raises:
        DataError: not readable, not UTF-8, not JSON, or not an object; names file and line.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                where = f"{path}:{number}"
                if len(line) == MAX_LINE:
                    raise DataError(f"{where}: line longer than {MAX_LINE >> 20} MiB; is this a JSONL file?")
                if torn_tail and not line.endswith(b"\n"):
                    return
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield where, _parse_object(line, where)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parse_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 (byte {error.start}); save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: broken JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: must be a JSON object, not {type(record).__name__}")
    return record


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file; columns written as JSON text by `write_parquet` are parsed.

    Raises:
        DataError: not a Parquet file, or a column whose JSON is broken.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        json_columns = json.loads((file.schema_arrow.metadata or {}).get(b"h2htalk_json_columns", b"[]"))
        number = 0
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                number += 1
                for column in json_columns:
                    row[column] = json.loads(row[column])
                yield f"{path}:row {number}", row
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error


def write_parquet(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    json_columns: Sequence[str] = (),
    schema: Any = None,
    batch_size: int = 2048,
) -> int:
    """Stream records with equal keys to a Parquet file that appears only when it is whole.

    Args:
        path: the file.
        records: at least one.
        json_columns: keys whose objects or lists are stored as JSON text (`read_parquet` undoes it).
        schema: a `pyarrow.Schema`; None infers it from the first batch.
        batch_size: rows a row group.

    Returns:
        The number of rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    note = {"h2htalk_json_columns": json.dumps(list(json_columns))}
    rows = iter(records)
    count, writer = 0, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while batch := [_encoded(row, json_columns) for row in islice(rows, batch_size)]:
            table = pa.Table.from_pylist(batch, schema=schema)
            if writer is None:
                schema = table.schema.with_metadata(note)
                writer = pq.ParquetWriter(temporary, schema)
            writer.write_table(table.cast(schema))
            count += len(batch)
        if writer is None:
            raise DataError(f"{path}: no record to write")
        writer.close()
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _encoded(record: Mapping[str, Any], json_columns: Sequence[str]) -> dict[str, Any]:
    return dict(record) | {key: json.dumps(record[key], ensure_ascii=False) for key in json_columns}


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Replace a whole file at once: a reader sees the old text or the new, never half of one.

    `text` may come in pieces, so that a large file never lies in memory whole.

    Raises:
        DataError: the folder cannot be written, or the disk is full.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """`write_text` of indented JSON, keys in the order given."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Stream records to a JSONL file that appears only when it is whole. Returns the number of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(json_line(record))
                count += 1
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return count


def json_line(record: Mapping[str, Any]) -> str:
    """One line of JSONL, line end included. Lone surrogates are escaped, so that it is always UTF-8."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    return text + "\n"


def write_problem(error: OSError) -> str:
    """An OSError of writing, as advice."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full; nothing finished was lost: free space and start the same command again"
    return f"cannot be written: {error.strerror or error}"


class Shard:
    """An append-only JSONL file with one writer.

    Each `append` is one write to the operating system, so a killed process loses at most the line it was
    writing; opening cuts a torn last line. A full disk leaves the file at its last whole line.
    """

    def __init__(self, path: Path, check: Callable[[dict[str, Any], str], None] | None = None) -> None:
        """Open for appending and take the writer's lock.

        Args:
            path: the shard; its folder is made when missing.
            check: called with each record that is there already and where it stands.

        Raises:
            DataError: another process writes this shard, or a whole line is not a record.
        """
        from filelock import FileLock, Timeout

        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path.with_suffix(".lock"))
            self._lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                f"{path}: another process is writing it; wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise DataError(f"{path}: {write_problem(error)}") from error
        try:
            if path.exists():
                for where, record in read_jsonl(path, torn_tail=True):
                    if check is not None:
                        check(record, where)
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
            self._cut_torn_tail()
        except BaseException:
            self._lock.release()
            raise

    def _cut_torn_tail(self) -> None:
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
        if end != size:
            os.truncate(self.path, end)

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record. Raises DataError when it cannot be stored whole; the file stays intact."""
        line = json_line(record).encode()
        before = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.truncate(self.path, before)
            raise DataError(f"{self.path}: {write_problem(error)}") from error

    def close(self) -> None:
        """Close the file and give the lock back."""
        if not self._file.closed:
            self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
