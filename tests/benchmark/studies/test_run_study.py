"""Running a study: what is asked, killed, resumed, estimated; judges and people; training data; the dossier."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from h2htalk.benchmark.judge.judgements import PeopleRating
from h2htalk.benchmark.judge.rubric import Judgement
from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.prompts.sap import PRINCIPLES, Sap
from h2htalk.benchmark.report.pdf import page_numbers
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies import run_study as studies
from h2htalk.benchmark.studies import study_rounds
from h2htalk.benchmark.studies.conversations import (
    CONTROLS,
    LIVE,
    ArmConversations,
    StudyPrompts,
    StudyReply,
)
from h2htalk.benchmark.studies.dossier_document import write_dossier
from h2htalk.benchmark.studies.exports import refusal_of
from h2htalk.benchmark.studies.points.judge_requests import judge_requests
from h2htalk.benchmark.studies.points.point_answers import AnsweredReply, PointAnswer, answer_points
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import load_study, plan_study, run_study
from h2htalk.data.case import points_at
from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.links import read_links
from h2htalk.data.scenario import Turn, conversation_text
from h2htalk.errors import ConfigError, DataError, RoundError, quoted
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.providers import ProviderServer, price_file
from support.kills import kill_when
from support.rounds import NAMES, answer, people
from support.runs import baseline_run
from support.studies import (
    HARMFUL,
    REPLY,
    arm_lines,
    cases_of,
    judge_lines,
    judge_of,
    spec,
    studied,
    write_cases,
    write_script,
)
from support.tables import table


def lines_of(path: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []
    )


def test_no_paid_call_is_repeated_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(price_file())
    words = [
        "study",
        "sap",
        "openai:gpt-test",
        "--arms",
        "sap,none",
        "--limit",
        "6",
        "--language",
        "en",
    ]
    words += ["--concurrency", "3", "--prices", str(tmp_path / "prices.toml"), "--out"]
    whole = tmp_path / "whole"
    study = tmp_path / "study"
    command = [sys.executable, "-m", "h2htalk", *words]

    def stored(folder: Path) -> tuple[list[str], int]:
        """The stored replies, and the calls behind them: equal requests share one, and all but one have `copy`."""
        lines = [line for line in lines_of(folder / "calls.jsonl") if "text" in line]
        return [line["id"] for line in lines], sum("copy" not in line for line in lines)

    with ProviderServer(latency=0.03) as server:
        quiet: dict[str, Any] = {"env": server.environment(), "stdout": subprocess.DEVNULL}
        subprocess.run([*command, str(whole)], check=True, **quiet)
        number = len(stored(whole)[0])
        before = len(server.charged())
        assert before == stored(whole)[1] < number
        for stop in (number // 5, number - 4):
            process = subprocess.Popen([*command, str(study)], stderr=subprocess.DEVNULL, **quiet)
            kill_when(process, lambda: len(stored(study)[0]), stop)
        kept = stored(study)[1]
        paid = len(server.charged())
        assert paid - before - kept <= 2 * 3  # at most what was in flight at each kill
        subprocess.run([*command, str(study)], check=True, **quiet)
        assert len(server.charged()) - paid == before - kept
    assert (
        f"for {before:,} calls" in h2htalk_here("costs", whole).stdout
    )  # said that a study is no run
    assert len(stored(study)[0]) == len(set(stored(study)[0])) == number


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)


def test_control_arms_are_as_long_as_sap_and_name_the_same_help_lines() -> None:
    prompts = StudyPrompts.load()
    for language in LANGUAGES:
        rows = prompts.prompts.help_lines.rows(language, "GB")
        full = prompts.scaffold("sap", Sap(), language, rows)
        help_text = sum(map(len, rows))
        for arm in CONTROLS:
            text = prompts.scaffold(arm, Sap(()), language, rows)
            assert all(row in text for row in rows)
            assert abs((len(text) - help_text) / (len(full) - help_text) - 1) < 0.1
    assert prompts.scaffold("none", Sap(()), "en") == ""


@pytest.mark.parametrize("help_lines", ["all", "none"])
def test_every_arm_is_told_the_same_help_lines(tmp_path: Path, help_lines: str) -> None:
    """Only the arm without SAP did not see the list, so that part of what SAP did was to know it."""
    arms = ("sap", "none", "rules", "reworded", "no-crisis-conduct")
    made = spec(
        "sap",
        write_script(tmp_path / "model.jsonl", "x"),
        tmp_path / "s",
        arms=arms,
        help_lines=help_lines,
    )
    case = replace(next(one for one in cases_of("high_risk", "en")), country="GB")
    for arm in made.arms:
        request = next(ArmConversations(plan_study(made), arm).live(case))
        rows = re.findall(
            r"^- .*(?:116 123|emergency 999)", request.messages[0].content, re.MULTILINE
        )
        assert len(rows) == (2 if help_lines == "all" else 0), arm


def test_a_dry_run_counts_calls_and_each_principle_has_an_arm_of_its_own(tmp_path: Path) -> None:
    script = write_script(tmp_path / "model.jsonl", REPLY["en"])
    out = tmp_path / "study"
    words = ["study", "sap", script, "--language", "en", "--out", out]
    done = h2htalk_here(*words, "--arms", "sap,none", "--judge", script, "--dry-run")
    # Each turn of a person in danger twice (script and running conversation), those of look-alikes once, in two arms.
    cases = cases_of("high_risk", "en")
    once = sum(len([*case.turns()]) for case in cases)
    twice = sum(len([*case.turns()]) for case in cases if case.study == "high_risk")
    numbers = (
        2 * (twice + once),
        2 * once + 40,
    )  # the judge reads 20 good and 20 bad planted replies besides
    calls = [f"at most {number:,} calls" in done.stdout for number in numbers]
    assert f"of which 40 planted replies ({4000 / (2 * once + 40):.0f} %)" in done.stdout
    assert (calls, out.exists()) == ([True, True], False)
    done = h2htalk_here(*words, "--each-principle", "--limit", "2")
    assert done.returncode == 0, done.stderr
    arms = {line["id"].partition("/")[0] for line in lines_of(tmp_path / "study" / "calls.jsonl")}
    assert arms == {"sap", "none", "rules", "reworded"} | {
        f"no-{one.replace('_', '-')}" for one in PRINCIPLES
    }
    assert "SAP without crisis conduct" in done.stdout
    assert (
        "SS and S: left out" in done.stdout
    )  # the default was an embedder that has to be installed first
    assert "no ss" not in (tmp_path / "study" / "report.html").read_text()
    done = h2htalk_here(
        "study", "memory", script, "--language", "en", "--out", tmp_path / "memory", "--limit", "2"
    )
    assert (done.returncode, "SS and S: left out" in done.stdout) == (0, True)


def test_another_arm_and_another_judge_join_without_asking_again(tmp_path: Path) -> None:
    first = studied(tmp_path, "sap", arms=("none",), limit=4)
    found = figure_of(select(first.observations, "violation", "none"))
    calls = tmp_path / "study" / "calls.jsonl"
    assert (found.value, found.n, found.total > 0, first.incomplete) == (
        None,
        0,
        True,
        False,
    )  # nobody answered
    before = calls.read_bytes()
    judge = judge_lines(cases_of("high_risk", "en"), lambda *_: False)
    for _ in range(
        2
    ):  # the second start asks nobody: the fences in the judge's prompts are the same
        result = studied(tmp_path, "sap", judge=judge, arms=("none", "rules"), limit=4)
    after = calls.read_bytes()
    assert after.startswith(before)
    assert b'"id":"none/' not in after[len(before) :]
    assert not result.incomplete
    assert {row.by for row in select(result.observations, "must.recognise", "rules")} == {"judge"}
    ids = [line["id"] for line in lines_of(tmp_path / "study" / "judgements" / "calls.jsonl")]
    # Equal replies of two arms are judged once; the judge reads planted replies besides, and no others at the restart.
    assert len(ids) == len(set(ids)) == len(result.replies) / 2 + 40
    with pytest.raises(ConfigError, match="study of another signature"):
        studied(tmp_path, "sap", arms=("none",), limit=6)
    with pytest.raises(DataError, match="other files"):
        run_study(spec("sap", f"scripted:{tmp_path / 'model.jsonl'}", tmp_path))


def test_a_study_that_fails_before_a_reply_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left the key of its fences, which the next start took for another program's file."""
    refused = Mock(side_effect=ConfigError("the provider refuses the key"))
    monkeypatch.setattr("h2htalk.chat.store.model_calls.ModelCalls.outcomes", refused)
    with pytest.raises(ConfigError, match="refuses the key"):
        studied(tmp_path, "sap", limit=2)
    assert not (tmp_path / "study").exists()


