"""How many annotators each item still needs: below the overlap, not clear in an adaptive round, or tied.

Numbers are annotators per item: an annotator counts once they have answered all required questions of the item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.aggregation.decisions import completed_items, votes_on
from h2htalk.rounds.aggregation.votes import Vote, majority
from h2htalk.rounds.annotations import Annotations, skips
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet, assign, group_items, is_eligible
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, questions_for, voted
from h2htalk.rounds.settings import Adaptive, RoundSpec


def is_pilot(spec: RoundSpec, items: Sequence[Item]) -> bool:
    """Return whether a round only checks annotators, who all get all items: all are gold, and no overlap is set."""
    is_gold = [bool(item.gold) and not item.planted for item in items]
    return not spec.overlap and not spec.adaptive.on and all(is_gold)


def initial_requests(
    spec: RoundSpec, items: Sequence[Item], annotators: Sequence[Annotator]
) -> dict[str, int]:
    """Return item -> annotators of the first assignment set. Raise RoundError if nobody is eligible for an item."""
    eligible = eligible_annotators(items, annotators)
    without = [item for item in items if not eligible[item.id]]
    if without:
        about = ""
        if without[0].crisis:
            about = " and about a crisis (yes under crisis is consent to read about crises)"
        elif without[0].withheld:
            about = ", and nobody has read it (yes under crisis is consent to such items)"
        raise RoundError(
            f"no annotator is eligible for {counted(len(without), 'item')}, the first: {quoted(without[0].id)} is in "
            f"{without[0].language}{about}; add annotators for them, or remove the items"
        )
    if is_pilot(spec, items):
        return eligible
    # Of an adaptive round as many as it takes if all agree: no item could be clear with fewer.
    questions = questions_for(spec.kind, [item.labels for item in items])
    most = _below_overlap(spec, questions, {}, dict.fromkeys(eligible, 0))
    return {name: min(count, eligible[name]) for name, count in most.items()}


def eligible_annotators(items: Sequence[Item], annotators: Sequence[Annotator]) -> dict[str, int]:
    """Return item -> number of annotators who may get it."""
    return {
        item.id: sum(is_eligible(annotator, item) for annotator in annotators) for item in items
    }


def make_assignment_set(
    spec: RoundSpec,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
    assigned: Collection[tuple[str, str]],
    assigns_items: bool,
    handed_out: Collection[str] = (),
) -> AssignmentSet:
    """Return an assignment set for `requested` (item -> annotators), with assignments by name if `assigns_items`.

    It gets planted items of `items`, a server's none of those that were `handed_out` in earlier sets.
    """
    # The manager cannot choose the items of an adjudication or of a later set, and experts review sets that are about
    # crises: what does not fit is spread evenly, unless it is left to a later round.
    exceeds = (
        number > 1 or spec.kind == "adjudication" or (spec.kind == "expert" and not spec.spread)
    )
    # Also for a server: this raises RoundError if there are too many crises.
    assignments = assign(
        spec, number, items, requested, annotators, assigned, may_exceed_share=exceeds
    )
    if assigns_items:
        return assignments
    # A first set requests the same number for all items, as far as annotators are eligible.
    mixed = number == 1 or is_pilot(spec, items)
    return group_items(
        spec, number, items, requested, may_exceed_share=exceeds, mixed=mixed, handed_out=handed_out
    )


def below_overlap(
    spec: RoundSpec, items: Sequence[Item], annotators: Mapping[str, int]
) -> dict[int, int]:
    """Return number of annotators (item -> number) -> items that have it, below the overlap; a pilot has none."""
    if is_pilot(spec, items):
        return {}
    fewer = Counter(count for count in annotators.values() if count < spec.annotators_per_item)
    return dict(sorted(fewer.items(), reverse=True))


def describe_below_overlap(spec: RoundSpec, fewer: Mapping[int, int], what: str) -> list[str]:
    """Return a message on items `below_overlap`; `what` they have fewer of: annotations or eligible annotators."""
    if not fewer:
        return []
    each = ", ".join(f"{count} ({counted(items, 'item')})" for count, items in fewer.items())
    number = counted(sum(fewer.values()), "item has", "items have")
    return [f"{number} fewer {what} than the overlap of {spec.annotators_per_item}: {each}"]


def remaining_requests(
    spec: RoundSpec,
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Annotations,
    annotators: Sequence[Annotator],
    *,
    ties: bool = False,
) -> dict[str, int]:
    """Return item -> number of further annotators; items that need none are left out.

    A pilot needs everybody who is eligible for an item and has not skipped it. With `ties`, a tie at the full overlap
    needs one more annotator, repeatedly until it is broken.
    """
    completed = completed_items(items, questions, annotations)
    if is_pilot(spec, items):
        skipped = skips(annotations)
        needed = {
            item.id: sum(
                is_eligible(v, item)
                and v.id not in completed[item.id]
                and (item.id, v.id) not in skipped
                for v in annotators
            )
            for item in items
        }
    else:
        labelled = [question for question in voted(questions) if question.form == "label"]
        votes = {question.name: votes_on(question, annotations.values()) for question in labelled}
        needed = _below_overlap(
            spec, questions, votes, {name: len(who) for name, who in completed.items()}
        )
        undecided = {item.id for item in items if not item.gold} if ties else set()
        for theirs in votes.values() if ties else ():
            for name, result in majority(theirs).items():
                if result.label is None and name in undecided:
                    needed[name] = max(needed[name], 1)
    return {name: count for name, count in sorted(needed.items()) if count}


def _below_overlap(
    spec: RoundSpec,
    questions: Sequence[Question],
    votes: Mapping[str, Sequence[Vote]],
    done: Mapping[str, int],
) -> dict[str, int]:
    """Return item -> annotators that it needs: up to the overlap, or until every label question is clear."""
    labelled = [question for question in voted(questions) if question.form == "label"]
    if not spec.adaptive.on or not labelled:
        return {name: max(0, spec.annotators_per_item - count) for name, count in done.items()}
    needed = {name: max(0, spec.adaptive.minimum - count) for name, count in done.items()}
    for one in labelled:
        more = needs_more(votes.get(one.name, ()), done, spec.adaptive, spec.annotators_per_item)
        needed = {name: max(count, more[name]) for name, count in needed.items()}
    return needed


def needs_more(
    votes: Iterable[Vote], items: Iterable[str], rule: Adaptive, maximum: int
) -> dict[str, int]:
    """Return how many more votes each item needs until one label leads by `rule.lead`, if all are for that label.

    Votes on other items are ignored; an item that is clear or has `maximum` votes needs 0.
    """
    counts: dict[str, Counter[str]] = {item: Counter() for item in items}
    for vote in votes:
        if vote.item in counts:
            counts[vote.item][vote.label] += 1
    more = {}
    for item, labels in counts.items():
        first, second = (*sorted(labels.values(), reverse=True), 0, 0)[:2]
        wanted = max(rule.minimum - labels.total(), rule.lead - (first - second))
        more[item] = max(0, min(wanted, maximum - labels.total()))
    return more


@dataclass(frozen=True, slots=True)
class PendingAnnotations:
    """Annotators of one item: `pending` ones have it to annotate, `available` ones could be given it."""

    pending: int
    available: int


def pending_annotations(
    items: Sequence[Item],
    sets: Sequence[AssignmentSet],
    annotators: Sequence[Annotator],
    annotations: Annotations,
    completed: Mapping[str, Collection[str]],
    offered: Mapping[str, int] | None = None,
) -> dict[str, PendingAnnotations]:
    """Return the pending and available annotators of items. Nobody gets an item that they annotated or skipped.

    `offered` is item -> annotators that a server still offers it to, by its own count.
    """
    seen = {(item, annotator) for item, annotator, _ in annotations}
    assigned = {
        (one.item, one.annotator) for assignment_set in sets for one in assignment_set.assignments
    }
    requested = Counter[str]()
    for assignment_set in sets:
        requested.update(assignment_set.requested)
    result = {}
    for item in items:
        free = [v.id for v in annotators if is_eligible(v, item) and (item.id, v.id) not in seen]
        # A server offers an item until it has as many annotators as its assignment sets request.
        still = (
            max(0, requested[item.id] - len(completed[item.id]))
            if offered is None
            else offered.get(item.id, 0)
        )
        pending = (
            sum((item.id, one) in assigned for one in free) if assigned else min(still, len(free))
        )
        result[item.id] = PendingAnnotations(pending, len(free) - pending)
    return result


def annotations_to_request(
    needed: Mapping[str, int], pending: Mapping[str, PendingAnnotations], *, replace: bool = False
) -> tuple[dict[str, int], frozenset[str]]:
    """Return item -> annotators that a further set requests, and the items that need more than are available.

    With `replace`, the new set replaces what is pending: a server offers an item in one dataset only.
    """
    requests: dict[str, int] = {}
    exhausted = set[str]()
    for name, count in needed.items():
        out = pending[name].pending
        available = pending[name].available
        if (more := min(count - out, available)) > 0:
            requests[name] = min(count, out + available) if replace else more
        if count > out and not available:
            exhausted.add(name)
    return requests, frozenset(exhausted)
