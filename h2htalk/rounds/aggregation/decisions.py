"""From answers to decisions: majority; a tie stays one for people to settle, or for Dawid-Skene where asked.

The order of rows, and the names of annotators and labels, decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.majority import VoteResult, majority
from h2htalk.rounds.aggregation.ratings import mean_of
from h2htalk.rounds.aggregation.vote_table import Vote, tabulate
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question

# By which a decision came about.
RULES = ("majority", "one more answer", "dawid_skene", "adjudication", "mean", "tie", "no answers")
MAJORITY, ONE_MORE, DAWID_SKENE, ADJUDICATION, MEAN, TIE, NOTHING = RULES


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one question of one item.

    Attributes:
        item, question: which.
        label: the answer; None for a tie or no answer. Of a rating the mean; of several labels a tuple.
        rule: the rule: `majority`; `one more answer`, a majority of one vote among more answers than the overlap;
            `dawid_skene`, a tie that its posterior settled; `mean`, `tie`, `adjudication`, or `no answers`.
        support: votes for `label`; of a tie, for each of the tied; of a rating, ratings.
        votes: all votes on it.
        dawid_skene: the label that Dawid-Skene finds the most probable, whatever was decided; None where several are
            equally probable, for ratings and without votes.
        posterior: its probability, 0 to 1.
        tied: the labels that lead together, where `rule` is `tie`.
        interval: of a mean, 95 %.
    """

    item: str
    question: str
    label: str | float | tuple[str, ...] | None
    rule: str
    support: int = 0
    votes: int = 0
    dawid_skene: str | None = None
    posterior: float | None = None
    tied: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "item": self.item,
            "question": self.question,
            "label": list(self.label) if isinstance(self.label, tuple) else self.label,
            "rule": self.rule,
            "support": self.support,
            "votes": self.votes,
            "dawid_skene": self.dawid_skene,
            "posterior": None if self.posterior is None else round(self.posterior, 6),
        }
        if self.tied:
            record["tied"] = list(self.tied)
        if self.interval is not None:
            record["interval"] = [round(edge, 4) for edge in self.interval]
        return record


def votes_on(question: Question, answers: Iterable[Annotation], items: Mapping[str, Item]) -> list[Vote]:
    """The answers to a question as votes, sorted: only on items of the round, and among what an item lets choose."""
    found = []
    for answer in answers:
        item = items.get(answer.item)
        if answer.question != question.name or item is None or answer.value is None:
            continue
        if not (item.labels and question.name == "label" and answer.value not in item.labels):
            found.append(Vote(answer.item, answer.annotator, str(answer.value)))
    return sorted(found, key=lambda vote: (vote.item, vote.annotator))


def decide(
    items: Sequence[Item],
    questions: Sequence[Question],
    answers: Sequence[Annotation],
    overlap: int,
    threshold: float | None = None,
) -> list[Decision]:
    """Decisions by item and question, for every item that is not there to check annotators.

    Args:
        items: of the round.
        questions: of the round.
        answers: those that count (`answers.latest`).
        overlap: answers that an item is to have; a majority of one among more of them is `one more answer`.
        threshold: Dawid-Skene settles a tie between labels of which one is at least so probable, 0 to 1. None: never.

    Returns:
        Sorted by item, then in the order of the questions. Renamed annotators or labels and shuffled rows change
        nothing.
    """
    asked = {item.id: item for item in items}
    decided = [item for item in items if not item.gold]
    by_question: dict[str, dict[str, Decision]] = {}
    for question in questions:
        if question.form == "label":
            votes = votes_on(question, answers, asked)
            by_question[question.name] = _labels(question.name, decided, votes, overlap, threshold)
        elif question.form == "rating":
            by_question[question.name] = _ratings(question, decided, answers)
        elif question.form == "labels":
            by_question[question.name] = _several(question, decided, answers)
    return [
        by_question[question.name][item.id]
        for item in sorted(decided, key=lambda item: item.id)
        for question in questions
        if item.id in by_question.get(question.name, {})
    ]


def _labels(
    question: str, items: Sequence[Item], votes: Sequence[Vote], overlap: int, threshold: float | None
) -> dict[str, Decision]:
    # The model is fitted to all votes, those on gold items too.
    table = tabulate(votes)
    counted, modelled = majority(table), dawid_skene(table)
    return {
        item.id: _label(item.id, question, counted[item.id], modelled[item.id], overlap, threshold)
        if item.id in counted
        else Decision(item.id, question, None, NOTHING)
        for item in items
    }


