"""How far a round is: answers brought in from its platform, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.rounds.aggregation.decisions import answered_items
from h2htalk.rounds.annotations import changes, skips
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    pending_annotations,
    remaining_requests,
)
from h2htalk.rounds.integrity import require_names, validate_round
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.round_folder import RoundFolder


@dataclass(frozen=True, slots=True)
class Status:
    """How far a round is.

    Attributes:
        name, kind, where, state: which round; `open`, `closed`, `half opened`, or in a list `cannot be read`.
        items: number of items, gold ones included.
        wanted: answers that the items are to have: those they have, and those that are missing.
        complete: items that want nothing more.
        answers: annotators' complete answers to items.
        skipped: how often an annotator would rather not read an item.
        left_over: items that want more answers than people have before them: skipped, or not clear yet in an adaptive
            round.
        by_annotator: annotator name -> (complete answers, skipped); of annotators that are there, and as `NAME
            (left)` of those who left something behind: together they make `answers` and `skipped`.
        given: annotator name -> items that they were given; empty where a server hands items out.
        started: annotator name -> items with a draft or a half-filled row, as far as the last look saw.
        by_item: item -> complete answers.
        missing: item -> answers that it still wants; of a tie, those that were asked for and are still out.
        ties: items on which votes are tied, that could get one more answer and were not handed out for it.
        mistakes: what could not be counted.
        notes: what the manager should know.
        new: answers that this look brought.
    """

    name: str
    kind: str
    where: str
    state: str
    items: int
    wanted: int
    complete: int
    answers: int
    skipped: int
    by_annotator: Mapping[str, tuple[int, int]]
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
    """Bring in what annotators answered since the last look, and say how far the round is.

    Raises:
        RoundError, DataError: no round there, or its answers cannot be read.
    """
    folder = RoundFolder(path)
    folder.require()
    if not _under_way(folder):
        validate_round(folder)
        return status_of(folder, Collected(()))
    with folder.locked():
        validate_round(folder)
        # Another process may have closed the round before this one had the lock.
        if not _under_way(folder):
            return status_of(folder, Collected(()))
        require_names(folder)
        pulled, new = collect_annotations(folder)
        return status_of(folder, pulled, new)


def _under_way(folder: RoundFolder) -> bool:
    """Whether answers may be brought in: something has gone out, and the round is not closed."""
    return folder.state != "closed" and bool(folder.assignment_sets())


def collect_annotations(folder: RoundFolder, *, whole: bool = False) -> tuple[Collected, int]:
    """Ask the platform, and store what is new; an answer of nobody's or to nothing becomes a mistake.

    What a person who left sends later waits with the platform, and a note says how much: what they had answered by
    then counts, and the rest does when they return (`reopen_round`).

    Args:
        folder: the round.
        whole: read everything again (`Platform.pull`).

    Returns:
        What the platform holds, and the number of answers that were stored.
    """
    pulled = open_platform(folder.spec().where).collect(folder, whole=whole)
    here = {annotator.id for annotator in folder.annotators() if annotator.here}
    seen = changes(folder.answers(), pulled.answers)
    new = [answer for answer in seen if answer.annotator in here]
    folder.add_answers(new)
    waiting = {answer.key[:2] for answer in seen if answer.annotator not in here}
    if waiting:
        names = {annotator.id: annotator.name for annotator in folder.annotators()}
        who = ", ".join(sorted({names.get(annotator, annotator) for _, annotator in waiting}))
        note = (
            f"what people who left have sent since is not counted: {counted(len(waiting), 'item')} ({who}); it counts "
            f"once they return, by `h2htalk round reopen {folder.path} --annotators` with a list that names them"
        )
        pulled = replace(pulled, notes=(*pulled.notes, note))
    return pulled, len(new)


def require_published(folder: RoundFolder) -> None:
    """Raise RoundError where opening a round came not so far that anything went out."""
    if not folder.assignment_sets():
        raise RoundError(f"{folder.path}: {_finish_opening(folder)}")


def _finish_opening(folder: RoundFolder) -> str:
    """What to do with a round whose opening was refused or interrupted."""
    spec = folder.spec()
    again = f"`h2htalk round open {spec.kind} {spec.items} --out {folder.path}`"
    if folder.assignment_sets():
        return f"its opening was interrupted; {again}, with the options it had, finishes it"
    return f"nothing has gone out yet: its opening was refused or interrupted; {again}, with what was refused mended"


def status_of(folder: RoundFolder, pulled: Collected, new: int = 0) -> Status:
    spec, items, questions = folder.spec(), folder.items(), folder.questions()
    # In this order, so that a list, which has no lock, reads no assignment set and no answer of people who it has not
    # read.
    state, answers, assignment_sets, annotators = (
        folder.state,
        folder.answers(),
        folder.assignment_sets(),
        folder.annotators(),
    )
    done = answered_items(items, questions, answers)
    skipped = skips(answers)
    short = remaining_requests(spec, items, questions, answers, annotators)
    open_ties = remaining_requests(spec, items, questions, answers, annotators, ties=True)
    reached = pending_annotations(
        [item for item in items if item.id in open_ties], assignment_sets, annotators, answers, done
    )
    # A tie wants what was asked of people who still have it before them; nobody was told yet of the others.
    missing = {
        name: count
        for name, most in open_ties.items()
        if (count := max(short.get(name, 0), min(most, reached[name].waiting)))
    }
    unasked = {name: count for name, count in open_ties.items() if name not in missing}
    ties = [name for name in annotations_to_request(unasked, reached)[0] if len(done[name]) <= spec.answers]
    left_over = [name for name, count in missing.items() if count > reached[name].waiting]
    half = state == "half opened"
    seated = {
        (one.annotator, one.item) for assignment_set in assignment_sets for one in assignment_set.assignments
    }
    given = Counter(annotator for annotator, _ in seated)
    return Status(
        name=folder.name,
        kind=spec.kind,
        where=spec.where,
        state=state,
        items=len(items),
        wanted=sum(map(len, done.values())) + sum(missing.values()),
        complete=len(items) - len(missing),
        answers=sum(map(len, done.values())),
        skipped=len(skipped),
        by_annotator={} if half else _by_annotator(annotators, done, skipped),
        by_item={item: len(who) for item, who in sorted(done.items())},
        missing=missing,
        mistakes=pulled.mistakes,
        notes=(*pulled.notes, *([_finish_opening(folder)] if half else [])),
        new=new,
        left_over=len(left_over),
        ties=len(ties),
        given={annotator.name: given[annotator.id] for annotator in annotators if annotator.here}
        if seated and not half
        else {},
        started=pulled.started or {},
    )


def _by_annotator(
    annotators: Sequence[Annotator], done: Mapping[str, Collection[str]], skipped: Collection[tuple[str, str]]
) -> dict[str, tuple[int, int]]:
    answered = Counter(annotator for who in done.values() for annotator in who)
    passed = Counter(annotator for _, annotator in skipped)
    told = {}
    for annotator in annotators:
        if annotator.here:
            told[annotator.name] = (answered[annotator.id], passed[annotator.id])
        elif answered[annotator.id] or passed[annotator.id]:
            # No name holds a blank, so nobody else stands there.
            told[f"{annotator.name} (left)"] = (answered[annotator.id], passed[annotator.id])
    return told


def list_rounds(path: Path) -> Iterator[Status]:
    """The rounds in a folder and below, as they were at their last look; nothing is asked of a platform.

    One with a broken file is listed as such, with what is wrong among its notes, and keeps no other from the list.

    Raises:
        RoundError: the folder is not there.
    """
    if not path.is_dir():
        raise RoundError(f"{path}: no folder to look for rounds in")
    for found in sorted(path.rglob("round.json")):
        folder = RoundFolder(found.parent)
        try:
            if "spec" in folder.facts():
                validate_round(folder)
                yield status_of(folder, Collected(()))
        except H2HTalkError as error:
            yield _unreadable(folder, error)


def _unreadable(folder: RoundFolder, error: H2HTalkError) -> Status:
    return Status(
        name=folder.path.resolve().name, kind="", where="", state="cannot be read", items=0, wanted=0, complete=0,
        answers=0, skipped=0, by_annotator={}, by_item={}, missing={}, notes=(str(error),),
    )  # fmt: skip
