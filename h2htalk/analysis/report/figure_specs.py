"""Specify each figure of an analysis: title, table, caption, alternative text, and how to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.figures import charts
from h2htalk.analysis.measures.lengths import GROUPS, MEASURES
from h2htalk.analysis.measures.log_odds import Comparison
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

    `part` and `group` are where the page shows it. `table` is the CSV; `shown`, of the figure's name, is what the page
    shows of it: columns, and of the rows the first `most`, None for all. `note` is the caption, `content` what the
    picture shows in words, for the alternative text. `draw` needs matplotlib; without it there is the table alone.
    `language` is that of the words in the table; empty where they are ours.
    """

    part: str
    group: str
    title: str
    table: Table
    shown: Table
    draw: Callable[[], Figure] | None
    note: str = ""
    content: str = ""
    language: str = ""
    most: int | None = ROWS_SHOWN

    @property
    def name(self) -> str:
        """The name of the figure's files."""
        return self.shown.name


def figure_specs(analysis: Analysis) -> list[FigureSpec]:
    """List every figure in the page's order: each language, the diversity of all, the differences of two splits."""
    made: list[FigureSpec] = []
    for part in analysis.split.languages:
        made += [*_lengths(part), *_words(part, analysis.spec.seed), *_pairs(part), _coverage(part)]
    made.append(_diversity(analysis))
    return made + [
        _comparison(compared, *split_names(analysis)) for compared in analysis.comparisons
    ]


def split_names(analysis: Analysis) -> tuple[str, str]:
    """Name the two splits, with (a) and (b) where they have one name."""
    name = analysis.split.name
    other = analysis.compare_with.name if analysis.compare_with else ""
    return (name, other) if name != other else (f"{name} (a)", f"{other} (b)")


# --- Lengths ----------------------------------------------------------------------------------------------------------


