"""One line of progress: redrawn on a terminal, a line now and then in a log."""

from __future__ import annotations

import io

import pytest

from h2htalk import progress
from h2htalk.progress import Progress, counted_items


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_done_share_rate_time_left_and_failures_are_shown(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("generate", 4650, stream) as line:
        for item in range(1400):
            clock.now += 0.01
            line.advance(failed=item % 700 == 0)
        assert stream.getvalue() == ""  # a log gets a line each 15 s
        clock.now += 15
        line.advance()
    drawn, last = stream.getvalue().splitlines()
    assert drawn == "generate  1,401/4,650   30%  48.3/s  1:07 left  2 failed"
    assert last == "generate  1,401/4,650   30%  48.3/s  2 failed"


def test_a_terminal_line_is_drawn_over_itself_five_times_a_second_at_most(clock: Clock) -> None:
    stream = Terminal()
    with Progress("score", 1000, stream) as line:
        for _ in range(1000):
            clock.now += 0.001
            line.advance()
    drawings = stream.getvalue().split("\r\x1b[K")[1:]
    assert 5 <= len(drawings) <= 6
    assert drawings[-1] == "score  1,000/1,000  100%  1,000.0/s\n"
    assert all("\n" not in drawing for drawing in drawings[:-1])


def test_money_is_asked_for_at_each_drawing_and_shown_where_there_is_any(clock: Clock) -> None:
    spent = iter(["", "0.0123 US dollars"])
    stream = io.StringIO()
    with Progress("generate", 4, stream, lambda: next(spent)) as line:
        clock.now += 16
        line.advance()
    drawn = [
        "generate  1/4   25%  3.8/min  0:48 left",
        "generate  1/4   25%  3.8/min  0.0123 US dollars",
    ]
    assert stream.getvalue().splitlines() == drawn


def test_silent_work_gets_its_first_line_as_soon_as_the_silence_is_over(clock: Clock) -> None:
    """A log had the first line of a command of half a minute after 15 s, so that `site` seemed to hang."""
    stream = io.StringIO()
    with Progress("reading runs", 10, stream, silent=2.0) as line:
        for _ in range(10):
            clock.now += 0.75
            line.advance()
    first, last = stream.getvalue().splitlines()
    assert first.startswith("reading runs  3/10")
    assert last.startswith("reading runs  10/10")


def test_quick_work_gets_no_line(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in counted_items("reading runs", range(4)):
        clock.now += 0.4
    assert capsys.readouterr().err == ""
    for _ in counted_items("reading runs", range(4)):
        clock.now += 1.4
    assert capsys.readouterr().err.splitlines()[-1].startswith("reading runs  4/4")