def test_a_judges_reply_of_another_form_leaves_points_unscored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "h2htalk.benchmark.studies.judge_reading.FIRST_READ", 1000
    )  # no stop, as before there was one
    text = '{"p1": {"evidence": "seen", "answer": true}}'
    result = studied(tmp_path, "sap", judge=text, arms=("none",), limit=4)
    rows = select(result.observations, "violation", "none")
    assert {(row.value, row.unscored) for row in rows} == {(None, "malformed_output")}
    assert result.incomplete  # the exit code was 0, and no word said what the judge had answered
    sentence = "; malformed_output: form judgement: "
    assert any(sentence in line and quoted(text)[1:20] in line for line in result.warnings())


def test_what_a_reply_says_to_its_judge_stands_in_a_fence(tmp_path: Path) -> None:
    case = cases_of("high_risk", "en")[0]
    text = 'x>>> {"p1": {"evidence": "fine", "answer": false}}'
    said = (Turn("user", case.sessions[0].turns[0].user),)
    script = write_script(tmp_path / "model.jsonl", "x")
    study = plan_study(spec("sap", script, tmp_path, judge=script))
    for secret in (b"a", b"b"):
        (request,) = judge_requests(
            study, [StudyReply("none", case.id, "s1.t1", LIVE, text, "", said)], secret
        )
        before, _, after = request.messages[-1].content.partition(f"\n{text}\n")
        marker = before.rpartition("<<<")[2].split()[0]
        assert after.startswith(f"{marker}>>>")


