"""How many annotators each item still needs: below the overlap, not clear in an adaptive round, or tied.

Numbers are annotators per item: an annotator counts once they have answered all required questions of the item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.aggregation.adaptive_overlap import needs_more, needs_more_by_posterior
from h2htalk.rounds.aggregation.decisions import completed_items, votes_on
from h2htalk.rounds.aggregation.majority import majority
from h2htalk.rounds.aggregation.vote_table import Vote
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet, is_eligible
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.settings import RoundSpec


def is_pilot(spec: RoundSpec, items: Sequence[Item]) -> bool:
    """Return whether a round only checks annotators, who all get all items: all are gold, and no overlap is set."""
    return not spec.overlap and not spec.adaptive.on and all(item.gold for item in items)


def initial_requests(spec: RoundSpec, items: Sequence[Item], annotators: Sequence[Annotator]) -> dict[str, int]:
    """Return item -> number of annotators of the first assignment set, as far as they are eligible.

    Raises:
        RoundError: nobody is eligible for an item.
    """
    eligible = eligible_annotators(items, annotators)
    without = [item for item in items if not eligible[item.id]]
    if without:
        about = " and about a crisis (yes under crisis is consent to read about crises)" if without[0].crisis else ""
        raise RoundError(
            f"no annotator is eligible for {counted(len(without), 'item')}, the first: {quoted(without[0].id)} is in "
            f"{without[0].language}{about}; add annotators for them, or remove the items"
        )
    if is_pilot(spec, items):
        return eligible
    if spec.adaptive.on:
        # As many as it takes if all agree: no item could be clear with fewer, and all would be requested again.
        questions = questions_for(spec.kind, [item.labels for item in items])
        most = _until_clear(spec, questions, {}, {item.id: 0 for item in items})
    else:
        most = dict.fromkeys(eligible, spec.annotators_per_item)
    return {name: min(count, eligible[name]) for name, count in most.items()}


def eligible_annotators(items: Sequence[Item], annotators: Sequence[Annotator]) -> dict[str, int]:
    """Return item -> number of annotators who may get it."""
    return {item.id: sum(is_eligible(annotator, item) for annotator in annotators) for item in items}


def below_overlap(spec: RoundSpec, items: Sequence[Item], annotators: Mapping[str, int]) -> dict[int, int]:
    """Return the number of items by their number of annotators, of those below the overlap; a pilot has none.

    Args:
        spec, items: of the round.
        annotators: item -> number of its eligible annotators, or of those who annotated it. Other items are left out.
    """
    if is_pilot(spec, items):
        return {}
    fewer = Counter(count for count in annotators.values() if count < spec.annotators_per_item)
    return dict(sorted(fewer.items(), reverse=True))


def describe_below_overlap(spec: RoundSpec, fewer: Mapping[int, int], what: str) -> list[str]:
    """Return a message on items `below_overlap`; `what` they have fewer of: annotations or eligible annotators."""
    if not fewer:
        return []
    listed = ", ".join(f"{count} ({counted(items, 'item')})" for count, items in fewer.items())
    number = counted(sum(fewer.values()), "item has", "items have")
    return [f"{number} fewer {what} than the overlap of {spec.annotators_per_item}: {listed}"]


def remaining_requests(
    spec: RoundSpec,
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Mapping[tuple[str, str, str], Annotation],
    annotators: Sequence[Annotator],
    *,
    ties: bool = False,
) -> dict[str, int]:
    """Return item -> number of further annotators; items that need none are left out.

    Args:
        spec: of the round: overlap, and whether it is adaptive.
        items, questions, annotations: of the round; annotations as `latest` returns them.
        annotators: of the round. A pilot needs everybody who is eligible for an item and has not skipped it.
        ties: whether a tie at the full overlap needs one more annotator, repeatedly until it is broken.
    """
    completed = completed_items(items, questions, annotations)
    if is_pilot(spec, items):
        skipped = skips(annotations)
        waiting = {
            item.id: sum(
                is_eligible(v, item) and v.id not in completed[item.id] and (item.id, v.id) not in skipped
                for v in annotators
            )
            for item in items
        }
        return {name: count for name, count in sorted(waiting.items()) if count}
    done = {name: len(who) for name, who in completed.items()}
    by_id = {item.id: item for item in items}
    labelled = [question for question in questions if question.form == "label"]
    votes = {question.name: votes_on(question, annotations.values()) for question in labelled}
    needed = _until_clear(spec, questions, votes, done) if spec.adaptive.on else _below_overlap(spec, done)
    if ties:
        for question in labelled:
            for name, result in majority(votes[question.name]).items():
                # Gold items are not decided.
                if result.label is None and not by_id[name].gold:
                    needed[name] = max(needed[name], 1)
    return {name: count for name, count in sorted(needed.items()) if count}


def _below_overlap(spec: RoundSpec, done: Mapping[str, int]) -> dict[str, int]:
    return {name: max(0, spec.annotators_per_item - count) for name, count in done.items()}


def _until_clear(
    spec: RoundSpec,
    questions: Sequence[Question],
    votes: Mapping[str, Sequence[Vote]],
    done: Mapping[str, int],
) -> dict[str, int]:
    """Return item -> annotators until every label question is clear; without one, those below the overlap.

    Args:
        spec: of an adaptive round.
        questions: of the round.
        votes: question -> votes so far.
        done: item -> annotators so far.
    """
    labelled = [question for question in questions if question.form == "label"]
    if not labelled:
        return _below_overlap(spec, done)
    rule, maximum = spec.adaptive, spec.annotators_per_item
    needed = {name: max(0, rule.minimum - count) for name, count in done.items()}
    for question in labelled:
        theirs = votes.get(question.name, ())
        if rule.confidence:
            more = needs_more_by_posterior(
                theirs, done, accuracy=rule.accuracy, labels=len(question.labels), confidence=rule.confidence,
                minimum=rule.minimum, maximum=maximum,
            )  # fmt: skip
        else:
            more = needs_more(theirs, done, minimum=rule.minimum, lead=rule.lead, maximum=maximum)
        needed = {name: max(count, more[name]) for name, count in needed.items()}
    return needed


@dataclass(frozen=True, slots=True)
class PendingAnnotations:
    """Annotators of one item: `pending` ones have it to annotate, `available` ones could be given it."""

    pending: int
    available: int


def pending_annotations(
    items: Sequence[Item],
    sets: Sequence[AssignmentSet],
    annotators: Sequence[Annotator],
    annotations: Mapping[tuple[str, str, str], Annotation],
    completed: Mapping[str, Collection[str]],
    offered: Mapping[str, int] | None = None,
) -> dict[str, PendingAnnotations]:
    """Return the pending and available annotators of items.

    Args:
        items: some items of the round.
        sets: assignment sets of the round. Without assignments, a server hands out the items.
        annotators: of the round; inactive ones are neither pending nor available.
        annotations: of the round, with skips: nobody gets an item that they annotated or skipped.
        completed: item -> annotators who completed it.
        offered: item -> annotators that a server still offers it to, if known. Its count may include annotations that
            the round does not count.
    """
    seen = {(item, annotator) for item, annotator, _ in annotations}
    assigned = {(one.item, one.annotator) for assignment_set in sets for one in assignment_set.assignments}
    requested = Counter[str]()
    for assignment_set in sets:
        requested.update(assignment_set.requested)
    result = {}
    for item in items:
        free = [v.id for v in annotators if is_eligible(v, item) and (item.id, v.id) not in seen]
        if assigned:
            pending = sum((item.id, annotator) in assigned for annotator in free)
        elif offered is not None:
            pending = min(offered.get(item.id, 0), len(free))
        else:
            # A server offers an item until it has as many annotators as its assignment sets request.
            pending = min(max(0, requested[item.id] - len(completed[item.id])), len(free))
        result[item.id] = PendingAnnotations(pending, len(free) - pending)
    return result


def annotations_to_request(
    needed: Mapping[str, int], pending: Mapping[str, PendingAnnotations], *, replace: bool = False
) -> tuple[dict[str, int], int]:
    """Return what a further assignment set requests, beside the pending annotators.

    Args:
        needed: item -> number of annotators that it needs.
        pending: item -> its pending and available annotators.
        replace: whether the new set replaces what is pending (a server offers an item in one dataset only).

    Returns:
        Item -> number of annotators to request, and the number of items that need more than are available.
    """
    requests: dict[str, int] = {}
    exhausted = 0
    for name, count in needed.items():
        out, available = pending[name].pending, pending[name].available
        if (more := min(count - out, available)) > 0:
            requests[name] = min(count, out + available) if replace else more
        exhausted += count > out and not available
    return requests, exhausted
