"""Reports: the terminal, the page as a file (in a browser: tests/live/browser), Table 2, the leaderboard, costs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from rich.console import Console

from h2htalk.benchmark.all_pairs import compare_all_pairs
from h2htalk.benchmark.baselines import BASELINES
from h2htalk.benchmark.estimate_text import half_width_text
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.report import leaderboard, table2, table_files
from h2htalk.benchmark.report.cost_tables import cost_lines, costs_text, limit_lines
from h2htalk.benchmark.report.html_page import write_page
from h2htalk.benchmark.report.page_items import ItemView
from h2htalk.benchmark.report.paper_rows import check_paper, paper_rows, unreadable_rows
from h2htalk.benchmark.report.table_files import write_facts
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.run import Run
from h2htalk.benchmark.statistics.averages import null_class
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import RunCounts, ScoreRows, Summary
from h2htalk.chat.prices import Price, PriceList, Totals, dollars_text
from h2htalk.chat.protocol import Answer, Bound, FailedCall, Reply
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.data.responses import Failure, Usage
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import ConfigError
from support.hosted_apis import call_of
from support.summaries import (
    FirstLetters,
    failed_item,
    made_item,
    made_run,
    made_summary,
    mini_scenarios,
    same_values,
    summary_of,
)
from support.tables import table

SAME_VALUES = {name: same_values(0.1) for name in BASELINES}


def printed(
    summary: Summary, width: int = 80, encoding: str = "utf-8", verbose: bool = True, **paths: Path
) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n", write_through=True)
    print_summary(summary, Console(file=stream, width=width, legacy_windows=False), paths, verbose)
    return raw.getvalue().decode(encoding)


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


@cache
def mini_with_english_s() -> Summary:
    mini = load_split("mini@1")
    answers = BASELINES["random-reference"](mini.scenarios, mini.scenarios)
    return summary_of(mini, {(a.id, 0): a for a in answers}, Metrics(FirstLetters()))


def widest_summary() -> Summary:
    """The paper's counts, and figures as long as they can be: 100.00 with a half interval of almost ten."""

    counts = {name: one.count for name, one in SUBTASKS.items()}
    sums = {f"{dimension}_avg": 0 for dimension in DIMENSIONS}
    for subtask in SUBTASKS.values():
        sums[f"{subtask.dimension}_avg"] += subtask.count
    means = dict.fromkeys(("overall", "items_mean", "plain_mean"), 4650)
    row = {
        name: Estimate(100.0, 80.2, 100.0, count, count)
        for name, count in (counts | sums | means).items()
    }
    rows = ScoreRows(row, row, row, None)
    reached = dict.fromkeys(SAME_VALUES, tuple(row))
    return replace(
        made_summary(), rows=rows, baselines=dict.fromkeys(SAME_VALUES, rows), reached=reached
    )


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [80, 117, 118, 120])
def test_the_longest_figures_of_the_papers_size_are_whole(width: int, encoding: str) -> None:
    """`77/…` and `Ite…` once stood at 80 columns."""
    lines = printed(widest_summary(), width, encoding).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line or "\\u2026" in line for line in lines)
    for name in (
        " Standard",
        " Overall",
    ):  # below 88 columns the last baseline is in a further block
        line = " ".join(line for line in lines if line.startswith(name))
        assert "1,882/1,882" in line or "4,650/4,650" in line
        assert line.count("100.00!") == 3
        assert "100 %" in line
        short = "(80.2–100.0)" if encoding == "utf-8" else "(80.2-100.0)"
        assert ("[80.20, 100.00]" if width >= 118 else short) in line


@pytest.mark.parametrize(("low", "value", "high", "shown"), table("benchmark", "intervals"))
def test_a_skewed_interval_is_shown_by_its_ends(
    low: Any, value: float, high: Any, shown: str
) -> None:
    """`7.48 ±30` was read as -23 to 37."""
    assert half_width_text(Estimate(value, low, high, 2, 2)) == shown


