"""Summarise an analysis in one screen of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.measures.scenario_texts import SIDES
from h2htalk.analysis.report.figure_specs import MEASURE_ORDER, split_names
from h2htalk.data.languages import find_language
from h2htalk.errors import counted, shorten

_MOST = 8  # words or pairs in a line
_LONGEST = 40  # characters of one: text labelled with the wrong language has no short words


def overview(analysis: Analysis) -> str:
    """List scenarios, lengths, frequent words and pairs, diversity, coverage, and what was not measured."""
    facts = analysis.split.facts
    whole = "" if sum(facts.scenarios.values()) == facts.total else f", of {facts.total:,} in the split"
    lines = [f"{facts.name} {facts.version}: {counted(sum(facts.scenarios.values()), 'scenario')}{whole}"]
    for part in analysis.split.languages:
        lines += ["", *_language(part)]
    if analysis.compare_with is not None:
        a, b = split_names(analysis)
        lines += ["", f"{a} compared with {b}", *(_comparison(compared) for compared in analysis.comparisons)]
    if analysis.unmeasured:
        lines += ["", *(f"not measured: {text}" for text in analysis.unmeasured)]
    return "\n".join(lines)


def _language(part: LanguageAnalysis) -> Iterator[str]:
    yield f"{find_language(part.language).name}, {counted(part.scenarios, 'scenario')}"
    for measure in MEASURE_ORDER:
        lengths = [
            f"{s.side}s mean {s.mean:,.2f}, median {s.median:,.2f}"
            for s in part.lengths.summaries
            if (s.group, s.measure) == ("all", measure)
        ]
        if lengths:
            yield f"  {MEASURES[measure]:<20} {'; '.join(lengths)}"
    for side in SIDES:
        yield f"  {f'words, {side}s':<20} {_listed(f'{w.word} {w.count:,}' for w in part.words[side][:_MOST])}"
    for side in SIDES:
        pairs = [(shorten(f"{p.verb} {p.noun}", _LONGEST), p.count) for p in part.pairs[side][:_MOST]]
        yield f"  {f'pairs, {side}s':<20} {_listed(f'{pair} {count:,}' for pair, count in pairs)}"
    for row in part.diversity:
        spread = "" if row.spread is None else f", spread {row.spread:.3f}"
        variety = f"distinct-2 {_value(row.distinct_sampled[1])}, self-BLEU {_value(row.self_bleu)}{spread}"
        yield f"  {f'variety, {row.side}s':<20} {variety}"
    yield f"  {'grid':<20} {part.coverage.filled:,} of {len(part.coverage.cells):,} cells hold a scenario"


def _comparison(compared: Comparison) -> str:
    """Count the differences that are clear with all tested at once, and name the strongest of each direction."""
    side = f", {compared.side}s" if compared.side else ""
    what = f"  {find_language(compared.language).name} {compared.kind}{side}"
    rows = [row for row in compared.rows if row.clear]
    if not rows:
        return f"{what}: {len(compared.rows):,} compared, no clear difference"
    more = _listed([shorten(row.item, _LONGEST) for row in rows if row.log_odds > 0][: _MOST // 2])
    less = _listed([shorten(row.item, _LONGEST) for row in reversed(rows) if row.log_odds < 0][: _MOST // 2])
    return f"{what}: {len(rows):,} of {len(compared.rows):,} differ; more {more}; less {less}"


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"


def _value(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
