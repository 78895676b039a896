"""Bias, transport, strata by level and few annotators: coverage and false alarms by simulation with fixed seeds.

python tools/bench_judge_calibration.py [--part bias|transport|levels|annotators]   (docs/measurements.md)
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from bench_judge_statistics import Values, holds, judges, people

from h2htalk.benchmark.calibration.correction import BY_LENGTH, LabelSample, correct
from h2htalk.benchmark.calibration.judge_bias import Effect, FamilyErrors, family_bias, run_bias
from h2htalk.benchmark.calibration.judged_items import JudgedItem
from h2htalk.benchmark.calibration.label_plan import draw_by_level
from h2htalk.benchmark.statistics import transport
from h2htalk.benchmark.statistics.corrected_mean import difference
from h2htalk.benchmark.statistics.transport import labels_unlike_rest, regressed

LEVELS = ("itinerary_basic", "itinerary_middle", "itinerary_advanced")


def item(at: int, score: float, rating: float | None = None, length: float = 0.0, subtask: str = "") -> JudgedItem:
    panel = () if rating is None else (score,)
    return JudgedItem(f"{subtask}{at}", subtask, "en", f"{subtask}{at}", score, None, length, {}, rating, panel, {})


# --- Bias ---------------------------------------------------------------------------------------------------------


def noise(rng: np.random.Generator, length: Values, uneven: bool) -> Values:
    """A judge's error without bias; uneven: larger for long replies."""
    return 0.5 * rng.standard_normal(len(length)) * (np.exp(0.4 * length) if uneven else 1.0)


def one_run(rng: np.random.Generator, n: int, bias: float, uneven: bool) -> list[Effect]:
    length = rng.standard_normal(n)
    y = people(rng, n)[0]
    f = y + 0.3 + bias * length + noise(rng, length, uneven)
    return run_bias([item(at, *values) for at, values in enumerate(zip(f, y, length, strict=True))])


def three_families(rng: np.random.Generator, n: int, bias: float, uneven: bool) -> list[Effect]:
    """Answers of three families to n items; the judge's family gets 1.4 times the bias of length."""
    hard, runs = rng.standard_normal(n), []
    for family, quality in (("gpt", 0.0), ("qwen", 0.4), ("llama", -0.4)):
        length = rng.standard_normal(n)
        y = np.clip(people(rng, n)[0] + quality, 0, 5)
        f = y + 0.3 * hard + bias * length + 1.4 * bias * (family == "gpt") + noise(rng, length, uneven)
        own = [item(at, *values) for at, values in enumerate(zip(f, y, length, strict=True))]
        runs.append(FamilyErrors(family, ["gpt"], own))
    return family_bias(runs)


def bias_table() -> None:
    print("| bias | labels | noise | planted: inside of 100 | none: called of 1,000 |")
    print("| --- | --- | --- | ---: | ---: |")
    for uneven in (False, True):
        for name, sizes in (("length", (20, 50, 100)), ("own family", (20, 50, 100))):
            for n in sizes:
                made, truth = (one_run, 0.5) if name == "length" else (three_families, 0.7)
                inside, called = (
                    sum(
                        one.low is not None and one.high is not None and one.low <= target <= one.high
                        for seed in range(seeds)
                        for one in made(np.random.default_rng((n, seed)), n, planted, uneven)
                        if one.name == name
                    )
                    for seeds, target, planted in ((100, truth, 0.5), (1000, 0.0, 0.0))
                )
                labels = f"{n}" if name == "length" else f"3 x {n}"
                print(
                    f"| {name} | {labels} | {'uneven' if uneven else 'even'} | {inside} | {1000 - called} |", flush=True
                )


# --- Labels chosen by length --------------------------------------------------------------------------------------


