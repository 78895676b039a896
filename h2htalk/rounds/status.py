"""How far a round is: answers brought in from its backend, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.answers import changes, skips
from h2htalk.rounds.backends import Pulled, open_backend
from h2htalk.rounds.decide import answered_items
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.outstanding import reach, to_ask
from h2htalk.rounds.wanting import still_wanted


@dataclass(frozen=True, slots=True)
class Status:
    """How far a round is.

    Attributes:
        name, kind, backend, state: which round; `open`, `closed` or `half opened`.
        items: number of items, gold ones included.
        wanted: answers that the items are to have: those they have, and those that are missing.
        complete: items that want nothing more.
        answers: voters' complete answers to items.
        skipped: how often a voter would rather not read an item.
        left_over: items that were skipped, want answers still, and lie before nobody else.
        by_voter: voter name -> (complete answers, skipped); of voters that are there.
        given: voter name -> items that they were given; empty where a server hands items out.
        started: voter name -> items with a draft or a half-filled row, as far as the last look saw.
        by_item: item -> complete answers.
        missing: item -> answers that it still wants; of a tie, those that were asked for and are still out.
        ties: items on which votes are tied, that could get one more answer and were not handed out for it.
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
    left_over: int = 0
    ties: int = 0
    given: Mapping[str, int] = field(default_factory=dict)
    started: Mapping[str, int] = field(default_factory=dict)


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


def bring_in(folder: RoundFolder, *, whole: bool = False) -> tuple[Pulled, int]:
    """Ask the backend, and store what is new; an answer of nobody's or to nothing becomes a mistake.

    Args:
        folder: the round.
        whole: read everything again (`Backend.pull`).
    """
    pulled = open_backend(folder.spec().backend).pull(folder, whole=whole)
    new = changes(folder.answers(), pulled.answers)
    folder.add_answers(new)
    return pulled, len(new)


def status_of(folder: RoundFolder, pulled: Pulled, new: int = 0) -> Status:
    spec, items, questions = folder.spec(), folder.items(), folder.questions()
    answers, voters = folder.answers(), folder.voters()
    done = answered_items(items, questions, answers)
    skipped = skips(answers)
    short = still_wanted(spec, items, questions, answers, voters)
    open_ties = still_wanted(spec, items, questions, answers, voters, ties=True)
    reached = reach([item for item in items if item.id in open_ties], folder.waves(), voters, answers, done)
    # A tie wants what was asked of people who still have it before them; nobody was told yet of the others.
    missing = {
        name: count
        for name, most in open_ties.items()
        if (count := max(short.get(name, 0), min(most, reached[name].waiting)))
    }
    unasked = {name: count for name, count in open_ties.items() if name not in missing}
    ties = [name for name in to_ask(unasked, reached)[0] if len(done[name]) <= spec.answers]
    left_over = {name for name, _ in skipped if name in missing and missing[name] > reached[name].waiting}
    by_voter = {
        voter.name: (
            sum(voter.id in who for who in done.values()),
            sum(one == voter.id for _, one in skipped),
        )
        for voter in voters
        if voter.here
    }
    seated = {(one.voter, one.item) for wave in folder.waves() for one in wave.seats}
    given = Counter(voter for voter, _ in seated)
    return Status(
        name=folder.name,
        kind=spec.kind,
        backend=spec.backend,
        state=folder.state,
        items=len(items),
        wanted=sum(map(len, done.values())) + sum(missing.values()),
        complete=len(items) - len(missing),
        answers=sum(map(len, done.values())),
        skipped=len(skipped),
        by_voter=by_voter,
        by_item={item: len(who) for item, who in sorted(done.items())},
        missing=missing,
        mistakes=pulled.mistakes,
        notes=pulled.notes,
        new=new,
        left_over=len(left_over),
        ties=len(ties),
        given={voter.name: given[voter.id] for voter in voters if voter.here} if seated else {},
        started=pulled.started or {},
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