@pytest.mark.parametrize("width", [80, 120])
def test_one_table_has_s_where_the_embedder_has_the_language_and_the_lexical_mean_of_all(
    width: int,
) -> None:
    text = printed(mini_with_english_s(), width, verbose=False)
    assert max(map(len, text.splitlines())) <= width
    assert line_with(text, "Overall").split()[1] == "77/77"
    summary = mini_with_english_s()
    assert f"{summary.rows.lexical['overall'].value:.2f}" in line_with(text, "Overall")


def test_names_are_shown_and_never_obeyed() -> None:
    summary = made_summary(model="\x1b[31m[bold red]m[/]\u202e\n", warnings=("[link=x]\x07w",))
    text = printed(summary, 160)
    assert "\\x1b[31m[bold red]m[/]\\u202e\\n on mini 1" in text
    assert "warning: [link=x]\\x07w" in text
    assert "\x1b" not in text.replace("\x1b[0m", "")


def test_without_verbose_only_the_table_failures_warnings_and_costs_are_printed() -> None:
    counts = RunCounts(
        3,
        2,
        2,
        truncated=2,
        failures={"timeout": 1},
        failure_messages={"timeout": "no answer in 5 s"},
    )
    summary = made_summary(counts=counts, warnings=("take care",))
    short, full = (printed(summary, 200, verbose=verbose) for verbose in (False, True))
    for line in (
        "1 sample unscored (timeout): no answer in 5 s",
        "warning: take care",
        "INCOMPLETE",
    ):
        assert (line in short, line in full) == (True, True)
    for line in ("protocol: ", "Unjudged", "of 2 replies", "Intervals and n"):
        assert (line in short, line in full) == (False, True)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}<!--\u2028\x00\u202e"


def page(folder: Path, summary: Summary | None = None, items: list[ItemView] | None = None) -> str:
    path = folder / "report.html"
    write_page(path, summary or made_summary(), iter(items or []))
    return path.read_bytes().decode()


def data_of(text: str) -> dict[str, Any]:
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


def test_hostile_text_is_data_everywhere(tmp_path: Path) -> None:
    scenario = replace(mini_scenarios(1)[0], id=HOSTILE, references=(HOSTILE,), persona=HOSTILE)
    items = [
        made_item(
            scenario, HOSTILE, HOSTILE, finish_reason=HOSTILE, thinking=HOSTILE, request_id=HOSTILE
        ),
        failed_item(scenario, Failure(HOSTILE, HOSTILE)),
    ]
    texts = dict.fromkeys(("model", "split", "package_version"), HOSTILE)
    more = {
        "subject": {HOSTILE: HOSTILE},
        "baselines": {HOSTILE: same_values(0.1)},
        "violations": {HOSTILE: 1},
    }
    summary = made_summary(**texts, **more, warnings=(HOSTILE,))
    summary = replace(
        summary,
        slices={"emotion": {name: Estimate(1.0, None, None, 1, 1) for name in (HOSTILE, "calm")}},
    )
    text = page(tmp_path, summary, items)
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script", text)) == 2
    assert not re.search("<img|<!--", text)
    assert not set("\x00\u2028\u202e") & set(text.split('<script type="application/json"')[0])
    assert data_of(text)["items"][0][0] == HOSTILE


def test_the_prompt_is_kept_exactly_and_what_repeats_is_stored_once(tmp_path: Path) -> None:
    prompts = [f"You are Ren.\n\n{'Be kind. ' * 400}\n\n\nday {n}\n\n" for n in range(20)]
    items = [made_item(s, prompt=p) for s, p in zip(mini_scenarios(20), prompts, strict=True)]
    data = data_of(page(tmp_path, items=items))
    first = [item[8][0] for item in data["items"]]
    shown = []
    for role, numbers in first:
        shown.append((role, "\n\n".join(data["paragraphs"][n] for n in numbers)))
    assert shown == [("system", prompt) for prompt in prompts]
    assert data["paragraphs"].count("Be kind. " * 400) == 1


