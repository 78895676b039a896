"""The paper's rows, their sums, and your runs beside them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from statistics import median

import pytest
from rich.console import Console
from summaries_made import made_summary, same_values

from h2htalk.benchmark.report.leaderboard import (
    check_paper,
    paper_rows,
    print_check,
    print_leaderboard,
    rank_runs,
    unreadable_rows,
)
from h2htalk.benchmark.report.table2 import table_text
from h2htalk.benchmark.summary import Summary
from h2htalk.errors import ConfigError


def board_text(runs: Sequence[Summary], width: int, paper: bool = False) -> str:
    out = io.StringIO()
    print_leaderboard(rank_runs(runs, paper), Console(file=out, width=width))
    return out.getvalue()


# --- The paper ---


def test_35_of_37_rows_agree_and_the_two_others_are_named() -> None:
    rows = check_paper()
    assert len(rows) == 37
    assert max(abs(off) for row in rows for off in row["averages_off"].values()) < 0.0101
    assert median(abs(row["off"]) for row in rows) < 0.03
    out = io.StringIO()
    print_check(rows, Console(file=out, width=100))
    assert "35 of 37 readable rows agree within 0.15" in out.getvalue()
    assert "The others, last in the table: DeepSeek-R1-Distill-Qwen-1.5B-Pro, QwQ-32B-Preview." in out.getvalue()


def test_equal_figures_share_a_place() -> None:
    (group,) = [group for group in rank_runs((), True).paper if group.title == "8-31B"]
    schedule = {row.model: row.marks["dialogue_schedule"] for row in group.rows if "dialogue_schedule" in row.marks}
    assert schedule == {"Qwen2.5-14B-Instruct": 1, "Qwen2.5-14B-Instruct-LoRA": 1, "Llama-3.1-8B-Instruct-LoRA": 3}


# --- Your runs ---


def test_complete_runs_of_one_protocol_are_ranked_best_first() -> None:
    runs = [made_summary(same_values(v), model=f"m{v}") for v in (0.2, 0.4, 0.3, 0.1)]
    (group,) = rank_runs(runs).runs
    placed = [(row.model, row.marks.get("overall")) for row in group.rows]
    assert placed == [("m0.4", 1), ("m0.3", 2), ("m0.2", 3), ("m0.1", None)]


def test_an_incomplete_run_is_never_ranked_however_good() -> None:
    broken = made_summary({**same_values(0.9), "dialogue_base": [0.9, None]}, model="broken")
    (group,) = rank_runs([broken, made_summary(model="a"), made_summary(same_values(0.1), model="b")]).runs
    assert [(row.model, row.marks.get("overall")) for row in group.rows] == [("a", 1), ("b", 2), ("broken", None)]
    assert not group.rows[2].marks
    assert "broken [INCOMPLETE, unjudged]" in board_text([broken], 140)


def test_runs_of_different_protocols_are_not_ranked_together_and_the_keys_are_named() -> None:
    foreign = made_summary(same_values(0.9), model="b", protocol={"embedder": "minilm@2"}, comparable=False)
    groups = rank_runs([made_summary(model="a"), foreign]).runs
    assert [[row.model for row in group.rows] for group in groups] == [["a"], ["b"]]
    assert groups[0].note == ""
    assert groups[1].note.endswith("differs in embedder (bge-m3@1, minilm@2)")
    assert not any(row.marks for group in groups for row in group.rows)


def test_runs_that_differ_in_the_judge_alone_are_ranked_by_s() -> None:
    """They were "not comparable", with no way to a table of S, which no judge touches."""
    runs = [made_summary(same_values(v), model=m, protocol={"judge": m}) for m, v in (("a", 0.2), ("b", 0.4))]
    assert rank_runs(runs).runs[1].note.endswith("; --metric s compares them without a judge")
    (group,) = rank_runs(runs, metric="s").runs
    assert [(row.model, row.marks.get("overall")) for row in group.rows] == [("b", 1), ("a", 2)]
    lexical = [made_summary(model=m, measure="lexical", protocol={"judge": m}) for m in ("a", "b")]
    assert len(rank_runs(lexical).runs) == 1  # without S there is no J either
    with pytest.raises(ConfigError, match="'rouge_l': a leaderboard is by s"):
        rank_runs([made_summary(measure="lexical")], metric="rouge_l")


def test_the_same_run_given_twice_is_shown_once_and_said() -> None:
    """It was ranked first and first against itself."""
    twice = rank_runs([made_summary(), made_summary()])
    assert not any(row.marks for group in twice.runs for row in group.rows)
    assert "server:m: given more than once, shown once" in board_text([made_summary()] * 2, 100)


# --- Shown ---


@pytest.mark.parametrize(("width", "figures"), [(80, "66.80¹ 50.80²"), (130, "66.8¹ 50.8²"), (160, "66.80¹ 50.80²")])
def test_the_board_has_as_many_columns_as_fit_and_names_every_model_in_full(width: int, figures: str) -> None:
    text = board_text([], width, paper=True)
    lines = [line for line in text.splitlines() if "Left out" not in line]
    assert max(map(len, lines)) <= width
    for name in [*(row.model for row in paper_rows()), *unreadable_rows()]:
        assert name in text.replace("\n", " ").replace("- ", "-")
    row = next(line for line in lines if "Qwen2.5-72B-Instruct " in line)
    assert " ".join(row.split()).endswith(figures)
    assert ("Bas." in text, "Dialogue" in text) == (width > 80, width == 80)


def test_the_board_as_data_says_which_rows_are_the_papers() -> None:
    board = rank_runs([made_summary()], True)
    rows = json.loads(table_text(board.rows, "json"))
    assert [row["source"] for row in rows] == ["run"] + ["paper"] * 37
    assert rows[1]["group"] == "1-8B (paper)"
    assert rows[1]["cells"]["overall"] == {"value": 43.12} | dict.fromkeys(("low", "high", "n", "total"))
    assert rows[0]["group"].endswith("(your runs)")
    latex = table_text(board.rows, "latex")
    assert latex.count(r"\midrule") == 4
    assert "32B+ (paper)" in latex
    assert len(list(csv.reader(io.StringIO(table_text(rank_runs((), True).rows, "csv"))))) == 38
