"""What puts items before annotators and brings their answers back: spreadsheets in folders, or an Argilla server."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.round_folder import RoundFolder

PLATFORMS = {
    "spreadsheets": "h2htalk.rounds.spreadsheets.platform:SpreadsheetPlatform",
    "argilla": "h2htalk.rounds.argilla.platform:ArgillaPlatform",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What a platform holds now.

    Attributes:
        answers: everything that annotators submitted or skipped, as it stands now (not only what is new). An answer
            that is stored in the round and missing here stays, unless it is named with the value None.
        mistakes: what cannot be counted, each with where it is and what to do: a cell, a stranger's answer.
        notes: what the manager should know (a search index that shows less than the database holds).
        started: annotator name -> items with a draft or a half-filled row.
        offered: item -> answers that a server still asks annotators for, whatever the round counts (0: it offers the
            item no more); None where the platform assigns people.
    """

    answers: tuple[Annotation, ...]
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started: Mapping[str, int] | None = None
    offered: Mapping[str, int] | None = None


class Platform(Protocol):
    """One way to ask. `assigns`: it assigns annotators by name (spreadsheets); else its server hands items out."""

    assigns_items: bool

    def check(self, round: RoundFolder) -> None:
        """Raise RoundError or MissingExtraError where it cannot work, before anything is written."""

    def publish(self, round: RoundFolder) -> list[str]:
        """Put out every assignment set that is not out yet; the same call again adds nothing. Returns lines for the
        manager.
        """

    def collect(self, round: RoundFolder, *, whole: bool = False) -> Collected:
        """What annotators have answered by now. Raises RoundError where it cannot be read at all.

        Args:
            round: whose answers.
            whole: read everything again, also what seems not to have changed since the last look.
        """

    def close(self, round: RoundFolder) -> list[str]:
        """Take no further answers, where the platform can say so. Returns lines for the manager."""


def open_platform(name: str) -> Platform:
    """A platform by its name; raises RoundError with the choices."""
    if name not in PLATFORMS:
        raise RoundError(f"unknown platform {quoted(name)}; choose from {', '.join(PLATFORMS)}")
    module, _, attribute = PLATFORMS[name].partition(":")
    return cast(Platform, getattr(importlib.import_module(module), attribute)())
