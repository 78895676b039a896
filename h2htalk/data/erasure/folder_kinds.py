"""The table of kinds of folders that are made from a workspace, and how an item leaves each of them.

A new kind is one record here, and the function that it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds


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
    """A kind of folder: its name in links, and the file that identifies it.

    `path`: `module:function` that removes items. Called with the folder and ErasedIds, it returns a FolderErasure; it
    may be called again at any time, also after a kill at any write.
    """

    name: str
    marker: str
    path: str

    def erase(self, folder: Path, erased: ErasedIds) -> FolderErasure:
        """Remove the items of erased ids from a folder. Raises H2HTalkError where it cannot."""
        module, _, name = self.path.partition(":")
        result: FolderErasure = getattr(import_module(module), name)(folder, erased)
        return result


FOLDER_KINDS: Mapping[str, FolderKind] = {
    kind.name: kind
    for kind in (
        FolderKind("round", "round.json", "h2htalk.rounds.erasure.from_round:erase_from_round"),
        FolderKind("run", "run.json", "h2htalk.benchmark.erasure:erase_from_run"),
        FolderKind("study", "study.json", "h2htalk.benchmark.studies.erasure:erase_from_study"),
        FolderKind("release", "release.json", "h2htalk.data.releases.erasure:erase_from_release"),
    )
}


def kind_of(folder: Path) -> FolderKind | None:
    """The kind of a folder by its marker; None for others."""
    return next((kind for kind in FOLDER_KINDS.values() if os.path.isfile(folder / kind.marker)), None)
