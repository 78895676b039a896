"""Specify each figure of an analysis: title, table, note (also the alternative text), and how to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, cast

from h2htalk.analysis import figures
from h2htalk.analysis.analyze import Analysis, LanguageAnalysis
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.measures.scenario_texts import SIDES, Side
from h2htalk.analysis.report import tables
from h2htalk.analysis.verb_nouns.pairs import top_verbs
from h2htalk.data.languages import find_language
from h2htalk.text.tables import Table, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE_NAMES: dict[Side, str] = {"instruction": "instructions", "response": "responses"}
MEASURE_NAMES = {
    "characters": "characters",
    "words": "words",
    "tokens": "model tokens",
    "pieces": "whitespace pieces",
}
MEASURE_ORDER = ("words", "characters", "tokens", "pieces")  # as the page shows them
GROUPS: tuple[Literal["subtask", "emotion"], ...] = ("subtask", "emotion")
PAIRS_GROUP = "Verbs and nouns"
ROWS_SHOWN = 50  # of a table, on the page


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure and its table.

    `name` is its file's. `part` and `group` are where the page shows it. `note` describes the figure: under it, and
    after the title in the alternative text. `table` is the CSV, `shown` the columns and rows of it on the page, of
    `total` rows. `draw` needs matplotlib. `language` is that of the words in the table; empty where they are ours.
    """

    name: str
    part: str
    group: str
    title: str
    note: str
    table: Table
    shown: Table
    total: int
    draw: Callable[[], Figure]
    language: str = ""


def figure_specs(analysis: Analysis) -> list[FigureSpec]:
    """List every figure in the page's order: each language, the diversity of all, the differences of two splits."""
    made = [spec for part in analysis.split.languages for spec in _of_language(part, analysis.spec.seed)]
    made.append(_diversity(analysis))
    made += [_comparison(compared, *split_names(analysis)) for compared in analysis.comparisons]
    return made


def split_names(analysis: Analysis) -> tuple[str, str]:
    """Name the two splits, with (a) and (b) where they have one name."""
    name = analysis.split.facts.name
    other = analysis.compare_with.facts.name if analysis.compare_with else ""
    return (name, other) if name != other else (f"{name} (a)", f"{other} (b)")


def _of_language(part: LanguageAnalysis, seed: int) -> Iterator[FigureSpec]:
    yield from _lengths(part)
    for side in SIDES:
        yield _words(part, side, seed)
    for side in SIDES:
        yield from _pairs(part, side)
    yield _coverage(part)


# --- Lengths ----------------------------------------------------------------------------------------------------

_LENGTH_COLUMNS = ("texts", "mean", "median", "d10", "d90", "minimum", "maximum")
_NAMED = {"all": ("side",), "subtask": ("side", "name"), "emotion": ("side", "name")}
_PIECES = (
    " A piece is the text between two white spaces, as the paper's Fig. 6 counts: in Chinese a line or a sentence, not"
    " a word."
)


def _lengths(part: LanguageAnalysis) -> Iterator[FigureSpec]:
    language, lengths = part.language, part.lengths
    table = tables.lengths_table(language, lengths)

    def make_spec(suffix: str, group: str, measure: str, title: str, draw: Callable[[], Figure]) -> FigureSpec:
        of_group = [row for row in table.rows if (row[1], row[3]) == (group, measure)]
        totals = [s for s in lengths.summaries if (s.group, s.measure) == ("all", measure)]
        means = [f"{SIDE_NAMES[s.side]} have mean {s.mean:,.2f} and median {s.median:,.2f}" for s in totals]
        return FigureSpec(
            name=f"lengths_{language}{suffix}",
            part=language,
            group="Lengths",
            title=title,
            note=f"All {'; all '.join(means)}.{_PIECES if measure == 'pieces' else ''}",
            table=table,
            shown=_columns(table, (*_NAMED[group], *_LENGTH_COLUMNS), of_group),
            total=len(of_group),
            draw=draw,
        )

    for measure in MEASURE_ORDER:
        if any(histogram.measure == measure for histogram in lengths.histograms):
            suffix = "" if measure == "words" else f"_{measure}"
            draw = partial(figures.draw_lengths, lengths.histograms, lengths.summaries, measure)
            yield make_spec(suffix, "all", measure, f"Lengths in {MEASURE_NAMES[measure]}", draw)
    for group in GROUPS:
        draw = partial(figures.draw_length_deciles, lengths.summaries, "words", group)
        yield make_spec(f"_{group}", group, "words", f"Lengths in words by {group}", draw)


# --- Words and pairs --------------------------------------------------------------------------------------------


def _words(part: LanguageAnalysis, side: Side, seed: int) -> FigureSpec:
    words = part.words[side]
    table = tables.words_table(part.language, side, words)
    title = f"Words of the {SIDE_NAMES[side]}"
    return FigureSpec(
        name=table.name,
        part=part.language,
        group="Words",
        title=title,
        note="Larger is more frequent; colours mark fifths of the words, positions have no meaning. "
        "Left out: stop words, and the labels of memory blocks but for “memory”. "
        f"{_most_frequent((w.word, w.count) for w in words)}",
        table=table,
        shown=_top(table),
        total=len(words),
        draw=partial(figures.draw_word_cloud, words, part.language, seed=seed),
        language=part.language,
    )


