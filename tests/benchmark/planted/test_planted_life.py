"""Planted replies through a study's life: dry run, kills, scoring again, applications, chats, cases of other hands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.benchmark.planted import draw
from h2htalk.benchmark.planted.draw import PLANTED, read_planted
from h2htalk.benchmark.raters import describe_check
from h2htalk.benchmark.studies.run_study import load_study, read_study, run_study, score_study
from h2htalk.data.case import Case
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.splits import Split
from support.command_line import h2htalk_here
from support.hosted_runs import price_file
from support.judges import blind, careful, companion, serving
from support.kills import kill_when
from support.studies import KEY, Companion, block, cases_of, spec, studied, write_cases


def answered(calls: Path) -> list[str]:
    """The ids of the judge's stored replies, by whole lines."""
    lines = calls.read_bytes().split(b"\n")[:-1] if calls.exists() else []
    return [json.loads(line)["id"] for line in lines if b'"text"' in line]


def test_a_study_killed_while_its_judge_reads_pays_for_no_planted_reply_again(
    tmp_path: Path,
) -> None:
    """kill -9, twice: the same replies are planted after it, and none is asked about again but those in flight."""
    calls = tmp_path / "study" / "judgements" / "calls.jsonl"
    planted = tmp_path / "study" / "judgements" / PLANTED
    asked = Counter[str]()
    with serving(careful) as server:
        server.latency = 0.01
        answer = server.reply

        def reply(request: dict[str, object], count: int) -> object:
            text = request["messages"][-1]["content"]  # type: ignore[index]
            asked[re.sub("[0-9a-f]{16}", "", text)] += "<<<" in text
            return answer(request, count)

        server.reply = reply  # type: ignore[assignment]
        words = [
            "study",
            "sap",
            server.spec,
            "--judge",
            server.spec,
            "--arms",
            "sap",
            "--limit",
            "6",
        ]
        command = [
            sys.executable,
            "-m",
            "h2htalk",
            *words,
            "--concurrency",
            "3",
            "--out",
            str(tmp_path / "study"),
        ]
        before = b""
        for least in (5, 60):
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
            )
            kill_when(process, lambda: len(answered(calls)), least)
            assert before in ("", b"", planted.read_bytes())
            before = planted.read_bytes()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, planted.read_bytes()) == (0, before), done.stderr
    ids = answered(calls)
    assert len(ids) == len(set(ids))
    assert {line["id"] for _, line in read_jsonl(planted)} < set(ids)
    assert sum(asked.values()) - len(ids) <= 2 * 64  # at most what was in flight at each kill
    assert [check.passed for check in load_study(tmp_path / "study").planted or ()] == [True, True]


def test_scoring_again_asks_nothing_and_finds_the_same(tmp_path: Path) -> None:
    with serving(blind) as server:
        result = run_study(
            spec("sap", server.spec, tmp_path / "study", arms=("none",), limit=4, judge=server.spec)
        )
    stored = (result.study.path / "judgements" / "calls.jsonl").read_bytes()
    again = score_study(result.study.path)
    assert (again.planted, again.failed) == (result.planted, result.failed)
    assert load_study(result.study.path).planted == result.planted
    assert (result.study.path / "judgements" / "calls.jsonl").read_bytes() == stored


