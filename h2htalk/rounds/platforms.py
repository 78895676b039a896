"""Platforms give items to annotators and collect annotations: spreadsheets in a folder, or an Argilla server."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from h2htalk.errors import RoundError, quoted, suggest
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.round_folder import RoundFolder

PLATFORMS = {
    "spreadsheets": "h2htalk.rounds.spreadsheets.platform:SpreadsheetPlatform",
    "argilla": "h2htalk.rounds.argilla.platform:ArgillaPlatform",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What a platform holds.

    Attributes:
        annotations: everything that annotators submitted or skipped, as it is now. A stored annotation that is not
            among these stays valid unless it is named with the value None.
        mistakes: what cannot be counted, each with its place and what to do.
        notes: messages for the manager.
        started: (item, annotator id) pairs with a draft or a partly filled row.
        offered: item -> annotators that a server still offers the item to, by its own count; None for platforms that
            assign items.
    """

    annotations: tuple[Annotation, ...] = ()
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started: frozenset[tuple[str, str]] = frozenset()
    offered: Mapping[str, int] | None = None


class Platform(Protocol):
    """A way to reach annotators.

    Attributes:
        assigns_items: whether items are assigned to annotators by name (spreadsheets), or a server hands them out.
    """

    assigns_items: bool

    def check(self, folder: RoundFolder) -> None:
        """Raise RoundError or MissingExtraError if the platform cannot work; called before anything is written."""

    def publish(self, folder: RoundFolder) -> list[str]:
        """Publish every assignment set that is not published yet; return messages for the manager."""

    def collect(self, folder: RoundFolder) -> Collected:
        """Return what annotators have submitted so far; raise RoundError if the platform cannot be read."""

    def close(self, folder: RoundFolder) -> list[str]:
        """Stop accepting annotations where the platform can; return messages for the manager."""


def open_platform(name: str) -> Platform:
    """Return a platform by name; raise RoundError with the choices for an unknown name."""
    if name not in PLATFORMS:
        raise RoundError(
            f"unknown platform {quoted(name)}; {suggest(name, PLATFORMS)}choose from {', '.join(PLATFORMS)}"
        )
    module, _, attribute = PLATFORMS[name].partition(":")
    return cast(Platform, getattr(importlib.import_module(module), attribute)())
