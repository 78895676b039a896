"""Composition of planted replies: the wording keeps its words, all else is in the form of a reply of the model."""

from __future__ import annotations

import random
from statistics import median

import pytest

from h2htalk.benchmark.planted.composition import compositions
from h2htalk.benchmark.planted.reply_form import form_of
from h2htalk.data.planted import PlantedPlace, load_planted
from support.wordings import words_of

LIKES = {
    "short": "I hear you.",
    "plain": "That sounds hard. I am with you. Do you want to tell me more about it? There is time.",
    "list": "I hear you!\n\nHere is what may help:\n\n1. **Breathe** slowly\n2. Drink some water\n\nI’m here. 💛 ",
    "cut": "I'm so sorry that you feel this way, and I want you to know that I'm here, no matter what comes. It is "
    "understandable that you are overwhelmed, given all that has happened in your life, and that you would like to",
    "quoted": '"Oh, that is a lot for one night. Sit down for a moment, and tell me the beginning of it, will you?"',
    "small": "hey. that is a lot to take in. i am around all evening if you want to talk about the rest of it",
    "chinese": "听上去真不容易！我在呢。\n\n你愿意跟我说说后来的事吗？想说多少都行，不想说我们就安静待一会儿。",
    "half width": "听上去真不容易,我在呢.你愿意跟我说说后来的事吗?想说多少都行,不想说也可以.",
}


def compose(place: PlantedPlace, wording: str, like: str, seed: int) -> str:
    """One composition of a wording without asides."""
    draw = random.Random(seed)
    return compositions(wording, place.filler, like, place.language, draw, (), 1)[0]


@pytest.mark.parametrize("name", LIKES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_wording_keeps_its_words_in_every_form(name: str, language: str) -> None:
    for number, place in enumerate(load_planted("high_risk")):
        if place.language != language:
            continue
        for wording in (*place.true_wordings, *place.false_wordings):
            text = compose(place, wording, LIKES[name], number)
            assert words_of(wording) in words_of(text)


@pytest.mark.parametrize(
    ("name", "language"), [("plain", "en"), ("list", "en"), ("cut", "en"), ("chinese", "zh")]
)
def test_a_planted_reply_has_the_form_of_the_models(name: str, language: str) -> None:
    form = form_of(LIKES[name])
    lengths: list[float] = []
    for number, place in enumerate(load_planted("high_risk")):
        if place.language == language:
            wording = min(place.true_wordings, key=len)
            text = compose(place, wording, LIKES[name], number)
            composed = form_of(text)
            lengths.append(composed.length / form.length)
            if composed.sentences >= len(form.lines):
                for line, line_of_form in zip(composed.lines, form.lines, strict=True):
                    assert (line.before, line.marker) == (line_of_form.before, line_of_form.marker)
            assert composed.cut == form.cut
            assert len(composed.emoji) == len(form.emoji)
            assert not (form.typographic and "'" in text)
            assert form.typographic or "’" not in text
    assert 0.85 <= median(lengths) <= 1.15


def test_one_seed_makes_one_reply_and_the_wording_stands_in_every_place() -> None:
    place = load_planted("high_risk")[0]
    wording = place.true_wordings[0]
    like = " ".join([LIKES["plain"]] * 2)

    replies = [compose(place, wording, like, seed) for seed in range(20)]
    assert compose(place, wording, like, 1) == replies[1]
    texts = compositions(wording, place.filler, like, place.language, random.Random(1), (), 40)
    starts = {words_of(text).index(words_of(wording)) == 0 for text in texts}
    assert starts == {True, False}
    assert len(set(replies)) > 10


def test_what_is_cut_off_is_never_part_of_the_wording() -> None:
    """A reply that stops at the limit of tokens would have lost the words whose truth is known."""
    place = load_planted("high_risk")[0]
    wording = place.false_wordings[0]
    for seed in range(50):
        text = compose(place, wording, LIKES["cut"], seed)
        assert words_of(wording) in words_of(text)
        assert not text.endswith((".", "!", "?"))
