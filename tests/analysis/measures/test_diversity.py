"""Diversity: distinct-n and self-BLEU at sizes that can be compared, the spread of embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from h2htalk.analysis.measures import diversity
from h2htalk.analysis.measures.scenario_texts import Side, SideText, side_texts
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Complexity, Interaction, Scenario, Tags
from h2htalk.data.splits import load_split
from h2htalk.text.embeddings.vectors import Vectors, unit_rows


class LetterEmbedder:
    """A stand-in: a text's direction is its length and its count of the letter a."""

    name, revision, comparable = "letters", "test", False

    def __init__(self, languages: tuple[str, ...] = ("en", "zh")) -> None:
        self.languages = languages
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.seen += texts
        return unit_rows(
            np.array([[len(text), 7.0 * text.count("a")] for text in texts], np.float32)
        )


def made(
    texts: Sequence[str], side: Side = "response", language: Language = "en", start: int = 0
) -> list[SideText]:
    return [
        SideText(f"s{number}", "dialogue_base", language, "calm", side, text)
        for number, text in enumerate(texts, start)
    ]


def only(measured: Sequence[Sequence[diversity.Diversity]]) -> diversity.Diversity:
    """The one row of the one split."""
    ((row,),) = measured
    return row


def test_measures_by_hand() -> None:
    # Five words, two different; bigrams ab ba | ab; one trigram; no 4-gram. None runs across the texts.
    assert diversity.distinct([list("aba"), list("ab")]) == (2 / 5, 2 / 3, 1.0, None)
    # Three texts, two alike, one at a right angle: of three pairs one has cosine 1 and two have 0.
    assert diversity.spread(np.array([[1, 0], [1, 0], [0, 1]], np.float32)) == pytest.approx(2 / 3)
    # Fewer than two texts have no self-BLEU.
    assert (diversity.self_bleu([]), diversity.self_bleu([["a", "b"]])) == (None, None)


def test_each_side_of_each_language_has_a_row_english_first() -> None:
    (rows,) = diversity.measure_diversity(side_texts(load_split("mini@1").scenarios))
    assert [(row.language, row.side) for row in rows] == list(
        product(("en", "zh"), ("instruction", "response"))
    )
    for row in rows:
        assert (row.texts, row.skipped, row.self_bleu_texts) == (77, 0, 77)
        assert (row.spread, row.spread_texts, row.embedder) == (None, 0, None)
        assert all(value is not None and 0 < value <= 1 for value in row.distinct)
        assert row.distinct == row.distinct_sampled


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_without_a_token_is_skipped_and_counted(language: Language) -> None:
    texts = made(["", " \n\t", "\u3000", "tea", "tea"], language=language)
    row = only(diversity.measure_diversity(texts, embedder=(embedder := LetterEmbedder())))
    assert (row.texts, row.skipped, row.words) == (2, 3, 2)
    assert embedder.seen == ["tea", "tea"]
    empty = only(diversity.measure_diversity(texts[:3]))
    assert (empty.texts, empty.skipped, empty.distinct) == (0, 3, (None,) * 4)


def test_a_language_that_the_embedder_is_not_made_for_is_not_asked() -> None:
    texts = made(["tea", "a walk"]) + made(["喝茶", "散步"], language="zh")
    embedder = LetterEmbedder(languages=("en",))
    [[english, chinese]] = diversity.measure_diversity(texts, embedder=embedder)
    assert english.embedder == "letters"
    assert english.spread is not None
    assert (chinese.spread, chinese.spread_texts, chinese.embedder) == (None, 0, None)
    assert sorted(embedder.seen) == ["a walk", "tea"]


def test_samples_are_drawn_by_the_seed_up_to_their_limits() -> None:
    texts = made(
        [f"word{n * n % 997} tea word{n % 7}" for n in range(diversity.SELF_BLEU_TEXTS + 300)]
    )
    first = only(diversity.measure_diversity(texts))
    assert only(diversity.measure_diversity(texts[::-1])) == first
    assert only(diversity.measure_diversity(texts, seed=1)).self_bleu != first.self_bleu
    # Samples have their limits.
    texts = made([f"a{n} b c d e f g h i j k l m n o p" for n in range(1400)])
    row = only(diversity.measure_diversity(texts, embedder=(embedder := LetterEmbedder())))
    assert (row.words, row.sampled_words) == (1400 * 16, diversity.SAMPLE_WORDS)
    assert row.self_bleu_texts == diversity.SELF_BLEU_TEXTS
    assert row.spread_texts == len(embedder.seen) == diversity.SPREAD_TEXTS
    assert row.distinct != row.distinct_sampled
    # Two splits are measured on samples of one size.
    small = made(["tea and rain", "rain and tea"])
    large = made(["tea and rain"] * 9 + ["a walk"], start=50)
    [ours], [theirs] = diversity.measure_diversity(small, large)
    assert ours.sampled_words == theirs.sampled_words == 6
    assert ours.self_bleu_texts == theirs.self_bleu_texts == 2
    assert (ours.words, theirs.words) == (6, 29)
    # Raw distinct-n of a split is its own, whatever stands beside it.
    assert theirs.distinct == only(diversity.measure_diversity(large)).distinct


# Self-BLEU is nltk's sentence_bleu with all other texts as references, without asking it n times.
METHOD1 = SmoothingFunction().method1
Tokens = list[str]


def nltk_scores(texts: list[Tokens]) -> list[float]:
    return [
        sentence_bleu(
            texts[:index] + texts[index + 1 :], text, (0.25,) * 4, smoothing_function=METHOD1
        )
        for index, text in enumerate(texts)
    ]


# Few words, so that n-grams are shared, repeated, and largest in several texts at once.
TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=2, max_size=7)


@given(TEXTS)
def test_equal_to_nltk_on_any_texts(texts: list[Tokens]) -> None:
    theirs = nltk_scores(texts)
    assert diversity.self_bleu_scores(texts) == pytest.approx(theirs, abs=1e-12)
    assert diversity.self_bleu(texts) == pytest.approx(sum(theirs) / len(theirs), abs=1e-12)


ANY = load_split("mini@1").scenarios[0]
Three = tuple[str, Complexity, Interaction]


def tagged(*tags: Three) -> list[Scenario]:
    return [
        replace(ANY, id=f"s{n}", tags=Tags(*three, risk="none")) for n, three in enumerate(tags)
    ]


def test_cells_and_evenness_of_combinations() -> None:
    calm: Three = ("calm", "basic", "casual")
    grid = diversity.coverage(
        tagged(("sad", "advanced", "memory"), calm, calm, ("awed", "basic", "casual"))
    )
    assert list(grid.emotions.items()) == [("calm", 2), ("awed", 1), ("sad", 1)]
    assert len(grid.cells) == 3 * 3 * 3
    assert grid.filled == 3
    assert (grid.cells[calm], grid.cells["sad", "advanced", "memory"]) == (2, 1)
    assert list(grid.cells)[1] == ("calm", "basic", "emotional_support")
    # Shares 1/2, 1/4, 1/4 over a grid of 9: 1.5 ln 2 / ln 9.
    tags: list[Three] = [("calm", "basic", "casual")] * 2
    tags += [("calm", "basic", "memory"), ("calm", "advanced", "memory")]
    assert diversity.coverage(tagged(*tags)).evenness == pytest.approx(
        1.5 * math.log(2) / math.log(9), abs=1e-12
    )
