"""Say which step is due for each folder below a folder: run, attempt, study, round, release, curation.

Rounds and releases that a workspace or a round links are told too, wherever they are.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.released import describe_unread, describe_what_followed, published_as
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError, counted
from h2htalk.rounds.status import Status, list_rounds
from h2htalk.site.made_from import (
    CROWD,
    EXPERT,
    NearFolders,
    linked_folders,
    near_folders,
    voted_candidates,
)
from h2htalk.site.runs import Facts, find_folders, read_facts, why_damaged

_RUN = "h2htalk curate run SPEC"
_REVIEW = "review"  # the one stage without which people can vote


@dataclass(frozen=True, slots=True)
class Step:
    """What is due for a folder, and the command that does it; empty where none does, or nothing is due."""

    what: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class _ListedFolder:
    """A folder of a kind, and what `h2htalk runs` says of it."""

    path: Path
    kind: str
    facts: Facts


def next_steps(folder: Path) -> list[str]:
    """Return a line for each folder of a kind at or below `folder`: what is due, and the command that does it.

    Raises ConfigError for no folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    listed_folders = _list_folders(folder)
    folders = near_folders(_of_kind(listed_folders, "round"), _of_kind(listed_folders, "curation"))
    lines: list[str] = []
    for entry in listed_folders:
        step = _step(entry, folders)
        line = f"{_name(entry.path, folder)}: {step.what}"
        lines.append(f"{line}: {step.command}" if step.command else line)
    return lines or [_nothing_here(folder)]


def _nothing_here(folder: Path) -> str:
    """Say where to ask: a folder may be a part of a curation, or what is private of a release."""
    released = folder.with_name(folder.name.removesuffix(".private"))
    for path in (released, *folder.resolve().parents):
        if any(find_folders(path, depth=0)):
            return f"{folder}: a part of {_from_here(path)}; which step is due there: h2htalk next {_quoted(path)}"
    return (
        f"{folder}: no run, study, round, release or curation is here; to begin one: h2htalk --help"
    )


def _list_folders(folder: Path) -> list[_ListedFolder]:
    """The folders of a kind at or below a folder, each followed by what it links elsewhere."""
    below = list(find_folders(folder))
    resolved = {path.resolve() for path, _ in below}
    listed_folders: list[_ListedFolder] = []
    for path, kind in below:
        facts = read_facts(path, kind)
        listed_folders.append(_ListedFolder(path=path, kind=kind, facts=facts))
        linked = linked_folders(path) if kind in ("curation", "round") else ()
        for target, target_kind in linked:
            if target.resolve() not in resolved:
                resolved.add(target.resolve())
                facts = read_facts(target, target_kind)
                listed_folders.append(_ListedFolder(path=target, kind=target_kind, facts=facts))
    return listed_folders


def _of_kind(listed_folders: Sequence[_ListedFolder], kind: str) -> list[Path]:
    return [entry.path for entry in listed_folders if entry.kind == kind]


def _name(path: Path, folder: Path) -> str:
    """A folder as a line names it: below the folder that was asked for, or as a command here would name it."""
    if path != folder and path.is_relative_to(folder):
        return str(path.relative_to(folder))
    return _from_here(path)


