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

import numpy as np
import numpy.typing as npt

from h2htalk.rounds.aggregation.votes import Vote, VoteResult, VoteTable, leading_labels, tabulate

Numbers = npt.NDArray[np.float64]

# Initial accuracy of every annotator; errors are spread evenly (Zheng et al., PVLDB 10(5), 2017).
START = 0.7
# Iterations after which a fit that has not converged is used as it is.
MAX_ITERATIONS = 1000
# Change of the log-likelihood per vote (nats) at which the fit has converged.
TOLERANCE = 1e-7


def dawid_skene(
    votes: Iterable[Vote] | VoteTable, *, iterations: int | None = None
) -> dict[str, VoteResult]:
    """Return the most probable label of each item, sorted by item; annotators' accuracy is learned from all votes.

    Annotators start with an accuracy of 0.7, labels with equal priors; nothing is random. With one annotator the
    posterior stays 0.7, with one label it is 1. Probabilities within 1e-9 of each other are a tie.

    `iterations` is the number of E-steps, 1 or more; None: until the fit has converged. 20 reproduce published results
    (Zheng et al., PVLDB 10(5), 2017). Memory: 8 bytes * labels * (items + 3 votes' columns + annotators * labels).
    """
    table = tabulate(votes)
    if not len(table):
        return {}
    count = len(table.labels)
    items = len(table.items)
    if count == 1:
        return leading_labels(table, np.ones((items, 1)))
    start = np.full((count, len(table.annotators), count), (1 - START) / (count - 1))
    start[np.arange(count), :, np.arange(count)] = START
    priors = np.full(count, 1 / count)
    confusions = start
    cells = table.annotator * count + table.label
    sizes = np.bincount(table.item, minlength=items)
    busiest = max(items, int(np.bincount(table.annotator).max()))
    before = -math.inf
    for _ in range(iterations or MAX_ITERATIONS):
        # E: a probability of 0 excludes a label (log: -inf), but never all of them: the most probable label of an item
        # has at least 1/K, and the item itself counts in the confusions of its annotators at that label.
        with np.errstate(divide="ignore"):
            logs = round_to_grid(np.log(confusions), int(sizes.max())).reshape(count, -1)
            scores = np.repeat(np.log(priors)[:, None], items, axis=1)
        for k in range(count):
            scores[k] += np.bincount(table.item, weights=logs[k][cells], minlength=items)
        best = scores.max(axis=0)
        weights = np.exp(scores - best)
        total = round_to_grid(weights, count).sum(axis=0)
        chances = weights / total
        likelihood = float(round_to_grid(best + np.log(total), items).sum())
        if iterations is None and abs(likelihood - before) < TOLERANCE * len(table):
            break
        before = likelihood
        # M: an annotator without items of a label keeps the initial confusions for it.
        even = round_to_grid(chances, busiest)
        seen = np.stack(
            [np.bincount(cells, np.repeat(row, sizes), start[0].size) for row in even]
        ).reshape(start.shape)
        of_label = seen.sum(axis=2, keepdims=True)
        priors = even.sum(axis=1) / items
        confusions = np.divide(seen, of_label, where=of_label > 0, out=start.copy())
    return leading_labels(table, chances.T)


def round_to_grid(values: Numbers, terms: int) -> Numbers:
    """Round values so that a sum of at most `terms` of them is exact in any order; -inf stays.

    The results are multiples of a power of two whose sums stay below 2^52 multiples, which float64 adds without
    rounding. The error of a value is at most 2^-52 of the largest possible sum.
    """
    largest = float(
        np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0)
    )
    if not largest:
        return values
    step = math.ldexp(1.0, math.frexp(largest * terms)[1] - 52)
    return np.asarray(np.rint(values / step) * step)
