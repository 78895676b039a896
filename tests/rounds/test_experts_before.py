"""A second round of experts over items that experts have judged before."""

from __future__ import annotations

from pathlib import Path

from h2htalk.rounds.lifecycle import close_round, open_round
from support.curations import finished
from support.rounds import answer, candidate, closed, crowd, expert, spec_of


def opened(source: Path, out: Path, kind: str = "expert") -> list[str]:
    _, messages = open_round(spec_of(kind, source, 3), out)
    return [message for message in messages if "experts have judged" in message]


def crowd_of(folder: Path) -> tuple[Path, Path]:
    """A workspace of three candidates, and a closed crowd round that keeps all of them."""
    records = [candidate(f"c-{number}", "accept") for number in range(3)]
    workspace = finished(folder / "work", "review", records).path
    open_round(spec_of("crowd", workspace), folder / "crowd")
    return workspace, closed(folder / "crowd", crowd())


def test_what_experts_found_before_is_said_when_other_experts_are_asked(tmp_path: Path) -> None:
    """An owner could ask experts until the answer was no, and nothing said so."""
    workspace, path = crowd_of(tmp_path)
    first = tmp_path / "expert-1"
    assert opened(path, first) == []
    answer(first, lambda item, _: expert(harmful="yes" if item == "c-1" else "no"))
    # An open round has found nothing yet.
    assert opened(path, tmp_path / "while-open") == []
    close_round(first)
    judged = f"{first}: experts have judged 3 of these 3 items before, in a closed round, and answered yes or not sure"
    (message,) = opened(path, tmp_path / "expert-2")
    assert (
        message
        == f"{judged} about 1 item: that stays open in a release, whatever this round answers"
    )
    # The same items from the workspace, and from the experts' own round.
    for number, source in enumerate((workspace, first)):
        assert opened(source, tmp_path / f"again-{number}") == [message]
    assert opened(path, tmp_path / "crowd-2", "crowd") == []
    # The same command completes a round, and is no second round.
    assert opened(path, tmp_path / "expert-2") == []


def test_experts_who_found_nothing_before_are_named_too(tmp_path: Path) -> None:
    _, path = crowd_of(tmp_path)
    opened(path, tmp_path / "expert-1")
    closed(tmp_path / "expert-1", expert())
    (message,) = opened(path, tmp_path / "expert-2")
    assert message.endswith(
        "in a closed round; a release takes what they and the experts of this round find"
    )


def test_a_round_of_experts_that_cannot_be_read_is_named_and_stops_nothing(tmp_path: Path) -> None:
    _, path = crowd_of(tmp_path)
    first = tmp_path / "expert-1"
    opened(path, first)
    closed(first, expert())
    (first / "decisions.jsonl").write_text("{", encoding="utf-8")
    (message,) = opened(path, tmp_path / "expert-2")
    assert message.startswith(
        f"{first}: whether experts have judged these items there is not known: "
    )