def test_an_item_holds_prompt_response_reference_and_scores(tmp_path: Path) -> None:
    scenario = mini_scenarios(1)[0]
    raw = "<think>hm</think> I am here."
    item = made_item(scenario, raw, violations=("too_long",), finish_reason="length")
    packed = data_of(page(tmp_path, items=[item]))["items"][0]
    assert (packed[0], packed[2], packed[5]) == (
        scenario.id,
        scenario.language,
        list(scenario.references),
    )
    risky = replace(
        scenario, tags=replace(scenario.tags, risk="high")
    )  # its list and text are behind a note
    held = page(tmp_path, items=[item._replace(scenario=risky)])
    assert (packed[10], data_of(held)["items"][0][10]) == (0, 1)
    assert "988" in held[held.index('<template id="help">') :]
    number, scored, reply, failure = packed[9][0]
    assert (number, failure) == (0, None)
    assert reply == [raw, "I am here.", None, "length", 11, 7, None]
    assert scored == [[0.5, 0.4, 0.3, 0.2, 0.6, 0.55, 0.7, None], 0.7, 0.46429, ["too_long"], None]


def test_figures_baselines_and_cautions_are_on_the_page(tmp_path: Path) -> None:
    values = {**same_values(0.4), "dialogue_base": [0.05, None]}
    summary = made_summary(values, baselines={"constant": same_values(0.1)}, comparable=False)
    text = page(tmp_path, replace(summary, counts=replace(summary.counts, failures={"timeout": 1})))
    assert "INCOMPLETE: 1 of 22 items" in text
    assert "S is not comparable" in text
    # The cell, which one item cannot decide, and the averages of cells that it is part of; the mean over items can.
    assert len(re.findall(r">\d+\.\d\d!", text)) == 4
    assert '40.00</td><td class="num beside"><span class="ends">28.31 – 52.95</span>' in text
    assert "unscored (timeout)" in text


LOW = {"constant": same_values(0.1)}
UNEVEN = {name: [0.1 + i / 30, 0.2, 1 / 3] for i, name in enumerate(SUBTASKS)}


def test_csv_and_json_hold_every_figure_in_full_precision() -> None:
    summary = made_summary(UNEVEN)
    rows = [table2.table_row(summary)]
    (record,) = lines_of(table_files.table_text(rows, "csv"))
    (plain,) = json.loads(table_files.table_text(rows, "json"))
    row = summary.rows.s
    for name, cell in row.items():
        assert float(record[name]) == cell.value == plain["cells"][name]["value"]
        assert (float(record[f"{name}_low"]), float(record[f"{name}_high"])) == (
            cell.low,
            cell.high,
        )
        assert (record[f"{name}_n"], record[f"{name}_total"]) == (str(cell.n), str(cell.total))
    assert len(row) == len(table2.ALL_COLUMNS)


