"""Dawid and Skene's model of annotators, fitted by expectation and maximisation; exact in any order of the sums.

An annotator who meets an item of the true label k says l with a chance of their own, conf[k, annotator, l]; labels
have the chances prior[k] (A. P. Dawid, A. M. Skene, Applied Statistics 28(1), 1979). One round is

    E:  chance[k, i] ~ prior[k] * product over the votes (v, l) on i of conf[k, v, l]
    M:  prior[k] = mean over i of chance[k, i]
        conf[k, v, l] = sum over the items on which v said l of chance[k, i] / the same over all that v voted on

Floating-point sums depend on the order of their terms, and with it on names. Here terms are rounded to a grid on
which their sums are exact (`summable`): names and rows cannot matter, and what is symmetric in the votes stays a tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.aggregation.majority import SAME, VoteResult, vote_result
from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

Numbers = npt.NDArray[np.float64]
Recipe = Literal["converged", "vldb"]

# At the start every annotator is right with this chance, and all mistakes are alike (Zheng et al., PVLDB 10(5), 2017).
START = 0.7
# A fit that has not settled by then is taken as it is (rounds).
MOST_ROUNDS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What the model learned.

    Attributes:
        chances: of each label for each item, shape (labels, items), columns sum to 1.
        confusions: chance that an annotator says l of an item of true label k, shape (labels k, annotators, labels l).
        rounds: E-steps that were done.
        settled: whether the last round changed the likelihood by less than the tolerance.
    """

    chances: Numbers
    confusions: Numbers
    rounds: int
    settled: bool


def fit(table: VoteTable, rounds: int | None, smoothing: float, tolerance: float) -> Fit:
    """Fit the model to votes with at least one vote.

    Args:
        table: the votes.
        rounds: exactly so many; None: until the gain of log-likelihood is below the tolerance, at most `MOST_ROUNDS`.
        smoothing: votes of each kind that every annotator is taken to have given besides (Dirichlet), 0 or more.
        tolerance: gain of log-likelihood a vote, up or down, at which the fit has settled. A larger fall is no end.

    Returns:
        The chances of the last E-step. Memory: 8 bytes * labels * (items + 3 votes' columns + annotators * labels).
    """
    count = len(table.labels)
    if count == 1:
        return Fit(np.ones((1, len(table.items))), np.ones((1, len(table.annotators), 1)), 0, True)
    start = np.full((count, len(table.annotators), count), (1 - START) / (count - 1))
    start[np.arange(count), :, np.arange(count)] = START
    priors, confusions = np.full(count, 1 / count), start
    said = table.annotator * count + table.label
    sizes = np.bincount(table.item, minlength=len(table.items))
    busiest = int(np.bincount(table.annotator).max())
    before, done, settled = -math.inf, 0, False
    while not settled and done < (MOST_ROUNDS if rounds is None else rounds):
        chances, likelihood = _expect(table, said, int(sizes.max()), priors, confusions)
        if smoothing:
            likelihood += smoothing * float(summable(np.log(confusions), confusions.size).sum())
        settled = rounds is None and abs(likelihood - before) < tolerance * len(table)
        before, done = likelihood, done + 1
        priors, confusions = _maximise(chances, said, sizes, busiest, smoothing, start)
    return Fit(chances, confusions, done, settled)


def summable(values: Numbers, terms: int) -> Numbers:
    """Values rounded so that a sum of at most `terms` of them is exact, in any order; -inf stays.

    Multiples of a power of two whose sums stay below 2^52 such steps: float64 adds them without rounding. The error
    a value is at most 2^-52 of the largest possible sum.
    """
    largest = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0))
    if not largest:
        return values
    step = math.ldexp(1.0, math.frexp(largest * terms)[1] - 52)
    return np.asarray(np.rint(values / step) * step)


