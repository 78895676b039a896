"""The reviewer as a reader: which passages of a candidate it has read, what it found, and what that decides."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_review import candidates, review, run, scored, scoring

from h2htalk.chat.protocol import Reply
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.release.content import item_texts, record_passages
from h2htalk.curation.release.selection import scenario_of_record
from h2htalk.curation.review.candidate_reads import (
    DANGER_TAGS,
    candidate_read,
    open_questions,
    reviewer_name,
)
from h2htalk.curation.review.reviewer import pair_answers, review_prompt_fingerprint, rubric_answers
from h2htalk.curation.review.stage import decide_review
from h2htalk.curation.stages import ReviewSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.readers.certificates import Certificate
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.coverage import ReadState, state_of
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import READ_GATES, Read, ReadGate, read_read
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.detect.safety.crisis import TAGS
from support.certificates import certifying_figures
from support.curations import run_one

HARM = {"harm": "keeps her from a doctor", "severity": 3}


def reads_of(workspace: Workspace) -> dict[str, Read]:
    """The readings of kept candidates, by their ids."""
    kept = {record["id"]: record["review"] for record in workspace.stage("review").records()}
    return {name: read_read(one["read"], name) for name, one in kept.items() if "read" in one}


def certificate(read: Read) -> Certificate:
    """A certificate for everything, of the reader of a reading."""
    return Certificate(
        reader=read.reader,
        prompt=read.prompt,
        served_by=read.served_by,
        set=check_set_fingerprint(),
        date="2026-11-29",
        figures=certifying_figures(),
        gates=dict.fromkeys(LANGUAGES, READ_GATES),
    )


def state(gate: ReadGate, scenario: Scenario, read: Read) -> ReadState:
    """What a certified reading says of the passages that a release has of a scenario."""
    passages = record_passages(scenario)
    return state_of(gate, passages, scenario.language, [read], [certificate(read)], scenario.id)


def test_two_models_of_servers_are_two_readers() -> None:
    """Every reviewer behind a server was called review:server:v1, so that one had the certificate of another."""
    names = [
        reviewer_name(f"server:{name}@http://127.0.0.1:8000/v1") for name in ("small", "org/large")
    ]
    assert names == ["review:server:small", "review:server:org/large"]


def test_every_text_of_a_released_item_is_read_whatever_its_subtask(tmp_path: Path) -> None:
    """Also timetables and lists, which a release writes as one text each."""
    found = {(one.subtask, one.language): one for one in load_split("mini@1").scenarios}
    assert {subtask for subtask, _ in found} == set(SUBTASKS)
    made = [
        Candidate(one, (Reference(one.reference), Reference("Another answer.")))
        for one in found.values()
    ]
    workspace, _ = run(tmp_path, made)
    reads = reads_of(workspace)
    for record in workspace.stage("review").records():
        scenario = scenario_of_record(record, record["id"])
        assert len(scenario.references) == 2
        for gate in READ_GATES:
            assert state(gate, scenario, reads[scenario.id]).unread == (), (scenario.subtask, gate)


def test_a_reading_names_reader_prompt_and_gates(tmp_path: Path) -> None:
    workspace, _ = run(tmp_path, candidates(1))
    (read,) = reads_of(workspace).values()
    assert read.reader == "review:scripted:replies.jsonl"  # without the folder
    assert read.reader == reviewer_name(f"scripted:{tmp_path / 'replies.jsonl'}")
    assert read.prompt == review_prompt_fingerprint(Prompts.load())
    assert (read.gates, read.findings, read.people) == (READ_GATES, (), 0)


def test_a_reading_has_the_day_of_its_stored_replies(tmp_path: Path) -> None:
    """A stage that is made again another day, from stored replies, gives the same bytes."""
    found = candidates(2, references=2)
    workspace, _ = run(tmp_path, found)
    calls = workspace.stage("review").path / "calls.jsonl"
    lines = [json.loads(line) for line in calls.read_text().splitlines()]
    asked_on = datetime.datetime(2026, 3, 5, 23, 30, tzinfo=datetime.UTC).timestamp()
    stored = [{**line, "at": asked_on} for line in lines]
    calls.write_text("".join(json.dumps(line) + "\n" for line in stored))
    settings = ReviewSettings(
        model=f"scripted:{tmp_path / 'replies.jsonl'}", audit=0.0, escalate=0.0, accept=3.9
    )
    run_one("review", workspace, settings)
    assert [read.date for read in reads_of(workspace).values()] == ["2026-03-05"] * 2
    assert len(calls.read_text().splitlines()) == len(lines)


def test_what_no_valid_reply_was_shown_is_unread(tmp_path: Path) -> None:
    found = candidates(3, references=2)
    names = [candidate.id for candidate in found]
    wrong: dict[str, object] = {f"{names[0]}/rubric": "I would accept it."}
    wrong |= dict.fromkeys(
        [f"{names[1]}/pair-1-2/ab", f"{names[1]}/pair-1-2/ba"], "The first is better."
    )
    wrong |= {
        f"{names[2]}/rubric": "",
        f"{names[2]}/pair-1-2/ab": "",
        f"{names[2]}/pair-1-2/ba": "",
    }
    workspace, _ = run(tmp_path, found, wrong)
    reads = reads_of(workspace)
    scenarios = {
        record["id"]: scenario_of_record(record, "")
        for record in workspace.stage("review").records()
    }
    first = scenarios[names[0]]
    second = scenarios[names[1]]
    inputs = [passage.hash for passage in record_passages(replace(first, references=()))]
    assert state("minors", first, reads[names[0]]).unread == tuple(dict.fromkeys(inputs))
    assert state("minors", second, reads[names[1]]).unread == (record_passages(second)[-1].hash,)
    assert names[2] not in reads


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_harm_in_one_of_two_answers_is_found_at_that_reference(tmp_path: Path, order: str) -> None:
    """The answers of a comparison stand in both orders, and are mapped back like the scores."""
    (candidate,) = found = candidates(1, references=2)
    of_second = scoring(7, 7, in_second=HARM) if order == "ab" else scoring(7, 7, in_first=HARM)
    workspace, counts = run(
        tmp_path, found, {f"{candidate.id}/pair-1-2/{order}": [of_second, *[scoring(7, 7)] * 2]}
    )
    (read,) = reads_of(workspace).values()
    (finding,) = read.findings
    assert (finding.gate, finding.text) == (
        "companion_harm",
        text_hash(candidate.references[1].text),
    )
    assert (finding.what, finding.severity) == ("keeps her from a doctor", 3)
    assert counts.tags == {"needs_people": 1, "people:read:harm": 1}


def test_the_gravest_answer_about_a_reference_counts() -> None:
    (candidate,) = candidates(1)
    replies = [
        review(subtask="dialogue_base", in_reference={**HARM, "severity": severity})
        for severity in (2, 3, 0)
    ]
    answers = [one for text in replies for one in rubric_answers(Reply(text, at=0.0), 0)]
    read = candidate_read(candidate, answers, "review:scripted:x", "f" * 16)
    assert read is not None
    assert [finding.severity for finding in read.findings] == [3]
    assert read.date == "1970-01-01"


def test_what_is_found_in_several_inputs_is_about_the_item_as_a_whole() -> None:
    """The reviewer answers once for all inputs, so nobody knows which passage is meant."""
    scenarios = load_split("mini@1").scenarios
    talk = next(one for one in scenarios if len(one.turns) > 2)
    single = next(one for one in scenarios if one.subtask == "itinerary_middle")
    for scenario, passage in ((talk, ""), (single, text_hash(item_texts(single)[0].content))):
        candidate = Candidate(scenario, (Reference(scenario.reference),))
        reply = Reply(review(subtask=scenario.subtask, in_scenario={"personal_data": "address"}))
        read = candidate_read(candidate, rubric_answers(reply, 0), "review:scripted:x", "")
        assert read is not None
        assert [(finding.gate, finding.text) for finding in read.findings] == [
            ("personal_data", passage)
        ]
        assert state("personal_data", scenario, read).findings
        other = replace(
            scenario, id="another:item", inputs=talk.inputs if scenario is single else single.inputs
        )
        assert not state("personal_data", other, read).findings


def test_by_what_somebody_could_be_known_is_marked_where_the_reviewer_says_so() -> None:
    single = next(
        one for one in load_split("mini@1").scenarios if one.subtask == "itinerary_middle"
    )
    candidate = Candidate(single, (Reference(single.reference),))
    reply = Reply(review(subtask=single.subtask, in_scenario={"known_by": "a trade"}))
    read = candidate_read(candidate, rubric_answers(reply, 0), "review:scripted:x", "")
    assert read is not None
    assert (read.findings, read.known_by) == ((), (text_hash(item_texts(single)[0].content),))
    assert open_questions(read, single) == ()


def test_harm_in_inputs_that_a_companion_did_not_write_is_in_doubt() -> None:
    scenario = next(one for one in load_split("mini@1").scenarios if not one.turns)
    candidate = Candidate(scenario, (Reference(scenario.reference),))
    reply = Reply(review(subtask=scenario.subtask, in_scenario=HARM))
    read = candidate_read(candidate, rubric_answers(reply, 0), "review:scripted:x", "")
    assert read is not None
    (finding,) = read.findings
    assert (finding.gate, finding.severity, finding.unsure) == ("companion_harm", 3, True)


def test_an_invalid_reply_says_nothing() -> None:
    assert rubric_answers(Reply(review(subtask="smalltalk")), 0) == ()
    assert rubric_answers(Reply("yes"), 0) == ()
    assert pair_answers(Reply(scoring(80, 1)), (0, 1), "ab") == ()
    (candidate,) = candidates(1)
    assert candidate_read(candidate, (), "review:scripted:x", "") is None


def with_findings(scenario: Scenario, answers: Mapping[str, object]) -> Read | None:
    """The reading of a scenario whose reference has these answers."""
    candidate = Candidate(scenario, (Reference(scenario.reference),))
    places = rubric_answers(Reply(review(subtask=scenario.subtask, in_reference=answers)), 0)
    return candidate_read(candidate, places, "review:scripted:x", "")


DANGER = {"danger": "own_now", "danger_what": "a goodbye"}


@pytest.mark.parametrize(
    ("answers", "risk", "metadata", "reasons"),
    [
        ({}, "none", {}, ()),
        (HARM, "none", {}, ("read:harm",)),
        ({"harm": "cold", "severity": 1}, "none", {}, ()),
        # Answers that contradict each other.
        ({"harm": "tells them to die"}, "none", {}, ("read:harm",)),
        ({"danger_what": "a goodbye"}, "none", {}, ("read:danger",)),
        ({"harm": "none", "danger_what": "None."}, "none", {}, ()),
        ({"explicit": True}, "none", {}, ("read:explicit",)),
        ({"personal_data": "full name"}, "none", {}, ("read:personal_data",)),
        # A minor may talk with a companion; not about everything.
        ({"under_18": True}, "none", {}, ()),
        ({"under_18": True, "explicit": True}, "none", {}, ("read:explicit", "read:minor")),
        ({"under_18": True, **HARM}, "none", {}, ("read:harm", "read:minor")),
        ({"under_18": True}, "none", {"safety": {"tags": ["companion.minors"]}}, ("read:minor",)),
        (DANGER, "none", {}, ("read:danger",)),
        ({**DANGER, "danger": "other_past"}, "none", {}, ("read:danger",)),
        # The tags name it already.
        (DANGER, "elevated", {}, ()),
        (DANGER, "none", {"safety": {"tags": ["crisis.self_harm"]}}, ()),
        (DANGER, "none", {"safety": {"tags": ["threat_to_others"]}}, ()),
    ],
)
def test_what_was_found_leaves_a_candidate_open(
    answers: Mapping[str, object], risk: Any, metadata: Mapping[str, Any], reasons: tuple[str, ...]
) -> None:
    base = candidates(1)[0].scenario
    scenario = replace(base, tags=replace(base.tags, risk=risk), metadata=metadata)
    assert open_questions(with_findings(scenario, answers), scenario) == reasons


@pytest.mark.parametrize(
    ("persona", "reasons"), [("ren", ("read:minor",)), ("mateo", ("read:minor",)), ("nora", ())]
)
def test_a_user_under_18_with_a_partner_is_a_matter_for_people(
    persona: str, reasons: tuple[str, ...]
) -> None:
    """The reviewer alone could accept it: tags of the dialogue made talk romantic, and not who the companion is."""
    scenario = replace(candidates(1)[0].scenario, persona=persona, metadata={})
    assert open_questions(with_findings(scenario, {"under_18": True}), scenario) == reasons
    assert open_questions(with_findings(scenario, {}), scenario) == ()


def test_a_danger_is_named_by_the_tags_that_the_gates_of_a_release_know() -> None:
    assert DANGER_TAGS == TAGS


def test_without_a_reading_nothing_is_asked() -> None:
    """A review of an earlier version has none."""
    assert open_questions(None, candidates(1)[0].scenario) == ()


@pytest.mark.parametrize(
    ("rubric", "settings", "status", "reasons"),
    [
        (scored(), {}, "needs_people", ("read:harm",)),
        (scored(3, verdict="revise"), {}, "needs_people", ("read:harm",)),
        (replace(scored(), fitting_subtask="itinerary_basic"), {}, "needs_people", ("read:harm",)),
        (scored(), {"people": ("audit",)}, "needs_people", ("audit", "read:harm")),
        (scored(5, verdict="reject"), {}, "needs_people", ("contradiction", "read:harm")),
        # What is rejected needs nobody.
        (scored(safety=1, verdict="reject"), {}, "reject", ("safety",)),
        (
            scored(safety=1, verdict="reject"),
            {"crisis": True},
            "needs_people",
            ("crisis:safety", "read:harm"),
        ),
    ],
)
def test_an_open_question_comes_before_acceptance_and_revision(
    rubric: Any, settings: dict[str, Any], status: str, reasons: tuple[str, ...]
) -> None:
    decision = decide_review(rubric, "dialogue_base", read=("read:harm",), **settings)
    assert decision == (status, reasons)


def test_people_decide_on_a_rejection_where_a_danger_was_read(tmp_path: Path) -> None:
    found = candidates(2)
    low = {"safety": 1, "verdict": "reject"}
    replies = {
        f"{found[0].id}/rubric": review(
            subtask=found[0].scenario.subtask, in_scenario=DANGER, **low
        ),  # type: ignore[arg-type]
        f"{found[1].id}/rubric": review(subtask=found[1].scenario.subtask, **low),  # type: ignore[arg-type]
    }
    workspace, counts = run(tmp_path, found, replies)
    assert counts.reasons == {"review:safety": 1}
    (record,) = workspace.stage("review").records()
    assert record["id"] == found[0].id
    assert record["review"]["reasons"] == ["crisis:safety", "read:danger"]
