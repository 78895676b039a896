"""Erase from every folder that was made from a workspace: those that links lead to, and those that the user names."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from h2htalk.addresses import without_passwords
from h2htalk.data.erasure.begun import find_start, holds_items, remove_start
from h2htalk.data.erasure.folder_kinds import (
    FOLDER_KINDS,
    ErasedIds,
    FolderErasure,
    erase,
    erase_stored,
    kind_of,
    mark_folder,
)
from h2htalk.data.links import COPY, URL, Link, follow_links, links_of, read_links
from h2htalk.data.releases.release_folder import HUB, partial_folders, work_folders
from h2htalk.errors import H2HTalkError, listed


def mark_folders(start: Path, also: Sequence[Path] = ()) -> None:
    """Mark a workspace and all folders that `sweep` will reach: nobody opens them until it has been there."""
    paths = [path for _, path, _ in _folders(start, also)]
    for path in (start, *paths):
        if path == start or kind_of(path) is not None:
            mark_folder(path)


def sweep(start: Path, erased: ErasedIds, also: Sequence[Path] = ()) -> Iterator[FolderErasure]:
    """Erase from all folders linked from a workspace, from those linked from them, and from all folders inside `also`.

    Folders inside `also` may be anybody's: what they list as erased touches no other folder, and their links are named.
    What cannot be erased from one folder is in its result, and the next folders follow.
    """
    named = {os.path.realpath(path) for _, path in find_folders(also)}
    for link in read_links(start):
        if URL in link.target:
            yield _sweep_stored(link, erased)
    for kind, path, linked in _folders(start, also):
        result = _sweep_folder(kind, path, erased)
        links: tuple[Link, ...] = ()
        if result.items:
            # `follow_links` reports an error of a linked folder; links of other folders are not followed.
            with suppress(H2HTalkError):
                links = links_of(path)
        if not linked:
            yield _name_unfollowed(result, links, named)
            continue
        yield result
        # A scenario in a run does not tell whose words its reference holds, a tie not what its item rests on.
        erased = replace(erased, items=erased.items | result.items)
        for link in links:
            copy = _sweep_copy(link, erased)
            if copy is not None:
                yield copy


def _name_unfollowed(
    result: FolderErasure, links: Iterable[Link], named: Collection[str]
) -> FolderErasure:
    """Name, in the result of a folder inside `also`, its links to folders that are not `named`."""
    unfollowed = [
        link for link in links if link.path is None or os.path.realpath(link.path) not in named
    ]
    if not unfollowed:
        return result
    targets = listed([link.path or link.target for link in unfollowed])
    message = f"links of a folder of --also are not followed; those that are yours, name there too: {targets}"
    leads_on = any(link.path is not None and kind_of(link.path) for link in unfollowed)
    return replace(
        result,
        messages=(*result.messages, message),
        unfinished=result.unfinished or leads_on,
    )


def _folders(start: Path, also: Sequence[Path]) -> Iterator[tuple[str, Path, bool]]:
    """Yield each folder once: its kind, and whether links lead to it. Its own links are read after it was yielded.

    Sites come last: each is made again of several folders.
    """
    linked = ((link.kind, path, True) for link, path in follow_links(read_links(start)))
    named = ((kind, path, False) for kind, path in find_folders(also))
    seen: set[str] = set()
    sites: list[tuple[str, Path, bool]] = []
    for entry in chain(linked, named):
        kind, path, _ = entry
        real_path = os.path.realpath(path)
        if real_path in seen:
            continue
        seen.add(real_path)
        if kind == "site":
            sites.append(entry)
        else:
            yield entry
    yield from sites


def find_folders(bases: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield kind and path of the folders of all kinds in `bases`, these included. Symbolic links are not followed.

    What a command that was killed has left beside a release is named by the release.
    """
    for base in bases:
        for name, folders, _ in os.walk(base):
            folders.sort()
            path = Path(name)
            kind = kind_of(path) or find_start(path)
            if kind is None:
                continue
            if kind.name == "release":
                path = _release_of_partial(path)
            yield kind.name, path
            folders.clear()


def _release_of_partial(path: Path) -> Path:
    """The release whose killed build has left a folder, `.NAME.part` or `made` in it; other folders as they are."""
    partial = path.parent if path.name == "made" else path
    match = re.fullmatch(r"\.(.+)\.part", partial.name)
    if match is None:
        return path
    release = partial.with_name(match[1])
    return path if release.is_symlink() else release


