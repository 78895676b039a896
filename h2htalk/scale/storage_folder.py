"""A folder on a file system, or on object storage that fsspec knows by its URL (`s3://bucket/folder`).

Object storage has no locks, no append and no rename: files are written whole, and the mark of a finished attempt last.
Keys come from the environment, as the storage's own library reads them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

from h2htalk.data.erasure.scratch import scratch_folder
from h2htalk.data.files import read_bounded, reading, writing
from h2htalk.data.links import URL
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError, shorten
from h2htalk.extras import STORAGE

LONGEST_REASON = 300  # characters of what a library of storage says


@dataclass(frozen=True, slots=True)
class StorageFolder:
    """A folder by its path or URL. Methods raise DataError where it cannot be read or written."""

    address: str

    def __truediv__(self, name: str) -> StorageFolder:
        return StorageFolder(f"{self.address.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return self.address.rstrip("/").rpartition("/")[2]

    @property
    def run(self) -> str:
        """The address of the run, of an attempt at one of its shards: `RUN/SHARD/ATTEMPT`."""
        return self.address.rstrip("/").rsplit("/", 2)[0]

    @property
    def path(self) -> Path | None:
        """The path of a folder on a file system; None on object storage."""
        plain = self.address.removeprefix("file://")
        return None if URL in plain else Path(plain)

    def require(self) -> None:
        """Raise MissingExtraError where the package that reads object storage is not installed; nothing is read."""
        if self.path is None:
            STORAGE.require()

    def names(self) -> list[str]:
        """The names of the files and folders in it, sorted; none where it does not exist."""
        if self.path is not None:
            with reading(self.path):
                return sorted(os.listdir(self.path)) if self.path.is_dir() else []
        with self._storage() as (files, root):
            if not files.exists(root):
                return []
            keys = files.ls(root, detail=False)
            names = {key.rstrip("/").rpartition("/")[2] for key in keys}
            return sorted(names - {root.rpartition("/")[2]})

    def read(self, name: str) -> bytes | None:
        """The content of a file in it; None where there is none."""
        if self.path is not None:
            file = self.path / name
            with reading(file):
                return read_bounded(file, 1 << 40) if file.is_file() else None
        with self._storage() as (files, root):
            key = f"{root}/{name}"
            return bytes(files.cat_file(key)) if files.exists(key) else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file of object storage, whole or not at all."""
        with self._storage() as (files, root):
            files.pipe_file(f"{root}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file, whole; False where the name is taken. One of several writers wins, also on NFS."""
        if self.path is not None:
            unnamed = self.path / f".{name}.{secrets.token_hex(6)}"
            with writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                try:
                    unnamed.write_bytes(content)
                    # Unlike a rename, a link fails where the name is taken.
                    os.link(unnamed, self.path / name)
                    return True
                except FileExistsError:
                    return False
                finally:
                    unnamed.unlink(missing_ok=True)
        with self._storage() as (files, root), suppress(FileExistsError):
            files.pipe_file(f"{root}/{name}", content, mode="create")
            return True
        return False

    def remove(self, name: str) -> None:
        """Remove a file of object storage."""
        with self._storage() as (files, root):
            files.rm_file(f"{root}/{name}")

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        """Yield the folder itself, or of object storage a copy that is removed at the end."""
        if self.path is not None:
            yield self.path
            return
        with scratch_folder(self.run) as scratch:
            copy = scratch.path
            with self._storage() as (files, root):
                for name in files.find(root):
                    inner = name[len(root) :].lstrip("/")
                    if ".." in inner.split("/") or Path(inner).is_absolute():
                        raise DataError(f"{name}: leads out of its folder; delete it")
                    target = Path(copy, inner)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(files.cat_file(name))
            yield copy

    @contextmanager
    def _storage(self) -> Iterator[tuple[Any, str]]:
        """Yield fsspec's file system and the path of the folder in it."""
        STORAGE.require()
        from fsspec.core import url_to_fs

        try:
            files, root = url_to_fs(self.address)
        except ImportError as error:
            raise MissingExtraError(self.address, str(error)) from error
        except Exception as error:
            # Of any library of storage: the user reads what it says in one line.
            raise ConfigError(f"{self.address}: {_one_line(error)}") from error
        try:
            files.invalidate_cache()
            yield files, root.rstrip("/")
        except H2HTalkError:
            raise
        except Exception as error:
            if _raised_here(error):  # a bug of ours is no failure of the storage
                raise
            raise DataError(f"{self.address}: the storage failed: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    """What a library of storage says: some quote a whole page of XML, or say nothing."""
    return shorten(" ".join(str(error).split()), LONGEST_REASON) or type(error).__name__


def _raised_here(error: Exception) -> bool:
    """Whether an error was raised in this package, not in a library that it calls."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return isinstance(error, TypeError | AttributeError | NameError) and frames[-1].startswith(
        "h2htalk."
    )
