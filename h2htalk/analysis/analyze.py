"""Analyse a split: lengths, words, verb-noun pairs, diversity and coverage (paper, section 3.3), or compare two.

This module counts; `report.write_analysis` draws and writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from h2htalk.analysis.measures.diversity import Coverage, Diversity, coverage, measure_diversity
from h2htalk.analysis.measures.lengths import Lengths, measure_lengths
from h2htalk.analysis.measures.log_odds import Comparison, log_odds
from h2htalk.analysis.measures.scenario_texts import SIDES, Side, SideText, side_texts
from h2htalk.analysis.measures.words import WordCount, comparable_counts, count_words
from h2htalk.analysis.verb_nouns.pairs import (
    PairCount,
    PairJob,
    ParserModel,
    choose_models,
    choose_processes,
    count_texts,
)
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.records import NOT_EMPTY
from h2htalk.data.scenario import Scenario
from h2htalk.data.settings import PathText, check_fields
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, counted, quoted
from h2htalk.text.chinese_characters import simplified
from h2htalk.text.embeddings.vectors import Embedder
from h2htalk.text.token_counts import TokenCounter, open_token_counter
from h2htalk.text.tokens import Tokenize, tokenize
from h2htalk.version import __version__

# Tokenized texts that are kept, of some hundred words each: 100 MB at most.
REMEMBERED_TEXTS = 20_000


@dataclass(frozen=True, slots=True)
class AnalyzeSpec:
    """What to analyse, and how.

    split, compare_with: a bundled split, a folder or a file; the second is what the first is compared with.
    language: `en` or `zh`; None for each language of the split.
    limit: of both splits, a stratified sample of this many scenarios.
    tokenizer: a `tokenizer.json` or its folder, which counts model tokens; None leaves them out.
    spacy_models: packages or folders of spaCy pipelines that parse instead of the bundled ones, one a language.
    embedder: measures the spread (`open_embedder`); `none` leaves it out.
    processes: that parse; None for the usable cores, or one where there is little to parse.
    seed: selects the sampled texts and the layout of word clouds.
    """

    split: PathText = "mini"
    compare_with: Annotated[PathText, NOT_EMPTY] | None = None
    language: str | None = None
    limit: int | None = None
    tokenizer: str | None = None
    spacy_models: tuple[str, ...] = ()
    embedder: str = "none"
    processes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for a value of the wrong kind."""
        check_fields(self)


@dataclass(frozen=True, slots=True)
class LanguageAnalysis:
    """The measures of one language of a split; words and pairs by side, most frequent first."""

    language: Language
    scenarios: int
    lengths: Lengths
    words: Mapping[Side, tuple[WordCount, ...]]
    pairs: Mapping[Side, tuple[PairCount, ...]]
    diversity: tuple[Diversity, ...]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class SplitAnalysis:
    """A split and its languages, English first.

    Of `total` scenarios those of `scenarios`, counts by language, were analysed; `analysed` is their fingerprint.
    """

    name: str
    version: str
    fingerprint: str
    total: int
    scenarios: Mapping[Language, int]
    analysed: str
    languages: tuple[LanguageAnalysis, ...]

    @property
    def selected(self) -> int:
        """How many scenarios were analysed."""
        return sum(self.scenarios.values())


