"""Which items still want answers: short of them, not yet clear in an adaptive round, or tied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from h2htalk.rounds.adaptive import needs_more
from h2htalk.rounds.answers import Answer
from h2htalk.rounds.decide import answered_items, votes_on
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.spec import RoundSpec
from h2htalk.rounds.votes import majority


def still_wanted(
    spec: RoundSpec,
    items: Sequence[Item],
    questions: Sequence[Question],
    answers: Mapping[tuple[str, str, str], Answer],
    *,
    ties: bool = False,
) -> dict[str, int]:
    """Item -> answers to ask for next; items that want none are left out.

    Args:
        spec: of the round: overlap, and whether it is adaptive.
        items, questions, answers: of the round; answers as `latest` gives them.
        ties: whether a tie at the full overlap wants one answer more (each tie once for each answer beyond it that
            did not break it: until nobody is left to ask).
    """
    done = {name: len(voters) for name, voters in answered_items(items, questions, answers).items()}
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
