"""Addresses in English chat: from the first word that leads to a door to the last, and no number beside a noun."""

from __future__ import annotations

import time

import pytest
from english_cases import development, found, recall_and_precision

from h2htalk.curation.pii.english import find_english_many
from h2htalk.curation.pii.english_addresses import find_addresses


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("my address is 88 Willow St", "88 Willow St"),
        ("i live at 612 e 4th st apt 3, brooklyn ny 11218", "612 e 4th st apt 3, brooklyn ny 11218"),
        ("to 4127 Maple Ridge Drive, Columbus, OH 43215 and", "4127 Maple Ridge Drive, Columbus, OH 43215"),
        ("at 14 Ashgrove Road, Bristol BS6 6LY.", "14 Ashgrove Road, Bristol BS6 6LY"),
        ("Flat 3, 27 Camden High Street, London NW1 7JE", "Flat 3, 27 Camden High Street, London NW1 7JE"),
        ("mail it to PO Box 2231, Bend, OR 97709", "PO Box 2231, Bend, OR 97709"),
        ("my dorm is Whitman Hall room 214", "Whitman Hall room 214"),
        ("i'm in dorm 6 room 418", "dorm 6 room 418"),
        ("at Rose Cottage, Church Lane, Little Snoring", "Rose Cottage, Church Lane, Little Snoring"),
        ("I'm at 12 Rue Saint-Denis, Montreal", "12 Rue Saint-Denis, Montreal"),
        ("she lives at 1407 Juniper", "1407 Juniper"),
        ("send it to 8 St Mary's Walk, Penzance", "8 St Mary's Walk, Penzance"),
    ],
)
def test_finds_the_whole_address(text: str, address: str) -> None:
    assert found(text, "ADDRESS") == [address]


@pytest.mark.parametrize(
    "text",
    [
        "I walked 3 miles down the road",
        "20 minutes late, no place to park",
        "I ran 5 blocks to the street corner",
        "They live in New York City now",
        "I ate 2 burgers at 3 am and took Route 66",
        "He was 6 foot 2 and I was 5 foot 1",
        "my hotel room was 412",
        "there are 12 steps to my door",
        "",
    ],
)
def test_takes_no_other_number_for_one(text: str) -> None:
    assert found(text, "ADDRESS") == []


def test_the_next_clause_is_no_town() -> None:
    assert found("he stood at 45 Elm Court, Danny said nothing", "ADDRESS") == ["45 Elm Court"]


def test_reaches_its_goals_on_the_development_set() -> None:
    cases = development()
    spans = find_english_many([case["text"] for case in cases])
    recall, precision = recall_and_precision(cases, spans, "ADDRESS")
    assert recall >= 0.95
    assert precision >= 0.95


@pytest.mark.parametrize("piece", ["1 ", "12 Oak Street, ", "apt 4, ", "A ", "12 Xylo ", "St. ", "Hall "])
def test_reads_in_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        find_addresses(piece * (length // len(piece)))
        return time.process_time() - start

    # Four times the length; quadratic time would be sixteen. The best of two runs, for a machine that others share.
    short, long = (min(seconds(length), seconds(length)) for length in (50_000, 200_000))
    assert long < 9 * (short + 0.03)