def test_latex_has_a_line_a_row_with_items_intervals_cautions_and_places() -> None:
    incomplete = made_summary(
        {**same_values(0.4), "dialogue_base": [0.4, None]}, model="a & b", judged=True
    )
    marked = replace(
        table2.table_row(made_summary(UNEVEN, judged=True)), marks={"overall": 1, "dialogue_avg": 3}
    )
    lines = table_files.table_text([table2.table_row(incomplete), marked], "latex").splitlines()
    heading = next(line for line in lines if line.startswith(" & Items scored & Standard & "))
    assert heading.removesuffix(r" \\").split(" & ")[-4:] == ["Avg.", "Overall", "Items", "Cells"]
    groups = [
        r"\multicolumn{4}{c}{Dialogue}",
        r"\multicolumn{6}{c}{Itinerary}",
        r"\multicolumn{4}{c}{Recollection}",
    ]
    assert lines[lines.index(heading) - 1].split(" & ")[1:4] == groups
    one = next(n for n, line in enumerate(lines) if line.startswith(r"a \& b"))
    other = next(n for n, line in enumerate(lines) if line.startswith("server:m"))
    assert {lines[n].replace(r"\&", "").count("&") for n in (one, one + 1, other, other + 1)} == {
        18
    }
    assert " & 21/22 & 40.00 & 40.00 & " in lines[one]
    assert lines[one + 1].startswith("{[}INCOMPLETE] &  &  & ±12 & ")
    row = made_summary(UNEVEN).rows.s
    assert f" & {row['overall'].value:.2f}¹ & " in lines[other]
    assert f" & {row['dialogue_avg'].value:.2f}³ & " in lines[other]
    assert any("rank 1 to 3 in a column" in line for line in lines)


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_slices_say_their_measure_and_marks() -> None:
    lines = lines_of(
        table_files.slices_table(made_summary(comparable=False, s_languages=("en",))).to_csv()
    )
    facts = ("of", "languages", "measure", "n", "complete", "comparable", "judged")
    assert [itemgetter(*facts)(line) for line in lines] == [
        ("none", "en", "s", "21", "True", "False", "False"),
        ("high", "en", "s", "1", "True", "False", "False"),
    ]


def test_every_figure_of_model_and_baselines_stands_in_metrics_with_its_interval_and_n() -> None:
    summary = made_summary(
        UNEVEN, baselines=LOW, null=null_class([(1.0, True), (0.0, False), (1.0, False)], 4)
    )
    found = {
        (x["model"], x["metric"], x["of"]): x
        for x in lines_of(table_files.metrics_table(summary).to_csv())
    }
    row = summary.rows.compliance
    for metric in ("s", "lexical", "contract"):
        for key, cell in row.items():
            line = found["server:m", metric, key]
            numbers = [float(line[part]) for part in ("value", "low", "high", "n", "total")]
            assert numbers == list(cell.fields)
            assert ("constant", metric, key) in found
    rouge_l = found["server:m", "rouge_l", "dialogue_base"]
    assert (rouge_l["value"], rouge_l["low"], rouge_l["n"]) == ("25.0", "24.0", "3")
    null = found["server:m", "null_precision", "recollection_synthesis"]
    assert (null["value"], null["n"], null["total"]) == ("50.0", "3", "4")


def board_text(runs: Sequence[Run], width: int, paper: bool = False) -> str:
    out = io.StringIO()
    leaderboard.print_leaderboard(
        leaderboard.rank_runs(runs, paper), Console(file=out, width=width)
    )
    return out.getvalue()


NEAR = (0.31, 0.45, 0.38, 0.52, 0.36, 0.41, 0.48, 0.33, 0.55, 0.43, 0.39)  # of the subtasks in turn


def placed(runs: Sequence[Run], metric: str | None = None) -> list[list[tuple[str, int | None]]]:
    groups = leaderboard.rank_runs(runs, metric=metric).runs
    marks = []
    for group in groups:
        marks.append([(row.model, row.marks.get("overall")) for row in group.rows])
    return marks


def test_the_papers_averages_are_those_of_its_cells() -> None:
    rows = check_paper()
    assert len(rows) == 37
    for row in rows:
        assert max(abs(off) for off in row["averages_off"].values()) < 0.0101
    assert median(abs(row["off"]) for row in rows) < 0.03


def test_equal_figures_share_a_place() -> None:
    (group,) = [group for group in leaderboard.rank_runs((), True).paper if group.title == "8-31B"]
    schedule = {
        row.model: row.marks["dialogue_schedule"]
        for row in group.rows
        if "dialogue_schedule" in row.marks
    }
    assert schedule == {
        "Qwen2.5-14B-Instruct": 1,
        "Qwen2.5-14B-Instruct-LoRA": 1,
        "Llama-3.1-8B-Instruct-LoRA": 3,
    }


