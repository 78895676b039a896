"""The table of kinds of folders that are made from a workspace, and how an item leaves each of them.

A new kind is one record here, and the function that it names. While an erasure works on a folder, and after a kill, the
folder holds the file `.erasing`: its readers call `require_erased`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import MARK, remove_for_good
from h2htalk.data.files import write_text
from h2htalk.errors import DataError

_here: set[str] = set()  # the folders from which this process erases now


@dataclass(frozen=True, slots=True)
class FolderErasure:
    """What an erasure did in one folder, or for a version on the Hub; `kind` is empty where nothing is there.

    Attributes:
        removed: how many items it removed now.
        items: ids of all items that were ever erased from it: what was made from it may hold them.
        messages: what it could not reach, with the command or page that does it.
        unfinished: whether the same erasure must be started again, because something did not answer.
    """

    removed: int = 0
    items: frozenset[str] = frozenset()
    messages: tuple[str, ...] = ()
    unfinished: bool = False
    name: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: its name in links, the file that identifies it, and the command that shows it.

    `path`: `module:function` that removes items, `marked`. Called with the folder and ErasedIds, it returns a
    FolderErasure; it may be called again at any time, also after a kill at any write.
    """

    name: str
    marker: str
    path: str
    shown_by: str

    def erase(self, folder: Path, erased: ErasedIds) -> FolderErasure:
        """Remove the items of erased ids from a folder. Raises H2HTalkError where it cannot."""
        result: FolderErasure = _load(self.path)(folder, erased)
        return result


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


FOLDER_KINDS: Mapping[str, FolderKind] = {
    kind.name: kind
    for kind in (
        FolderKind("round", "round.json", "h2htalk.rounds.erasure.from_round:erase_from_round", "round status"),
        FolderKind("run", "run.json", "h2htalk.benchmark.erasure:erase_from_run", "report"),
        FolderKind("study", "study.json", "h2htalk.benchmark.studies.erasure:erase_from_study", "study score"),
        FolderKind("release", "release.json", "h2htalk.data.releases.erasure:erase_from_release", "release check"),
    )
}


def require_folder_kind(folder: Path, name: str) -> None:
    """Raise DataError, naming the command that shows it, for a folder of another kind."""
    if (kind := kind_of(folder)) is not None and kind.name != name:
        what = f"is a {kind.name}, and this command needs a {name}"
        raise DataError(f"{folder}: {what}; `h2htalk {kind.shown_by} {folder}` shows it")


def mark_folder(folder: Path) -> None:
    """Mark a folder from which somebody is to be erased; one that cannot be written cannot be half erased either."""
    with suppress(DataError):
        if not os.path.lexists(folder / MARK):
            write_text(folder / MARK, "")


def require_erased(folder: Path) -> None:
    """Raise DataError where an erasure from a folder is not finished, unless it is this process that erases there."""
    if os.path.lexists(folder / MARK) and os.path.realpath(folder) not in _here:
        raise DataError(f"{folder}: an erasure was interrupted here; start the same `h2htalk curate erase` again")


def require_published_erased(release: Path) -> None:
    """Raise DataError where the workspace of a release is erasing, or has erased, somebody whose words it holds."""
    _load("h2htalk.curation.release.check:require_erased_release")(release)


def marked(erase: Callable[[Path, ErasedIds], FolderErasure]) -> Callable[[Path, ErasedIds], FolderErasure]:
    """Keep a folder marked while a function erases from it. Where it fails or is killed, the mark stays."""

    @wraps(erase)
    def erasing(path: Path, erased: ErasedIds) -> FolderErasure:
        place = os.path.realpath(path)
        mark_folder(path)
        _here.add(place)
        try:
            result = erase(path, erased)
            remove_for_good(path / MARK)
        finally:
            _here.discard(place)
        return result

    return erasing


def kind_of(folder: Path) -> FolderKind | None:
    """The kind of a folder by its marker; None for others."""
    return next((kind for kind in FOLDER_KINDS.values() if os.path.isfile(folder / kind.marker)), None)
