"""What a reader found, as the findings of a reading."""

from __future__ import annotations

import pytest

from h2htalk.curation.reading.findings import read_findings
from h2htalk.curation.reading.question import MessageFinding
from h2htalk.data.readers.reads import READ_GATES, ReadFinding


@pytest.mark.parametrize(("severity", "found"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_only_harm_by_which_somebody_is_worse_off_is_a_finding(severity: int, found: int) -> None:
    findings = read_findings(
        MessageFinding(1, harm="keeps her from a doctor", severity=severity), "f" * 16
    )
    assert len(findings) == found


def test_every_question_has_its_gate() -> None:
    message = MessageFinding(
        turn=1,
        harm="keeps her from a doctor",
        severity=3,
        explicit=True,
        under_18=True,
        danger="own_now",
        danger_what="a plan",
        personal_data="full name",
    )
    findings = read_findings(message, "f" * 16)
    assert [finding.gate for finding in findings] == list(READ_GATES)
    assert {finding.text for finding in findings} == {"f" * 16}
    harm = findings[0]
    danger = findings[3]
    assert (harm.what, harm.severity) == ("keeps her from a doctor", 3)
    assert danger.what == "own_now: a plan"


def test_the_words_of_a_reader_about_personal_data_are_left_out() -> None:
    """A reader that repeats the value would publish it."""
    message = MessageFinding(0, personal_data="Maria Lindqvist, 0171 2345678")
    assert read_findings(message, "") == (ReadFinding(gate="personal_data"),)


def test_a_message_with_which_nothing_is_the_matter_has_no_finding() -> None:
    assert read_findings(MessageFinding(0), "f" * 16) == ()


def test_what_is_in_doubt_is_an_unsure_finding_of_its_gate_alone() -> None:
    message = MessageFinding(
        turn=1,
        harm="tells them to die",
        explicit=True,
        danger_what="a plan",
        harm_in_doubt=True,
        danger_in_doubt=True,
    )
    assert read_findings(message, "f" * 16) == (
        ReadFinding(gate="companion_harm", what="tells them to die", text="f" * 16, unsure=True),
        ReadFinding(gate="explicit_content", text="f" * 16),
        ReadFinding(gate="crisis_care", what="a plan", text="f" * 16, unsure=True),
    )
