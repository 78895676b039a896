"""Counting verb-noun pairs: order, ties, what Fig. 5 draws; texts as a stream; how the frozen sets are scored."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from h2htalk.analysis.verb_nouns.pairs import (
    BUNDLED,
    Chunk,
    PairCount,
    PairJob,
    VerbGroup,
    VerbNounPair,
    choose_models,
    count_pairs,
    count_texts,
    top_verbs,
)
from h2htalk.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from eval_pairs import main


def test_counts_and_the_verbs_of_the_figure_are_ordered() -> None:
    pairs = [
        VerbNounPair(*pair.split()) for pair in ("make tea", "call mom", "make bed", "make tea")
    ]
    assert count_pairs(pairs) == [
        PairCount("make", "tea", 2),
        PairCount("call", "mom", 1),
        PairCount("make", "bed", 1),
    ]
    # `have` is the more frequent verb, but only one of its pairs is drawn.
    pairs = (
        [VerbNounPair("have", "cake")] * 3
        + [VerbNounPair("take", "walk")] * 2
        + [VerbNounPair("take", "bath")] * 2
    )
    pairs += [VerbNounPair("have", noun) for noun in ("fun", "tea", "time", "dog")]
    assert top_verbs(count_pairs(pairs), pairs=3) == [
        VerbGroup("take", 4, (PairCount("take", "bath", 2), PairCount("take", "walk", 2))),
        VerbGroup("have", 3, (PairCount("have", "cake", 3),)),
    ]


@pytest.mark.parametrize(("noun", "status"), [("cat", 0), ("dog", 1)])
def test_the_tool_fails_below(
    noun: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tools/eval_pairs.py."""
    pytest.importorskip("spacy", reason="the analysis extra is not installed")
    pytest.importorskip("lemminflect", reason="the analysis extra is not installed")
    path = tmp_path / "set.jsonl"
    path.write_text(
        json.dumps({"id": "s-1", "text": "Feed the cat.", "pairs": [["feed", noun]]}),
        encoding="utf-8",
    )
    assert main(["--set", str(path), "--show"]) == status
    printed = capsys.readouterr().out
    assert ("missed  feed dog" in printed) == bool(status)
    assert "1 sentences, 1 pairs" in printed


def first_two_words(chunk: Chunk) -> Counter[VerbNounPair]:
    """A counter that stands in for the parser; the processes import it from here."""
    pairs = [VerbNounPair(*piece.split()[:2]) for piece in chunk.pieces if len(piece.split()) > 1]
    return Counter({pair: n * chunk.times for pair, n in Counter(pairs).items()})


JOBS = [
    PairJob(("make tea", "make tea", "take walk", "hm"), "en"),
    PairJob((), "zh"),
    PairJob(tuple(f"read book{n % 7} now" for n in range(900)), "en"),
]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_counts_are_those_of_each_job(processes: int) -> None:
    first, empty, books = count_texts(JOBS, processes, first_two_words)
    assert first == [PairCount("make", "tea", 2), PairCount("take", "walk", 1)]
    assert empty == []
    assert [(pair.noun, pair.count) for pair in books] == [
        *((f"book{n}", 129) for n in range(4)),
        *((f"book{n}", 128) for n in range(4, 7)),
    ]


def pipeline(folder: Path, meta: object) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(meta if isinstance(meta, str) else json.dumps(meta))
    return str(folder)


def test_which_pipeline_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = pipeline(
        tmp_path / "m", {"lang": "zh", "name": "core_web_sm", "version": "3.8.0", "more": []}
    )
    models = choose_models([named], ["en", "zh"])
    assert (models["en"].source, models["en"].name) == (None, BUNDLED)
    assert (models["zh"].source, models["zh"].name, models["zh"].version) == (
        named,
        "zh_core_web_sm",
        "3.8.0",
    )
    # An installed package is found by its name.
    pipeline(tmp_path / "en_made_sm", {"lang": "en", "name": "made_sm", "version": "1"})
    (tmp_path / "en_made_sm" / "__init__.py").write_text("raise RuntimeError('read, not run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert choose_models(["en_made_sm"], ["en"])["en"].name == "en_made_sm"
    # A pipeline of a language that the split lacks is refused.
    german = pipeline(tmp_path / "de", {"lang": "de", "name": "n", "version": "1"})
    with pytest.raises(
        ConfigError, match="is a pipeline for 'de'; the texts analysed are en and zh"
    ):
        choose_models([german], ["en", "zh"])
    chinese = pipeline(tmp_path / "zh", {"lang": "zh", "name": "n", "version": "1"})
    with pytest.raises(ConfigError, match="'zh'; the texts analysed are en"):
        choose_models([chinese], ["en"])


@pytest.mark.parametrize(
    "source", ["no_model", "no such", "../no", "", "json.decoder", "typing", "x" * 5000, "\0"]
)
def test_a_name_that_is_no_pipeline_is_an_error(source: str) -> None:
    with pytest.raises(ConfigError, match=r"no spaCy pipeline .*python -m spacy download"):
        choose_models([source], ["en"])


@pytest.mark.parametrize(
    "meta", ["not JSON", "[]", {"lang": "en"}, {"lang": 3, "name": "n", "version": "1"}]
)
def test_a_folder_that_is_no_pipeline_is_an_error(tmp_path: Path, meta: object) -> None:
    with pytest.raises(ConfigError, match=r"meta\.json"):
        choose_models([pipeline(tmp_path / "m", meta)], ["en"])
    with pytest.raises(ConfigError, match=r"no readable meta\.json"):
        choose_models([str(tmp_path)], ["en"])
