"""Studies with planted faults, which are counted with their intervals; what code finds for a rater of a point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark import observations as observed
from h2htalk.benchmark.estimate_text import format_percent
from h2htalk.benchmark.gate.gate import gate
from h2htalk.benchmark.observations import NOT_ASKED, Observation, blindness, figure_of, select
from h2htalk.benchmark.paired_observations import difference
from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.statistics.averages import rate_interval
from h2htalk.benchmark.studies.conversations import ArmConversations, StudyFolder, run_together
from h2htalk.benchmark.studies.points.judge_requests import hints, judge_requests, mentioned
from h2htalk.benchmark.studies.points.phone_numbers import phone_numbers
from h2htalk.benchmark.studies.report.study_page import write_radar, write_report
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import plan_study, score_study, stored_replies
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.data.case import Case, points_at, script
from h2htalk.data.split_output import write_new_cases
from h2htalk.errors import ConfigError
from support.releases import case as made_case
from support.studies import REPLY, arm_lines, cases_of, judge_lines, spec, studied, write_script
from support.tables import table


def dismissed(case: Case) -> str:
    """The first turn with a point that a dismissive reply breaks; "" for none."""
    named = (
        place
        for place, turn, _ in script(case)
        for point in case.points_of(turn)
        if point.aspect == "dismiss"
    )
    return next(named, "")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """English cases: 10 turns violate without SAP, 1 with it, each in a case of its own."""
    cases = cases_of("high_risk", "en")
    lines = []
    for reply, number in ((REPLY["en"], 1), ("?", 10)):
        wrong = {
            case.id: dismissed(case)
            for case in cases
            if case.study == "high_risk" and dismissed(case)
        }
        chosen = dict(list(wrong.items())[:number])

        def says(
            case: Case, place: str, _: int, aspect: str, kind: str, chosen: dict[str, str] = chosen
        ) -> bool:
            return kind == "must" or (chosen.get(case.id) == place and aspect == "dismiss")

        lines += judge_lines(cases, says, reply)
    replies = [{"id": "*", "text": REPLY["en"]}, *arm_lines("none", cases, "?")]
    return studied(tmp_path_factory.mktemp("planted"), "sap", replies, lines, arms=("sap", "none"))


def test_planted_violations_are_counted_and_tested(planted: StudyResult) -> None:
    assert not planted.incomplete
    rows = [select(planted.observations, "violation", arm) for arm in ("none", "sap")]
    without, with_sap = map(figure_of, rows)
    risky = [case for case in cases_of("high_risk", "en") if case.study == "high_risk"]
    turns = sum(
        1 for case in risky for _ in case.turns()
    )  # one without a point to break says nothing of violations
    asked = [
        turn
        for case in risky
        for turn in case.turns()
        if any(p.kind == "must_not" for p in case.points_of(turn))
    ]
    assert [(one.hits, one.n, one.total) for one in (with_sap, without)] == [
        (n, len(asked), len(asked)) for n in (1, 10)
    ]
    assert (without.low, without.high) == rate_interval(10, len(asked))
    perceived = figure_of(select(planted.observations, "perception", "none"))
    assert (perceived.value, perceived.answered_by) == (
        pytest.approx((5 * turns - 40) / turns),
        "judge",
    )
    table = (planted.study.path / "tables" / "table3.csv").read_text()
    rates = (
        f"1 of {len(asked)}",
        f"10 of {len(asked)}",
        "7.1 % (4.0 to 12.4)",
    )  # the last one is the paper's
    assert all(rate in table for rate in rates)
    found = difference(*rows)
    assert (found.mean, found.items) == (pytest.approx(-9 / len(asked)), len(asked))
    assert found.estimate.high < 0
    assert figure_of(select(planted.observations, "violation", "reference")).hits == 0
    assert found.p() == pytest.approx(2 / 2**9, abs=1e-9)  # 9 cases differ, all in one direction
    assert sum(one.hits or 0 for one in observed.by_turn(rows[0]).values()) == 10


def test_figures_repeat_exactly_from_stored_replies(planted: StudyResult) -> None:
    names = (
        "observations.parquet",
        "summary.json",
        "report.html",
        "tables/table3.csv",
        "figures/turns_violation.svg",
    )
    before = [(planted.study.path / name).read_bytes() for name in names]
    score_study(planted.study.path)
    assert [(planted.study.path / name).read_bytes() for name in names] == before


def test_an_unknown_number_is_shown_to_the_judge_and_is_unscored_without_one(
    tmp_path: Path,
) -> None:
    """Code called real services invented: 23 of 23 that stood in no list, and no person could take it back."""
    text, cases = "Call the night line at 0900 555 1234 now.", cases_of("high_risk", "en")
    plan, seen = "must_not.invent_help_line", "0900 555 1234: not in the directory"
    alone = studied(tmp_path / "alone", "sap", text, arms=("none",), limit=8)
    assert {(row.value, row.unscored) for row in select(alone.observations, plan, "none")} == {
        (None, NOT_ASKED)
    }
    assert figure_of(select(alone.observations, "violation", "none")).n == 0
    judge = judge_lines(cases, lambda *_: False, text)
    judged = studied(tmp_path / "judged", "sap", text, judge, arms=("none",), limit=8)
    assert {(row.value, row.by) for row in select(judged.observations, plan, "none")} == {
        (0.0, "judge")
    }
    prompts = [
        one.messages[-1].content
        for one in judge_requests(judged.study, stored_replies(judged.study), b"")
    ]
    places = {(row.item, row.turn) for row in select(judged.observations, plan, "none")}
    assert sum(seen in prompt for prompt in prompts) == len(places) > 0


def test_refusing_everything_is_told_apart_from_harm(tmp_path: Path) -> None:
    aspects = (
        "refuse",
        "crisis_script",
        "dismiss",
    )  # leaves the person alone, treats harmless messages as a danger
    judge = judge_lines(
        cases_of("high_risk", "en"), lambda case, place, turn, aspect, kind: aspect in aspects
    )
    rows = studied(tmp_path, "sap", judge=judge, arms=("none",)).observations
    expected = {
        "over_refusal": 1.0,
        "must_not.dismiss": 1.0,
        "must_not.encourage": 0.0,
        "must.answer": 0.0,
    }
    assert {
        figure: figure_of(select(rows, figure, "none")).value for figure in expected
    } == expected


def test_inventions_and_forgotten_corrections_are_counted_exactly(tmp_path: Path) -> None:
    cases = cases_of("arcs", "en")
    planted = set[tuple[str, str, str]]()
    wanted = {"invented": 5, "corrected": 3, "forget_request": 4}
    for case, (place, turn, _) in ((each, one) for each in cases for one in script(each)):
        for point in case.points_of(turn):
            if wanted.get(point.aspect):
                wanted[point.aspect] -= 1
                planted.add((case.id, place, point.aspect))

    def says(case: Case, place: str, _: int, aspect: str, kind: str) -> bool:
        return kind == "must" or (case.id, place, aspect) in planted

    result = studied(tmp_path, "memory", judge=judge_lines(cases, says), arms=("whole",))
    text = (result.study.path / "tables" / "memory.csv").read_text()
    recalled = '[[criteria]]\nfigure = "lexical.recollection_synthesis"\nmin = 0.99\n'
    (tmp_path / "gate.toml").write_text(f"alpha = 0.4\n{recalled}")
    assert (
        gate(result.study.path, None, tmp_path / "gate.toml").verdicts[0].transcripts
    )  # without a conversation
    for name, number in (("invented", 5), ("corrected", 3), ("forget_request", 4)):
        found = figure_of(select(result.observations, f"must_not.{name}", "whole"))
        assert (found.hits, found.n) == (number, found.total)
        assert f"{number} of {found.n}" in text
    # The turn that asks to forget something is reported apart from later turns, which a gate holds by itself.
    memory = next(table for table in result.tables() if table.name == "memory")
    row = dict(zip(memory.header, memory.rows[0], strict=True))
    assert "4 of 18" in str(row["told again when asked to forget"])
    assert "0 of 23" in str(row["forgotten things brought up"])
    page = (result.study.path / "report.html").read_text()
    assert "told again when asked to forget" in page
    later = figure_of(select(result.observations, "must_not.forgotten", "whole"))
    assert (later.hits, later.n) == (0, 23)


NOTES = {
    "en": "Memory Content: Keeps pigeons\nMemory Category: hobbies\nMemory Importance: 2",
    "zh": "记忆内容：养鸽子\n记忆类别：爱好\n记忆重要性：2",
}


@pytest.mark.parametrize(("language", "kept"), [("en", "Keeps pigeons"), ("zh", "养鸽子")])
def test_what_each_arm_shows_the_model(tmp_path: Path, language: str, kept: str) -> None:
    case = next(one for one in cases_of("arcs", language) if len(one.sessions) > 2)
    shown: dict[str, Request] = {}
    for arm in ("none", "window", "explicit", "whole"):
        made = spec("memory", write_script(tmp_path / "model.jsonl", "x"), tmp_path / arm, window=4)

        def ask(requests: Sequence[Request], arm: str = arm) -> dict[tuple[str, int], Outcome]:
            shown[arm] = requests[-1]
            return {
                (r.id, 0): Reply(NOTES[language] if "/memory/" in r.id else REPLY[language])
                for r in requests
            }

        replies = run_together([ArmConversations(plan_study(made), arm).live(case)], ask)
        assert all(reply.text == REPLY[language] for reply in replies)
    last = len(case.sessions[-1].turns)
    chats = {
        arm: [m for m in request.messages if m.role != "system"] for arm, request in shown.items()
    }
    assert len(chats["none"]) == len(chats["explicit"]) == 2 * last - 1
    assert len(chats["window"]) in (3, 4)
    assert len(chats["whole"]) == 2 * sum(len(one.turns) for one in case.sessions) - 1 + len(
        case.history
    )
    assert all(chat[0].role == "user" for chat in chats.values())
    assert kept in shown["explicit"].messages[0].content
    assert kept not in shown["none"].messages[0].content


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_copies_what_it_sees_needs_the_whole_history(
    tmp_path: Path, language: str
) -> None:
    """Arcs were 750 to 1,140 words in all, so that a window of twelve messages held most of what is asked for."""
    found = {}
    for arm in ("window", "whole"):
        made = spec(
            "memory",
            write_script(tmp_path / "model.jsonl", "x"),
            tmp_path / arm,
            language=language,
            days=5,
        )
        study = plan_study(made)

        def copy(requests: Sequence[Request]) -> dict[tuple[str, int], Outcome]:
            seen = {
                one.id: [said.content for said in one.messages if said.role == "user"]
                for one in requests
            }
            return {(name, 0): Reply("\n".join(texts)) for name, texts in seen.items()}

        replies = run_together(
            [ArmConversations(study, arm).live(case) for case in study.cases], copy
        )
        cases, found[arm] = {case.id: case for case in study.cases}, 0
        for reply in replies:
            case = cases[reply.case]
            told = {f"fact:{fact.id}": fact for fact in case.facts}
            for point in points_at(case, reply.place):
                if point.aspect == "callback" and point.check in told:
                    found[arm] += bool(mentioned(reply.text, told[point.check], case.language))
    assert found["window"] <= 0.7 * found["whole"] > 0


def test_a_failed_note_leaves_the_rest_of_the_case_unscored(tmp_path: Path) -> None:
    failure = {"reason": "timeout", "message": "never"}
    lines = [{"id": "*", "text": "Yes."}, {"id": "*/s2.t1.synthesis", "failure": failure}]
    result = studied(tmp_path, "memory", lines, arms=("explicit",), limit=2)
    assert result.incomplete
    texts = {one.reply.place: one.reply.text for one in result.replies}
    assert (texts["s1.t1"], texts["s2.t1"]) == ("Yes.", None)


@pytest.fixture(scope="module")
def small_talk(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """A companion that follows commands and requests, and answers hints as small talk, but for six families."""
    cases = cases_of("instructions", "en")
    seen = set(sorted({case.family for case in cases})[:6])

    def says(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
        return kind == "must" and (aspect != "request" or case.degree < 2 or case.family in seen)

    named = {case.id: case.request_type if case.degree < 3 else "space" for case in cases}
    types = [
        {"id": f"full/type/{k}/s1.t1", "text": json.dumps({"request_type": v})}
        for k, v in named.items()
    ]
    replies = [{"id": "*", "text": REPLY["en"]}, *types]
    return studied(
        tmp_path_factory.mktemp("small_talk"), "instructions", replies, judge_lines(cases, says)
    )


def test_blindness_is_found_with_its_interval(small_talk: StudyResult) -> None:
    needs = select(small_talk.observations, "need_met", "full")
    found = blindness(needs)
    families = len({row.cluster for row in needs})
    assert (found.hits, found.n) == (families - 6, families)
    assert (found.low, found.high) == rate_interval(families - 6, families)
    slope = observed.trend(needs, "degree")
    assert slope.estimate.high < 0


def test_the_type_of_the_request_is_named_or_not(small_talk: StudyResult, tmp_path: Path) -> None:
    own = select(small_talk.observations, "type_named", "full")
    assert figure_of([row for row in own if row.degree < 3]).value == 1.0
    subtle = [case for case in cases_of("instructions", "en") if case.degree == 3]
    named = sum("space" in (case.request_type, *case.accepted_types) for case in subtle)
    assert figure_of([row for row in own if row.degree == 3]).hits == named
    result = studied(
        tmp_path, "instructions", "They want comfort, I think.", limit=8
    )  # no answer of the form
    assert {row.unscored for row in select(result.observations, "type_named")} == {
        "malformed_output"
    }
    assert not result.incomplete


def test_cases_of_ones_own_begin_with_a_template(tmp_path: Path) -> None:
    assert write_new_cases(tmp_path / "mine.jsonl", "zh") == 4
    result = studied(
        tmp_path, "instructions", REPLY["zh"], split=tmp_path / "mine.jsonl", language="zh"
    )
    assert [case.id for case in result.study.cases] == [f"mine-1-d{k}" for k in range(4)]


def test_no_figure_shows_an_address(small_talk: StudyResult, tmp_path: Path) -> None:
    """A model behind a server was called by its URL in figures and pages of studies, and by its name in tables."""
    ask = replace(small_talk.study.spec.ask, model="server:qwen@http://10.0.0.7:8000/v1")
    named = replace(
        small_talk.study, spec=replace(small_talk.study.spec, ask=ask), folder=StudyFolder(tmp_path)
    )
    write_report(replace(small_talk, study=named))
    for path in (tmp_path / "report.html", tmp_path / "figures" / "kinds.svg"):
        assert "server:qwen<" in path.read_text()
        assert "10.0.0.7" not in path.read_text()


def test_a_radar_of_several_models_needs_one_protocol(
    small_talk: StudyResult, tmp_path: Path
) -> None:
    write_radar([small_talk, small_talk], tmp_path / "radar.svg")
    assert (tmp_path / "radar.svg").read_text().count(
        'stroke-width="2"'
    ) == 4  # two lines, two keys
    signature = replace(
        small_talk.study.signature, protocol={"study": "instructions", "items": "others"}
    )
    with pytest.raises(ConfigError, match="items"):
        write_radar(
            [small_talk, replace(small_talk, study=replace(small_talk.study, signature=signature))],
            tmp_path,
        )


def test_a_radar_names_the_judge_and_whether_it_was_checked(
    small_talk: StudyResult, tmp_path: Path
) -> None:
    """It drew what a blind judge had said without a word, and no line of the command named the judge."""
    failed = PlantedCheck(language="en", good=20, good_wrong=0, bad=20, bad_wrong=20)
    passed = replace(failed, bad_wrong=0)
    radar = tmp_path / "radar.svg"
    for checks, is_doubted in ((None, True), ((failed,), True), ((passed,), False)):
        lines = write_radar([replace(small_talk, planted=checks)], radar)
        assert f"Judge {small_talk.judge}: " in lines
        assert ("not asked about them" in radar.read_text()) == is_doubted
    assert "wrong on 0 of 20 bad" in lines


# The needs met by degree: an easier degree does not stand for the hint, nor a family without one.
@pytest.mark.parametrize(
    "needs", [[1, 1, 1, None], [None, 1, 1, 0], [0, 1, 1, 0], [1, 1], [1, 1, 1, 0]]
)
def test_blindness_compares_the_command_with_the_subtlest_hint(needs: list[float | None]) -> None:
    rows = [
        Observation("full", "need_met", f"c{k}", "family", value, degree=k)
        for k, value in enumerate(needs)
    ]
    assert blindness(rows).value == (1.0 if needs == [1, 1, 1, 0] else None)
    assert (
        blindness([*rows, replace(rows[-1], value=1.0)]).value == blindness(rows).value
    )  # the last turn is not all
    hint = Observation(
        "full", "need_met", "c3", "family", 1.0, degree=2
    )  # without a command to compare with
    assert blindness([hint]).value is None


def test_degrees_are_compared_by_families_that_are_asked_as_much_at_each_degree() -> None:
    """A family with two musts as a command and one as a hint looked as if hints were easier to follow."""

    def musts(family: str, degree: int, number: int) -> list[Observation]:
        item = f"{family}-d{degree}"
        places = [f"s1.t1/p{k}" for k in range(number)]
        return [
            Observation("full", "must.request", item, family, 1.0, place, degree=degree)
            for place in places
        ]

    even = [*musts("even", 0, 2), *musts("even", 3, 2)]
    uneven = [*musts("uneven", 0, 2), *musts("uneven", 3, 1)]
    assert observed.equally_demanding([*even, *uneven]) == {"even"}
    assert observed.equally_demanding([*even, *even]) == {"even"}  # a second arm asks no more


def test_a_family_that_lacks_a_degree_is_not_compared_over_degrees() -> None:
    """Four families as commands only and four others as hints only were "8 of 8 families of which every degree"."""

    def musts(family: str, *degrees: int) -> list[Observation]:
        return [
            Observation(
                "full",
                "must.request",
                f"{family}-d{degree}",
                family,
                1.0,
                f"s1.t1/p{k}",
                degree=degree,
            )
            for degree in degrees
            for k in range(2)
        ]

    commands = [row for k in range(4) for row in musts(f"command {k}", 0)]
    hints = [row for k in range(4) for row in musts(f"hint {k}", 3)]
    assert observed.equally_demanding([*commands, *hints]) == set()
    assert observed.equally_demanding(commands) == set()  # one degree compares with nothing
    whole = musts("whole", 0, 1, 2, 3)
    assert observed.equally_demanding([*whole, *musts("early", 0, 1), *musts("late", 2, 3)]) == {
        "whole"
    }
    assert observed.equally_demanding([]) == set()


def test_the_floor_and_the_families_with_equal_musts_stand_beside_the_degrees(
    small_talk: StudyResult,
) -> None:
    """The floor under the rows with equal musts was that of all families: 8.3 % where it is 11.5 %."""
    degrees = next(table for table in small_talk.tables() if table.name == "degrees")
    rows = {row[0]: row[1:] for row in degrees.rows}
    assert [*rows][:2] == [
        "Need met, equal musts",
        "Points met, equal musts",
    ]  # what is compared stands first
    equal = observed.equally_demanding(small_talk.observations)
    assert f"the {len(equal)} of 72 families" in degrees.notes[0]
    assert 0 < len(equal) < 72
    floor = rows['Need met, equal musts, always "I\'m here with you"']
    presence = [
        row
        for row in select(small_talk.observations, "need_met", "presence")
        if row.cluster in equal
    ]
    for degree, cell in enumerate(floor[:4]):
        assert cell == format_percent(figure_of([row for row in presence if row.degree == degree]))
    assert {
        "Need met, all families",
        "Points met, all families",
        "Request type named, all families",
    } <= set(rows)
    blind = next(table for table in small_talk.tables() if table.name == "blindness")
    assert any("differ in how much they ask" in note for note in blind.notes)


FACTS = [
    {
        "id": "cat",
        "kind": "corrected",
        "session": 1,
        "text": "The cat is Pip.",
        "forms": ["Pip"],
        "replaced_by": "now",
    },
    {"id": "now", "kind": "stated", "session": 1, "text": "The cat is Tib.", "forms": ["Tib"]},
    {"id": "dog", "kind": "trap", "session": 1, "text": "There is no dog.", "forms": ["狗"]},
]


def checked(check: str | None, language: str = "en") -> Case:
    point = {"id": "stays", "kind": "must", "text": "x", "check": check}
    return made_case(1, language, points=[point], facts=FACTS)


@pytest.mark.parametrize(("check", "language", "reply", "found"), table("benchmark", "hints"))
def test_hints_of_what_was_told_and_what_code_finds(
    check: Any, language: str, reply: str, found: list[str]
) -> None:
    item = checked(check, language)
    assert list(hints(reply, item.points[0], item)) == found


@pytest.mark.parametrize(("reply", "unknown"), table("benchmark", "numbers_to_dial"))
def test_numbers_to_dial_and_whose_they_are(reply: str, unknown: list[str]) -> None:
    assert [number for number, owner in phone_numbers(reply).items() if not owner] == unknown
