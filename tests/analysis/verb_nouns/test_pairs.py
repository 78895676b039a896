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


def test_pairs_are_counted_the_most_frequent_first_equal_ones_by_name() -> None:
    texts = ["make tea", "call mom", "make bed", "make tea"]
    pairs = [VerbNounPair(*text.split()) for text in texts]
    assert count_pairs(pairs) == [
        PairCount("make", "tea", 2),
        PairCount("call", "mom", 1),
        PairCount("make", "bed", 1),
    ]


def test_a_verb_of_the_figure_counts_its_drawn_pairs_alone() -> None:
    """`have` is the more frequent verb, but only one of its pairs is drawn."""
    cake = PairCount("have", "cake", 3)
    bath = PairCount("take", "bath", 2)
    walk = PairCount("take", "walk", 2)
    rare = [PairCount("have", noun, 1) for noun in ("fun", "tea", "time", "dog")]
    take = VerbGroup("take", 4, (bath, walk))
    have = VerbGroup("have", 3, (cake,))
    assert top_verbs([cake, bath, walk, *rare], pairs=3) == [take, have]


@pytest.mark.parametrize(("noun", "status"), [("cat", 0), ("dog", 1)])
def test_the_tool_fails_below(
    noun: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tools/eval_pairs.py."""
    pytest.importorskip("spacy", reason="the analysis extra is not installed")
    pytest.importorskip("lemminflect", reason="the analysis extra is not installed")
    path = tmp_path / "set.jsonl"
    record = {"id": "s-1", "text": "Feed the cat.", "pairs": [["feed", noun]]}
    path.write_text(json.dumps(record), encoding="utf-8")
    assert main(["--set", str(path), "--show"]) == status
    printed = capsys.readouterr().out
    assert ("missed  feed dog" in printed) == bool(status)
    assert "1 sentences, 1 pairs" in printed


def first_two_words(chunk: Chunk) -> Counter[VerbNounPair]:
    """A counter that stands in for the parser; the processes import it from here."""
    counts: Counter[VerbNounPair] = Counter()
    for piece in chunk.pieces:
        words = piece.split()
        if len(words) > 1:
            pair = VerbNounPair(words[0], words[1])
            counts[pair] += chunk.times
    return counts


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
    assert [pair.noun for pair in books] == [f"book{n}" for n in range(7)]
    assert [pair.count for pair in books] == [129, 129, 129, 129, 128, 128, 128]


def pipeline(folder: Path, meta: object) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    text = meta if isinstance(meta, str) else json.dumps(meta)
    (folder / "meta.json").write_text(text)
    return str(folder)


def test_a_named_folder_parses_its_language_and_the_bundled_pipeline_the_others(
    tmp_path: Path,
) -> None:
    meta = {"lang": "zh", "name": "core_web_sm", "version": "3.8.0", "more": []}
    source = pipeline(tmp_path / "m", meta)
    models = choose_models([source], ["en", "zh"])
    assert models["en"].source is None
    assert models["en"].name == BUNDLED
    assert models["zh"].source == source
    assert models["zh"].name == "zh_core_web_sm"
    assert models["zh"].version == "3.8.0"


def test_an_installed_package_is_known_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "en_made_sm"
    pipeline(package, {"lang": "en", "name": "made_sm", "version": "1"})
    (package / "__init__.py").write_text("raise RuntimeError('read, not run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    models = choose_models(["en_made_sm"], ["en"])
    assert models["en"].name == "en_made_sm"


def test_a_pipeline_of_a_language_that_the_split_lacks_is_refused(tmp_path: Path) -> None:
    german = pipeline(tmp_path / "de", {"lang": "de", "name": "n", "version": "1"})
    message = "is a pipeline for 'de'; the texts analysed are en and zh"
    with pytest.raises(ConfigError, match=message):
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
