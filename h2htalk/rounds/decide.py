"""From answers to decisions: majority, then the voters' reliability, then people. Never row or label order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.rounds.answers import Answer
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.ratings import mean_of
from h2htalk.rounds.standing import Standing, standing
from h2htalk.rounds.votes import Decision, Vote, majority, tabulate

# How a decision came about.
MAJORITY, POSTERIOR, MEAN, TIE, ADJUDICATION, NOTHING = (
    "majority", "posterior", "mean", "tie", "adjudication", "no answers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settled:
    """What votes, or an adjudicator, settled about one question on one item.

    Attributes:
        item, question: which.
        label: the answer; None for a tie or no answer. Of a rating the mean; of several labels a tuple.
        support: votes for `label`; of a tie, for each of the tied; of a rating, ratings.
        posterior: probability of `label` as far as its voters are known from other items (`standing`), 0 to 1; below
            0.5 where those who are known best speak against the count. Of a settled tie, among the tied. None for
            ratings, ties and without votes.
        how: `majority`, `posterior` (a tie that voters known from other items settle), `mean`, `tie`, `adjudication`,
            or `no answers`.
        votes: all votes on it.
        tied: the labels that lead together, where `how` is `tie`.
        interval: of a mean, 95 %.
    """

    item: str
    question: str
    label: str | float | tuple[str, ...] | None
    support: int
    posterior: float | None
    how: str
    votes: int
    tied: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "item": self.item,
            "question": self.question,
            "label": list(self.label) if isinstance(self.label, tuple) else self.label,
            "support": self.support,
            "posterior": None if self.posterior is None else round(self.posterior, 6),
            "how": self.how,
            "votes": self.votes,
        }
        if self.tied:
            record["tied"] = list(self.tied)
        if self.interval is not None:
            record["interval"] = [round(edge, 4) for edge in self.interval]
        return record


def votes_on(question: Question, answers: Iterable[Answer], items: Mapping[str, Item]) -> list[Vote]:
    """The answers to a question as votes, sorted: only on items of the round, and among what an item lets choose."""
    found = []
    for answer in answers:
        item = items.get(answer.item)
        if answer.question != question.name or item is None or answer.value is None:
            continue
        if not (item.labels and question.name == "label" and answer.value not in item.labels):
            found.append(Vote(answer.item, answer.voter, str(answer.value)))
    return sorted(found, key=lambda vote: (vote.item, vote.voter))


def decide(
    items: Sequence[Item], questions: Sequence[Question], answers: Sequence[Answer], margin: float
) -> list[Settled]:
    """Decisions by item and question, for every item that is not there to check voters.

    Args:
        items: of the round.
        questions: of the round.
        answers: those that count (`answers.latest`).
        margin: by which a tied label's posterior must lead the next, 0 to 1, besides being `standing.CLEAR` or more
            and the evidence for it sure.

    Returns:
        Sorted by item, then in the order of the questions. Renamed voters or labels and shuffled rows change nothing.
    """
    asked = {item.id: item for item in items}
    decided = [item for item in items if not item.gold]
    by_question: dict[str, dict[str, Settled]] = {}
    for question in questions:
        if question.form == "label":
            by_question[question.name] = _labels(question, items, votes_on(question, answers, asked), margin)
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
    question: Question, items: Sequence[Item], votes: Sequence[Vote], margin: float
) -> dict[str, Settled]:
    # Reliability is learned from all votes, those on gold items too: there it is the gold label that was met.
    table = tabulate(votes)
    by_majority = majority(table) if votes else {}
    gold = {item.id: str(item.gold[question.name]) for item in items if question.name in item.gold}
    known = standing(table, gold) if votes else None
    return {
        item.id: _label(item.id, question.name, by_majority.get(item.id), known, margin) for item in items
    }


def _label(
    item: str, question: str, counted: Decision | None, known: Standing | None, margin: float
) -> Settled:
    if counted is None or known is None:
        return Settled(item, question, None, 0, None, NOTHING, 0)
    if counted.label is not None:
        chance = known.chance(item, counted.label)
        return Settled(item, question, counted.label, counted.support, chance, MAJORITY, counted.votes)
    # Only the tied can win: a posterior may not overrule the count. And none wins on a guess about its voters.
    settled = known.settle(item, counted.tied, margin)
    if settled is not None:
        return Settled(item, question, settled[0], counted.support, settled[1], POSTERIOR, counted.votes)
    return Settled(item, question, None, counted.support, None, TIE, counted.votes, counted.tied)


def _ratings(question: Question, items: Sequence[Item], answers: Sequence[Answer]) -> dict[str, Settled]:
    given: dict[str, list[int]] = {}
    for answer in answers:
        if answer.question == question.name and isinstance(answer.value, int):
            given.setdefault(answer.item, []).append(answer.value)
    settled = {}
    for item in items:
        values = sorted(given.get(item.id, ()))
        if not values:
            settled[item.id] = Settled(item.id, question.name, None, 0, None, NOTHING, 0)
            continue
        mean = mean_of(values, (question.ratings[0], question.ratings[-1]))
        settled[item.id] = Settled(
            item.id, question.name, mean.value, len(values), None, MEAN, len(values), interval=mean.interval
        )
    return settled


def _several(question: Question, items: Sequence[Item], answers: Sequence[Answer]) -> dict[str, Settled]:
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
        settled[item.id] = Settled(item.id, question.name, chosen, support, None, MAJORITY, len(named))
    return settled


def adjudicated(decisions: Sequence[Settled], words: Mapping[str, Settled]) -> list[Settled]:
    """Decisions in which ties have the word of an adjudication round.

    Args:
        decisions: of the round with the ties.
        words: by `tie_id(item, question)`, the adjudication's decisions on the question `label`, each with the labels
            between which it was asked (`tied`). A word between other labels than are tied now settles nothing: who
            gave it has not seen this tie.
    """
    made = []
    for one in decisions:
        word = words.get(tie_id(one.item, one.question))
        if one.how == TIE and word is not None and word.label in one.tied and set(word.tied) == set(one.tied):
            one = Settled(one.item, one.question, word.label, one.support, None, ADJUDICATION, one.votes)
        made.append(one)
    return made


def tie_id(item: str, question: str) -> str:
    """The id under which a tie goes to adjudication."""
    return f"{item}#{question}"


def answered_items(
    items: Sequence[Item], questions: Sequence[Question], answers: Mapping[tuple[str, str, str], Answer]
) -> dict[str, set[str]]:
    """Item -> voters who answered all that is required of it, and what their own answers make required."""
    required = [question.name for question in questions if question.always]
    asked_after = [
        (question.name, *question.after) for question in questions if question.required and question.after
    ]
    voters: dict[str, set[str]] = {item.id: set() for item in items}
    for item, voter, question in answers:
        if (
            item in voters
            and question in required
            and all((item, voter, name) in answers for name in required)
            and all(
                (item, voter, name) in answers
                for name, before, label in asked_after
                if (said := answers.get((item, voter, before))) is not None and said.value == label
            )
        ):
            voters[item].add(voter)
    return voters
