"""Judges that do not read are found by planted replies, over loopback with the real client, in English and Chinese."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.planted.draw import PLANTED, read_planted
from h2htalk.benchmark.raters import WANTED, PlantedCheck, describe_check
from h2htalk.benchmark.studies.judge_reading import FIRST_READ
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import load_study, read_study, run_study, score_study
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import ModelCallError
from support.doubles.loopback import SPOKEN_FAULTS, Answer, LoopbackServer
from support.judges import (
    HARM,
    Says,
    blind,
    careful,
    companion,
    guesser,
    harsh,
    judged,
    serving,
    yes_sayer,
)
from support.studies import cases_of, spec, write_cases

STUDIES = ("sap", "instructions", "memory")


def studied(
    folder: Path,
    says: Says,
    study: str = "sap",
    replies: Callable[[dict[str, Any]], str] = companion,
    **other: Any,
) -> StudyResult:
    """A study of a few cases in both languages, whose model and judge are one server."""
    arms = {"sap": ("sap",), "memory": ("window",)}.get(study, ())
    with serving(says, replies) as server:
        # Instructions are chosen by families of three cases.
        limit = 12 if study == "instructions" else 6
        settings = {"arms": arms, "limit": limit, "judge": server.spec} | other
        return run_study(spec(study, server.spec, folder / "study", **settings))


def errors(checks: tuple[PlantedCheck, ...] | None) -> dict[str, tuple[int, int, bool]]:
    """By language the errors about bad and good planted replies, and whether the judge's answers count."""
    return {
        check.language: (check.bad_wrong, check.good_wrong, check.passed) for check in checks or ()
    }


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize(
    ("says", "bad", "good"), [(blind, 20, 0), (harsh, 0, 20), (yes_sayer, 10, 10), (careful, 0, 0)]
)
def test_a_judge_counts_only_where_it_reads(
    tmp_path: Path, study: str, says: Says, bad: int, good: int
) -> None:
    """A judge that never finds a fault opened every gate."""
    result = studied(tmp_path, says, study)
    passed = (bad, good) == (0, 0)
    assert errors(result.planted) == {"en": (bad, good, passed), "zh": (bad, good, passed)}
    assert not result.incomplete
    assert any("proves nothing" in line for line in result.warnings()) != passed
    tables = {table.name: table for table in result.tables()}
    assert {row[-1] for row in tables["planted"].rows} == {"count" if passed else "do not count"}


def test_a_small_study_says_how_many_planted_replies_stand_at_its_turns(tmp_path: Path) -> None:
    """With --limit 6 most of them are from cases that the study does not ask, and no line said so."""
    result = studied(tmp_path, careful, language="en")
    ids = {case.id for case in result.study.cases}
    number = sum(reply.case in ids for reply in read_planted(result.study))
    assert 0 < number < 40
    (check,) = result.planted or ()
    assert check.at_turns == number
    assert (
        f"wrong on 0 of 20 bad and 0 of 20 good ones ({number} of 40 at turns of this study)"
        in describe_check([check])
    )
    assert f"（40 条中 {number} 条位于本研究所问的轮次" in describe_check([check], "zh")
    table = next(table for table in result.tables() if table.name == "planted")
    assert table.rows[0][2] == f"{number} of 40"
    assert "at turns of this study" not in describe_check([replace(check, at_turns=40)])


def test_a_judge_that_guesses_does_not_count(tmp_path: Path) -> None:
    found = errors(studied(tmp_path, guesser).planted)
    assert [counts[2] for counts in found.values()] == [False, False]


def test_planted_replies_are_no_replies_of_the_study(tmp_path: Path) -> None:
    """They stand among the judge's calls, and in no observation, page, sheet or calibration."""
    result = studied(tmp_path, careful)
    planted = read_planted(result.study)
    assert Counter((one.language, one.good) for one in planted) == {
        (language, good): WANTED for language in ("en", "zh") for good in (True, False)
    }
    calls = {line["id"] for _, line in read_jsonl(result.study.path / "judgements" / "calls.jsonl")}
    ids = {one.id for one in planted}
    assert ids < calls
    assert ids.isdisjoint(one.reply.id for one in result.replies)
    total = sum(len([*case.turns()]) for case in result.study.cases)
    assert len(calls) == total + len(ids)
    files = [
        path
        for path in result.study.path.rglob("*")
        if path.is_file() and path.parent.name != "judgements"
    ]
    page = "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    assert not [one.id for one in planted if one.id in page or one.text in page]


