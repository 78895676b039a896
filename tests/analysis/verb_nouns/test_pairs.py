"""Counting verb-noun pairs: order, ties, what Fig. 5 draws; texts as a stream; how the frozen sets are scored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from h2htalk.analysis.verb_nouns.pair_counting import iter_pairs
from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbGroup, VerbNounPair, count_pairs, top_verbs

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from eval_pairs import main


def test_counts_stand_by_count_then_verb_then_noun() -> None:
    pairs = [
        VerbNounPair("make", "tea"),
        VerbNounPair("call", "mom"),
        VerbNounPair("make", "bed"),
        VerbNounPair("make", "tea"),
    ]
    assert count_pairs(pairs) == [
        PairCount("make", "tea", 2),
        PairCount("call", "mom", 1),
        PairCount("make", "bed", 1),
    ]


def test_verbs_of_the_figure_stand_by_what_is_drawn_of_them() -> None:
    """`have` is the more frequent verb, but only one of its pairs is drawn."""
    pairs = [VerbNounPair("have", "cake")] * 3 + [VerbNounPair("take", "walk")] * 2 + [VerbNounPair("take", "bath")] * 2
    pairs += [VerbNounPair("have", noun) for noun in ("fun", "tea", "time", "dog")]
    assert top_verbs(count_pairs(pairs), pairs=3) == [
        VerbGroup("take", 4, (PairCount("take", "bath", 2), PairCount("take", "walk", 2))),
        VerbGroup("have", 3, (PairCount("have", "cake", 3),)),
    ]


class TestEnglish:
    @pytest.fixture(autouse=True)
    def analysis_extra(self) -> None:
        pytest.importorskip("spacy", reason="the analysis extra is not installed")
        pytest.importorskip("lemminflect", reason="the analysis extra is not installed")

    def test_texts_are_read_as_a_stream(self) -> None:
        """The first pair is there before the last text is."""

        def texts() -> Iterator[str]:
            for _ in range(500):
                yield "Feed the cat."
            raise AssertionError("read ahead to the end")

        assert next(iter_pairs(texts(), "en")) == VerbNounPair("feed", "cat")

    def test_no_pair_goes_over_a_line_end(self) -> None:
        assert [*iter_pairs(["I read\nThe cat sleeps"], "en")] == []


class TestScoring:
    """tools/eval_pairs.py."""

    @pytest.mark.parametrize(("noun", "status"), [("cat", 0), ("dog", 1)])
    def test_below_the_floor_the_tool_fails(
        self, noun: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("spacy", reason="the analysis extra is not installed")
        pytest.importorskip("lemminflect", reason="the analysis extra is not installed")
        path = tmp_path / "set.jsonl"
        path.write_text(json.dumps({"id": "s-1", "text": "Feed the cat.", "pairs": [["feed", noun]]}), encoding="utf-8")
        assert main(["--set", str(path), "--show"]) == status
        printed = capsys.readouterr().out
        assert ("missed  feed dog" in printed) == bool(status)
        assert "1 sentences, 1 pairs" in printed
