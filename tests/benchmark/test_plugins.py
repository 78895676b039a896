"""Metrics of other distributions: entry points `h2htalk.metrics`."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, read_scores
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import report, score
from h2htalk.errors import ConfigError
from h2htalk.integrations.harness_split import HarnessSplit
from support.command_line import scripted
from support.tables import table

Install = Callable[..., None]
METRICS = {
    "warmth": '[None if pair.language == "zh" else min(1, len(pair.response) / 100) for pair in pairs]',
    "as_tuples": "[(0.5,) for pair in pairs]",
    "broken": "[1 / 0 for pair in pairs]",
    "too_few": "[0.5]",
    "too_large": "[1.5 for pair in pairs]",
    "not_numbers": "[float('nan') for pair in pairs]",
    "texts": "['good' for pair in pairs]",
    "clearing": "pairs.clear() or []",
    "shortening": "[0.5] * len(pairs) if pairs.pop() else []",
    "leaving": "sys.exit('\\x1b[31mgone')",
    "telling": "[float(pairs[0].response * 9)]",
}
FUNCTIONS = (
    f"def {name}(pairs, metrics):\n    return {result}\n" for name, result in METRICS.items()
)
MODULE = "\n".join(["import sys", *FUNCTIONS])


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution as pip does, in a folder of its own on the path; with no points, remove it."""
    site = tmp_path / "site"

    def installed(version: str = "0.3.1", name: str = "warm-words", **points: str) -> None:
        info = site / f"{name.replace('-', '_')}-0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / "warm_words.py").write_text(MODULE)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[h2htalk.metrics]", *lines, ""]))
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(str(site))
    yield installed
    sys.modules.pop("warm_words", None)


def evaluate(out: Path, **change: Any) -> Any:
    spec = {
        "model": "baseline:constant",
        "split": "mini",
        "out": out,
        "limit": 22,
        "embedder": "none",
    }
    return h2htalk.evaluate(h2htalk.EvaluateSpec(**{**spec, **change}))


def files_of(folder: Path) -> dict[str, str]:
    """The hash of every file of scores, tables and page, which have no times in them."""
    paths = [*folder.glob("scores/*"), *folder.glob("tables/*.*"), folder / "summary.json"]
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name != "run.csv"
    }


def test_its_columns_stand_apart_from_s_and_its_version_is_in_the_signature(
    tmp_path: Path, install: Install
) -> None:
    plain = evaluate(tmp_path / "plain")
    install(warmth="warm_words:warmth", half="warm_words:as_tuples")
    summary = evaluate(tmp_path / "own")
    assert plain.signature.protocol["metrics"] == "lexical-2,semantic-1"
    assert summary.signature.protocol["metrics"] == "lexical-2,semantic-1,half-0.3.1,warmth-0.3.1"
    assert (summary.rows, summary.slices) == (plain.rows, plain.slices)
    table = load_run(tmp_path / "own").scores()
    assert table.column_names[2:13] == [
        *METRIC_COLUMNS,
        "half",
        "lexical_folded",
        "warmth",
        "lexical",
    ]
    assert set(table.column("half").to_pylist()) == {0.5}
    rows = table.to_pylist()
    assert all((row["warmth"] is None) == ("-zh-" in row["id"]) for row in rows)
    assert all(0 < row["warmth"] < 1 for row in rows if row["warmth"] is not None)
    bare = {row["id"]: row for row in load_run(tmp_path / "plain").scores().to_pylist()}
    assert all({key: row[key] for key in bare[row["id"]]} == bare[row["id"]] for row in rows)
    assert summary.metrics["dialogue_base"]["half"].value == 50.0
    assert summary.metrics["dialogue_base"]["warmth"].n == 1  # of the two items, the English one
    tables = tmp_path / "own" / "tables"
    own = [
        row for row in csv.DictReader((tables / "metrics.csv").open()) if row["metric"] == "half"
    ]
    assert {(row["value"], row["n"]) for row in own} == {("50.0", "2")}
    assert "warmth" in (tables / "items.csv").read_text().splitlines()[0]
    assert "WARMTH" in (tmp_path / "own" / "report.html").read_text()


def test_compare_and_other_harnesses_have_its_column(tmp_path: Path, install: Install) -> None:
    install(warmth="warm_words:warmth")
    for name, model in (("a", "baseline:constant"), ("b", "baseline:copy-last-turn")):
        evaluate(tmp_path / name, model=model)
    figures = h2htalk.compare(tmp_path / "a", tmp_path / "b", metric="warmth")
    assert figures.metric == "warmth"
    assert figures.pairs[0].rows[-1].result.items == 11  # it is for English
    assert figures.pairs[0].counts[0]["unscored"] == 0
    with pytest.raises(
        ConfigError, match=r"did you mean 'warmth'\? choose from .*compliance, warmth"
    ):
        h2htalk.compare(tmp_path / "a", tmp_path / "b", metric="warmt")
    items = load_run(tmp_path / "a").items()
    assert items.column_names[-2:] == ["warmth", "unscored"]
    assert {row["warmth"] is None for row in items.to_pylist() if row["language"] == "en"} == {
        False
    }
    harness_split = HarnessSplit("mini", limit=22)
    assert harness_split.columns[-1] == "warmth"
    found = {
        (item.language, "warmth" in harness_split.score(item.id, "I hear you."))
        for item in harness_split.items
    }
    assert found == {("en", True), ("zh", False)}