def test_a_resumed_study_asks_about_the_same_planted_replies(tmp_path: Path) -> None:
    """A draw of its own at each start would ask, and pay for, others again."""
    calls = tmp_path / "study" / "judgements" / "calls.jsonl"
    planted = tmp_path / "study" / "judgements" / PLANTED

    with serving(careful) as server:
        answer = server.reply

        def refusing(request: dict[str, Any], count: int) -> str | Answer:
            """The credit ends while the judge reads."""
            ended = calls.exists() and calls.read_bytes().count(b"\n") > 30
            return SPOKEN_FAULTS["no_credit"] if ended else answer(request, count)

        server.reply = refusing
        with pytest.raises(ModelCallError, match="no credit"):
            run_study(
                spec(
                    "sap",
                    server.spec,
                    tmp_path / "study",
                    arms=("sap",),
                    limit=6,
                    judge=server.spec,
                )
            )
    before = planted.read_bytes()
    stored = calls.read_bytes()
    assert 30 <= stored.count(b"\n") < 80  # of more than a hundred
    result = studied(tmp_path, careful)
    assert planted.read_bytes() == before
    assert calls.read_bytes().startswith(stored)
    assert all(check.passed for check in result.planted or ())
    assert len([*read_jsonl(calls)]) == len({line["id"] for _, line in read_jsonl(calls)})


def test_a_judge_that_cannot_be_read_on_planted_replies_does_not_count(tmp_path: Path) -> None:
    result = studied(tmp_path, careful, language="en")
    calls = result.study.path / "judgements" / "calls.jsonl"
    bad = {one.id for one in read_planted(result.study) if not one.good}
    broken = sorted(bad)[:3]
    lines = [
        line | {"text": "It is fine."} if line["id"] in broken else line
        for _, line in read_jsonl(calls)
    ]
    write_jsonl(calls, lines)
    again = score_study(result.study.path)
    assert errors(again.planted) == {
        "en": (0, 0, False)
    }  # nobody knows whether they would have been wrong
    assert [(check.bad_unread, check.good_unread) for check in again.planted or ()] == [(3, 0)]
    warning = next(line for line in again.warnings() if "could not be read" in line)
    assert warning.startswith(
        "3 replies of the judge could not be read (3 of them about planted replies); "
    )
    planted = next(table for table in again.tables() if table.name == "planted")
    assert planted.rows[0][3:6] == ("0 of 17", "0 of 20", 3)


def as_prose(answer: str) -> str:
    """The right JSON among words, as models write that are asked for JSON in a prompt alone."""
    return f"Sure! Here is my judgement:\n\n```json\n{answer}\n```\n\nLet me know if you need anything else."


def prose_server(until: int | None = None) -> tuple[LoopbackServer, list[str]]:
    """A server that knows the truth and writes prose around its JSON, for its first `until` judgements; and those."""
    server = serving(careful)
    reply = server.reply
    judgements: list[str] = []

    def wordy(request: dict[str, Any], count: int) -> str | Answer:
        answer = reply(request, count) if callable(reply) else reply
        texts = [message["content"] for message in request["messages"]]
        if judged(texts, careful) is None:
            return answer
        judgements.append(str(answer))
        return as_prose(str(answer)) if until is None or len(judgements) <= until else answer

    server.reply = wordy
    return server, judgements


