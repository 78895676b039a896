"""S of an answer (Eq. 2): several references, of which the best counts; SS as a cosine; items of several samples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from h2htalk.benchmark.metrics import composite
from h2htalk.benchmark.metrics.composite import (
    ItemScore,
    Metrics,
    SampleScore,
    item_score,
    score_answers,
    similarities,
)
from h2htalk.benchmark.metrics.lexical import LexicalScores, lexical_scores
from h2htalk.benchmark.score_run import metric_keys
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import MissingExtraError
from h2htalk.text.embeddings.vectors import Vectors

MINI = load_split("mini@1")
LOST = Failure("timeout", "", 1)


class Letters:
    """A small embedder: the counts of a text's letters, as a unit vector. Notes what it is asked."""

    name = "letters"
    revision = "1"
    languages = ("en", "zh")
    comparable = False

    def __init__(
        self, letters: str = "aeios的了", refuses: str = "\0", breaks: str = "\0", least: int = 1
    ) -> None:
        self.letters, self.refuses, self.breaks, self.least = letters, refuses, breaks, least
        self.asked: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        if any(self.refuses in text for text in texts):
            raise RuntimeError("out of memory")
        counts = np.array(
            [[self.least + text.count(one) for one in self.letters] for text in texts], np.float32
        )
        counts[[self.breaks in text for text in texts]] = np.nan
        vectors: Vectors = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return vectors


def abcd(**more: str) -> Letters:
    return Letters("abcd", least=0, **more)


def shuffled(text: str, draw: random.Random) -> str:
    """The characters of a text in another order, in pieces of three."""
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    draw.shuffle(pieces)
    return "".join(pieces)


def split_of(references: Sequence[Sequence[str]], split: Split = MINI) -> Split:
    scenarios = (
        replace(s, references=tuple(own))
        for s, own in zip(split.scenarios, references, strict=False)
    )
    return replace(split, scenarios=tuple(scenarios))


def scored(split: Split, answers: Answers, metrics: Metrics) -> dict[str, SampleScore]:
    return {
        item_id: item.samples[0]
        for item_id, item in score_answers(split, answers, 1, metrics).items()
    }


def test_two_references_score_the_better() -> None:
    """Without an embedder the lexical mean chooses, and all six values are of the chosen reference."""
    draw = random.Random(3)
    split = split_of([(shuffled(s.reference, draw), s.reference + " end.") for s in MINI.scenarios])
    split = split_of([draw.sample(s.references, 2) for s in split.scenarios], split)
    answers = {
        (s.id, 0): Response(s.id, 0, f"{s.references[0][:20]} {s.references[1][:25]}")
        for s in split.scenarios
    }
    found = scored(split, answers, Metrics())
    chosen = set()
    for scenario in split.scenarios:
        text = answers[scenario.id, 0].answer
        options = [
            one._asdict()
            for one in lexical_scores([text] * 2, scenario.references, [scenario.language] * 2)
        ]
        means = [sum(option.values()) / 6 for option in options]
        best = means.index(max(means))
        values = {name: found[scenario.id].values[name] for name in LexicalScores._fields}
        assert values == pytest.approx(options[best], abs=1e-12)
        chosen.add(best)
    assert chosen == {0, 1}
    assert metric_keys(Metrics(), split)["references"] == "2"


def test_s_chooses_where_there_is_an_embedder() -> None:
    own = [s.reference for s in MINI.scenarios]
    split = split_of([*zip(own, own[7:], strict=False)])
    answers = {
        (s.id, 0): Response(s.id, 0, s.references[1][:30] + s.references[0][:30])
        for s in split.scenarios
    }
    metrics = Metrics(Letters())
    both = scored(split, answers, metrics)
    parts = [split_of([s.references[n : n + 1] for s in split.scenarios], split) for n in (0, 1)]
    single = [scored(part, answers, metrics) for part in parts]
    winners = set()
    for item_id, score in both.items():
        options = [one[item_id] for one in single]
        best = max(options, key=lambda option: option.s)
        assert (score.values, score.s) == (best.values, best.s)
        winners.add(options.index(best))
    assert winners == {0, 1}


def test_a_reference_that_the_embedder_fails_on_leaves_the_best_unknown() -> None:
    text = "You waited for an answer."
    split = split_of([(text, "FAIL of the embedder."), (text,)])
    answers: Answers = {(s.id, 0): Response(s.id, 0, text) for s in split.scenarios}
    first, second = scored(split, answers, Metrics(Letters(refuses="FAIL"))).values()
    assert first.unscored == "embedder: RuntimeError: out of memory"
    assert (second.unscored, second.s) == (None, pytest.approx(1))


def test_a_failed_sample_is_named_before_private_references() -> None:
    """Otherwise the run would count as complete, and the sample would never be asked for again."""
    split = split_of([()])
    item_id = split.scenarios[0].id
    answers: Answers = {
        (item_id, 0): Response(item_id, 0, "Yes."),
        (item_id, 1): FailedResponse(item_id, 1, LOST),
    }
    assert score_answers(split, answers, 2, Metrics())[item_id].unscored == "timeout"


