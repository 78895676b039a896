"""Platforms give items to annotators and collect annotations: spreadsheets in a folder, or an annotation server."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, cast

from h2htalk.data.files import read_toml
from h2htalk.errors import MissingExtraError, RoundError, quoted, suggest
from h2htalk.extras import INSTALL_ROUNDS
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.settings import PLATFORM

PLATFORMS = {
    "spreadsheets": "h2htalk.rounds.spreadsheets.platform:SpreadsheetPlatform",
    "argilla": "h2htalk.rounds.argilla.platform:ArgillaPlatform",
    "label-studio": "h2htalk.integrations.label_studio.platform:LabelStudioPlatform",
}


class Message(str):
    """A message `PLACE: PROBLEM`: what is wrong in a file, cell, dataset or assignment, and what to do.

    The kind is equal for the same problem in several places: the problem itself unless that names details.
    """

    __slots__ = ("kind", "place", "problem")
    place: str
    problem: str
    kind: str

    def __new__(cls, place: str, problem: str, kind: str = "") -> Self:
        message = super().__new__(cls, f"{place}: {problem}")
        message.place, message.problem, message.kind = place, problem, kind or problem
        return message


@dataclass(frozen=True, slots=True)
class ServerWords:
    """What a server calls an item that it shows, and an answer to one; its page, in messages to the manager."""

    record: str
    response: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What a platform holds: everything that annotators submitted or skipped, as it is now, and notes for the manager.

    A stored annotation that is not among these stays valid unless it is named with the value None. Mistakes cannot be
    counted; each has its place and what to do. `started` are (item, annotator id) pairs with a draft or a partly filled
    row. `offered` is item -> annotators that a server still offers it to, by its own count; None for other platforms.
    """

    annotations: tuple[Annotation, ...] = ()
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started: frozenset[tuple[str, str]] = frozenset()
    offered: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """What was removed from a platform, and what is left there.

    `removed` and `left` are messages for the manager: what is gone; what is out of reach, or was not this round's.
    `unfinished`: something is left that the same command would remove with another key.
    """

    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    unfinished: bool = False


class Platform(Protocol):
    """A way to reach annotators."""

    assigns_items: bool  # to annotators by name (spreadsheets); else a server hands them out

    def check(self, state: RoundState) -> None:
        """Raise RoundError if the platform cannot work; called before anything is published."""

    def publish(self, state: RoundState) -> list[str]:
        """Publish every assignment set that is not published yet; return messages for the manager."""

    def collect(self, state: RoundState) -> Collected:
        """Return what annotators have submitted so far; raise RoundError if the platform cannot be read."""

    def close(self, state: RoundState) -> list[str]:
        """End the annotators' access where the platform can; return messages for the manager."""

    def delete(self, state: RoundState) -> Removal:
        """Delete all that the round made there; called again, also after a kill, it deletes what is left.

        Raise RoundError if the platform cannot be reached.
        """

    def erase_annotator(self, state: RoundState, annotator: Annotator) -> Removal:
        """Delete an annotator's answers, and their account if the round made it and nobody else uses it.

        Called again, also after a kill, it deletes what is still there. Raise RoundError if the platform cannot be
        reached.
        """

    def erase(self, state: RoundState, items: Collection[str]) -> Iterable[str]:
        """Remove items, with their answers, that the round does not contain any more; yield what is out of reach.

        Called again, also after a kill, it removes what is still there. Raise RoundError if the platform cannot be
        reached, or some of it could not be searched.
        """


def require_platform(options: Mapping[str, Any], settings: Path | None = None) -> None:
    """Raise as `open_platform` for the platform that a round's options or file of settings name.

    Commands call it before they read the items of a round that they open.
    """
    stored = read_toml(settings) if settings is not None else {}
    where = {**stored, **options}.get("where", PLATFORM)
    if isinstance(where, str):  # what is no text is refused with the other settings
        open_platform(where)


def open_platform(name: str) -> Platform:
    """Return a platform by name; raise RoundError for an unknown name, MissingExtraError without its packages."""
    if name not in PLATFORMS:
        raise RoundError(
            f"unknown platform {quoted(name)}; {suggest(name, PLATFORMS)}choose from {', '.join(PLATFORMS)}"
        )
    module, _, attribute = PLATFORMS[name].partition(":")
    try:
        return cast(Platform, getattr(importlib.import_module(module), attribute)())
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"a round on {name}", INSTALL_ROUNDS) from error
