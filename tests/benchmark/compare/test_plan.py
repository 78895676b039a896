"""`plan`: items and samples for a difference, beside what a comparison of so many items says itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import scripted

import h2htalk
from h2htalk.benchmark.compare.comparison import compare, plan, plan_tables
from h2htalk.errors import ConfigError

MINI = h2htalk.load_split("mini@1").scenarios


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs with three answers an item, of which the second differs in one of three."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / "a", folder / "b"]
    how = {"split": "mini@1", "language": "en", "embedder": "none", "samples": 3, "temperature": 1.0}
    for number, path in enumerate(paths):
        texts = ["I see. What else?" if number else "Good night", "Good night, well", "Good night, well, well"]
        model = scripted(folder, *({"id": s.id, "sample": k, "text": texts[k]} for s in MINI for k in range(3)))
        h2htalk.evaluate(h2htalk.EvaluateSpec(model=model, out=str(path), baselines=False, **how))
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
    # Nothing said that the answers to an item had been averaged.
    assert "The answers to an item were averaged before" in plan_tables(made)[0].notes[0]


def test_what_so_many_items_find_needs_so_many_items(tmp_path: Path) -> None:
    """Answers that vary more than their means gave the plan a larger standard deviation than the runs': 167 items for
    3 points, and yet 154 items found 2.53."""
    logs, answers = [tmp_path / "a.csv", tmp_path / "b.csv"], [(n, k) for n in range(40) for k in (0, 1)]
    for number, path in enumerate(logs):
        rows = (f"item-{n},{k},{0.1 + 0.8 * ((n + k) % 2) + 0.01 * number * (n % 5)}\n" for n, k in answers)
        path.write_text("id,sample,score\n" + "".join(rows))
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