def _from_here(path: Path) -> str:
    """A path as a command in the current folder names it; a full one where that would lead up."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return os.path.relpath(path)
    return str(path)


def _step(entry: _ListedFolder, folders: NearFolders) -> Step:
    state = entry.facts["state"]
    if state == "damaged":
        return Step(f"it cannot be read: {entry.facts['why']}")
    if state == "erasing":
        return Step("an erasure was stopped; the command that began it finishes it")
    if state == "running" and entry.kind in ("run", "study"):
        return Step("another process makes it", f"h2htalk watch {_quoted(entry.path)}")
    try:
        return _STEPS[entry.kind](entry, folders)
    except Exception as error:  # noqa: BLE001 - one damaged folder must not hide what is due for the others
        return Step(f"it cannot be read: {why_damaged(error)}")


def _of_run(entry: _ListedFolder, _: NearFolders) -> Step:
    state = entry.facts["state"]
    path = _quoted(entry.path)
    if state == "unscored":
        return Step("it is not scored", f"h2htalk score {path}")
    if state == "incomplete":
        return Step(
            f"{entry.facts.get('scored', 'not all')} items are scored; the same command asks for the others",
            "h2htalk evaluate MODEL ... --out " + path,
        )
    return Step("it is scored", f"h2htalk report {path}")


def _of_attempt(entry: _ListedFolder, _: NearFolders) -> Step:
    state = entry.facts["state"]
    if state == "running":
        return Step("another process makes this shard")
    if state == "incomplete":
        return Step(
            "this shard is not whole; the same command goes on",
            "h2htalk evaluate MODEL ... --shard K/N",
        )
    return Step("this shard is whole; once all are", "h2htalk merge SHARD ... --out RUN")


def _of_study(entry: _ListedFolder, _: NearFolders) -> Step:
    state = entry.facts["state"]
    path = _quoted(entry.path)
    if state == "unscored":
        return Step("it is not scored", f"h2htalk study score {path}")
    if state == "incomplete":
        return Step(
            "some replies failed; the same command asks for them again",
            "h2htalk study ... --out " + path,
        )
    return Step("it is scored; to have people read its replies", f"h2htalk study open-round {path}")


def _of_round(entry: _ListedFolder, folders: NearFolders) -> Step:
    status = next(list_rounds(entry.path))
    path = _quoted(entry.path)
    if status.state == "partly opened":
        return Step(
            "opening it was stopped; the same command goes on",
            f"h2htalk round open ... --out {path}",
        )
    if status.state == "open":
        return _of_open_round(status, path)
    if status.kind == CROWD:
        readers = folders.rounds_of(entry.path, EXPERT)
        if not readers:
            return Step(
                "it is closed; experts read what it kept", f"h2htalk round open {EXPERT} {path}"
            )
        return Step(f"it is closed, and experts read what it kept: see {_listed(readers)}")
    if status.kind == EXPERT:
        releases = folders.releases_of(entry.path)
        if not releases:
            what = "it is closed; a release takes it, where its `rounds` names no others"
            return Step(what, "h2htalk release build SPEC --out RELEASE")
        return Step(f"it is closed, and a release was built of it: see {_listed(releases)}")
    return Step("it is closed")


def _of_open_round(status: Status, path: str) -> Step:
    missing = sum(status.missing.values())
    if status.mistakes:
        what = f"{counted(len(status.mistakes), 'answer')} cannot be counted as typed"
        return Step(what, f"h2htalk round status {path}")
    if missing:
        what = f"{status.items_done:,} of {status.items:,} items are done; people owe {counted(missing, 'assignment')}"
        return Step(what, f"h2htalk round status {path}")
    if status.unassigned:
        what = f"{counted(status.unassigned, 'item needs', 'items need')} further annotators"
        return Step(what, f"h2htalk round reopen {path}")
    return Step("all answers are here", f"h2htalk round close {path}")


def _of_release(entry: _ListedFolder, _: NearFolders) -> Step:
    published = published_as(entry.path)
    state = f"it is published: {', '.join(published)}" if published else "it is built"
    followed = describe_what_followed(entry.path)
    if followed:
        return Step("; ".join([state, *followed]))
    if published:
        return Step(state)
    what, command = describe_unread(entry.path)
    if command:
        return Step(what, command)
    allowed = (
        ", with what its owner allowed to be unread" if entry.facts["state"] == "unread" else ""
    )
    path = _quoted(entry.path)
    publish = f"`h2htalk release publish {path} OWNER/NAME --dry-run`"
    what = f"it is built{allowed}; check it, and once every gate passes publish it ({publish})"
    return Step(what, f"h2htalk release check {path}")


def _of_curation(entry: _ListedFolder, folders: NearFolders) -> Step:
    workspace = Workspace(entry.path)
    if entry.facts["state"] == "running":
        return Step("another process works in it")
    if entry.facts["state"] == "purged":
        return Step("its raw data was purged; nothing is due")
    due = [name for name in STAGES if not workspace.stage(name).finished]
    if due and workspace.stage(due[0]).begun:
        return Step(f"the stage {due[0]} was stopped ({entry.facts['scored']} are made)", _RUN)
    if due and due[0] != _REVIEW:
        what = f"the stage {due[0]} is due ({entry.facts['scored']} are made)"
        stage = STAGES[due[0]]
        if stage.required:
            what += f", which needs `{stage.required}` in [{stage.name}] of SPEC"
        return Step(what, _RUN)
    return _of_candidates(workspace, folders, is_reviewed=not due)


def _of_candidates(workspace: Workspace, folders: NearFolders, *, is_reviewed: bool) -> Step:
    """What is due for the candidates of a workspace; they need no reviewer, as people can vote on all of them."""
    path = _quoted(workspace.path)
    candidates = voted_candidates(workspace, folders)
    done = "every stage is made" if is_reviewed else "every stage but review is made"
    if not candidates.total:
        return Step(f"{done}, and no candidate is left; why", f"h2htalk curate funnel {path}")
    if not candidates.without_round:
        return Step(f"{done}, and people vote on what it made: see {_listed(candidates.rounds)}")
    if candidates.rounds:
        count = counted(candidates.without_round, "candidate is", "candidates are")
        what = f"{done}; {count} in no crowd round (others: {_listed(candidates.rounds)})"
        return Step(what, f"h2htalk round open {CROWD} {path} --new")
    due = "no crowd round of it is open or closed"
    if not is_reviewed:
        due = f"set `model` in [{_REVIEW}] of SPEC and run `{_RUN}`, or have people vote without a reviewer"
    return Step(f"{done}; {due}", f"h2htalk round open {CROWD} {path}")


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(_from_here, paths))


def _of_site(entry: _ListedFolder, _: NearFolders) -> Step:
    return Step(f"a site is built; its first page is {entry.path / 'index.html'}")


_STEPS: Mapping[str, Callable[[_ListedFolder, NearFolders], Step]] = {
    "run": _of_run,
    "attempt": _of_attempt,
    "study": _of_study,
    "round": _of_round,
    "release": _of_release,
    "curation": _of_curation,
    "site": _of_site,
}


def _quoted(path: Path) -> str:
    return shlex.quote(_from_here(path))
