"""Table 2 as CSV, JSON and LaTeX."""

from __future__ import annotations

import csv
import io

import pytest
from summaries_made import made_summary, same_values

from h2htalk.benchmark.report.table2 import COLUMNS, TableRow, paper_rows, table_row
from h2htalk.benchmark.report.tables import (
    csv_table,
    json_table,
    latex_escaped,
    latex_table,
    metrics_csv,
    slices_csv,
    table_text,
)
from h2htalk.benchmark.statistics.table2_averages import null_class
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError

HEADINGS = [
    *("Standard", "Emotional", "Schedule", "Avg."),
    *("Basic", "Middle", "Advanced", "Response", "Initiation", "Avg."),
    *("Synthesis", "Refinement", "Initialization", "Avg."),
    "Overall",
]
BASELINES = {"constant": same_values(0.1)}
UNEVEN = {name: [0.1 + i / 30, 0.2, 1 / 3] for i, name in enumerate(SUBTASKS)}


def records(rows: list[TableRow]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table(rows))))


def test_the_columns_are_table_2s() -> None:
    assert [c.heading for c in COLUMNS] == HEADINGS
    assert [c.key for c in COLUMNS if not c.is_average] == list(SUBTASKS)


def test_csv_and_json_hold_every_figure_in_full_precision() -> None:
    summary = made_summary(UNEVEN)
    (record,), (plain,) = records([table_row(summary)]), json_table([table_row(summary)])
    row = summary.rows.row("s")
    assert row is not None
    for name, cell in row.cells.items():
        assert float(record[name]) == cell.value == plain["cells"][name]["value"]
        assert (float(record[f"{name}_low"]), float(record[f"{name}_high"])) == (cell.low, cell.high)
        assert (record[f"{name}_n"], record[f"{name}_total"]) == ("3", "3")
    assert float(record["overall"]) == row.overall.value
    assert float(record["items_mean"]) == row.items_mean.value
    assert float(record["plain_mean"]) == row.plain_mean.value
    assert float(record["dialogue_avg"]) == row.dimensions["dialogue"].value


def test_a_missing_figure_is_empty_and_never_zero() -> None:
    (record,) = records([table_row(made_summary(same_values(0.4, ("dialogue_base",))))])
    assert (record["dialogue_base"], record["dialogue_emotion"], record["overall"]) == ("40.0", "", "")


def test_rows_say_what_they_are() -> None:
    values = {**same_values(0.4), "dialogue_base": [0.4, None]}
    (record,) = records([table_row(made_summary(values, comparable=False, measure="lexical"))])
    facts = ("source", "split", "languages", "measure", "complete", "comparable", "judged")
    said = [record[key] for key in facts]
    assert said == ["run", "mini 1", "en+zh", "lexical", "False", "False", "False"]


def test_a_run_without_a_judged_subtask_is_not_unjudged() -> None:
    assert table_row(made_summary(same_values(0.4, ("dialogue_base",)))).judged
    assert not table_row(made_summary(same_values(0.4, ("itinerary_basic",)))).judged


def latex_lines(summaries: list[Summary]) -> list[str]:
    return latex_table([table_row(summary) for summary in summaries]).splitlines()


def test_latex_rows_have_as_many_cells_as_columns() -> None:
    lines = latex_lines([made_summary(UNEVEN, model="a & b"), made_summary()])
    start, end = lines.index(r"\midrule") + 1, lines.index(r"\bottomrule")
    body = [line.replace(r"\&", "") for line in lines[start:end]]
    assert {line.count("&") for line in body} == {17}
    assert len(body) == 6
    heading = next(line for line in lines if line.startswith(r" & \multicolumn"))
    groups = [
        rf"\multicolumn{{{n}}}{{c}}{{{name}}}" for n, name in ((4, "Dialogue"), (6, "Itinerary"), (4, "Recollection"))
    ]
    assert heading.removesuffix(r" \\").split(" & ") == ["", *groups, "", "", ""]
    assert r"\cmidrule(lr){2-5}\cmidrule(lr){6-11}\cmidrule(lr){12-15}" in lines


def test_latex_shows_two_decimals_and_a_dash_where_there_is_nothing() -> None:
    line = next(line for line in latex_lines([made_summary(same_values(1 / 3, ("dialogue_base",)))]) if "33.33" in line)
    assert line.count("--") == 14  # the mean of items and the mean of cells are there


def test_latex_has_all_three_overall_means_and_says_what_they_are() -> None:
    lines = latex_lines([made_summary(UNEVEN)])
    heading = next(line for line in lines if line.startswith("Model & "))
    assert heading.removesuffix(r" \\").split(" & ")[-4:] == ["Avg.", "Overall", "Items", "Cells"]
    row = made_summary(UNEVEN).rows.s
    assert row is not None
    means = [f"{cell.value:.2f}" for cell in (row.overall, row.items_mean, row.plain_mean)]
    line = next(line for line in lines if line.startswith("server:m"))
    assert [cell.split(" ")[0] for cell in line.split(" & ")[-3:]] == means
    assert any("Items is the mean over the scored items" in line for line in lines)


