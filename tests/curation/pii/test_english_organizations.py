"""Organisations in English chat: by the end of their name, or because somebody works or learns there."""

from __future__ import annotations

from itertools import pairwise

import pytest
from english_cases import development, found, recall_and_precision
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.curation.pii.english import find_english_many
from h2htalk.curation.pii.english_organizations import find_organizations
from h2htalk.curation.pii.english_tokens import tokens

_HOSTILE = (
    "I work at ",
    "my name is ",
    "Sarah",
    "12 Oak St",
    "\ud800",
    "\x00",
    "‮",
    "🙂",
    "Hospital",
    "'s",
    "'",
    ", ",
    "\n",
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I work at Brightwell Logistics and I hate it", "Brightwell Logistics"),
        ("I'm a cashier at Foodbarn", "Foodbarn"),
        ("i work at mcallister tires", "mcallister tires"),
        ("i got discharged from st luke's hospital", "st luke's hospital"),
        ("I'm a paralegal at Morton, Hale & Dunn", "Morton, Hale & Dunn"),
        ("i got rejected from University of Northmoor", "University of Northmoor"),
        ("they took her to Mercy General", "Mercy General"),
        ("my union, Local 482, didn't help", "Local 482"),
        ("I'm in a band called The Velvet Otters", "The Velvet Otters"),
        ("everyone at First Baptist Church of Elkhorn judges me", "First Baptist Church of Elkhorn"),
    ],
)
def test_finds_names_of_employers_schools_and_clubs(text: str, name: str) -> None:
    assert found(text, "ORGANIZATION") == [name]


@pytest.mark.parametrize(
    "text",
    [
        "I work at a hospital and study at the library",
        "i go to middle school, then to community college",
        "my old school and the local church",
        "Cognitive Behavioral Therapy helped me",
        "we work for money at night",
        "I moved to New York City for work",
        "She goes to church on Sundays",
    ],
)
def test_takes_no_kind_for_a_name(text: str) -> None:
    assert found(text, "ORGANIZATION") == []


def test_reaches_its_goals_on_the_development_set() -> None:
    cases = development()
    spans = find_english_many([case["text"] for case in cases])
    recall, precision = recall_and_precision(cases, spans, "ORGANIZATION")
    assert recall >= 0.93
    assert precision >= 0.93


def test_few_sentences_without_personal_data_are_marked() -> None:
    texts = [case["text"] for case in development() if not case["spans"]]
    assert sum(bool(spans) for spans in find_english_many(texts)) <= 0.04 * len(texts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(_HOSTILE), st.text(max_size=8)), max_size=12).map("".join))
def test_any_text_gives_spans_in_order_that_do_not_overlap(text: str) -> None:
    (spans,) = find_english_many([text])
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))


def test_a_blocked_word_is_in_no_name() -> None:
    words = tokens("I work at Brightwell Logistics")
    words.blocked[:] = [True] * len(words)
    assert find_organizations(words) == []
