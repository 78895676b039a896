"""The table on the terminal."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from summaries_made import FirstLetters, failed_item, made_item, made_summary, mini_scenarios, same_values, summary_of

from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.report.table2 import ALL_COLUMNS, TableRow, metrics_table, slices_table, table_row, table_text
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.statistics import Cell, null_class
from h2htalk.benchmark.summary import BASELINES, RunCounts, ScoreRows, Summary
from h2htalk.data.responses import Failure
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS

SAME_VALUES = {name: same_values(0.1) for name in BASELINES}


def printed(summary: Summary, width: int = 80, encoding: str = "utf-8", verbose: bool = True, **paths: Path) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n", write_through=True)
    print_summary(summary, Console(file=stream, width=width, legacy_windows=False), paths, verbose)
    return raw.getvalue().decode(encoding)


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


# --- Room -------------------------------------------------------------------------------------------------------


@cache
def mini_with_english_s() -> Summary:
    """The whole of mini with an embedder for its English half."""
    mini = load_split("mini@1")
    answers = BASELINES["random-reference"](mini.scenarios, mini.scenarios)
    return summary_of(mini, {(a.id, 0): a for a in answers}, Metrics(FirstLetters()))


def widest_summary() -> Summary:
    """The paper's counts, and figures as long as they can be: 100.00 with a half interval of almost ten."""

    def cell(count: int) -> Cell:
        return Cell(100.0, 80.2, 100.0, count, count)

    counts = {name: one.count for name, one in SUBTASKS.items()}
    sums = {f"{d}_avg": sum(s.count for s in SUBTASKS.values() if s.dimension == d) for d in DIMENSIONS}
    means = dict.fromkeys(("overall", "items_mean", "plain_mean"), 4650)
    row = {name: cell(count) for name, count in (counts | sums | means).items()}
    rows = ScoreRows(row, row, row, None)
    reached = dict.fromkeys(SAME_VALUES, tuple(row))
    return replace(made_summary(), rows=rows, baselines=dict.fromkeys(SAME_VALUES, rows), reached=reached)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [80, 117, 118, 120])
def test_the_longest_figures_of_the_papers_size_are_whole(width: int, encoding: str) -> None:
    """`77/…` and `Ite…` once stood at 80 columns."""
    lines = printed(widest_summary(), width, encoding).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line or "\\u2026" in line for line in lines)
    rows = [line for line in lines if line.startswith((" Standard", " Overall"))]
    assert len(rows) == 2
    for line in rows:
        assert "1,882/1,882" in line or "4,650/4,650" in line
        assert line.count("100.00!") == 3
        assert "100 %" in line
        interval = "[80.20, 100.00]" if width >= 118 else "9.9"
        assert interval in line


@pytest.mark.parametrize("width", [80, 120])
def test_one_table_has_s_where_the_embedder_has_the_language_and_the_lexical_mean_of_all(width: int) -> None:
    text = printed(mini_with_english_s(), width, verbose=False)
    assert max(map(len, text.splitlines())) <= width
    assert line_with(text, "Overall").split()[1] == "77/77"
    summary = mini_with_english_s()
    assert f"{summary.rows.lexical['overall'].value:.2f}" in line_with(text, "Overall")


# --- Figures ----------------------------------------------------------------------------------------------------


def test_names_are_shown_and_never_obeyed() -> None:
    summary = made_summary(model="\x1b[31m[bold red]m[/]\u202e\n", warnings=("[link=x]\x07w",))
    text = printed(summary, 160)
    assert "\\x1b[31m[bold red]m[/]\\u202e\\n on mini 1" in text
    assert "warning: [link=x]\\x07w" in text
    assert "\x1b" not in text.replace("\x1b[0m", "")


def test_without_verbose_only_the_table_failures_warnings_and_costs_are_printed() -> None:
    counts = RunCounts(3, 2, 2, truncated=2, failures={"timeout": 1}, failure_messages={"timeout": "no answer in 5 s"})
    summary = made_summary(counts=counts, warnings=("take care",))
    short, full = (printed(summary, 200, verbose=verbose) for verbose in (False, True))
    for line in ("1 sample unscored (timeout): no answer in 5 s", "warning: take care", "INCOMPLETE"):
        assert line in short
        assert line in full
    for line in ("protocol: ", "Unjudged", "of 2 replies", "Intervals and n"):
        assert line not in short
        assert line in full


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}<!--\u2028\x00\u202e"