def test_latex_has_the_items_above_and_the_half_intervals_below() -> None:
    lines = latex_lines([made_summary(baselines=None)])
    at = next(number for number, line in enumerate(lines) if line.startswith("server:m"))
    assert lines[at - 1].startswith(r"{\scriptsize items} & {\scriptsize 2} & ")
    assert lines[at - 1].endswith(r"{\scriptsize 22} & {\scriptsize 22} & {\scriptsize 22} \\")
    assert lines[at + 1].startswith(r" & {\scriptsize $\pm$12} & ")
    assert any("half the width of the 95" in line for line in lines)


def test_latex_says_the_items_again_only_where_they_change() -> None:
    incomplete = made_summary({**same_values(0.4), "dialogue_base": [0.4, None]}, model="b")
    items = [line for line in latex_lines([made_summary(), made_summary(), incomplete]) if "items}" in line]
    assert len(items) == 2
    assert r"{\scriptsize 1/2}" in items[1]


def test_latex_of_the_paper_alone_has_neither() -> None:
    text = latex_table(paper_rows())
    assert "scriptsize" not in text
    assert "& Overall \\\\" in text


def test_a_name_at_the_head_of_a_line_is_no_option_of_the_line_end() -> None:
    """LaTeX looks for `[` and `*` behind a line end, over the newline too."""
    assert latex_escaped("[x]*") == "{[}x]{*}"


def test_latex_marks_and_explains_each_caution_once_and_only_where_it_holds() -> None:
    incomplete = made_summary({**same_values(0.4), "dialogue_base": [0.4, None]}, model="a", judged=True)
    foreign = made_summary(model="b", comparable=False, judged=True)
    lexical = made_summary(model="c", measure="lexical", comparable=False, judged=True)
    plain = made_summary(model="d", judged=True)
    text = "\n".join(latex_lines([incomplete, foreign, lexical, plain, made_summary(model="e")]))
    for name, sign in zip("abce", (r"\dagger", r"\ddagger", r"\ast", r"\S"), strict=True):
        assert f"\n{name}$^{{{sign}}}$ & " in text
        assert text.count(f"$^{{{sign}}}$ ") == 2
    assert "\nd & " in text


def test_latex_prints_names_and_never_runs_them() -> None:
    assert latex_escaped("a_b %{x}$&#^~\\input<>") == (
        r"a\_b \%\{x\}\$\&\#\textasciicircum{}\textasciitilde{}\textbackslash{}input\textless{}\textgreater{}"
    )


def test_places_are_marked_in_latex() -> None:
    row = table_row(made_summary(judged=True))
    marked = TableRow(row.model, "run", row.cells, marks={"overall": 1, "dialogue_base": 2, "dialogue_avg": 3})
    text = latex_table([marked])
    assert r"\textbf{40.00}" in text
    assert r"\underline{40.00}" in text
    assert r"\textit{40.00}" in text


# --- One figure a line ------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_slices_say_their_measure_and_marks() -> None:
    lines = lines_of(slices_csv(made_summary(comparable=False, s_languages=("en",))))
    facts = ("of", "languages", "measure", "n", "complete", "comparable", "judged")
    assert [[line[key] for key in facts] for line in lines] == [
        [of, "en", "s", n, "True", "False", "False"] for of, n in (("none", "21"), ("high", "1"))
    ]


def test_every_figure_of_model_and_baselines_stands_in_metrics_with_its_interval_and_n() -> None:
    summary = made_summary(UNEVEN, baselines=BASELINES, null=null_class([(1.0, True), (0.0, False), (1.0, False)], 4))
    found = {(x["model"], x["metric"], x["of"]): x for x in lines_of(metrics_csv(summary))}
    row = summary.rows.compliance
    for metric in ("s", "lexical", "contract"):
        for key, cell in (
            *row.cells.items(),
            ("overall", row.overall),
            ("itinerary_avg", row.dimensions["itinerary"]),
        ):
            line = found["server:m", metric, key]
            numbers = [float(line[part]) for part in ("value", "low", "high", "n", "total")]
            assert numbers == list(cell.to_dict().values())
            assert ("constant", metric, key) in found
    assert [found["server:m", "rouge_l", "dialogue_base"][key] for key in ("value", "low", "n")] == [
        "25.0",
        "24.0",
        "3",
    ]
    null = found["server:m", "null_precision", "recollection_synthesis"]
    assert (null["value"], null["n"], null["total"]) == ("50.0", "3", "4")


def test_metrics_name_the_languages_of_each_figure() -> None:
    lines = lines_of(metrics_csv(made_summary(s_languages=("en",))))
    assert {(line["languages"], line["metric"]) for line in lines if line["metric"] in ("s", "lexical")} == {
        ("en", "s"),
        ("en+zh", "lexical"),
    }


def test_a_baseline_with_an_item_that_it_cannot_answer_is_incomplete() -> None:
    summary = made_summary(baselines={"random-reference": {**same_values(0.1), "dialogue_base": [None, 0.1]}})
    assert not table_row(summary, "random-reference").complete
    assert table_row(summary).complete


def test_an_unknown_kind_names_the_choices() -> None:
    with pytest.raises(ConfigError, match="choose from terminal, csv, json, latex"):
        table_text([], "xlsx")
