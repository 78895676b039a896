"""Specify each figure of an analysis: title, table, caption, alternative text, and how to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.figures import charts
from h2htalk.analysis.measures.diversity import ORDERS, Diversity
from h2htalk.analysis.measures.lengths import GROUPS, MEASURES
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.verb_nouns.pairs import top_verbs
from h2htalk.data.languages import find_language
from h2htalk.text.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURE_ORDER = ("words", "characters", "tokens", "pieces")  # as the page shows them
ROWS_SHOWN = 50  # of a table, on the page
ITEMS_NAMED = 5  # in an alternative text


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure and its table.

    `part` and `group` are where the page shows it. `table` is the CSV; `page_table`, of the figure's name, is what
    the page shows of it: columns, and of the rows the first `most`, None for all. `note` is the caption, `content` what
    the picture shows in words, for the alternative text. `draw` needs matplotlib; without it there is the table alone.
    `language` is that of the words in the table; empty where they are ours.
    """

    part: str
    group: str
    title: str
    table: Table
    page_table: Table
    draw: Callable[[], Figure] | None
    note: str = ""
    content: str = ""
    language: str = ""
    most: int | None = ROWS_SHOWN

    @property
    def name(self) -> str:
        """The name of the figure's files."""
        return self.page_table.name


def figure_specs(analysis: Analysis) -> list[FigureSpec]:
    """List every figure in the page's order: each language, the diversity of all, the differences of two splits."""
    specs: list[FigureSpec] = []
    for part in analysis.split.languages:
        specs += _lengths(part)
        specs += _words(part, analysis.spec.seed)
        specs += _pairs(part)
        specs.append(_coverage(part))
    specs.append(_diversity(analysis))
    name_a, name_b = split_names(analysis)
    for comparison in analysis.comparisons:
        specs.append(_comparison(comparison, name_a, name_b))
    return specs


def split_names(analysis: Analysis) -> tuple[str, str]:
    """Name the two splits, with (a) and (b) where they have one name."""
    name = analysis.split.name
    compared_name = analysis.compare_with.name if analysis.compare_with else ""
    if name == compared_name:
        return f"{name} (a)", f"{name} (b)"
    return name, compared_name


# --- Lengths ----------------------------------------------------------------------------------------------------------

_PIECES = "A piece is the text between two white spaces, as in the paper's Fig. 6: in Chinese a line, not a word."
_DECILES = [f"d{tenth}0" for tenth in range(1, 10)]
_LENGTH_KEYS = ("side", "group", "name", "measure")
_LENGTH_HEADER = (*_LENGTH_KEYS, "texts", "mean", "median", *_DECILES, "minimum", "maximum")
_LENGTHS_SHOWN = ("texts", "mean", "median", "d10", "d90", "minimum", "maximum")
_LENGTH_FIGURES = [("all", measure) for measure in MEASURE_ORDER]
_LENGTH_FIGURES += [(group, "words") for group in GROUPS[1:]]


