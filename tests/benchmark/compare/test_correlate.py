"""`correlate`: which columns meet over which units, what a user's tables may hold, and what is shown."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judged_made import command
from scipy import stats

import h2htalk
from h2htalk.benchmark.compare.correlation import HUMAN, Correlations, Pair, correlate
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses
from h2htalk.data.files import write_jsonl
from h2htalk.data.split_output import export_split
from h2htalk.errors import ConfigError, DataError

SCORES = "model;GSM8K;中文\nmodel-0;10;3\nm1;20;\nimported:model-2;15;9\nmodel-3;40;4\nmodel-4;30;5\nGPT-9;99;9\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs m0 to m4, each with more of the references than the one before, and m5 of people; two answers an item."""
    folder, chance = tmp_path_factory.mktemp("runs"), random.Random(1)
    split, seen = h2htalk.load_split("mini@1").select(limit=66), Counter[str]()
    scenarios = []
    for s in split.scenarios:  # the first item of each subtask is of dialogue d0, the second of d1, ...
        scenarios.append(replace(s, provenance={"dialogue": f"d{seen[s.subtask]}"}))
        seen[s.subtask] += 1
    export_split(replace(split, scenarios=tuple(scenarios)), folder / "split")
    for k in range(6):
        answers = [
            {"id": s.id, "sample": n, "response": "".join(c for c in s.reference if chance.random() < 0.2 + 0.1 * k)}
            for s in scenarios
            for n in range(2)
        ]
        write_jsonl(folder / f"{k}.jsonl", answers)
        import_responses(folder / f"{k}.jsonl", f"model-{k}", str(folder / "split"), folder / f"m{k}", "none", k == 5)
    (folder / "scores.csv").write_text(SCORES, encoding="utf-8")
    return folder


def runs_of(folder: Path, count: int) -> list[Path]:
    return [folder / f"m{k}" for k in range(count)]


def found_pair(found: Correlations, level: str, a: str, b: str) -> Pair:
    (pair,) = (pair for pair in found.pairs if pair[:3] == (level, a, b))
    return pair


def test_metrics_with_peoples_ratings_over_the_rated_samples(folder: Path, tmp_path: Path) -> None:
    scores = load_run(folder / "m1").scores().to_pylist()
    rated = [(row, [1 + n % 5, 1 + n % 3]) for n, row in enumerate(scores) if n % 3]
    lines = [f"{row['id']},{row['sample']},{one}" for row, ratings in rated for one in ratings]
    (tmp_path / "ratings.csv").write_text("\n".join(["id,sample,rating", *lines]))
    pair = found_pair(correlate([folder / "m1"], ratings=tmp_path / "ratings.csv"), "item", "rouge_l", HUMAN)
    expected = stats.spearmanr([row["rouge_l"] for row, _ in rated], [np.mean(ratings) for _, ratings in rated])
    assert pair.value == pytest.approx(expected.statistic, abs=1e-12)
    assert (pair.n, pair.clusters, pair.low < pair.value < pair.high) == (len(rated), 6, True)  # type: ignore[operator]


def test_a_rating_without_a_sample_is_of_the_items_mean_and_runs_are_averaged(folder: Path, tmp_path: Path) -> None:
    lines, expected = ["run,id,rating"], []
    for name in ("m0", "m2"):
        items = load_run(folder / name).items().to_pylist()
        ratings = [(n * 7) % 5 for n in range(len(items))]
        lines += [f"{name},{item['id']},{rating}" for item, rating in zip(items, ratings, strict=True)]
        expected.append(stats.spearmanr([item["lexical"] for item in items], ratings).statistic)
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    found = correlate([folder / "m0", folder / "m2"], ratings=tmp_path / "ratings.csv")
    assert found_pair(found, "item", "lexical", HUMAN).value == pytest.approx(np.mean(expected), abs=1e-12)


def test_figures_with_each_other_and_with_other_benchmarks_over_models(folder: Path) -> None:
    found = correlate(runs_of(folder, 6), scores=folder / "scores.csv")
    rows = [load_run(path).summary.rows.lexical for path in runs_of(folder, 5)]
    gsm8k = found_pair(found, "model", "itinerary_basic", "GSM8K")
    values = [row["itinerary_basic"].value for row in rows]
    assert gsm8k.value == pytest.approx(stats.spearmanr(values, [10, 20, 15, 40, 30]).statistic)
    assert (gsm8k.n, found_pair(found, "model", "overall", "中文").n) == (5, 4)
    dimensions = [[row[f"{name}_avg"].value for row in rows] for name in ("dialogue", "itinerary")]
    pair = found_pair(found, "model", "dialogue_avg", "itinerary_avg")
    assert pair.value == pytest.approx(stats.spearmanr(*dimensions).statistic)
    assert "written by people, not among the models: Human replies (model-5)" in found.notes
    assert "rows that name no run: GPT-9" in found.notes
    assert "5 models are few: the intervals over models are wide" in found.notes