def _pairs(part: LanguageAnalysis, side: Side) -> Iterator[FigureSpec]:
    pairs = part.pairs[side]
    table = tables.pairs_table(part.language, side, pairs)
    most = _most_frequent((f"{pair.verb} {pair.noun}", pair.count) for pair in pairs)
    title = f"Verbs and their objects in the {SIDE_NAMES[side]}"
    for suffix, form, draw in (
        (
            "",
            "From the 50 most frequent pairs: verb inside, noun outside.",
            partial(figures.draw_sunburst, top_verbs(pairs)),
        ),
        ("_bars", "The same pairs as bars.", partial(figures.draw_pairs_bars, pairs)),
    ):
        yield FigureSpec(
            name=f"{table.name}{suffix}",
            part=part.language,
            group=PAIRS_GROUP,
            title=title,
            note=f"{form} {most}",
            table=table,
            shown=_top(table),
            total=len(pairs),
            draw=draw,
            language=part.language,
        )


# --- Coverage, diversity, differences ---------------------------------------------------------------------------

_DIVERSITY_COLUMNS = (
    *("split", "language", "side", "texts", "sampled_words"),
    *(f"distinct_{n}_sampled" for n in tables.ORDERS),
    *("self_bleu", "spread"),
)


def _coverage(part: LanguageAnalysis) -> FigureSpec:
    grid = part.coverage
    table = tables.coverage_table(part.language, grid)
    filled = f"{grid.filled:,} of {grid.total:,} cells hold a scenario"
    ordered = sorted(table.rows, key=lambda row: -cast(int, row[3]))
    fullest = _most_frequent(
        (f"{row[0]} ({row[2]}, {row[1]})".replace("_", " "), n) for row in ordered if (n := cast(int, row[3]))
    )
    evenness = "" if grid.evenness is None else f"; evenness {grid.evenness:.2f} of 1"
    return FigureSpec(
        name=table.name,
        part=part.language,
        group="Coverage",
        title="Emotion, interaction and complexity",
        note=f"{filled}{evenness}. {fullest}",
        table=table,
        shown=_top(table, ordered),
        total=grid.total,
        draw=partial(figures.draw_coverage, grid),
    )


def _diversity(analysis: Analysis) -> FigureSpec:
    splits = [split for split in (analysis.split, analysis.compare_with) if split is not None]
    rows = [[row for part in split.languages for row in part.diversity] for split in splits]
    names = split_names(analysis)
    table = tables.diversity_table(list(zip(names, rows, strict=False)))
    compare_with = (rows[1], *names) if len(rows) > 1 else ()
    return FigureSpec(
        name="diversity",
        part="diversity",
        group="",
        title="How varied the texts are",
        note="Distinct-n: different n-grams by all; it falls as texts are added, so compare the sampled ones. "
        "Self-BLEU: how much a text is like the others; lower is more varied.",
        table=table,
        shown=_columns(table, _DIVERSITY_COLUMNS, table.rows),
        total=len(table.rows),
        draw=partial(figures.draw_diversity, rows[0], *compare_with),
    )


def _comparison(compared: Comparison, a: str, b: str) -> FigureSpec:
    table = tables.comparison_table(compared)
    of = f" of the {SIDE_NAMES[compared.side]}" if compared.side else ""
    strongest = sorted(table.rows, key=lambda row: (-abs(cast(float, row[3])), row[0]))
    title = f"{compared.kind.title()}{of}"
    note = (
        f"{compared.excluding_zero:,} of {len(compared.rows):,} intervals exclude 0 (by chance alone up to "
        f"{compared.expected_by_chance:,.0f} would); {compared.clear:,} are clear with all tested at once."
    )
    draw = figures.draw_emotions if compared.kind == "emotions" else figures.draw_log_odds
    return FigureSpec(
        name=table.name,
        part="differences",
        group=find_language(compared.language).name,
        title=title,
        note=f"Log-odds with 95 % intervals of what {a} or {b} has more of: {note}",
        table=table,
        shown=_top(table, strongest),
        total=len(table.rows),
        draw=partial(draw, compared.rows, a, b),
        language="" if compared.kind == "emotions" else compared.language,
    )


def _most_frequent(counts: Iterable[tuple[str, int]]) -> str:
    """List the first items, which are the most frequent, with their counts."""
    most = [f"{item} {count:,}" for item, count in islice(counts, 5)]
    return f"Most frequent: {', '.join(most)}." if most else "There are none."


def _top(table: Table, rows: Sequence[Sequence[Value]] | None = None) -> Table:
    return replace(table, rows=(table.rows if rows is None else rows)[:ROWS_SHOWN])


def _columns(table: Table, header: Sequence[str], rows: Sequence[Sequence[Value]]) -> Table:
    places = [table.header.index(heading) for heading in header]
    return replace(table, header=header, rows=[[row[place] for place in places] for row in rows])
