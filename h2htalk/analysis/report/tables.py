"""Build the tables of an analysis, complete: the files `tables/*.csv`, of which the page shows the top."""

from __future__ import annotations

from collections.abc import Sequence

from h2htalk.analysis.measures.coverage import Coverage
from h2htalk.analysis.measures.diversity import Diversity
from h2htalk.analysis.measures.lengths import Lengths
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.measures.scenario_texts import Side
from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.verb_nouns.pairs import PairCount
from h2htalk.text.tables import Table, Value

DECILES = tuple(f"d{tenth}0" for tenth in range(1, 10))
ORDERS = (1, 2, 3, 4)


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[Value]]) -> Table:
    return Table("", header, rows, name=name)


def lengths_table(language: str, lengths: Lengths) -> Table:
    """Mean, median, deciles and extremes of each side's texts: all of them, by subtask, by emotion, in each measure."""
    return _table(
        f"lengths_{language}",
        ("side", "group", "name", "measure", "texts", "mean", "median", *DECILES, "minimum", "maximum"),
        tuple(
            (s.side, s.group, s.name, s.measure, s.n, s.mean, s.median, *s.deciles, s.minimum, s.maximum)
            for s in lengths.summaries
        ),
    )


def histograms_table(language: str, lengths: Lengths) -> Table:
    """The bins of the histograms; the last row of each, without an end, counts longer texts."""
    rows: list[tuple[Value, ...]] = []
    for histogram in lengths.histograms:
        head = (histogram.side, histogram.measure)
        ends = histogram.edges[1:]
        rows += [(*head, *bin) for bin in zip(histogram.edges[:-1], ends, histogram.counts, strict=True)]
        rows.append((*head, histogram.edges[-1], None, histogram.beyond))
    return _table(f"histograms_{language}", ("side", "measure", "from", "to", "texts"), tuple(rows))


def words_table(language: str, side: Side, words: Sequence[WordCount]) -> Table:
    """Every counted word: its occurrences, and the number of texts that hold it."""
    rows = tuple((word.word, word.count, word.texts) for word in words)
    return _table(f"words_{language}_{side}", ("word", "count", "texts"), rows)


def pairs_table(language: str, side: Side, pairs: Sequence[PairCount]) -> Table:
    """Every verb-noun pair and its count."""
    rows = tuple((pair.verb, pair.noun, pair.count) for pair in pairs)
    return _table(f"pairs_{language}_{side}", ("verb", "noun", "count"), rows)


def coverage_table(language: str, coverage: Coverage) -> Table:
    """Every cell of the grid, empty ones too."""
    rows = tuple((cell.emotion, cell.complexity, cell.interaction, cell.count) for cell in coverage.cells)
    return _table(f"coverage_{language}", ("emotion", "complexity", "interaction", "scenarios"), rows)


def diversity_table(splits: Sequence[tuple[str, Sequence[Diversity]]]) -> Table:
    """A row a split, language and side."""
    headings = (
        *("split", "language", "side", "texts", "skipped", "words"),
        *(f"distinct_{n}" for n in ORDERS),
        "sampled_words",
        *(f"distinct_{n}_sampled" for n in ORDERS),
        *("self_bleu", "self_bleu_texts", "spread", "spread_texts", "embedder"),
    )
    return _table(
        "diversity",
        headings,
        tuple(
            (
                *(name, row.language, row.side, row.texts, row.skipped, row.words),
                *row.distinct,
                row.sampled_words,
                *row.distinct_sampled,
                *(row.self_bleu, row.self_bleu_texts, row.spread, row.spread_texts, row.embedder),
            )
            for name, rows in splits
            for row in rows
        ),
    )


def comparison_table(compared: Comparison) -> Table:
    """Each item's counts in both splits and the log-odds with their interval; `clear` as in `clear_rows`."""
    side = f"_{compared.side}" if compared.side else ""
    return _table(
        f"compare_{compared.kind}_{compared.language}{side}",
        ("item", "count_a", "count_b", "log_odds", "low", "high", "clear"),
        tuple(
            (row.item, row.count_a, row.count_b, row.log_odds, row.low, row.high, row.clear) for row in compared.rows
        ),
    )
