"""What was made from a folder: rounds of a workspace or of a round, and releases; by its links, and by what lies near.

A workspace, a round and a release hold relative links to what was made from them (`data.links`). A round also knows the
path that it was opened from, which holds where the links were lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.workspace import Workspace
from h2htalk.data.links import Link, follow_links, links_of
from h2htalk.data.releases.release_folder import is_release, read_manifest
from h2htalk.data.stage_folders import is_workspace, last_candidates
from h2htalk.errors import H2HTalkError
from h2htalk.rounds.assignment.new_items import HeldItems, items_in_rounds
from h2htalk.rounds.questions import Kind
from h2htalk.rounds.round_folder import RoundFolder

CROWD: Kind = "crowd"
EXPERT: Kind = "expert"
_FOLLOWED = (
    "round",
    "release",
)  # kinds of links to folders for which a step of a curation may be due


@dataclass(frozen=True, slots=True)
class VotedCandidates:
    """The last candidates of a workspace: how many, how many of them no crowd round holds, and the rounds of others."""

    total: int
    without_round: int
    rounds: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class NearFolders:
    """The rounds and workspaces below a folder, or linked from there; `sources`: round -> what it was opened from."""

    rounds: tuple[Path, ...]
    workspaces: tuple[Path, ...]
    sources: Mapping[Path, Path]

    def rounds_of(self, folder: Path, kind: Kind) -> list[Path]:
        """The rounds of a kind that were opened from a workspace, its stages or a round, each once."""
        linked = [path for link, path in _links_from(folder) if link.kind == "round"]
        opened = [path for path in self.rounds if _is_of(self.sources.get(path), folder)]
        rounds = {path.resolve(): path for path in (*opened, *linked) if RoundFolder(path).exists}
        return [path for path in rounds.values() if _kind_of(path) == kind]

    def releases_of(self, round_folder: Path) -> list[Path]:
        """The releases that were built of what the people of a round decided."""
        stored = str(RoundFolder(round_folder).source_paths().get("workspace", ""))
        workspaces = list(self.workspaces)
        if stored and is_workspace(Path(stored)):
            workspaces.insert(0, Path(stored))
        releases: dict[Path, Path] = {}
        for workspace in workspaces:
            links = list(_links_from(workspace))
            if any(path.resolve() == round_folder.resolve() for _, path in links):
                releases |= {path.resolve(): path for link, path in links if link.kind == "release"}
        return [
            path
            for path in releases.values()
            if is_release(path) and f"people:{RoundFolder(round_folder).name}" in _readers_of(path)
        ]


def near_folders(rounds: Iterable[Path], workspaces: Iterable[Path]) -> NearFolders:
    """What the rounds here were opened from; damaged ones are left to their own lines."""
    round_paths = tuple(rounds)
    sources: dict[Path, Path] = {}
    for path in round_paths:
        try:
            items = str(RoundFolder(path).source_paths().get("items", ""))
        except H2HTalkError:
            continue
        if items:
            sources[path] = Path(items)
    return NearFolders(rounds=round_paths, workspaces=tuple(workspaces), sources=sources)


def linked_folders(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the rounds and releases that a folder links and that are there, with their kinds."""
    for link, path in _links_from(folder):
        exists = RoundFolder(path).exists if link.kind == "round" else is_release(path)
        if link.kind in _FOLLOWED and exists:
            yield path, link.kind


def voted_candidates(workspace: Workspace, folders: NearFolders) -> VotedCandidates:
    """Count the last candidates of a workspace that no crowd round holds. Raise DataError.

    Where every round over it took reviewed candidates of some statuses alone, others count as left out on purpose.
    """
    rounds = folders.rounds_of(workspace.path, CROWD)
    statuses = [RoundFolder(path).spec().status for path in rounds]
    wanted = set(chain.from_iterable(statuses)) if all(statuses) else set()
    names: list[str] = []
    for record in StageFolder(last_candidates(workspace.path)).records():
        review = record.get("review") or {}
        if not wanted or review.get("status") in wanted:
            names.append(str(record["scenario"]["id"]))
    in_rounds: HeldItems = items_in_rounds(CROWD, names, rounds)
    holding = tuple(path for path, _ in in_rounds.counts)
    return VotedCandidates(
        total=len(names), without_round=len(names) - len(in_rounds.ids), rounds=holding
    )


def _links_from(folder: Path) -> Iterator[tuple[Link, Path]]:
    """The links of a folder, and of what they lead to; none of one whose links cannot be read, as its line says."""
    try:
        yield from follow_links(links_of(folder))
    except H2HTalkError:
        return


def _is_of(source: Path | None, folder: Path) -> bool:
    """Whether a round was opened from a folder, or from a stage of it; a file in it is no part of it."""
    if source is None:
        return False
    is_stage = os.path.isfile(source / "stage.json") and source.parent.resolve() == folder.resolve()
    return is_stage or source.resolve() == folder.resolve()


def _kind_of(round_folder: Path) -> str:
    try:
        return str(RoundFolder(round_folder).spec().kind)
    except H2HTalkError:
        return ""  # its own line says what is wrong with it


def _readers_of(release: Path) -> Mapping[str, Any]:
    try:
        readers: Mapping[str, Any] = (read_manifest(release).facts.get("reads") or {}).get(
            "readers", {}
        )
    except H2HTalkError:
        return {}
    return readers