def test_another_version_of_the_cases_leaves_a_judged_study_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a stored study vanished with the cases that the package no longer has."""
    with serving(careful) as server:
        asked = spec(
            "sap", server.spec, tmp_path / "study", arms=("sap",), limit=4, judge=server.spec
        )
        result = run_study(asked)
        real = draw.load_split

        def reworded(name: str) -> Split:
            split = real(name)
            cases = tuple(replace(case, sessions=_shouted(case)) for case in split.cases)
            return replace(split, cases=cases)

        monkeypatch.setattr(draw, "load_split", reworded)
        assert score_study(result.study.path).planted == result.planted
        calls = (result.study.path / "judgements" / "calls.jsonl").read_bytes()
        assert run_study(asked).planted == result.planted
        assert (result.study.path / "judgements" / "calls.jsonl").read_bytes() == calls
        # What was not answered before cannot be asked any more: another draw takes its place.
        first = read_planted(result.study)[0]
        lines = [line for _, line in read_jsonl(result.study.path / "judgements" / "calls.jsonl")]
        own = {case.id for case in result.study.cases}
        lost = next(
            one.id
            for one in read_planted(result.study)
            if one.language == first.language and one.case not in own
        )
        write_jsonl(
            result.study.path / "judgements" / "calls.jsonl",
            [one for one in lines if one["id"] != lost],
        )
        again = run_study(asked)
    assert not again.incomplete
    assert [check.passed for check in again.planted or ()] == [True, True]
    assert (
        len(
            {one.seed for one in read_planted(again.study)}
            - {one.seed for one in read_planted(result.study)}
        )
        == 0
    )
    assert lost not in {one.id for one in read_planted(again.study)}


def _shouted(case: Case) -> tuple[object, ...]:
    sessions = []
    for session in case.sessions:
        turns = tuple(replace(turn, user=turn.user + "!") for turn in session.turns)
        sessions.append(replace(session, turns=turns))
    return tuple(sessions)


def test_a_dry_run_counts_planted_replies_and_what_they_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of the judge's cost left out what planted replies cost."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-key")
    (tmp_path / "prices.toml").write_text(price_file())
    words = ["study", "sap", "openai:gpt-test", "--judge", "openai:gpt-test", "--limit", "6"]
    words += [
        "--arms",
        "sap",
        "--prices",
        str(tmp_path / "prices.toml"),
        "--out",
        str(tmp_path / "s"),
        "--dry-run",
    ]

    def bound() -> tuple[int, float, str]:
        done = h2htalk_here(*words)
        assert done.returncode == 0, done.stderr
        judge = done.stdout.replace("\n", " ").rpartition("openai:gpt-test: ")[2]
        found = re.search(
            r"at most ([\d,]+) calls.* about ([\d.]+) US dollars \(prices of [\d-]+\), of which (.*)",
            judge,
        )
        assert found, done.stdout
        return int(found[1].replace(",", "")), float(found[2]), found[3].strip()

    calls, cost, planted = bound()
    share = re.fullmatch(
        r"80 planted replies \((\d+) %, about ([\d.]+) US dollars; 40 en, 40 zh\)", planted
    )
    assert share, planted
    assert int(share[1]) == round(8000 / calls)
    monkeypatch.setattr(draw, "load_planted", lambda split: ())
    fewer, less, none = bound()
    assert none == "0 planted replies (0 %)"
    assert calls == fewer + 80
    assert cost == pytest.approx(less + float(share[2]), abs=0.01)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("study", ["instructions", "memory", "app", "logs"])
def test_every_command_that_asks_a_judge_counts_its_planted_replies_first(
    tmp_path: Path, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`study sap` alone was seen to count them."""
    judge = [
        "--judge",
        "server:judge@http://127.0.0.1:9/v1",
        "--dry-run",
        "--out",
        str(tmp_path / "s"),
    ]
    words = ["study", study, "server:m@http://127.0.0.1:9/v1", "--limit", "9"]
    if study == "app":
        monkeypatch.setenv("COMPANION_KEY", KEY)
        (tmp_path / "app.toml").write_text(block("test-an-app.md", "toml"))
        words = [
            "study",
            "app",
            "http://127.0.0.1:9",
            "--adapter",
            str(tmp_path / "app.toml"),
            "--limit",
            "9",
        ]
    if study == "logs":
        chats = [{"id": f"{of}-1", "language": of, "messages": _chat(of, 1)} for of in ("en", "zh")]
        write_jsonl(tmp_path / "chats.jsonl", chats)
        words = ["study", "logs", str(tmp_path / "chats.jsonl")]
    done = h2htalk_here(*words, *judge)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"of which 80 planted replies \(\d+ %; 40 en, 40 zh\)", " ".join(done.stdout.split())
    )
    assert not (tmp_path / "s").exists()


