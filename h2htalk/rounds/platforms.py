"""What puts items before voters and brings their answers back: ballots in folders, or an Argilla server."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.annotations import Answer
from h2htalk.rounds.round_folder import RoundFolder

BACKENDS = {
    "ballots": "h2htalk.rounds.spreadsheets.platform:Ballots",
    "argilla": "h2htalk.rounds.argilla.platform:ArgillaRounds",
}


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a backend holds now.

    Attributes:
        answers: everything that voters submitted or skipped, as it stands now (not only what is new). An answer that
            is stored in the round and missing here stays, unless it is named with the value None.
        mistakes: what cannot be counted, each with where it is and what to do: a cell, a stranger's answer.
        notes: what the manager should know (a search index that shows less than the database holds).
        started: voter name -> items with a draft or a half-filled row.
        offered: item -> answers that a server still asks voters for, whatever the round counts (0: it offers the item
            no more); None where the backend seats people.
    """

    answers: tuple[Answer, ...]
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started: Mapping[str, int] | None = None
    offered: Mapping[str, int] | None = None


class Backend(Protocol):
    """One way to ask. `assigns`: it seats voters by name (ballots); else its server hands items out."""

    assigns: bool

    def check(self, round: RoundFolder) -> None:
        """Raise RoundError or MissingExtraError where it cannot work, before anything is written."""

    def publish(self, round: RoundFolder) -> list[str]:
        """Put out every wave that is not out yet; the same call again adds nothing. Returns lines for the manager."""

    def pull(self, round: RoundFolder, *, whole: bool = False) -> Pulled:
        """What voters have answered by now. Raises RoundError where it cannot be read at all.

        Args:
            round: whose answers.
            whole: read everything again, also what seems not to have changed since the last look.
        """

    def close(self, round: RoundFolder) -> list[str]:
        """Take no further answers, where the backend can say so. Returns lines for the manager."""


def open_backend(name: str) -> Backend:
    """A backend by its name; raises RoundError with the choices."""
    if name not in BACKENDS:
        raise RoundError(f"unknown backend {quoted(name)}; choose from {', '.join(BACKENDS)}")
    module, _, attribute = BACKENDS[name].partition(":")
    return cast(Backend, getattr(importlib.import_module(module), attribute)())
