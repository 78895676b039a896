"""The funnel: a row a stage, drawn to a file or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.curate import StageCounts
from h2htalk.curation.funnel import draw_funnel, funnel_table, notes
from h2htalk.curation.stage_folder import Counts
from h2htalk.errors import ConfigError

FOUND = [
    StageCounts("gather", Counts(10, 8, 2, 8, 0, {"empty": 2}, {})),
    StageCounts(
        "review", Counts(8, 7, 1, 7, 0, {"review:safety": 1}, {"accept": 7}), ("gate: refused, 40 %",)
    ),
]


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_same_counts_are_the_same_drawing(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        draw_funnel(FOUND, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"a{ending}").stat().st_size > 1000
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize(
    ("name", "told"), [("x.txt", "ends in .svg, .pdf, .png"), ("gone/x.svg", "cannot|No such")]
)
def test_a_drawing_that_cannot_be_is_told_in_words(tmp_path: Path, name: str, told: str) -> None:
    """Both ended in a traceback."""
    with pytest.raises(ConfigError, match=told):
        draw_funnel(FOUND, tmp_path / name)


def test_every_reason_and_mark_is_said() -> None:
    said = notes(FOUND)
    assert "rejected: empty 2" in said
    assert "marked: accept 7" in said
    assert "review     gate: refused, 40 %" in said


def test_what_a_stage_says_of_itself_is_drawn(tmp_path: Path) -> None:
    draw_funnel(FOUND, tmp_path / "told.svg")
    draw_funnel(FOUND[:1], tmp_path / "silent.svg")
    assert "gate: refused, 40 %" in (tmp_path / "told.svg").read_text()
    assert "gate" not in (tmp_path / "silent.svg").read_text()


# Ten dialogues read, six kept, of which eleven candidates go on.
GROWN = [*FOUND, StageCounts("compose", Counts(10, 6, 4, 11, 0, {"nothing": 4}, {}))]


def test_the_table_says_what_was_read_kept_rejected_and_what_goes_on() -> None:
    table = funnel_table(GROWN)
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert [column.header for column in table.columns] == [
        "stage",
        "reads",
        "read",
        "kept",
        "rejected",
        "goes on",
    ]
    assert rows == [
        ("gather", "dialogues", "10", "8", "2", "8"),
        ("review", "candidates", "8", "7", "1", "7"),
        ("compose", "dialogues", "10", "6", "4", "11"),
    ]


def test_reasons_beyond_the_eighth_are_one_sum() -> None:
    reasons = {f"r{n}": 20 - n for n in range(11)}
    counts = Counts(200, 35, 165, 35, 0, reasons, {})
    told = notes([StageCounts("safety", counts)])
    assert "r7 13, and 3 more kinds 33" in told
    assert "r8" not in told
