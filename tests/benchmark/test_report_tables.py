"""Table 2 as CSV, JSON and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from summaries_made import made_summary, same_values

from h2htalk.benchmark.report.latex import latex_escaped, latex_table
from h2htalk.benchmark.report.layout import COLUMNS
from h2htalk.benchmark.report.rows import TableRow, table_row
from h2htalk.benchmark.report.tables import csv_table, json_table, spreadsheet_text, table_text, write_tables
from h2htalk.benchmark.summary import Summary
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError

HEADINGS = [
    *("Standard", "Emotional", "Schedule", "Avg."),
    *("Basic", "Middle", "Advanced", "Response", "Initiation", "Avg."),
    *("Synthesis", "Refinement", "Initialization", "Avg."),
    "Overall",
]
UNEVEN = {name: [0.1 + i / 30, 0.2, 1 / 3] for i, name in enumerate(SUBTASKS)}


def records(rows: list[TableRow]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table(rows))))


def test_the_columns_are_table_2s() -> None:
    assert [c.heading for c in COLUMNS] == HEADINGS
    assert [c.key for c in COLUMNS if not c.is_average] == list(SUBTASKS)


def test_csv_and_json_hold_every_figure_in_full_precision() -> None:
    summary = made_summary(UNEVEN)
    (record,), (plain,) = records([table_row(summary)]), json_table([table_row(summary)])
    row = summary.standing.row("s")
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
    said = [record[key] for key in ("source", "split", "measure", "complete", "comparable", "judged")]
    assert said == ["run", "mini 1", "lexical", "False", "False", "False"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\t=1", " =1", "＝1", "＋1", "－1", "＠a"])
def test_no_text_cell_is_a_formula(text: str) -> None:
    (record,) = records([table_row(made_summary(model=text))])
    assert record["model"].startswith("'") or record["model"].startswith("\\t")
    assert spreadsheet_text("Qwen2.5-7B") == "Qwen2.5-7B"


def latex_lines(summaries: list[Summary]) -> list[str]:
    return latex_table([table_row(summary) for summary in summaries]).splitlines()


def test_latex_rows_have_as_many_cells_as_columns() -> None:
    lines = latex_lines([made_summary(UNEVEN, model="a & b"), made_summary()])
    start, end = lines.index(r"\midrule") + 1, lines.index(r"\bottomrule")
    assert [line.replace(r"\&", "").count("&") for line in lines[start:end]] == [15, 15]
    heading = next(line for line in lines if line.startswith(r" & \multicolumn"))
    groups = [
        rf"\multicolumn{{{n}}}{{c}}{{{name}}}"
        for n, name in ((4, "Dialogue"), (6, "Itinerary"), (4, "Recollection"))
    ]
    assert heading.removesuffix(r" \\").split(" & ") == ["", *groups, ""]
    assert r"\cmidrule(lr){2-5}\cmidrule(lr){6-11}\cmidrule(lr){12-15}" in lines


def test_latex_shows_two_decimals_and_a_dash_where_there_is_nothing() -> None:
    line = next(
        line
        for line in latex_lines([made_summary(same_values(1 / 3, ("dialogue_base",)))])
        if "33.33" in line
    )
    assert line.count("--") == 14


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
    marked = TableRow(
        row.model, "run", row.cells, marks={"overall": 1, "dialogue_base": 2, "dialogue_avg": 3}
    )
    text = latex_table([marked])
    assert r"\textbf{40.00}" in text
    assert r"\underline{40.00}" in text
    assert r"\textit{40.00}" in text


def test_write_tables_writes_the_model_and_its_floors(tmp_path: Path) -> None:
    summary = made_summary(floors={"constant": same_values(0.1)})
    paths = write_tables(summary, tmp_path)
    assert [path.name for path in paths] == ["table2.csv", "table2.json", "table2.tex", "slices.csv"]
    plain = json.loads(paths[1].read_text())
    assert [(row["model"], row["source"]) for row in plain] == [("server:m", "run"), ("constant", "floor")]
    assert "constant & 10.00" in paths[2].read_text().replace(r"$^{\S}$", "")
    slices = list(csv.DictReader(paths[3].open()))
    assert [(line["tag"], line["of"], line["n"]) for line in slices] == [
        ("risk", "none", "21"),
        ("risk", "high", "1"),
    ]


def test_a_floor_with_an_item_that_it_cannot_answer_is_incomplete() -> None:
    summary = made_summary(floors={"random-reference": {**same_values(0.1), "dialogue_base": [None, 0.1]}})
    assert not table_row(summary, "random-reference").complete
    assert table_row(summary).complete


def test_an_unknown_kind_names_the_choices() -> None:
    with pytest.raises(ConfigError, match="choose from terminal, csv, json, latex"):
        table_text([], "xlsx")