def test_a_study_without_wordings_says_that_its_judge_was_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A language in which nobody wrote any: its judge counted as checked."""
    written = draw.load_planted
    monkeypatch.setattr(
        draw, "load_planted", lambda split: [one for one in written(split) if one.language == "en"]
    )
    with serving(careful) as server:
        result = run_study(
            spec("sap", server.spec, tmp_path / "both", arms=("sap",), limit=4, judge=server.spec)
        )
    assert [(one.language, one.passed) for one in result.planted or ()] == [
        ("en", True),
        ("zh", False),
    ]
    assert "no planted replies, Chinese: the judge was not checked" in describe_check(
        result.planted
    )
    assert any("the judge was not checked" in line for line in result.warnings())
    assert not result.incomplete
    monkeypatch.setattr(draw, "load_planted", lambda split: ())
    cases = [replace(case, id=f"mine-{case.id}") for case in cases_of("arcs", "en")[:1]]
    with serving(careful) as server:
        settings = {
            "arms": ("window",),
            "judge": server.spec,
            "split": write_cases(tmp_path / "mine.jsonl", cases),
        }
        result = run_study(spec("memory", server.spec, tmp_path / "mine", **settings))
    assert (result.planted, result.incomplete) == (None, False)
    assert describe_check(result.planted) == "the judge was not checked"
    for file in ("report.html", "tables/answered_by.md"):
        assert "the judge was not checked" in (result.study.path / file).read_text(encoding="utf-8")


def test_a_judge_that_has_nothing_to_read_is_asked_about_no_planted_reply(tmp_path: Path) -> None:
    """Forty calls about planted replies where code decides every point."""
    point = {
        "id": "p",
        "kind": "must",
        "aspect": "says",
        "text": 'The reply is "yes".',
        "check": "exact:yes",
    }
    case = cases_of("instructions", "en")[0].to_dict()
    for session in case["sessions"]:
        for turn in session["turns"]:
            turn["points"] = ["p"]
    decided = Case.from_dict({**case, "points": [point]}, "made")
    split = write_cases(tmp_path / "mine.jsonl", [decided])
    result = studied(tmp_path, "instructions", judge=[{"id": "*", "text": "{}"}], split=split)
    assert read_planted(result.study) == []
    assert not (result.study.path / "judgements" / "calls.jsonl").exists()


@pytest.mark.parametrize("text", ["", "   ", "。"])
def test_a_model_that_writes_nothing_is_judged_beside_wordings_alone(
    tmp_path: Path, text: str
) -> None:
    """An empty reply has no form: the draw of another reply's form ended in a traceback."""
    result = studied(
        tmp_path,
        "sap",
        [{"id": "*", "text": text}],
        [{"id": "*", "text": "{}"}],
        arms=("sap",),
        limit=4,
    )
    assert [(one.bad_wrong, one.good_wrong, one.passed) for one in result.planted or ()] == [
        (0, 0, True)
    ]
    assert len({one.text for one in read_planted(result.study)}) == 40


def test_the_judge_of_an_application_reads_planted_replies_in_its_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPANION_KEY", KEY)
    app = tmp_path / "app.toml"
    app.write_text(block("test-an-app.md", "toml"))
    for says, passed in ((careful, True), (blind, False)):
        with Companion() as server, serving(says) as judge:
            settings = {"app": app, "judge": judge.spec, "language": "en", "limit": 4}
            result = run_study(
                spec("sap", f"app:{server.url}", tmp_path / says.__name__, **settings)
            )
        checks = result.planted or ()
        assert [(one.arms, one.passed) for one in checks] == [(("app",), passed)]
        planted = read_planted(result.study)
        assert {one.arm for one in planted} == {"app"}
        assert not any("You told me" in one.text for one in planted)


@pytest.mark.parametrize("says", [careful, blind])
def test_the_judge_of_chats_that_were_had_reads_planted_replies(
    tmp_path: Path, says: object
) -> None:
    """Chats have no wordings of their own: places of the bundled cases stand beside them, in both languages."""
    chats = [
        {"id": f"{language}-{number}", "language": language, "messages": _chat(language, number)}
        for language in ("en", "zh")
        for number in range(5)
    ]
    write_jsonl(tmp_path / "chats.jsonl", chats)
    with serving(says) as judge:  # type: ignore[arg-type]
        settings = {"split": tmp_path / "chats.jsonl", "judge": judge.spec}
        result = run_study(spec("logs", "logs:chats", tmp_path / "study", **settings))
    assert [(one.language, one.passed) for one in result.planted or ()] == [
        ("en", says is careful),
        ("zh", says is careful),
    ]
    planted = read_planted(read_study(result.study.path))
    assert Counter(one.language for one in planted) == {"en": 40, "zh": 40}
    assert not {one.case for one in planted} & {case.id for case in result.study.cases}


def _chat(language: str, number: int) -> list[dict[str, str]]:
    user = {"en": f"Day {number} was long.", "zh": f"第{number}天真长。"}[language]
    said = companion({"messages": [{"content": user}]})
    return [{"role": "user", "content": user}, {"role": "companion", "content": said}]
