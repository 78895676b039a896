"""The funnel as a table."""

from __future__ import annotations

from h2htalk.curation.curate import StageSummary, funnel_table
from h2htalk.curation.stage_folder import RecordCounts

GATHER = StageSummary("gather", RecordCounts(10, 8, 2, 8, 0, {"empty": 2}, {}))
COMPOSE = StageSummary("compose", RecordCounts(10, 6, 4, 11, 0, {"nothing": 4}, {}))
REVIEW = StageSummary(
    "review", RecordCounts(8, 7, 1, 7, 0, {"review:safety": 1}, {"accept": 7}), ("judge check: refused, 40 %",)
)


def test_the_table_has_a_row_for_each_stage() -> None:
    assert funnel_table([GATHER, COMPOSE, REVIEW]).to_csv().splitlines() == [
        "stage,unit,read,kept,rejected,written",
        "gather,dialogues,10,8,2,8",
        "compose,dialogues,10,6,4,11",
        "review,candidates,8,7,1,7",
    ]
