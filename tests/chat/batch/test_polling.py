"""The line that waits for batch jobs: one row of a terminal, harmless whatever a provider says."""

from __future__ import annotations

import io

import pytest

from h2htalk.chat.batch.polling import WaitLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_a_provider_says_cannot_act_on_the_terminal(stream: io.StringIO) -> None:
    line = WaitLine(stream)
    line.show("batch job b1: \x1b[2Jgone\nerror: made up; asking again", "new")
    line.say("ended \x1b]0;title")
    said = stream.getvalue().replace("\r\x1b[K", "")
    assert "\x1b" not in said
    assert said.count("\n") <= 2
