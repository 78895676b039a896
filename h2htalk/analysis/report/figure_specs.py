"""Specify each figure of an analysis: title, table, caption, alternative text, and how to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from h2htalk.analysis import figures
from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.measures.lengths import GROUPS, MEASURES
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.measures.scenario_texts import SIDES, Side
from h2htalk.analysis.verb_nouns.pairs import top_verbs
from h2htalk.data.languages import find_language
from h2htalk.text.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PIECES = "A piece is the text between two white spaces, as in the paper's Fig. 6: in Chinese a line, not a word."
MEASURE_ORDER = ("words", "characters", "tokens", "pieces")  # as the page shows them
ROWS_SHOWN = 50  # of a table, on the page


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure and its table.

    `name` is its file's. `part` and `group` are where the page shows it. `note` is its caption, `content` what the
    picture shows in words, for the alternative text. `table` is the CSV, `shown` the columns and rows of it on the
    page, of `total` rows. `draw` needs matplotlib; without it there is the table alone. `language` is that of the words
    in the table; empty where they are ours.
    """

    name: str
    part: str
    group: str
    title: str
    note: str
    content: str
    table: Table
    shown: Table
    total: int
    draw: Callable[[], Figure] | None = None
    language: str = ""


def figure_specs(analysis: Analysis) -> list[FigureSpec]:
    """List every figure in the page's order: each language, the diversity of all, the differences of two splits."""
    made: list[FigureSpec] = []
    for part in analysis.split.languages:
        made += _lengths(part)
        made += [_words(part, side, analysis.spec.seed) for side in SIDES]
        made += [_pairs(part, side) for side in SIDES]
        made.append(_coverage(part))
    made.append(_diversity(analysis))
    return made + [_comparison(compared, *split_names(analysis)) for compared in analysis.comparisons]


def split_names(analysis: Analysis) -> tuple[str, str]:
    """Name the two splits, with (a) and (b) where they have one name."""
    name = analysis.split.facts.name
    other = analysis.compare_with.facts.name if analysis.compare_with else ""
    return (name, other) if name != other else (f"{name} (a)", f"{other} (b)")


# --- Lengths ----------------------------------------------------------------------------------------------------------


