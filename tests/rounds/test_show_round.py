"""`h2htalk show` of a round."""

from __future__ import annotations

from pathlib import Path

from rounds_made import answer, begin, split

from h2htalk.curation.show import show
from h2htalk.rounds.lifecycle import close_round


def test_a_round_shows_its_items_and_their_decisions(tmp_path: Path) -> None:
    path = begin(tmp_path, count=2)
    assert "no decision yet" in "\n".join(show(str(path)))
    answer(path, split("keep"))
    close_round(path)
    text = "\n".join(show(str(path)))
    assert "keep: keep (majority, 3 of 3)" in text
    assert "2 of 2 records" in text