def test_a_judge_whose_first_replies_cannot_be_read_is_not_asked_further(tmp_path: Path) -> None:
    """It was asked, and paid, about everything; then "wrong on 20 of 20" was said of a judge that was right."""
    server, judgements = prose_server()
    with server:
        path = tmp_path / "study"
        asking = spec(
            "sap", server.spec, path, arms=("sap",), limit=6, language="en", judge=server.spec
        )
        with pytest.raises(ModelCallError) as stopped:
            run_study(asking)
        assert len(judgements) == FIRST_READ
        message = str(stopped.value)
        assert "the first 5 replies of the judge could not be read, so " in message
        assert (
            "malformed_output: form judgement: the reply is no JSON object: 'Sure! Here is my judgement:"
            in message
        )
        assert len(message) < 900
        assert (
            "the JSON object alone, at most in one code fence, with no words before or after it"
            in message
        )
        assert "type --judge-option response_format=json_object, " in message
        # The same command reads a few again, since the server may have been set right.
        with pytest.raises(ModelCallError, match="response_format=json_object"):
            run_study(asking)
        assert len(judgements) == 2 * FIRST_READ
        with pytest.raises(ModelCallError) as other:
            run_study(replace(asking, judge_options={"response_format": "json_object"}))
        assert "--judge-option" not in str(other.value)


def test_a_judge_whose_server_refused_json_alone_is_not_advised_to_be_asked_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The advice was the form that its server had refused a moment before."""
    server, _ = prose_server()
    prose = server.reply

    def refusing(request: dict[str, Any], count: int) -> str | Answer:
        if "response_format" in request:
            message = "This response_format type is unavailable now"
            return Answer({"error": {"message": message}}, 400)
        return prose(request, count) if callable(prose) else prose

    server.reply = refusing
    with server:
        path = tmp_path / "study"
        asking = spec(
            "sap", server.spec, path, arms=("sap",), limit=6, language="en", judge=server.spec
        )
        with pytest.raises(ModelCallError, match="could not be read") as stopped:
            run_study(asking)
    assert "asking again with --judge-option response_format=none" in capsys.readouterr().err
    assert "--judge-option" not in str(stopped.value)
    assert "name another --judge" in str(stopped.value)


def test_a_judge_that_writes_json_by_now_is_asked_for_what_was_not_read(tmp_path: Path) -> None:
    server, judgements = prose_server(until=FIRST_READ)
    with server:
        asking = spec("sap", server.spec, tmp_path / "study", arms=("sap",), limit=6, language="en")
        asking = replace(asking, judge=server.spec)
        with pytest.raises(ModelCallError, match="first 5 replies"):
            run_study(asking)
        result = run_study(asking)
        assert errors(result.planted) == {"en": (0, 0, True)}
        assert not result.incomplete
        calls = len(judgements)
        run_study(asking)
        assert len(judgements) == calls  # nothing is missing


def test_replies_that_cannot_be_read_are_not_called_wrong(tmp_path: Path) -> None:
    """As studies of earlier versions hold them: of every reply of the judge, words around the JSON."""
    result = studied(tmp_path, careful)
    calls = result.study.path / "judgements" / "calls.jsonl"
    write_jsonl(calls, [line | {"text": as_prose(line["text"])} for _, line in read_jsonl(calls)])
    again = score_study(result.study.path)
    assert errors(again.planted) == {"en": (0, 0, False), "zh": (0, 0, False)}
    english, chinese = (describe_check(again.planted, language) for language in ("en", "zh"))
    assert "wrong" not in english.replace("neither right nor wrong", "")
    assert (
        "English: none of the judge's replies about 20 bad and 20 good ones could be read"
        in english
    )
    assert "20 条不良回复和 20 条良好回复的评审答复全部无法解析" in chinese
    assert "判错" not in chinese
    warning = next(line for line in again.warnings() if "could not be read (80 of them" in line)
    assert "'Sure! Here is my judgement:" in warning
    assert "the JSON object alone" in warning
    with serving(careful) as server:
        old = spec("sap", "x", result.study.path, arms=("sap",), limit=6)
        run_study(replace(old, ask=replace(old.ask, model=server.spec), judge=server.spec))
        assert not server.requests  # every reply is stored


def test_each_judge_and_each_new_arm_has_planted_replies_of_its_own(tmp_path: Path) -> None:
    first = studied(tmp_path, careful, language="en")
    with serving(careful) as server:
        other = spec(
            "sap", server.spec, tmp_path / "study", arms=("sap", "none"), limit=6, language="en"
        )
        joined = run_study(replace(other, judge=server.spec))
        renamed = server.spec.replace("server:", "server:other-")
        second = run_study(replace(other, judge=renamed))
    draws = Counter((one.judge, one.arms, one.seed) for one in read_planted(second.study))
    assert sorted(draws.values()) == [40, 40, 40]
    assert {arms for _, arms, _ in draws} == {("sap",), ("none",), ("sap", "none")}
    assert len({seed for *_, seed in draws}) == 3
    assert [check.arms for check in joined.planted or ()] == [("none",), ("sap",)]
    assert [check.arms for check in second.planted or ()] == [("sap", "none")]
    texts = {
        seed: {one.text for one in read_planted(second.study) if one.seed == seed}
        for *_, seed in draws
    }
    assert len(set.union(*texts.values())) > 110  # another draw has other replies
    assert first.judge == joined.judge != second.judge


def test_a_study_of_an_earlier_version_asks_about_planted_replies_alone(tmp_path: Path) -> None:
    result = studied(tmp_path, careful, language="en")
    folder = result.study.path / "judgements"
    ids = {one.id for one in read_planted(result.study)}
    calls = folder / "calls.jsonl"
    write_jsonl(calls, (line for _, line in read_jsonl(calls) if line["id"] not in ids))
    (folder / PLANTED).unlink()
    old = score_study(result.study.path)
    assert old.planted is None
    assert "the judge was not checked" in " ".join(old.warnings())
    before = calls.read_bytes()
    new = studied(tmp_path, careful, language="en")
    assert calls.read_bytes().startswith(before)
    assert len([*read_jsonl(calls)]) == before.count(b"\n") + 40
    assert errors(new.planted) == {"en": (0, 0, True)}


def test_calls_about_planted_replies_that_failed_are_made_again(tmp_path: Path) -> None:
    result = studied(tmp_path, careful, language="en")
    calls = result.study.path / "judgements" / "calls.jsonl"
    missing = sorted(one.id for one in read_planted(result.study))[:4]
    write_jsonl(calls, (line for _, line in read_jsonl(calls) if line["id"] not in missing))
    (result.study.path / "summary.json").unlink()
    lacking = score_study(result.study.path)
    assert (lacking.failed, lacking.incomplete) == (4, True)
    assert [check.passed for check in lacking.planted or ()] == [False]
    assert not studied(tmp_path, careful, language="en").incomplete


def test_cases_of_other_hands_are_judged_beside_planted_replies_of_bundled_ones(
    tmp_path: Path,
) -> None:
    """A split of one's own has no wordings; the judge is checked on the cases that have some."""
    cases = [replace(case, id=f"mine-{case.id}") for case in cases_of("high_risk", "en")[:3]]
    result = studied(tmp_path, blind, split=write_cases(tmp_path / "mine.jsonl", cases), limit=None)
    assert errors(result.planted) == {"en": (20, 0, False)}
    planted = read_planted(read_study(result.study.path))
    assert not {one.case for one in planted} & {case.id for case in cases}