def _lengths(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    """Specify the histograms of each measure, then the deciles of words by subtask and by emotion."""
    lengths = part.lengths
    table = _lengths_table(part)
    for group, measure in _LENGTH_FIGURES:
        rows = [row for row in table.rows if (row[1], row[3]) == (group, measure)]
        if not rows:
            continue
        summaries = lengths.of_all_texts(measure)
        name = table.name
        title = f"Lengths in {MEASURES[measure]}"
        keys = ["side"]
        draw: Callable[[], Figure]
        if group == "all":
            if measure != "words":
                name += f"_{measure}"
            draw = partial(charts.draw_lengths, lengths.histograms, lengths.summaries, measure)
        else:
            name += f"_{group}"
            title += f" by {group}"
            keys.append("name")
            draw = partial(charts.draw_length_deciles, lengths.summaries, measure, group)
        selected = replace(table, rows=rows, name=name)
        yield FigureSpec(
            part=part.language,
            group="Lengths",
            title=title,
            table=table,
            page_table=_select_columns(selected, [*keys, *_LENGTHS_SHOWN]),
            draw=draw,
            note=_PIECES if measure == "pieces" else "",
            content=" ".join(f"{s.side.title()}s: {s.averages}." for s in summaries),
            most=None,
        )


def _lengths_table(part: LanguageAnalysis) -> Table:
    """Return a row for each summary: its fields, with a column for each decile."""
    rows = []
    for summary in part.lengths.summaries:
        keys = (summary.side, summary.group, summary.name, summary.measure)
        means = (summary.n, summary.mean, summary.median)
        rows.append((*keys, *means, *summary.deciles, summary.minimum, summary.maximum))
    return Table("", _LENGTH_HEADER, rows, name=f"lengths_{part.language}")


def histograms_table(part: LanguageAnalysis) -> Table:
    """Return the bins of the histograms; the last row of each, without an end, counts longer texts."""
    rows: list[tuple[str, str, float, float | None, int]] = []
    for histogram in part.lengths.histograms:
        side = histogram.side
        measure = histogram.measure
        for (start, end), count in zip(pairwise(histogram.edges), histogram.counts, strict=True):
            rows.append((side, measure, start, end, count))
        rows.append((side, measure, histogram.edges[-1], None, histogram.beyond))
    header = ("side", "measure", "from", "to", "texts")
    return Table("", header, rows, name=f"histograms_{part.language}")


# --- Words and pairs --------------------------------------------------------------------------------------------------

_CLOUD_NOTE = (
    "Larger is more frequent; colours mark fifths of the words, positions have no meaning. "
    "Left out: stop words, and the labels of memory blocks but for “memory”."
)
_SUNBURST_NOTE = "From the 50 most frequent pairs: verb inside, noun outside."


def _words(part: LanguageAnalysis, seed: int) -> Iterator[FigureSpec]:
    for side, words in part.words.items():
        rows = [astuple(word) for word in words]
        name = f"words_{part.language}_{side}"
        table = Table("", ("word", "count", "texts"), rows, name=name)
        yield FigureSpec(
            part=part.language,
            group="Words",
            title=f"Words of the {side}s",
            table=table,
            page_table=table,
            draw=partial(charts.draw_word_cloud, words, part.language, seed=seed),
            note=_CLOUD_NOTE,
            content=_most_frequent((word.word, word.count) for word in words),
            language=part.language,
        )


def _pairs(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    for side, pairs in part.pairs.items():
        rows = [astuple(pair) for pair in pairs]
        name = f"pairs_{part.language}_{side}"
        table = Table("", ("verb", "noun", "count"), rows, name=name)
        yield FigureSpec(
            part=part.language,
            group="Verbs and nouns",
            title=f"Verbs and their objects in the {side}s",
            table=table,
            page_table=table,
            draw=partial(charts.draw_sunburst, top_verbs(pairs)),
            note=_SUNBURST_NOTE,
            content=_most_frequent((f"{pair.verb} {pair.noun}", pair.count) for pair in pairs),
            language=part.language,
        )


# --- Coverage, diversity, differences ---------------------------------------------------------------------------------


def _coverage(part: LanguageAnalysis) -> FigureSpec:
    grid = part.coverage
    rows = [(*tags, count) for tags, count in grid.cells.items()]
    header = ("emotion", "complexity", "interaction", "scenarios")
    table = Table("", header, rows, name=f"coverage_{part.language}")
    in_order = sorted(rows, key=lambda row: -row[3])
    cells: list[tuple[str, int]] = []
    for emotion, complexity, interaction, count in in_order:
        if count:
            name = f"{emotion} ({interaction}, {complexity})"
            cells.append((name.replace("_", " "), count))
    evenness = "" if grid.evenness is None else f"; evenness {grid.evenness:.2f} of 1"
    return FigureSpec(
        part=part.language,
        group="Coverage",
        title="Emotion, interaction and complexity",
        table=table,
        page_table=replace(table, rows=in_order),
        draw=partial(charts.draw_coverage, grid),
        note=f"{grid.summary}{evenness}.",
        content=_most_frequent(cells),
    )


_DISTINCT = [f"distinct_{n}" for n in ORDERS]
_DISTINCT_SAMPLED = [f"{column}_sampled" for column in _DISTINCT]
_DIVERSITY_NOTE = (
    "Distinct-n falls as texts are added, so compare the sampled ones. "
    "Self-BLEU: how much a text is like the others."
)


def _diversity(analysis: Analysis) -> FigureSpec:
    rows = []
    for name, split in zip(split_names(analysis), analysis.splits, strict=False):
        for part in split.languages:
            rows += [_diversity_row(name, diversity) for diversity in part.diversity]
    counts = ("split", "language", "side", "texts", "skipped", "words")
    spread = ("self_bleu", "self_bleu_texts", "spread", "spread_texts", "embedder")
    header = (*counts, *_DISTINCT, "sampled_words", *_DISTINCT_SAMPLED, *spread)
    table = Table("", header, rows, name="diversity")
    keys = ("split", "language", "side", "texts", "sampled_words")
    columns = (*keys, *_DISTINCT_SAMPLED, "self_bleu", "spread")
    return FigureSpec(
        part="diversity",
        group="",
        title="How varied the texts are",
        table=table,
        page_table=_select_columns(table, columns),
        draw=None,
        note=_DIVERSITY_NOTE,
    )


def _diversity_row(name: str, diversity: Diversity) -> list[str | int | float | None]:
    return [
        name,
        diversity.language,
        diversity.side,
        diversity.texts,
        diversity.skipped,
        diversity.words,
        *diversity.distinct,
        diversity.sampled_words,
        *diversity.distinct_sampled,
        diversity.self_bleu,
        diversity.self_bleu_texts,
        diversity.spread,
        diversity.spread_texts,
        diversity.embedder,
    ]


def _comparison(comparison: Comparison, name_a: str, name_b: str) -> FigureSpec:
    rows = comparison.rows
    name = f"compare_{comparison.kind}_{comparison.language}"
    title = comparison.kind.title()
    if comparison.side:
        name += f"_{comparison.side}"
        title += f" of the {comparison.side}s"
    header = ("item", "count_a", "count_b", "log_odds", "low", "high", "clear")
    cells_of = attrgetter(*header)
    table = Table("", header, list(map(cells_of, rows)), name=name)
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    clear = [row.item for row in ranked[:ROWS_SHOWN] if row.clear]
    clearest = ", ".join(clear[:ITEMS_NAMED]) or "none"
    note = (
        f"What {name_a} or {name_b} has more of: {comparison.excluding_zero:,} of {len(rows):,} intervals exclude 0 "
        f"(by chance alone up to {comparison.expected_by_chance:,.0f} would); {comparison.clear:,} are clear with all "
        "tested at once."
    )
    return FigureSpec(
        part="differences",
        group=find_language(comparison.language).name,
        title=title,
        table=table,
        page_table=replace(table, rows=list(map(cells_of, ranked))),
        draw=partial(charts.draw_log_odds, rows, name_a, name_b),
        note=note,
        content=f"Clearest: {clearest}.",
        language="" if comparison.kind == "emotions" else comparison.language,
    )


def _most_frequent(counts: Iterable[tuple[str, int]]) -> str:
    """List the first items, which are the most frequent, with their counts."""
    items = [f"{item} {count:,}" for item, count in islice(counts, ITEMS_NAMED)]
    if not items:
        return "There are none."
    return f"Most frequent: {', '.join(items)}."


def _select_columns(table: Table, header: Sequence[str]) -> Table:
    indices = [table.header.index(heading) for heading in header]
    cells_of = itemgetter(*indices)
    return replace(table, header=header, rows=list(map(cells_of, table.rows)))
