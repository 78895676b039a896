"""Made splits: valid scenarios, Table 1's shape, the promised lengths, the same bytes each time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from h2htalk.analysis.measures.lengths import measure_lengths
from h2htalk.analysis.measures.scenario_texts import side_texts
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import make_recombined_split
import make_synthetic_split


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_scenario_has_80_words_on_average_inputs_and_reference_together(tmp_path: Path, language: str) -> None:
    made = make_recombined_split.write_split(tmp_path, language, 300)
    scenarios = load_split(str(tmp_path)).scenarios
    assert len(scenarios) == made.count == 300
    assert {s.language for s in scenarios} == {language}
    assert {s.subtask for s in scenarios} == set(SUBTASKS)
    words = {
        s.side: s.mean
        for s in measure_lengths(side_texts(scenarios)).summaries
        if (s.group, s.measure) == ("all", "words")
    }
    assert sum(words.values()) == pytest.approx(80, abs=2)
    assert sum(words.values()) == pytest.approx(made.words, abs=0.01)
    assert words["instruction"] > words["response"] > 20


@pytest.mark.parametrize("count", [1, 7, 100, 4650, 4651])
def test_the_synthetic_split_has_any_count_and_table_1s_by_default(count: int) -> None:
    counts = make_synthetic_split.scenario_counts(count)
    assert sum(counts.values()) == count
    assert count != 4650 or counts == {name: subtask.count for name, subtask in SUBTASKS.items()}


@pytest.mark.parametrize("kind", [("zh", 40), (60,)], ids=["recombined", "synthetic"])
def test_two_calls_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path, kind: Any) -> None:
    write: Any = (make_recombined_split if len(kind) == 2 else make_synthetic_split).write_split
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write(tmp_path / name, *kind, seed=seed)
    a, b, c = ((tmp_path / name / "scenarios.jsonl").read_bytes() for name in "abc")
    assert a == b != c
