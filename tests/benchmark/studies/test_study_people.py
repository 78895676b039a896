"""People read a study's replies blind, their answers go before a judge's; export, erasure and the dossier."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from command_line import h2htalk_here
from rounds_made import NAMES, answer, people
from studies_made import REPLY, arm_lines, cases_of, judge_lines, spec, write_script

from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.exports import export_chats, write_dossier
from h2htalk.benchmark.studies.people import close_study_round, open_study_round
from h2htalk.benchmark.studies.point_answers import AnsweredReply, PointAnswer
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from h2htalk.data.case import Case
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.folder_kinds import erase
from h2htalk.data.files import read_jsonl
from h2htalk.data.links import read_links
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.round_folder import RoundFolder


def studied(folder: Path, violates: bool = False) -> StudyResult:
    """Two arms of some English cases; a judge finds nothing wrong, or in every second turn without SAP."""
    cases = cases_of("high_risk", "en")

    def says(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
        return kind == "must" or (number % 2 == 0 and aspect == "dismiss")

    own = arm_lines("none", cases, "It will pass.") if violates else []
    model = write_script(folder / "model.jsonl", [{"id": "*", "text": REPLY["en"]}, *own])
    lines = judge_lines(cases, lambda *point: point[-1] == "must") + judge_lines(cases, says, "It will pass.")
    judge = write_script(folder / "judge.jsonl", lines)
    return run_study(spec("sap", model, folder / "study", arms=("sap", "none"), judge=judge, language="en", limit=8))


def settings(folder: Path) -> dict[str, object]:
    return {"annotators": str(people(folder / "people.csv", *NAMES[:2])), "overlap": 2, "format": "csv"}


def test_people_rate_safety_blind_to_the_arm(tmp_path: Path) -> None:
    study, round_ = studied(tmp_path), tmp_path / "round"
    path = study.study.path
    status, _ = open_study_round(path, round_, options=settings(tmp_path))
    assert status.state == "open"
    ids = {item.id for item in RoundFolder(round_).items()}
    turns = [one for one in study.replies if one.case.study == "high_risk" and one.reply.arm == "sap"]
    assert len(ids) == len(turns)  # both arms gave equal replies: they are read once
    sheets = "".join(one.read_text() for one in (round_ / "spreadsheets").iterdir())
    assert REPLY["en"] in sheets
    assert "sap/" not in sheets
    bad = {min(ids): {"perception": "2", "violation": "yes", "violations": "crisis_dismissed"}}
    answer(round_, lambda item, annotator: bad.get(item, {"perception": "4", "violation": "no"}))
    result, told = close_study_round(path, round_)
    assert told == [f"{2 * len(ids)} answers of people"]
    found = figure_of(select(result.observations, "violation", "sap"))
    assert (found.hits, found.by) == (1, "people")
    assert figure_of(select(result.observations, "perception", "none")).by == "people"
    assert set(load_study(path).observations) == set(result.observations)
    (tmp_path / "other").mkdir()
    with pytest.raises(RoundError, match="not from the answers of"):
        close_study_round(studied(tmp_path / "other").study.path, round_)


def test_a_judges_violation_rate_is_corrected_by_peoples_labels(tmp_path: Path) -> None:
    study = studied(tmp_path, violates=True)
    own, path = [one for one in study.replies if one.case.study == "high_risk"], study.study.path
    harmful = {one.reply.id for one in own if one.violates}
    missed = min(one.reply.id for one in own if one.reply.arm == "sap")  # a harmful reply that the judge misses
    open_study_round(path, tmp_path / "round", options=settings(tmp_path))
    bad = {"perception": "2", "violation": "yes", "violations": "other"}
    good = {"perception": "4", "violation": "no"}
    answer(tmp_path / "round", lambda item, annotator: bad if item in {*harmful, missed} else good)
    close_study_round(path, tmp_path / "round")
    text, number = (path / "tables" / "calibration.md").read_text(), len(harmful)
    assert f"{number + 1} are harmful; the judge finds {number} of these, and calls 0 of the others harmful." in text
    # People read every reply of the arm, so that the corrected rate is theirs.
    arm = [one for one in own if one.reply.arm == "sap"]
    assert f"| with SAP | 0.0 %, 0 of {len(arm)} | {100 / len(arm):.1f} % (" in text


def test_people_answer_points_instead_of_a_judge(tmp_path: Path) -> None:
    study, round_ = tmp_path / "study", tmp_path / "round"
    model = write_script(tmp_path / "model.jsonl", REPLY["en"])
    run_study(spec("instructions", model, study, language="en", limit=8))
    words = ["--ask", "points", "--format", "csv", "--annotators", settings(tmp_path)["annotators"], "--overlap", 2]
    done = h2htalk_here("study", "open-round", study, "--out", round_, *words)
    assert done.returncode == 0, done.stderr
    told = (round_ / "guidelines" / "en.md").read_text()
    assert "Is this statement true of the reply?" in told
    assert "could not agree" not in told  # it is no adjudication of ties
    points = len(list(RoundFolder(round_).items()))
    answer(round_, lambda item, annotator: {"label": "yes"})
    done = h2htalk_here("study", "close-round", study, round_)
    assert f"{points} answers of people" in done.stdout
    result = load_study(study)
    rows = [row for row in result.observations if row.figure.startswith(("must.", "must_not."))]
    assert {(row.value, row.by) for row in rows} == {(1.0, "people")}
    assert figure_of(select(result.observations, "need_met")).value == 1.0
    with pytest.raises(RoundError, match="no reply"):
        open_study_round(study, tmp_path / "other", arms=("sap",))


def test_accepted_conversations_become_training_data(tmp_path: Path) -> None:
    result = studied(tmp_path, violates=True)
    study, out = result.study, tmp_path / "chats.jsonl"
    words = ["study", "export", study.path, "--chat-format", "--arm", "none", "--out", out]
    done = h2htalk_here(*words)
    assert done.returncode == 0, done.stderr
    assert read_links(study.path)[-1].path == out
    long = {one.case.id for one in result.replies if one.reply.arm == "none" and one.violates}
    assert f"a violation {len(long)}" in done.stdout
    written = [line for _, line in read_jsonl(out)]
    assert {line["case"] for line in written} == {case.id for case in study.cases} - long != set()
    for line in written:
        assert [one["role"] for one in line["messages"][:2]] == ["system", "user"]
        assert line["messages"][-1] == {"role": "assistant", "content": "It will pass."}
        assert (line["licence"], bool(line["canary"])) == ("CC-BY-4.0", True)
    assert h2htalk_here(*words).returncode == 2  # the file exists


def test_replies_that_nobody_would_train_on_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, name = studied(tmp_path), "h2htalk.benchmark.studies.exports.load_study"
    cut = [replace(one, reply=replace(one.reply, finish="length")) for one in result.replies]
    low = [replace(one, perception=3.0) for one in result.replies]
    for replies, why in ((cut, "cut or refused"), (low, "low safety perception")):
        monkeypatch.setattr(name, lambda path, own=replies: replace(result, replies=tuple(own)))
        told = export_chats(result.study.path, tmp_path / f"{why}.jsonl", "none")
        assert told.startswith("0 conversations")
        assert f"{why} {len(result.study.cases)}" in told


@pytest.mark.parametrize(
    ("by_code", "people", "by_judge", "violates"),
    [
        (True, False, None, True),  # what code found, people do not take back
        (None, True, False, True),
        (None, False, True, False),
        (None, None, True, True),
        (None, None, None, None),
        (False, None, False, False),
    ],
)
def test_code_then_people_then_the_judge_say_what_is_a_violation(
    by_code: bool | None, people: bool | None, by_judge: bool | None, violates: bool | None
) -> None:
    case = next(one for one in cases_of("high_risk", "en") if one.study == "high_risk")
    point = next(point for point in case.points if point.kind == "must_not")
    code = PointAnswer(point, by_code, "code") if by_code is not None else PointAnswer(point, by_judge, "judge")
    reply = StudyReply("none", case.id, "s1.t1", "live", "So.")
    one = AnsweredReply(reply, case, (code, PointAnswer(point, by_judge, "judge")), violation=people)
    assert one.violates is violates
    harmless = replace(case, points=tuple(p for p in case.points if p.kind == "must"))
    assert AnsweredReply(reply, harmless, ()).violates is None


def test_an_erasure_reaches_replies_judgements_people_and_figures(tmp_path: Path) -> None:
    study = studied(tmp_path).study
    open_study_round(study.path, tmp_path / "round", options=settings(tmp_path))
    answer(tmp_path / "round", lambda item, annotator: {"perception": "4", "violation": "no"})
    close_study_round(study.path, tmp_path / "round")
    gone = next(case for case in study.cases if case.study == "high_risk")
    words = gone.sessions[0].turns[0].user
    found = erase(study.path, ErasedIds(frozenset({gone.id})))
    assert found.removed == 1
    left = b"".join(
        path.read_bytes() for path in sorted(study.path.rglob("*")) if path.is_file() and path.name != "erased.jsonl"
    )
    assert json.dumps(words, ensure_ascii=False).encode()[1:-1] not in left
    assert gone.id.encode() not in left
    result = load_study(study.path)
    assert gone.id not in {one.case.id for one in result.replies}
    assert erase(study.path, ErasedIds(frozenset({gone.id}))).removed == 0
    calls = (study.path / "calls.jsonl").read_bytes()
    again = run_study(study.spec)  # the split that it names still holds the case
    assert gone.id not in {case.id for case in again.study.cases}
    assert (study.path / "calls.jsonl").read_bytes() == calls
    with pytest.raises(DataError, match="every item"):
        erase(study.path, ErasedIds(frozenset(case.id for case in study.cases)))


@pytest.mark.parametrize(
    ("program", "said"),
    [('#!/bin/sh\nsleep 60 &\necho $! > "$0.child"\nwait\n', "timed out"), ("#!/bin/sh\n", "cannot be written")],
)
def test_a_browser_that_fails_ended_the_dossier_or_left_the_old_pdf_as_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    browser, out = tmp_path / "chromium", tmp_path / "dossier"
    browser.write_text(program)
    browser.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(browser))
    monkeypatch.setattr("h2htalk.benchmark.studies.exports.SECONDS", 1.0)
    out.mkdir()
    (out / "dossier.pdf").write_text("old")
    page, pdf = write_dossier([], out)
    assert page == f"{out / 'dossier.html'}"
    assert pdf.startswith(f"no PDF: {browser} failed (")
    assert said in pdf
    assert not (out / "dossier.pdf").exists()
    if said == "timed out":  # its children end with it
        child = Path("/proc", (tmp_path / "chromium.child").read_text().strip(), "stat")
        for _ in range(100):
            if not child.exists() or ") Z " in child.read_text():
                break
            time.sleep(0.05)
        else:
            raise AssertionError("a child of the browser is alive")
    browser.write_text('#!/bin/sh\nfor word; do case $word in --print-to-pdf=*) echo new > "${word#*=}";; esac; done\n')
    assert list(write_dossier([], out))[1] == f"{out / 'dossier.pdf'}"


def test_the_dossier_says_what_was_tested_and_names_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    study, articles = studied(tmp_path, violates=True).study, files("h2htalk.benchmark.studies") / "dossier"
    done = h2htalk_here("study", "dossier", study.path, "--out", tmp_path / "dossier")
    assert done.returncode == 0, done.stderr
    assert [(link.kind, link.path) for link in read_links(study.path)] == [("copy", tmp_path / "dossier")]
    page = (tmp_path / "dossier" / "dossier.html").read_text()
    for text in ("no legal advice", "section 22602(b)", "Violation response rate", "not by clinicians"):
        assert text in page
    assert study.split.fingerprint in page
    # Provisions about danger name tables of the study of danger alone.
    model = write_script(tmp_path / "model.jsonl", REPLY["en"])
    run_study(spec("instructions", model, tmp_path / "other", language="en", limit=4))
    list(write_dossier([tmp_path / "other"], tmp_path / "dossier"))
    number = (articles / "articles.toml").read_text().count("[[article]]")
    assert (tmp_path / "dossier" / "dossier.html").read_text().count("none in this dossier") == number


def test_edited_results_are_refused(tmp_path: Path) -> None:
    path = studied(tmp_path).study.path
    (path / "observations.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="study score"):
        load_study(path)
    assert h2htalk_here("study", "score", path).returncode == 0
    assert load_study(path).observations
    lines = (path / "inputs" / "split" / "cases.jsonl").read_text().splitlines()
    (path / "inputs" / "split" / "cases.jsonl").write_text("\n".join(lines[1:]) + "\n")
    with pytest.raises(DataError, match="signature"):
        load_study(path)
    (path / "erased.jsonl").write_text('{"id": "x"}\n')
    with pytest.raises(DataError, match=r"erased\.jsonl"):
        score_study(path)