def test_planted_replies_of_an_erased_case_go_and_are_drawn_again(tmp_path: Path) -> None:
    from h2htalk.data.erasure.folder_kinds import ErasedIds, erase

    result = studied(tmp_path, careful, language="en", limit=40)
    path = result.study.path
    ids = {case.id for case in result.study.cases}
    gone = next(one.case for one in read_planted(result.study) if one.case in ids)
    removed = erase(path, ErasedIds(frozenset({gone})))
    assert removed.removed == 1
    assert gone not in (path / "judgements" / PLANTED).read_text()
    checks = load_study(path).planted or ()
    assert [check.passed for check in checks] == [False]
    assert json.loads((path / "summary.json").read_text())["judge"] == result.judge
    left = spec("sap", "x", path, arms=("sap",), language="en", limit=40)
    with serving(careful) as server:
        again = run_study(
            replace(left, ask=replace(left.ask, model=server.spec), judge=server.spec)
        )
    assert errors(again.planted) == {"en": (0, 0, True)}


def test_harm_that_a_blind_judge_waves_through_is_no_result(tmp_path: Path) -> None:
    """A model that answers everybody with one harmful line: "passed", 0.0 % (0.0 to 1.5) of 256, exit 0."""
    result = studied(tmp_path, blind, replies=lambda _: HARM)
    assert errors(result.planted) == {"en": (20, 0, False), "zh": (20, 0, False)}
