"""How far a round is: answers brought in from its backend, and counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.answers import changes, skips
from h2htalk.rounds.backends import Pulled, open_backend
from h2htalk.rounds.decide import answered_items
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.wanting import still_wanted


@dataclass(frozen=True, slots=True)
class Status:
    """How far a round is.

    Attributes:
        name, kind, backend, state: which round; `open`, `closed` or `half opened`.
        items: number of items, gold ones included.
        wanted: answers that the items are to have, over all waves.
        complete: items that want nothing more.
        answers: voters' complete answers to items.
        skipped: items that a voter would rather not read.
        by_voter: voter name -> (complete answers, skipped); of voters that are there.
        by_item: item -> complete answers.
        missing: item -> answers that it still wants.
        mistakes: what could not be counted.
        notes: what the manager should know.
        new: answers that this look brought.
    """

    name: str
    kind: str
    backend: str
    state: str
    items: int
    wanted: int
    complete: int
    answers: int
    skipped: int
    by_voter: Mapping[str, tuple[int, int]]
    by_item: Mapping[str, int]
    missing: Mapping[str, int]
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    new: int = 0


def status(path: Path) -> Status:
    """Bring in what voters answered since the last look, and say how far the round is.

    Raises:
        RoundError, DataError: no round there, or its answers cannot be read.
    """
    folder = RoundFolder(path)
    folder.require()
    if folder.state == "closed":
        return status_of(folder, Pulled(()))
    with folder.locked():
        pulled, new = bring_in(folder)
    return status_of(folder, pulled, new)


def bring_in(folder: RoundFolder) -> tuple[Pulled, int]:
    """Ask the backend, and store what is new; an answer of nobody's or to nothing becomes a mistake."""
    pulled = open_backend(folder.spec().backend).pull(folder)
    new = changes(folder.answers(), pulled.answers)
    folder.add_answers(new)
    return pulled, len(new)


def status_of(folder: RoundFolder, pulled: Pulled, new: int = 0) -> Status:
    spec, items, questions = folder.spec(), folder.items(), folder.questions()
    answers, voters = folder.answers(), folder.voters()
    done = answered_items(items, questions, answers)
    skipped = skips(answers)
    missing = still_wanted(spec, items, questions, answers)
    by_voter = {
        voter.name: (
            sum(voter.id in who for who in done.values()),
            sum(one == voter.id for _, one in skipped),
        )
        for voter in voters
        if voter.here
    }
    return Status(
        name=folder.name,
        kind=spec.kind,
        backend=spec.backend,
        state=folder.state,
        items=len(items),
        wanted=sum(sum(wave.wanted.values()) for wave in folder.waves()),
        complete=len(items) - len(missing),
        answers=sum(map(len, done.values())),
        skipped=len(skipped),
        by_voter=by_voter,
        by_item={item: len(who) for item, who in sorted(done.items())},
        missing=missing,
        mistakes=pulled.mistakes,
        notes=pulled.notes,
        new=new,
    )


def list_rounds(path: Path) -> Iterator[Status]:
    """The rounds in a folder and below, as they were at their last look; nothing is asked of a backend.

    Raises:
        RoundError: the folder is not there.
    """
    if not path.is_dir():
        raise RoundError(f"{path}: no folder to look for rounds in")
    for found in sorted(path.rglob("round.json")):
        folder = RoundFolder(found.parent)
        if "spec" in folder.facts():
            yield status_of(folder, Pulled(()))
