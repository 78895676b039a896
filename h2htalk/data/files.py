"""Files: read, written whole or not at all, locked; and logs that are only appended to."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import threading
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from h2htalk.data.bounded.json_values import TooManyValues, require_few_values
from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.errors import ConfigError, DataError, H2HTalkError, quoted

# The names of temporary files of `replacing`, with the name of the file that it writes.
_HALF_WRITTEN = re.compile(r"\.(.+)\.\d+")
# A longer line (64 MiB) means a broken file.
MAX_LINE = 1 << 26
LARGEST_TOML = 1 << 16  # bytes: of a key with many dots its reader takes seconds


def read_jsonl(
    path: Path,  # UTF-8, with or without a byte order mark
    *,
    torn_tail: bool = False,  # leave out a last line without a line end that does not parse: its writer was killed
    unique_keys: bool = False,  # refuse an object with a repeated key, of which JSON readers silently keep the last
    nan: bool = False,  # read NaN and infinities, which Python's writers give and JSON does not have
    broken: list[str]
    | None = None,  # receives the messages of lines that are no object, instead of an error
    skip: tuple[bytes, ...] = (),  # lines that begin so are not parsed
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a JSONL file; `where` is `name:line` for messages. Empty lines are skipped.

    Raises DataError, which names file and line, for a line that is not a JSON object in UTF-8.
    """
    with reading(path), require_file(path).open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
            where = f"{path}:{number}"
            if len(line) == MAX_LINE:
                raise DataError(
                    f"{where}: line longer than {MAX_LINE >> 20} MiB; is this a JSONL file?"
                )
            if torn_tail and not line.endswith(b"\n") and not is_whole(line):
                return
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if line.startswith(skip) or not content.strip():
                continue
            try:
                yield where, parse_object(content, where, unique_keys, nan)
            except DataError as error:
                if broken is None:
                    raise
                broken.append(str(error))


@contextmanager
def reading(path: Path, kind: type[H2HTalkError] = DataError) -> Iterator[None]:
    """Raise DataError (or `kind`) for an OSError of reading a path, and for text that is not UTF-8.

    Raises DataError also while somebody is erased from the folder that holds it.
    """
    refuse_unfinished_erasure(path)
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise kind(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise DataError, with advice, for an OSError of writing a path."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error


def is_whole(line: bytes) -> bool:
    """Whether a last line without a line end parses: no part of a JSON object does."""
    try:
        require_few_values(line)
        json.loads(line.decode("utf-8-sig"))
    except (
        TooManyValues
    ):  # it is refused where it is read, and not left out as the end of a killed writer
        return True
    except (ValueError, RecursionError):
        return False
    return True


def parse_object(
    line: bytes, where: str, unique_keys: bool = False, nan: bool = False
) -> dict[str, Any]:
    """Parse one line of JSONL. Raises DataError, which starts with `where`, also for a line of too many values."""
    try:
        require_few_values(line)
        # Without its line end, so that an error at the end is reported at a column of this line.
        text = line.rstrip(b"\r\n").decode()
        if unique_keys:
            decoder = UNIQUE_KEYS
        else:
            decoder = _WITH_NAN if nan else _ANY_KEYS
        record = decoder.decode(text)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: not UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: broken JSON: {error.msg} at column {error.colno}") from error
    except TooManyValues as error:
        raise DataError(f"{where}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: broken JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: must be a JSON object, not {type(record).__name__}")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; write null or leave the field out")


def _unique_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {quoted(twice)} is repeated; keep one")
    return record


# `json.loads` and `json.dumps` with arguments make a decoder or encoder for each line.
_ANY_KEYS = json.JSONDecoder(parse_constant=_refuse_constant)
_WITH_NAN = json.JSONDecoder()
UNIQUE_KEYS = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_pairs)
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def require_file(path: Path) -> Path:
    """Return the path of a file that can be read.

    Raises DataError for a device or a pipe, which would wait for its writer, and for a file in a folder from which
    somebody is being erased; OSError where nothing is there.
    """
    refuse_unfinished_erasure(path)
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(f"{path}: not a file")
    return path


