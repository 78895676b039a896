"""Tags of a scenario: from metadata, else from a model, else from words."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from compose_made import talk

from h2htalk.curation.compose.tagging import count_emotions, is_pleasantry, tags_of
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Turn
from h2htalk.errors import DataError


@pytest.mark.parametrize(
    ("language", "text", "emotion"),
    [
        ("en", "I’m so worried about tomorrow, I can’t sleep.", "anxiety"),
        ("en", "We broke up and I cried for an hour.", "sadness"),
        ("en", "I am so excited, I can't wait!", "excitement"),
        ("en", "It is all my fault.", "guilt"),
        ("zh", "我好焦虑，晚上总是睡不着", "anxiety"),
        ("zh", "分手以后我一直很难过", "sadness"),
        ("zh", "领导当众骂我，气死了", "anger"),
        ("en", "I am not afraid and never lonely.", None),
        ("zh", "我不难过，也没生气", None),
        ("en", "The table is made of oak.", None),
        ("zh", "桌子是橡木做的", None),
        ("en", "The sadistic angrywolf.", None),
    ],
)
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


def test_complexity_and_interaction_by_the_history() -> None:
    def tags(*texts: str):
        return tags_of(talk(), [Turn("user", text) for text in texts])

    assert tags("I am sad.").complexity == "basic"
    assert tags("I am sad.", "It rains.", "Still.").complexity == "intermediate"
    assert tags("I am sad.", "Also angry.", "a", "b", "c").complexity == "advanced"
    assert tags("I am sad.").interaction == "emotional_support"
    assert tags("It rains here.").interaction == "casual"
    # What the user feels and what the exchange is for are found apart.
    assert (tags("I am so excited!").emotion, tags("I am so excited!").interaction) == ("excitement", "casual")
    assert (tags("What should I do?").emotion, tags("What should I do?").interaction) == (
        "neutral",
        "emotional_support",
    )
    assert tags("Do you remember the heron?").interaction == "memory"


@pytest.mark.parametrize(
    ("language", "text", "empty"),
    [
        ("en", "Thanks, bye!", True),
        ("en", "ok", True),
        ("en", "My thesis was rejected this morning.", False),
        ("zh", "谢谢你，晚安", True),
        ("zh", "嗯", True),
        ("zh", "今天论文被退回来了，心里空落落的", False),
    ],
)
def test_pleasantries(language: Language, text: str, empty: bool) -> None:
    assert is_pleasantry(text, language) == empty
