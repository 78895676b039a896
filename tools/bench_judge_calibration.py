"""Bias by length and strata by level: coverage and false alarms by simulation with fixed seeds.

python tools/bench_judge_calibration.py [--part bias|levels]   (docs/measurements.md)
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from bench_judge_statistics import holds, judges, people

from h2htalk.benchmark.calibration.calibrate import correct, error_effects
from h2htalk.benchmark.calibration.corrected_mean import JudgedItem
from h2htalk.benchmark.calibration.label_plan import draw_by_level

LEVELS = ("itinerary_basic", "itinerary_middle", "itinerary_advanced")


def item(
    at: int, score: float, rating: float | None = None, length: float = 0.0, subtask: str = ""
) -> JudgedItem:
    panel = () if rating is None else (score,)
    return JudgedItem(
        f"{subtask}{at}", subtask, f"{subtask}{at}", score, None, length, rating, panel
    )


def bias_table() -> None:
    print("| labels | noise | planted: inside of 100 | none: called of 1,000 |")
    print("| ---: | --- | ---: | ---: |")
    for uneven in (False, True):
        for n in (20, 50, 100):
            inside, called = (
                sum(
                    length_effect(np.random.default_rng((*SEEDS, n, seed)), n, planted, uneven)
                    for seed in range(seeds)
                )
                for seeds, planted in ((100, 0.5), (1000, 0.0))
            )
            print(
                f"| {n} | {'uneven' if uneven else 'even'} | {inside} | {1000 - called} |",
                flush=True,
            )


def length_effect(rng: np.random.Generator, n: int, bias: float, uneven: bool) -> bool:
    """Whether the interval of the slope on length holds the planted bias; uneven noise is larger for long replies."""
    length = rng.standard_normal(n)
    y = people(rng, n)[0]
    noise = 0.5 * rng.standard_normal(n) * (np.exp(0.4 * length) if uneven else 1.0)
    scores = y + 0.3 + bias * length + noise
    slope = error_effects(
        [item(at, *values) for at, values in enumerate(zip(scores, y, length, strict=True))]
    )[1]
    return holds(slope.estimate, bias)


def levels_table(repetitions: int = 2000, items: int = 351) -> None:
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print(
        "| judge's error | labels | levels together: refused | these items | such | one level: refused | these | such |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, judge in judges().items():
        for n in (48, 96):
            rng = np.random.default_rng((*SEEDS, n))
            hits = [[0, 0, 0], [0, 0, 0]]
            for seed in range(repetitions):
                y, length = people(rng, items)
                f = judge(rng, y, length)
                made = [item(at, float(f[at]), None, 0.0, LEVELS[at % 3]) for at in range(items)]
                drawn, strata, _ = draw_by_level(made, n, seed)
                chosen = {one.id for one in drawn}
                names = sorted(set(strata.values()))
                for found, own, ratings in ((hits[0], made, y), (hits[1], made[::3], y[::3])):
                    labelled = [
                        replace(one, people=float(rating), panel=(one.score,))
                        if one.id in chosen
                        else one
                        for one, rating in zip(own, ratings, strict=True)
                    ]
                    mean = correct(
                        "", "R", labelled, [names.index(strata[one.id]) for one in own]
                    ).mean
                    if mean is not None:
                        found[0] += 1
                        found[1] += holds(mean.sample, float(ratings.mean()))
                        found[2] += holds(mean.population, truth)
            shown = " | ".join(
                f"{100 * (1 - given / repetitions):.1f} | {100 * here / given:.1f} | {100 * over / given:.1f}"
                for given, here, over in hits
            )
            print(f"| {name} | {n} | {shown} |", flush=True)


SEEDS: list[int] = []
TABLES = {"bias": bias_table, "levels": levels_table}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=TABLES)
    parser.add_argument("--seed", type=int, help="other draws than those of docs/measurements.md")
    given = parser.parse_args()
    chosen = given.part
    SEEDS.extend([] if given.seed is None else [given.seed])
    for name, table in TABLES.items():
        if chosen in (None, name):
            table()
            print()
