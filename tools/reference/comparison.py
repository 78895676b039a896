"""Compare two reference folders file by file."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reference.masks import UNORDERED, masked

ARCHIVES = (".zip", ".xlsx")
PRINTED = ".pdf"  # printed by a browser, with the time inside its packed pages: the page itself is compared
SHOWN = 300  # characters of a line that a difference shows
ABSENT = "(no such line)"
NO_FILE = "(no such file)"


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that differs, and the first differing line of each side."""

    file: str
    line: int
    first: str
    second: str

    def describe(self) -> str:
        first, second = shorten(self.first, self.second)
        return f"{self.file}:{self.line}\n  - {first}\n  + {second}"


def shorten(first: str, second: str) -> tuple[str, str]:
    """Both lines from shortly before the place where they part."""
    pairs = zip(first, second, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = max(0, same - SHOWN // 3)
    dots = "..." if start else ""
    return dots + first[start : start + SHOWN], dots + second[start : start + SHOWN]


def compare_folders(first: Path, second: Path) -> list[Difference]:
    """List the files that differ after masking, and those that are in one folder alone."""
    for folder in (first, second):
        if not folder.is_dir():
            raise SystemExit(f"{folder} is no folder")
    first_files = list_files(first)
    second_files = list_files(second)
    differences = []
    for name in sorted({*first_files, *second_files}):
        difference = compare_files(name, first_files.get(name), second_files.get(name))
        if difference is not None:
            differences.append(difference)
    return differences


def list_files(folder: Path) -> dict[str, Path]:
    """The files of a folder by their masked names. Locks are left out: whether they stay follows from time."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {masked(path.relative_to(folder).as_posix()): path for path in paths}


def compare_files(name: str, first: Path | None, second: Path | None) -> Difference | None:
    """The first difference between two files; None where they are equal."""
    if first is None or second is None:
        first_side = "(a file)" if first else NO_FILE
        second_side = "(a file)" if second else NO_FILE
        return Difference(file=name, line=0, first=first_side, second=second_side)
    if first.read_bytes() == second.read_bytes():
        return None
    lines_of_both = [list(read_lines(path)) for path in (first, second)]
    if UNORDERED.fullmatch(name):
        lines_of_both = [sorted(lines) for lines in lines_of_both]
    lines = itertools.zip_longest(*lines_of_both, fillvalue=ABSENT)
    for number, (first_line, second_line) in enumerate(lines, 1):
        if first_line != second_line:
            return Difference(name, number, first_line, second_line)
    return None


def read_lines(path: Path) -> Iterator[str]:
    """The masked lines of a file: of a table its rows, of an archive those of its members."""
    if path.suffix == ".parquet":
        yield from read_table(path)
    elif path.suffix == PRINTED:
        yield path.name
    elif path.suffix in ARCHIVES:
        yield from read_archive(path)
    else:
        yield from decode_lines(path.read_bytes())


def decode_lines(content: bytes) -> list[str]:
    # Pages and PDFs that are no UTF-8 keep a character for each byte.
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return masked(text).split("\n")


def read_table(path: Path) -> Iterator[str]:
    """The schema of a table, without the versions of its writer, and its rows."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    yield masked(str(table.schema.to_string(show_schema_metadata=True)))
    for row in table.to_pylist():
        yield masked(repr(row))


def read_archive(path: Path) -> Iterator[str]:
    """The members of an archive in their order, each with its lines."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        for member in archive.infolist():
            yield f"member {member.filename}"
            yield from decode_lines(archive.read(member))
