"""Extraction: turns whose reply keeps the contract, spread over the dialogue, with bounded histories."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from compose_made import talk
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from h2htalk.curation.compose.drafts import MOST_CHARACTERS, MOST_DRAFTS, MOST_TURNS, answered, extract, history
from h2htalk.curation.compose.tagging import count_emotions, tags_of
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn, bundled_personas
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

NORA = bundled_personas()["nora"]
ALL = tuple(SUBTASKS)


def chat(*texts: str, first: str = "user", **changes: object) -> Dialogue:
    roles = ("user", "companion") if first == "user" else ("companion", "user")
    return talk(messages=[{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)], **changes)


def exchanges(count: int) -> Dialogue:
    pairs = [(f"I planted bean number {n} on the balcony.", f"What colour is bean {n}?") for n in range(count)]
    return chat(*[text for pair in pairs for text in pair])


@pytest.mark.parametrize(("count", "drafts"), [(1, 1), (4, 1), (5, 2), (9, 3), (40, MOST_DRAFTS)])
def test_one_draft_for_every_four_turns_spread_over_the_dialogue(count: int, drafts: int) -> None:
    found = extract(exchanges(count), NORA, ALL, 0).drafts
    assert len(found) == drafts
    stretches = [(draft.turn - 1) // 2 * drafts // count for draft in found if draft.turn]
    assert stretches == list(range(drafts))


def test_which_turns_are_extracted() -> None:
    texts = ("Hello!", "Hi there.", "I planted beans on the balcony today.", "Which kind?", "Bye!", "See you.")
    assert all(extract(chat(*texts), NORA, ALL, seed).drafts[0].turn == 3 for seed in range(10))
    assert extract(chat("Hello!", "Hi there."), NORA, ALL, 0).drafts[0].turn == 1
    # The most emotional turn is `dialogue_emotion`.
    angry = "Now I am furious, angry and ashamed all at once."
    texts = ("I was a bit nervous, to be honest.", "Why?", angry, "All three?")
    emotion, base = sorted(extract(chat(*texts), NORA, ALL, 0).drafts, key=lambda draft: draft.subtask, reverse=True)
    assert (emotion.subtask, emotion.turn, emotion.tags.emotion) == ("dialogue_emotion", 3, "anger")
    assert (base.subtask, base.turn) == ("dialogue_base", 1)
    # The reason without a draft.
    assert extract(chat("Are you there?", "Yes.", first="companion"), NORA, ALL, 0).reason == "no_turn"
    assert extract(exchanges(1), NORA, ("itinerary_basic",), 0).reason == "nothing"
    assert extract(chat("a " * MOST_CHARACTERS, "Yes."), NORA, ALL, 0).reason == "too_long"
    assert (
        extract(chat("Where do herons sleep?", "哪儿都睡，你想去看看吗？"), NORA, ALL, 0).reason == "contract:language"
    )


REPLY = "That sounds like a long evening, which part of it stays with you now?"


@pytest.mark.parametrize(("language", "text", "reply", "drafts"), table("curation", "selective_extraction"))
def test_a_selective_extraction_has_content_of_no_human(language: str, text: str, reply: str, drafts: int) -> None:
    found = extract(chat(text, reply, language=language), NORA, ALL, 0, selective=True)
    assert (len(found.drafts), found.reason) == (drafts, "" if drafts else "no_content")


def test_the_history_of_a_selective_extraction_begins_after_such_a_reply() -> None:
    texts = ("My cellar was flooded again on Sunday night.", "My husband and I lost our cellar as well.")
    more = ("The water took the boxes with all my letters in it.", REPLY)
    (draft,) = extract(chat(*texts, *more), NORA, ("dialogue_base",), 0, selective=True).drafts
    assert [turn["content"] for turn in draft.inputs["history"]] == [more[0]]


TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "companion"]), st.text(min_size=1, max_size=60)).filter(lambda t: t[1].strip()),
    min_size=1,
    max_size=30,
)


@given(TURNS, st.integers(0, 5), st.sampled_from(["en", "zh"]))
def test_drafts_are_unchanged_parts_of_the_dialogue(turns: list[tuple[str, str]], seed: int, language: str) -> None:
    said = tuple(Turn(role, text) for role, text in turns)  # type: ignore[arg-type]
    dialogue = Dialogue("made-000001", language, said)  # type: ignore[arg-type]
    found = extract(dialogue, NORA, ALL, seed)
    assert bool(found.drafts) != bool(found.reason)
    assert len({draft.turn for draft in found.drafts}) == len(found.drafts)
    for draft in found.drafts:
        assert draft.turn is not None
        assert draft.turn - 1 in answered(dialogue)
        assert draft.original == said[draft.turn].content
        turns_of = [Turn(**turn) for turn in draft.inputs["history"]]
        assert list(said[draft.turn - len(turns_of) : draft.turn]) == turns_of


@given(TURNS, st.data())
def test_a_history_is_bounded_and_ends_with_its_message(turns: list[tuple[str, str]], data: st.DataObject) -> None:
    said = tuple(Turn(role, text * 40) for role, text in turns)  # type: ignore[arg-type]
    at = data.draw(st.integers(0, len(said) - 1))
    found = history(Dialogue("made-000001", "en", said), at)
    assert len(found) <= MOST_TURNS
    assert sum(len(turn.content) for turn in found) <= MOST_CHARACTERS
    assert not found or found[-1] == said[at]
    assert len(found) in (0, at + 1) or found[0].role == "user"


@pytest.mark.parametrize(("language", "text", "emotion"), table("curation", "emotions_named_by_words"))
def test_emotions_named_by_words(language: Language, text: str, emotion: str | None) -> None:
    assert next(iter(count_emotions(text, language)), None) == emotion


def test_metadata_precede_a_model_and_a_model_precedes_words() -> None:
    turns = (Turn("user", "I am so worried."),)
    named = {"emotion": "hope", "complexity": "advanced", "interaction": "memory"}
    plain, tagged = talk(), talk(metadata={"emotion": "joy", "complexity": "basic", "interaction": "casual"})
    assert tags_of(plain, turns).emotion == "anxiety"
    assert asdict(tags_of(plain, turns, named)) == {**named, "risk": "none"}
    assert tags_of(tagged, turns, named).emotion == "joy"
    assert tags_of(tagged, turns, {**named, "emotion": "??"}).complexity == "basic"
    with pytest.raises(DataError, match="not a word"):
        tags_of(plain, turns, {**named, "emotion": "??"})


@pytest.mark.parametrize(("texts", "complexity", "interaction", "emotion"), table("curation", "tags_by_the_history"))
def test_tags_by_the_history(texts: tuple[str, ...], complexity: str, interaction: str, emotion: str) -> None:
    found = tags_of(talk(), [Turn("user", text) for text in texts])
    assert (found.complexity, found.interaction, found.emotion) == (complexity, interaction, emotion)
