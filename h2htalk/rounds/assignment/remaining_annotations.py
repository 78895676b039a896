"""Which items still want answers: short of them, not yet clear in an adaptive round, or tied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.aggregation.adaptive_overlap import needs_more, needs_more_by_posterior
from h2htalk.rounds.aggregation.decisions import answered_items, votes_on
from h2htalk.rounds.aggregation.majority import majority
from h2htalk.rounds.aggregation.vote_table import Vote
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet, may_see
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.settings import RoundSpec


def is_pilot(spec: RoundSpec, items: Sequence[Item]) -> bool:
    """Whether a round only checks its annotators: every item is gold, and no overlap was stated. Then all get all."""
    return not spec.overlap and not spec.adaptive.on and all(item.gold for item in items)


def initial_requests(
    spec: RoundSpec, items: Sequence[Item], annotators: Sequence[Annotator]
) -> dict[str, int]:
    """Item -> answers that the first assignment set asks for. Raises RoundError: nobody may see an item of a pilot."""
    if not is_pilot(spec, items):
        if not spec.adaptive.on:
            return dict.fromkeys((item.id for item in items), spec.answers)
        # As many as it takes where all agree: with fewer no item could be clear, and everybody would be asked again.
        asked = questions_for(spec.kind, [item.labels for item in items])
        return _clear(spec, asked, {}, {item.id: 0 for item in items})
    wanted = {item.id: sum(may_see(annotator, item) for annotator in annotators) for item in items}
    unseen = [item for item in items if not wanted[item.id]]
    if unseen:
        crisis = " and speaks of a crisis" if unseen[0].crisis else ""
        raise RoundError(
            f"{counted(len(unseen), 'item')} may be seen by nobody, the first: {quoted(unseen[0].id)} is in "
            f"{unseen[0].language}{crisis}; name annotators for them, or leave them out"
        )
    return wanted


def remaining_requests(
    spec: RoundSpec,
    items: Sequence[Item],
    questions: Sequence[Question],
    answers: Mapping[tuple[str, str, str], Annotation],
    annotators: Sequence[Annotator],
    *,
    ties: bool = False,
) -> dict[str, int]:
    """Item -> answers to ask for next; items that want none are left out.

    Args:
        spec: of the round: overlap, and whether it is adaptive.
        items, questions, answers: of the round; answers as `latest` gives them.
        annotators: of the round. A pilot wants an answer of everybody who may see an item and has not skipped it.
        ties: whether a tie at the full overlap wants one answer more (each tie once for each answer beyond it that
            did not break it: until nobody is left to ask).
    """
    who_answered = answered_items(items, questions, answers)
    if is_pilot(spec, items):
        passed = skips(answers)
        waited_for = {
            item.id: sum(
                may_see(v, item) and v.id not in who_answered[item.id] and (item.id, v.id) not in passed
                for v in annotators
            )
            for item in items
        }
        return {name: count for name, count in sorted(waited_for.items()) if count}
    done = {name: len(who) for name, who in who_answered.items()}
    by_id = {item.id: item for item in items}
    labelled = [question for question in questions if question.form == "label"]
    votes = {question.name: votes_on(question, answers.values(), by_id) for question in labelled}
    wanted = _clear(spec, questions, votes, done) if spec.adaptive.on else _short(spec, done)
    if ties:
        for question in labelled:
            for name, decision in majority(votes[question.name]).items():
                # A gold item only checks annotators; its ties decide nothing.
                if decision.label is None and not by_id[name].gold:
                    wanted[name] = max(wanted[name], 1)
    return {name: count for name, count in sorted(wanted.items()) if count}


def _short(spec: RoundSpec, done: Mapping[str, int]) -> dict[str, int]:
    """Item -> answers short of the overlap."""
    return {name: max(0, spec.answers - count) for name, count in done.items()}


def _clear(
    spec: RoundSpec,
    questions: Sequence[Question],
    votes: Mapping[str, Sequence[Vote]],
    done: Mapping[str, int],
) -> dict[str, int]:
    """Item -> answers until every label question is clear on it; without such a question, those short of the overlap.

    Args:
        spec: of an adaptive round.
        questions: of the round.
        votes: question -> votes at hand.
        done: item -> whole answers at hand.
    """
    labelled = [question for question in questions if question.form == "label"]
    if not labelled:
        return _short(spec, done)
    rule, most = spec.adaptive, spec.answers
    wanted = {name: max(0, rule.minimum - count) for name, count in done.items()}
    for question in labelled:
        at_hand = votes.get(question.name, ())
        if rule.confidence:
            more = needs_more_by_posterior(
                at_hand, done, accuracy=rule.accuracy, labels=len(question.labels), confidence=rule.confidence,
                minimum=rule.minimum, maximum=most,
            )  # fmt: skip
        else:
            more = needs_more(at_hand, done, minimum=rule.minimum, lead=rule.lead, maximum=most)
        wanted = {name: max(count, more[name]) for name, count in wanted.items()}
    return wanted


@dataclass(frozen=True, slots=True)
class PendingAnnotations:
    """Of one item. `waiting`: answers that people still have before them; `others`: people who could be asked yet."""

    waiting: int
    others: int


def pending_annotations(
    items: Sequence[Item],
    assignment_sets: Sequence[AssignmentSet],
    annotators: Sequence[Annotator],
    answers: Mapping[tuple[str, str, str], Annotation],
    done: Mapping[str, Collection[str]],
    offered: Mapping[str, int] | None = None,
) -> dict[str, PendingAnnotations]:
    """By item, what is out and who is left.

    Args:
        items: those to look at.
        assignment sets: of the round. Where they assignment nobody, a server hands items out.
        annotators: of the round; those who left have nothing before them and cannot be asked.
        answers: of the round, skips with them: who answered or skipped an item does not get it again.
        done: item -> annotators who answered all of it.
        offered: item -> answers that a server still asks for, where it told: it may count answers that the round does
            not, and offers the item no more.
    """
    met = {(item, annotator) for item, annotator, _ in answers}
    seated = {
        (assignment.item, assignment.annotator)
        for assignment_set in assignment_sets
        for assignment in assignment_set.assignments
    }
    asked = Counter[str]()
    for assignment_set in assignment_sets:
        asked.update(assignment_set.wanted)
    found = {}
    for item in items:
        free = [v.id for v in annotators if may_see(v, item) and (item.id, v.id) not in met]
        if seated:
            waiting = sum((item.id, annotator) in seated for annotator in free)
        elif offered is not None:
            waiting = min(offered.get(item.id, 0), len(free))
        else:
            # A server offers an item until it has what its assignment sets want.
            waiting = min(max(0, asked[item.id] - len(done[item.id])), len(free))
        found[item.id] = PendingAnnotations(waiting, len(free) - waiting)
    return found


def annotations_to_request(
    wanted: Mapping[str, int], reached: Mapping[str, PendingAnnotations], *, whole: bool = False
) -> tuple[dict[str, int], int]:
    """What a further assignment set is to ask: item -> answers, beside those that people still have before them.

    Args:
        wanted: item -> answers that it wants.
        reached: of each, what is out and who is left.
        whole: whether an item's new assignment set takes the place of what is out of it (a server shows it in one
            place).

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
