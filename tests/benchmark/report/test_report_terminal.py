"""The table on the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console
from summaries_made import FirstLetters, made_summary, same_values, summary_of

from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import BASELINES, RunCounts, ScoreRows, Summary
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS

SAME_VALUES = {name: same_values(0.1) for name in BASELINES}


def printed(summary: Summary, width: int = 80, encoding: str = "utf-8", verbose: bool = True, **paths: Path) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n", write_through=True)
    print_summary(summary, Console(file=stream, width=width, legacy_windows=False), paths, verbose)
    return raw.getvalue().decode(encoding)


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


# --- Room -------------------------------------------------------------------------------------------------------


@cache
def mini_with_english_s() -> Summary:
    """The whole of mini with an embedder for its English half."""
    mini = load_split("mini@1")
    answers = BASELINES["random-reference"](mini.scenarios, mini.scenarios)
    return summary_of(mini, {(a.id, 0): a for a in answers}, Metrics(FirstLetters()))


def widest_summary() -> Summary:
    """The paper's counts, and figures as long as they can be: 100.00 with a half interval of almost ten."""

    def cell(count: int) -> Cell:
        return Cell(100.0, 80.2, 100.0, count, count)

    counts = {name: one.count for name, one in SUBTASKS.items()}
    sums = {f"{d}_avg": sum(s.count for s in SUBTASKS.values() if s.dimension == d) for d in DIMENSIONS}
    means = dict.fromkeys(("overall", "items_mean", "plain_mean"), 4650)
    row = {name: cell(count) for name, count in (counts | sums | means).items()}
    rows = ScoreRows(row, row, row, None)
    reached = dict.fromkeys(SAME_VALUES, tuple(row))
    return replace(made_summary(), rows=rows, baselines=dict.fromkeys(SAME_VALUES, rows), reached=reached)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [80, 117, 118, 120])
def test_the_longest_figures_of_the_papers_size_are_whole(width: int, encoding: str) -> None:
    """`77/…` and `Ite…` once stood at 80 columns."""
    lines = printed(widest_summary(), width, encoding).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line or "\\u2026" in line for line in lines)
    rows = [line for line in lines if line.startswith((" Standard", " Overall"))]
    assert len(rows) == 2
    for line in rows:
        assert "1,882/1,882" in line or "4,650/4,650" in line
        assert line.count("100.00!") == 3
        assert "100 %" in line
        interval = "[80.20, 100.00]" if width >= 118 else "9.9"
        assert interval in line


@pytest.mark.parametrize("width", [80, 120])
def test_one_table_has_s_where_the_embedder_has_the_language_and_the_lexical_mean_of_all(width: int) -> None:
    text = printed(mini_with_english_s(), width, verbose=False)
    assert max(map(len, text.splitlines())) <= width
    assert line_with(text, "Overall").split()[1] == "77/77"
    summary = mini_with_english_s()
    assert f"{summary.rows.lexical['overall'].value:.2f}" in line_with(text, "Overall")


# --- Figures ----------------------------------------------------------------------------------------------------


def test_names_are_shown_and_never_obeyed() -> None:
    summary = made_summary(model="\x1b[31m[bold red]m[/]\u202e\n", warnings=("[link=x]\x07w",))
    text = printed(summary, 160)
    assert "\\x1b[31m[bold red]m[/]\\u202e\\n on mini 1" in text
    assert "warning: [link=x]\\x07w" in text
    assert "\x1b" not in text.replace("\x1b[0m", "")


def test_without_verbose_only_the_table_failures_warnings_and_costs_are_printed() -> None:
    counts = RunCounts(3, 2, 2, truncated=2, failures={"timeout": 1}, failure_messages={"timeout": "no answer in 5 s"})
    summary = made_summary(counts=counts, warnings=("take care",))
    short, full = (printed(summary, 200, verbose=verbose) for verbose in (False, True))
    for line in ("1 sample unscored (timeout): no answer in 5 s", "warning: take care", "INCOMPLETE"):
        assert line in short
        assert line in full
    for line in ("protocol: ", "Unjudged", "of 2 replies", "Intervals and n"):
        assert line not in short
        assert line in full
