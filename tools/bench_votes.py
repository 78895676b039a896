"""Measure wall time and memory of majority, Dawid-Skene and agreement on simulated votes.

python tools/bench_votes.py [--items 100000] [--each 20] [--annotators 500] [--labels 3] [--times 5]

Times include the conversion of a list of `Vote` to columns, which `columns` measures alone; several statistics of the
same votes can share it (`tabulate`). Exit 1 if majority and Dawid-Skene of 2,000,000 votes or more, with shared
columns, take longer than 5 s (median).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
from vote_measures import expected_accuracy

from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.votes import Vote, majority, tabulate

CEILING = 5.0  # seconds, majority and Dawid-Skene together on 2,000,000 votes


def make_votes(
    items: int, each: int, annotators: int, labels: int, seed: int = 0
) -> tuple[list[Vote], dict[str, str]]:
    """Return votes of annotators with accuracies of 0.4 to 0.9 and evenly spread errors, and item -> right label."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, items)
    skill = rng.uniform(0.4, 0.9, annotators)
    item = np.repeat(np.arange(items), each)
    # Neighbours in a random order of all annotators: distinct within an item, about as many items each.
    annotator = rng.permutation(annotators)[(np.arange(items * each) * 7 + item) % annotators]
    wrong = (truth[item] + rng.integers(1, labels, items * each)) % labels
    label = np.where(rng.random(items * each) < skill[annotator], truth[item], wrong)
    order = rng.permutation(items * each)
    columns = (column[order].tolist() for column in (item, annotator, label))
    votes = [
        Vote(f"item-{i}", f"annotator-{v}", f"label-{k}") for i, v, k in zip(*columns, strict=True)
    ]
    return votes, {f"item-{i}": f"label-{k}" for i, k in enumerate(truth.tolist())}


def timed(call: Callable[[], object], times: int) -> tuple[float, float, float]:
    """Return median, minimum and maximum wall time of a call (s)."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds), max(seconds)


def peak() -> int:
    """Return the peak memory so far (MiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--annotators", type=int, default=500)
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    votes, truth = make_votes(options.items, options.each, options.annotators, options.labels)
    base = peak()
    print(f"{len(votes):,} votes; memory with them {base} MiB")
    table = tabulate(votes)
    calls: dict[str, Callable[[], object]] = {
        "columns": lambda: tabulate(votes),
        "majority": lambda: majority(votes),
        "dawid_skene converged": lambda: dawid_skene(votes),
        "dawid_skene vldb, 20 rounds": lambda: dawid_skene(votes, iterations=20),
        "both, columns twice": lambda: (majority(votes), dawid_skene(votes)),
        "both, columns once": lambda: (lambda shared: (majority(shared), dawid_skene(shared)))(
            tabulate(votes)
        ),
        "alpha with interval, columns": lambda: agreement_of(table, "nominal"),
    }
    medians = {}
    for name, call in calls.items():
        medians[name], low, high = timed(call, options.times)
        print(
            f"{name:30} {medians[name]:6.2f} s ({low:.2f} to {high:.2f})  peak {peak() - base:+5} MiB"
        )
    for name, decided in (("majority", majority(table)), ("dawid_skene", dawid_skene(table))):
        print(f"{name:30} expected accuracy {100 * expected_accuracy(decided, truth):.2f} %")
    return int(len(votes) >= 2_000_000 and medians["both, columns once"] > CEILING)


if __name__ == "__main__":
    raise SystemExit(main())
