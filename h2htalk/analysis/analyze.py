"""Analyse a split: lengths, words, verb-noun pairs, diversity and coverage (paper, section 3.3), or compare two.

This module counts; `report.write_analysis` draws and writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from h2htalk.text.token_counts import open_token_counter
from h2htalk.text.tokens import tokenize
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


@dataclass(frozen=True, slots=True)
class _Part:
    """The scenarios of one language of one split, and their texts."""

    language: Language
    scenarios: list[Scenario]
    texts: list[SideText]

    def side(self, side: Side) -> tuple[str, ...]:
        return tuple(text.text for text in self.texts if text.side == side)


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
    whole = [load_split(name) for name in (spec.split, spec.compare_with) if name is not None]
    chosen = [split.select(spec.language, limit=spec.limit) for split in whole]
    unmeasured: list[str] = []
    parts = _parts(chosen, unmeasured)
    models = choose_models(spec.spacy_models, [part.language for part in parts[0]])
    counter = None if spec.tokenizer is None else open_token_counter(spec.tokenizer)
    if counter is None:
        unmeasured.append("model tokens (set --tokenizer)")
    embedder = _open_embedder(spec.embedder, list(models), unmeasured)
    jobs = [
        PairJob(
            texts=tuple(map(simplified, part.side(side))),
            language=part.language,
            model=models[part.language].source,
        )
        for of_split in parts
        for part in of_split
        for side in SIDES
    ]
    pairs = iter(count_texts(jobs, choose_processes(jobs, spec.processes)))
    cut = lru_cache(maxsize=REMEMBERED_TEXTS)(
        _tokenize_simplified
    )  # three measures use a text's tokens
    texts = [[text for part in of_split for text in part.texts] for of_split in parts]
    diversity = measure_diversity(*texts, embedder=embedder, seed=spec.seed, split=cut)
    splits = []
    for split, selected, of_split, rows in zip(whole, chosen, parts, diversity, strict=True):
        languages = [
            LanguageAnalysis(
                language=part.language,
                scenarios=len(part.scenarios),
                lengths=measure_lengths(part.texts, counter, cut),
                words={
                    side: tuple(count_words(part.side(side), part.language, cut)) for side in SIDES
                },
                pairs={side: tuple(next(pairs)) for side in SIDES},
                diversity=tuple(row for row in rows if row.language == part.language),
                coverage=coverage(part.scenarios),
            )
            for part in of_split
        ]
        about = (split.name, split.version, split.fingerprint, len(split.scenarios))
        counts = Counter(scenario.language for scenario in selected.scenarios)
        in_order = {language: counts[language] for language in LANGUAGES if counts[language]}
        splits.append(SplitAnalysis(*about, in_order, selected.fingerprint, tuple(languages)))
    compare_with = splits[1] if len(splits) > 1 else None
    return Analysis(
        spec=spec,
        split=splits[0],
        compare_with=compare_with,
        comparisons=tuple(_comparisons(*splits)) if compare_with else (),
        parsers=tuple(models.values()),
        tokenizer=counter.name if counter else None,
        embedder=f"{embedder.name} {embedder.revision}" if embedder else None,
        unmeasured=tuple(unmeasured),
        notes=tuple(_script_notes(chosen, parts)),
    )


def _tokenize_simplified(text: str, language: str) -> list[str]:
    """Tokenize as `tokenize`, whose Chinese dictionary holds simplified words alone."""
    return tokenize(simplified(text), language)


def _script_notes(splits: Sequence[Split], selections: Sequence[Sequence[_Part]]) -> Iterator[str]:
    """Say of each split how many texts have traditional characters, and that words are shown in simplified ones."""
    for split, selection in zip(splits, selections, strict=True):
        for part in selection:
            if find_language(part.language).script != "Chinese":
                continue
            traditional = [side for side in part.texts if simplified(side.text) != side.text]
            if traditional:
                total = counted(len(part.texts), "Chinese text")
                yield (
                    f"{split.name}: {len(traditional):,} of {total} have traditional characters; words and pairs "
                    "are found and shown in simplified ones, so that both scripts count alike"
                )


def _parts(splits: Sequence[Split], unmeasured: list[str]) -> list[list[_Part]]:
    """Group each split's scenarios by language; of a second split only the languages of the first."""
    parts = []
    for split in splits:
        by_language = {
            language: [s for s in split.scenarios if s.language == language]
            for language in LANGUAGES
        }
        parts.append(
            [
                _Part(of, scenarios, side_texts(scenarios))
                for of, scenarios in by_language.items()
                if scenarios
            ]
        )
    if len(parts) < 2:
        return parts
    first, second = ([part.language for part in of_split] for of_split in parts)
    if not set(first) & set(second):
        raise ConfigError(
            f"--compare-with {splits[1].name}: it has no language in common with {splits[0].name}"
        )
    for language in sorted(set(first) ^ set(second)):
        lacking = splits[language in first].name
        unmeasured.append(f"differences in {language} ({lacking} has no scenario of this language)")
    return [parts[0], [part for part in parts[1] if part.language in first]]


def _open_embedder(
    name: str, languages: Sequence[Language], unmeasured: list[str]
) -> Embedder | None:
    if name == "none":
        unmeasured.append("the spread of embeddings (set --embedder)")
        return None
    from h2htalk.text.embeddings.embedders import open_embedder

    embedder = open_embedder(name)
    unmeasured += [
        f"the spread of embeddings in {language} ({name} is not made for it)"
        for language in languages
        if language not in embedder.languages
    ]
    return embedder


def _comparisons(a: SplitAnalysis, b: SplitAnalysis) -> Iterator[Comparison]:
    """Compare words and pairs of each side, and emotions, in each language that both splits have."""
    peers = {part.language: part for part in b.languages}
    for ours, theirs in (
        (part, peers[part.language]) for part in a.languages if part.language in peers
    ):
        language = ours.language
        for side in SIDES:
            words = comparable_counts(ours.words[side], theirs.words[side], language)
            yield Comparison("words", side, language, log_odds(*words))
            pairs = [
                {f"{p.verb} {p.noun}": p.count for p in part.pairs[side]} for part in (ours, theirs)
            ]
            yield Comparison("pairs", side, language, log_odds(*pairs))
        emotions = log_odds(ours.coverage.emotions, theirs.coverage.emotions)
        yield Comparison("emotions", None, language, emotions)