def transport_table(repetitions: int = 1000, items: int = 350) -> None:
    transport.DRAWS = 500  # enough at 5 %
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print("| labels | chosen | called unlike | difference covers | regression on length covers | with `calibrate`: "
          "refused | by length | covers |")  # fmt: skip
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for by_length in (True, False):
        for n in (20, 50, 100):
            rng = np.random.default_rng(n)
            unlike = plain = cured = refused = given = hits = 0
            for _ in range(repetitions):
                y, length = people(rng, items)
                f = judges()["length"](rng, y, length)
                weight = np.exp(0.55 * length * by_length)
                own = rng.choice(items, n, replace=False, p=weight / weight.sum()).tolist()
                labels = {at: float(y[at]) for at in own}
                made = [item(at, f[at], None, length[at], LEVELS[at % 3]) for at in range(items)]
                columns = [f, length, *(np.arange(items) % 3 == k for k in (1, 2))]
                unlike += labels_unlike_rest(np.array(columns, float).T, own) < 0.05
                plain += holds(difference(f.tolist(), labels), truth)
                cured += holds(regressed(f.tolist(), labels, length.tolist()), truth)
                errors = {at: float(f[at] - y[at]) for at in own}
                found = correct("", "R", LabelSample(made, f.tolist(), errors, [0.0] * items))
                refused += found.mean is None
                given += found.estimator == BY_LENGTH
                hits += found.mean is not None and holds(found.mean, truth)
            shares = [100 * one / repetitions for one in (unlike, plain, cured, refused, given)]
            shown = " | ".join(f"{one:.1f}" for one in [*shares, 100 * hits / max(1, repetitions - refused)])
            print(f"| {n} | {'by length' if by_length else 'at random'} | {shown} |", flush=True)


# --- Strata of each level -----------------------------------------------------------------------------------------


def levels_table(repetitions: int = 2000, items: int = 351) -> None:
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print(
        "| judge's error | labels | levels together: refused | these items | such | one level: refused | these | such |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, judge in judges().items():
        for n in (48, 96):
            rng, hits = np.random.default_rng(n), [[0, 0, 0], [0, 0, 0]]
            for seed in range(repetitions):
                y, length = people(rng, items)
                f = judge(rng, y, length)
                made = [item(at, float(f[at]), None, 0.0, LEVELS[at % 3]) for at in range(items)]
                drawn, strata = draw_by_level(made, n, seed)
                chosen, names = {one.id for one in drawn}, sorted(set(strata.values()))
                for found, own, ratings in ((hits[0], made, y), (hits[1], made[::3], y[::3])):
                    errors = {at: one.score - float(ratings[at]) for at, one in enumerate(own) if one.id in chosen}
                    numbers = [names.index(strata[one.id]) for one in own]
                    sample = LabelSample(own, [one.score for one in own], errors, [0.0] * len(own), numbers)
                    mean = correct("", "R", sample).mean
                    if mean is not None:
                        here = (mean.low_here or 9) <= float(ratings.mean()) <= (mean.high_here or 0)
                        found[:] = found[0] + 1, found[1] + here, found[2] + holds(mean, truth)
            shown = " | ".join(
                f"{100 * (1 - given / repetitions):.1f} | {100 * here / given:.1f} | {100 * over / given:.1f}"
                for given, here, over in hits
            )
            print(f"| {name} | {n} | {shown} |", flush=True)


# --- Few annotators -----------------------------------------------------------------------------------------------


def annotators_table(repetitions: int = 1000, items: int = 350, n: int = 60) -> None:
    truth = float(people(np.random.default_rng(0), 4_000_000)[0].mean())
    print("| annotators | interval over items covers | over annotators too covers |")
    print("| ---: | ---: | ---: |")
    for raters in (2, 3, 5, 10):
        rng, hits = np.random.default_rng(raters), [0, 0]
        for _ in range(repetitions):
            y, length = people(rng, items)
            f = judges()["bias"](rng, y, length)
            own, lenient = rng.permutation(items)[:n].tolist(), 0.3 * rng.standard_normal(raters)
            made = [item(at, float(f[at])) for at in range(items)]
            for at in own:
                given = y[at] + lenient + 0.3 * rng.standard_normal(raters)
                each = {f"r{k}": float(rating - f[at]) for k, rating in enumerate(given)}
                made[at] = replace(made[at], people=float(given.mean()), panel=(float(f[at]),), raters=each)
            errors = {at: made[at].error for at in own}
            found = correct("", "R", LabelSample(made, f.tolist(), errors, [0.0] * items, random=True))
            hits[0] += found.mean is not None and holds(found.mean, truth)
            hits[1] += found.raters is not None and found.raters[0] <= truth <= found.raters[1]
        print(f"| {raters} | {100 * hits[0] / repetitions:.1f} | {100 * hits[1] / repetitions:.1f} |", flush=True)


TABLES = {"bias": bias_table, "transport": transport_table, "levels": levels_table, "annotators": annotators_table}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=TABLES)
    chosen = parser.parse_args().part
    for name, table in TABLES.items():
        if chosen in (None, name):
            table()
            print()
