"""Links: what was made from a folder, in its `links.jsonl`, so that a history and an erasure can follow it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, kind_of
from h2htalk.data.files import read_jsonl, remove_file, write_jsonl, writer_lock
from h2htalk.data.releases.release_folder import HUB, is_release, private_folder
from h2htalk.data.scenario import is_workspace
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
    if not os.path.lexists(path := folder / FILE):
        return ()
    base, links = os.path.realpath(folder), []
    for where, record in read_jsonl(path, unique_keys=True):
        kind, target = record.get("kind"), record.get("target")
        if kind not in KINDS or not isinstance(target, str) or (kind == "hub") != target.startswith(HUB):
            form = f"kind ({', '.join(KINDS)}) and target, a path or, for hub, hub:OWNER/NAME@TAG"
            raise DataError(f"{where}: a link must hold {form}; correct the line")
        away = kind == "hub" or URL in target
        links.append(Link(kind, target, None if away else Path(os.path.normpath(os.path.join(base, target)))))
    return tuple(links)


def follow_links(links: Iterable[Link]) -> Iterator[tuple[Link, Path]]:
    """Yield the links to folders with their paths, each once; its own links are read after it was yielded."""
    waiting, seen = list(links), set()
    while waiting:
        link = waiting.pop(0)
        if link.path is not None and link.kind != COPY and (place := os.path.realpath(link.path)) not in seen:
            seen.add(place)
            yield link, link.path
            waiting = [*links_of(link.path), *waiting]


def links_of(folder: Path) -> tuple[Link, ...]:
    """The links of a folder, and of a release those of its private folder. Raises DataError."""
    return (*read_links(folder), *read_links(private_folder(folder)))


def add_link(folder: Path, kind: str, target: str | Path) -> None:
    """Record that `target` was made from a folder. A link that is there needs no right to write. Raises DataError."""
    # Real paths: `..` after a symbolic link leads elsewhere than its text says.
    away = kind == "hub" or URL in str(target)
    stored = str(target) if away else os.path.relpath(os.path.realpath(target), os.path.realpath(folder))
    if any((link.kind, link.target) == (kind, stored) for link in read_links(folder)):
        return
    with writer_lock(folder / FILE, "try again", timeout=60):  # many runs may start on one workspace together
        lines = dict.fromkeys([*((link.kind, link.target) for link in read_links(folder)), (kind, stored)])
        write_jsonl(folder / FILE, ({"kind": one, "target": to} for one, to in lines))


def remove_link(folder: Path, target: Path) -> None:
    """Remove the link to a folder that was not made after all."""
    stored = os.path.relpath(os.path.realpath(target), os.path.realpath(folder))
    with writer_lock(folder / FILE, "try again", timeout=60):
        if rest := [one for one in read_links(folder) if one.target != stored]:
            write_jsonl(folder / FILE, ({"kind": one.kind, "target": one.target} for one in rest))
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
    path = Path(text.rpartition("#")[0] if "#" in text and not os.path.lexists(text) else text)
    if text and is_workspace(path):
        return path
    if os.path.isfile(path / "stage.json") and is_workspace(path.parent):
        return path.parent
    if path.parent.name == "adjudication" and kind_of(path.parent.parent) in map(FOLDER_KINDS.get, ("run", "study")):
        return path.parent.parent
    return private if is_release(path) and (private := private_folder(path)).is_dir() else None
