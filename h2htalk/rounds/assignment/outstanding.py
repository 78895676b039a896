"""What is out: answers that waves asked for and people still have before them, and who could be asked besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.rounds.annotations import Answer
from h2htalk.rounds.annotators import Voter
from h2htalk.rounds.assignment.assignments import Wave, may_see
from h2htalk.rounds.items import Item


@dataclass(frozen=True, slots=True)
class Reach:
    """Of one item. `waiting`: answers that people still have before them; `others`: people who could be asked yet."""

    waiting: int
    others: int


def reach(
    items: Sequence[Item],
    waves: Sequence[Wave],
    voters: Sequence[Voter],
    answers: Mapping[tuple[str, str, str], Answer],
    done: Mapping[str, Collection[str]],
    offered: Mapping[str, int] | None = None,
) -> dict[str, Reach]:
    """By item, what is out and who is left.

    Args:
        items: those to look at.
        waves: of the round. Where they seat nobody, a server hands items out.
        voters: of the round; those who left have nothing before them and cannot be asked.
        answers: of the round, skips with them: who answered or skipped an item does not get it again.
        done: item -> voters who answered all of it.
        offered: item -> answers that a server still asks for, where it told: it may count answers that the round does
            not, and offers the item no more.
    """
    met = {(item, voter) for item, voter, _ in answers}
    seated = {(seat.item, seat.voter) for wave in waves for seat in wave.seats}
    asked = Counter[str]()
    for wave in waves:
        asked.update(wave.wanted)
    found = {}
    for item in items:
        free = [v.id for v in voters if may_see(v, item) and (item.id, v.id) not in met]
        if seated:
            waiting = sum((item.id, voter) in seated for voter in free)
        elif offered is not None:
            waiting = min(offered.get(item.id, 0), len(free))
        else:
            # A server offers an item until it has what its waves want.
            waiting = min(max(0, asked[item.id] - len(done[item.id])), len(free))
        found[item.id] = Reach(waiting, len(free) - waiting)
    return found


def to_ask(
    wanted: Mapping[str, int], reached: Mapping[str, Reach], *, whole: bool = False
) -> tuple[dict[str, int], int]:
    """What a further wave is to ask: item -> answers, beside those that people still have before them.

    Args:
        wanted: item -> answers that it wants.
        reached: of each, what is out and who is left.
        whole: whether an item's new wave takes the place of what is out of it (a server shows it in one place).

    Returns:
        It, and the number of items for which nobody is left to be asked.
    """
    asked: dict[str, int] = {}
    beyond = 0
    for name, count in wanted.items():
        out, others = reached[name].waiting, reached[name].others
        more = min(count - out, others)
        if more > 0 and whole:
            more = min(count, out + others)
        if more > 0:
            asked[name] = more
        beyond += count > out and not others
    return asked, beyond
