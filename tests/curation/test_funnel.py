"""The funnel as a table, as notes and as a drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.curate import StageSummary
from h2htalk.curation.funnel import draw_funnel, funnel_notes, funnel_table
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.errors import ConfigError

GATHER = StageSummary("gather", RecordCounts(10, 8, 2, 8, 0, {"empty": 2}, {}))
COMPOSE = StageSummary("compose", RecordCounts(10, 6, 4, 11, 0, {"nothing": 4}, {}))
REVIEW = StageSummary(
    "review",
    RecordCounts(8, 7, 1, 7, 0, {"review:safety": 1}, {"accept": 7}),
    ("judge check: refused, 40 %",),
)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_same_counts_give_the_same_file(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        draw_funnel([GATHER, REVIEW], tmp_path / f"{name}{ending}")
    assert (tmp_path / f"a{ending}").stat().st_size > 1000
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize(("name", "message"), [("x.txt", "end in .svg, .pdf, .png"), ("gone/x.svg", "cannot|No such")])
def test_a_wrong_drawing_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_funnel([GATHER], tmp_path / name)


def test_notes_are_drawn(tmp_path: Path) -> None:
    draw_funnel([GATHER, REVIEW], tmp_path / "notes.svg")
    draw_funnel([GATHER], tmp_path / "none.svg")
    assert "judge check: refused, 40 %" in (tmp_path / "notes.svg").read_text()
    assert "judge check" not in (tmp_path / "none.svg").read_text()


def test_every_reason_tag_and_note_has_a_line() -> None:
    text = funnel_notes([GATHER, REVIEW])
    assert "gather     rejected: empty 2" in text
    assert "review     tagged: accept 7" in text
    assert "review     judge check: refused, 40 %" in text


def test_reasons_after_the_eighth_are_one_sum() -> None:
    counts = RecordCounts(200, 35, 165, 35, 0, {f"r{n}": 20 - n for n in range(11)}, {})
    text = funnel_notes([StageSummary("safety", counts)])
    assert "r7 13, 3 others 33" in text
    assert "r8" not in text


def test_the_table_has_a_row_for_each_stage() -> None:
    assert funnel_table([GATHER, COMPOSE, REVIEW]).to_csv().splitlines() == [
        "stage,unit,read,kept,rejected,written",
        "gather,dialogues,10,8,2,8",
        "compose,dialogues,10,6,4,11",
        "review,candidates,8,7,1,7",
    ]
