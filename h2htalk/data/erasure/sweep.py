"""Erase from every folder that was made from a workspace: those that links lead to, and those that the user names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.folder_kinds import FolderErasure, erase, kind_of, mark_folder
from h2htalk.data.links import COPY, Link, follow_links, read_links
from h2htalk.data.releases.erasure import partial_folders, work_folder
from h2htalk.data.releases.hub import delete_cached, delete_rows
from h2htalk.data.releases.release_folder import HUB, private_folder
from h2htalk.errors import H2HTalkError, listed


def mark_folders(start: Path, also: Sequence[Path] = ()) -> None:
    """Mark a workspace and all folders that `sweep` will reach: nobody opens them until it has been there."""
    for path in (start, *(path for _, path, _ in _folders(start, also))):
        if path == start or kind_of(path) is not None:
            mark_folder(path)


def sweep(start: Path, erased: ErasedIds, also: Sequence[Path] = ()) -> Iterator[FolderErasure]:
    """Erase from all folders linked from a workspace, from those linked from them, and from all folders inside `also`.

    Folders inside `also` may be anybody's: what they list as erased touches no other folder, and their links are named.
    What cannot be erased from one folder is in its result, and the next folders follow.
    """
    named = {os.path.realpath(one.target) for one in find_folders(also)}
    for link, path, linked in _folders(start, also):
        swept = _sweep_folder(link.kind, path, erased)
        try:
            made = (*read_links(path), *read_links(private_folder(path))) if swept.items else ()
        except H2HTalkError:  # `follow_links` reports it for a linked folder; those of others are not followed
            made = ()
        others = [one for one in made if not one.path or os.path.realpath(one.path) not in named]
        if others and not linked:
            targets = listed([one.path or one.target for one in others])
            message = f"links of a folder of --also are not followed; those that are yours, name there too: {targets}"
            unfinished = swept.unfinished or any(kind_of(one.path) for one in others if one.path)
            swept = replace(swept, messages=(*swept.messages, message), unfinished=unfinished)
        yield swept
        if linked:
            # A scenario in a run does not tell whose words its reference holds, a tie not what its item rests on.
            erased = replace(erased, items=erased.items | swept.items)
            # On the Hub, and on a page, is what the folder had when that was made.
            yield from (_sweep_hub(one.target) for one in made if one.kind == "hub")
            message = "shows items of a folder that lost some: if it was made before, make it again, or delete it"
            for copy in (one.path for one in made if one.kind == COPY and one.path and os.path.lexists(one.path)):
                yield FolderErasure(messages=(message,), name=_shown(copy), kind=COPY)


def _folders(start: Path, also: Sequence[Path]) -> Iterator[tuple[Link, Path, bool]]:
    """Yield each folder once, with whether links lead to it; its own links are read after it was yielded."""
    linked = ((link, path, True) for link, path in follow_links(read_links(start)))
    named = ((link, Path(link.target), False) for link in find_folders(also))
    seen: set[str] = set()
    for link, path, is_linked in chain(linked, named):
        if (place := os.path.realpath(path)) not in seen:
            seen.add(place)
            yield link, path, is_linked


def find_folders(bases: Sequence[Path]) -> Iterator[Link]:
    """Yield links to the folders of all kinds in `bases`, these included. Symbolic links are not followed."""
    for base in bases:
        for path, folders, _ in os.walk(base):
            folders.sort()
            if (kind := kind_of(Path(path))) is not None:
                whole = _whole_release(Path(path)) if kind.name == "release" else Path(path)
                yield Link(kind.name, str(whole), whole)
                folders.clear()


def _whole_release(path: Path) -> Path:
    """The release beside which a command made a folder that a kill has left; else the folder itself."""
    part = path.parent if path.name == "made" else path
    match = re.fullmatch(r"\.(.+)\.part", part.name)
    whole = part.with_name(match[1]) if match else path
    return path if whole.is_symlink() else whole


def _sweep_folder(linked_as: str, path: Path, erased: ErasedIds) -> FolderErasure:
    try:
        if left := [one for one in partial_folders(path) if one.is_dir()] if linked_as == "release" else []:
            with work_folder(path):  # which removes them
                pass
        result = erase(path, erased)
        more = [f"deleted, left by a command that was killed: {one}" for one in left]
        if not result.kind:
            more.append(f"this {linked_as} is not there any more; if it was moved, name its folder with --also")
        elif result.items and result.kind == "release":
            more += [f"deleted from the cache: {rows}" for rows in delete_rows(path.resolve().name)]
        result = replace(result, messages=(*result.messages, *more))
    except H2HTalkError as error:
        kind = kind_of(path)
        result = FolderErasure(messages=(str(error),), unfinished=True, kind=kind.name if kind else "")
    return replace(result, name=_shown(path))


def sweep_source(name: str) -> FolderErasure:
    """Delete what this machine keeps of a data set on the Hub that dialogues were gathered from."""
    return _sweep_hub(name, "the data set on the Hub still holds the raw text, and gathering again loads it again")


def _sweep_hub(name: str, message: str = "") -> FolderErasure:
    """Delete what this machine keeps of a version on the Hub; the version itself is its owner's to delete."""
    repo, _, tag = name.removeprefix(HUB).partition("@")
    message = message or (
        f"{tag} on the Hub still holds the items: publish a version without them (`h2htalk release build` with this "
        f"one as `previous`, then `h2htalk release publish`). Then `hf repos tag delete {repo} {tag} --repo-type "
        f"dataset`, and HfApi().super_squash_history for its commits; or `hf repos settings {repo} --private "
        "--repo-type dataset`"
    )
    deleted = [f"deleted from the cache: {one}" for one in delete_cached(repo)]
    return FolderErasure(messages=(*deleted, message), name=name, kind="hub")


def _shown(path: Path) -> str:
    return min(os.path.relpath(path), str(path), key=len)
