"""Coverage of the corrected mean's 95 % intervals, by simulation with fixed seeds (docs/measurements.md).

python tools/bench_judge_statistics.py [--repetitions 2000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random

import numpy as np
import numpy.typing as npt

from h2htalk.benchmark.calibration.corrected_mean import (
    draw_labels,
    regression,
    strata_of,
    stratified,
)
from h2htalk.benchmark.statistics.estimates import Estimate

Values = npt.NDArray[np.float64]
LABELS = (20, 48, 100)
ITEMS = (150, 350, 1000)


def people(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Ratings in half points around 3.8, at most 5, and the reply's length in standard deviations."""
    length = rng.standard_normal(n)
    return np.clip(np.round(2 * (3.8 + 1.1 * rng.standard_normal(n))) / 2, 0, 5), length


def judges() -> dict[str, Callable[[np.random.Generator, Values, Values], Values]]:
    """A judge that is too kind, one that prefers length, one that is noisy, and one with rare blunders."""
    return {
        "bias": lambda rng, y, length: y + 0.4 + 0.5 * rng.standard_normal(len(y)),
        "length": lambda rng, y, length: y + 0.2 + 0.4 * length + 0.5 * rng.standard_normal(len(y)),
        "noise": lambda rng, y, length: 3.8 + 0.6 * (y - 3.8) + 0.8 * rng.standard_normal(len(y)),
        "blunders": lambda rng, y, length: y - 3.0 * (rng.random(len(y)) < 0.06),
    }


def main(repetitions: int, *seeds: int) -> None:
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print(
        "| judge's error | labels | items | naive | stratified | refused | regression | half width |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, judge in judges().items():
        for n in LABELS:
            for items in ITEMS:
                rng = np.random.default_rng((*seeds, n, items))
                draw = Random(n * items + sum(seeds))
                hits = [0, 0, 0]
                halves = []
                for _ in range(repetitions):
                    y, length = people(rng, items)
                    f = judge(rng, y, length)
                    scores = f.tolist()
                    seed = draw.randrange(1 << 30)
                    labels = {at: float(y[at]) for at in draw_labels(scores, n, seed)}
                    found = stratified(scores, labels, strata_of(scores, seed)).population
                    chance = {at: float(y[at]) for at in draw.sample(range(items), n)}
                    hits[1] += holds(found, truth)
                    hits[2] += holds(regression(scores, chance).population, truth)
                    half = 1.96 * f.std() / items**0.5
                    hits[0] += abs(f.mean() - truth) <= half
                    if found.high is not None:
                        halves.append(found.high - found.value)
                given = len(
                    halves
                )  # the stratified form refuses where errors do not vary; the regression misses there
                shares = (
                    hits[0] / repetitions,
                    hits[1] / given,
                    1 - given / repetitions,
                    hits[2] / repetitions,
                )
                shown = " | ".join(f"{100 * share:.1f}" for share in shares)
                print(f"| {name} | {n} | {items} | {shown} | {np.mean(halves):.2f} |", flush=True)


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether the interval of an estimate holds the true value."""
    if estimate.interval is None:
        return False
    low, high = estimate.interval
    return low <= truth <= high


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, help="other draws than those of docs/measurements.md")
    given = parser.parse_args()
    main(given.repetitions, *(() if given.seed is None else (given.seed,)))
