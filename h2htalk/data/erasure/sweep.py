"""Erase from every folder that was made from a workspace: those that links lead to, and those that the user names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.folder_kinds import FolderErasure, kind_of
from h2htalk.data.links import HUB, Link, follow_links, read_links
from h2htalk.data.releases.erasure import remove_leftovers
from h2htalk.data.releases.hub import delete_cached
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.errors import H2HTalkError


def sweep(start: Path, erased: ErasedIds, also: Sequence[Path] = ()) -> Iterator[FolderErasure]:
    """Erase from all folders linked from a workspace, from those linked from them, and from all folders inside `also`.

    What cannot be erased from one folder is in its result, and the next folders follow.
    """
    for link, path in follow_links([*read_links(start), *find_folders(also)]):
        swept = _sweep_folder(link.kind, path, erased)
        yield swept
        # A scenario in a run does not tell whose words its reference holds, a tie not what its item rests on.
        erased = replace(erased, items=erased.items | swept.items)
        # On the Hub is what a release had when it was built.
        published = read_links(private_folder(path)) if swept.items else ()
        yield from (_sweep_hub(one.target) for one in published if one.kind == "hub")


def find_folders(bases: Sequence[Path]) -> Iterator[Link]:
    """Yield links to the folders of all kinds in `bases`, these included. Symbolic links are not followed."""
    for base in bases:
        for path, folders, _ in os.walk(base):
            folders.sort()
            if (kind := kind_of(Path(path))) is not None:
                yield Link(kind.name, path, Path(path))
                folders.clear()


def _sweep_folder(linked_as: str, path: Path, erased: ErasedIds) -> FolderErasure:
    kind = kind_of(path)
    try:
        left = remove_leftovers(path) if linked_as == "release" else ()
        if kind is not None:
            result = kind.erase(path, erased)
        else:
            gone = f"this {linked_as} is not there any more; if it was moved, name its folder with --also"
            killed = (f"deleted, left by a build that was killed: {one}" for one in left)
            result = FolderErasure(messages=(*killed, gone))
    except H2HTalkError as error:
        result = FolderErasure(messages=(str(error),), unfinished=True)
    shown = min(os.path.relpath(path), str(path), key=len)
    return replace(result, name=shown, kind=kind.name if kind else "")


def _sweep_hub(name: str) -> FolderErasure:
    """Delete what this machine keeps of a version on the Hub; the version itself is its owner's to delete."""
    repo, _, tag = name.removeprefix(HUB).partition("@")
    removed = [f"deleted from the cache: {path}" for path in delete_cached(repo)]
    options = "--repo-type dataset"
    message = (
        f"{tag} on the Hub still holds the items: publish a version without them (`h2htalk release build` with this "
        f"one as `previous`, then `h2htalk release publish`). Then `hf repos tag delete {repo} {tag} {options}`, and "
        f"HfApi().super_squash_history for its commits; or `hf repos settings {repo} --private {options}`"
    )
    return FolderErasure(messages=(*removed, message), name=name, kind="hub")
