"""A model that knows a split by heart is told from one that writes as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.benchmark.contamination import check_contamination, longest_run
from h2htalk.data.splits import load_split
from support.command_line import h2htalk_here, scripted


def script(folder: Path, replies: dict[str, str]) -> str:
    lines = {"*": "That sounds hard.", **replies}
    return scripted(folder, *({"id": name, "text": text} for name, text in lines.items()))


@pytest.mark.parametrize(
    ("share", "canary", "known"), [(0, False, False), (0, True, True), (5, False, True)]
)
def test_references_and_canary_that_a_model_continues(
    tmp_path: Path, share: int, canary: bool, known: bool
) -> None:
    split = load_split("high_risk")
    learned = (
        sorted(split.scenarios, key=lambda one: one.id)[:: share or len(split.scenarios)]
        if share
        else []
    )
    replies = {f"reference/{one.id}": one.reference for one in learned}
    if canary:
        replies |= {"canary": split.canary[-24:]}
    table, found = check_contamination(
        script(tmp_path, replies), "high_risk", str(tmp_path / "out")
    )
    assert found is known
    own, control = table.rows
    assert (own[2] > 0, control[2]) == (share > 0, 0)
    assert table.notes[1] == f"Continues the canary: {'yes' if canary else 'no'}."


def test_the_command_is_silent_about_a_model_that_does_not_know_the_split(tmp_path: Path) -> None:
    done = h2htalk_here(
        "study", "contamination", script(tmp_path, {}), "--split", "arcs", "--out", tmp_path / "out"
    )
    assert (done.returncode, "own second half" in done.stdout) == (0, True)


@pytest.mark.parametrize("split", ["high_risk", "instructions", "arcs"])
def test_a_model_that_says_one_thing_to_everything_knows_nothing(
    tmp_path: Path, split: str
) -> None:
    """Controls in the other language shared no word with a reply, so that constant models were accused."""
    text = "I hear you and I am here with you. It is not your fault. 我在这里，你不是一个人，这不是你的错。"
    table, found = check_contamination(script(tmp_path, {"*": text}), split, tmp_path / "out")
    assert (found, [row[2] for row in table.rows]) == (False, [0, 0])


def test_the_longest_shared_run() -> None:
    assert longest_run("So you sat there, alone.", "And YOU sat there; then alone", "en") == 3
    assert longest_run("你一个人坐在那里", "他一个人坐着", "zh") == 4