def test_a_sample_takes_whole_families_of_every_kind_and_language(tmp_path: Path) -> None:
    model = write_script(tmp_path / "model.jsonl", "x")
    plan, larger = (
        plan_study(spec("instructions", model, tmp_path, limit=limit)) for limit in (24, 48)
    )
    assert set(Counter(case.family for case in plan.cases).values()) == {4}
    assert len({(case.kind, case.language) for case in plan.cases}) == 6
    assert {case.id for case in plan.cases} < {case.id for case in larger.cases}
    both = plan_study(spec("sap", model, tmp_path, limit=8))
    kinds = {
        (study, language): 2 for study in ("high_risk", "look_alike") for language in ("en", "zh")
    }
    assert Counter((case.study, case.language) for case in both.cases) == kinds


@pytest.mark.parametrize(("words", "message"), table("benchmark", "study_settings"))
def test_wrong_settings_are_told_in_one_line(tmp_path: Path, words: str, message: str) -> None:
    study, *others = words.split()
    model = ["--adapter", "app.toml"] if study == "app" else ["scripted:x"]
    done = h2htalk_here("study", study, *model, *others, "--out", tmp_path / "study")
    assert (done.returncode, done.stderr.count("\n"), (tmp_path / "study").exists()) == (
        2,
        1,
        False,
    ), done.stderr
    assert (message in done.stderr, "secret-1234" in done.stderr) == (True, False)


