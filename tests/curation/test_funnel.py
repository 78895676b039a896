"""The funnel as a table, as notes and as a drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.curate import StageSummary
from h2htalk.curation.funnel import draw_funnel, funnel_table
from h2htalk.curation.stage_folder import RecordCounts

GATHER = StageSummary("gather", RecordCounts(10, 8, 2, 8, 0, {"empty": 2}, {}))
COMPOSE = StageSummary("compose", RecordCounts(10, 6, 4, 11, 0, {"nothing": 4}, {}))
REVIEW = StageSummary(
    "review", RecordCounts(8, 7, 1, 7, 0, {"review:safety": 1}, {"accept": 7}), ("judge check: refused, 40 %",)
)


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_the_same_counts_give_the_same_file(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        draw_funnel([GATHER, REVIEW], tmp_path / f"{name}{ending}")
    assert (tmp_path / f"a{ending}").stat().st_size > 1000
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_the_table_has_a_row_for_each_stage() -> None:
    assert funnel_table([GATHER, COMPOSE, REVIEW]).to_csv().splitlines() == [
        "stage,unit,read,kept,rejected,written",
        "gather,dialogues,10,8,2,8",
        "compose,dialogues,10,6,4,11",
        "review,candidates,8,7,1,7",
    ]
