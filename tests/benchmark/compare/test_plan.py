"""`plan`: items and samples for a difference, beside what a comparison of so many items says itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import h2htalk
from h2htalk.benchmark.compare.comparison import compare, plan, plan_tables
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs with three answers an item, of which the second differs in one of three."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / "a", folder / "b"]
    for number, path in enumerate(paths):
        replies = [
            {"id": s.id, "sample": k, "text": "I see. What else?" if number and not k else f"Good night{', well' * k}"}
            for s in load_split("mini@1").scenarios
            for k in range(3)
        ]
        script = folder / f"{path.name}.jsonl"
        script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        h2htalk.evaluate(
            h2htalk.EvaluateSpec(
                model=f"scripted:{script}",
                split="mini@1",
                language="en",
                out=str(path),
                embedder="none",
                samples=3,
                temperature=1.0,
                baselines=False,
            )
        )
    return paths


def test_without_runs_a_range_of_variances_is_shown() -> None:
    made = plan(3, limits=(154,))
    assert made.needed[20.0, 1] == 351
    assert made.detectable[20.0, 154] == pytest.approx(2.8 * 20 / 154**0.5, rel=0.01)
    assert (351, 1, 20.0) in plan_tables(made)[0].rows


def test_the_variance_of_two_runs_gives_the_items(runs: list[Path]) -> None:
    headline = compare(*runs).pairs[0].headline.result
    made = plan(1, runs, limits=(headline.items,))
    (detectable,) = made.detectable.values()
    assert detectable == pytest.approx(headline.detectable, rel=1e-9)
    by_samples = {samples: items for (_, samples), items in made.needed.items()}
    assert list(by_samples) == [1, 2, 3, 5, 10]
    assert sorted(by_samples.values(), reverse=True) == list(by_samples.values())
    assert by_samples[1] > by_samples[10]


def test_what_so_many_items_find_needs_so_many_items(tmp_path: Path) -> None:
    """Answers that vary more than their means gave the plan a larger standard deviation than the runs': 167 items for
    3 points, and yet 154 items found 2.53."""
    paths = [tmp_path / name for name in "ab"]
    for number, path in enumerate(paths):
        rows = [
            f"item-{n},{k},{0.5 + (0.4 if (n + k) % 2 else -0.4) + 0.01 * number * (n % 5)}"
            for n in range(40)
            for k in (0, 1)
        ]
        path.with_suffix(".csv").write_text("id,sample,score\n" + "\n".join(rows) + "\n")
    logs = [path.with_suffix(".csv") for path in paths]
    (found,) = plan(3, logs, limits=(40,)).detectable.values()
    by_samples = {samples: items for (_, samples), items in plan(found, logs).needed.items()}
    assert by_samples[2] == 40


def test_what_cannot_be_planned_is_an_error(runs: list[Path]) -> None:
    with pytest.raises(ConfigError, match=r"0\.01 to 100"):
        plan(0)
    with pytest.raises(ConfigError, match="takes two runs"):
        plan(3, runs[:1])
    with pytest.raises(ConfigError, match="do not say how much"):
        plan(3, [runs[0], runs[0]])
