"""An analysis made for a test: counted from a few texts by the package, with pairs that no parser had to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from h2htalk.analysis.analyze import Analysis, AnalyzeSpec, LanguageAnalysis, SplitAnalysis
from h2htalk.analysis.measures.diversity import coverage, measure_diversity
from h2htalk.analysis.measures.lengths import measure_lengths
from h2htalk.analysis.measures.log_odds import Comparison, log_odds
from h2htalk.analysis.measures.scenario_texts import SIDES, side_texts
from h2htalk.analysis.measures.words import WordCount, count_words
from h2htalk.analysis.verb_nouns.pairs import ParserModel, VerbNounPair, count_pairs
from h2htalk.data.languages import Language
from h2htalk.data.splits import load_split

PAIRS: Mapping[Language, Sequence[VerbNounPair]] = {
    "en": [
        VerbNounPair(*pair.split()) for pair in ("make tea", "make tea", "take walk", "water plant")
    ],
    "zh": [VerbNounPair("泡", "茶"), VerbNounPair("浇", "花")],
}


def made_analysis(
    languages: Sequence[Language] = ("en", "zh"),
    *,
    limit: int = 22,
    compared: bool = False,
    name: str = "made",
    words: Sequence[WordCount] | None = None,
    pairs: Sequence[VerbNounPair] | None = None,
    unmeasured: Sequence[str] = (),
) -> Analysis:
    """The first scenarios of `mini`. `words` and `pairs` stand in the place of those that are counted."""
    parts = tuple(_part(language, limit, words, pairs) for language in languages)
    split = SplitAnalysis(
        name, "1", "0123456789abcdef", 154, {p.language: p.scenarios for p in parts}, "fed", parts
    )
    return Analysis(
        spec=AnalyzeSpec(name),
        split=split,
        compare_with=split if compared else None,
        comparisons=tuple(_compared(part, side) for part in parts for side in SIDES if compared),
        parsers=tuple(ParserModel(None, language, "bundled", "1") for language in languages),
        tokenizer=None,
        embedder=None,
        unmeasured=tuple(unmeasured),
        package_version="0.0.test",
    )


def _compared(part: LanguageAnalysis, side: Any) -> Comparison:
    counts = {one.word: one.count for one in part.words[side]}
    return Comparison("words", side, part.language, log_odds(counts, {"other": 9}))


def _part(
    language: Language,
    limit: int,
    words: Sequence[WordCount] | None,
    pairs: Sequence[VerbNounPair] | None,
) -> LanguageAnalysis:
    scenarios = load_split("mini@1").select(language, limit=limit).scenarios
    texts = side_texts(scenarios)
    counted = {side: [text.text for text in texts if text.side == side] for side in SIDES}
    return LanguageAnalysis(
        language=language,
        scenarios=len(scenarios),
        lengths=measure_lengths(texts),
        words={side: tuple(words or count_words(counted[side], language)) for side in SIDES},
        pairs={side: tuple(count_pairs(pairs or PAIRS[language])) for side in SIDES},
        diversity=tuple(measure_diversity(texts)[0]),
        coverage=coverage(scenarios),
    )
