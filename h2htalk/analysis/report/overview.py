"""Describe an analysis in a screen of text: what `h2htalk analyze` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis, SplitAnalysis
from h2htalk.analysis.measures.diversity import Diversity
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.log_odds import Comparison, LogOdds
from h2htalk.analysis.report.figure_specs import MEASURE_ORDER, split_names
from h2htalk.data.languages import find_language
from h2htalk.errors import counted, shorten

ITEMS = 8  # words or pairs in a line
LONGEST_ITEM = 40  # characters: text labelled with the wrong language has no short words


def overview(analysis: Analysis) -> str:
    """List scenarios, lengths, frequent words and pairs, diversity, coverage, and what was not measured."""
    lines = [_describe_split(analysis.split)]
    for part in analysis.split.languages:
        language = find_language(part.language).name
        lines += ["", f"{language}, {counted(part.scenarios, 'scenario')}"]
        lines += [f"  {label:<20} {text}" for label, text in _measures(part)]
    if analysis.compare_with is not None:
        name_a, name_b = split_names(analysis)
        lines += ["", f"{name_a} compared with {name_b}"]
        lines += map(_describe_comparison, analysis.comparisons)
    if analysis.unmeasured:
        lines.append("")
        lines += [f"not measured: {text}" for text in analysis.unmeasured]
    if analysis.notes:
        lines.append("")
        lines += [f"note: {text}" for text in analysis.notes]
    return "\n".join(lines)


def _describe_split(split: SplitAnalysis) -> str:
    text = f"{split.name} {split.version}: {counted(split.selected, 'scenario')}"
    if split.selected != split.total:
        text += f", of {split.total:,} in the split"
    return text


def _measures(part: LanguageAnalysis) -> Iterator[tuple[str, str]]:
    """Yield label and text of each measure of a language."""
    for measure in MEASURE_ORDER:
        summaries = part.lengths.of_all_texts(measure)
        if summaries:
            yield MEASURES[measure], "; ".join(f"{s.side}s {s.averages}" for s in summaries)
    for side, words in part.words.items():
        yield f"words, {side}s", _join(f"{word.word} {word.count:,}" for word in words[:ITEMS])
    for side, pairs in part.pairs.items():
        texts = []
        for pair in pairs[:ITEMS]:
            name = shorten(f"{pair.verb} {pair.noun}", LONGEST_ITEM)
            texts.append(f"{name} {pair.count:,}")
        yield f"pairs, {side}s", _join(texts)
    for diversity in part.diversity:
        yield f"variety, {diversity.side}s", _describe_diversity(diversity)
    yield "grid", part.coverage.summary


def _describe_diversity(diversity: Diversity) -> str:
    distinct = _format_share(diversity.distinct_sampled[1])
    self_bleu = _format_share(diversity.self_bleu)
    text = f"distinct-2 {distinct}, self-BLEU {self_bleu}"
    if diversity.spread is not None:
        text += f", spread {diversity.spread:.3f}"
    return text


def _format_share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"


def _describe_comparison(comparison: Comparison) -> str:
    """Count the differences that are clear with all tested at once, and name the strongest of each direction."""
    label = f"  {find_language(comparison.language).name} {comparison.kind}"
    if comparison.side:
        label += f", {comparison.side}s"
    total = f"{len(comparison.rows):,}"
    clear = [row for row in comparison.rows if row.clear]
    if not clear:
        return f"{label}: {total} compared, no clear difference"
    of_a = _strongest(row for row in clear if row.log_odds > 0)
    of_b = _strongest(row for row in reversed(clear) if row.log_odds < 0)
    return f"{label}: {len(clear):,} of {total} differ; more {of_a}; less {of_b}"


def _strongest(rows: Iterable[LogOdds]) -> str:
    items = [shorten(row.item, LONGEST_ITEM) for row in rows]
    return _join(items[: ITEMS // 2])


def _join(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"
