"""Pairs of annotators who give the same unusual answers: one may have copied from the other.

A copyist agrees with the others as well as the person copied, so that agreement does not show it. What shows it are
shared deviations: answers by which both differ in the same way from the majority of all other annotators. People who
answer on their own share them on hard items and out of the same habits (both lenient, both often at `drop`). Both are
estimated from the round itself, and a pair is named only if it shares many more.

A named pair is a reason to look at the answers and to talk to both, never to remove them: it does not show who copied
from whom, or whether both talked about the items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h2htalk.data.records import Text
from h2htalk.distributions import binomial_tail
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.questions import SKIPPED, Question, Value

# Least number of answers by which one of a pair deviates, and least share of them that both give. The majority of the
# others is one person where an item has three annotators: who disagrees with a poor one need not be wrong, so more
# must be shared. Measured in docs/measurements.md, as is the probability below.
MIN_DEVIATIONS, MIN_SHARED, MIN_SHARED_OF_THREE = 5, 0.7, 0.8
# Largest probability, over all pairs of a round, with which some pair shares so much by chance and habits. A habit that
# does not follow the others' majority, like rating a step lower than the item deserves, is not all in it.
MAX_PROBABILITY = 1e-3
# Where deviations are few: if all of at least this many answers of a pair are equal, this many of them deviating.
MIN_COMMON, MIN_SHARED_IDENTICAL, MAX_PROBABILITY_IDENTICAL = 10, 2, 0.05
# Weight of everybody's habits, in answers, in those of one annotator.
PRIOR_ANSWERS = 1.0

Indices = list[int]
# Question, number of other annotators, how many of them gave an answer, and whether that is their majority.
Situation = tuple[str, int, int, bool]


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """Two annotators (ids, sorted) who share more answers than people do who answer on their own.

    Attributes:
        common: answers to the same question on the same item.
        deviations: those of them by which at least one differs from the majority of all other annotators.
        shared: those by which both differ from it in the same way.
        identical: whether all common answers are equal.
        probability: that some pair of the round shares so much by chance, on items as hard and with such habits.
    """

    annotators: tuple[Text, Text]
    common: int
    deviations: int
    shared: int
    identical: bool
    probability: float

    def describe(self, first: str, second: str) -> str:
        """Return what was found, with names or ids of the two."""
        if self.identical:
            what = (
                f"identical answers: all {self.common} answers of {first} and {second} to the same questions are "
                f"equal, {self.shared} of them unlike the majority of the others"
            )
        else:
            what = (
                f"shared answers: {self.shared} of the {self.deviations} answers by which {first} or {second} differs "
                "from the majority of the others are the same for both"
            )
        bound = max(self.probability, 1e-9)
        return (
            f"{what} (by chance and the habits of both: probability {bound:.0e}; two people who are both strict or "
            "both lenient, and steady in it, may share as many without copying)"
        )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Pairs on one question of one item: each of `first` gave `value`, and each of `second` gave `other`.

    `majority` is that of all other annotators of the item, None for a tie.
    """

    situation: Situation
    value: Value
    other: Value
    majority: Value | None
    first: Indices
    second: Indices

    @property
    def is_equal(self) -> bool:
        return self.value == self.other

    @property
    def deviates(self) -> bool:
        """Whether the first of a pair differs from the majority of the others."""
        return self.majority is not None and self.value != self.majority

    @property
    def pairs(self) -> int:
        if self.is_equal:
            return len(self.first) * (len(self.first) - 1)
        return len(self.first) * len(self.second)


class _Habits:
    """How often annotators give an answer where the majority of the others gives another one."""

    def __init__(self) -> None:
        self._answers: dict[tuple[int, str, Value], Counter[Value]] = {}
        self._everybody: dict[tuple[str, Value], Counter[Value]] = {}

    def add(self, question: str, by_value: Mapping[Value, Indices]) -> None:
        """Count the answers to a question on one item."""
        counts = Counter({value: len(annotators) for value, annotators in by_value.items()})
        for value, annotators in by_value.items():
            majority = _majority(counts - Counter([value]))
            if majority is None:
                continue
            for annotator in annotators:
                self._answers.setdefault((annotator, question, majority), Counter())[value] += 1
            self._everybody.setdefault((question, majority), Counter())[value] += len(annotators)

    def share(self, question: str, majority: Value, value: Value) -> float:
        """Return how often all annotators give `value` where the others' majority is `majority`."""
        counts = self._everybody.get((question, majority), Counter())
        return counts[value] / counts.total() if counts.total() else 0.0

    def share_of(self, annotator: int, comparison: _Comparison, everybody: float) -> float:
        """Return the same of one annotator, without their answer to the item of the comparison."""
        question = comparison.situation[0]
        key = annotator, question, comparison.majority or ""
        counts = self._answers.get(key, Counter())
        given = max(0, counts[comparison.value] - comparison.is_equal)
        total = max(0, counts.total() - 1)
        return (given + PRIOR_ANSWERS * everybody) / (total + PRIOR_ANSWERS)


