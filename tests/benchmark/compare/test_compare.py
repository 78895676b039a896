"""`compare`: what is paired, what is refused, and what the tables say."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import h2htalk
from h2htalk.benchmark.compare.comparison import Comparison, compare, compare_items
from h2htalk.benchmark.compare.formats import FIELDS, to_text, write_comparison
from h2htalk.benchmark.compare.scored_items import ScoredItem, ScoredItems
from h2htalk.data.signature import Signature
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError

MINI = {s.id: s for s in load_split("mini@1").scenarios}
PROTOCOL = {"items": "1", "tokens": "t", "metrics": "m", "rouge": "f1", "embedder": "none", "judge": "none"}


def run_of(
    values: Mapping[str, Sequence[float]],
    label: str = "m",
    content: Mapping[str, str] | None = None,
    metric: str = "lexical",
    **protocol: str,
) -> ScoredItems:
    """A run whose items have those values, one a sample; an empty list is an unscored item."""
    items = {
        name: ScoredItem(
            id=name,
            subtask=MINI[name].subtask,
            cluster=name,
            content=(content or {}).get(name, "same"),
            values=tuple(found),
            unscored=None if found else "timeout",
            answers=tuple(f"answer {value}" for value in found) or ("",),
        )
        for name, found in values.items()
    }
    return ScoredItems(label, "mini 1", metric, Signature({**PROTOCOL, **protocol}, {}), items, {}.get)


def both(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> Comparison:
    return compare_items([run_of(a, "one"), run_of(b, "other")], by_metric=False)


ALL = {name: [float(30 + place % 7)] for place, name in enumerate(MINI)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two scored runs of trivial answers."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / name for name in ("copy-last-turn", "random-reference")]
    for path in paths:
        h2htalk.evaluate(
            h2htalk.EvaluateSpec(
                model=f"baseline:{path.name}", split="mini@1", language="en", out=str(path), embedder="none"
            )
        )
    return paths


def test_the_means_are_those_of_the_runs_tables(runs: list[Path]) -> None:
    pair = compare(*runs).pairs[0]
    rows = [h2htalk.load_run(path).summary.rows.lexical for path in runs]
    for row in pair.rows:
        if row.key in rows[0].cells:
            assert (row.a, row.b) == pytest.approx((rows[0].cells[row.key].value, rows[1].cells[row.key].value))
    assert (pair.headline.key, pair.headline.a) == ("overall", pytest.approx(rows[0].overall.value))
    assert pair.headline.result.mean == pytest.approx(pair.headline.b - pair.headline.a)
    assert (pair.only_a, pair.only_b, pair.changed) == ((), (), ())


def test_items_scored_in_one_run_only_are_named_and_not_compared() -> None:
    names = list(ALL)
    a, b = dict(ALL), {**ALL, names[0]: []}
    del a[names[1]]
    pair = both(a, b).pairs[0]
    assert (pair.only_a, pair.only_b) == ((names[0],), (names[1],))
    assert pair.headline.result.items == len(ALL) - 2
    # The unscored item of B has 30 in A: B - A is -30 with it at 0, and +70 with it at 100.
    assert pair.notes == (
        f"with the unscored at 0 or 100, the mean of 153 items is {-30 / 153:+.2f} to {70 / 153:+.2f}",
    )


def test_an_item_that_changed_between_the_runs_is_named_and_not_compared() -> None:
    name = next(iter(ALL))
    comparison = compare_items([run_of(ALL), run_of(ALL, content={name: "edited"}, items="2")], by_metric=True)
    assert comparison.pairs[0].changed == (name,)
    assert comparison.pairs[0].headline.result.items == len(ALL) - 1
    assert "items (1, 2)" in comparison.pairs[0].notes[0]


def test_protocols_that_differ_are_refused_with_their_keys() -> None:
    one, other = run_of(ALL), run_of(ALL, prompts="x", tokens="y")
    with pytest.raises(ConfigError, match=r"differ in tokens \(t, y\), prompts \(-, x\).*--metric"):
        compare_items([one, other], by_metric=False)
    # A metric compares what is common, unless its own meaning differs.
    assert compare_items([one, run_of(ALL, prompts="x")], by_metric=True).pairs[0].notes
    with pytest.raises(ConfigError, match=r"differ in tokens \(t, y\)$"):
        compare_items([one, other], by_metric=True)
    with pytest.raises(ConfigError, match="embedder"):
        compare_items([run_of(ALL, metric="ss"), run_of(ALL, metric="ss", embedder="other")], by_metric=True)
    compare_items([run_of(ALL), run_of(ALL, embedder="other")], by_metric=True)


def test_what_cannot_be_compared_is_an_error(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least two"):
        compare(runs[0])
    with pytest.raises(ConfigError, match="did you mean 'bleu_1'"):
        compare(*runs, metric="blue_1")
    with pytest.raises(ConfigError, match="no item has a value of ss"):
        compare(*runs, metric="ss")
    with pytest.raises(DataError, match="not a run folder"):
        compare(runs[0], tmp_path)
    names = list(ALL)
    with pytest.raises(ConfigError, match="no item in common"):
        both({names[0]: [1.0]}, {names[1]: [1.0]})


def test_p_is_adjusted_over_the_figures_of_a_block_and_all_runs() -> None:
    better = {name: [value[0] + 2 + place % 3] for place, (name, value) in enumerate(ALL.items())}
    alone = both(ALL, better).pairs[0]
    three = compare_items([run_of(ALL), run_of(better), run_of(ALL), run_of(better)], by_metric=False)
    assert alone.headline.p_holm == alone.headline.p
    assert three.pairs[0].headline.p_holm == pytest.approx(3 * alone.headline.p)
    assert alone.rows[0].p_holm == pytest.approx(11 * min(row.p for row in alone.rows[:11]))


def test_the_spread_between_samples() -> None:
    a = {name: [10.0, 20.0, 30.0] for name in MINI}
    comparison = both(a, ALL)
    assert comparison.spreads == {"one": pytest.approx((10, 20, 30))}
    assert "one: 10.00, 20.00, 30.00 by sample of its answers, standard deviation 10.00" in to_text(
        comparison, "terminal"
    )
    assert comparison.pairs[0].headline.a == pytest.approx(20)


# --- Tables -----------------------------------------------------------------------------------------------------


def test_csv_and_json_hold_every_figure(runs: list[Path]) -> None:
    comparison = compare(*runs)
    assert to_text(comparison, "latex").count(r" \\") == 16
    rows = list(csv.DictReader(io.StringIO(to_text(comparison, "csv"))))
    content = json.loads(to_text(comparison, "json"))
    assert list(rows[0]) == list(FIELDS)
    assert [row["figure"] for row in rows] == [row["figure"] for row in content["figures"]]
    assert float(rows[-1]["difference"]) == content["figures"][-1]["difference"]
    assert len(content["pairs"][0]["items"]) == 77


def test_the_terminal_fits_100_columns_and_says_who_is_above(runs: list[Path]) -> None:
    lines = to_text(compare(*runs), "terminal").splitlines()
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert re.search(r"^Overall: (B is (above|below) A|no difference shown) \(p ", text, re.MULTILINE)
    assert "moved most" in text


def test_the_page_shows_text_and_runs_nothing(tmp_path: Path) -> None:
    name = next(iter(ALL))
    hostile = replace(run_of(ALL, "<img src=x onerror=alert(1)>").items[name], answers=("<script>alert(1)</script>",))
    a, b = run_of(ALL, "<b>one</b>"), run_of({**ALL, name: [99.0]}, "other")
    write_comparison(compare_items([replace(a, items={**a.items, name: hostile}), b], by_metric=False), tmp_path)
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;b&gt;one" in text
    assert {path.name for path in tmp_path.iterdir()} == {f"compare.{kind}" for kind in ("csv", "html", "json", "tex")}
