"""Children that tests fork and kill: they free nothing of the parent's, and one that hangs is ended and said."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

from support.kills import KILLED, killed_in, states_of


class Model:
    """As a model of OpenVINO whose threads the child does not have: freed there, it would wait for ever."""

    circle: Model

    def __init__(self) -> None:
        self.circle = self
        self.process = os.getpid()

    def __del__(self) -> None:
        if os.getpid() != self.process:
            os._exit(KILLED)


def test_a_forked_child_frees_nothing_that_the_parent_left() -> None:
    """A merge that a test killed hung for 300 s after tests of OpenVINO's models in the same process."""
    gc.disable()
    try:
        Model()
        assert not killed_in(gc.collect)
    finally:
        gc.enable()


def test_a_forked_child_that_hangs_is_ended_with_its_stack(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(AssertionError, match=r"it still ran after 0\.2 s"):
        killed_in(lambda: time.sleep(60), seconds=0.2)
    assert "in <lambda>" in capfd.readouterr().err


def test_what_a_forked_child_raises_fails_the_test() -> None:
    """A command that failed where it was to be killed passed for one that had ended."""

    def fail() -> None:
        raise ValueError("no such shard")

    with pytest.raises(AssertionError, match="ValueError: no such shard"):
        killed_in(fail)


def test_each_state_of_a_folder_comes_once(tmp_path: Path) -> None:
    """Of 268 states of an evaluation, each of which was then erased from, most were the same."""
    folder = tmp_path / "folder"

    def work() -> None:
        folder.mkdir()
        (folder / "file").write_text("begun")
        (tmp_path / "elsewhere").write_text("")
        (folder / "file").write_text("ended")
        (folder / "last").write_text("")

    states = states_of(work, folder, tmp_path / "states")
    assert (folder / "last").exists()
    assert list(states[0].iterdir()) == []
    assert [(state / "file").read_text() for state in states[1:]] == ["begun", "ended"]
