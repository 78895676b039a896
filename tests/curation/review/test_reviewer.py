"""Replies of a reviewer are read strictly: a broken reply is unscored with its reason."""

from __future__ import annotations

import json
import re

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.curation.prompts.templates import Prompts
from h2htalk.curation.review.faireval import EvidenceSample
from h2htalk.curation.review.reviewer import CRITERIA, read_pair, read_rubric
from h2htalk.data.languages import LANGUAGES

PAIR = '{"evidence": "The first listens.", "score_first": 8, "score_second": 5}'
CRITERION = {"evidence": "Seen.", "score": 4}
RUBRIC = {
    **dict.fromkeys(("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit"), CRITERION),
    "fitting_subtask": "dialogue_base",
    "revision": "",
    "verdict": "accept",
}


def rubric(**changes: object) -> str:
    return json.dumps({**RUBRIC, **changes})


def test_scores_are_mapped_back_to_the_answers() -> None:
    assert read_pair(Reply(PAIR), "ab") == EvidenceSample("ab", 8.0, 5.0)
    assert read_pair(Reply(PAIR), "ba") == EvidenceSample("ba", 5.0, 8.0)


# The first ones are errors of the original parser (it read the last two lines, by position, without a range).
# Replies that every schema refuses: tests/chat/test_response_schema.py.
BROKEN = {
    "lines": "Evaluation evidence: good\nScore of the Assistant 1: 8\nScore of the Assistant 2: 7",
    "blank line between": "Score of the Assistant 1: 8\n\nScore of the Assistant 2: 7",
    "out of ten": '{"evidence": "x", "score_first": "8/10", "score_second": "7/10"}',
    "bold": '**{"evidence": "x", "score_first": 8, "score_second": 5}**',
    "one line": "Score 1: 8, Score 2: 7",
    "closing remark": PAIR + "\nI hope this helps.",
    "swapped labels": "Assistant 2: 7\nAssistant 1: 8",
    "eighty": '{"evidence": "x", "score_first": 80, "score_second": 5}',
    "zero": '{"evidence": "x", "score_first": 0, "score_second": 5}',
    "half": '{"evidence": "x", "score_first": 7.5, "score_second": 5}',
    "two verdicts": PAIR + PAIR,
    "more than asked": '{"evidence": "x", "score_first": 8, "score_second": 5, "score_third": 9}',
    "no evidence": '{"evidence": "", "score_first": 8, "score_second": 5}',
}


def test_a_malformed_comparison_is_unscored() -> None:
    statuses = {name: read_pair(Reply(text), "ab").status for name, text in BROKEN.items()}
    assert set(statuses.values()) == {"malformed_output", "out_of_range"}, statuses


def test_the_reason_of_a_truncated_or_refused_reply() -> None:
    for ended, status in (("length", "truncated"), ("refusal", "refusal"), ("content_filter", "refusal")):
        assert read_pair(Reply(PAIR, ended), "ab") == EvidenceSample("ab", None, None, status)
        assert read_rubric(Reply(rubric(), ended)).unscored == status


def test_a_review_has_scores_with_evidence() -> None:
    review = read_rubric(Reply(rubric()))
    assert review.scores == dict.fromkeys(CRITERIA, 4)
    assert review.evidence == dict.fromkeys(CRITERIA, "Seen.")


@pytest.mark.parametrize(
    "text",
    [
        rubric(verdict="accepted"),
        rubric(verdict="ACCEPT"),
        rubric(fitting_subtask="smalltalk"),
        rubric(safety={"evidence": "x", "score": 6}),
        rubric(safety={"evidence": "x", "score": 0}),
        rubric(safety={"score": 5}),
        rubric(safety=5),
        rubric(score=5),
        rubric()[:-1],
        rubric() + "\n" + rubric(verdict="reject"),
        json.dumps({k: v for k, v in RUBRIC.items() if k != "verdict"}),
        "accept",
        "The item is fine. verdict: accept",
    ],
)
def test_a_malformed_review_is_unscored(text: str) -> None:
    assert read_rubric(Reply(text)).unscored in ("malformed_output", "out_of_range")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_in_the_prompts_parse(language: str) -> None:
    prompts = Prompts.load()
    for name, read in (
        ("review_rubric.j2", read_rubric),
        ("review_compare.j2", lambda r: read_pair(r, "ab")),
    ):
        example = re.findall(r"^\{.*\}$", prompts.render(f"{language}/{name}", {}), re.MULTILINE)
        assert len(example) == 1
        found = read(Reply(example[0]))
        assert found.scored if isinstance(found, EvidenceSample) else not found.unscored
