"""The line that waits for batch jobs: one row of a terminal, harmless whatever a provider says."""

from __future__ import annotations

import io
import os

import pytest

from h2htalk.chat.batch_patience import WaitLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.mark.parametrize("columns", [20, 80])
def test_a_long_line_is_cut_to_one_row_so_that_drawing_it_anew_leaves_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    stream = Terminal()
    WaitLine(stream).show("batch  0/4,650  " + "x" * 200)
    assert len(stream.getvalue().removeprefix("\r\x1b[K")) == columns - 1


def test_a_log_gets_the_whole_line() -> None:
    stream = io.StringIO()
    WaitLine(stream).show("x" * 200)
    assert stream.getvalue() == "x" * 200 + "\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_a_provider_says_cannot_act_on_the_terminal(stream: io.StringIO) -> None:
    line = WaitLine(stream)
    line.show("batch job b1: \x1b[2Jgone\nerror: made up; asking again", "new")
    line.say("ended \x1b]0;title")
    said = stream.getvalue().replace("\r\x1b[K", "")
    assert "\x1b" not in said
    assert said.count("\n") <= 2
