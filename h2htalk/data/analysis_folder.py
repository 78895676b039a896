"""The folder of an analysis: recognise, refuse or replace it, and never leave it half written."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from h2htalk.data.files import missing_folders, read_json_object, remove_folders, write_problem, writer_lock
from h2htalk.errors import ConfigError, DataError, H2HTalkError, listed, quoted

SUMMARY, PAGE = "summary.json", "index.html"
MADE_BY = "h2htalk analyze"
_WRITING = ".analysis-"  # prefix of the temporary folder of an unfinished or killed write
_OURS = re.compile(r"(?:tables|figures)/[a-z0-9_]+\.(?:csv|svg|pdf|png)|index\.html")


def require_folder(folder: Path) -> None:
    """Refuse, before the work begins, a folder that is neither new nor empty nor that of an earlier analysis.

    Raises:
        ConfigError: a file, a folder that holds other things, or no permission to write.
    """
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        others = sorted(name for name in os.listdir(nearest) if not name.startswith(_WRITING))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ConfigError(f"--out {folder}: {nearest} cannot be written to; name another one")
    except OSError as error:
        raise ConfigError(f"--out {folder}: {error.strerror or error}; name another one") from error
    if nearest == folder and others and not _is_analysis(folder):
        raise ConfigError(
            f"--out {folder} holds other things ({listed([*map(quoted, others)], 3)}); name a new folder, or that of "
            "an earlier analysis"
        )


def _is_analysis(folder: Path) -> bool:
    try:
        return read_json_object(folder / SUMMARY).get("made_by") == MADE_BY
    except (FileNotFoundError, H2HTalkError):
        return False


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Create a folder inside `folder` to write an analysis into; it replaces the old analysis when the block ends.

    The files move one by one, `summary.json` first, the page last: a killed move leaves a folder that is known as
    an analysis, and a complete page. Files that only the earlier analysis wrote are removed; other files stay. When
    the block fails, nothing has changed.

    Raises:
        ConfigError: see `require_folder`.
        DataError: the folder cannot be written, the disk is full, or another process is writing into it.
    """
    require_folder(folder)
    made, lock = missing_folders(folder), folder / f"{_WRITING}writer.lock"
    try:
        # The first of two writers to end would remove the other's files.
        with writer_lock(lock):
            new = Path(tempfile.mkdtemp(dir=folder, prefix=_WRITING))
            try:
                yield new
                _move(new, folder)
            finally:
                shutil.rmtree(new, ignore_errors=True)
                lock.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: {write_problem(error)}") from error
    finally:
        remove_folders(made)


def _move(new: Path, folder: Path) -> None:
    files = sorted(path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file())
    for name in sorted(_listed(folder) - set(files)):
        (folder / name).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: (name == PAGE, name != SUMMARY, name)):
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        os.replace(new / name, target)
    for left in folder.glob(f"{_WRITING}*"):  # of killed writes
        shutil.rmtree(left, ignore_errors=True)


def _listed(folder: Path) -> set[str]:
    """The files that the analysis in `folder` lists as its own; none outside of it."""
    try:
        names = read_json_object(folder / SUMMARY).get("files")
    except (FileNotFoundError, H2HTalkError):
        return set()
    return {n for n in names if isinstance(n, str) and _OURS.fullmatch(n)} if isinstance(names, list) else set()