def page(folder: Path, summary: Summary | None = None, items: list[ItemView] | None = None) -> str:
    path = folder / "report.html"
    write_page(path, summary or made_summary(), iter(items or []))
    return path.read_bytes().decode()


def data_of(text: str) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block
    found = json.loads(block[1])
    assert isinstance(found, dict)
    return found


def prompt_of(data: dict[str, Any], item: int) -> list[tuple[str, str]]:
    messages = data["items"][item][8]
    return [(role, "\n\n".join(data["paragraphs"][n] for n in numbers)) for role, numbers in messages]


def test_hostile_text_is_data_everywhere(tmp_path: Path) -> None:
    scenario = replace(mini_scenarios(1)[0], id=HOSTILE, references=(HOSTILE,), persona=HOSTILE)
    items = [
        made_item(scenario, HOSTILE, HOSTILE, finish_reason=HOSTILE, thinking=HOSTILE, request_id=HOSTILE),
        failed_item(scenario, Failure(HOSTILE, HOSTILE)),
    ]
    summary = made_summary(
        model=HOSTILE,
        split=HOSTILE,
        subject={HOSTILE: HOSTILE},
        baselines={HOSTILE: same_values(0.1)},
        violations={HOSTILE: 1},
        warnings=(HOSTILE,),
        package_version=HOSTILE,
    )
    summary = replace(summary, slices={"emotion": {name: Cell(1.0, None, None, 1, 1) for name in (HOSTILE, "calm")}})
    text = page(tmp_path, summary, items)
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script", text)) == 2
    assert "<img" not in text
    assert "<!--" not in text
    assert not set("\x00\u2028\u202e") & set(text.split('<script type="application/json"')[0])
    assert data_of(text)["items"][0][0] == HOSTILE


def test_the_prompt_is_kept_exactly_and_what_repeats_is_stored_once(tmp_path: Path) -> None:
    prompts = [f"You are Ren.\n\n{'Be kind. ' * 400}\n\n\nday {n}\n\n" for n in range(20)]
    items = [made_item(s, prompt=p) for s, p in zip(mini_scenarios(20), prompts, strict=True)]
    data = data_of(page(tmp_path, items=items))
    assert [prompt_of(data, n)[0] for n in range(20)] == [("system", prompt) for prompt in prompts]
    assert data["paragraphs"].count("Be kind. " * 400) == 1


def test_an_item_holds_prompt_response_reference_and_scores(tmp_path: Path) -> None:
    scenario = mini_scenarios(1)[0]
    raw = "<think>hm</think> I am here."
    item = made_item(scenario, raw, violations=("too_long",), finish_reason="length")
    packed = data_of(page(tmp_path, items=[item]))["items"][0]
    assert (packed[0], packed[2], packed[5]) == (scenario.id, scenario.language, list(scenario.references))
    number, scored, reply, failure = packed[9][0]
    assert (number, failure) == (0, None)
    assert reply == [raw, "I am here.", None, "length", 11, 7, None]
    assert scored == [[0.5, 0.4, 0.3, 0.2, 0.6, 0.55, 0.7], 0.7, 0.46429, ["too_long"], None]


def test_figures_baselines_and_cautions_are_on_the_page(tmp_path: Path) -> None:
    values = {**same_values(0.4), "dialogue_base": [0.05, None]}
    summary = made_summary(values, baselines={"constant": same_values(0.1)}, comparable=False)
    text = page(tmp_path, replace(summary, counts=replace(summary.counts, failures={"timeout": 1})))
    assert "INCOMPLETE: 1 of 22 items" in text
    assert "S is not comparable" in text
    # The cell, which one item cannot decide, and the averages of cells that it is part of; the mean over items can.
    assert len(re.findall(r">\d+\.\d\d!", text)) == 4
    assert "40.00 [28.31, 52.95]" in text
    assert "unscored (timeout)" in text


