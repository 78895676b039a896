"""Links: what was made from a folder, in its `links.jsonl`, so that a history and an erasure can follow it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.addresses import REFUSED, holds_password
from h2htalk.data.erasure.begun import require_not_erased_since
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, Record, kind_of
from h2htalk.data.files import read_jsonl, remove_file, write_jsonl, writer_lock
from h2htalk.data.readers.item_reads import holds_exposed
from h2htalk.data.releases.release_folder import HUB, is_release, private_folder
from h2htalk.data.stage_folders import is_workspace
from h2htalk.errors import DataError

COPY = "copy"
KINDS = (*FOLDER_KINDS, "hub", COPY)
FILE = "links.jsonl"
URL = "://"  # in the target of a link to object storage


@dataclass(frozen=True, slots=True)
class Link:
    """What was made from a folder, by relative path, URL or `hub:OWNER/NAME@TAG`; `path`: None for the last two."""

    kind: str
    target: str
    path: Path | None


def read_links(folder: Path) -> tuple[Link, ...]:
    """Return the links of a folder in the order of adding; none without `links.jsonl`. Raises DataError."""
    path = folder / FILE
    if not os.path.lexists(path):
        return ()
    base = os.path.realpath(folder)
    links = []
    for where, record in read_jsonl(path, unique_keys=True):
        kind: Any = record.get("kind")
        target: Any = record.get("target")
        is_text = isinstance(kind, str) and isinstance(target, str)
        if not is_text or kind not in KINDS or (kind == "hub") != target.startswith(HUB):
            raise DataError(
                f"{where}: a link must hold "
                f"kind ({', '.join(KINDS)}) and target, a path or, for hub, hub:OWNER/NAME@TAG; "
                "correct the line"
            )
        linked_path = None
        if not _is_elsewhere(kind, target):
            linked_path = Path(os.path.normpath(os.path.join(base, target)))
        links.append(Link(kind=kind, target=target, path=linked_path))
    return tuple(links)


def _is_elsewhere(kind: str, target: str) -> bool:
    """Whether a link leads to the Hub or to object storage, and not to a folder of this machine."""
    return kind == "hub" or URL in target


def follow_links(links: Iterable[Link]) -> Iterator[tuple[Link, Path]]:
    """Yield the links to folders with their paths, each once; its own links are read after it was yielded."""
    waiting = list(links)
    seen = set()
    while waiting:
        link = waiting.pop(0)
        if link.path is None or link.kind == COPY:
            continue
        real_path = os.path.realpath(link.path)
        if real_path not in seen:
            seen.add(real_path)
            yield link, link.path
            waiting = [*links_of(link.path), *waiting]


def links_of(folder: Path) -> tuple[Link, ...]:
    """The links of a folder, and of a release those of its private folder. Raises DataError."""
    return (*read_links(folder), *read_links(private_folder(folder)))


def add_link(folder: Path, kind: str, target: str | Path) -> None:
    """Record that `target` was made from a folder. A link that is there needs no right to write. Raises DataError."""
    stored = str(target)
    if holds_password([stored]):
        raise DataError(REFUSED)
    if not _is_elsewhere(kind, stored):
        # Real paths: `..` after a symbolic link leads elsewhere than its text says.
        stored = os.path.relpath(os.path.realpath(target), os.path.realpath(folder))
    if (kind, stored) in _entries(folder):
        return
    # Many runs may start on one workspace together.
    with writer_lock(folder / FILE, "try again", timeout=60):
        _write_entries(folder, [*_entries(folder), (kind, stored)])


def _entries(folder: Path) -> list[tuple[str, str]]:
    """Kind and target of each link of a folder."""
    return [(link.kind, link.target) for link in read_links(folder)]


def _write_entries(folder: Path, entries: Iterable[tuple[str, str]]) -> None:
    """Write links, each once."""
    records = [{"kind": kind, "target": target} for kind, target in dict.fromkeys(entries)]
    write_jsonl(folder / FILE, records)


def link_items(
    source: Path, kind: str, target: str | Path, items: Iterable[tuple[str, Record | None]]
) -> None:
    """Record that a folder is to hold items of a source, before it does.

    Raises DataError, also where an item was erased since it was read.
    """
    add_link(source, kind, target)
    require_not_erased_since(source, items)


def remove_link(folder: Path, target: Path) -> None:
    """Remove the link to a folder that was not made after all."""
    stored = os.path.relpath(os.path.realpath(target), os.path.realpath(folder))
    with writer_lock(folder / FILE, "try again", timeout=60):
        remaining = [entry for entry in _entries(folder) if entry[1] != stored]
        if remaining:
            _write_entries(folder, remaining)
        else:
            remove_file(folder / FILE)


def link_copies(folders: Iterable[Path], target: Path) -> None:
    """Record in runs or studies a page or file that shows their items, before it is written, or say that it failed."""
    for folder in folders:
        try:
            if kind_of(folder) is not None:  # else a log of another harness
                add_link(folder, COPY, target)
        except DataError as error:
            print(f"{target}: an erasure from {folder} will not name it: {error}", file=sys.stderr)


def link_folder(source: str | Path) -> Path | None:
    """Return the workspace, run, study, or private folder of a release that links what is made from a source."""
    text = str(source)
    path = Path(text)
    if "#" in text and not os.path.lexists(text):
        path = Path(text.rpartition("#")[0])
    if text and is_workspace(path):
        return path
    if os.path.isfile(path / "stage.json") and is_workspace(path.parent):
        return path.parent
    if is_workspace(path.parent) and holds_exposed(path):
        return path.parent
    if path.parent.name == "adjudication":
        run = path.parent.parent
        kind = kind_of(run)
        if kind is not None and kind.name in ("run", "study"):
            return run
    if is_release(path):
        private = private_folder(path)
        return private if private.is_dir() else None
    return None