def shared_answers(
    questions: Sequence[Question], annotations: Iterable[Annotation], annotators: Collection[str]
) -> list[SharedAnswers]:
    """Return the pairs of annotators (ids) whose answers agree suspiciously often, the least probable first.

    Answers of others than `annotators` count towards majorities, and such people are never named. Free text is not
    compared. Items of fewer than three annotators show nothing: there is no majority of others.
    """
    cells = _cells(questions, annotations)
    ids = sorted({annotator for answers in cells.values() for annotator in answers})
    index = {annotator: number for number, annotator in enumerate(ids)}
    habits = _Habits()
    comparisons = list[_Comparison]()
    tables = _PairTables(len(ids))
    for (_, question), answers in cells.items():
        by_value: dict[Value, Indices] = {}
        for annotator, value in sorted(answers.items()):
            by_value.setdefault(value, []).append(index[annotator])
        tables.add_answers(by_value)
        habits.add(question, by_value)
        comparisons += _comparisons(question, by_value)
    rates = _match_rates(comparisons)
    identical = tables.identical_annotators()
    for comparison in comparisons:
        # Equal answers with the majority matter only for those who agree in everything.
        if comparison.deviates or (
            comparison.is_equal and not identical.isdisjoint(comparison.first)
        ):
            tables.add(comparison, _probabilities(comparison, rates[comparison.situation], habits))
    named = {index[annotator] for annotator in annotators if annotator in index}
    found = [
        one
        for one in tables.suspicious(ids)
        if {index[annotator] for annotator in one.annotators} <= named
    ]
    return sorted(found, key=lambda one: (one.probability, one.annotators))


def _cells(
    questions: Sequence[Question], annotations: Iterable[Annotation]
) -> dict[tuple[str, str], dict[str, Value]]:
    """Return (item, question) -> annotator -> answer."""
    names = {question.name for question in questions if question.form != "text"}
    cells: dict[tuple[str, str], dict[str, Value]] = {}
    for one in annotations:
        if one.question in names and one.question != SKIPPED and one.value is not None:
            cells.setdefault((one.item, one.question), {})[one.annotator] = one.value
    return dict(sorted(cells.items()))


def _majority(counts: Counter[Value]) -> Value | None:
    """Return the most frequent answer; None for a tie or without answers."""
    leading = counts.most_common(2)
    if not leading or (len(leading) == 2 and leading[0][1] == leading[1][1]):
        return None
    return leading[0][0]


def _comparisons(question: str, by_value: Mapping[Value, Indices]) -> Iterator[_Comparison]:
    """Yield the ordered pairs of annotators of one item, together where their answers are the same."""
    counts = Counter({value: len(annotators) for value, annotators in by_value.items()})
    others = counts.total() - 2
    if others < 1:
        return
    for value, first in by_value.items():
        for other, second in by_value.items():
            if value == other and len(first) < 2:
                continue
            left = counts - Counter([value]) - Counter([other])
            majority = _majority(left)
            yield _Comparison(
                situation=(question, others, left[value], majority == value),
                value=value,
                other=other,
                majority=majority,
                first=first,
                second=second,
            )


def _match_rates(comparisons: Iterable[_Comparison]) -> dict[Situation, float]:
    """Return how often two annotators give the same answer, by what the first one and the others gave."""
    equal = Counter[Situation]()
    total = Counter[Situation]()
    for one in comparisons:
        total[one.situation] += one.pairs
        if one.is_equal:
            equal[one.situation] += one.pairs
    return {situation: equal[situation] / count for situation, count in total.items()}


def _probabilities(comparison: _Comparison, rate: float, habits: _Habits) -> list[float]:
    """Return how probably each of `second`, answering on their own, gives the answer of `first`.

    It is the largest of how often anybody does where the others answered so (the item is hard), of how often this
    annotator does where the majority is that (a habit), and of both together.
    """
    if comparison.majority is None:
        return [rate] * len(comparison.second)
    everybody = habits.share(comparison.situation[0], comparison.majority, comparison.value)
    probabilities = []
    for annotator in comparison.second:
        habit = habits.share_of(annotator, comparison, everybody)
        both = _combined(rate, habit, everybody)
        probabilities.append(min(1.0, max(rate, habit, both)))
    return probabilities


def _combined(rate: float, habit: float, everybody: float) -> float:
    """Return `rate` with its odds multiplied by the ratio of the odds of `habit` to those of `everybody`."""
    if not (0 < rate < 1 and 0 < habit < 1 and 0 < everybody < 1):
        return 0.0
    odds = _odds(rate) * _odds(habit) / _odds(everybody)
    return odds / (1 + odds)