LOW = {"constant": same_values(0.1)}
UNEVEN = {name: [0.1 + i / 30, 0.2, 1 / 3] for i, name in enumerate(SUBTASKS)}


def records(rows: list[TableRow]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table_text(rows, "csv"))))


def test_csv_and_json_hold_every_figure_in_full_precision() -> None:
    summary = made_summary(UNEVEN)
    (record,), (plain,) = records([table_row(summary)]), json.loads(table_text([table_row(summary)], "json"))
    row = summary.rows.s or {}
    for name, cell in row.items():
        assert float(record[name]) == cell.value == plain["cells"][name]["value"]
        assert (float(record[f"{name}_low"]), float(record[f"{name}_high"])) == (cell.low, cell.high)
        assert (record[f"{name}_n"], record[f"{name}_total"]) == (str(cell.n), str(cell.total))
    assert len(row) == len(ALL_COLUMNS)


def test_latex_has_a_line_a_row_with_items_intervals_cautions_and_places() -> None:
    incomplete = made_summary({**same_values(0.4), "dialogue_base": [0.4, None]}, model="a & b", judged=True)
    marked = replace(table_row(made_summary(UNEVEN, judged=True)), marks={"overall": 1, "dialogue_avg": 3})
    lines = table_text([table_row(incomplete), marked], "latex").splitlines()
    heading = next(line for line in lines if line.startswith(" & Items scored & Standard & "))
    assert heading.removesuffix(r" \\").split(" & ")[-4:] == ["Avg.", "Overall", "Items", "Cells"]
    groups = [r"\multicolumn{4}{c}{Dialogue}", r"\multicolumn{6}{c}{Itinerary}", r"\multicolumn{4}{c}{Recollection}"]
    assert lines[lines.index(heading) - 1].split(" & ")[1:4] == groups
    one, other = (next(n for n, line in enumerate(lines) if line.startswith(name)) for name in (r"a \& b", "server:m"))
    assert {lines[n].replace(r"\&", "").count("&") for n in (one, one + 1, other, other + 1)} == {18}
    assert " & 21/22 & 40.00 & 40.00 & " in lines[one]
    assert lines[one + 1].startswith("{[}INCOMPLETE] &  &  & ±12 & ")
    row = made_summary(UNEVEN).rows.s
    assert row is not None
    assert f" & {row['overall'].value:.2f}¹ & " in lines[other]
    assert f" & {row['dialogue_avg'].value:.2f}³ & " in lines[other]
    assert any("first, second and third" in line for line in lines)


# --- One figure a line ------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_slices_say_their_measure_and_marks() -> None:
    lines = lines_of(slices_table(made_summary(comparable=False, s_languages=("en",))).to_csv())
    facts = ("of", "languages", "measure", "n", "complete", "comparable", "judged")
    assert [[line[key] for key in facts] for line in lines] == [
        [of, "en", "s", n, "True", "False", "False"] for of, n in (("none", "21"), ("high", "1"))
    ]


def test_every_figure_of_model_and_baselines_stands_in_metrics_with_its_interval_and_n() -> None:
    summary = made_summary(UNEVEN, baselines=LOW, null=null_class([(1.0, True), (0.0, False), (1.0, False)], 4))
    found = {(x["model"], x["metric"], x["of"]): x for x in lines_of(metrics_table(summary).to_csv())}
    row = summary.rows.compliance
    for metric in ("s", "lexical", "contract"):
        for key, cell in row.items():
            line = found["server:m", metric, key]
            numbers = [float(line[part]) for part in ("value", "low", "high", "n", "total")]
            assert numbers == list(astuple(cell))
            assert ("constant", metric, key) in found
    assert [found["server:m", "rouge_l", "dialogue_base"][key] for key in ("value", "low", "n")] == [
        "25.0",
        "24.0",
        "3",
    ]
    null = found["server:m", "null_precision", "recollection_synthesis"]
    assert (null["value"], null["n"], null["total"]) == ("50.0", "3", "4")