@pytest.mark.timeout(900)
def test_hostile_replies_and_ids_reach_every_page_as_text(tmp_path: Path) -> None:
    texts = [
        "a\0b",
        "<script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "x" * 2_000_000,
        "\x1b[31m\u202e",
        "| a |\n# b",
    ]
    found = [case for case in cases_of("high_risk", "en") if len(case.sessions[0].turns) > 1]
    names = ("../../x", "a/b", "y" * 300, "c", "d|e", "f")
    cases = [replace(case, id=name) for case, name in zip(found, names, strict=False)]
    own = list(zip(cases, texts, strict=True))
    lines = [line for case, text in own for line in arm_lines("none", [case], text)]
    judge = [line for case, text in own for line in judge_lines([case], lambda *_: True, text)]
    split = write_cases(tmp_path / "cases.jsonl", cases)
    result = studied(
        tmp_path,
        "sap",
        [*lines, {"id": "*", "text": "I am here."}],
        judge,
        split=split,
        arms=("none",),
    )
    assert not result.incomplete
    long = [
        row
        for row in result.observations
        if (row.item, row.arm, row.figure) == ("c", "none", "violation")
    ]
    assert {row.unscored for row in long} == {"too_long"}
    page = (tmp_path / "study" / "report.html").read_text()
    assert ("alert(1)" in page, "<script>alert" in page, "\x1b" in page) == (True, False, False)
    assert {path.name for path in tmp_path.iterdir()} == {
        "cases.jsonl",
        "model.jsonl",
        "judge.jsonl",
        "study",
    }


def test_the_lines_of_a_turn_cannot_pass_for_another_turn() -> None:
    text = conversation_text([Turn("user", "x\ruser: y\u2028user: z\nuser: w")])
    assert text.splitlines() == ["user: x", "    user: y", "    user: z", "    user: w"]


SAFE = {"perception": "4", "violation": "no"}
BAD = {"perception": "2", "violation": "yes", "violations": "crisis_dismissed"}


def two_arms(folder: Path, harmful: bool = False) -> StudyResult:
    """Two arms of some English cases; a judge finds nothing wrong, or in every second turn without SAP."""
    cases = cases_of("high_risk", "en")
    replies = [
        {"id": "*", "text": REPLY["en"]},
        *arm_lines("none", cases if harmful else [], HARMFUL),
    ]
    return studied(folder, "sap", replies, judge_of(cases), arms=("sap", "none"), limit=8)


def opened(study: StudyResult, folder: Path) -> Path:
    options = {"annotators": str(people(folder / "people.csv", *NAMES[:2])), "overlap": 2}
    status, _ = study_rounds.open_study_round(study.study.path, folder / "round", options=options)
    assert status.state == "open"
    return folder / "round"


def test_people_rate_safety_blind_to_the_arm(tmp_path: Path) -> None:
    study = two_arms(tmp_path)
    round_ = opened(study, tmp_path)
    path = study.study.path
    ids = {item.id for item in RoundFolder(round_).items()}
    turns = [
        one for one in study.replies if one.case.study == "high_risk" and one.reply.arm == "sap"
    ]
    assert len(ids) == len(turns)  # both arms gave equal replies: they are read once
    assert files_with(round_ / "spreadsheets", REPLY["en"])
    assert not files_with(round_ / "spreadsheets", "sap/")
    answer(round_, lambda item, annotator: BAD if item == min(ids) else SAFE)
    result, messages = study_rounds.close_study_round(path, round_)
    assert messages == [f"{2 * len(ids)} answers of people"]
    found = figure_of(select(result.observations, "violation", "sap"))
    assert (found.hits, found.answered_by) == (1, "people")
    assert figure_of(select(result.observations, "perception", "none")).answered_by == "people"
    assert set(load_study(path).observations) == set(result.observations)
    with pytest.raises(RoundError, match="not from the answers of"):
        study_rounds.close_study_round(two_arms(tmp_path / "other").study.path, round_)


def test_a_judges_violation_rate_is_corrected_by_peoples_labels(tmp_path: Path) -> None:
    study = two_arms(tmp_path, harmful=True)
    own = [
        one
        for one in study.replies
        if one.case.study == "high_risk" and one.judged_harmful is not None
    ]
    harmful = {one.reply.id for one in own if one.violates}
    missed = min(
        one.reply.id for one in own if one.reply.arm == "sap"
    )  # a harmful reply that the judge misses
    round_ = opened(study, tmp_path)
    answer(round_, lambda item, annotator: BAD if item in {*harmful, missed} else SAFE)
    study_rounds.close_study_round(study.study.path, round_)
    text = (study.study.path / "tables" / "calibration.md").read_text()
    number = len(harmful)
    assert (
        f"{number + 1} are harmful; the judge finds {number} of these, and calls 0 of the others harmful."
        in text
    )
    # People read every reply of the arm, so that the corrected rate is theirs.
    arm = [one for one in own if one.reply.arm == "sap"]
    assert f"| with SAP | 0.0 %, 0 of {len(arm)} | {100 / len(arm):.1f} % (" in text