def _expect(
    table: VoteTable, said: npt.NDArray[np.int64], largest: int, priors: Numbers, confusions: Numbers
) -> tuple[Numbers, float]:
    """Chances of labels, and the log-likelihood.

    A chance of 0 rules a label out (log: -inf). Never all of them: every item's likeliest label has at least 1/K, and
    that item itself is counted in the confusions of all who voted on it, at that label.
    """
    count, items = len(priors), len(table.items)
    with np.errstate(divide="ignore"):
        logs = summable(np.log(confusions), largest).reshape(count, -1)
        scores = np.repeat(np.log(priors)[:, None], items, axis=1)
    for k in range(count):
        scores[k] += np.bincount(table.item, weights=logs[k][said], minlength=items)
    best = scores.max(axis=0)
    weights = np.exp(scores - best)
    total = summable(weights, count).sum(axis=0)
    return weights / total, float(summable(best + np.log(total), items).sum())


def _maximise(
    chances: Numbers, said: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], busiest: int, smoothing: float,
    start: Numbers,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Priors and confusions; an annotator who never met a label, as far as is known, is taken for a beginner there."""
    count, items = chances.shape
    even = summable(chances, max(items, busiest))
    counted = np.stack([np.bincount(said, np.repeat(row, sizes), start[0].size) for row in even])
    counted = counted.reshape(start.shape)
    met = counted.sum(axis=2, keepdims=True) + smoothing * count
    confusions = np.divide(counted + smoothing, met, where=met > 0, out=start.copy())
    return even.sum(axis=1) / items, confusions


VLDB_ROUNDS = 20


def dawid_skene(
    votes: Iterable[Vote] | VoteTable,
    *,
    rounds: int | None = None,
    recipe: Recipe = "converged",
    smoothing: float = 0.0,
    tolerance: float = 1e-7,
) -> dict[str, VoteResult]:
    """The likeliest label when each annotator's reliability is learned from all votes, by item (sorted).

    Every annotator begins as right with a chance of 0.7, labels as equally frequent; nothing is drawn at random. With
    one annotator the posterior stays 0.7, with one label in all votes it is 1: there is nothing to learn from. An
    annotator with few votes may seem infallible; `smoothing=1` tempers that.

    Args:
        votes: as for `majority`.
        rounds: exactly so many rounds of expectation and maximisation, 1 or more, in place of what the recipe says.
        recipe: `vldb` is the published one, 20 rounds (Zheng et al., PVLDB 10(5), 2017), whose figures it repeats;
            `converged` goes on until a round gains less than `tolerance`, at most 1,000 rounds.
        smoothing: votes of each kind that every annotator is taken to have given besides (Dirichlet), 0 or more.
        tolerance: gain of log-likelihood a vote, in nats. With smoothing the prior's part counts as well.

    Returns:
        Probabilities within 1e-9 of each other are a tie. Renamed annotators or labels and shuffled rows change no bit.

    Raises:
        RoundError: an annotator gave an item two labels.
        ValueError: an argument out of range.
    """
    if (
        (rounds is not None and rounds < 1)
        or not 0 <= smoothing < math.inf
        or not tolerance > 0
        or recipe not in ("converged", "vldb")
    ):
        raise ValueError(
            "dawid_skene: rounds >= 1, smoothing >= 0, tolerance > 0, recipe 'converged' or 'vldb'"
        )
    table = tabulate(votes)
    if not len(table):
        return {}

    if rounds is None and recipe == "vldb":
        rounds = VLDB_ROUNDS
    chances = fit(table, rounds, smoothing, tolerance).chances.T.tolist()
    decided = {}
    for item, counts, likely in zip(table.items, table.counts().tolist(), chances, strict=True):
        best = max(likely)
        leading = [at for at, chance in enumerate(likely) if best - chance <= SAME]
        named = tuple(table.labels[at] for at in leading)
        by_label = dict(zip(table.labels, likely, strict=True))
        decided[item] = vote_result(named, min(counts[at] for at in leading), best, sum(counts), by_label)
    return decided


def expected_accuracy(decisions: Mapping[str, VoteResult], gold: Mapping[str, str]) -> float:
    """Share of gold items decided rightly, 0 to 1, when a fair coin breaks ties: the exact expectation, no draw.

    Args:
        decisions: by item.
        gold: item -> right label, at least one. An item that was not decided counts as wrong.
    """
    right = 0.0
    for item, label in gold.items():
        decision = decisions.get(item)
        if decision is not None:
            right += float(label == decision.label)
            right += 1 / len(decision.tied) if label in decision.tied else 0.0
    return right / len(gold)
