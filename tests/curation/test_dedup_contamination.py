from __future__ import annotations

import pytest
from dedup_made import dialogue, edited, words

from h2htalk.curation.dedup_contamination import SplitIndex, item_texts
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import NULL_MEMORY

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
        dialogue("a", words("u", 10), NULL_MEMORY["en"]),
        dialogue("b", "今天没什么特别的", NULL_MEMORY["zh"], language="zh"),
    ) == [None, None]


def test_an_item_is_known_by_its_user_turns_and_its_reference():
    scenario = next(s for s in CHATS if len(s.turns) == 5)
    texts = item_texts("mini", scenario)
    assert [(text.on, text.role, text.turns) for text in texts] == [
        ("inputs", "user", 3),
        ("reference", "companion", 1),
    ]
