"""Coverage of intervals and false alarms of comparisons, by simulation with fixed seeds (docs/measurements.md).

h2htalk evaluate embedded --split mini@1 --language en --embedder minilm --max-tokens 48 --out RUN
python tools/bench_statistics.py intervals --run RUN   # 4,000 repetitions a line, about 2 CPU minutes
python tools/bench_statistics.py comparisons   # about 10 CPU minutes
python tools/bench_statistics.py correlations  # 1,000 repetitions a figure, about 2 CPU minutes
python tools/bench_statistics.py runs          # about 10 CPU minutes
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import h2htalk
from h2htalk.benchmark.compare.comparison import CELLS
from h2htalk.benchmark.statistics.averages import mean_of, weighted_mean
from h2htalk.benchmark.statistics.paired_tests import Difference, holm, items_needed, paired_result
from h2htalk.benchmark.statistics.rank_correlation import rank_correlation
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

Values = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]
SEEDS: list[int] = []
REPETITIONS = 4000
SIZES = (7, 14, 50, 400)


def real_values(run: Path) -> Iterator[tuple[str, Values]]:
    """The metric and the item values of a run, of an answer that needs no model, and of the run's BLEU-4 alone."""
    with tempfile.TemporaryDirectory() as folder:
        spec = h2htalk.EvaluateSpec(
            model="baseline:copy-last-turn",
            split="mini@1",
            out=str(Path(folder) / "run"),
            embedder="none",
        )
        h2htalk.evaluate(spec)
        runs = {"a model": h2htalk.load_run(run).scores()}
        runs["the user's last turn"] = h2htalk.load_run(Path(folder) / "run").scores()
    for name, column in (
        *(("a model", column) for column in ("s", "lexical")),
        *(
            ("the user's last turn", "lexical"),
            ("a model", "bleu_4"),
            ("the user's last turn", "bleu_4"),
        ),
    ):
        values = [v for v in runs[name].column(column).to_pylist() if v is not None]
        if values:
            yield f"items of mini answered by {name}, {column}", np.array(values)


def populations(run: Path) -> Iterator[tuple[str, Draw, float]]:
    """Name, how to draw, and the true mean of each distribution of scores."""

    yield (
        "Beta(2, 5), a tenth 0",
        lambda rng, size: rng.beta(2, 5, size) * (rng.random(size) >= 0.1),
        0.9 * 2 / 7,
    )
    yield "Beta(.5, 4)", lambda rng, size: rng.beta(0.5, 4, size), 0.5 / 4.5
    yield "0 or 1, mean .2", lambda rng, size: (rng.random(size) < 0.2).astype(np.float64), 0.2
    for name, values in real_values(run):
        yield name, lambda rng, size, values=values: rng.choice(values, size), float(values.mean())


