"""Opening a round again, for what still wants answers: what is short, unclear or tied, and what came too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.decisions import answered_items
from h2htalk.rounds.annotations import Annotation, changes, latest
from h2htalk.rounds.annotator_changes import changed_annotators
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    pending_annotations,
    remaining_requests,
)
from h2htalk.rounds.integrity import require_names, validate_round
from h2htalk.rounds.opening import next_assignment_set
from h2htalk.rounds.platforms import Collected, Platform, open_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, require_published, status_of


def reopen_round(
    path: Path, *, without: Sequence[str] = (), annotators: Path | None = None
) -> tuple[Status, list[str]]:
    """Hand out again what still wants answers: to others than answered it, and than `without`.

    What wants answers: items short of them (skips, drop-outs), items on which an adaptive round is not sure, and ties
    that one more answer could break. A closed round is open again, too, where answers came after it was closed, or
    where annotations.jsonl is not what it was then: what the platform holds counts from then on. So does what people
    who return said while they were away.

    Killed at any step, it is completed by the same call.

    Annotators change, and anything goes out, only once every answer that is asked for has somebody to give it.

    Args:
        path: the round, open or closed.
        without: names of annotators who dropped out; what they answered stays.
        annotators: a CSV file of annotators who join or return; those of the round in it change their languages or
            wishes.

    Raises:
        RoundError: a name is nobody's, nothing wants answers, there is nobody left to ask, or nothing has gone out yet.
        DataError: a file of the round is not what it was.
    """
    folder = RoundFolder(path)
    folder.require()
    platform = open_platform(folder.spec().where)
    with folder.locked():
        validate_round(folder)
        require_published(folder)
        require_names(folder)
        platform.check(folder)
        closed = folder.state == "closed"
        altered = closed and folder.closed_with() != folder.annotations_fingerprint()
        pulled = platform.collect(folder, whole=True)
        people = changed_annotators(folder, without, annotators)
        now, later = _late(folder, changes(folder.answers(), pulled.answers), people, closed, altered)
        folder.add_answers(now)
        wants = _wants(folder, platform, people, later, pulled.offered)
        revived = closed and bool(later or wants.items or altered)
        if not wants.items and not revived and not (now or later) and people == folder.annotators():
            raise RoundError(f"{path}: every item has enough answers; there is nothing to hand out again")
        if wants.beyond and not wants.asked and not later and not altered:
            raise RoundError(
                f"{path}: {wants.beyond} items want answers, and everybody who may see them has been asked; add "
                "people with --annotators, or close the round and open an adjudication over its "
                "ties; nothing was changed"
            )
        told = [wants.told()]
        assignment_sets = folder.assignment_sets()
        if wants.asked:
            assignment_set = next_assignment_set(
                folder, platform, len(assignment_sets) + 1, folder.items(), wants.asked, people
            )
            assignment_sets = (*assignment_sets, assignment_set)
        opened: list[str] = []
        if wants.asked or revived:
            # Before answers, annotators and assignment sets: killed after any later write, the round is open, and no
            # closing leaves out what has gone out or come in by then. But annotations.jsonl that was altered is
            # mended before it.
            folder.add_answers(later if altered else ())
            opened = _open_again(folder, wants, len(without))
        folder.add_answers(() if altered else later)
        told += _write_changes(folder, people)
        folder.write_assignment_sets(assignment_sets)
        told += [*platform.publish(folder), *opened, *_describe_late(later, closed, altered)]
        folder.protect()
        return status_of(folder, Collected(())), told


def _late(
    folder: RoundFolder, late: Sequence[Annotation], people: Sequence[Annotator], closed: bool, altered: bool
) -> tuple[list[Annotation], list[Annotation]]:
    """Of answers that are not stored yet: those that count now, and those that do once the round is open for them.

    Of a closed round all wait until it is open again: until then its decisions stand. What came from people who had
    left counts only where they return; but where annotations.jsonl is not what it was, nobody can say when it came.
    """
    there = {annotator.id for annotator in folder.annotators() if annotator.here}
    back = {annotator.id for annotator in people if annotator.here} - there
    now = [] if closed else [answer for answer in late if answer.annotator in there]
    later = [
        answer
        for answer in late
        if altered or answer.annotator in back or (closed and answer.annotator in there)
    ]
    return now, later


@dataclass(frozen=True, slots=True)
class _Wants:
    """What a round wants: `items` that do, answers `asked` of each anew, items `beyond` everybody who could be asked,
    and answers for which somebody is `waiting` to give them already."""

    items: int
    asked: Mapping[str, int]
    beyond: int
    waiting: int

    def told(self) -> str:
        """What is handed out, and what is not and why."""
        beyond = f"nobody is left to ask about {counted(self.beyond, 'item')}"
        if self.asked:
            answers = counted(sum(self.asked.values()), "answer")
            return f"handed out: {answers} to {counted(len(self.asked), 'item')}" + f"; {beyond}" * bool(
                self.beyond
            )
        if self.waiting:
            return (
                f"nothing new is handed out: all {self.waiting:,} answers that are wanted lie before people who have "
                "not given them yet; wait, or name who dropped out with --without"
            )
        return f"nothing is handed out: {beyond if self.beyond else 'every item has enough answers'}"


def _wants(
    folder: RoundFolder,
    platform: Platform,
    people: Sequence[Annotator],
    late: Sequence[Annotation],
    offered: Mapping[str, int] | None,
) -> _Wants:
    items, questions = folder.items(), folder.questions()
    answers = latest((*folder.answers().values(), *late))
    wanted = remaining_requests(folder.spec(), items, questions, answers, people, ties=True)
    done = answered_items(items, questions, answers)
    short = [item for item in items if item.id in wanted]
    reached = pending_annotations(short, folder.assignment_sets(), people, answers, done, offered)
    asked, beyond = annotations_to_request(wanted, reached, whole=not platform.assigns_items)
    return _Wants(len(wanted), asked, beyond, sum(reached[name].waiting for name in wanted))


def _open_again(folder: RoundFolder, wants: _Wants, left: int) -> list[str]:
    """Put aside what a closing wrote, and note that the round is open again. Returns lines for the manager."""
    moved = folder.discards()
    folder.note("reopened", items=len(wants.asked), answers=sum(wants.asked.values()), without=left)
    return [f"the round is open again; what its closing wrote is now {', '.join(moved)}"] if moved else []


def _describe_late(late: Sequence[Annotation], closed: bool, altered: bool) -> list[str]:
    if not late:
        return []
    met = counted(len({one.key[:2] for one in late}), "item")
    if altered:
        return [
            f"annotations.jsonl was changed after the closing; answers to {met} were brought in once more"
        ]
    when = (
        "after the closing count now; close the round again" if closed else "of people who return count now"
    )
    return [f"answers to {met} {when}"]


def _write_changes(folder: RoundFolder, people: Sequence[Annotator]) -> list[str]:
    """Store who is asked from now on; who came, left or changed is an event of its own, by salted hash."""
    before = {annotator.id: annotator for annotator in folder.annotators()}
    other = [annotator for annotator in people if before.get(annotator.id) != annotator]
    if not other:
        return []
    folder.note(
        "annotators",
        joined=[annotator.id for annotator in other if annotator.id not in before],
        left=[annotator.id for annotator in other if not annotator.here],
        changed=[annotator.id for annotator in other if annotator.here and annotator.id in before],
    )
    folder.write_annotators(people)
    return ["the change of annotators is recorded"]
