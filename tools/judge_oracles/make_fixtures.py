"""Write the corrected means that cje-eval and ppi-python give to seeded data sets, for the tests to compare with.

In an environment of their own (1 GB; `pip install cje-eval==0.9.3 ppi-python==0.2.3`):

PYTHONPATH=.:tools python tools/judge_oracles/make_fixtures.py tests/benchmark/statistics/judge_oracles.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from bench_judge_statistics import LABELS, judges, people
from cje import calibrated_mean_ci
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

ITEMS, HIGHEST = 350, 5


def cje_mean(f: np.ndarray, y: np.ndarray) -> tuple[float, float, float, float]:
    """The mean of cje on the scale of ratings, with its standard error and the ends of its interval.

    Args:
        f: the judge's score of every item.
        y: people's ratings of the first ones.
    """
    labels = np.full(len(f), np.nan)
    labels[: len(y)] = y / HIGHEST
    found = calibrated_mean_ci(f, labels)
    return tuple(float(HIGHEST * x) for x in (found.estimate, found.se, *found.ci))


def ppi_interval(f: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The interval of PPI++, whose slope it chooses itself."""
    low, high = ppi_mean_ci(y, f[: len(y)], f[len(y) :], alpha=0.05)
    return float(np.squeeze(low)), float(np.squeeze(high))


def regression_slope(f: np.ndarray, y: np.ndarray) -> float:
    own = f[: len(y)]
    return min(1.0, max(0.0, float(np.cov(own, y)[0, 1] / own.var(ddof=1))))


def main(out: Path) -> None:
    found = []
    for name, judge in judges().items():
        for n in LABELS:
            rng = np.random.default_rng((n, 1))
            y, length = people(rng, ITEMS)
            f = np.round(judge(rng, y, length), 3)
            y = y[:n]
            lam = regression_slope(f, y) * (1 - n / ITEMS)
            found.append(
                {
                    "error": name,
                    "seed": [n, 1],
                    "scores": f.tolist(),
                    "labels": y.tolist(),
                    "ppi_regression": float(
                        np.squeeze(ppi_mean_pointestimate(y, f[:n], f[n:], lam=lam))
                    ),
                    "ppi_interval": ppi_interval(f, y),
                    "cje": cje_mean(f, y),
                }
            )
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in found)
    out.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