def _label(
    item: str, question: str, counted: VoteResult, modelled: VoteResult, overlap: int, threshold: float | None
) -> Decision:
    found = Decision(
        item, question, counted.label, MAJORITY, counted.support, counted.votes,
        modelled.label, modelled.posterior,
    )  # fmt: skip
    if counted.label is not None:
        second = max(
            (share for label, share in counted.chances.items() if label != counted.label), default=0.0
        )
        by_one = counted.support - round(second * counted.votes) == 1
        return replace(found, rule=ONE_MORE) if by_one and counted.votes > overlap else found
    # Only one of the tied can win: a posterior does not overrule the count.
    if threshold is not None and modelled.label in counted.tied and modelled.posterior >= threshold:
        return replace(found, label=modelled.label, rule=DAWID_SKENE)
    return replace(found, rule=TIE, tied=counted.tied)


def _ratings(question: Question, items: Sequence[Item], answers: Sequence[Annotation]) -> dict[str, Decision]:
    given: dict[str, list[int]] = {}
    for answer in answers:
        if answer.question == question.name and isinstance(answer.value, int):
            given.setdefault(answer.item, []).append(answer.value)
    settled = {}
    for item in items:
        values = sorted(given.get(item.id, ()))
        if not values:
            settled[item.id] = Decision(item.id, question.name, None, NOTHING)
            continue
        mean = mean_of(values, (question.ratings[0], question.ratings[-1]))
        settled[item.id] = Decision(
            item.id, question.name, mean.value, MEAN, len(values), len(values), interval=mean.interval
        )
    return settled


def _several(question: Question, items: Sequence[Item], answers: Sequence[Annotation]) -> dict[str, Decision]:
    """Of many labels those that more than half of who answered named; only on items where somebody did."""
    given: dict[str, list[tuple[str, ...]]] = {}
    for answer in answers:
        if answer.question == question.name and isinstance(answer.value, tuple):
            given.setdefault(answer.item, []).append(answer.value)
    settled = {}
    for item in items:
        named = given.get(item.id, [])
        if not named:
            continue
        counts = {label: sum(label in one for one in named) for label in question.labels}
        chosen = tuple(label for label, count in counts.items() if 2 * count > len(named))
        support = min((counts[label] for label in chosen), default=0)
        settled[item.id] = Decision(item.id, question.name, chosen, MAJORITY, support, len(named))
    return settled


@dataclass(frozen=True, slots=True)
class Adjudication:
    """What an adjudication round decided about a tie.

    Attributes:
        tie: its `tie_id`.
        label: of those that were `tied` when it was asked.
        by: name of the adjudication round.
    """

    tie: str
    label: str
    tied: tuple[str, ...]
    by: str


def adjudicated(decisions: Sequence[Decision], made: Mapping[str, Adjudication]) -> list[Decision]:
    """Decisions of which ties are settled by adjudications (by `tie_id`) between exactly the labels tied now."""
    settled = []
    for one in decisions:
        found = made.get(tie_id(one.item, one.question))
        if one.rule == TIE and found is not None and set(found.tied) == set(one.tied):
            one = replace(one, label=found.label, rule=ADJUDICATION, tied=())
        settled.append(one)
    return settled


def tie_id(item: str, question: str) -> str:
    """The id under which a tie goes to adjudication."""
    return f"{item}#{question}"


def answered_items(
    items: Sequence[Item], questions: Sequence[Question], answers: Mapping[tuple[str, str, str], Annotation]
) -> dict[str, set[str]]:
    """Item -> annotators who answered all that is required of it, and what their own answers make required."""
    required = [question.name for question in questions if question.always]
    asked_after = [
        (question.name, *question.after) for question in questions if question.required and question.after
    ]
    annotators: dict[str, set[str]] = {item.id: set() for item in items}
    for item, annotator, question in answers:
        if (
            item in annotators
            and question in required
            and all((item, annotator, name) in answers for name in required)
            and all(
                (item, annotator, name) in answers
                for name, before, label in asked_after
                if (said := answers.get((item, annotator, before))) is not None and said.value == label
            )
        ):
            annotators[item].add(annotator)
    return annotators