def read_bounded(path: Path, most: int = MAX_LINE) -> bytes:
    """Read a file of at most `most` bytes. Raises DataError where it is larger or no file, OSError."""
    if require_file(path).stat().st_size > most:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise DataError(f"{path}: larger than {size}")
    return path.read_bytes()


def read_toml(
    path: Path, most: int = LARGEST_TOML, error: type[H2HTalkError] = ConfigError
) -> dict[str, Any]:
    """Read a TOML file of at most `most` bytes. Raises DataError, and `error` where it is not readable."""
    try:
        text = read_bounded(path, most).decode("utf-8-sig")  # some editors write a byte order mark
        return tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as broken:  # also a number of thousands of digits
        why = "nested too deeply" if isinstance(broken, RecursionError) else broken
        raise error(f"{path}: not readable as TOML: {why}") from broken


def read_json_object(path: Path, *, missing_ok: bool = False) -> dict[str, Any]:
    """Read a JSON file that holds one object; without a file {} where that is `missing_ok`.

    Raises FileNotFoundError, and DataError where it is not readable as an object.
    """
    try:
        content = read_bounded(path)
    except FileNotFoundError:
        if missing_ok:
            return {}
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse_object(content, str(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal. Raises ConfigError where it cannot be read."""
    with reading(path, ConfigError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield the path of a new file that replaces `path` at the end: a reader sees the old one or the new one, whole.

    `private`: only its owner can read it, from its first byte on. Raises DataError.
    """
    temporary = path.with_name(f".{path.name}.{threading.get_native_id()}")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if private:
                os.close(os.open(temporary, os.O_CREAT, 0o600))
            yield temporary
            os.replace(temporary, path)
    finally:
        remove_file(temporary)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Replace a file by text, or pieces of it; half a character is written as its JSON escape. Raises DataError."""
    with (
        replacing(path) as new,
        new.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        file.writelines([text] if isinstance(text, str) else text)


def write_output(path: Path, text: str, head: str) -> None:
    """Write a file that a user named over nothing, an empty file or one that begins with `head`. Raises DataError."""
    with writing(path):
        if os.path.lexists(path):
            expected = head.encode()
            start = require_file(path).read_bytes()[: len(expected)]
            if start not in (b"", expected):
                raise DataError(
                    f"{path}: is there already and is something else; name another file"
                )
    write_text(path, text)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON with `write_text`, keys in the order given."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_sealed(path: Path, record: Mapping[str, Any]) -> None:
    """Write an object with the hash of its content, so that `read_sealed` notices an edit. Raises DataError."""
    write_json(path, {**record, "sha256": _content_hash(record)})


def read_sealed(path: Path, advice: str) -> dict[str, Any]:
    """Read what `write_sealed` wrote. Raises FileNotFoundError; DataError, with `advice`, for a changed file."""
    record = read_json_object(path)
    if record.pop("sha256", None) != _content_hash(record):
        raise DataError(f"{path}: was edited, or is of another version; {advice}")
    return record


def _content_hash(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_line(record).encode()).hexdigest()


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Stream records to a JSONL file that appears only when it is complete. Returns the number of lines."""
    count = 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for count, record in enumerate(records, 1):  # noqa: B007
            file.write(json_line(record))
    return count


def remove_file(path: Path) -> None:
    """Remove a file, or an empty folder. Errors are ignored: the error that made it useless is reported instead."""
    with suppress(OSError):
        (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def remove_half_written(folder: Path, names: Iterable[str], keep: Collection[str] = ()) -> None:
    """Remove what `replacing` left in a folder where a command was killed, of files that the package writes there.

    `names`: paths in the folder, in which a `*` stands for a part of one name. A file that somebody else named alike
    (`.backup.2024`), and all that lies in a hidden folder (`.git`), stays. `keep`: names of files that another process
    may be writing now.
    """
    patterns = [name.split("/") for name in names]
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        parents = Path(parent).relative_to(folder).parts
        for name in files:
            target = half_written_target(name)
            if target is None or target in keep:
                continue
            path = Path(parent, name)
            if is_named((*parents, target), patterns) and not path.is_symlink():
                remove_file(path)


def half_written_target(name: str) -> str | None:
    """Return the name of the file that `replacing` writes by a file called `name`; None for other files."""
    match = _HALF_WRITTEN.fullmatch(name)
    return match[1] if match is not None else None


def is_named(path: Sequence[str], patterns: Iterable[Sequence[str]]) -> bool:
    """Whether a path, by its parts, is one of the patterns, by theirs."""
    candidates = [pattern for pattern in patterns if len(pattern) == len(path)]
    return any(all(map(fnmatchcase, path, pattern)) for pattern in candidates)


def refuse_links(root: Path) -> None:
    """Raise DataError for a symbolic link in a folder, which writing follows and removing does not, or a pipe."""
    advice = "replace it by its target (the whole folder may be elsewhere) and start the same command again"
    for folder, folders, names in os.walk(root):
        for name in sorted((*folders, *names)):
            with suppress(FileNotFoundError):  # a temporary file, which its writer has moved since
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode):
                    raise DataError(
                        f"{path}: is a symbolic link, and its target would not be removed; {advice}"
                    )
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                    raise DataError(
                        f"{path}: is no file, and this folder holds files and folders alone; remove it"
                    )


def require_new_folder(path: Path) -> None:
    """Raise DataError unless nothing, or an empty folder, is at a path."""
    if os.path.lexists(path) and (not os.path.isdir(path) or any(path.iterdir())):
        raise DataError(f"{path}: not an empty folder; name a new one")


def json_line(record: object) -> str:
    """Format one line of JSONL in valid UTF-8: lone surrogates are escaped. Raises DataError for NaN and infinity."""
    try:
        text = _LINE.encode(record)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        name = record.get("id", "a record") if isinstance(record, Mapping) else "a record"
        raise DataError(
            f"{name}: holds NaN or infinity, which JSON cannot; write null instead"
        ) from error
    return text + "\n"


def write_problem(error: OSError) -> str:
    """Describe an OSError of writing, with advice."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            "the disk is full; what was stored is kept: free space and start the same command again"
        )
    return f"cannot be written: {error.strerror or error}"


WAIT = "wait for it, then start the same command again"


class AppendLog(ExitStack):
    """An append-only JSONL file with one writer; `close` gives back its lock, and may be called twice.

    Each `append` is one write to the operating system: a kill loses at most the line that was written, a full disk
    leaves the last whole one. Opening cuts a torn last line, and completes a whole one that lacks its line end.
    """

    def __init__(
        self, path: Path, check: Callable[[dict[str, Any], str], object] | None = None
    ) -> None:
        """Take the writer's lock; `check` gets each record and `name:line`. Raises DataError for a broken line."""
        super().__init__()
        self.path = path
        with ExitStack() as stack, writing(path):
            stack.enter_context(writer_lock(path))
            for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
                if check is not None:
                    check(record, where)
            self._file = stack.enter_context(open(path, "ab", buffering=0))
            self._mend_tail()
            self.enter_context(stack.pop_all())

    def _mend_tail(self) -> None:
        """Repair a last line without a line end: complete a whole one, cut a torn one."""
        with self.path.open("rb") as file:
            tail = b"".join(deque(file, 1))
            size = file.tell()
        if not tail or tail.endswith(b"\n"):
            return
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

    def append(self, *records: Mapping[str, Any]) -> None:
        """Store records in one write, all or none (a kill may leave the first ones). Raises DataError for none."""
        lines = "".join(map(json_line, records)).encode()
        with writing(self.path):
            self._write(lines, self._file.seek(0, os.SEEK_END))


@contextmanager
def writer_lock(
    path: Path, advice: str = "wait for it, or choose another --out", timeout: float = 0
) -> Iterator[None]:
    """Hold the lock of a log; the folder is created. Raises DataError, with `advice`, after `timeout` seconds."""
    from filelock import FileLock, Timeout

    # thread_local=False: a log may be closed by another thread than opened it.
    lock = FileLock(path.with_suffix(".lock"), thread_local=False)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            raise DataError(f"{path}: another process is writing it; {advice}") from None
    try:
        yield
    finally:
        lock.release()
