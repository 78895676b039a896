"""A run folder that somebody edited, or that a disk damaged, is refused in one line: never believed, never a crash."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.metrics.scoring import read_scores
from h2htalk.benchmark.run_data import read_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import read_summary
from h2htalk.errors import DataError, H2HTalkError

LEXICAL = ("main", "rows", "lexical")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    evaluate(
        EvaluateSpec(model="baseline:constant", split="mini", out=str(out), limit=22, embedder="none", baselines=False)
    )
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def change(path: Path, place: Sequence[str], value: object) -> None:
    """Put a value into a JSON file; NaN is written as Python writes it."""
    record = json.loads(path.read_text())
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(record))


def refusal(read: Callable[[], object], path: Path) -> str:
    with pytest.raises(H2HTalkError) as raised:
        read()
    text = str(raised.value)
    assert text.startswith(f"{path}")
    assert "\n" not in text
    assert raised.value.exit_code == 2
    return text


# --- summary.json -----------------------------------------------------------------------------------------------

CELL = {"value": 1.0, "low": None, "high": None, "n": 1, "total": 1}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("counts", "items"), "x", "counts.items: Input should be a valid integer"),
        (("counts", "items"), True, "counts.items: Input should be a valid integer"),
        (("counts", "items"), -1, "its counts are impossible"),
        (("counts", "scored"), 23, "its counts are impossible"),
        (("counts", "failures"), {"<b>": "x"}, "counts.failures.<b>: Input should be a valid integer"),
        ((*LEXICAL, "overall", "value"), "9e9", "overall.value: Input should be a valid number"),
        ((*LEXICAL, "overall", "value"), math.nan, "NaN is not JSON"),
        ((*LEXICAL, "overall", "value"), 9e9, "a figure is impossible: {'value': 9000000000.0"),
        ((*LEXICAL, "overall", "value"), None, "a figure is impossible"),
        ((*LEXICAL, "overall", "low"), None, "a figure is impossible"),
        ((*LEXICAL, "overall", "n"), 99, "a figure is impossible"),
        ((*LEXICAL, "cells", "dialogue_base", "value"), [1], "dialogue_base.value: Input should be a valid"),
        ((*LEXICAL, "cells"), {"bogus": CELL}, "'bogus' is no subtask"),
        ((*LEXICAL, "dimensions"), {"bogus": CELL}, "'bogus' is no dimension"),
        ((*LEXICAL, "overall"), None, "Input should be"),
        (("main", "metrics"), {"nope": {"bleu_1": CELL}}, "'nope' is no subtask"),
        (("main", "metrics"), {"dialogue_base": {"x": CELL}}, "'x' is no metric"),
        (("main", "slices"), {"emotion": {"joy": {**CELL, "n": 2}}}, "a figure is impossible"),
        (("main", "baselines"), {"zz": 5}, "main.baselines.zz: Input should be"),
        (("main", "languages"), 5, "main.languages: Input should be a valid"),
        (("main", "rows", "null_class", "f1"), {**CELL, "value": 101.0}, "a figure is impossible"),
        (("main",), None, "main: Input should be"),
        (("measure",), "foo", "measure: Input should be 's' or 'lexical'"),
        (("measure",), "s", "its measure is s, and a row of s is missing"),
        (("model",), 5, "model: Input should be a valid string"),
        (("violations",), [1], "violations: Input should be an object"),
        (("violations",), {"a": "b"}, "violations.a: Input should be a valid integer"),
        (("warnings",), "abc", "warnings: Input should be a valid"),
        (("judged",), "yes", "judged: Input should be a valid boolean"),
        (("signature",), {"protocol": {"items": "x"}, "subject": {}}, "signature must hold protocol and subject"),
        (("signature", "subject"), {"x": "y"}, "subject lacks engine and model"),
    ],
)  # fmt: skip
def test_a_summary_that_no_run_wrote_is_refused(run: Path, place: Sequence[str], value: object, message: str) -> None:
    """Each of these was a traceback somewhere in a table, or a figure in it."""
    change(run / "summary.json", place, value)
    text = refusal(lambda: read_summary(run / "summary.json"), run / "summary.json")
    assert message in text
    assert text.endswith("; run `h2htalk score` again")


@pytest.mark.parametrize("content", ["", "[]", "null", "5", "{", "{}", "[" * 100_000, '{"a":NaN}', '{"a":' * 500])
def test_what_is_no_summary_is_refused(run: Path, content: str) -> None:
    (run / "summary.json").write_text(content)
    refusal(lambda: read_summary(run / "summary.json"), run / "summary.json")


def test_a_number_too_large_for_a_float_is_refused(run: Path) -> None:
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(text.replace('"items": 22', '"items": 1e999'))
    refusal(lambda: read_summary(run / "summary.json"), run / "summary.json")


# --- run.json ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("signature",), 5),
        (("signature", "subject"), {}),
        (("signature", "protocol"), {}),
        (("spec",), {}),
        (("spec", "model"), 5),
        (("spec", "embedder"), 5),
        (("spec", "extra"), 1),
        (("spec", "limit"), True),
    ],
)
def test_a_run_json_that_no_run_wrote_is_refused(run: Path, place: Sequence[str], value: object) -> None:
    change(run / "run.json", place, value)
    refusal(lambda: read_run_data(run).folder.signature(), run / "run.json")


# --- scores -----------------------------------------------------------------------------------------------------


def scores_file(run: Path) -> Path:
    (path,) = (run / "scores").iterdir()
    return path


def with_column(name: str, values: Any) -> Callable[[Any], Any]:
    def damage(table: Any) -> Any:
        import pyarrow as pa

        column = (
            pa.array([values] * len(table)) if not isinstance(values, pa.DataType) else pa.nulls(len(table), values)
        )
        return table.set_column(table.schema.get_field_index(name), name, column)

    return damage


def ids_of(run: Path) -> set[str]:
    return {s.id for s in read_run_data(run).split.scenarios}


def test_scores_are_read_as_they_were_written(whole: Path) -> None:
    scores = read_scores(scores_file(whole), ids_of(whole))
    assert set(scores) == ids_of(whole)
    assert all(0 <= (score.lexical or 0) <= 1 for score in scores.values())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.drop_columns(["ss"]), "row 1: column ss is missing"),
        (with_column("id", "zz"), "row 1: 'zz' is none of the scenarios of this run"),
        (with_column("id", 5), "row 1: id is 5"),
        (with_column("sample", None), "row 1: sample is None"),
        (with_column("sample", -1), "row 1: sample is -1"),
        (with_column("violations", None), "row 1: violations is None"),
        (with_column("violations", [None]), "row 1: violations is [None]"),
        (with_column("bleu_1", math.nan), "row 1: bleu_1 is nan"),
        (with_column("bleu_1", "x"), "row 1: bleu_1 is 'x'"),
        (with_column("bleu_1", 7.0), "row 1: bleu_1 is 7.0"),
        (with_column("bleu_1", None), "row 1: some of its values are missing"),
        (with_column("s", 0.5), "row 1: some of its values are missing"),
        (with_column("unscored", ""), "row 1: unscored is ''"),
        (lambda t: t.slice(1), "holds no score of "),
        (lambda t: t.take([0, *range(len(t))]), "row 2: a second score of "),
    ],
)  # fmt: skip
def test_scores_that_no_run_wrote_are_refused(run: Path, damage: Callable[[Any], Any], message: str) -> None:
    import pyarrow.parquet as pq

    path = scores_file(run)
    pq.write_table(damage(pq.read_table(path)), path)
    text = refusal(lambda: read_scores(path, ids_of(run)), path)
    assert message in text
    assert text.endswith("; run `h2htalk score` again")


def test_scores_that_are_not_there_say_what_to_do(run: Path) -> None:
    with pytest.raises(DataError, match=r"x\.parquet: not there; run `h2htalk score` again"):
        read_scores(run / "scores" / "x.parquet")
