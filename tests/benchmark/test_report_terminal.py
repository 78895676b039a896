"""The table on the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from summaries_made import made_summary, same_values, standing_of_values

from h2htalk.benchmark.aggregate import NullClass
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.summary import Counts, Summary
from h2htalk.data.subtasks import SUBTASKS

FLOORS = {
    "constant": same_values(0.1),
    "copy-last-turn": same_values(0.5),
    "random-reference": same_values(0.2),
}


def printed(summary: Summary, width: int = 80, encoding: str = "utf-8", **paths: Path) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n", write_through=True)
    print_summary(summary, Console(file=stream, width=width, legacy_windows=False), paths)
    return raw.getvalue().decode(encoding)


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_rows_stand_by_dimension_in_the_order_of_table_2() -> None:
    words = [line.split()[0] for line in printed(made_summary()).splitlines() if line.strip()]
    shown = [word for word in words if word in {"Dialogue", "Itinerary", "Recollection", "Averages"}]
    assert shown == [
        "Dialogue",
        "Itinerary",
        "Recollection",
        "Averages",
        "Dialogue",
        "Itinerary",
        "Recollection",
    ]
    assert words.index("Base") < words.index("Middle") < words.index("Synthesis") < words.index("Overall")


@pytest.mark.parametrize("width", [80, 113, 160])
def test_nothing_is_cut_off_at_80_columns_or_more(width: int) -> None:
    values = {**same_values(0.4), "dialogue_base": [0.4, None] * 1000}
    text = printed(made_summary(values, floors=FLOORS), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "1000/2000" in line_with(text, "Base")
    assert "random-" in text
    assert "Initialization" in text


def test_intervals_are_half_widths_when_narrow_and_ends_when_wide() -> None:
    assert "40.00 ±1.0" in line_with(printed(made_summary(), 80), "Base")
    assert "40.00 [39.00, 41.00]" in line_with(printed(made_summary(), 120), "Base")


def test_a_floor_is_marked_exactly_where_the_model_is_not_above_it() -> None:
    values = {**same_values(0.4), "dialogue_base": [0.1, 0.1]}
    floors = {"constant": {**same_values(0.1), "dialogue_base": [0.1, 0.1]}}
    text = printed(made_summary(values, floors=floors))
    assert line_with(text, "  Base").rstrip().endswith("10.00!")
    assert line_with(text, "  Emotion").rstrip().endswith("10.00")
    assert "not above this floor" in text
    assert "not above" not in printed(made_summary(floors={"constant": same_values(0.1)}))


def test_the_three_means_are_told_apart() -> None:
    values = {name: [0.2, 0.2] for name in SUBTASKS} | {"dialogue_base": [0.8] * 10}
    text = printed(made_summary(values))
    weighted = 20 + 60 * 1882 / 4650
    assert f"{weighted:.2f}" in line_with(text, "Overall")
    assert f"{20 + 60 * 10 / 30:.2f}" in line_with(text, "Mean of items")
    assert f"{20 + 60 / 11:.2f}" in line_with(text, "Mean of cells")


def test_without_all_eleven_subtasks_there_is_no_overall_and_one_note_says_why() -> None:
    values = {name: vs for name, vs in same_values(0.4).items() if name != "itinerary_basic"}
    text = printed(made_summary(values), 160)
    assert line_with(text, "  Overall").split()[2] == "-"
    assert "40.00" in line_with(text, "Mean of items")
    assert text.count("ItineraryBasic is not here") == 1


def test_an_incomplete_run_says_so_above_and_below_the_table() -> None:
    values = {**same_values(0.4), "dialogue_base": [0.4, None]}
    counts = Counts(22, 21, 21, truncated=3, failures={"timeout": 1})
    text = printed(made_summary(values, counts=counts), 160)
    assert text.splitlines()[0].endswith("21 of 22 items scored, INCOMPLETE")
    assert "INCOMPLETE: 1 of 22 items" in text
    assert "unscored, by reason: timeout 1" in text
    assert "of 21 replies: truncated 3" in text
    assert "INCOMPLETE" not in printed(made_summary())


def test_what_the_figures_are_not_is_said() -> None:
    text = printed(made_summary(comparable=False, protocol={"embedder": "minilm@2"}), 160)
    assert "not comparable with the paper's: its SS comes from minilm@2" in text
    assert "Unjudged: no judge's rating" in text
    lexical = printed(made_summary(measure="lexical", comparable=False), 160)
    assert "S was not asked for" in lexical
    assert "Lexical mean" in lexical
    assert "not comparable" not in lexical


def test_the_null_class_stands_in_a_line_of_its_own() -> None:
    null = NullClass(0.5, 1.0, 2 / 3, 1, 2, 1, 3)
    summary = made_summary(standing=standing_of_values(same_values(0.4), null=null))
    text = printed(summary, 160)
    assert (
        "nothing to remember: precision 0.50, recall 1.00, F1 0.67; 1 of 3 references, 2 answers, 1 both"
        in text
    )


def test_names_are_shown_and_never_obeyed() -> None:
    summary = made_summary(model="\x1b[31m[bold red]m[/]\u202e\n", warnings=("[link=x]\x07w",))
    text = printed(summary, 160)
    assert "\\x1b[31m[bold red]m[/]\\u202e\\n on mini 1" in text
    assert "warning: [link=x]\\x07w" in text
    assert "\x1b" not in text.replace("\x1b[0m", "")


def test_an_ascii_terminal_gets_ascii() -> None:
    summary = made_summary(floors=FLOORS, split="迷你", warnings=("情绪",))
    assert "\\u60c5\\u7eea" in printed(summary, 80, "ascii")


def test_a_path_is_printed_in_one_piece() -> None:
    path = Path("/" + "/".join(["a-long-folder"] * 12)) / "report.html"
    assert f"report: {path}\n" in printed(made_summary(), 80, report=path)