def test_complete_runs_of_one_protocol_are_ranked_best_first() -> None:
    """An incomplete run is never ranked, however good, and no run beside one of another protocol."""
    broken = made_run({**same_values(0.9), "dialogue_base": [0.9, None]}, model="broken")
    runs = [made_run(same_values(v), model=f"m{v}") for v in (0.2, 0.4, 0.3, 0.1)]
    assert placed([broken, *runs]) == [
        [("m0.4", 1), ("m0.3", 2), ("m0.2", 3), ("m0.1", None), ("broken", None)]
    ]
    assert not leaderboard.rank_runs([broken, *runs]).runs[0].rows[4].marks
    assert "broken [INCOMPLETE, unjudged]" in board_text([broken], 140)
    foreign = made_run(
        same_values(0.9), model="b", protocol={"embedder": "minilm@2"}, comparable=False
    )
    groups = leaderboard.rank_runs([runs[0], foreign]).runs
    rows = chain.from_iterable(group.rows for group in groups)
    assert [(row.model, dict(row.marks)) for row in rows] == [
        ("m0.2", {}),
        ("b", {}),
    ]
    assert groups[0].note == ""
    assert groups[1].note.endswith("differs in embedder (bge-m3@1, minilm@2)")


def test_runs_that_the_paired_test_does_not_tell_apart_share_a_rank() -> None:
    """A lead of .02 points of 100 with p .78 was a first and a second place, and two first ones on the site."""
    close = {name: [value, value + 0.1] for name, value in zip(SUBTASKS, NEAR, strict=True)}
    turned = {name: [high, low] for name, (low, high) in close.items()}
    turned["dialogue_base"] = [value + 0.01 for value in turned["dialogue_base"]]
    runs = [made_run(close, "near"), made_run(turned, "best"), made_run(same_values(0.1), "far")]
    assert placed(runs) == [[("best", 1), ("near", 1), ("far", 3)]]
    (group,) = leaderboard.rank_runs(runs).runs
    compared = compare_all_pairs(*leaderboard.item_values(runs))
    assert compared is not None
    assert compared.ranks == [1, 1, 3]
    assert [row.marks["dialogue_base"] for row in group.rows] == [1, 1, 1]  # two items show nothing
    assert "does not tell apart can share a rank" in " ".join(board_text(runs, 140).split())


def test_a_column_ranks_by_the_p_that_compare_adjusts_for_all_subtasks() -> None:
    """A subtask of p .03 alone was a first and a second place, beside p Holm .34 and no star in `compare`."""
    levels = {name: [0.5] * 6 for name in SUBTASKS}
    gains = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    gained = [0.5 + gain for gain in gains]
    ahead = {**levels, "itinerary_initialization": gained}
    runs = [made_run(levels, "level"), made_run(ahead, "ahead")]
    (group,) = leaderboard.rank_runs(runs).runs
    assert [row.marks["itinerary_initialization"] for row in group.rows] == [1, 1]
    # Ahead in every subtask: p Holm .34 in each again, .03 in the overall, which is tested by itself.
    runs = [made_run(levels, "level"), made_run(dict.fromkeys(SUBTASKS, gained), "ahead")]
    (group,) = leaderboard.rank_runs(runs).runs
    assert [row.marks["itinerary_initialization"] for row in group.rows] == [1, 1]
    assert [row.marks["overall"] for row in group.rows] == [1, 2]


def test_runs_that_differ_in_the_judge_alone_are_ranked_by_s() -> None:
    """They were "not comparable", with no way to a table of S, which no judge touches."""
    runs = [
        made_run(same_values(v), model=m, protocol={"judge": m})
        for m, v in (("a", 0.2), ("b", 0.4))
    ]
    assert (
        leaderboard.rank_runs(runs)
        .runs[1]
        .note.endswith("; --metric s compares them without a judge")
    )
    assert placed(runs, metric="s") == [[("b", 1), ("a", 2)]]
    lexical = [made_run(model=m, measure="lexical", protocol={"judge": m}) for m in ("a", "b")]
    assert len(leaderboard.rank_runs(lexical).runs) == 1  # without S there is no J either
    with pytest.raises(ConfigError, match="'rouge_l': a leaderboard is by s"):
        leaderboard.rank_runs([made_run(measure="lexical")], metric="rouge_l")