def test_subtasks_with_each_other_over_dialogues(folder: Path) -> None:
    found = correlate([folder / "m4"])
    data, scores = load_run(folder / "m4").data, load_run(folder / "m4").item_scores
    by_dialogue: dict[object, dict[str, float]] = {}
    for s in data.split.scenarios:
        by_dialogue.setdefault(s.provenance["dialogue"], {})[s.subtask] = scores[s.id].lexical or 0.0
    pairs = [pair for pair in found.pairs if pair.level == "dialogue"]
    assert len(pairs) == 3 + 55
    for pair in pairs[3:]:
        both = np.array([(v[pair.a], v[pair.b]) for v in by_dialogue.values()])
        assert pair.value == pytest.approx(stats.spearmanr(both).statistic)
        assert (pair.n, pair.clusters) == (6, 6)


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("scores", "model,A\nmodel-9,1\n", "has no row named like one of imported:model-0"),
        ("scores", "model,A\nmodel-0,1\nm0,2\n", ":3: a second row of 'm0'"),
        ("scores", "model,A\nmodel-0,67%\n", ":2: A is '67%'; write a number"),
        ("scores", "model,A\nmodel-0\n", ":2: 1 cells, but 2 different headings"),
        ("scores", "model,overall\nmodel-0,1\n", "a column is named overall as a figure here is; rename it"),
        ("ratings", "id,score\nx,1\n", "lacks the column rating; it has id, score"),
        ("ratings", "id,rating\nx,1\n", ":2: no run that is named here has such an item or sample"),
        ("ratings", "id,sample,rating\nID,2,1\n", ":2: no run that is named here has such an item or sample"),
    ],
)
def test_a_wrong_table_is_named(option: str, text: str, message: str, folder: Path, tmp_path: Path) -> None:
    item = next(iter(load_run(folder / "m0").item_scores))
    (tmp_path / "table.csv").write_text(text.replace("ID", item), encoding="utf-8")
    with pytest.raises((ConfigError, DataError)) as raised:
        correlate([folder / "m0"], **{option: tmp_path / "table.csv"})
    assert message in str(raised.value)


def test_runs_that_a_table_cannot_name_or_of_other_protocols_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id,rating\nx,1\n")
    with pytest.raises(ConfigError, match="lacks the column run"):
        correlate(runs_of(folder, 2), ratings=tmp_path / "table.csv")
    (tmp_path / "table.csv").write_text("model,A\nmodel-0,1\n")
    copy = shutil.copytree(folder / "m0", tmp_path / "copy")
    with pytest.raises(DataError, match="'model-0' names 2 runs; write the name of a run's folder"):
        correlate([folder / "m0", copy], scores=tmp_path / "table.csv")
    spec = {"split": "mini@1", "out": tmp_path / "run", "embedder": "none", "limit": 11}
    h2htalk.evaluate(h2htalk.EvaluateSpec(model="baseline:constant", **spec))
    with pytest.raises(ConfigError, match=r"another protocol than the first run's: items \("):
        correlate([folder / "m0", tmp_path / "run"])


def test_the_tables_hold_every_pair_and_the_terminal_those_that_matter(folder: Path, tmp_path: Path) -> None:
    words = ("correlate", *runs_of(folder, 5), "--with", folder / "scores.csv", "--out", tmp_path)
    lines = command(*words).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("ItineraryBasic" in line and "GSM8K" in line for line in lines)
    assert not any("ItineraryBasic" in line and "ItineraryMiddle" in line for line in lines)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "correlate.csv").read_text(encoding="utf-8"))))
    content = json.loads((tmp_path / "correlate.json").read_text(encoding="utf-8"))
    assert [row["b"] for row in rows] == [pair["b"] for pair in content["rows"]]
    assert len(rows) > 55
    figures = {f"correlate-{level}.{kind}" for level in ("dialogues", "models") for kind in ("svg", "pdf", "png")}
    assert {path.name for path in tmp_path.iterdir()} == {"correlate.csv", "correlate.json", *figures}


def test_a_figure_marks_intervals_without_zero_and_hatches_what_is_not_computable() -> None:
    from h2htalk.analysis.figures.heat_maps import draw_correlations

    cells = {("S", "人类"): (0.5, 0.1, 0.8), ("S", "b"): (-0.91, -1.0, 0.2), ("c", "b"): (None, None, None)}
    (axes,) = draw_correlations(cells, "over 9 models").axes
    assert {text.get_text() for text in axes.texts} == {"0.50*", "-0.91"}
    assert [patch.get_hatch() for patch in axes.patches] == [None, None, "////"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["人类", "b"]