def _lengths(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    language, lengths = part.language, part.lengths
    deciles = [f"d{tenth}0" for tenth in range(1, 10)]
    table = _table(
        f"lengths_{language}",
        ("side", "group", "name", "measure", "texts", "mean", "median", *deciles, "minimum", "maximum"),
        (
            (s.side, s.group, s.name, s.measure, s.n, s.mean, s.median, *s.deciles, s.minimum, s.maximum)
            for s in lengths.summaries
        ),
    )
    for group, measure in [
        *(("all", measure) for measure in MEASURE_ORDER),
        *((group, "words") for group in GROUPS[1:]),
    ]:
        rows = [row for row in table.rows if (row[1], row[3]) == (group, measure)]
        name = ["name"] if group != "all" else []
        columns = ("side", *name, "texts", "mean", "median", "d10", "d90", "minimum", "maximum")
        suffix, draw = f"_{group}", partial(figures.draw_length_deciles, lengths.summaries, measure, group)
        if group == "all":
            suffix = "" if measure == "words" else f"_{measure}"
            draw = partial(figures.draw_lengths, lengths.histograms, lengths.summaries, measure)
        totals = [s for s in lengths.summaries if (s.group, s.measure) == ("all", measure)]
        if rows:
            yield FigureSpec(
                name=f"lengths_{language}{suffix}",
                part=language,
                group="Lengths",
                title=f"Lengths in {MEASURES[measure]}" + (f" by {group}" if group != "all" else ""),
                note=_PIECES if measure == "pieces" else "",
                content=" ".join(f"{s.side.title()}s: mean {s.mean:,.2f}, median {s.median:,.2f}." for s in totals),
                table=table,
                shown=_columns(replace(table, rows=rows), columns),
                total=len(rows),
                draw=draw,
            )


def histograms_table(part: LanguageAnalysis) -> Table:
    """Return the bins of the histograms; the last row of each, without an end, counts longer texts."""
    rows = []
    for one in part.lengths.histograms:
        bins = [*pairwise(one.edges), (one.edges[-1], None)]
        rows += [(one.side, one.measure, *ends, n) for ends, n in zip(bins, (*one.counts, one.beyond), strict=True)]
    return _table(f"histograms_{part.language}", ("side", "measure", "from", "to", "texts"), rows)


# --- Words and pairs --------------------------------------------------------------------------------------------------


def _words(part: LanguageAnalysis, side: Side, seed: int) -> FigureSpec:
    words = part.words[side]
    rows = ((word.word, word.count, word.texts) for word in words)
    table = _table(f"words_{part.language}_{side}", ("word", "count", "texts"), rows)
    return FigureSpec(
        name=table.name,
        part=part.language,
        group="Words",
        title=f"Words of the {side}s",
        note="Larger is more frequent; colours mark fifths of the words, positions have no meaning. "
        "Left out: stop words, and the labels of memory blocks but for “memory”.",
        content=_most_frequent((w.word, w.count) for w in words),
        table=table,
        shown=_top(table),
        total=len(words),
        draw=partial(figures.draw_word_cloud, words, part.language, seed=seed),
        language=part.language,
    )


def _pairs(part: LanguageAnalysis, side: Side) -> FigureSpec:
    pairs = part.pairs[side]
    table = _table(f"pairs_{part.language}_{side}", ("verb", "noun", "count"), map(astuple, pairs))
    return FigureSpec(
        name=table.name,
        part=part.language,
        group="Verbs and nouns",
        title=f"Verbs and their objects in the {side}s",
        note="From the 50 most frequent pairs: verb inside, noun outside.",
        content=_most_frequent((f"{pair.verb} {pair.noun}", pair.count) for pair in pairs),
        table=table,
        shown=_top(table),
        total=len(pairs),
        draw=partial(figures.draw_sunburst, top_verbs(pairs)),
        language=part.language,
    )


# --- Coverage, diversity, differences ---------------------------------------------------------------------------------


def _coverage(part: LanguageAnalysis) -> FigureSpec:
    grid = part.coverage
    rows = [(*cell, count) for cell, count in grid.cells.items()]
    table = _table(f"coverage_{part.language}", ("emotion", "complexity", "interaction", "scenarios"), rows)
    ordered = sorted(rows, key=lambda row: -row[3])
    cells = ((f"{emotion} ({interaction}, {complexity})", n) for emotion, complexity, interaction, n in ordered if n)
    evenness = "" if grid.evenness is None else f"; evenness {grid.evenness:.2f} of 1"
    fullest = _most_frequent((name.replace("_", " "), n) for name, n in cells)
    return FigureSpec(
        name=table.name,
        part=part.language,
        group="Coverage",
        title="Emotion, interaction and complexity",
        note=f"{grid.filled:,} of {len(grid.cells):,} cells hold a scenario{evenness}.",
        content=fullest,
        table=table,
        shown=_top(replace(table, rows=ordered)),
        total=len(rows),
        draw=partial(figures.draw_coverage, grid),
    )


def _diversity(analysis: Analysis) -> FigureSpec:
    splits = [split for split in (analysis.split, analysis.compare_with) if split is not None]
    measured = [[row for part in split.languages for row in part.diversity] for split in splits]
    names = split_names(analysis)
    distinct = [f"distinct_{n}" for n in (1, 2, 3, 4)]
    sampled = [f"{column}_sampled" for column in distinct]
    table = _table(
        "diversity",
        (
            *("split", "language", "side", "texts", "skipped", "words", *distinct, "sampled_words", *sampled),
            *("self_bleu", "self_bleu_texts", "spread", "spread_texts", "embedder"),
        ),
        (
            (
                *(name, row.language, row.side, row.texts, row.skipped, row.words, *row.distinct),
                *(row.sampled_words, *row.distinct_sampled),
                *(row.self_bleu, row.self_bleu_texts, row.spread, row.spread_texts, row.embedder),
            )
            for name, rows in zip(names, measured, strict=False)
            for row in rows
        ),
    )
    columns = ("split", "language", "side", "texts", "sampled_words", *sampled, "self_bleu", "spread")
    return FigureSpec(
        name="diversity",
        part="diversity",
        group="",
        title="How varied the texts are",
        note="Distinct-n falls as texts are added, so compare the sampled ones. Self-BLEU: how much a text is like the "
        "others.",
        content="",
        table=table,
        shown=_columns(table, columns),
        total=len(table.rows),
    )


def _comparison(compared: Comparison, a: str, b: str) -> FigureSpec:
    side = f"_{compared.side}" if compared.side else ""
    header = ("item", "count_a", "count_b", "log_odds", "low", "high", "clear")
    table = _table(
        f"compare_{compared.kind}_{compared.language}{side}",
        header,
        ([getattr(row, name) for name in header] for row in compared.rows),
    )
    ranked = sorted(compared.rows, key=lambda row: (-abs(row.z), row.item))[:ROWS_SHOWN]
    clear = [row.item for row in ranked if row.clear][:5]
    return FigureSpec(
        name=table.name,
        part="differences",
        group=find_language(compared.language).name,
        title=compared.kind.title() + (f" of the {compared.side}s" if compared.side else ""),
        note=f"What {a} or {b} has more of: {compared.excluding_zero:,} of {len(compared.rows):,} intervals exclude 0 "
        f"(by chance alone up to {compared.expected_by_chance:,.0f} would); {compared.clear:,} are clear with all "
        "tested at once.",
        content=f"Clearest: {', '.join(clear) or 'none'}.",
        table=table,
        shown=replace(table, rows=[[getattr(row, name) for name in header] for row in ranked]),
        total=len(table.rows),
        draw=partial(figures.draw_log_odds, compared.rows, a, b),
        language="" if compared.kind == "emotions" else compared.language,
    )


def _most_frequent(counts: Iterable[tuple[str, int]]) -> str:
    """List the first items, which are the most frequent, with their counts."""
    most = [f"{item} {count:,}" for item, count in islice(counts, 5)]
    return f"Most frequent: {', '.join(most)}." if most else "There are none."


def _table(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    return Table("", header, [*rows], name=name)


def _top(table: Table) -> Table:
    return replace(table, rows=table.rows[:ROWS_SHOWN])


def _columns(table: Table, header: Sequence[str]) -> Table:
    places = [table.header.index(heading) for heading in header]
    return replace(table, header=header, rows=[[row[place] for place in places] for row in table.rows])
