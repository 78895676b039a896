"""Decisions from annotations: by majority; ties stay ties until people decide them, or Dawid-Skene if configured.

The order of rows, and the names of annotators and labels, do not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.distributions import CONFIDENCE, Interval, t_quantile
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, majority, tabulate
from h2htalk.rounds.annotations import Annotation, Annotations
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import NO, UNSURE, YES, Question

# Rules of decisions.
RULES = (
    "majority",
    "one more annotation",
    "dawid_skene",
    "adjudication",
    "mean",
    "any_yes",
    "tie",
    "no annotations",
)
MAJORITY, ONE_MORE, DAWID_SKENE, ADJUDICATION, MEAN, ANY_YES, TIE, NO_ANNOTATIONS = RULES


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one question of one item.

    Attributes:
        item, question: what is decided.
        label: the decided label, mean rating, or tuple of labels; None for a tie or without annotations.
        rule: `majority`; `one more annotation`, a majority of one vote among more votes than the overlap;
            `dawid_skene`, a tie that its posterior decided; `mean`, `tie`, `adjudication`, or `no annotations`;
            `any_yes`: "yes" by one person decides, else "unsure" by one.
        support: number of votes for `label`, for each of the tied labels, or number of ratings.
        votes: number of all votes.
        dawid_skene: the label that is most probable under Dawid-Skene, whatever was decided; None if several are
            equally probable, for ratings and without votes.
        posterior: its probability, 0 to 1.
        tied: the leading labels of a tie.
        interval: 95 % confidence interval of a mean.
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


def votes_on(question: Question, annotations: Iterable[Annotation]) -> list[Vote]:
    """Return the annotations of a question as votes."""
    return [
        Vote(one.item, one.annotator, str(one.value))
        for one in annotations
        if one.question == question.name and one.value is not None
    ]


def decide(
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Sequence[Annotation],
    overlap: int,
    threshold: float | None = None,
) -> list[Decision]:
    """Decide every question on every item by valid annotations, sorted by item; not gold items, nor comments.

    A majority of one among more votes than the overlap has the rule `one more annotation`. Dawid-Skene decides a tie
    for a tied label with at least the posterior `threshold`, 0 to 1; None: never.
    """
    made: dict[tuple[str, str], Decision] = {}
    for question in questions:
        if question.is_reading:
            made |= {(one.item, one.question): one for one in _any_yes(question, annotations)}
            continue
        if question.form == "label":
            # The model is fitted to all votes, those on gold items included.
            table = tabulate(votes_on(question, annotations))
            counted = majority(table)
            modelled = dawid_skene(table)
            for item, result in counted.items():
                model = modelled[item]
                figures = result.support, result.votes, model.label, round(model.posterior, 6)
                decision = Decision(item, question.name, result.label, MAJORITY, *figures)
                if result.label is not None:
                    second = max(
                        (share for label, share in result.chances.items() if label != result.label),
                        default=0,
                    )
                    if (
                        result.votes > overlap
                        and result.support - round(second * result.votes) == 1
                    ):
                        decision = replace(decision, rule=ONE_MORE)
                elif (
                    threshold is not None
                    and model.label in result.tied
                    and model.posterior >= threshold
                ):
                    # Only a tied label can win by its posterior, which does not overrule the count.
                    decision = replace(decision, label=model.label, rule=DAWID_SKENE)
                else:
                    decision = replace(decision, rule=TIE, tied=result.tied)
                made[item, question.name] = decision
            continue
        values: dict[str, list[Any]] = {}
        for one in annotations:
            if one.question == question.name and one.value is not None:
                values.setdefault(one.item, []).append(one.value)
        for item, given in values.items() if question.form != "text" else ():
            if question.form == "rating":
                mean, interval = mean_of(given, (question.ratings[0], question.ratings[-1]))
                decision = Decision(
                    item, question.name, mean, MEAN, len(given), len(given), interval=interval
                )
            else:  # the labels that more than half of the annotators chose
                counts = {
                    label: sum(label in chosen for chosen in given) for label in question.labels
                }
                labels = tuple(label for label, count in counts.items() if 2 * count > len(given))
                support = min((counts[label] for label in labels), default=0)
                decision = Decision(item, question.name, labels, MAJORITY, support, len(given))
            made[item, question.name] = decision
    decided = []
    for item in sorted(one.id for one in items if not one.gold):
        for question in questions:
            if (item, question.name) in made:
                decided.append(made[item, question.name])
            elif question.form in ("label", "rating"):
                decided.append(Decision(item, question.name, None, NO_ANNOTATIONS))
    return decided


def _any_yes(question: Question, annotations: Iterable[Annotation]) -> Iterator[Decision]:
    """Decide a reading question on every item that has answers: what one person sees, many may overlook."""
    answers: dict[str, Counter[str]] = {}
    for vote in votes_on(question, annotations):
        answers.setdefault(vote.item, Counter())[vote.label] += 1
    for item, counts in answers.items():
        label = next(label for label in (YES, UNSURE, NO) if counts[label])
        yield Decision(
            item, question.name, label, ANY_YES, support=counts[label], votes=counts.total()
        )


def keep_modelled(
    decisions: Sequence[Decision], before: Mapping[tuple[str, str], Decision]
) -> list[Decision]:
    """Return decisions with what the model said of the same votes `before`, by (item, question).

    The model estimates the accuracy of each annotator. Once an annotator is erased, their votes on several items are
    nobody's, and it cannot be fitted to them as before.
    """

    def kept(new: Decision) -> Decision:
        old = before.get((new.item, new.question))
        if old is None or (old.votes, old.support) != (new.votes, new.support):
            return new
        if {old.rule, new.rule} == {TIE, DAWID_SKENE}:
            return old
        return replace(new, dawid_skene=old.dawid_skene, posterior=old.posterior)

    return [kept(one) for one in decisions]


def mean_of(values: Sequence[int], scale: tuple[int, int]) -> tuple[float, Interval | None]:
    """Return the mean of ratings, and a 95 % interval for the mean of all annotators; None for one rating.

    The interval is Student's t if ratings differ. For equal ratings it assumes that a share of 1 - 0.05^(1/n) of all
    annotators rates at the ends of the scale: with that share, n equal ratings still occur in 5 % of panels.
    """
    n, total, (least, most) = len(values), sum(values), scale
    mean = total / n
    if n == 1:
        return mean, None
    # Whole numbers until the last step are exact, and so independent of the order.
    spread = math.sqrt((n * sum(one * one for one in values) - total * total) / (n * (n - 1)))
    if spread:
        half = t_quantile(n - 1) * spread / math.sqrt(n)
        low = max(mean - half, least)
        high = min(mean + half, most)
    else:
        others = 1 - (1 - CONFIDENCE) ** (1 / n)
        low = mean - others * (mean - least)
        high = mean + others * (most - mean)
    return mean, (round(float(low), 4), round(float(high), 4))


@dataclass(frozen=True, slots=True)
class Adjudication:
    """A tie, by its `tie_id`, for which the adjudication round `by` decided on one of the labels `tied` then."""

    tie: str
    label: str
    tied: tuple[str, ...]
    by: str


def apply_adjudications(
    decisions: Sequence[Decision], adjudications: Mapping[str, Adjudication]
) -> list[Decision]:
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
    items: Sequence[Item], questions: Sequence[Question], annotations: Annotations
) -> dict[str, set[str]]:
    """Return item -> annotators who answered all its required questions, and those that their answers make required."""
    completed: dict[str, set[str]] = {item.id: set() for item in items}
    for item, annotator in {key[:2] for key in annotations if key[0] in completed}:
        values = {
            q.name: one.value
            for q in questions
            if (one := annotations.get((item, annotator, q.name)))
        }
        if all(q.name in values for q in questions if q.required and q.is_asked(values)):
            completed[item].add(annotator)
    return completed
