"""Erase from every folder that was made from a workspace: those that links lead to, and those that the user names."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.folder_kinds import FolderErasure, kind_of
from h2htalk.data.links import HUB, Link, read_links
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.errors import H2HTalkError


@dataclass(frozen=True, slots=True)
class SweptFolder:
    """One folder, or one version on the Hub, and what an erasure did there; `kind` is empty where nothing is there."""

    name: str
    kind: str
    result: FolderErasure


def sweep(start: Path, erased: ErasedIds, also: Sequence[Path] = ()) -> Iterator[SweptFolder]:
    """Erase from all folders linked from one, from those linked from them, and from all folders inside others.

    What cannot be erased from one folder is in its result, and the next folders follow.

    Args:
        start: a workspace; it is not changed itself.
        erased: what was erased from it.
        also: folders; those inside them are recognised by the files that identify them.
    """
    waiting = deque([*read_links(start), *(Link(kind, str(path), path) for path, kind in find_folders(also))])
    seen: set[str] = set()
    while waiting:
        link = waiting.popleft()
        place = link.target if link.path is None else os.path.realpath(link.path)
        if place in seen:
            continue
        seen.add(place)
        if link.path is None:
            yield _sweep_hub(link.target)
            continue
        swept = _sweep_folder(link, erased)
        yield swept
        # A scenario in a run does not tell whose words its reference holds, a tie not what its item rests on.
        erased = erased.including(swept.result.items)
        # Its own links are of interest even where it could not be changed. On the Hub is what it had when it was built.
        for folder in (link.path, private_folder(link.path)):
            waiting += [one for one in read_links(folder) if one.path is not None or swept.result.items]


def find_folders(bases: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the folders of all kinds in `bases`, these included, with their kind. Symbolic links are not followed."""
    for base in bases:
        for path, folders, _ in os.walk(base):
            folders.sort()
            if (kind := kind_of(Path(path))) is not None:
                yield Path(path), kind.name
                folders.clear()


def _sweep_folder(link: Link, erased: ErasedIds) -> SweptFolder:
    assert link.path is not None
    name, kind = os.path.relpath(link.path), kind_of(link.path)
    if len(name) > len(str(link.path)):
        name = str(link.path)
    try:
        left = _remove_leftovers(link.path) if link.kind == "release" else ()
        if kind is None:
            message = f"this {link.kind} is not there any more; if it was moved, name its folder with --also"
            return SweptFolder(name, "", FolderErasure(messages=(*left, message)))
        return SweptFolder(name, kind.name, kind.erase(link.path, erased))
    except H2HTalkError as error:
        return SweptFolder(name, kind.name if kind else "", FolderErasure(messages=(str(error),), unfinished=True))


def _remove_leftovers(release: Path) -> tuple[str, ...]:
    from h2htalk.data.releases.erasure import remove_leftovers

    return tuple(f"deleted, left by a build that was killed: {path}" for path in remove_leftovers(release))


def _sweep_hub(name: str) -> SweptFolder:
    """Delete what this machine keeps of a version on the Hub; the version itself is its owner's to delete."""
    from h2htalk.data.releases.hub import delete_cached

    repo, _, tag = name.removeprefix(HUB).partition("@")
    removed = [f"deleted from the cache: {path}" for path in delete_cached(repo)]
    options = "--repo-type dataset"
    message = (
        f"{tag} on the Hub still holds the items: publish a version without them (`h2htalk release build` with this "
        f"one as `previous`, then `h2htalk release publish`). Then `hf repos tag delete {repo} {tag} {options}`, and "
        f"HfApi().super_squash_history for its commits; or `hf repos settings {repo} --private {options}`"
    )
    return SweptFolder(name, "hub", FolderErasure(messages=(*removed, message)))
