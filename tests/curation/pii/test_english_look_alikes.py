"""English words that look like people's names, and the people whose names look like other things."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii import find_spans


def persons(text: str) -> list[str]:
    return [text[s.start : s.end] for s in find_spans(text, "en") if s.type == "PERSON"]


@pytest.mark.parametrize(
    "text",
    [
        "better call saul is slow but wow",
        "crying over Jane Eyre and a Dr Pepper",
        "no way jose, said my inner karen",
        "the roomba is named dave and he's stuck",
        "kevin the cactus flowered",
        "susan, my sewing machine, jammed again",
        "can i call you Juniper from now on",
        "Murphy's law, my umbrella broke",
        "layla came on and I had to pull over",
        "Milo chewed my shoes, bad dog",
    ],
)
def test_works_things_and_sayings_are_nobodys_names(text: str) -> None:
    assert persons(text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("watched the movie with Emma and cried", "Emma"),
        ("rachel told me about the finale", "rachel"),
        ("emma, my car broke down again", "emma"),
        ("I gave Sam the guitar", "Sam"),
        ("Sarah's dog bit me", "Sarah"),
        ("I had lunch with Kate Marsh", "Kate Marsh"),
    ],
)
def test_a_person_is_found_where_works_and_things_are_spoken_of(text: str, name: str) -> None:
    assert persons(text) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "Rose came by again",
        "Mark says hi",
        "Chase picked me up",
        "May brought her kids over",
        "Dawn from accounts sat with me",
        "Cliff used to coach me",
    ],
)
def test_a_word_that_begins_a_sentence_is_a_name_where_a_person_acts(text: str) -> None:
    assert persons(text) == [text.split()[0]]


@pytest.mark.parametrize(
    "text",
    ["May brought rain", "Bill came today, 300 pounds", "Hope left me years ago", "Art helps me breathe"],
)
def test_a_word_that_begins_a_sentence_is_a_word_where_a_thing_comes(text: str) -> None:
    assert persons(text) == []
