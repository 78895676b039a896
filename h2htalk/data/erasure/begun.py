"""Folders of commands that were killed at their start: items lie there, and no marker says yet what the folder is.

A run, an attempt, a study and a round are linked from their source before their items are written, and get their marker
(`run.json`, ...) last. An erasure removes what such a start left: nothing is lost, as the same command writes it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import (
    ERASED,
    FOLDER_KINDS,
    ErasedIds,
    FolderKind,
    Record,
    Start,
    erased_from_workspace,
    kind_of,
    read_erased,
    remove_for_good,
    require_erased,
)
from h2htalk.data.erasure.unfinished_erasure import MARK
from h2htalk.data.files import half_written_target, reading, writer_lock
from h2htalk.errors import DataError, quoted

BUSY = "wait for it, then start the same erasure again"


def find_start(folder: Path) -> FolderKind | None:
    """The kind that a folder was to become whose start was killed; None for all other folders.

    The folder holds nothing but what such a start writes, so that no file of somebody else is taken for one.
    """
    if not os.path.isdir(folder) or kind_of(folder) is not None:
        return None
    with reading(folder):
        names = frozenset(os.listdir(folder))
    for kind in FOLDER_KINDS.values():
        if kind.start is not None and _is_start(folder, names, kind, kind.start):
            return kind
    return None


def _is_start(folder: Path, names: frozenset[str], kind: FolderKind, start: Start) -> bool:
    written = {*start.texts, *start.without_texts, start.first, f"{start.log}.lock", MARK}
    strange = [name for name in names - written if not _is_half_written(name, kind)]
    first = folder / start.first
    if strange or not os.path.isfile(first) or os.path.islink(first):
        return False
    return not start.first_is_empty or not first.stat().st_size


def _is_half_written(name: str, kind: FolderKind) -> bool:
    """Whether `replacing` writes one of the kind's files by a file called `name`, and was killed."""
    return half_written_target(name) in kind.written


def remove_start(folder: Path, kind: FolderKind, start: Start) -> list[Path]:
    """Remove the items of a start that was killed; returns what was removed. Raises DataError where it still runs."""
    removed = []
    with writer_lock(folder / start.log, BUSY):
        # It was only slow, and finished its start before this had the lock.
        if kind_of(folder) is not None:
            raise DataError(
                f"{folder}: another process began it just now; start the same erasure again"
            )
        with reading(folder):
            names = sorted(os.listdir(folder))
        for name in names:
            if name in start.texts or _is_half_written(name, kind):
                remove_for_good(folder / name)
                removed.append(folder / name)
    return removed


def holds_items(folder: Path, kind: FolderKind) -> bool:
    """Whether a folder without its marker holds files by which its kind stores words of items."""
    names = kind.start.texts if kind.start is not None else ("data", *kind.derived.split())
    if any(os.path.lexists(folder / name) for name in names):
        return True
    if kind.start is None or not kind.start.first_is_empty:
        return False
    first = folder / kind.start.first
    return os.path.isfile(first) and first.stat().st_size > 0


def require_not_erased_since(source: Path, items: Iterable[tuple[str, Record | None]]) -> None:
    """Raise DataError where somebody was erased from a source after a command had read its items.

    Called after the new folder is linked: an erasure that begins later finds the link, an earlier one is found here.
    """
    require_erased(source)
    is_workspace = os.path.isfile(source / "workspace.json")
    erased = erased_from_workspace(source) if is_workspace else _erased_from_folder(source)
    if not (erased.ids or erased.items):
        return
    for name, record in items:
        # A workspace knows whose words a record holds, every other folder which items it has lost.
        if erased.covers_item(name, record if is_workspace else None):
            raise DataError(
                f"{source}: {quoted(name)} was erased from it while this command was reading it; "
                "start the same command again"
            )


def _erased_from_folder(folder: Path) -> ErasedIds:
    """The items that were erased from a round, a run, a study, or the release of a private folder."""
    kind = kind_of(folder)
    path = folder / ERASED
    if kind is None:
        path = folder.with_name(folder.name.removesuffix(".private")) / "tombstones.jsonl"
    elif kind.name == "round":
        path = folder / "private" / ERASED
    return ErasedIds(ids=frozenset(), items=frozenset(read_erased(path)))
