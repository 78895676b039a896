"""Opening a round again, for what still wants answers: what is short, unclear or tied, and what came too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.decisions import answered_items
from h2htalk.rounds.annotations import Answer, changes, latest
from h2htalk.rounds.annotator_changes import changed_voters
from h2htalk.rounds.annotators import Voter
from h2htalk.rounds.assignment.remaining_annotations import reach, still_wanted, to_ask
from h2htalk.rounds.integrity import require_intact, require_names
from h2htalk.rounds.opening import next_wave
from h2htalk.rounds.platforms import Backend, Pulled, open_backend
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, require_out, status_of


def reopen_round(
    path: Path, *, without: Sequence[str] = (), voters: Path | None = None
) -> tuple[Status, list[str]]:
    """Hand out again what still wants answers: to others than answered it, and than `without`.

    What wants answers: items short of them (skips, drop-outs), items on which an adaptive round is not sure, and ties
    that one more answer could break. A closed round is open again, too, where answers came after it was closed, or
    where answers.jsonl is not what it was then: what the backend holds counts from then on. So does what people who
    return said while they were away.

    Killed at any step, it is completed by the same call.

    Voters change, and anything goes out, only once every answer that is asked for has somebody to give it.

    Args:
        path: the round, open or closed.
        without: names of voters who dropped out; what they answered stays.
        voters: a CSV file of voters who join or return; those of the round in it change their languages or wishes.

    Raises:
        RoundError: a name is nobody's, nothing wants answers, there is nobody left to ask, or nothing has gone out yet.
        DataError: a file of the round is not what it was.
    """
    folder = RoundFolder(path)
    folder.require()
    backend = open_backend(folder.spec().backend)
    with folder.locked():
        require_intact(folder)
        require_out(folder)
        require_names(folder)
        backend.check(folder)
        closed = folder.state == "closed"
        altered = closed and folder.closed_with() != folder.answers_print()
        pulled = backend.pull(folder, whole=True)
        people = changed_voters(folder, without, voters)
        now, later = _late(folder, changes(folder.answers(), pulled.answers), people, closed, altered)
        folder.add_answers(now)
        wants = _wants(folder, backend, people, later, pulled.offered)
        revived = closed and bool(later or wants.items or altered)
        if not wants.items and not revived and not (now or later) and people == folder.voters():
            raise RoundError(f"{path}: every item has enough answers; there is nothing to hand out again")
        if wants.beyond and not wants.asked and not later and not altered:
            raise RoundError(
                f"{path}: {wants.beyond} items want answers, and everybody who may see them has been asked; add "
                "people with --voters, or close the round and open an adjudication over its ties; nothing was changed"
            )
        told = [wants.told()]
        waves = folder.waves()
        if wants.asked:
            wave = next_wave(folder, backend, len(waves) + 1, folder.items(), wants.asked, people)
            waves = (*waves, wave)
        opened: list[str] = []
        if wants.asked or revived:
            # Before answers, voters and waves: killed after any later write, the round is open, and no closing leaves
            # out what has gone out or come in by then. But answers.jsonl that was altered is mended before it.
            folder.add_answers(later if altered else ())
            opened = _open_again(folder, wants, len(without))
        folder.add_answers(() if altered else later)
        told += _write_changes(folder, people)
        folder.write_waves(waves)
        told += [*backend.publish(folder), *opened, *_told_of_late(later, closed, altered)]
        folder.protect()
        return status_of(folder, Pulled(())), told


def _late(
    folder: RoundFolder, late: Sequence[Answer], people: Sequence[Voter], closed: bool, altered: bool
) -> tuple[list[Answer], list[Answer]]:
    """Of answers that are not stored yet: those that count now, and those that do once the round is open for them.

    Of a closed round all wait until it is open again: until then its decisions stand. What came from people who had
    left counts only where they return; but where answers.jsonl is not what it was, nobody can say when it came.
    """
    there = {voter.id for voter in folder.voters() if voter.here}
    back = {voter.id for voter in people if voter.here} - there
    now = [] if closed else [answer for answer in late if answer.voter in there]
    later = [
        answer for answer in late if altered or answer.voter in back or (closed and answer.voter in there)
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
    backend: Backend,
    people: Sequence[Voter],
    late: Sequence[Answer],
    offered: Mapping[str, int] | None,
) -> _Wants:
    items, questions = folder.items(), folder.questions()
    answers = latest((*folder.answers().values(), *late))
    wanted = still_wanted(folder.spec(), items, questions, answers, people, ties=True)
    done = answered_items(items, questions, answers)
    short = [item for item in items if item.id in wanted]
    reached = reach(short, folder.waves(), people, answers, done, offered)
    asked, beyond = to_ask(wanted, reached, whole=not backend.assigns)
    return _Wants(len(wanted), asked, beyond, sum(reached[name].waiting for name in wanted))


def _open_again(folder: RoundFolder, wants: _Wants, left: int) -> list[str]:
    """Put aside what a closing wrote, and note that the round is open again. Returns lines for the manager."""
    moved = folder.set_aside()
    folder.note("reopened", items=len(wants.asked), answers=sum(wants.asked.values()), without=left)
    return [f"the round is open again; what its closing wrote is now {', '.join(moved)}"] if moved else []


def _told_of_late(late: Sequence[Answer], closed: bool, altered: bool) -> list[str]:
    if not late:
        return []
    met = counted(len({one.key[:2] for one in late}), "item")
    if altered:
        return [f"answers.jsonl was changed after the closing; answers to {met} were brought in once more"]
    when = (
        "after the closing count now; close the round again" if closed else "of people who return count now"
    )
    return [f"answers to {met} {when}"]


def _write_changes(folder: RoundFolder, people: Sequence[Voter]) -> list[str]:
    """Store who is asked from now on; who came, left or changed is an event of its own, by salted hash."""
    before = {voter.id: voter for voter in folder.voters()}
    other = [voter for voter in people if before.get(voter.id) != voter]
    if not other:
        return []
    folder.note(
        "voters",
        joined=[voter.id for voter in other if voter.id not in before],
        left=[voter.id for voter in other if not voter.here],
        changed=[voter.id for voter in other if voter.here and voter.id in before],
    )
    folder.write_voters(people)
    return ["the change of voters is recorded"]
