"""The model of Dawid and Skene, fitted by expectation-maximisation; the result does not depend on the order of votes.

Annotator v gives an item of the true label k the label l with probability conf[k, v, l]; labels have the prior
probabilities prior[k] (A. P. Dawid, A. M. Skene, Applied Statistics 28(1), 1979). One iteration is

    E:  chance[k, i] ~ prior[k] * product over the votes (v, l) on i of conf[k, v, l]
    M:  prior[k] = mean over i of chance[k, i]
        conf[k, v, l] = sum over the items that v labelled l of chance[k, i] / the same over all items of v

Floating-point sums depend on the order of their terms, and so on names. Here terms are rounded to a grid on which
their sums are exact (`round_to_grid`): names and order do not matter, and symmetric votes stay tied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.aggregation.majority import TIE_TOLERANCE, VoteResult, vote_result
from h2htalk.rounds.aggregation.vote_table import Vote, VoteTable, tabulate

Numbers = npt.NDArray[np.float64]
Recipe = Literal["converged", "vldb"]

# Initial accuracy of every annotator; errors are spread evenly (Zheng et al., PVLDB 10(5), 2017).
START = 0.7
# Iterations after which a fit that has not converged is used as it is.
MAX_ROUNDS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted model.

    Attributes:
        chances: probability of each label for each item, shape (labels, items); columns sum to 1.
        confusions: probability that an annotator gives l to an item of true label k, shape (labels k, annotators,
            labels l).
        rounds: number of E-steps.
        converged: whether the last iteration changed the likelihood by less than the tolerance.
    """

    chances: Numbers
    confusions: Numbers
    rounds: int
    converged: bool


def fit(table: VoteTable, rounds: int | None, smoothing: float, tolerance: float) -> Fit:
    """Fit the model to at least one vote.

    Args:
        table: the votes.
        rounds: number of iterations; None: until the log-likelihood changes by less than the tolerance, at most
            `MAX_ROUNDS`.
        smoothing: pseudo-votes of each label that every annotator has given to items of each label (Dirichlet), 0 or
            more.
        tolerance: absolute change of the log-likelihood per vote at which the fit has converged.

    Returns:
        The chances of the last E-step. Memory: 8 bytes * labels * (items + 3 votes' columns + annotators * labels).
    """
    count = len(table.labels)
    if count == 1:
        return Fit(np.ones((1, len(table.items))), np.ones((1, len(table.annotators), 1)), 0, True)
    start = np.full((count, len(table.annotators), count), (1 - START) / (count - 1))
    start[np.arange(count), :, np.arange(count)] = START
    priors, confusions = np.full(count, 1 / count), start
    cells = table.annotator * count + table.label
    sizes = np.bincount(table.item, minlength=len(table.items))
    busiest = int(np.bincount(table.annotator).max())
    before, done, converged = -math.inf, 0, False
    while not converged and done < (MAX_ROUNDS if rounds is None else rounds):
        chances, likelihood = _expect(table, cells, int(sizes.max()), priors, confusions)
        if smoothing:
            likelihood += smoothing * float(round_to_grid(np.log(confusions), confusions.size).sum())
        converged = rounds is None and abs(likelihood - before) < tolerance * len(table)
        before, done = likelihood, done + 1
        priors, confusions = _maximise(chances, cells, sizes, busiest, smoothing, start)
    return Fit(chances, confusions, done, converged)


def round_to_grid(values: Numbers, terms: int) -> Numbers:
    """Round values so that a sum of at most `terms` of them is exact in any order; -inf stays.

    The results are multiples of a power of two whose sums stay below 2^52 multiples, which float64 adds without
    rounding. The error of a value is at most 2^-52 of the largest possible sum.
    """
    largest = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0))
    if not largest:
        return values
    step = math.ldexp(1.0, math.frexp(largest * terms)[1] - 52)
    return np.asarray(np.rint(values / step) * step)


def _expect(
    table: VoteTable, cells: npt.NDArray[np.int64], largest: int, priors: Numbers, confusions: Numbers
) -> tuple[Numbers, float]:
    """Return the probabilities of labels, and the log-likelihood.

    A probability of 0 excludes a label (log: -inf), but never all of them: the most probable label of an item has at
    least 1/K, and the item itself counts in the confusions of its annotators at that label.
    """
    count, items = len(priors), len(table.items)
    with np.errstate(divide="ignore"):
        logs = round_to_grid(np.log(confusions), largest).reshape(count, -1)
        scores = np.repeat(np.log(priors)[:, None], items, axis=1)
    for k in range(count):
        scores[k] += np.bincount(table.item, weights=logs[k][cells], minlength=items)
    best = scores.max(axis=0)
    weights = np.exp(scores - best)
    total = round_to_grid(weights, count).sum(axis=0)
    return weights / total, float(round_to_grid(best + np.log(total), items).sum())


def _maximise(
    chances: Numbers, cells: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], busiest: int, smoothing: float,
    start: Numbers,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Return priors and confusions; an annotator without items of a label keeps the initial confusions for it."""
    count, items = chances.shape
    even = round_to_grid(chances, max(items, busiest))
    weights = np.stack([np.bincount(cells, np.repeat(row, sizes), start[0].size) for row in even])
    weights = weights.reshape(start.shape)
    total = weights.sum(axis=2, keepdims=True) + smoothing * count
    confusions = np.divide(weights + smoothing, total, where=total > 0, out=start.copy())
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
    """Return the most probable label of each item, sorted by item; annotators' accuracy is learned from all votes.

    Annotators start with an accuracy of 0.7, labels with equal priors; nothing is random. With one annotator the
    posterior stays 0.7, with one label it is 1: there is nothing to learn from. An annotator with few votes may get an
    accuracy of 1; `smoothing=1` reduces that.

    Args:
        votes: as for `majority`.
        rounds: number of iterations, 1 or more, in place of the recipe's.
        recipe: `vldb` has 20 iterations and reproduces published results (Zheng et al., PVLDB 10(5), 2017);
            `converged` iterates until the change is below `tolerance`, at most 1,000 times.
        smoothing: as of `fit`.
        tolerance: change of the log-likelihood per vote, in nats. With smoothing it includes the prior.

    Returns:
        Probabilities within 1e-9 of each other are a tie. Names and the order of votes do not change a bit.

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
        raise ValueError("dawid_skene: rounds >= 1, smoothing >= 0, tolerance > 0, recipe 'converged' or 'vldb'")
    table = tabulate(votes)
    if not len(table):
        return {}

    if rounds is None and recipe == "vldb":
        rounds = VLDB_ROUNDS
    chances = fit(table, rounds, smoothing, tolerance).chances.T.tolist()
    results = {}
    for item, counts, theirs in zip(table.items, table.counts().tolist(), chances, strict=True):
        best = max(theirs)
        leading = [at for at, chance in enumerate(theirs) if best - chance <= TIE_TOLERANCE]
        labels = tuple(table.labels[at] for at in leading)
        by_label = dict(zip(table.labels, theirs, strict=True))
        results[item] = vote_result(labels, min(counts[at] for at in leading), best, sum(counts), by_label)
    return results