def test_without_one_nothing_is_another_byte_than_before(tmp_path: Path, install: Install) -> None:
    evaluate(tmp_path / "before")
    install(warmth="warm_words:warmth")
    evaluate(tmp_path / "with")
    install()
    evaluate(tmp_path / "after")
    assert (
        files_of(tmp_path / "before") == files_of(tmp_path / "after") != files_of(tmp_path / "with")
    )


def test_it_is_added_by_score_and_a_run_that_has_it_is_read_without_it(
    tmp_path: Path, install: Install
) -> None:
    folder = tmp_path / "run"
    evaluate(folder)
    install(warmth="warm_words:warmth")
    assert load_run(folder).item_scores  # as it was scored
    with pytest.raises(ConfigError, match=r"differs in metrics .*score its answers anew"):
        evaluate(folder)
    assert score(folder).signature.protocol["metrics"].endswith(",warmth-0.3.1")
    install()
    kept = {
        name: text for name, text in files_of(folder).items() if name.endswith((".csv", ".parquet"))
    }
    report(folder)
    assert files_of(folder).items() >= kept.items()
    run = load_run(folder)
    scores = read_scores(run.data.folder.scores(run.summary.signature))
    assert any(item.metrics.get("warmth") for item in scores.values())


@pytest.mark.parametrize(("function", "message"), table("benchmark", "failing_metrics"))
def test_one_that_fails_is_named_and_answers_stay(
    tmp_path: Path, install: Any, function: str, message: str
) -> None:
    install(broken=f"warm_words:{function}")
    with pytest.raises(ConfigError) as raised:
        evaluate(tmp_path / "run")
    assert str(raised.value).startswith(f"metric 'broken' of warm-words 0.3.1 failed: {message}")
    assert str(raised.value).endswith(
        "mend it or uninstall its distribution, and start the same command again"
    )
    assert len(str(raised.value)) < 260  # a message may quote a reply
    assert len((tmp_path / "run" / "calls.jsonl").read_text().splitlines()) == 22
    install(broken="warm_words:warmth")
    assert evaluate(tmp_path / "run").counts.scored == 22


TAKEN = """s bleu_1 ss lexical semantic rating id compliance overall items_mean plain_mean subtask language r j contract
dialogue_avg recollection itinerary_basic unscored judged answers reference risk weighted_s overall_s"""


@pytest.mark.parametrize("name", [*TAKEN.split(), "Warmth", "two words"])
def test_a_name_that_is_taken_or_no_name_of_a_column_is_refused(
    tmp_path: Path, install: Install, name: str
) -> None:
    install(**{name: "warm_words:warmth"})
    with pytest.raises(
        ConfigError, match=r"of warm-words 0\.3\.1: a column must have a name of its own"
    ):
        evaluate(tmp_path / "run")


def test_a_name_twice_and_a_wrong_path_are_told_before_the_model_is_asked(
    tmp_path: Path, install: Install
) -> None:
    install(warmth="warm_words:warmth")
    install(name="other-words", warmth="warm_words:warmth")
    with pytest.raises(ConfigError, match="a column must have a name of its own"):
        evaluate(tmp_path / "run")
    install(name="other-words", colder="warm_words:nothing")
    with pytest.raises(
        ConfigError,
        match=r"metric 'colder' of other-words 0\.3\.1 cannot be loaded: AttributeError",
    ):
        evaluate(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_summary_is_a_table_in_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "<i>.jsonl").write_text(json.dumps({"id": "*", "text": "I am here."}) + "\n")
    shown = evaluate(tmp_path / "run", model=f"scripted:{tmp_path / '<i>.jsonl'}")._repr_html_()
    name, counts = (
        "scripted:&lt;i&gt;.jsonl [lexical mean, not S",
        "22 of 22 items of mini 4 scored",
    )
    assert all(text in shown for text in ("<table>", name, counts, "Unjudged: Itinerary Basic"))
    assert "<i>" not in shown


def test_answers_are_a_table_of_one_row_a_sample(tmp_path: Path) -> None:
    lost = {
        "id": "mini-en-dialogue-base-01",
        "failure": {"reason": "timeout", "message": "never answered"},
    }
    model = scripted(tmp_path, {"id": "*", "text": "<think>hm</think>Hello."}, lost)
    evaluate(tmp_path / "run", model=model, subtasks=["dialogue_base"], limit=None)
    run = load_run(tmp_path / "run")
    rows = {row["id"]: row for row in run.responses().to_pylist()}
    assert rows.keys() == {one.id for one in run.data.split.scenarios}
    failed = rows.pop("mini-en-dialogue-base-01")
    assert (failed["failure"], failed["message"], failed["text"]) == (
        "timeout",
        "never answered",
        None,
    )
    shown = {(row["answer"], row["text"], row["failure"]) for row in rows.values()}
    assert shown == {("Hello.", "<think>hm</think>Hello.", None)}


@pytest.mark.parametrize("split", ["mini", "arcs"])
def test_a_split_is_a_data_set(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = h2htalk.load_split(split)
    pytest.importorskip("datasets")
    found = whole.to_dataset()
    assert found["id"] == [one.id for one in whole.items]
    nested = {
        name: value for name, value in whole.items[0].to_dict().items() if isinstance(value, dict)
    }
    assert {name: json.loads(found[0][name]) for name in nested} == nested != {}
    if split == "mini":
        assert found["references"] == [list(one.references) for one in whole.scenarios]
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        h2htalk.errors.MissingExtraError, match=r"Split\.to_dataset needs .*h2htalk\[release\]"
    ):
        whole.to_dataset()