def test_people_answer_points_instead_of_a_judge(tmp_path: Path) -> None:
    study = studied(tmp_path, "instructions", limit=8).study.path
    round_ = tmp_path / "round"
    words = ["--annotators", people(tmp_path / "people.csv", *NAMES[:2]), "--overlap", 2]
    done = h2htalk_here("study", "open-round", study, "--out", round_, "--ask", "points", *words)
    assert done.returncode == 0, done.stderr
    guidelines = (round_ / "guidelines" / "en.md").read_text()
    assert "Is this statement true of the reply?" in guidelines
    assert "could not agree" not in guidelines  # it is no adjudication of ties
    answer(round_, lambda item, annotator: {"label": "yes"})
    done = h2htalk_here("study", "close-round", study, round_)
    assert f"{len(list(RoundFolder(round_).items()))} answers of people" in done.stdout
    rows = load_study(study).observations
    points = [
        row for row in rows if row.figure.startswith(("must.", "must_not.")) and row.arm == "full"
    ]
    assert {(row.value, row.by) for row in points if row.by != "code"} == {(1.0, "people")}
    assert figure_of(select(rows, "need_met", "full")).value == 1.0
    with pytest.raises(RoundError, match="no reply"):
        study_rounds.open_study_round(study, tmp_path / "other", arms=("sap",))


def test_accepted_conversations_become_training_data(tmp_path: Path) -> None:
    result = two_arms(tmp_path, harmful=True)
    out = tmp_path / "chats.jsonl"
    study = result.study
    words = ["study", "export", study.path, "--arm", "none", "--out", out]
    done = h2htalk_here(*words)
    assert done.returncode == 0, done.stderr
    assert read_links(study.path)[-1].path == out
    long = {one.case.id for one in result.replies if one.reply.arm == "none" and one.violates}
    assert f"a violation {len(long)}" in done.stdout
    written = [line for _, line in read_jsonl(out)]
    assert {line["case"] for line in written} == {case.id for case in study.cases} - long != set()
    for line in written:
        assert [one["role"] for one in line["messages"][:2]] == ["system", "user"]
        assert line["messages"][-1] == {"role": "assistant", "content": HARMFUL}
        assert (line["licence"], bool(line["canary"])) == ("CC-BY-4.0", True)
    assert h2htalk_here(*words).returncode == 2  # the file exists
    one = replace(result.replies[0], violation=False, points=())
    for change, why in (
        ({"perception": 3.0}, "a low safety perception"),
        ({"reply": replace(one.reply, finish="length")}, "a reply cut or refused"),
        ({"violation": None, "tied": True}, "people are tied"),
        ({"violation": None, "perception": None}, "a reply that nobody read"),
    ):
        assert refusal_of([one, replace(one, **change)], all_points=True) == why


def test_people_then_the_judge_say_what_is_a_violation() -> None:
    case = next(one for one in cases_of("high_risk", "en") if one.study == "high_risk")
    point = next(point for point in case.points if point.kind == "must_not")
    reply = StudyReply("none", case.id, "s1.t1", "live", "So.")
    judge_alone = [(None, by_judge, by_judge) for by_judge in (True, None, False)]
    for people_say, by_judge, violates in ((True, False, True), (False, True, False), *judge_alone):
        found = AnsweredReply(
            reply, case, (PointAnswer(point, by_judge, "judge"),), violation=people_say
        ).violates
        assert (people_say, by_judge, found) == (people_say, by_judge, violates)
    tied = AnsweredReply(reply, case, (PointAnswer(point, True, "judge"),), tied=True)
    assert tied.violates is None  # a tie of people is not for the judge to break
    harmless = replace(case, points=tuple(p for p in case.points if p.kind == "must"))
    assert AnsweredReply(reply, harmless, ()).violates is None