def test_the_same_run_given_twice_is_shown_once_and_said() -> None:
    """It was ranked first and first against itself."""
    assert placed([made_run()] * 2) == [[("server:m", None)]]
    assert "server:m: given more than once, shown once" in board_text([made_run()] * 2, 100)


@pytest.mark.parametrize(
    ("width", "figures"), [(80, "66.80¹ 50.80²"), (130, "66.8¹ 50.8²"), (160, "66.80¹ 50.80²")]
)
def test_the_board_has_as_many_columns_as_fit_and_names_every_model_in_full(
    width: int, figures: str
) -> None:
    text = board_text([], width, paper=True)
    lines = [line for line in text.splitlines() if "Left out" not in line]
    assert max(map(len, lines)) <= width
    for name in [*(row.model for row in paper_rows()), *unreadable_rows()]:
        assert name in text.replace("\n", " ").replace("- ", "-")
    row = next(line for line in lines if "Qwen2.5-72B-Instruct " in line)
    assert " ".join(row.split()).endswith(figures)
    assert ("Bas." in text, "Dialogue" in text) == (width > 80, width == 80)


def test_the_board_as_data_says_which_rows_are_the_papers() -> None:
    board = leaderboard.rank_runs([made_run()], True)
    rows = json.loads(table_files.table_text(board.rows, "json"))
    assert [row["source"] for row in rows] == ["run"] + ["paper"] * 37
    assert rows[1]["group"] == "1-8B (paper)"
    assert rows[1]["cells"]["overall"] == {"value": 43.12} | dict.fromkeys(
        ("low", "high", "n", "total")
    )
    assert rows[0]["group"].endswith("(your runs)")
    latex = table_files.table_text(board.rows, "latex")
    assert latex.count(r"\midrule") == 4
    assert "32B+ (paper)" in latex
    assert (
        len(
            list(
                csv.reader(
                    io.StringIO(table_files.table_text(leaderboard.rank_runs((), True).rows, "csv"))
                )
            )
        )
        == 38
    )


TOKENS = {"input_tokens": 38_211, "cache_read_tokens": 12_000, "output_tokens": 9_120}
MONEY = {"usd_paid": Decimal("1.234"), "usd_possible": Decimal("0.0499001")}
TOTALS = Totals(
    calls=470, paid=462, free=5, possibly_paid=3, **TOKENS, **MONEY, prices="2026-11-20"
)
LINE = "Cost: 1.23 US dollars for 462 calls (38,211 tokens in, 12,000 from cache; 9,120 out); at most 0.0500 more for 3"


@pytest.mark.parametrize(("dollars", "shown", "at_most"), table("benchmark", "money"))
def test_money_for_people(dollars: str, shown: str, at_most: str) -> None:
    assert (dollars_text(Decimal(dollars)), dollars_text(Decimal(dollars), at_most=True)) == (
        shown,
        at_most,
    )
    assert dollars_text(None) == "unknown"


def test_what_is_unknown_is_said() -> None:
    unknown = replace(
        TOTALS, usd_paid=None, usd_possible=None, unmetered=1, open=2, usd_open=None, prices=""
    )
    assert cost_lines({"generate": unknown}) == [
        "Cost: price unknown for 461 calls (38,211 tokens in, 12,000 from cache; 9,120 out); an unknown amount more "
        "for 3 calls whose reply never arrived and 1 call whose reply named no usage; an unknown amount more for "
        "2 calls still open"
    ]


