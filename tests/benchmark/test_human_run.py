"""People's own replies: scored as a run, and named as people's wherever the run is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import h2htalk
from h2htalk.benchmark.report.notes import notes
from h2htalk.benchmark.report.table2 import table_text
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import import_responses
from h2htalk.data.files import read_json_object, read_jsonl, write_jsonl

LABEL = "Human replies (panel)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Two models' runs, and replies of people to the same items."""
    folder = tmp_path_factory.mktemp("runs")
    people = folder / "people"
    for name in ("constant", "copy-last-turn"):
        spec = {"model": f"baseline:{name}", "split": "mini@1", "out": folder / name, "embedder": "none"}
        h2htalk.evaluate(h2htalk.EvaluateSpec(**spec))
    # In the form of a stored response, with fields that only a call has.
    called = {"usage": {"output_tokens": 9}, "model": "m", "thinking": "so"}
    written = ({"id": s.id, "text": s.reference + " !", **called} for s in h2htalk.load_split("mini@1").scenarios)
    write_jsonl(folder / "replies.jsonl", written)
    import_responses(folder / "replies.jsonl", "panel", "mini@1", people, "none", human=True)
    return folder / "constant", people, folder / "copy-last-turn"


def test_the_run_says_that_people_wrote_it(runs: tuple[Path, ...]) -> None:
    folder = runs[1]
    run = load_run(folder)
    assert run.summary.model == LABEL
    assert read_json_object(folder / "summary.json")["signature"]["subject"]["engine"] == "human"
    assert "Replies written by people, not by a model." in dict(notes(run.summary))
    assert run.summary.costs == {}
    stored = [record for _, record in read_jsonl(folder / "calls.jsonl")]
    assert not any(record.get(key) for record in stored for key in ("usage", "model", "thinking"))
    for shown in (folder / "report.html", *(folder / "tables").glob("table2.*")):
        assert "Human replies" in shown.read_text(encoding="utf-8"), shown


def test_people_stand_beside_the_models_and_take_no_place_among_them(runs: tuple[Path, ...]) -> None:
    board = h2htalk.leaderboard([runs[1], runs[0], runs[2]])
    (group,) = board.runs
    assert [(row.model, row.source, row.marks.get("overall")) for row in group.rows] == [
        (LABEL, "human", None),
        ("baseline:copy-last-turn", "run", 1),
        ("baseline:constant", "run", 2),
    ]
    assert f"{LABEL},human," in table_text(board.rows, "csv")