def _sweep_folder(linked_as: str, path: Path, erased: ErasedIds) -> FolderErasure:
    try:
        partials: list[Path] = []
        if linked_as == "release":
            partials = [folder for folder in partial_folders(path) if folder.is_dir()]
        if partials:
            with work_folders(path):  # which removes them
                pass
        result = erase(path, erased)
        messages = [_left_message(partial) for partial in partials]
        if not result.kind:
            result = _sweep_unmarked(linked_as, path)
            # What was removed comes before what was not there.
            messages += result.messages
        else:
            messages = [*result.messages, *messages]
            if result.items and result.kind == "release":
                from h2htalk.data.releases.hub import (
                    delete_rows,  # the Hub's client is slow to load
                )

                rows = delete_rows(path.resolve().name)
                messages += [f"deleted from the cache: {folder}" for folder in rows]
        result = replace(result, messages=tuple(messages))
    except H2HTalkError as error:
        kind = kind_of(path)
        result = FolderErasure(
            messages=(str(error),), unfinished=True, kind=kind.name if kind else ""
        )
    return replace(result, name=_shown(path))


def _sweep_unmarked(linked_as: str, path: Path) -> FolderErasure:
    """Remove what a start that was killed left in a folder without a marker; say so where nothing can be erased."""
    started = find_start(path)
    if started is not None and started.start is not None:
        removed = remove_start(path, started, started.start)
        return FolderErasure(messages=tuple(map(_left_message, removed)), kind=linked_as)
    kind = FOLDER_KINDS[linked_as]
    if holds_items(path, kind):
        message = f"its {kind.marker} is missing, so nothing can be erased from it: put that back, or delete the folder"
        return FolderErasure(messages=(message,), unfinished=True, kind=linked_as)
    message = (
        f"this {linked_as} is not there any more; if it was moved, name its folder with --also"
    )
    return FolderErasure(messages=(message,))


def _left_message(path: Path) -> str:
    return f"deleted, left by a command that was killed: {path}"


def _sweep_stored(link: Link, erased: ErasedIds) -> FolderErasure:
    """An attempt at a shard on object storage."""
    name = without_passwords(link.target)  # an earlier version stored addresses as they were typed
    try:
        return replace(erase_stored(link.target, erased), name=name)
    except H2HTalkError as error:
        return FolderErasure(messages=(str(error),), unfinished=True, name=name, kind=link.kind)


def _sweep_copy(link: Link, erased: ErasedIds) -> FolderErasure | None:
    """What lies on storage, a version on the Hub, or a page that is still there: each holds what the folder had when it
    was made."""
    if URL in link.target:
        return _sweep_stored(link, erased)
    if link.kind == "hub":
        repo, _, tag = link.target.removeprefix(HUB).partition("@")
        publish = (
            "(`h2htalk release build` with this one as `previous`, then `h2htalk release publish`)"
        )
        delete = (
            f"`hf repos tag delete {repo} {tag} --repo-type dataset`, and HfApi().super_squash_history for "
            f"its commits"
        )
        message = f"{tag} on the Hub still holds the items: publish a version without them {publish}. Then {delete}"
        return _sweep_hub(
            link.target, f"{message}; or `hf repos settings {repo} --private --repo-type dataset`"
        )
    if link.kind != COPY or link.path is None or not os.path.lexists(link.path):
        return None
    message = (
        "shows items of a folder that lost some: if it was made before, make it again, or delete it"
    )
    return FolderErasure(messages=(message,), name=_shown(link.path), kind=COPY)


def sweep_sources(names: Iterable[str]) -> Iterator[FolderErasure]:
    """Delete what this machine keeps of the data sets on the Hub, among `names`, that dialogues were gathered from."""
    message = "the data set on the Hub still holds the raw text, and gathering again loads it again"
    return (_sweep_hub(name, message) for name in sorted({*names}) if name.startswith(HUB))


def _sweep_hub(name: str, message: str) -> FolderErasure:
    """Delete what this machine keeps of a data set on the Hub, which itself is its owner's to delete."""
    from h2htalk.data.releases.hub import delete_cached  # the Hub's client is slow to load

    repo, _, _ = name.removeprefix(HUB).partition("@")
    deleted = [f"deleted from the cache: {folder}" for folder in delete_cached(repo)]
    return FolderErasure(messages=(*deleted, message), name=name, kind="hub")


def _shown(path: Path) -> str:
    return min(os.path.relpath(path), str(path), key=len)