def test_without_references_an_answer_is_unscored_and_its_contract_is_checked() -> None:
    split = split_of([(), (), ("Yes, I am here.",)])
    first, second, third = (s.id for s in split.scenarios)
    answers: Answers = {
        (first, 0): Response(first, 0, "As an AI language model, I cannot feel. " * 30),
        (second, 0): FailedResponse(second, 0, LOST),
        (third, 0): Response(third, 0, "Yes, I am here."),
    }
    items: list[ItemScore] = list(score_answers(split, answers, 1, Metrics()).values())
    assert [(i.unscored, i.lexical, i.compliance) for i in items] == [
        (composite.PRIVATE_REFERENCE, None, 0.0),
        ("timeout", None, None),
        (None, 1.0, 1.0),
    ]
    assert items[0].samples[0].violations


def test_the_cosine_by_hand_is_zero_for_an_empty_answer() -> None:
    values = similarities(abcd(), ["a", "a", "ab", "aab"], ["a", "b", "a", "ab"])
    assert values == pytest.approx([1.0, 0.0, 1 / np.sqrt(2), 3 / np.sqrt(10)], abs=1e-6)
    embedder = abcd()  # an empty answer has nothing to embed
    assert similarities(embedder, ["", "a"], ["b", ""]) == [0.0, 0.0]
    assert "" not in embedder.asked[0]
    assert similarities(embedder, [], []) == []


def test_a_text_that_fails_costs_its_own_items_only() -> None:
    texts = [f"{letter * n}" for n in range(1, 9) for letter in "abc"] + ["abX", "dX"]
    references = ["abc"] * len(texts)
    embedder = abcd(refuses="X")
    values = similarities(embedder, texts, references)
    assert values[-2:] == ["embedder: RuntimeError: out of memory"] * 2
    assert values[:-2] == similarities(abcd(), texts[:-2], references[:-2])
    assert len(embedder.asked) < 25  # halves, not one by one
    # S took the larger of 0 and NaN, which is 0.
    assert similarities(abcd(breaks="X"), ["a", "aX"], ["a", "a"]) == [
        1.0,
        "embedder: not a finite vector",
    ]


def test_an_embedder_that_cannot_work_at_all_is_an_error_not_a_run_of_unscored_items() -> None:
    class Missing(Letters):
        def encode(self, texts: Sequence[str]) -> Vectors:
            raise MissingExtraError("embedder letters", "pip install letters")

    with pytest.raises(MissingExtraError, match="pip install letters"):
        similarities(Missing(), ["a", "b"], ["c", "d"])


HALF = LexicalScores(0.5, 0.4, 0.3, 0.2, 0.6, 0.4)
ONES = LexicalScores(1, 1, 1, 1, 1, 1)
ZEROS = LexicalScores(0, 0, 0, 0, 0, 0)


def sample_values(lexical: LexicalScores, ss: float | None = None) -> dict[str, float]:
    return lexical._asdict() | ({} if ss is None else {"ss": ss})


def sample_score(
    number: int, lexical: LexicalScores, ss: float | None = None, **more: object
) -> SampleScore:
    return SampleScore("a", number, sample_values(lexical, ss), **more)


def test_s_is_the_mean_of_the_seven_and_stays_in_its_range() -> None:
    assert composite.composite_score(sample_values(HALF, 0.8)) == pytest.approx(
        (2.4 + 0.8) / 7, abs=1e-12
    )
    assert composite.lexical_mean(sample_values(HALF)) == pytest.approx(0.4, abs=1e-12)
    assert composite.composite_score(sample_values(ONES, 1.0)) == 1.0
    assert (
        composite.composite_score(sample_values(ZEROS, -0.2)) == 0.0
    )  # a cosine can be below zero
    assert composite.composite_score(sample_values(HALF, -0.2)) == pytest.approx(2.2 / 7)


def test_an_item_is_the_mean_of_its_samples() -> None:
    assert item_score("a", [sample_score(0, ZEROS)]).lexical == 0.0  # an empty answer
    too_long = sample_score(1, ZEROS, 0.2, violations=("too_long",))
    item = item_score("a", [too_long, sample_score(0, ONES, 1.0), sample_score(2, HALF, 0.6)])
    expected = ((0 + 1 + 0.4) / 3, 0.6, (0.2 / 7 + 1 + 3.0 / 7) / 3, 2 / 3, None)
    assert (item.lexical, item.ss, item.s, item.compliance, item.unscored) == pytest.approx(
        expected
    )
    assert [s.sample for s in item.samples] == [0, 1, 2]


def test_one_failed_sample_leaves_the_item_unscored_with_the_first_reason() -> None:
    """The mean of the others would be the mean of another, easier item."""
    unscored = [
        SampleScore("a", n, unscored=reason) for n, reason in ((3, "timeout"), (1, "http_500"))
    ]
    item = item_score(
        "a", [unscored[0], sample_score(0, ONES, 1.0), unscored[1], sample_score(2, HALF, 0.5)]
    )
    figures = (item.lexical, item.ss, item.s, item.compliance)
    assert (figures, item.unscored, len(item.samples)) == ((None,) * 4, "http_500", 4)