@dataclass(frozen=True, slots=True)
class Analysis:
    """Every measure, with its settings.

    `unmeasured` names each measure that was left out, and why; `notes` says how texts were read that were not measured
    as they stand. `embedder` is name and revision.
    """

    spec: AnalyzeSpec
    split: SplitAnalysis
    compare_with: SplitAnalysis | None
    comparisons: tuple[Comparison, ...]
    parsers: tuple[ParserModel, ...]
    tokenizer: str | None
    embedder: str | None
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...] = ()
    package_version: str = __version__

    @property
    def splits(self) -> tuple[SplitAnalysis, ...]:
        """The split, and the one that it is compared with."""
        return (self.split,) if self.compare_with is None else (self.split, self.compare_with)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The scenarios of one language of one split, and their texts; equal to no other part, so that it can be a key."""

    language: Language
    scenarios: list[Scenario]
    texts: list[SideText]

    def side(self, side: Side) -> tuple[str, ...]:
        return tuple(text.text for text in self.texts if text.side == side)


@dataclass(frozen=True, slots=True)
class _Sample:
    """A split, the scenarios of it that are analysed, and their languages, English first."""

    split: Split
    selection: Split
    language_parts: list[_Part]

    @property
    def languages(self) -> list[Language]:
        return [part.language for part in self.language_parts]

    @property
    def texts(self) -> list[SideText]:
        texts: list[SideText] = []
        for part in self.language_parts:
            texts += part.texts
        return texts


def analyze(spec: AnalyzeSpec) -> Analysis:
    """Analyse a split as the specification says, without drawing or writing.

    Examples:
        >>> import h2htalk
        >>> analysis = h2htalk.analyze(h2htalk.AnalyzeSpec(split="mini", language="en", limit=22, processes=1))
        >>> analysis.split.languages[0].scenarios
        22

    With more than one process, a script must call this under `if __name__ == "__main__":`.

    Raises:
        ConfigError: a split, language, tokenizer, pipeline or embedder that does not exist, or nothing to compare.
        DataError: a broken record in a split.
        MissingExtraError: a package that the analysis needs is not installed.
    """
    if spec.language not in (None, *LANGUAGES):
        raise ConfigError(f"--language {quoted(spec.language)}: choose from {', '.join(LANGUAGES)}")
    unmeasured: list[str] = []
    sample = _select(spec, spec.split)
    samples = [sample]
    if spec.compare_with is not None:
        compared = _select(spec, spec.compare_with)
        samples.append(_keep_common_languages(sample, compared, unmeasured))
    models = choose_models(spec.spacy_models, sample.languages)
    counter = None if spec.tokenizer is None else open_token_counter(spec.tokenizer)
    if counter is None:
        unmeasured.append("model tokens (set --tokenizer)")
    embedder = _open_embedder(spec.embedder, list(models), unmeasured)

    pairs = _count_pairs(samples, models, spec.processes)
    # Three measures use the tokens of a text.
    tokenize_once = lru_cache(maxsize=REMEMBERED_TEXTS)(_tokenize_simplified)
    texts = [sample.texts for sample in samples]
    diversity = measure_diversity(*texts, embedder=embedder, seed=spec.seed, split=tokenize_once)
    splits: list[SplitAnalysis] = []
    for sample, diversities in zip(samples, diversity, strict=True):
        languages = []
        for part in sample.language_parts:
            of_language = tuple(row for row in diversities if row.language == part.language)
            languages.append(_measure(part, pairs, of_language, counter, tokenize_once))
        splits.append(_summarize(sample, languages))

    return Analysis(
        spec=spec,
        split=splits[0],
        compare_with=splits[1] if len(splits) == 2 else None,
        comparisons=tuple(_comparisons(*splits)) if len(splits) == 2 else (),
        parsers=tuple(models.values()),
        tokenizer=counter.name if counter else None,
        embedder=f"{embedder.name} {embedder.revision}" if embedder else None,
        unmeasured=tuple(unmeasured),
        notes=tuple(_script_notes(samples)),
    )


def _select(spec: AnalyzeSpec, name: PathText) -> _Sample:
    """Load a split, select what is analysed of it, and group this by language."""
    split = load_split(name)
    selection = split.select(spec.language, limit=spec.limit)
    language_parts = []
    for language in LANGUAGES:
        scenarios = [s for s in selection.scenarios if s.language == language]
        if scenarios:
            language_parts.append(_Part(language, scenarios, side_texts(scenarios)))
    return _Sample(split, selection, language_parts)


def _keep_common_languages(a: _Sample, b: _Sample, unmeasured: list[str]) -> _Sample:
    """Return the second sample with languages of the first alone; raise ConfigError where none is common."""
    languages = set(a.languages)
    if languages.isdisjoint(b.languages):
        raise ConfigError(
            f"--compare-with {b.split.name}: it has no language in common with {a.split.name}"
        )
    for language in sorted(languages.symmetric_difference(b.languages)):
        lacking = b if language in languages else a
        unmeasured.append(
            f"differences in {language} ({lacking.split.name} has no scenario of this language)"
        )
    common = [part for part in b.language_parts if part.language in languages]
    return replace(b, language_parts=common)


def _count_pairs(
    samples: Sequence[_Sample], models: Mapping[Language, ParserModel], processes: int | None
) -> dict[tuple[_Part, Side], tuple[PairCount, ...]]:
    """Count the verb-noun pairs of each part and side; all are parsed together, since processes start slowly."""
    jobs: dict[tuple[_Part, Side], PairJob] = {}
    for sample in samples:
        for part in sample.language_parts:
            model = models[part.language].source
            for side in SIDES:
                texts = tuple(map(simplified, part.side(side)))
                jobs[part, side] = PairJob(texts, part.language, model)
    in_order = list(jobs.values())
    counts = count_texts(in_order, choose_processes(in_order, processes))
    return dict(zip(jobs, map(tuple, counts), strict=True))


def _measure(
    part: _Part,
    pairs: Mapping[tuple[_Part, Side], tuple[PairCount, ...]],
    diversity: tuple[Diversity, ...],
    counter: TokenCounter | None,
    split: Tokenize,
) -> LanguageAnalysis:
    words = {}
    for side in SIDES:
        words[side] = tuple(count_words(part.side(side), part.language, split))
    pairs_of_part = {side: pairs[part, side] for side in SIDES}
    return LanguageAnalysis(
        language=part.language,
        scenarios=len(part.scenarios),
        lengths=measure_lengths(part.texts, counter, split),
        words=words,
        pairs=pairs_of_part,
        diversity=diversity,
        coverage=coverage(part.scenarios),
    )


def _summarize(sample: _Sample, languages: Sequence[LanguageAnalysis]) -> SplitAnalysis:
    counts = Counter(scenario.language for scenario in sample.selection.scenarios)
    return SplitAnalysis(
        name=sample.split.name,
        version=sample.split.version,
        fingerprint=sample.split.fingerprint,
        total=len(sample.split.scenarios),
        scenarios={language: counts[language] for language in LANGUAGES if counts[language]},
        analysed=sample.selection.fingerprint,
        languages=tuple(languages),
    )


def _tokenize_simplified(text: str, language: str) -> list[str]:
    """Tokenize as `tokenize`, whose Chinese dictionary holds simplified words alone."""
    return tokenize(simplified(text), language)


def _script_notes(samples: Sequence[_Sample]) -> Iterator[str]:
    """Say of each split how many texts have traditional characters, and that words are shown in simplified ones."""
    for sample in samples:
        for part in sample.language_parts:
            if find_language(part.language).script != "Chinese":
                continue
            traditional = [text for text in part.texts if simplified(text.text) != text.text]
            if traditional:
                total = counted(len(part.texts), "Chinese text")
                yield (
                    f"{sample.split.name}: {len(traditional):,} of {total} have traditional characters; words and "
                    "pairs are found and shown in simplified ones, so that both scripts count alike"
                )


def _open_embedder(
    name: str, languages: Sequence[Language], unmeasured: list[str]
) -> Embedder | None:
    if name == "none":
        unmeasured.append("the spread of embeddings (set --embedder)")
        return None
    from h2htalk.text.embeddings.embedders import open_embedder

    embedder = open_embedder(name)
    for language in languages:
        if language not in embedder.languages:
            unmeasured.append(f"the spread of embeddings in {language} ({name} is not made for it)")
    return embedder


def _comparisons(a: SplitAnalysis, b: SplitAnalysis) -> Iterator[Comparison]:
    """Compare words and pairs of each side, and emotions, in each language that both splits have."""
    parts_b = {part.language: part for part in b.languages}
    for part_a in a.languages:
        language = part_a.language
        part_b = parts_b.get(language)
        if part_b is None:
            continue
        for side in SIDES:
            words = comparable_counts(part_a.words[side], part_b.words[side], language)
            yield Comparison("words", side, language, log_odds(*words))
            pairs_a = _pairs_by_name(part_a.pairs[side])
            pairs_b = _pairs_by_name(part_b.pairs[side])
            yield Comparison("pairs", side, language, log_odds(pairs_a, pairs_b))
        emotions = log_odds(part_a.coverage.emotions, part_b.coverage.emotions)
        yield Comparison("emotions", None, language, emotions)


def _pairs_by_name(pairs: Iterable[PairCount]) -> dict[str, int]:
    return {f"{pair.verb} {pair.noun}": pair.count for pair in pairs}
