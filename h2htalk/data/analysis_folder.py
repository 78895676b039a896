"""The folder of an analysis: recognise, refuse or replace it, and never leave it half written."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from h2htalk.data.files import missing_folders, read_json_object, remove_folders, writer_lock, writing
from h2htalk.errors import ConfigError, H2HTalkError, listed, quoted

SUMMARY, PAGE = "summary.json", "index.html"
MADE_BY = "h2htalk analyze"
_WRITING = ".analysis-"  # prefix of the temporary folder of an unfinished or killed write
_OURS = re.compile(r"(?:tables|figures)/[a-z0-9_]+\.(?:csv|svg|pdf|png)|index\.html")


def require_folder(folder: Path) -> None:
    """Raise ConfigError for a folder that is neither new nor empty nor that of an earlier analysis, or not writable."""
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        others = sorted(quoted(name) for name in os.listdir(nearest) if not name.startswith(_WRITING))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ConfigError(f"--out {folder}: {nearest} cannot be written to; name another one")
    except OSError as error:
        raise ConfigError(f"--out {folder}: {error.strerror or error}; name another one") from error
    if nearest == folder and others and not _earlier(folder):
        advice = "name a new folder, or that of an earlier analysis"
        raise ConfigError(f"--out {folder} holds other things ({listed(others, 3)}); {advice}")


def _earlier(folder: Path) -> dict[str, Any]:
    """The summary of the analysis in `folder`; empty where it holds none."""
    try:
        summary = read_json_object(folder / SUMMARY)
    except (FileNotFoundError, H2HTalkError):
        return {}
    return summary if summary.get("made_by") == MADE_BY else {}


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Create a folder inside `folder` to write an analysis into; it replaces the old analysis when the block ends.

    The files move one by one, `summary.json` first, the page last: a killed move leaves a folder that is known as
    an analysis, and a complete page. Files that only the earlier analysis wrote are removed; other files stay. When
    the block fails, nothing has changed. Raises what `require_folder` does, and DataError where the folder cannot be
    written or another process is writing into it.
    """
    require_folder(folder)
    made, lock = missing_folders(folder), folder / f"{_WRITING}writer.lock"
    try:
        # The first of two writers to end would remove the other's files.
        with writing(folder), writer_lock(lock):
            try:
                with tempfile.TemporaryDirectory(dir=folder, prefix=_WRITING, ignore_cleanup_errors=True) as new:
                    yield Path(new)
                    _move(Path(new), folder)
            finally:
                lock.unlink(missing_ok=True)
    finally:
        remove_folders(made)


def _move(new: Path, folder: Path) -> None:
    files = sorted(path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file())
    for name in {*map(str, _earlier(folder).get("files", ()))} - {*files}:
        if _OURS.fullmatch(name):
            (folder / name).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: (name == PAGE, name != SUMMARY, name)):
        (folder / name).parent.mkdir(exist_ok=True)
        os.replace(new / name, folder / name)
    for left in folder.glob(f"{_WRITING}*"):  # of killed writes
        shutil.rmtree(left, ignore_errors=True)
