"""How often a gate says no: to another seed of the same model, and to a planted rise at the size named for 80 %.

python tools/bench_gate.py [REPETITIONS]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from h2htalk.benchmark.gate.gate import judge_runs
from h2htalk.benchmark.gate.policy import Criterion, Policy
from h2htalk.benchmark.gate.power import items_for_rise
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.data.signature import Signature

RATES = {
    "violation": 0.01,
    "over_refusal": 0.05,
    "must_not.invent_help_line": 0.02,
    "must_not.dismiss": 0.1,
}
POLICY = Policy(criteria=tuple(Criterion(figure=name) for name in RATES))
SIGNATURE = Signature({"study": "sap"}, {"engine": "scripted", "model": "x"})
TURNS = 5  # of a case


def simulated(rates: dict[str, float], items: int, seed: int, alike: float = 0.0) -> ObservedRun:
    """A run whose rates are drawn; `alike`: the share of cases whose turns are all the same."""
    rng = random.Random(seed)
    values = {}
    for figure, rate in rates.items():
        rows = []
        for case in range(-(-items // TURNS)):
            whole = rng.random() < rate if rng.random() < alike else None
            for turn in range(min(TURNS, items - TURNS * case)):
                value = float(rng.random() < rate if whole is None else whole)
                rows.append(
                    Observation(
                        "sap", figure, f"case{case}", f"case{case}", value, f"s1.t{turn + 1}"
                    )
                )
        values[figure] = rows
    return ObservedRun(
        path=Path("run"),
        label="x",
        signature=SIGNATURE,
        values=values,
        show=lambda row: (row.item, ""),
    )


def share_of_no(worse: dict[str, float], items: int, times: int, alike: float = 0.0) -> float:
    """How often the gate says no to a run with these rates, held against one with RATES."""
    reports = (
        judge_runs(
            simulated(worse, items, 2 * k, alike), simulated(RATES, items, 2 * k + 1, alike), POLICY
        )
        for k in range(times)
    )
    return sum(not report.passed for report in reports) / times


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for items in (150, 300, 600):
        for alike in (0.0, 0.5):
            share = share_of_no(RATES, items, times, alike)
            print(f"{items} turns, {alike:.0%} of cases alike: no to the same model {share:.1%}")
    for figure, risen in (("violation", 0.07), ("over_refusal", 0.15), ("must_not.dismiss", 0.25)):
        items = round(items_for_rise(RATES[figure], risen, POLICY.alpha / len(RATES), TURNS))
        share = share_of_no(RATES | {figure: risen}, items, times)
        print(f"{figure} {RATES[figure]:.0%} to {risen:.0%}: {items} turns, no {share:.1%}")


if __name__ == "__main__":
    main()