def test_the_terminal_the_tables_and_the_page_say_it(tmp_path: Path) -> None:
    summary = made_summary(costs={"generate": TOTALS})
    assert LINE in printed(summary, 200)
    write_facts(summary, tmp_path / "tables")
    assert (
        (tmp_path / "tables" / "costs.csv")
        .read_text()
        .splitlines()[1]
        .startswith("generate,470,462,5,3,0,0,")
    )
    write_page(tmp_path / "report.html", summary, iter(()))
    page = (tmp_path / "report.html").read_text()
    assert LINE in page
    assert '<a href="#costs">Costs</a>' in page


def test_after_the_limit_the_last_line_says_what_to_raise() -> None:
    counts = RunCounts(10, 6, 6, failures={"max_cost": 4})
    money = {"usd_paid": Decimal("1.2"), "usd_possible": Decimal("0.1")}
    summary = made_summary(
        costs={"generate": Totals(calls=8, paid=8, unmetered=2, **money)}, counts=counts
    )
    assert printed(summary, 300, verbose=False, report=Path("report.html")).splitlines()[-1] == (
        "--max-cost stopped the run: 4 answers not asked for; 1.30 US dollars are spent or may be, the rest will cost "
        "about 0.8000 at this rate. Raise --max-cost in the same command to go on."
    )
    assert limit_lines(made_summary()) == []


@pytest.fixture
def paid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text('{"spec": {}}')
    price = Price(Decimal(2), Decimal(10), batch=Decimal("0.5"), date="2026-11-20")
    monkeypatch.setattr("secrets.token_hex", lambda size: "mark")
    with CallStore(folder / "calls.jsonl") as store:
        calls = StageCalls(store, "generate", "openai:m", prices=PriceList("", {"openai:m": price}))
        made = [calls.reserve(call_of(name), Bound(1000, 100)) for name in ("a", "b", "=c", "d")]
        calls.settle(
            made[0], Answer((Reply("Hi.", request_id="req_1"),), Usage(400, 50, 128), "req_1")
        )
        calls.settle(made[1], Answer((Reply("Hi."),), Usage()))
        calls.settle(made[2], FailedCall("rate_limited", "", "free"))
        calls.settle(made[3], FailedCall("timeout", "", "possibly_paid"))
        calls.plan([[(call_of("e", 2), Bound(1000, 100))]], 0.0)
    return folder


def test_every_call_is_listed_with_its_end_in_each_form(
    paid_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, *calls, _, total = costs_text(paid_run, calls=True).splitlines()
    assert [" ".join(line.split()) for line in calls] == [
        "generate 1 a#0 paid - 400 128 50 0.0013 - - req_1",
        "generate 2 b#0 paid - - - - - 0.003 - -",
        "generate 3 =c#0 free rate_limited - - - 0 - - -",
        "generate 4 d#0 possibly_paid timeout - - - - 0.003 - -",
        "generate 5 e#0 e#1 open - - - - - 0.0015 mark -",
    ]
    assert total == (
        "generate: 0.0013 US dollars for 1 call (400 tokens in, 128 from cache; 50 out); at most 0.0060 more for 1 "
        "call whose reply never arrived and 1 call whose reply named no usage; at most 0.0015 more for 1 call still "
        "open; prices of 2026-11-20"
    )
    rows = list(csv.DictReader(io.StringIO(costs_text(paid_run, calls=True, format="csv"))))
    assert [row["usd"] or row["usd_at_most"] for row in rows] == [
        "0.0013",
        "0.003",
        "0",
        "0.003",
        "0.0015",
    ]
    assert rows[2]["items"] == "'=c#0"  # no formula
    found = json.loads(costs_text(paid_run, calls=True, format="json"))
    assert found["in_all"] == found["stages"]["generate"]
    assert [call["call"] for call in found["calls"]] == [1, 2, 3, 4, 5]
    assert "calls" not in json.loads(costs_text(paid_run, format="json"))
    assert "\ngenerate,5,2,1,1,1,1,400,128,50,0.0013,0.006," in costs_text(paid_run, format="csv")