def _lengths(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    name = f"lengths_{part.language}"
    lengths = part.lengths
    deciles = [f"d{tenth}0" for tenth in range(1, 10)]
    header = (
        "side",
        "group",
        "name",
        "measure",
        "texts",
        "mean",
        "median",
        *deciles,
        "minimum",
        "maximum",
    )
    rows = [
        (
            s.side,
            s.group,
            s.name,
            s.measure,
            s.n,
            s.mean,
            s.median,
            *s.deciles,
            s.minimum,
            s.maximum,
        )
        for s in lengths.summaries
    ]
    table = Table("", header, rows, name=name)
    columns = ("texts", "mean", "median", "d10", "d90", "minimum", "maximum")
    for group, measure in [
        *(("all", one) for one in MEASURE_ORDER),
        *((group, "words") for group in GROUPS[1:]),
    ]:
        if not (own := [row for row in rows if (row[1], row[3]) == (group, measure)]):
            continue
        totals = [s for s in lengths.summaries if (s.group, s.measure) == ("all", measure)]
        title = f"Lengths in {MEASURES[measure]}"
        head = ["side"]
        if group == "all":
            suffix = "" if measure == "words" else f"_{measure}"
            draw = partial(charts.draw_lengths, lengths.histograms, lengths.summaries, measure)
        else:
            title = f"{title} by {group}"
            head = ["side", "name"]
            suffix = f"_{group}"
            draw = partial(charts.draw_length_deciles, lengths.summaries, measure, group)
        yield FigureSpec(
            part=part.language,
            group="Lengths",
            title=title,
            table=table,
            shown=_columns(replace(table, rows=own, name=name + suffix), (*head, *columns)),
            draw=draw,
            note=_PIECES if measure == "pieces" else "",
            content=" ".join(
                f"{s.side.title()}s: mean {s.mean:,.2f}, median {s.median:,.2f}." for s in totals
            ),
            most=None,
        )


def histograms_table(part: LanguageAnalysis) -> Table:
    """Return the bins of the histograms; the last row of each, without an end, counts longer texts."""
    rows = []
    for one in part.lengths.histograms:
        bins = [*pairwise(one.edges), (one.edges[-1], None)]
        rows += [
            (one.side, one.measure, *ends, n)
            for ends, n in zip(bins, (*one.counts, one.beyond), strict=True)
        ]
    return Table(
        "", ("side", "measure", "from", "to", "texts"), rows, name=f"histograms_{part.language}"
    )


# --- Words and pairs --------------------------------------------------------------------------------------------------


def _words(part: LanguageAnalysis, seed: int) -> Iterator[FigureSpec]:
    note = "Larger is more frequent; colours mark fifths of the words, positions have no meaning. "
    note += "Left out: stop words, and the labels of memory blocks but for “memory”."
    for side, words in part.words.items():
        header = ("word", "count", "texts")
        rows = [*map(astuple, words)]
        table = Table("", header, rows, name=f"words_{part.language}_{side}")
        content = _most_frequent((w.word, w.count) for w in words)
        draw = partial(charts.draw_word_cloud, words, part.language, seed=seed)
        title = f"Words of the {side}s"
        yield FigureSpec(
            part.language, "Words", title, table, table, draw, note, content, part.language
        )


def _pairs(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    note = "From the 50 most frequent pairs: verb inside, noun outside."
    for side, pairs in part.pairs.items():
        header = ("verb", "noun", "count")
        rows = [*map(astuple, pairs)]
        table = Table("", header, rows, name=f"pairs_{part.language}_{side}")
        content = _most_frequent((f"{pair.verb} {pair.noun}", pair.count) for pair in pairs)
        draw = partial(charts.draw_sunburst, top_verbs(pairs))
        title = f"Verbs and their objects in the {side}s"
        yield FigureSpec(
            part.language,
            "Verbs and nouns",
            title,
            table,
            table,
            draw,
            note,
            content,
            part.language,
        )


# --- Coverage, diversity, differences ---------------------------------------------------------------------------------


def _coverage(part: LanguageAnalysis) -> FigureSpec:
    grid = part.coverage
    rows = [(*cell, count) for cell, count in grid.cells.items()]
    header = ("emotion", "complexity", "interaction", "scenarios")
    table = Table("", header, rows, name=f"coverage_{part.language}")
    ordered = sorted(rows, key=lambda row: -row[3])
    cells = (
        (f"{emotion} ({interaction}, {complexity})", n)
        for emotion, complexity, interaction, n in ordered
        if n
    )
    evenness = "" if grid.evenness is None else f"; evenness {grid.evenness:.2f} of 1"
    note = f"{grid.filled:,} of {len(grid.cells):,} cells hold a scenario{evenness}."
    content = _most_frequent((name.replace("_", " "), n) for name, n in cells)
    title = "Emotion, interaction and complexity"
    shown = replace(table, rows=ordered)
    draw = partial(charts.draw_coverage, grid)
    return FigureSpec(part.language, "Coverage", title, table, shown, draw, note, content)


def _diversity(analysis: Analysis) -> FigureSpec:
    splits = [split for split in (analysis.split, analysis.compare_with) if split is not None]
    distinct = [f"distinct_{n}" for n in (1, 2, 3, 4)]
    sampled = [f"{column}_sampled" for column in distinct]
    header = (
        *(
            "split",
            "language",
            "side",
            "texts",
            "skipped",
            "words",
            *distinct,
            "sampled_words",
            *sampled,
        ),
        *("self_bleu", "self_bleu_texts", "spread", "spread_texts", "embedder"),
    )
    rows = [
        (
            *(name, row.language, row.side, row.texts, row.skipped, row.words, *row.distinct),
            *(row.sampled_words, *row.distinct_sampled),
            *(row.self_bleu, row.self_bleu_texts, row.spread, row.spread_texts, row.embedder),
        )
        for name, split in zip(split_names(analysis), splits, strict=False)
        for part in split.languages
        for row in part.diversity
    ]
    table = Table("", header, rows, name="diversity")
    columns = (
        "split",
        "language",
        "side",
        "texts",
        "sampled_words",
        *sampled,
        "self_bleu",
        "spread",
    )
    note = "Distinct-n falls as texts are added, so compare the sampled ones. "
    note += "Self-BLEU: how much a text is like the others."
    return FigureSpec(
        "diversity", "", "How varied the texts are", table, _columns(table, columns), None, note
    )


def _comparison(compared: Comparison, a: str, b: str) -> FigureSpec:
    side = f"_{compared.side}" if compared.side else ""
    header = ("item", "count_a", "count_b", "log_odds", "low", "high", "clear")
    ranked = sorted(compared.rows, key=lambda row: (-abs(row.z), row.item))
    rows, shown = (
        [[getattr(row, name) for name in header] for row in some]
        for some in (compared.rows, ranked)
    )
    table = Table("", header, rows, name=f"compare_{compared.kind}_{compared.language}{side}")
    clear = [row.item for row in ranked[:ROWS_SHOWN] if row.clear][:5]
    return FigureSpec(
        part="differences",
        group=find_language(compared.language).name,
        title=compared.kind.title() + (f" of the {compared.side}s" if compared.side else ""),
        table=table,
        shown=replace(table, rows=shown),
        draw=partial(charts.draw_log_odds, compared.rows, a, b),
        note=f"What {a} or {b} has more of: {compared.excluding_zero:,} of {len(compared.rows):,} intervals exclude 0 "
        f"(by chance alone up to {compared.expected_by_chance:,.0f} would); {compared.clear:,} are clear with all "
        "tested at once.",
        content=f"Clearest: {', '.join(clear) or 'none'}.",
        language="" if compared.kind == "emotions" else compared.language,
    )


def _most_frequent(counts: Iterable[tuple[str, int]]) -> str:
    """List the first items, which are the most frequent, with their counts."""
    most = [f"{item} {count:,}" for item, count in islice(counts, 5)]
    return f"Most frequent: {', '.join(most)}." if most else "There are none."


def _columns(table: Table, header: Sequence[str]) -> Table:
    places = [table.header.index(heading) for heading in header]
    return replace(
        table, header=header, rows=[[row[place] for place in places] for row in table.rows]
    )
