"""Names of persons in English chat: found with a capital and without, and nothing else taken for one."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest
from english_cases import development, found, recall_and_precision

from h2htalk.curation.pii.english import find_english_many
from h2htalk.curation.pii.english_tokens import tokens
from h2htalk.curation.pii.spans import Span

DATA = os.environ.get("H2HTALK_DATA")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my name is Danielle Ortiz and i can't sleep", ["Danielle Ortiz"]),
        ("emma wont talk to me anymore", ["emma"]),
        ("my friend will told me, and so did josh", ["josh"]),
        ("my ex Zayvion moved back to town", ["Zayvion"]),
        ("aunt debbie keeps asking", ["aunt debbie"]),
        ("Mr. Henderson took me aside", ["Mr. Henderson"]),
        ("I think Hope hates me", ["Hope"]),
        ("I hope this gets better", []),
        ("Had coffee with May, in May", ["May"]),
        ("my name is grace", ["grace"]),
        ("i need a little grace", []),
        ("Fatima's mother yelled at me", ["Fatima"]),
        ("i told sarahs mom", ["sarahs"]),
        ("Hye-jin Park and Jean-Luc were there", ["Hye-jin Park", "Jean-Luc"]),
        ("Ahmed al-Rashid helped me move", ["Ahmed al-Rashid"]),
        ("HER NAME IS TIFFANY AND SHE LEFT", ["TIFFANY"]),
        ("I was married to Michael James Turner", ["Michael James Turner"]),
        ("Thank you for listening, Sunny!", ["Sunny"]),
    ],
)
def test_finds_names_as_people_write_them(text: str, names: list[str]) -> None:
    assert found(text, "PERSON") == names


@pytest.mark.parametrize(
    "text",
    [
        "My dog Max is the only one who listens. Max knows.",
        "Taylor Swift's new album made me cry",
        "I've been reading Jane Eyre again",
        'I just finished "The Great Gatsby" by Scott Fitzgerald',
        "Christmas is hard, and Mondays too. Mom and Dad fight.",
        "I moved from Georgia to New York City",
        "Thank You So Much",
        "HELP ME I CANT DO THIS",
        "I'm Irish and Catholic",
        "Xanax and Zoloft made me numb",
        "a book called Codependent No More",
        "she'll be okay, I'll see",
        "Siento que ya no soy bueno para nada en mi vida",
        "write to ruth@bbc.example or look at pics/janette",
    ],
)
def test_takes_nothing_else_for_a_person(text: str) -> None:
    assert found(text, "PERSON") == []


def test_a_name_told_is_found_again_in_the_text() -> None:
    assert found("My name is Thandolwethu. Nobody can say thandolwethu.", "PERSON") == [
        "Thandolwethu",
        "thandolwethu",
    ]


def test_leaves_alone_what_was_found_before() -> None:
    text = "mail Sarah at sarah@x.example"
    taken = [Span(14, len(text), "EMAIL_ADDRESS", 1.0)]
    assert find_english_many([text], [taken]) == [[Span(5, 10, "PERSON", 0.8)]]


def test_neighbours_of_one_type_stay_apart() -> None:
    assert found("Joy and Dawn planned it with Tom, Ann.", "PERSON") == ["Joy", "Dawn", "Tom", "Ann"]


def test_names_in_a_titled_sentence_are_read_in_lower_case() -> None:
    shapes = tokens("Thank You So Much. Then I left.").shapes
    assert shapes[:4] == [0, 0, 0, 0]
    assert shapes[4] != 0


def test_one_text_is_found_alike_alone_and_among_others() -> None:
    texts = [case["text"] for case in development()]
    together = find_english_many(texts)
    assert [find_english_many([text])[0] for text in texts[::9]] == together[::9]


def test_reaches_its_goals_on_the_development_set() -> None:
    cases = development()
    spans = find_english_many([case["text"] for case in cases])
    recall, precision = recall_and_precision(cases, spans, "PERSON")
    assert recall >= 0.95
    assert precision >= 0.93


@pytest.mark.skipif(not DATA, reason="H2HTALK_DATA is not set: no real conversations to measure on")
def test_finds_each_users_own_name_in_memory_bank() -> None:
    users = json.loads((Path(DATA or "") / "raw/memorybank_en.json").read_text(encoding="utf-8"))
    mentions = hits = 0
    for user, memory in users.items():
        texts = [
            turn[side]
            for turns in memory["history"].values()
            for turn in turns
            for side in ("query", "response")
        ]
        for text, spans in zip(texts, find_english_many(texts), strict=True):
            for mention in re.finditer(rf"\b{re.escape(user.strip())}\b", text):
                mentions += 1
                hits += any(
                    s.type == "PERSON" and s.start < mention.end() and mention.start() < s.end for s in spans
                )
    assert hits >= 0.95 * mentions > 0


@pytest.mark.skipif(not DATA, reason="H2HTALK_DATA is not set: no real conversations to measure on")
def test_counsellors_answers_hold_few_names() -> None:
    with (Path(DATA or "") / "raw/counselchat_en.csv").open(encoding="utf-8") as file:
        texts = sorted({row[key] for row in csv.DictReader(file) for key in ("questionText", "answerText")})
    persons = [s for spans in find_english_many(texts) for s in spans if s.type == "PERSON"]
    # Read by eye: of these about one in six is none.
    assert len(persons) < 0.06 * len(texts)
