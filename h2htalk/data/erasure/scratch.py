"""Folders for texts that lie on this machine only while a command works on them, such as copies of object storage.

They lie in the folder for temporary files under a name that follows from the run, and only their owner can read them.
A command that is killed leaves its folder behind: the next one for the same run removes it, and so does an erasure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING

from h2htalk.data.files import remove_file, writing
from h2htalk.errors import DataError

if TYPE_CHECKING:
    from filelock import FileLock

_LOCK = ".lock"
_KEPT = ".kept"


@dataclass(slots=True)
class ScratchFolder:
    """A folder of one command. It is removed at the end, unless `keep` was called."""

    path: Path
    is_kept: bool = False

    def keep(self) -> None:
        """Leave the folder, as it holds what is nowhere else: later commands leave it too, an erasure does not."""
        self.is_kept = True
        self.path.with_name(self.path.name + _KEPT).touch()


@contextmanager
def scratch_folder(owner: str) -> Iterator[ScratchFolder]:
    """Yield a new empty folder for a run by its address, after the removal of what killed commands left for that run.

    Raises DataError where somebody else can read or write the place.
    """
    remove_scratch(owner)
    parent = _parent_of(owner)
    with writing(parent):
        path = Path(mkdtemp(prefix="work-", dir=_private(parent)))
    folder = ScratchFolder(path)
    lock = _lock(path)
    lock.acquire(timeout=0)
    try:
        yield folder
    finally:
        if not folder.is_kept:
            shutil.rmtree(path, ignore_errors=True)
        lock.release()
        remove_file(path.with_name(path.name + _LOCK))


def remove_scratch(owner: str) -> list[Path]:
    """Remove what commands that were killed left for a run; returns the folders. Raises DataError."""
    removed = []
    for path in scratch_folders(owner):
        if not was_kept(path) and _remove(path):
            removed.append(path)
    return removed


def was_kept(path: Path) -> bool:
    """Whether a folder was left on purpose, as the storage did not take what is in it."""
    return path.with_name(path.name + _KEPT).exists()


def scratch_folders(owner: str) -> list[Path]:
    """The folders for a run on this machine, those of running commands and those that were kept too."""
    parent = _parent_of(owner)
    if not os.path.lexists(parent):
        return []
    _private(parent)
    return sorted(
        Path(entry.path) for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)
    )


def _remove(path: Path) -> bool:
    """Remove a folder whose command has ended; False where it still runs."""
    from filelock import Timeout

    lock = _lock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    shutil.rmtree(path, ignore_errors=True)
    lock.release()
    remove_file(path.with_name(path.name + _LOCK))
    return not path.exists()


def _lock(path: Path) -> FileLock:
    from filelock import FileLock

    return FileLock(path.with_name(path.name + _LOCK), thread_local=False)


def _parent_of(owner: str) -> Path:
    """Where the folders for a run lie."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    digest = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Path(gettempdir(), f"h2htalk-{user}", digest)


def _private(folder: Path) -> Path:
    """Make a folder and the one that holds it, for their owner alone. Raises DataError where they are another's."""
    for path in (folder.parent, folder):
        with writing(path):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            state = os.lstat(path)
        is_ours = not hasattr(os, "getuid") or (
            state.st_uid == os.getuid() and not state.st_mode & 0o077
        )
        if not stat.S_ISDIR(state.st_mode) or not is_ours:
            raise DataError(
                f"{path}: "
                "is not a folder that only you can read and write, and texts of the run would lie in it; "
                "remove it, or set TMPDIR to a folder of your own"
            )
    return folder
