from __future__ import annotations

from dataclasses import replace

import pytest
from dedup_made import dialogue, edited, words

from h2htalk.curation.dedup.contamination import SplitIndex, item_texts
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import find_language
from h2htalk.data.splits import Split, load_split

MINI = load_split("mini")
CHATS = [s for s in MINI.scenarios if s.subtask == "dialogue_base"]
INDEX = SplitIndex([("mini", MINI)], 0.8)


def found(*dialogues):
    return [f and f.evidence() for f in INDEX.find(dialogues)]


def holding(scenario, share=0.0, reference="nothing of it"):
    """A longer dialogue that a scenario's history was cut from."""
    turns = (
        Turn("user", words("before", 12)),
        Turn("companion", words("reply", 12)),
        *(Turn(turn.role, edited(turn.content, share)) for turn in scenario.turns),
        Turn("companion", reference),
        Turn("user", words("after", 12)),
    )
    return Dialogue("held", scenario.language, turns)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1])
def test_every_chat_of_the_split_is_found_in_a_longer_dialogue(share):
    held = found(*(holding(scenario, share) for scenario in CHATS))
    assert [f and f["of"] for f in held] == [scenario.id for scenario in CHATS]
    assert all(f["on"] == "inputs" and f["split"] == "mini" and f["similarity"] >= 0.8 for f in held)


@pytest.mark.parametrize("scenario", CHATS, ids=lambda s: s.id)
def test_a_reference_is_found_as_a_reply_and_within_one(scenario):
    plain, longer = (
        dialogue("d", words("u", 10), text, language=scenario.language)
        for text in (scenario.reference, f"{words('x', 8)}. {scenario.reference}")
    )
    assert [f and (f["of"], f["on"]) for f in found(plain, longer)] == [(scenario.id, "reference")] * 2


def test_a_reference_that_the_user_says_is_none():
    assert found(dialogue("d", CHATS[0].reference, words("r", 10), language=CHATS[0].language)) == [None]


def test_unrelated_dialogues_hold_nothing():
    hostile = ["", "?", "🙂🙂", "\0", "\ud800", "a b " * 50_000]
    dialogues = [
        dialogue(f"{language}{n}", text or "-", text or "-", language=language)
        for n, text in enumerate(hostile)
        for language in ("en", "zh")
    ]
    assert found(*dialogues) == [None] * len(dialogues)
    assert found() == []


def test_the_fixed_line_of_the_null_class_contaminates_nobody():
    assert found(
        dialogue("a", words("u", 10), find_language("en").null_memory),
        dialogue("b", "今天没什么特别的", find_language("zh").null_memory, language="zh"),
    ) == [None, None]


def test_an_item_is_known_by_its_user_turns_and_its_reference():
    scenario = next(s for s in CHATS if len(s.turns) == 5)
    texts = item_texts("mini", scenario)
    assert [(text.on, text.role, text.turns) for text in texts] == [
        ("inputs", "user", 3),
        ("reference", "companion", 1),
    ]


# --- Splits in which many say the same ------------------------------------------------------------------------------


def split_of(*openings: str) -> Split:
    scenario = next(s for s in CHATS if s.language == "en")
    made = [
        replace(scenario, id=f"i{n:04}", inputs={"history": (Turn("user", text),)}, reference="Yes.")
        for n, text in enumerate(openings)
    ]
    return replace(MINI, name="many", scenarios=tuple(made))


@pytest.mark.parametrize("count", [1, 50, 51, 400])
def test_what_many_items_ask_is_found_as_what_one_asks(count):
    """What more than 50 items said counted for none of them: with 51 of one text, its exact copy was none."""
    text = words("asked by all", 15)
    index = SplitIndex([("many", split_of(*[text] * count))], 0.8)
    copies = [
        dialogue("a", text, "No."),
        dialogue("b", edited(text, 0.1), "No."),
        dialogue("c", "Well. " + text),
    ]
    found = [held and held.evidence() for held in index.find(copies)]
    assert [held and held["of"] for held in found] == ["i0000"] * 3
    assert [held["similarity"] for held in found if held][::2] == [1.0, 1.0]


def test_what_is_made_of_common_phrases_alone_is_found():
    """Each text is two halves, and more than fifty others share the one or the other with it."""
    asked = [f"{words(a, 6)} {words(-b, 6)}" for a in range(1, 53) for b in range(1, 53)]
    index = SplitIndex([("many", split_of(*asked))], 0.8)
    for share in (0.02, 0.05, 0.1):
        copies = [dialogue(f"d{n}", edited(text, share), "No.") for n, text in enumerate(asked[::20])]
        missed = [copy.id for copy, held in zip(copies, index.find(copies), strict=True) if held is None]
        assert not missed, share


def test_what_is_equal_is_found_whatever_shingles_say(monkeypatch):
    index = SplitIndex([("mini", MINI)], 0.8)
    monkeypatch.setattr(index, "_postings", [])
    held = [item and item.evidence() for item in index.find([holding(scenario) for scenario in CHATS])]
    assert [item and (item["of"], item["similarity"]) for item in held] == [(s.id, 1.0) for s in CHATS]
    assert index.find([holding(scenario, 0.1) for scenario in CHATS]) == [None] * len(CHATS)


def test_a_run_of_turns_is_held_from_any_place_and_never_over_another_s_text():
    scenario = next(s for s in CHATS if len(s.turns) == 5)
    said = [turn.content for turn in scenario.turns]
    whole, swapped = [*said, "x"], [*reversed(said), "x"]
    held = found(
        dialogue("a", words("b", 9), "Oh.", *whole, language=scenario.language),
        dialogue("b", *swapped, language=scenario.language),
    )
    assert (held[0] or {})["similarity"] == 1.0
    assert held[1] is None
