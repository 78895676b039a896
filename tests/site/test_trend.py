"""A figure over the runs of a folder: what earlier runs let expect, breaks of protocol, and what does not count."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.cli import app
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from h2htalk.site.trend import describe, expect, trend, trend_table
from support.judges import HARM, blind, serving
from support.runs import baseline_run
from support.studies import run_study, spec

REFERENCES = [item.reference for item in load_split("mini").select("en").scenarios]


def companion(night: int, share: float) -> Callable[[object], str]:
    """A model that gives some reference of the split in a share of its replies, drawn anew each night."""
    draws = random.Random(night)

    def reply(messages: object) -> str:
        return draws.choice(REFERENCES) if draws.random() < share else "I am here."

    return reply


def nightly(folder: Path, night: int, share: float, **settings: object) -> None:
    """An evaluation of a night, below a folder."""
    specification = EvaluateSpec(
        model=companion(night, share),
        name="companion",
        split="mini",
        language="en",
        limit=66,
        concurrency=1,
        out=str(folder / f"night-{night}"),
        **{"embedder": "none", **settings},  # type: ignore[arg-type]
    )
    evaluate(specification)


def observations(
    draws: np.random.Generator, probabilities: np.ndarray, figure: str = "violation"
) -> list[Observation]:
    """A night's violations: a row a turn of a case, each by its own probability."""
    rows = []
    for (case, turn), probability in np.ndenumerate(probabilities):
        value = float(draws.random() < probability)
        rows.append(
            Observation("sap", figure, f"c{case}", f"c{case}", value, str(turn), by="judge")
        )
    return rows


def test_a_night_that_is_worse_is_named_and_ordinary_ones_are_not(tmp_path: Path) -> None:
    for night in range(5):
        nightly(tmp_path, night, 0.5)
    nightly(tmp_path, 5, 0.0)
    line = trend(tmp_path, "lexical")
    words = [describe(point, lower_is_better=False) for point in line.points]
    assert words[0] == "first of its protocol"
    assert words[1:5] == ["as 1 run before", *(f"as {number} runs before" for number in (2, 3, 4))]
    assert words[5] == "WORSE than before"
    assert [point.name for point in line.points] == [f"night-{night}" for night in range(6)]


def test_the_line_breaks_where_the_protocol_changes(tmp_path: Path) -> None:
    nightly(tmp_path, 0, 0.5)
    nightly(tmp_path, 1, 0.0, embedder="minilm")
    first, second = trend(tmp_path, "lexical").points
    assert not first.breaks
    assert second.breaks
    assert second.expectation is None
    assert describe(second, lower_is_better=False) == "first of its protocol"


def test_what_else_changed_is_named_and_is_no_break(tmp_path: Path) -> None:
    nightly(tmp_path, 0, 0.5)
    nightly(tmp_path, 1, 0.5, sap="none")
    line = trend(tmp_path, "lexical")
    assert [point.changes for point in line.points] == [(), ("sap (full, none)",)]
    assert not line.points[1].breaks
    assert "night-1: since the run before: sap (full, none)" in trend_table(line).notes


def test_false_alarms_are_as_rare_as_it_says_and_a_real_change_is_seen() -> None:
    """One night in 370 by chance; cases that differ from each other are no noise between nights."""
    draws = np.random.default_rng(4)
    alarms = []
    seen = []
    for _ in range(60):
        probabilities = draws.beta(0.15, 2.85, (30, 6))
        nights = [observations(draws, probabilities)]
        for _ in range(6):
            rows = observations(draws, probabilities)
            expectation = expect(nights, rows)
            assert expectation is not None
            alarms.append(expectation.is_missed)
            nights.append(rows)
        worse = expect(nights, observations(draws, np.minimum(probabilities + 0.15, 1)))
        assert worse is not None
        seen.append(worse.is_missed)
    assert np.mean(alarms) <= 0.012
    assert np.mean(seen) >= 0.9


def test_equal_runs_are_as_before_and_a_few_cases_say_nothing() -> None:
    draws = np.random.default_rng(1)
    rows = observations(draws, np.full((20, 2), 0.5))
    equal = expect([rows, rows], rows)
    assert equal is not None
    assert (equal.shift, equal.is_missed) == (0.0, False)
    few = expect(
        [observations(draws, np.zeros((3, 2)))], observations(draws, np.array([[1, 0]] * 3))
    )
    assert few is not None
    assert few.reach is None
    assert not few.is_missed
    assert expect([], rows) is None


def test_cases_that_all_moved_alike_are_seen() -> None:
    """There is no spread then, of which an error could be made."""
    draws = np.random.default_rng(1)
    nights = [observations(draws, np.zeros((20, 2)))]
    moved = expect(nights, observations(draws, np.ones((20, 2))))
    assert moved is not None
    assert (moved.shift, moved.reach, moved.is_missed) == (1.0, 0.0, True)


def test_answers_of_a_judge_that_was_not_checked_do_not_count(tmp_path: Path) -> None:
    """A judge that sees nothing would call any night as good as the one before."""
    with serving(blind, lambda _: HARM) as server:
        run_study(
            spec("sap", server.spec, tmp_path / "study", arms=("sap",), judge=server.spec, limit=8)
        )
    (point,) = trend(tmp_path).points
    assert point.doubts
    assert describe(point, lower_is_better=True) == "does not count"


def test_the_command_prints_it_and_names_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(tmp_path, 0, 0.5)
    nightly(tmp_path, 1, 0.5)
    nightly(tmp_path, 2, 0.5)
    (tmp_path / "night-1" / "summary.json").unlink()
    (tmp_path / "night-2" / "run.json").write_text("{")
    app(["trend", str(tmp_path), "--figure", "lexical", "--format", "json"], standalone_mode=False)
    printed = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in printed["rows"]] == ["night-0"]
    for name in ("night-1", "night-2"):
        assert any(note.startswith(f"left out: {name}: ") for note in printed["notes"])


def test_what_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        trend(tmp_path / "none")
    with pytest.raises(ConfigError, match="no scored run in it"):
        trend(tmp_path)
    baseline_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="no run has 'violation'; the newest has compliance"):
        trend(tmp_path, "violation")
    with pytest.raises(ConfigError, match="no scored run of 'other' in it"):
        trend(tmp_path, model="other")