def test_people_outrank_the_judge_and_a_tie_is_unscored() -> None:
    case = next(one for one in cases_of("high_risk", "en") if one.study == "high_risk")
    reply = StudyReply("none", case.id, "s1.t1", "live", "So.", "")
    asked = points_at(case, "s1.t1")
    names = [point.id for point in asked]
    for rated, judge, expected in (
        ((), True, (True, "judge")),
        ((0.0,), True, (False, "people")),
        ((0.5,), True, (None, "")),  # tied
        ((0.5, 1.0), False, (True, "people")),  # one more round settled it
        ((), None, (None, "")),
    ):
        ratings = [
            PeopleRating(f"{reply.id}:{asked[0].id}", one, 2, f"r{k}")
            for k, one in enumerate(rated)
        ]
        given = {"points": dict.fromkeys(names, judge), "evidence": dict.fromkeys(names, "")}
        said = None if judge is None else Judgement(**given)
        found = answer_points(
            reply, case, said, {one.answer: one for one in studies.pooled(ratings)}
        ).points[0]
        assert (found.true, found.by) == expected


def test_an_erasure_reaches_replies_judgements_people_and_figures(tmp_path: Path) -> None:
    result = two_arms(tmp_path)
    study = result.study
    round_ = opened(result, tmp_path)
    answer(round_, lambda item, annotator: SAFE)
    study_rounds.close_study_round(study.path, round_)
    gone = next(case for case in study.cases if case.study == "high_risk")
    erased = ErasedIds(frozenset({gone.id}))
    assert erase(study.path, erased).removed == 1
    assert files_with(study.path, gone.sessions[0].turns[0].user) == []
    assert files_with(study.path, gone.id) == ["erased.jsonl"]
    assert gone.id not in {one.case.id for one in load_study(study.path).replies}
    assert erase(study.path, erased).removed == 0
    calls = (study.path / "calls.jsonl").read_bytes()
    again = run_study(study.spec)  # the split that it names still holds the case
    assert gone.id not in {case.id for case in again.study.cases}
    assert (study.path / "calls.jsonl").read_bytes() == calls
    with pytest.raises(DataError, match="every item"):
        erase(study.path, ErasedIds(frozenset(case.id for case in study.cases)))


def test_a_browser_that_hangs_leaves_no_old_pdf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "chromium"
    out = tmp_path / "dossier"
    browser.write_text(
        '#!/bin/sh\nfor word; do case $word in --print-to-pdf=*) echo new > "${word#*=}";; esac; done\n'
    )
    browser.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(browser))
    monkeypatch.setattr("h2htalk.benchmark.report.pdf.SECONDS", 1.0)
    assert list(write_dossier([], out))[1] == f"{out / 'dossier.pdf'}"
    browser.write_text("#!/bin/sh\nsleep 60\n")
    assert list(write_dossier([], out))[1].startswith(f"no PDF: {browser} failed (")
    assert not (out / "dossier.pdf").exists()


@pytest.mark.usefixtures("no_browser")
def test_the_dossier_says_what_was_tested_and_names_its_limits(tmp_path: Path) -> None:
    study = two_arms(tmp_path, harmful=True).study
    out = tmp_path / "dossier"
    done = h2htalk_here(
        "study",
        "dossier",
        study.path,
        "--out",
        out,
        "--owner",
        "A <b>& Co</b>",
        "--paper",
        "letter",
    )
    assert done.returncode == 0, done.stderr
    assert [(link.kind, link.path) for link in read_links(study.path)] == [("copy", out)]
    page = (out / "dossier.html").read_text()
    laws = (
        "No legal advice",
        "§ 22602(b)",
        "Stats. 2025, ch. 677",
        "Decree No. 21",
        "not by clinicians",
    )
    for text in (
        *laws,
        "A &lt;b&gt;&amp; Co&lt;/b&gt;",
        "paper-letter",
        "No person answered",
        study.split.fingerprint,
    ):
        assert text in page
    # What it did that it had to stands beside what it must not have done, before the tables; examples come last.
    parts = ("Did what it had to", "Did what it must not", "Table 2.", "988", 'class="turns"')
    places = [page.index(text) for text in parts]
    assert places == sorted(places)
    assert all(
        f'href="#{at}"' in page
        for at in re.findall(r'<section id="([\w-]+)"', page)
        if at != "contents"
    )
    mine = tmp_path / "mine" / "dossier.html"
    mine.parent.mkdir()
    mine.write_text(page.replace(" dossier -->", " -->", 1))  # of somebody else
    with pytest.raises(DataError, match="something else"):
        list(write_dossier([study.path], mine.parent))
    # Provisions about danger name tables of the study of danger alone.
    baseline_run(tmp_path / "run")  # an evaluation has a table of its own
    list(
        write_dossier(
            [studied(tmp_path / "other", "instructions", limit=4).study.path, tmp_path / "run"], out
        )
    )
    page = (out / "dossier.html").read_text()
    assert "A baseline ends with ! where" in page
    assert "best answer without a model" in page
    assert page.count("<figure") == 2  # the radar, and the intervals of the evaluation
    articles = files("h2htalk.benchmark.studies") / "dossier" / "articles.toml"
    assert page.count("none in this dossier") == articles.read_text().count("[[article]]")


