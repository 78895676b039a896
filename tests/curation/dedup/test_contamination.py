"""Decontamination: items of a split are found in longer and edited dialogues."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dedup_made import dialogue, edited, words

from h2htalk.curation.dedup.contamination import SplitIndex
from h2htalk.data.languages import find_language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.data.splits import Split, load_split

MINI = load_split("mini@1")
CHATS = [s for s in MINI.scenarios if s.subtask == "dialogue_base"]
INDEX = SplitIndex([MINI], 0.8)


def found(*dialogues):
    return [INDEX.find(one) for one in dialogues]


def holding(scenario, share=0.0, reference="nothing of it"):
    """A longer dialogue from which a scenario's history could be extracted."""
    before = (Turn("user", words("before", 12)), Turn("companion", words("reply", 12)))
    own = (Turn(turn.role, edited(turn.content, share)) for turn in scenario.turns)
    after = (Turn("companion", reference), Turn("user", words("after", 12)))
    return Dialogue("held", scenario.language, (*before, *own, *after))


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_histories_are_found_in_longer_dialogues(share):
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


def test_what_is_searched_where() -> None:
    second = "The other good reply tells of the kiln, the wet clay and the long way home by tram."
    scenario = replace(CHATS[0], references=("Yes.", second))
    one = SplitIndex([replace(MINI, scenarios=(scenario,))], 0.8).find(dialogue("d", "Hello.", second))
    assert one == {"of": scenario.id, "split": "mini", "on": "reference", "similarity": 1.0}
    # A reference is searched in replies alone.
    assert found(dialogue("d", CHATS[0].reference, words("r", 10), language=CHATS[0].language)) == [None]
    # Unrelated dialogues contain no item.
    hostile = ["", "?", "🙂🙂", "\0", "\ud800", "a b " * 50_000]
    texts = [(text or "-", text or "-") for text in hostile]
    texts += [(words("u", 10), find_language(language).null_memory) for language in ("en", "zh")]
    for language in ("en", "zh"):
        assert not any(found(*(dialogue(str(n), *pair, language=language) for n, pair in enumerate(texts))))
    # A run of turns is found anywhere in its order.
    scenario = next(s for s in CHATS if len(s.turns) == 5)
    said = [turn.content for turn in scenario.turns]
    whole, swapped = [*said, "x"], [*reversed(said), "x"]
    held = found(
        dialogue("a", words("b", 9), "Oh.", *whole, language=scenario.language),
        dialogue("b", *swapped, language=scenario.language),
    )
    assert (held[0] or {})["similarity"] == 1.0
    assert held[1] is None


def split_of(*openings: str) -> Split:
    scenario = next(s for s in CHATS if s.language == "en")
    made = [
        replace(scenario, id=f"i{n:04}", inputs={"history": (Turn("user", text),)}, references=("Yes.",))
        for n, text in enumerate(openings)
    ]
    return replace(MINI, name="many", scenarios=tuple(made))


@pytest.mark.parametrize("count", [1, 51, 400])
def test_an_input_of_many_items_is_found(count):
    """The shingles of more than 50 items were ignored, so the exact copy of a common input was not found."""
    text = words("asked by all", 15)
    index = SplitIndex([split_of(*[text] * count)], 0.8)
    copies = [dialogue("a", text, "No."), dialogue("b", edited(text, 0.1), "No."), dialogue("c", "Well. " + text)]
    found = [index.find(copy) for copy in copies]
    assert [held and held["of"] for held in found] == ["i0000"] * 3
    assert [held["similarity"] for held in found if held][::2] == [1.0, 1.0]


def test_a_text_of_common_phrases_is_found():
    """Each text has two halves, and more than fifty others share one of them with it."""
    asked = [f"{words(a, 6)} {words(-b, 6)}" for a in range(1, 53) for b in range(1, 53)]
    index = SplitIndex([split_of(*asked)], 0.8)
    for share in (0.02, 0.05, 0.1):
        copies = [dialogue(f"d{n}", edited(text, share), "No.") for n, text in enumerate(asked[::20])]
        missed = [copy.id for copy in copies if index.find(copy) is None]
        assert not missed, share
