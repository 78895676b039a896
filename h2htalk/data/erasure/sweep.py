"""Erase from every folder that was made from a workspace: those that links lead to, and those that the user names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import ErasedIds, FolderErasure, erase, erase_stored, kind_of, mark_folder
from h2htalk.data.links import COPY, URL, Link, follow_links, links_of, read_links
from h2htalk.data.releases.hub import delete_cached, delete_rows
from h2htalk.data.releases.release_folder import HUB, partial_folders, work_folders
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
    named = {os.path.realpath(path) for _, path in find_folders(also)}
    yield from (_sweep_stored(link, erased) for link in read_links(start) if URL in link.target)
    for kind, path, linked in _folders(start, also):
        swept = _sweep_folder(kind, path, erased)
        made: tuple[Link, ...] = ()
        with suppress(H2HTalkError):  # `follow_links` reports it for a linked folder; those of others are not followed
            made = links_of(path) if swept.items else ()
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
            yield from (found for link in made if (found := _sweep_copy(link, erased)))


def _folders(start: Path, also: Sequence[Path]) -> Iterator[tuple[str, Path, bool]]:
    """Yield each folder once: its kind, and whether links lead to it. Its own links are read after it was yielded.

    Sites come last: each is made again of several folders.
    """
    linked = ((link.kind, path, True) for link, path in follow_links(read_links(start)))
    seen, sites = set[str](), list[tuple[str, Path, bool]]()
    for found in chain(linked, ((*one, False) for one in find_folders(also))):
        if (place := os.path.realpath(found[1])) not in seen:
            seen.add(place)
            if found[0] == "site":
                sites.append(found)
            else:
                yield found
    yield from sites


def find_folders(bases: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield kind and path of the folders of all kinds in `bases`, these included. Symbolic links are not followed.

    What a command that was killed has left beside a release is named by the release.
    """
    for base in bases:
        for place, folders, _ in os.walk(base):
            folders.sort()
            if kind := kind_of(path := Path(place)):
                part = path.parent if path.name == "made" else path
                left = re.fullmatch(r"\.(.+)\.part", part.name) if kind.name == "release" else None
                whole = part.with_name(left[1]) if left else path
                yield kind.name, path if whole.is_symlink() else whole
                folders.clear()


def _sweep_folder(linked_as: str, path: Path, erased: ErasedIds) -> FolderErasure:
    try:
        if left := [one for one in partial_folders(path) if one.is_dir()] if linked_as == "release" else []:
            with work_folders(path):  # which removes them
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


def _sweep_stored(link: Link, erased: ErasedIds) -> FolderErasure:
    """An attempt at a shard on object storage."""
    try:
        return replace(erase_stored(link.target, erased), name=link.target)
    except H2HTalkError as error:
        return FolderErasure(messages=(str(error),), unfinished=True, name=link.target, kind=link.kind)


def _sweep_copy(link: Link, erased: ErasedIds) -> FolderErasure | None:
    """What lies on storage, a version on the Hub, or a page that is still there: each holds what the folder had when it
    was made."""
    if URL in link.target:
        return _sweep_stored(link, erased)
    if link.kind == "hub":
        repo, _, tag = link.target.removeprefix(HUB).partition("@")
        publish = "(`h2htalk release build` with this one as `previous`, then `h2htalk release publish`)"
        delete = (
            f"`hf repos tag delete {repo} {tag} --repo-type dataset`, and HfApi().super_squash_history for its commits"
        )
        message = f"{tag} on the Hub still holds the items: publish a version without them {publish}. Then {delete}"
        return _sweep_hub(link.target, f"{message}; or `hf repos settings {repo} --private --repo-type dataset`")
    if link.kind != COPY or link.path is None or not os.path.lexists(link.path):
        return None
    message = "shows items of a folder that lost some: if it was made before, make it again, or delete it"
    return FolderErasure(messages=(message,), name=_shown(link.path), kind=COPY)


def sweep_sources(names: Iterable[str]) -> Iterator[FolderErasure]:
    """Delete what this machine keeps of the data sets on the Hub, among `names`, that dialogues were gathered from."""
    message = "the data set on the Hub still holds the raw text, and gathering again loads it again"
    return (_sweep_hub(name, message) for name in sorted({*names}) if name.startswith(HUB))


def _sweep_hub(name: str, message: str) -> FolderErasure:
    """Delete what this machine keeps of a data set on the Hub, which itself is its owner's to delete."""
    deleted = [f"deleted from the cache: {one}" for one in delete_cached(name.removeprefix(HUB).partition("@")[0])]
    return FolderErasure(messages=(*deleted, message), name=name, kind="hub")


def _shown(path: Path) -> str:
    return min(os.path.relpath(path), str(path), key=len)
