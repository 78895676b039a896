"""FairEval's arithmetic: the seven entropies, balanced positions, ties, hand-off and judge check."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.review.faireval import (
    Calibration,
    EvidenceSample,
    Order,
    Verdict,
    accuracy,
    audit_slice,
    calibrate,
    check_judge,
    entropy,
    escalate,
)

ROOT = Path(__file__).parents[3]
SEVEN = [0.0, 0.4506, 0.6365, 0.6931, 0.8676, 1.0114, 1.0986]


def samples(ab: list[tuple[float, float]], ba: list[tuple[float, float]]) -> list[EvidenceSample]:
    pairs: list[tuple[Order, tuple[float, float]]] = [
        *(("ab", p) for p in ab),
        *(("ba", p) for p in ba),
    ]
    return [EvidenceSample(order, *pair) for order, pair in pairs]


def unscored(order: Order, status: str = "malformed_output") -> EvidenceSample:
    return EvidenceSample(order, None, None, status)


def item(bpde: float, gap: float = 1.0, *, conflict: bool = False) -> Calibration:
    return Calibration("win", 5 + gap, 5.0, bpde, conflict, prefers="first" if conflict else None)


def test_six_verdicts_have_seven_entropies() -> None:
    found = {
        round(entropy(six), 4) for six in combinations_with_replacement(("win", "tie", "lose"), 6)
    }
    assert sorted(found) == SEVEN


def test_means_and_margins_are_balanced_and_exact() -> None:
    """A judge that gives the first position two points more has no preference."""
    found = calibrate(samples([(9, 7)] * 3, [(7, 9)] * 3))
    assert (found.verdict, found.score_a, found.score_b) == ("tie", 8.0, 8.0)
    assert (found.conflict, found.prefers) == (True, "first")
    # The mean over all scored samples is 8.4 against 7.6: three samples of one order, two of the other.
    found = calibrate([*samples([(9, 7)] * 3, [(7, 9)] * 2), unscored("ba")])
    assert (found.verdict, found.score_a, found.score_b) == ("tie", 8.0, 8.0)
    # In floats 8.1 + 7.9 + 8.2 and 8.2 + 8.1 + 7.9 differ by an ulp or two.
    found = calibrate(
        samples([(8.1, 8.2), (7.9, 8.1), (8.2, 7.9)], [(8.2, 7.9), (8.1, 8.2), (7.9, 8.1)])
    )
    assert found.verdict == "tie"
    # A margin is exact.
    made = samples([(8, 7.7)] * 2, [(8, 7.7)] * 2)
    assert calibrate(made, margin=0.3).verdict == "tie"
    assert calibrate(made, margin=0.29).verdict == "win"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ([], "too few samples"),
        (samples([(8, 7)] * 3, []), "too few samples"),
        ([*samples([(8, 7)] * 3, [(7, 8)]), unscored("ba"), unscored("ba")], "malformed_output"),
        (
            [
                *samples([(8, 7)] * 3, []),
                unscored("ba", "refusal"),
                unscored("ba", "refusal"),
                unscored("ba"),
            ],
            "refusal",
        ),
    ],
)
def test_too_few_scored_samples_in_an_order(made: list[EvidenceSample], reason: str) -> None:
    found = calibrate(made)
    assert (found.verdict, found.bpde, found.score_a) == (None, None, None)
    assert found.status == f"unscored: {reason}"


scores = st.one_of(st.none(), st.integers(1, 10), st.decimals(1, 10, places=1).map(float))
made_samples = st.lists(
    st.builds(EvidenceSample, st.sampled_from(["ab", "ba"]), scores, scores), max_size=12
)


@given(made_samples, st.randoms(use_true_random=False))
def test_exchanging_the_answers_mirrors_the_verdict(
    made: list[EvidenceSample], rng: random.Random
) -> None:
    order: dict[Order, Order] = {"ab": "ba", "ba": "ab"}
    mirrored = [EvidenceSample(order[s.order], s.score_b, s.score_a, s.status) for s in made]
    rng.shuffle(mirrored)
    one = calibrate(made)
    other = calibrate(mirrored)
    mirror: dict[Verdict | None, Verdict | None] = {
        "win": "lose",
        "lose": "win",
        "tie": "tie",
        None: None,
    }
    assert other.verdict == mirror[one.verdict]
    assert (other.score_a, other.score_b) == (one.score_b, one.score_a)
    assert (other.conflict, other.prefers) == (one.conflict, one.prefers)
    assert other.bpde == one.bpde or other.bpde == pytest.approx(one.bpde, abs=1e-12)


def test_hand_off_by_doubt_and_by_lot() -> None:
    """A fifth of the items was handed off although all samples agreed."""
    items = {
        "a": item(0.45, 2.0),
        "b": item(0.45, 1.0),
        "c": item(0.45, 1.0),
        "d": item(0.0),
        "e": item(0.0),
    }
    assert list(escalate(items, share=0.2)) == ["b"]
    assert list(escalate(items, share=0.4)) == ["b", "c"]
    assert list(escalate(items, share=1)) == ["a", "b", "c"]
    items = {"a": item(0.6931), "b": item(0.0, conflict=True), "c": calibrate([]), "d": item(0.0)}
    assert escalate(items) == {"a": ("entropy",), "b": ("conflict",), "c": ("unscored",)}
    # The audit is random and repeatable.
    items = [f"i{n:03}" for n in range(200)]
    found = audit_slice(items, 0.05, 1)
    assert len(found) == 10
    assert audit_slice(reversed(items), 0.05, 1) == found != audit_slice(items, 0.05, 2)
    # Shares are rounded to the nearest.
    for share, of, number in ((0.5, 3, 2), (0.04, 10, 0), (0.05, 10, 1), (0.15, 10, 2)):
        items = {f"i{n}": item(0.45) for n in range(of)}
        assert len(escalate(items, share=share)) == len(audit_slice(items, share)) == number


GOLD: dict[str, Verdict] = {f"g{n}": "win" for n in range(100)}


def judged(right: int, ties: int = 0) -> dict[str, Verdict | None]:
    return {
        f"g{n}": "win" if n < right else "tie" if n < right + ties else "lose" for n in range(100)
    }


def test_a_judge_at_or_below_chance_is_refused() -> None:
    """With 60 ties among 100 gold items it had an accuracy of 0.8."""
    for right, ties in ((30, 0), (50, 0), (40, 20)):
        found = check_judge(judged(right, ties), GOLD)
        assert (found.accepted, "at or below chance" in found.reason) == (False, True)
    gold: dict[str, Verdict] = {name: "tie" if n < 60 else "win" for n, name in enumerate(GOLD)}
    found = check_judge(dict.fromkeys(gold, "tie"), gold)
    assert (found.accuracy, found.accepted) == (0.8, False)
    assert "at or below chance (0.800 of 0.8)" in found.reason
    mostly: dict[str, Verdict | None] = {
        name: gold[name] if n % 10 else "lose" for n, name in enumerate(gold)
    }
    assert check_judge(mostly, gold).accepted
    # An unscored verdict counted as a tie, and so as right where gold was one.
    gold: dict[str, Verdict] = {name: "tie" if n < 20 else "win" for n, name in enumerate(GOLD)}
    verdicts: dict[str, Verdict | None] = {
        name: None if truth == "tie" else "win" for name, truth in gold.items()
    }
    assert check_judge(verdicts, gold).accuracy == 0.9
    # Accuracy counts a tie half.
    pairs: list[tuple[Verdict, Verdict]] = [
        ("win", "win"),
        ("tie", "win"),
        ("lose", "win"),
        ("tie", "tie"),
    ]
    assert accuracy(pairs) == 0.625
    with pytest.raises(ValueError, match="verdict"):
        check_judge({}, GOLD)


def test_entropy_beats_chance_on_public_judgements(shared_data: Path) -> None:
    tool = [sys.executable, str(ROOT / "tools/bench_faireval.py")]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "judge check: refused: at or below chance" in done.stdout
