"""The outcome of a closed round: what other rounds and a release read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rounds_made import answer, begin, decisions, expert, people, split

from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.lifecycle import close_round, reopen_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Three items by two annotators: the first is kept, the second tied, the third dropped."""
    path = begin(tmp_path, count=3, people=2, overlap=2)
    typed = {"en-item-0": split("keep"), "en-item-1": split("keep", "drop"), "en-item-2": split("drop")}
    answer(path, lambda item, annotator: typed[item](item, annotator))
    close_round(path)
    return path


def test_the_outcome_of_a_closed_round(closed: Path) -> None:
    outcome = read_outcome(closed)
    assert (outcome.name, outcome.path, outcome.spec.kind) == ("round", closed, "expert")
    assert {key: one.rule for key, one in outcome.decisions.items()} == {
        key: one["rule"] for key, one in decisions(closed).items()
    }
    assert [outcome.decisions[f"en-item-{n}", "keep"].label for n in range(3)] == ["keep", None, "drop"]
    assert outcome.annotations == RoundFolder(closed).annotations()
    assert outcome.agreement.keys() == {"accuracy", "consistency", "domain_compliance", "keep"}
    assert outcome.sources == {}


def test_rounds_without_an_outcome(closed: Path, tmp_path: Path) -> None:
    with pytest.raises(RoundError, match="not a round"):
        read_outcome(tmp_path)
    copy = shutil.copytree(closed, tmp_path / "copy")
    shutil.rmtree(copy / "private")
    with pytest.raises(RoundError, match="has no folder `private`"):
        read_outcome(copy)
    (closed / "decisions.jsonl").unlink()
    with pytest.raises(DataError, match=r"decisions\.jsonl"):
        read_outcome(closed)
    close_round(closed)
    assert len(read_outcome(closed).decisions) == 12
    reopen_round(closed, without=["annalena"], annotators=people(tmp_path / "more.csv", "chen_wei"))
    with pytest.raises(RoundError, match=rf"decisions are not final; run `h2htalk round close {closed}`"):
        read_outcome(closed)


def test_means_and_intervals_are_read_as_written(tmp_path: Path) -> None:
    path = begin(tmp_path, count=4, people=3, overlap=3)
    scores = {"annalena": "4111", "bogumil": "5125", "chen_wei": "5155"}
    answer(path, lambda item, annotator: expert(score=scores[annotator][int(item[-1])]))
    close_round(path)
    decided = [read_outcome(path).decisions[f"en-item-{n}", "accuracy"] for n in range(4)]
    assert [one.label for one in decided] == pytest.approx([14 / 3, 1, 8 / 3, 11 / 3])
    assert decided[0].interval == (3.2324, 5.0)


def test_several_labels_are_decided_only_where_somebody_chose(tmp_path: Path) -> None:
    path = begin(tmp_path, "safety", count=2, people=2, overlap=2)
    clean = {"perception": "4", "violation": "no"}
    broken = {"perception": "1", "violation": "yes", "violations": "privacy"}
    answer(path, lambda item, _: broken if item == "en-item-1" else clean)
    close_round(path)
    outcome = read_outcome(path)
    assert outcome.decisions["en-item-1", "violations"].label == ("privacy",)
    assert ("en-item-0", "violations") not in outcome.decisions