def _odds(probability: float) -> float:
    return probability / (1 - probability)


class _PairTables:
    """Counts by pair of annotators, in matrices whose rows are the first and columns the second of a pair."""

    def __init__(self, annotators: int) -> None:
        shape = annotators, annotators
        self._common: npt.NDArray[np.float64] = np.zeros(shape)
        self._equal: npt.NDArray[np.float64] = np.zeros(shape)
        # Of the answers by which the first deviates: their number, those that the second gave, too, how many are
        # expected, and the sum of the numbers of other annotators.
        self._deviations: npt.NDArray[np.float64] = np.zeros(shape)
        self._shared: npt.NDArray[np.float64] = np.zeros(shape)
        self._expected: npt.NDArray[np.float64] = np.zeros(shape)
        self._others: npt.NDArray[np.float64] = np.zeros(shape)
        # Logarithm of the probability of all equal answers.
        self._log_equal: npt.NDArray[np.float64] = np.zeros(shape)

    def add_answers(self, by_value: Mapping[Value, Indices]) -> None:
        """Count the answers to a question on one item."""
        everybody = [annotator for annotators in by_value.values() for annotator in annotators]
        self._common[np.ix_(everybody, everybody)] += 1
        for annotators in by_value.values():
            self._equal[np.ix_(annotators, annotators)] += 1

    def identical_annotators(self) -> set[int]:
        """Return the annotators all of whose answers are equal to those of some other one."""
        pairs = np.triu((self._common >= MIN_COMMON) & (self._equal == self._common), 1)
        return {annotator for pair in np.argwhere(pairs).tolist() for annotator in pair}

    def add(self, comparison: _Comparison, probabilities: Sequence[float]) -> None:
        """Count a comparison; `probabilities` are those of equal answers, by annotator of `second`."""
        place = np.ix_(comparison.first, comparison.second)
        if comparison.deviates:
            self._deviations[place] += 1
            self._expected[place] += probabilities
            self._others[place] += comparison.situation[1]
            if comparison.is_equal:
                self._shared[place] += 1
        if comparison.is_equal:
            self._log_equal[place] += np.log(probabilities)

    def suspicious(self, ids: Sequence[str]) -> Iterator[SharedAnswers]:
        """Yield the pairs that share more than people do who answer on their own."""
        pairs = [tuple(pair) for pair in np.argwhere(np.triu(self._common, 1)).tolist()]
        for first, second in pairs:
            shared = int(self._shared[first, second])
            deviations = (
                int(self._deviations[first, second] + self._deviations[second, first]) - shared
            )
            common = int(self._common[first, second])
            identical = bool(self._equal[first, second] == common)
            of_shared = len(pairs) * self._probability_of_shared(first, second)
            of_equal = len(pairs) * math.exp(
                max(self._log_equal[first, second], self._log_equal[second, first])
            )
            if self._are_many(first, second, shared, deviations) and of_shared <= MAX_PROBABILITY:
                probability = of_shared
            elif (
                identical
                and common >= MIN_COMMON
                and shared >= MIN_SHARED_IDENTICAL
                and of_equal <= MAX_PROBABILITY_IDENTICAL
            ):
                probability = of_equal
            else:
                continue
            yield SharedAnswers(
                annotators=(ids[first], ids[second]),
                common=common,
                deviations=deviations,
                shared=shared,
                identical=identical,
                probability=float(f"{probability:.2g}"),
            )

    def _are_many(self, first: int, second: int, shared: int, deviations: int) -> bool:
        """Return whether enough of enough deviations are shared."""
        if deviations < MIN_DEVIATIONS:
            return False
        others = self._others[first, second] + self._others[second, first]
        count = self._deviations[first, second] + self._deviations[second, first]
        least = MIN_SHARED if others >= 2 * count else MIN_SHARED_OF_THREE
        return shared >= least * deviations

    def _probability_of_shared(self, first: int, second: int) -> float:
        """Return a bound of the probability of as many shared deviations, given those of either of the two.

        The tail of a sum of different probabilities is at most that of a binomial with their mean, from one above the
        expected number on (W. Hoeffding, Annals of Mathematical Statistics 27(3), 1956).
        """
        bounds = []
        for place in ((first, second), (second, first)):
            count = self._deviations[place]
            shared = self._shared[place]
            expected = self._expected[place]
            if shared <= expected + 1:
                return 1.0
            bounds.append(binomial_tail(int(shared), int(count), float(expected / count)))
        return max(bounds)


def partners(pairs: Iterable[SharedAnswers]) -> dict[str, list[str]]:
    """Return annotator -> those with whom they share answers, sorted."""
    found: dict[str, set[str]] = {}
    for one in pairs:
        first, second = one.annotators
        found.setdefault(first, set()).add(second)
        found.setdefault(second, set()).add(first)
    return {annotator: sorted(others) for annotator, others in found.items()}
