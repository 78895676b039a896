"""How often the figures of two judges on the same answers hold a planted shift, and call a difference without one.

python tools/bench_judge_succession.py [--seeds 1000]     (docs/measurements.md, "Judge statistics")
"""

from __future__ import annotations

import argparse

import numpy as np
from bench_judge_statistics import LABELS, people

from h2htalk.benchmark.judge.succession import Drawn, Figure, Items, rating_figures
from h2htalk.benchmark.statistics.corrected_mean import draw_labels, strata_of

MEAN, DISTANCE = "R, mean", "squared distance from people"


def two_judges(seed: tuple[int, ...], n: int, shift: float, noise: float = 0.5) -> Items:
    """Two judges that are .4 too kind, B by a shift more and with its own noise, and people's ratings of all items."""
    rng = np.random.default_rng(seed)
    y = people(rng, n)[0]
    a, b = (y + 0.4 + more + sd * rng.standard_normal(n) for more, sd in ((0, 0.5), (shift, noise)))
    return [str(at) for at in range(n)], np.array((a, b, y))


def figure(items: Items, name: str, drawn: Drawn | None = None) -> Figure:
    few = items[0][:5], items[1][:, :5]  # the correlation over all items takes longest
    return next(one for one in rating_figures(items if name == MEAN else few, items, drawn) if one.name == name)


def planned(seed: int, n: int) -> tuple[Items, Drawn]:
    """Two judges of 350 items with the same noise of .8, and the labels that a plan by A's scores draws."""
    rng = np.random.default_rng((n, 3, seed))
    y = people(rng, 350)[0]
    a, b = y + 0.8 * rng.standard_normal((2, 350))
    at = draw_labels(a.tolist(), n, seed)
    return ([str(one) for one in at], np.array((a, b, y))[:, at]), (at, strata_of(a.tolist(), seed))


def main(seeds: int) -> None:
    print("| items | shift .3 in its interval | no shift, called | equally near, called | B nearer, called |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for n in (*LABELS, 350):
        held = [figure(two_judges((n, 1, seed), n, 0.3), MEAN) for seed in range(seeds)]
        inside = sum((one.low or 0) <= 0.3 <= (one.high or 0) for one in held)
        called = [
            sum((figure(two_judges((n, 2, seed), n, 0.0, noise), name).p or 0) < 0.05 for seed in range(seeds))
            for name, noise in ((MEAN, 0.5), (DISTANCE, 0.5), (DISTANCE, 0.3))
        ]
        print(f"| {n} | {' | '.join(f'{100 * count / seeds:.1f}' for count in (inside, *called))} |", flush=True)
    print("| labels of 350 items, drawn by the plan | equally near, 0 outside the interval | unweighted, called |")
    print("| ---: | ---: | ---: |")
    for n in LABELS[1:]:
        counts = [0, 0]
        for seed in range(seeds):
            labelled, drawn = planned(seed, n)
            one = figure(labelled, DISTANCE, drawn)
            counts[0] += not (one.low or 0) <= 0 <= (one.high or 0)
            counts[1] += (figure(labelled, DISTANCE).p or 0) < 0.05
        print(f"| {n} | {' | '.join(f'{100 * count / seeds:.1f}' for count in counts)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    main(parser.parse_args().seeds)
