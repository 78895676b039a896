"""Coverage of five 95 % intervals of a judged mean on the same seeded data sets (docs/measurements.md).

The judge's own interval, PPI++ (ppi-python) and cje-eval beside our regression and stratified forms, 350 items judged.
In an environment of their own, as `make_fixtures.py`:

PYTHONPATH=.:tools python tools/judge_oracles/coverage.py [--repetitions 2000] [--slow 400]
"""

from __future__ import annotations

import argparse
import logging
import warnings
from random import Random

import numpy as np
from bench_judge_statistics import LABELS, judges, people
from make_fixtures import ITEMS, cje_mean, ppi_interval

from h2htalk.benchmark.calibration.corrected_mean import (
    draw_labels,
    regression,
    strata_of,
    stratified,
)

COLUMNS = ("naive", "PPI++", "cje", "regression", "stratified")


def main(repetitions: int, slow: int) -> None:
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print(f"| judge's error | labels | {' | '.join(COLUMNS)} | half widths |")
    print(f"| --- | ---: |{' ---: |' * (len(COLUMNS) + 1)}")
    for name, judge in judges().items():
        for n in LABELS:
            rng = np.random.default_rng((n, ITEMS))
            draw = Random(n * ITEMS)
            ends: dict[str, list[tuple[float, float]]] = {column: [] for column in COLUMNS}
            for at in range(repetitions):
                y, length = people(rng, ITEMS)
                f = judge(rng, y, length)
                scores = f.tolist()
                seed = draw.randrange(1 << 30)
                half = 1.96 * f.std() / ITEMS**0.5
                ends["naive"].append((f.mean() - half, f.mean() + half))
                ends["PPI++"].append(ppi_interval(f, y[:n]))
                if at < slow:
                    ends["cje"].append(cje_mean(f, y[:n])[2:])
                labels = {at: float(y[at]) for at in draw_labels(scores, n, seed)}
                stratified_mean = stratified(scores, labels, strata_of(scores, seed))
                ends["stratified"].append(stratified_mean.population.interval or (0.0, 0.0))
                # Items are exchangeable: the first n are a simple random sample.
                regression_mean = regression(scores, dict(enumerate(y[:n].tolist())))
                ends["regression"].append(regression_mean.population.interval or (0.0, 0.0))
            hits = {
                key: np.mean([low <= truth <= high for low, high in own])
                for key, own in ends.items()
            }
            halves = {
                key: np.mean([high - low for low, high in own]) / 2 for key, own in ends.items()
            }
            shown = " | ".join(f"{100 * hits[key]:.1f}" for key in COLUMNS)
            print(
                f"| {name} | {n} | {shown} | {', '.join(f'{halves[key]:.2f}' for key in COLUMNS)} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()  # cje warns where scores lie outside the labelled range
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--slow", type=int, default=400, help="Repetitions of cje.")
    main(**vars(parser.parse_args()))
