"""Decisions from annotations: by majority; ties stay ties until people decide them, or Dawid-Skene if configured.

The order of rows, and the names of annotators and labels, do not matter.
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
from h2htalk.rounds.questions import Question, Value

# Rules of decisions.
RULES = ("majority", "one more annotation", "dawid_skene", "adjudication", "mean", "tie", "no annotations")
MAJORITY, ONE_MORE, DAWID_SKENE, ADJUDICATION, MEAN, TIE, NO_ANNOTATIONS = RULES


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one question of one item.

    Attributes:
        item, question: what is decided.
        label: the decided label, mean rating, or tuple of labels; None for a tie or without annotations.
        rule: `majority`; `one more annotation`, a majority of one vote among more votes than the overlap;
            `dawid_skene`, a tie that its posterior decided; `mean`, `tie`, `adjudication`, or `no annotations`.
        support: number of votes for `label`, for each of the tied labels, or number of ratings.
        votes: number of all votes.
        dawid_skene: the label that is most probable under Dawid-Skene, whatever was decided; None if several are
            equally probable, for ratings and without votes.
        posterior: its probability, 0 to 1.
        tied: the leading labels of a tie.
        interval: 95 % confidence interval of a mean.
        mac: keyed hash of the decision and what it rests on (`integrity`); empty before closing writes it.
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
    mac: str = ""

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "item": self.item,
            "question": self.question,
            "label": list(self.label) if isinstance(self.label, tuple) else self.label,
            "rule": self.rule,
            "support": self.support,
            "votes": self.votes,
            "dawid_skene": self.dawid_skene,
            "posterior": None if self.posterior is None else round(float(self.posterior), 6),
        }
        if self.tied:
            record["tied"] = list(self.tied)
        if self.interval is not None:
            record["interval"] = [round(float(edge), 4) for edge in self.interval]  # a scale's end is a whole number
        return record | ({"mac": self.mac} if self.mac else {})


def votes_on(question: Question, annotations: Iterable[Annotation]) -> list[Vote]:
    """Return the annotations of a question as votes, sorted by item and annotator."""
    votes = [
        Vote(one.item, one.annotator, str(one.value))
        for one in annotations
        if one.question == question.name and one.value is not None
    ]
    return sorted(votes, key=lambda vote: (vote.item, vote.annotator))


def decide(
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Sequence[Annotation],
    overlap: int,
    threshold: float | None = None,
) -> list[Decision]:
    """Decide every question on every item; gold items are not decided.

    Args:
        items: of the round.
        questions: of the round.
        annotations: the valid ones (`annotations.latest`).
        overlap: annotators per item; a majority of one among more votes has the rule `one more annotation`.
        threshold: Dawid-Skene decides a tie for a tied label with at least this posterior, 0 to 1. None: never.

    Returns:
        Sorted by item, then in the order of the questions.
    """
    decided = [item for item in items if not item.gold]
    by_question: dict[str, dict[str, Decision]] = {}
    for question in questions:
        if question.form == "label":
            votes = votes_on(question, annotations)
            by_question[question.name] = _decide_label(question.name, decided, votes, overlap, threshold)
        elif question.form == "rating":
            by_question[question.name] = _decide_rating(question, decided, annotations)
        elif question.form == "labels":
            by_question[question.name] = _decide_labels(question, decided, annotations)
    return [
        by_question[question.name][item.id]
        for item in sorted(decided, key=lambda item: item.id)
        for question in questions
        if item.id in by_question.get(question.name, {})
    ]


def _decide_label(
    question: str, items: Sequence[Item], votes: Sequence[Vote], overlap: int, threshold: float | None
) -> dict[str, Decision]:
    # The model is fitted to all votes, those on gold items included.
    table = tabulate(votes)
    counted, modelled = majority(table), dawid_skene(table)
    return {
        item.id: _label_decision(item.id, question, counted[item.id], modelled[item.id], overlap, threshold)
        if item.id in counted
        else Decision(item.id, question, None, NO_ANNOTATIONS)
        for item in items
    }


def _label_decision(
    item: str, question: str, counted: VoteResult, modelled: VoteResult, overlap: int, threshold: float | None
) -> Decision:
    decision = Decision(
        item, question, counted.label, MAJORITY, counted.support, counted.votes,
        modelled.label, modelled.posterior,
    )  # fmt: skip
    if counted.label is not None:
        others = (share for label, share in counted.chances.items() if label != counted.label)
        by_one = counted.support - round(max(others, default=0.0) * counted.votes) == 1
        return replace(decision, rule=ONE_MORE) if by_one and counted.votes > overlap else decision
    # Only a tied label can win: a posterior does not overrule the count.
    if threshold is not None and modelled.label in counted.tied and modelled.posterior >= threshold:
        return replace(decision, label=modelled.label, rule=DAWID_SKENE)
    return replace(decision, rule=TIE, tied=counted.tied)


def _values(question: Question, annotations: Sequence[Annotation]) -> dict[str, list[Value]]:
    """Return item -> values of a question."""
    values: dict[str, list[Value]] = {}
    for one in annotations:
        if one.question == question.name and one.value is not None:
            values.setdefault(one.item, []).append(one.value)
    return values


def _decide_rating(question: Question, items: Sequence[Item], annotations: Sequence[Annotation]) -> dict[str, Decision]:
    values, decisions = _values(question, annotations), {}
    for item in items:
        ratings = sorted(value for value in values.get(item.id, ()) if isinstance(value, int))
        if not ratings:
            decisions[item.id] = Decision(item.id, question.name, None, NO_ANNOTATIONS)
            continue
        mean, count = mean_of(ratings, (question.ratings[0], question.ratings[-1])), len(ratings)
        decisions[item.id] = Decision(item.id, question.name, mean.value, MEAN, count, count, interval=mean.interval)
    return decisions


def _decide_labels(question: Question, items: Sequence[Item], annotations: Sequence[Annotation]) -> dict[str, Decision]:
    """Return the labels that more than half of the annotators chose, for items that somebody annotated."""
    values, decisions = _values(question, annotations), {}
    for item in items:
        chosen = [value for value in values.get(item.id, ()) if isinstance(value, tuple)]
        if chosen:
            counts = {label: sum(label in one for one in chosen) for label in question.labels}
            labels = tuple(label for label, count in counts.items() if 2 * count > len(chosen))
            support = min((counts[label] for label in labels), default=0)
            decisions[item.id] = Decision(item.id, question.name, labels, MAJORITY, support, len(chosen))
    return decisions


@dataclass(frozen=True, slots=True)
class Adjudication:
    """A tie that an adjudication round decided.

    Attributes:
        tie: its `tie_id`.
        label: the decided one of the labels that were `tied` then.
        by: name of the adjudication round.
        mac: keyed hash of these, under the salt of the round with the tie.
    """

    tie: str
    label: str
    tied: tuple[str, ...]
    by: str
    mac: str = ""


def apply_adjudications(decisions: Sequence[Decision], adjudications: Mapping[str, Adjudication]) -> list[Decision]:
    """Return decisions with ties decided by adjudications (by `tie_id`) between exactly the labels that are tied."""

    def applied(one: Decision) -> Decision:
        adjudication = adjudications.get(tie_id(one.item, one.question))
        if one.rule != TIE or adjudication is None or set(adjudication.tied) != set(one.tied):
            return one
        return replace(one, label=adjudication.label, rule=ADJUDICATION, tied=())

    return [applied(one) for one in decisions]


def tie_id(item: str, question: str) -> str:
    """Return the item id under which an adjudication decides a tie."""
    return f"{item}#{question}"


def completed_items(
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Mapping[tuple[str, str, str], Annotation],
) -> dict[str, set[str]]:
    """Return item -> annotators who answered all its required questions, and those that their answers make required."""
    required = [question.name for question in questions if question.always_required]
    conditional = [(question.name, *question.after) for question in questions if question.required and question.after]
    completed: dict[str, set[str]] = {item.id: set() for item in items}
    for item, annotator, question in annotations:
        if (
            item in completed
            and question in required
            and all((item, annotator, name) in annotations for name in required)
            and all(
                (item, annotator, name) in annotations
                for name, before, label in conditional
                if (answer := annotations.get((item, annotator, before))) is not None and answer.value == label
            )
        ):
            completed[item].add(annotator)
    return completed
