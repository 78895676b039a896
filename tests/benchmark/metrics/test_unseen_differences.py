"""Runs whose replies differ in what nobody sees, in typography alone, or in the version that scored them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.metrics import composite
from h2htalk.benchmark.report.leaderboard import leaderboard, print_leaderboard
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses, report, score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from support.command_line import h2htalk_here, scripted
from support.runs import baseline_run

MINI = load_split("mini@1")
HALF = str.maketrans("，。！？；：（）“”‘’", ",.!?;:()\"\"''")
UNSEEN: dict[str, Callable[[str], str]] = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "nbsp": lambda text: text.replace(" ", "\u00a0"),
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "mixed": lambda text: (
        "\ufeff" + text.replace(" ", "\u202f\u200b").replace("\n", " \u2028") + "\u200d\n"
    ),
}


def imported(folder: Path, change: Callable[[str], str]) -> Summary:
    """The references, changed, as the replies of a model."""
    replies = folder / "replies.jsonl"
    write_jsonl(
        replies, [{"id": one.id, "response": change(one.reference)} for one in MINI.scenarios]
    )
    return import_responses(replies, "changed", "mini@1", folder / "run", embedder="none")


def value(row: Any) -> float:
    return float(row["overall"].value)


@pytest.mark.parametrize("name", UNSEEN)
def test_what_nobody_sees_lowers_no_score(name: str, tmp_path: Path) -> None:
    """CRLF, no-break spaces and decomposed letters cost up to 3.5 points of the lexical mean."""
    summary = imported(tmp_path, UNSEEN[name])
    assert value(summary.rows.lexical) == 100
    assert value(summary.rows.lexical_folded) == 100
    assert summary.rows.compliance["items_mean"].value == 100


def test_typography_is_told_apart_in_every_table(tmp_path: Path) -> None:
    """A model that writes half-width marks and curly apostrophes lost 24 and 4.5 points, and nothing said so."""
    summary = imported(
        tmp_path, lambda text: text.replace("'", "’").translate({**HALF, ord("’"): "’"})
    )
    lexical = value(summary.rows.lexical)
    assert lexical < 90
    assert value(summary.rows.lexical_folded) == 100
    assert any("typography" in warning for warning in summary.warnings)

    folder = tmp_path / "run"
    rows = list(csv.DictReader((folder / "tables" / "metrics.csv").open()))
    own = [
        row for row in rows if row["source"] == "run" and row["of"] == "overall" and row["value"]
    ]
    overall = {row["metric"]: float(row["value"]) for row in own}
    assert overall["lexical_folded"] == 100
    assert len({(row["model"], row["metric"], row["of"]) for row in rows}) == len(rows)
    items = list(csv.DictReader((folder / "tables" / "items.csv").open()))
    assert {row["lexical_folded"] for row in items} == {"100.0"}
    table2 = next(csv.DictReader((folder / "tables" / "table2.csv").open()))
    assert float(table2["lexical"]) == pytest.approx(lexical)
    assert (table2["lexical_folded"], table2["lexical_folded_n"]) == (
        "100.0",
        str(len(MINI.scenarios)),
    )
    row = json.loads((folder / "tables" / "table2.json").read_text())[0]
    assert row["lexical"]["lexical_folded"]["value"] == 100
    page = (folder / "report.html").read_text()
    assert page.count("Lexical mean, folded") == 1
    assert "Folded: the lexical mean where quotes" in page
    assert '"lexical_folded"' in page
    printed = h2htalk_here("report", folder).stdout
    assert "lexical mean, folded 100.00" in " ".join(printed.split())
    lines = [
        line for line in printed.splitlines() if not line.startswith("report: ")
    ]  # a path is not wrapped
    assert max(map(len, lines)) <= 80
    stream = io.StringIO()
    board = leaderboard([folder])
    print_leaderboard(board, Console(file=stream, width=80))
    assert "lexical mean, folded 100.00" in " ".join(stream.getvalue().split())
    run = load_run(folder)
    assert "lexical_folded" in run.items().column_names
    assert compare(folder, folder, metric="lexical_folded").pairs[0].headline.a == 100
    assert any(
        "overall: A 100.00, B 100.00" in note for note in compare(folder, folder).pairs[0].notes
    )


def old_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Score as the version before did: by its name, and without the figure that it did not have."""
    old = replace(
        composite.METRICS["lexical"],
        version="1",
        columns=composite.LEXICAL_COLUMNS,
        path=f"{__name__}:six",
    )
    monkeypatch.setitem(composite.METRICS, "lexical", old)  # type: ignore[arg-type]


def six(pairs: Any, metrics: Any) -> list[tuple[float, ...]]:
    return [values[:6] for values in composite.score_lexical(pairs, metrics)]  # type: ignore[index,misc]


def test_a_run_of_an_earlier_version_is_read_refused_with_a_reason_and_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        old_metrics(earlier)
        old = baseline_run(tmp_path / "old")
        summary = load_run(old).summary.to_dict()
        for row in (summary["rows"], *summary["baselines"].values()):
            del row["lexical_folded"]  # as stored by that version
        RunFolder(old).write_summary(
            summary, RunFolder(old).scores(load_run(old).summary.signature)
        )
    new = baseline_run(tmp_path / "new", "copy-last-turn")
    assert "Folded" not in h2htalk_here("report", old).stdout
    assert report(old).rows.lexical_folded is None
    for metric in (None, "lexical"):
        with pytest.raises(ConfigError) as refused:
            compare(old, new, metric=metric)
        assert "metrics (lexical-1,semantic-1, lexical-2,semantic-1)" in str(refused.value)
        assert "`h2htalk score RUN` scores the stored replies of each again" in str(refused.value)
    board = h2htalk_here("leaderboard", old, new)
    assert board.returncode == 0
    assert "`h2htalk score RUN` scores the stored replies of each again" in " ".join(
        board.stdout.split()
    )
    assert score(old).rows.lexical_folded is not None
    assert compare(old, new).pairs[0].headline.key == "overall"


def test_a_run_that_an_earlier_version_began_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paid run that paused could only be begun anew after an update that raised a metric's version."""
    spec = EvaluateSpec(
        model=scripted(tmp_path),
        split="mini@1",
        limit=22,
        embedder="none",
        out=str(tmp_path / "run"),
    )
    with monkeypatch.context() as earlier:
        old_metrics(earlier)
        evaluate(spec)
    store = RunFolder(spec.out_path).calls_file
    lines = list(read_jsonl(store))
    write_jsonl(store, [record for _, record in lines[:-1]])
    RunFolder(spec.out_path).summary.unlink()  # killed before it was scored
    shutil.rmtree(spec.out_path / "scores")
    summary = evaluate(spec)
    assert summary.signature.protocol["metrics"] == "lexical-2,semantic-1"
    assert not summary.incomplete
    assert len(list(read_jsonl(store))) == len(lines)
    with monkeypatch.context() as patch:
        patch.setattr("h2htalk.benchmark.evaluate.score_run_data", None)
        assert evaluate(spec) == summary  # nothing is scored twice
    with pytest.raises(ConfigError, match=r"differs in .*contracts \(2, none\)"):
        evaluate(replace(spec, contracts="none"))
