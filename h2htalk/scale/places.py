"""Places: a folder on a file system, or on object storage that fsspec knows by its URL (`s3://bucket/folder`).

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
from tempfile import TemporaryDirectory
from typing import Any

from h2htalk.data.files import read_bounded, reading, writing
from h2htalk.data.links import URL
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError


@dataclass(frozen=True, slots=True)
class Place:
    """A folder by its path or URL. Methods raise DataError where it cannot be read or written."""

    text: str

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.text.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return self.text.rstrip("/").rpartition("/")[2]

    @property
    def path(self) -> Path | None:
        """The path of a folder on a file system; None on object storage."""
        plain = self.text.removeprefix("file://")
        return None if URL in plain else Path(plain)

    def names(self) -> list[str]:
        """The names of the files and folders in it, sorted; none where it does not exist."""
        if self.path is not None:
            with reading(self.path):
                return sorted(os.listdir(self.path)) if self.path.is_dir() else []
        with self._storage() as (files, root):
            found = [one.rstrip("/") for one in files.ls(root, detail=False)] if files.exists(root) else []
            return sorted({one.rpartition("/")[2] for one in found} - {root.rpartition("/")[2]})

    def read(self, name: str) -> bytes | None:
        """The content of a file in it; None where there is none."""
        if self.path is not None:
            with reading(self.path / name):
                return read_bounded(self.path / name, 1 << 40) if (self.path / name).is_file() else None
        with self._storage() as (files, root):
            return bytes(files.cat_file(f"{root}/{name}")) if files.exists(f"{root}/{name}") else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file of object storage, whole or not at all."""
        with self._storage() as (files, root):
            files.pipe_file(f"{root}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file, whole; False where one of the name is there. One of several writers wins, also on NFS."""
        if self.path is not None:
            own = self.path / f".{name}.{secrets.token_hex(6)}"
            with writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                try:
                    own.write_bytes(content)
                    os.link(own, self.path / name)  # which, unlike a rename, fails where the name is taken
                    return True
                except FileExistsError:
                    return False
                finally:
                    own.unlink(missing_ok=True)
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
        with TemporaryDirectory(prefix="h2htalk-") as copy:
            with self._storage() as (files, root):
                for name in files.find(root):
                    inner = name[len(root) :].lstrip("/")
                    if ".." in inner.split("/") or Path(inner).is_absolute():
                        raise DataError(f"{name}: leads out of its folder; delete it")
                    target = Path(copy, inner)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(files.cat_file(name))
            yield Path(copy)

    @contextmanager
    def _storage(self) -> Iterator[tuple[Any, str]]:
        """Yield fsspec's file system and the path of the folder in it."""
        from fsspec.core import url_to_fs

        try:
            files, root = url_to_fs(self.text)
        except ImportError as error:
            raise MissingExtraError(self.text, str(error)) from error
        except ValueError as error:
            raise ConfigError(f"{self.text}: {error}") from error
        try:
            files.invalidate_cache()
            yield files, root.rstrip("/")
        except (H2HTalkError, TypeError, AttributeError, NameError):  # a bug of ours is no failure of the storage
            raise
        except Exception as error:
            raise DataError(f"{self.text}: the storage failed: {str(error) or type(error).__name__}") from error
