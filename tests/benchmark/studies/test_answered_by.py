"""Who answered stands in every form of a study's report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from h2htalk.benchmark.raters import is_doubted
from h2htalk.benchmark.studies.exports import export_chats
from h2htalk.benchmark.studies.report.study_page import study_text
from h2htalk.benchmark.studies.run_study import run_study, score_study
from support.command_line import h2htalk_here
from support.judges import blind, careful, serving
from support.studies import cases_of, judge_of, spec, studied


@pytest.mark.parametrize("checked", [True, False])
def test_every_form_of_a_report_names_the_judge_and_whether_it_was_checked(
    tmp_path: Path, checked: bool
) -> None:
    """A blind judge's zeros looked like people's: no table said whose they were."""
    result = studied(
        tmp_path, "sap", judge=judge_of(cases_of("high_risk", "en")), arms=("none",), limit=4
    )
    path = result.study.path
    (check,) = result.planted or ()
    said = f"planted replies, English: wrong on 0 of 20 bad and 0 of 20 good ones ({check.at_turns} of 40 at turns of "
    said += "this study)"
    if not checked:  # as a study of an earlier version, which stays readable
        (path / "judgements" / "planted.jsonl").unlink()
        result = score_study(path)
        said = "the judge was not checked"
    named = f"Judge {result.judge}: {said}."
    done = h2htalk_here("study", "dossier", path, "--out", tmp_path / "dossier")
    assert done.returncode == 0, done.stderr
    files = ("report.html", "tables/table3.md", "tables/points.md", "tables/answered_by.md")
    texts = [(path / name).read_text() for name in files]
    texts += [
        (tmp_path / "dossier" / "dossier.html").read_text(),
        " ".join(study_text(result).split()),
    ]
    for text in texts:
        assert named in text.replace("\\", "")
    header, *rows = json.loads((path / "summary.json").read_text())["tables"]["answered_by"]
    assert header == ["figure", "values", "code rule", "judge", "people", "nobody"]
    judged = {name: row for name, *row in rows}["Violation response rate"]
    assert judged[0] == judged[2] > 0 == judged[3] == judged[4]


def test_a_dossier_says_that_a_judge_failed_in_one_language(tmp_path: Path) -> None:
    """The warning was cut at its first semicolon, where the language stood in which the judge had failed."""

    def reads_english(statement: str, reply: str) -> bool:
        is_chinese = any("\u4e00" <= character <= "\u9fff" for character in reply)
        return (blind if is_chinese else careful)(statement, reply)

    path = tmp_path / "study"
    with serving(reads_english) as server:
        run_study(spec("sap", server.spec, path, arms=("none",), judge=server.spec, limit=8))
    done = h2htalk_here("study", "dossier", path, "--out", tmp_path / "dossier")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "dossier" / "dossier.html").read_text()
    failed = (
        r"Chinese: wrong on 20 of 20 bad and 0 of 20 good ones \(\d+ of 40 at turns of this "
        r"study\), so its answers do"
    )
    assert (
        len(re.findall(failed, text)) >= 3
    )  # in the warnings, beside who answered, and in the table
    for arm, language, expected in (
        ("none", "zh", True),
        ("none", "en", False),
        ("sap", "en", True),
    ):
        assert is_doubted(score_study(path).planted, language, arm) == expected


def test_what_a_doubted_judge_read_is_no_training_data(tmp_path: Path) -> None:
    """Conversations that only a blind judge had accepted were exported."""
    path = tmp_path / "study"
    with serving(careful) as server:
        run_study(
            spec(
                "sap", server.spec, path, arms=("none",), judge=server.spec, limit=8, language="en"
            )
        )
    said = export_chats(path, tmp_path / "chats.jsonl", "none", all_points=False)
    assert (tmp_path / "chats.jsonl").read_text()
    assert "planted" not in said
    (path / "judgements" / "planted.jsonl").unlink()
    score_study(path)
    said = export_chats(path, tmp_path / "none.jsonl", "none", all_points=False)
    assert "read by a judge that was not checked, or failed its planted replies, " in said
    assert not (tmp_path / "none.jsonl").read_text()
