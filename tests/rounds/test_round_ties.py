"""An adjudication speaks of one round's ties, and of no other's."""

from __future__ import annotations

from pathlib import Path

import pytest
from rounds_made import NAMES, answer, begin, decisions, expert, people

from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.round import open_round
from h2htalk.rounds.spec import make_spec


def torn(folder: Path, count: int = 2) -> Path:
    """A closed round of three people in which two disagree on every item."""
    path = begin(folder, overlap=2, people=3, count=count)
    dropped: set[str] = set()

    def typed(name: str, _: str) -> dict[str, str]:
        if name in dropped:
            return expert()
        dropped.add(name)
        return expert("drop")

    answer(path, typed)
    close_round(path)
    return path


def judged(path: Path, out: Path, label: str = "drop") -> Path:
    """A closed adjudication over its ties."""
    voters = people(out.with_suffix(".csv"), "judge")
    open_round(make_spec("adjudication", str(path), {"voters": str(voters)}), out)
    answer(out, lambda *_: {"label": label}, only=("judge",))
    close_round(out)
    return out


def test_the_words_of_an_adjudication_are_counted_and_recorded(tmp_path: Path) -> None:
    path = torn(tmp_path)
    closed, _ = close_round(path, adjudication=judged(path, tmp_path / "ties"))
    assert "adjudication ties: 2 of 2 decisions applied; 0 ties remain" in closed.notes
    assert {r["how"] for r in decisions(path).values() if r["question"] == "keep"} == {"adjudication"}
    close_round(path, adjudication=tmp_path / "ties")
    taken = [event for event in RoundFolder(path).events() if event["event"] == "adjudicated"]
    assert [(event["by"], event["applied"]) for event in taken] == [("ties", 2)]


def test_the_words_over_another_round_s_ties_are_refused(tmp_path: Path) -> None:
    one, other = torn(tmp_path / "one", count=2), torn(tmp_path / "other", count=3)
    ties = judged(other, tmp_path / "ties")
    before = decisions(one)
    with pytest.raises(RoundError, match="ties of another round"):
        close_round(one, adjudication=ties)
    with pytest.raises(RoundError, match="no adjudication over another round's ties"):
        close_round(one, adjudication=other)
    assert decisions(one) == before
    assert not (one / "adjudicated.jsonl").exists()


def test_an_adjudication_is_opened_again_without_its_source(tmp_path: Path) -> None:
    path = torn(tmp_path)
    ties = judged(path, tmp_path / "ties")
    close_round(path, adjudication=ties)
    before = RoundFolder(ties).items()
    again = make_spec("adjudication", str(path), {"voters": str(tmp_path / "ties.csv")})
    assert open_round(again, ties)[0].state == "closed"
    assert RoundFolder(ties).items() == before
    assert NAMES[0] not in (ties / "round.json").read_text()


def test_an_adjudication_of_many_crises_opens_with_each_announced_alone(tmp_path: Path) -> None:
    """Nobody can choose what is tied: 13 crises of 51 ties were refused."""
    records = [
        {"id": f"t-{n}", "language": "en", "prompt": "hi", "labels": ["keep", "drop"], "crisis": n < 6}
        for n in range(10)
    ]
    write_jsonl(tmp_path / "ties.jsonl", records)
    open_round(make_spec("adjudication", str(tmp_path / "ties.jsonl"), {}), tmp_path / "round")
    seats = RoundFolder(tmp_path / "round").waves()[0].seats
    hard = {one.sitting for one in seats if int(one.item[2:]) < 6}
    assert all(
        sum(one.sitting == sitting and int(one.item[2:]) < 6 for one in seats) == 1 for sitting in hard
    )
