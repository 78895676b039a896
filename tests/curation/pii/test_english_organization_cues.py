"""Organisations that the words before them tell; addresses beyond their chain."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.pii.english import find_english


def found(text: str, kind: str) -> list[str]:
    return [text[span.start : span.end] for span in find_english(text) if span.type == kind]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("we run a tiny bakery, Crumb Theory, and it eats us", "Crumb Theory"),
        ("the night shelter (Harbour House) shuts at 7", "Harbour House"),
        ("signed on w BrightPath Staffing again", "BrightPath Staffing"),
        ("i left the Brethren of the Lamp at 22", "Brethren of the Lamp"),
        ("my phd at the Institute for Coastal Studies", "Institute for Coastal Studies"),
        ("i'm on the list at The Lighthouse Counselling Centre", "The Lighthouse Counselling Centre"),
        ("got sacked from Pellworth's.", "Pellworth's"),
        ("he got into MIT", "MIT"),
    ],
)
def test_finds_the_organisation(text: str, name: str) -> None:
    assert found(text, "ORGANIZATION") == [name]


@pytest.mark.parametrize(
    "text",
    [
        "I live and work in the United States",
        "at Christmas I feel worst",
        "I teach English in Spain",
        "he was mad at Devon",
        "I met him on Tinder",
        "The midwife was called Bernice Uchida",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert found(text, "ORGANIZATION") == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("The Old Forge, Nether Compton, DT9 4QE, that's all", "The Old Forge, Nether Compton, DT9 4QE"),
        ("four two oh nine Rosewood Lane in words", "four two oh nine Rosewood Lane"),
        ("i told the lady 17 sycamore and she asked", "17 sycamore"),
        ("12 rue des Lilas, 69003 Lyon", "12 rue des Lilas, 69003 Lyon"),
        ("meet me at the corner of 5th and Alder", "the corner of 5th and Alder"),
        ("to unit 5/36 Banksia Pde, Dubbo NSW 2830 lol", "unit 5/36 Banksia Pde, Dubbo NSW 2830"),
    ],
)
def test_an_address_is_whole(text: str, address: str) -> None:
    assert found(text, "ADDRESS") == [address]


@pytest.mark.parametrize("piece", ["Ab, ", "work at The A of the ", "one two ", "my shop, A ", "3 The "])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    """Ten times the text, at most some twenty times the time."""
    spent = []
    for length in (3_000, 30_000):
        text = (piece * length)[:length]
        start = time.process_time()
        find_english(text)
        spent.append(time.process_time() - start)
    assert spent[1] < 25 * spent[0] + 0.5