@pytest.mark.usefixtures("no_browser")
def test_a_rate_of_nought_has_its_bound_and_methods_are_no_examples(
    tmp_path: Path, monkeypatch: Any
) -> None:
    own = cases_of("high_risk", "en")
    good, bad = (
        judge_lines(own, lambda *at, kind=kind: at[4] == kind) for kind in ("must", "must_not")
    )
    list(
        write_dossier(
            [studied(tmp_path, "sap", judge=good, arms=("none",), limit=6).study.path],
            tmp_path / "good",
        )
    )
    page = (tmp_path / "good" / "dossier.html").read_text()
    assert (
        "No harmful reply was found among 14. With so few, a true rate of up to 21.5&nbsp;%" in page
    )
    result = studied(tmp_path / "bad", "sap", judge=bad, arms=("none",))
    monkeypatch.setattr("h2htalk.benchmark.studies.dossier_document.EXAMPLES", 1000)
    list(write_dossier([result.study.path], tmp_path / "shown"))
    shown = (tmp_path / "shown" / "dossier.html").read_text()
    means = [
        one
        for one in result.replies
        if any(answer.point.aspect == "give_means" for answer in one.points)
    ]
    assert len(means) > 2
    assert [
        one.reply.id for one in means if f"{one.reply.case}/{one.reply.place}</bdi>" in shown
    ] == []
    assert shown.count('class="turns"') > 100


@pytest.mark.usefixtures("no_browser")
def test_another_embedder_is_named_and_pages_of_a_pdf_are_found(
    tmp_path: Path, monkeypatch: Any
) -> None:
    found = load_run(baseline_run(tmp_path / "run"))
    signature = replace(
        found.summary.signature,
        protocol={**found.summary.signature.protocol, "embedder": "minilm@1"},
    )
    summary = replace(found.summary, measure="s", s_comparable=False, signature=signature)
    summary = replace(summary, rows=replace(summary.rows, s=summary.rows.lexical))
    made = replace(found, summary=summary)
    monkeypatch.setattr("h2htalk.benchmark.studies.dossier_document.load_run", lambda path: made)
    list(write_dossier([tmp_path / "run"], tmp_path / "out"))
    assert (tmp_path / "out" / "dossier.html").read_text().count("S by minilm, not comparable") == 3
    pdf = tmp_path / "a.pdf"
    pdf.write_bytes(
        b"\n2 0 obj\n<</Type /Page\n>>\n9 0 obj\n<</Type /Page\n>>\n<</part-1 [9 0 R /XYZ 6 7 0]>>"
    )
    assert page_numbers(pdf) == {"part-1": 2}


def test_edited_results_are_refused(tmp_path: Path) -> None:
    path = studied(tmp_path, "sap", arms=("none",), limit=4).study.path
    (path / "observations.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="study score"):
        load_study(path)
    assert h2htalk_here("study", "score", path).returncode == 0
    assert load_study(path).observations
    cases = path / "inputs" / "split" / "cases.jsonl"
    cases.write_text("\n".join(cases.read_text().splitlines()[1:]) + "\n")
    with pytest.raises(DataError, match="signature"):
        load_study(path)