def inside(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


def intervals(run: Path) -> None:
    print("| scores | " + " | ".join(f"n = {n}" for n in SIZES) + " | 11 cells of 7, weighted |")
    print("| --- |" + " ---: |" * (len(SIZES) + 1))
    weights = [float(subtask.count) for subtask in SUBTASKS.values()]
    for name, draw, truth in populations(run):
        cells = []
        for n in SIZES:
            samples = draw(np.random.default_rng((*SEEDS, n)), (REPETITIONS, n)).tolist()
            means = [mean for values in samples if (mean := mean_of(values)) is not None]
            cells.append(sum(inside(mean.interval(), truth) for mean in means) / REPETITIONS)
        hits = 0
        for block in draw(
            np.random.default_rng((*SEEDS, 0)), (REPETITIONS, len(weights), 7)
        ).tolist():
            means = [mean for values in block if (mean := mean_of(values)) is not None]
            hits += inside(weighted_mean(means, weights).interval(), truth)
        print(
            f"| {name} | "
            + " | ".join(f"{100 * c:.1f}" for c in (*cells, hits / REPETITIONS))
            + " |"
        )


def judge_like(rng: np.random.Generator, n: int) -> Values:
    """Ratings of 0 to 5 in halves, as proportions; half of the pairs are ties."""
    changed = rng.random(n) < 0.5
    return changed * (rng.integers(0, 11, n) - rng.integers(0, 11, n)) / 10 * 0.5


Draw = Callable[[np.random.Generator, int], Values]
KINDS: dict[str, Draw] = {
    "lexical-like": lambda rng, n: rng.beta(2, 5, n) - rng.beta(2, 5, n),
    "judge-like": judge_like,
    "0 or 1": lambda rng, n: (rng.random(n) < 0.6).astype(float) - (rng.random(n) < 0.6),
}


def differences(values: Values, stratum: str = "x", size: int = 1) -> list[Difference]:
    return [Difference(stratum, f"{stratum}{i // size}", v) for i, v in enumerate(values.tolist())]


def comparisons(pairs: int, seeds: int) -> None:
    print("| what | scores | asked | measured |\n| --- | --- | ---: | ---: |")
    for name, draw in KINDS.items():
        rng = np.random.default_rng((*SEEDS, 1))
        found = (
            sum(paired_result(differences(draw(rng, 154))).p() < 0.05 for _ in range(pairs)) / pairs
        )
        print(f"| false alarms, 154 items | {name} | at most 6.5 | {100 * found:.1f} |")
        alarms = 0
        for _ in range(pairs):
            ps = {str(k): paired_result(differences(draw(rng, 14), str(k))).p() for k in range(6)}
            alarms += min(holm(ps).values()) < 0.05
        print(f"| six subtasks of 14, Holm | {name} | at most 6.5 | {100 * alarms / pairs:.1f} |")
        clustered = 0
        for _ in range(pairs):
            base = draw(rng, 40)
            own = draw(rng, 160)
            values = np.sqrt(0.3) * np.repeat(base, 4) + np.sqrt(0.7) * own
            clustered += paired_result(differences(values, size=4)).p() < 0.05
        print(
            f"| 40 clusters of 4, correlation .3 | {name} | at most 6.5 | {100 * clustered / pairs:.1f} |"
        )
        sd = float(draw(np.random.default_rng(2), 100_000).std())
        n = items_needed(0.03, sd)
        detected = (
            sum(paired_result(differences(draw(rng, n) + 0.03)).p() < 0.05 for _ in range(seeds))
            / seeds
        )
        print(
            f"| 3 points with the {n:,} items of `plan` | {name} | 77 to 84 | {100 * detected:.1f} |",
            flush=True,
        )
        covered = interval_covers(shifted(draw, 0.03), 0.03, 154, 1, pairs)
        print(
            f"| the interval holds a difference of 3 points, 154 items | {name} | 93 to 98 | {covered:.1f} |"
        )
    for rates in ((0.02, 0.09), (0.05, 0.25), (0.4, 0.6)):
        for n, size in ((60, 1), (175, 5)):
            covered = interval_covers(rates_of(*rates), rates[1] - rates[0], n, size, pairs)
            asked = f"rates {rates[0]:.0%} and {rates[1]:.0%}, {n // size} clusters of {size}"
            print(
                f"| the interval holds the difference | {asked} | 93 to 98 | {covered:.1f} |",
                flush=True,
            )


def shifted(draw: Draw, by: float) -> Draw:
    return lambda rng, n: draw(rng, n) + by


def rates_of(before: float, after: float) -> Draw:
    """Differences of two rates at the same places."""
    return lambda rng, n: (rng.random(n) < after).astype(float) - (rng.random(n) < before)


def interval_covers(draw: Draw, truth: float, n: int, size: int, pairs: int) -> float:
    """In how many of 100 comparisons the interval of a difference holds the true one."""
    rng = np.random.default_rng((*SEEDS, 2))
    hits = 0
    for _ in range(pairs):
        found = paired_result(differences(draw(rng, n), size=size))
        interval = found.estimate.interval
        if interval is None:
            hits += 1
        else:
            low, high = interval
            hits += inside((low - 1e-9, high + 1e-9), truth)
    return 100 * hits / pairs


RATING_CUTS = (-1.5, -0.8, 0.0, 0.8, 1.5)  # of ratings 0 to 5, so that many are tied
RHOS = (0.0, 0.3, 0.7, 0.9)  # of the normal values behind scores and ratings


def normal(rng: np.random.Generator, rho: float, n: int) -> Values:
    z = rng.standard_normal((2, n))
    return np.array([z[0], rho * z[0] + np.sqrt(1 - rho**2) * z[1]])


def rated(rng: np.random.Generator, rho: float, n: int, size: int) -> Values:
    """Scores, of which 30 % are tied at the bottom, and ratings; clusters of `size` have intraclass correlation .3."""
    shared = np.sqrt(0.3) * np.repeat(normal(rng, rho, n // size), size, 1)
    z = normal(rng, rho, n) if size == 1 else shared + np.sqrt(0.7) * normal(rng, rho, n)
    return np.array([np.maximum(z[0], -0.52), np.digitize(z[1], RATING_CUTS)])


def correlations(repetitions: int) -> None:
    print(
        "| pairs | "
        + " | ".join(f"rho {rho:g}" for rho in RHOS)
        + " |\n| --- |"
        + " ---: |" * len(RHOS)
    )
    large = [rated(np.random.default_rng(0), rho, 10**6, 1) for rho in RHOS]
    of_items = [rank_correlation([(["1"] * 10**6, values)]).value for values in large]
    of_models = [6 / np.pi * np.arcsin(rho / 2) for rho in RHOS]
    for n, size in ((4, 0), (6, 0), (10, 0), (37, 0), (20, 1), (50, 1), (154, 1), (160, 4)):
        cells = []
        clusters = [str(k // (size or 1)) for k in range(n)]
        for rho, truth in zip(RHOS, of_items if size else of_models, strict=True):
            rng = np.random.default_rng((*SEEDS, n))
            drawn = (
                rated(rng, rho, n, size) if size else normal(rng, rho, n)
                for _ in range(repetitions)
            )
            ends = [rank_correlation([(clusters, one)]).fields[1:3] for one in drawn]
            hits = 100 * sum(inside(one, truth) for one in ends) / len(ends)
            cells.append(f"{hits:.1f} ({np.mean([high - low for low, high in ends]):.2f})")
        if size > 1:
            name = f"{n} items in clusters of {size}"
        elif size:
            name = f"{n} items"
        else:
            name = f"{n} models"
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def runs(pairs: int, number: int = 200) -> None:
    """Compare runs of one scripted model, which answers with a reference drawn at random from the same subtask."""
    scenarios = load_split("mini@1").scenarios
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n in range(number):
            lines = []
            for one in scenarios:
                alike = [
                    s for s in scenarios if (s.subtask, s.language) == (one.subtask, one.language)
                ]
                lines.append({"id": one.id, "text": rng.choice(alike).reference})
            write_jsonl(folder / f"{n}.jsonl", lines)
            model = f"scripted:{folder}/{n}.jsonl"
            out = str(folder / str(n))
            h2htalk.evaluate(
                h2htalk.EvaluateSpec(
                    model=model, split="mini@1", out=out, embedder="none", baselines=False
                )
            )
        headline = cells = 0
        for _ in range(pairs):
            a, b = rng.sample(range(number), 2)
            pair = h2htalk.compare(folder / str(a), folder / str(b)).pairs[0]
            headline += pair.headline.p < 0.05
            cells += any(row.p_holm < 0.05 for row in pair.rows if row.family == CELLS)
    print("| what | asked | measured |\n| --- | ---: | ---: |")
    print(
        f"| {pairs:,} pairs of {number} runs of a model, headline | at most 6.5 | {100 * headline / pairs:.1f} |"
    )
    print(f"| any of their eleven subtasks, Holm | at most 6.5 | {100 * cells / pairs:.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("intervals", "comparisons", "runs", "correlations"))
    parser.add_argument("--run", type=Path, help="of a model on mini, with an embedder")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--seed", type=int, help="other draws than those of docs/measurements.md")
    options = parser.parse_args()
    SEEDS.extend([] if options.seed is None else [options.seed])
    parts: dict[str, Callable[[], None]] = {
        "intervals": lambda: intervals(options.run),
        "comparisons": lambda: comparisons(options.pairs, options.seeds),
        "runs": lambda: runs(options.pairs),
        "correlations": lambda: correlations(options.repetitions),
    }
    parts[options.what]()
