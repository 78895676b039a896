"""FairEval on judgements that others made in both orders, with gold: does entropy find the wrong ones?

    H2HTALK_DATA=... python tools/bench_faireval.py

Reads `faireval/llmbar_judgements.jsonl` (LLMBar, MIT). Prompt strategies stand in for evidence samples. For each judge:
accuracy (a tie counts half) of one call, of the calibrated verdict, and after a share of the items is handed to
people (counted as right), chosen by entropy and at random (its expectation); what the judge check says; how often
the two orders disagree and how often the first position wins then.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Literal

from sklearn.metrics import cohen_kappa_score

from h2htalk.curation.review.faireval import (
    Calibration,
    EvidenceSample,
    Verdict,
    accuracy,
    calibrate,
    check_judge,
    escalate,
)

SHARES = (0.1, 0.2)
# As strategies: how the judge was asked. The others of the file ask several times themselves.
STRATEGIES = ("Vanilla_NoRules", "Vanilla", "Vanilla_1shot", "CoT", "Rating_NoRules", "Rating")
_SCORES = {"1": (1.0, 0.0), "2": (0.0, 1.0)}
_KEYS: tuple[tuple[Literal["ab", "ba"], str], ...] = (
    ("ab", "winner_first_order"),
    ("ba", "winner_swapped"),
)

Item = tuple[str, int]


def read(path: Path) -> dict[str, dict[Item, list[EvidenceSample]]]:
    """Samples by judge and item: each strategy once in each order, scores already the answers' own."""
    found: dict[str, dict[Item, list[EvidenceSample]]] = defaultdict(lambda: defaultdict(list))
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["prompt"] in STRATEGIES:
            samples = found[row["judge"]][row["set"], row["item"]]
            for order, key in _KEYS:
                samples.append(_sample(order, row[key]))
    return found


def _sample(order: Literal["ab", "ba"], winner: str | None) -> EvidenceSample:
    """The winner named as a pair of scores; a reply that named none is unscored."""
    if winner is None:
        return EvidenceSample(order, None, None, "malformed_output")
    return EvidenceSample(order, *_SCORES[str(winner)])


def read_gold(path: Path) -> dict[Item, Verdict]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(row["set"], row["item"]): "win" if str(row["gold"]) == "1" else "lose" for row in rows}


def after_escalate(
    found: Mapping[str, Calibration], gold: Mapping[str, Verdict], share: float
) -> float:
    """Accuracy when people decide the share with the highest entropy."""
    people = escalate(found, share=share, high=9)
    given = {name for name, why in people.items() if "entropy" in why}
    pairs = [(gold[n] if n in given else found[n].verdict or "tie", gold[n]) for n in sorted(found)]
    return accuracy(pairs)


def after_random(
    found: Mapping[str, Calibration], gold: Mapping[str, Verdict], share: float
) -> float:
    """The same of a random share, expected."""
    alone = accuracy([(found[n].verdict or "tie", gold[n]) for n in sorted(found)])
    return share + (1 - share) * alone


def report(
    judge: str, samples: Mapping[Item, Sequence[EvidenceSample]], gold: Mapping[Item, Verdict]
) -> bool:
    """Print one judge's lines; whether they are as they should be."""
    found = {f"{s}-{n:03}": calibrate(of_item) for (s, n), of_item in samples.items()}
    truth = {f"{s}-{n:03}": gold[s, n] for s, n in samples}
    single = [
        accuracy([(_alone(of_item[at]), gold[item]) for item, of_item in samples.items()])
        for at in range(2 * len(STRATEGIES))
    ]
    verdicts = {name: item.verdict for name, item in found.items()}
    pairs = [(verdicts[name] or "tie", truth[name]) for name in sorted(found)]
    passed = check_judge(verdicts, truth)
    conflicts = [item for item in found.values() if item.scored and item.conflict]
    rate = len(conflicts) / max(1, sum(item.scored for item in found.values()))
    first = sum(item.prefers == "first" for item in conflicts) / max(1, len(conflicts))
    verdict = "accepted" if passed.accepted else f"refused: {passed.reason}"
    print(
        f"{judge}, n {len(found)}: one call {mean(single):.3f}, calibrated {accuracy(pairs):.3f}",
        end="",
    )
    print(f", kappa {cohen_kappa_score(*zip(*pairs, strict=True)):.3f}")
    print(f"  conflicts {rate:.3f}, of these the first position wins {first:.3f}")
    print(f"  judge check: {verdict} [{passed.low:.3f}, {passed.high:.3f}]")
    better = []
    for share in SHARES:
        by_entropy = after_escalate(found, truth, share)
        by_chance = after_random(found, truth, share)
        better.append(by_entropy > by_chance)
        print(
            f"  people decide {share:.0%}: by entropy {by_entropy:.3f}, at random {by_chance:.3f}"
        )
    return all(better) if passed.accuracy > 0.5 else not passed.accepted


def _alone(sample: EvidenceSample) -> Verdict:
    """The verdict of one sample: half a comparison has no calibrated one."""
    a = sample.score_a or 0.0
    b = sample.score_b or 0.0
    if a == b:
        return "tie"
    if a > b:
        return "win"
    return "lose"


def main() -> int:
    path = Path(os.environ["H2HTALK_DATA"]) / "faireval/llmbar_judgements.jsonl"
    gold = read_gold(path)
    judges = read(path)
    right = []
    for subset in ("all", *sorted({name for name, _ in gold})):
        print(f"== {subset}")
        for judge, samples in sorted(judges.items()):
            chosen = {item: found for item, found in samples.items() if subset in ("all", item[0])}
            right.append(report(judge, chosen, gold))
    return 0 if all(right[: len(judges)]) else 1


if __name__ == "__main__":
    sys.exit(main())
