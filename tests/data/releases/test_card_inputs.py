"""What a card reads of finished runs and analyses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from analysis_made import made_analysis
from summaries_made import made_summary, same_values

from h2htalk.analysis.report.figure_specs import figure_specs
from h2htalk.analysis.report.html_page import page_text
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_json, write_text
from h2htalk.data.releases.card_inputs import ITEMS_MEAN, OVERALL, read_figures, read_results
from h2htalk.data.run_folder import MADE_BY, RunFolder
from h2htalk.errors import ConfigError, DataError, H2HTalkError

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt" viewBox="0 0 10 10"></svg>'


def make_run(folder: Path, summary: Summary | None) -> Path:
    signature = made_summary().signature.to_dict()
    write_json(folder / "run.json", {"spec": {}, "signature": signature, "package_version": "0.1.0"})
    if summary is not None:
        RunFolder(folder).write_summary(summary.to_dict())
    return folder


def test_a_run_gives_its_model_and_the_trivial_answers(tmp_path: Path) -> None:
    summary = made_summary(same_values(0.5), model="openai:m", baselines={"constant": same_values(0.1)})
    model, constant = read_results(make_run(tmp_path / "a", summary))
    assert (model.name, constant.name, model.split) == ("openai:m", "constant", "mini 1")
    assert model.measure == "S, unjudged (en, zh)"
    row = summary.rows.s or {}
    assert row is not None
    assert model.cells[OVERALL] == (row["overall"].value, row["overall"].low, row["overall"].high)
    assert constant.cells[ITEMS_MEAN][0] == pytest.approx(10)
    assert set(model.cells) == {OVERALL, ITEMS_MEAN, "dialogue", "itinerary", "recollection"}
    assert (model.scored, model.total) == (22, 22)
    judged = made_summary(same_values(0.5), s_languages=("en",), comparable=False, judged=True)
    assert [one.measure for one in read_results(make_run(tmp_path / "b", judged))] == ["S of another embedder (en)"]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("server:qwen@https://10.0.0.7:8000/v1?api-version=1", "server:qwen"),
        ("hf:/home/alice/models/mine", "hf:mine"),
        ("hf:../mine", "hf:mine"),
        ("vllm:lab/model-7B", "vllm:lab/model-7B"),
        ("embedded", "embedded"),
    ],
)
def test_a_card_tells_no_address_and_no_folder(tmp_path: Path, model: str, shown: str) -> None:
    assert read_results(make_run(tmp_path, made_summary(model=model)))[0].name == shown


def test_runs_that_are_not_finished_are_refused(tmp_path: Path) -> None:
    unscored = made_summary(same_values(0.5) | {"dialogue_base": [0.5, None]})
    cases: list[tuple[Path, type[H2HTalkError], str]] = [
        (make_run(tmp_path / "a", unscored), ConfigError, "incomplete"),
        (make_run(tmp_path / "b", None), ConfigError, "h2htalk score"),
        (tmp_path / "c", DataError, "not a run folder"),
    ]
    damaged = make_run(tmp_path / "d", made_summary())
    RunFolder(damaged).write_summary({"incomplete": False, "main": {}})
    for folder, kind, message in [*cases, (damaged, DataError, "not a summary of this version")]:
        with pytest.raises(kind, match=message):
            read_results(folder)


def make_analysis(folder: Path, *more: str) -> Path:
    """The page and the summary of an analysis of the split 0a (and `more`), with empty figures."""
    analysis = made_analysis()
    shown = figure_specs(analysis)
    write_json(folder / "summary.json", {"made_by": MADE_BY, "splits": ["0a", *more]})
    write_text(folder / "index.html", page_text(analysis, shown, {spec.name: SVG for spec in shown}, {"seed": "0"}))
    for spec in shown:
        write_text(folder / "figures" / f"{spec.name}.png", spec.name)
    return folder


def test_the_figures_of_the_paper_come_with_language_and_caption(tmp_path: Path) -> None:
    figures = read_figures(make_analysis(tmp_path), "0a")
    assert [path.stem for path in figures][:3] == ["lengths_en", "words_en_instruction", "words_en_response"]
    assert len(figures) == 12
    assert all(path.is_file() for path in figures)
    language, caption = figures[tmp_path / "figures" / "words_zh_response.png"]
    assert language == "zh"
    assert re.fullmatch("Words of the responses. .*", caption)
    assert "“memory”" in caption


def test_figures_of_other_folders_or_rows_are_refused(tmp_path: Path) -> None:
    """Words of erased people, private references or another split came into a card."""
    write_json(tmp_path / "summary.json", {"made_by": "another"})
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="h2htalk analyze"):
            read_figures(folder, "0a")
    for rows, more in (("0b", ()), ("0a", ("0c",))):
        with pytest.raises(ConfigError, match=rf"not those of the public rows .*\({rows}\)"):
            read_figures(make_analysis(tmp_path / rows, *more), rows)
