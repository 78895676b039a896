"""Messages on further annotations of items: what is handed out, or why nothing is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from h2htalk.errors import counted
from h2htalk.rounds.assignment.remaining_annotations import PendingAnnotations


def describe_exhausted(
    exhausted: Collection[str], below: Collection[str], pending: Mapping[str, PendingAnnotations]
) -> list[str]:
    """Return why items get no further annotators: everybody eligible has them already.

    `below` are the items below the overlap, or unclear in an adaptive round; the others are tied.
    """
    offered = [name for name in exhausted if name in below and pending[name].pending]
    short = [name for name in exhausted if name in below and not pending[name].pending]
    tied = [name for name in exhausted if name not in below]
    messages = []
    if offered:
        items = counted(len(offered), "item is", "items are")
        messages.append(
            f"{items} with all eligible annotators already, who are fewer than it takes: wait for their answers, or "
            "add annotators with --annotators"
        )
    if short:
        items = counted(len(short), "item")
        messages.append(
            f"no eligible annotator is left for {items} below the overlap: add some with --annotators"
        )
    if tied:
        items = counted(len(tied), "item has", "items have")
        messages.append(
            f"{items} enough answers and a tie that nobody is left to break: add annotators with --annotators, or "
            "close the round and open an adjudication of its ties"
        )
    return messages


def describe_requests(requested: Mapping[str, int], nobody: Sequence[str], waiting: int) -> str:
    """Return what is handed out (item -> annotators), or why nothing is.

    `nobody` are messages on items without further annotators; of items that need more, `waiting` assignments are
    pending.
    """
    if requested:
        assignments = counted(sum(requested.values()), "assignment")
        return "; ".join(
            [f"handed out {assignments} of {counted(len(requested), 'item')}", *nobody]
        )
    if waiting:
        message = (
            f"nothing new to hand out: {counted(waiting, 'assignment is', 'assignments are')} still pending; wait, or "
            "name annotators who left with --without"
        )
        return "; ".join([message, *nobody])
    return f"nothing to hand out: {'; '.join(nobody) or 'every item already has enough annotators'}"
