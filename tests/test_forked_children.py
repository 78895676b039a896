"""Children that tests fork and kill: they free nothing of the parent's, and one that hangs is ended and said."""

from __future__ import annotations

import gc
import os
import time

import pytest

from support.kills import KILLED, killed_in


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
