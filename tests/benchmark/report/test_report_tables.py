"""Table 2 as CSV, JSON and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import astuple, replace

from summaries_made import made_summary, same_values

from h2htalk.benchmark.report.table2 import ALL_COLUMNS, TableRow, metrics_table, slices_table, table_row, table_text
from h2htalk.benchmark.statistics import null_class
from h2htalk.data.subtasks import SUBTASKS

BASELINES = {"constant": same_values(0.1)}
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
    summary = made_summary(UNEVEN, baselines=BASELINES, null=null_class([(1.0, True), (0.0, False), (1.0, False)], 4))
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
