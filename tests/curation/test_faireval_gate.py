"""How good a judge is: a gate that lets only those through who beat chance on gold."""

from __future__ import annotations

import pytest

from h2htalk.curation.faireval_gate import Verdict, accuracy, gate, kappa

GOLD: dict[str, Verdict] = {f"g{n}": "win" for n in range(100)}


def judged(right: int, ties: int = 0) -> dict[str, Verdict | None]:
    return {f"g{n}": "win" if n < right else "tie" if n < right + ties else "lose" for n in range(100)}


def test_a_judge_above_chance_may_judge() -> None:
    found = gate(judged(70), GOLD)
    assert (found.accepted, found.accuracy, found.n, found.reason) == (True, 0.7, 100, "")
    assert found.low < 0.7 < found.high


@pytest.mark.parametrize(("right", "ties"), [(30, 0), (50, 0), (40, 20)])
def test_a_judge_at_or_below_chance_is_refused(right: int, ties: int) -> None:
    found = gate(judged(right, ties), GOLD)
    assert not found.accepted
    assert "at or below chance" in found.reason


def test_too_few_gold_items_do_not_show_that_it_is_above() -> None:
    few = {name: GOLD[name] for name in ("g0", "g1", "g2")}
    found = gate(judged(100), few)
    assert not found.accepted
    assert "take more gold items than 3" in found.reason


def test_who_calls_everything_a_tie_knows_nothing_however_many_ties_gold_has() -> None:
    """With 60 ties among 100 gold items that judge came to 0.8, and passed."""
    gold: dict[str, Verdict] = {name: "tie" if n < 60 else "win" for n, name in enumerate(GOLD)}
    found = gate(dict.fromkeys(gold, "tie"), gold)
    assert (found.accuracy, found.accepted) == (0.8, False)
    assert "at or below chance (0.800 of 0.8)" in found.reason
    assert gate(
        {name: truth if n % 10 else "lose" for n, (name, truth) in enumerate(gold.items())}, gold
    ).accepted


def test_what_is_unscored_is_never_right() -> None:
    """An unscored verdict was a tie, and so right wherever gold was one."""
    gold: dict[str, Verdict] = {name: "tie" if n < 20 else "win" for n, name in enumerate(GOLD)}
    verdicts: dict[str, Verdict | None] = {
        name: None if truth == "tie" else "win" for name, truth in gold.items()
    }
    assert gate(verdicts, gold).accuracy == 0.9


def test_gold_without_a_verdict_is_an_error() -> None:
    with pytest.raises(ValueError, match="verdict"):
        gate({}, {})
    with pytest.raises(ValueError, match="verdict"):
        gate({}, GOLD)


def test_accuracy_counts_a_tie_half_and_kappa_takes_chance_away() -> None:
    pairs: list[tuple[Verdict, Verdict]] = [("win", "win"), ("tie", "win"), ("lose", "win"), ("tie", "tie")]
    assert accuracy(pairs) == 0.625
    assert kappa([("win", "win"), ("lose", "lose")]) == 1.0
    assert kappa([("win", "win"), ("win", "lose"), ("lose", "win"), ("lose", "lose")]) == 0.0
    assert kappa([("win", "win")]) == 1.0
