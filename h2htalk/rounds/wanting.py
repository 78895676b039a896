"""Which items still want answers: short of them, not yet clear in an adaptive round, or tied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.adaptive import needs_more
from h2htalk.rounds.answers import Answer, skips
from h2htalk.rounds.decide import answered_items, votes_on
from h2htalk.rounds.items import Item
from h2htalk.rounds.plan import may_see
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spec import RoundSpec
from h2htalk.rounds.voters import Voter
from h2htalk.rounds.votes import majority


def is_pilot(spec: RoundSpec, items: Sequence[Item]) -> bool:
    """Whether a round only checks its voters: every item is gold, and no overlap was stated. Then all get all."""
    return not spec.overlap and not spec.adaptive.on and all(item.gold for item in items)


def first_wanted(spec: RoundSpec, items: Sequence[Item], voters: Sequence[Voter]) -> dict[str, int]:
    """Item -> answers that the first wave asks for. Raises RoundError: nobody may see an item of a pilot."""
    if not is_pilot(spec, items):
        return dict.fromkeys(
            (item.id for item in items), spec.adaptive.minimum if spec.adaptive.on else spec.answers
        )
    wanted = {item.id: sum(may_see(voter, item) for voter in voters) for item in items}
    unseen = [item for item in items if not wanted[item.id]]
    if unseen:
        crisis = " and speaks of a crisis" if unseen[0].crisis else ""
        raise RoundError(
            f"{counted(len(unseen), 'item')} may be seen by nobody, the first: {quoted(unseen[0].id)} is in "
            f"{unseen[0].language}{crisis}; name voters for them, or leave them out"
        )
    return wanted


def still_wanted(
    spec: RoundSpec,
    items: Sequence[Item],
    questions: Sequence[Question],
    answers: Mapping[tuple[str, str, str], Answer],
    voters: Sequence[Voter],
    *,
    ties: bool = False,
) -> dict[str, int]:
    """Item -> answers to ask for next; items that want none are left out.

    Args:
        spec: of the round: overlap, and whether it is adaptive.
        items, questions, answers: of the round; answers as `latest` gives them.
        voters: of the round. A pilot wants an answer of everybody who may see an item and has not skipped it.
        ties: whether a tie at the full overlap wants one answer more (each tie once for each answer beyond it that
            did not break it: until nobody is left to ask).
    """
    who_answered = answered_items(items, questions, answers)
    if is_pilot(spec, items):
        passed = skips(answers)
        waited_for = {
            item.id: sum(
                may_see(v, item) and v.id not in who_answered[item.id] and (item.id, v.id) not in passed
                for v in voters
            )
            for item in items
        }
        return {name: count for name, count in sorted(waited_for.items()) if count}
    done = {name: len(who) for name, who in who_answered.items()}
    by_id = {item.id: item for item in items}
    wanted: dict[str, int] = {}
    labelled = [question for question in questions if question.form == "label"]
    votes = {question.name: votes_on(question, answers.values(), by_id) for question in labelled}
    if spec.adaptive.on and labelled:
        wanted = {name: max(0, spec.adaptive.minimum - count) for name, count in done.items()}
        for question in labelled:
            more = needs_more(
                votes[question.name],
                by_id,
                minimum=spec.adaptive.minimum,
                lead=spec.adaptive.lead,
                maximum=spec.answers,
            )
            wanted = {name: max(count, more[name]) for name, count in wanted.items()}
    else:
        wanted = {name: max(0, spec.answers - count) for name, count in done.items()}
    if ties:
        for question in labelled:
            for name, decision in majority(votes[question.name]).items():
                # A gold item only checks voters; its ties decide nothing.
                if decision.label is None and not by_id[name].gold:
                    wanted[name] = max(wanted[name], 1)
    return {name: count for name, count in sorted(wanted.items()) if count}
