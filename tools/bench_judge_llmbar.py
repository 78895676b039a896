"""Corrected shares on real judges: in how many of 238 pairs output 1 is better (docs/measurements.md).

H2HTALK_DATA=... python tools/bench_judge_llmbar.py

For each judge and prompt the share that is gold is estimated from the verdicts on all pairs and 20, 50 or 100 random
labels, 2,000 times: the judge's own share, the difference estimator and Rogan and Gladen's. The truth is the gold share
of these 238 pairs, so the difference estimator uses its interval for these items.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from statistics import fmean

from h2htalk.benchmark.statistics.corrected_mean import difference
from h2htalk.benchmark.statistics.misclassification import corrected_share

DRAWS, LABELS = 2000, (20, 50, 100)


def main() -> None:
    path = Path(os.environ["H2HTALK_DATA"]) / "faireval" / "llmbar_judgements.jsonl"
    judges: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        verdict = {"1": 1.0, "2": 0.0}.get(str(row["winner_first_order"]))
        if verdict is not None:  # without a verdict: unscored
            judges[f"{row['judge']}, {row['prompt']}"].append((verdict, float(row["gold"] == 1)))
    heads = ["bias", "covers", "half width"]
    columns = [
        "judge",
        "pairs",
        "gold",
        "its own",
        "labels",
        *(f"DIFF {h}" for h in heads),
        *(f"RG {h}" for h in heads),
    ]
    print(f"| {' | '.join(columns)} | refused |\n| --- |" + " ---: |" * len(columns))
    for name, pairs in judges.items():
        verdicts, gold = (list(side) for side in zip(*pairs, strict=True))
        truth = fmean(gold)
        for n in LABELS:
            rng, found = Random(n), defaultdict[str, list[float]](list)
            refused = Counter[str]()
            for _ in range(DRAWS):
                labels = {at: gold[at] for at in rng.sample(range(len(gold)), n)}
                one = difference(verdicts, labels)
                low, high = (one.value, one.value) if one.low_here is None else (one.low_here, one.high_here or 0)
                found["d"].append(one.value - truth)
                found["dc"].append(low - 1e-12 <= truth <= high + 1e-12)
                found["dw"].append((high - low) / 2)
                hits = Counter((labels[at], verdicts[at]) for at in labels)
                yes, no = hits[1.0, 1.0] + hits[1.0, 0.0], hits[0.0, 1.0] + hits[0.0, 0.0]
                try:
                    share, (low, high) = corrected_share(
                        int(sum(verdicts)), len(verdicts), hits[1.0, 1.0], yes, hits[0.0, 0.0], no
                    )
                except ValueError:
                    refused["rg"] += 1
                    continue
                found["r"].append(share - truth)
                found["rc"].append(low <= truth <= high)
                found["rw"].append((high - low) / 2)
            d, r = (
                f"{fmean(found[k]):+.3f} | {100 * fmean(found[k + 'c']):.1f} | {fmean(found[k + 'w']):.3f}"
                for k in "dr"
            )
            own = f"{truth:.3f} | {fmean(verdicts):.3f}"
            print(f"| {name} | {len(gold)} | {own} | {n} | {d} | {r} | {100 * refused['rg'] / DRAWS:.1f} |", flush=True)


if __name__ == "__main__":
    main()
