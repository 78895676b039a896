"""Draw the figures of an analysis: each `draw_*` takes plain data and returns a matplotlib Figure.

Nothing here counts, and nothing uses pyplot or a user's `matplotlibrc`. Figures are as wide as a printed page (6.9
inches), text is 5 to 9 points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product, repeat
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import (
    BODY,
    INK,
    LINE,
    MOST_ROWS,
    PALETTE,
    PAPER,
    POINTS,
    QUIET,
    SIDE_COLOURS,
    SMALL,
    TINY,
    WIDTH,
    FontFile,
    draw_sentence,
    figure_style,
    find_font,
    label,
    new_panels,
    not_drawn,
    notes,
    replaced_note,
    row_labels,
    shortened,
    thousands,
    tint,
    width_of,
    write,
)
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.scenario_texts import SIDES
from h2htalk.data.languages import Language, find_language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS
from h2htalk.errors import MissingExtraError, counted
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.diversity import Coverage
    from h2htalk.analysis.measures.lengths import Histogram, LengthSummary
    from h2htalk.analysis.measures.log_odds import LogOdds
    from h2htalk.analysis.measures.words import WordCount
    from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbGroup

# --- Lengths (Fig. 6 of the paper) ------------------------------------------------------------------------------------

# Deciles as strips, the widest first: first and last decile, darkness, height (share of a row).
_STRIPS = ((0, 8, 0.18, 0.34), (1, 7, 0.35, 0.5), (2, 6, 0.6, 0.62), (3, 5, 1.0, 0.74))
_STRIPS_NOTE = (
    "Strips: 10 to 90 %, 20 to 80 %, 30 to 70 %, 40 to 60 % of the texts; white tick: median."
)
_LOG_FROM = 30.0  # the longest 90 % mark by the shortest median: above this a linear axis would show one row
_SMALLEST_GROUP = 5  # texts that a row of deciles needs
_DASHED = (0, (4, 2))


@figure_style()
def draw_lengths(
    histograms: Sequence[Histogram], summaries: Sequence[LengthSummary], measure: str = "words"
) -> Figure:
    """Draw two histograms of one of `lengths.MEASURES`: instructions on the left, responses on the right.

    The paper's figure counts `pieces`. Mean, median and n are those of the summaries of group `all`.
    """
    totals = {s.side: s for s in summaries if s.group == "all" and s.measure == measure}
    of_measure = [h for h in histograms if h.measure == measure and h.side in totals]
    of_measure.sort(key=lambda histogram: SIDES.index(histogram.side))
    if not of_measure:
        return draw_sentence(f"no lengths in {MEASURES[measure]}")
    figure, panels = new_panels(150, columns=len(of_measure))
    panels[0].set_ylabel("texts")
    for axes, histogram in zip(panels, of_measure, strict=True):
        _draw_histogram(axes, histogram, totals[histogram.side])
        axes.set_xlabel(f"length ({MEASURES[measure]})")
    return figure


def _draw_histogram(axes: Axes, histogram: Histogram, total: LengthSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    colour = SIDE_COLOURS[histogram.side]
    edges = histogram.edges
    first = edges[0]
    last = edges[-1]
    axes.stairs(histogram.counts, edges, fill=True, color=tint(colour, 0.55), linewidth=0)
    axes.stairs(histogram.counts, edges, color=colour, linewidth=0.6)
    for name, value, dashes in (("mean", total.mean, _DASHED), ("median", total.median, "solid")):
        text = f"{name} {thousands(value)}"
        if not first <= value <= last:
            text += " →"
            value = math.nan  # no line, but an entry of the legend
        axes.axvline(value, color=INK, linewidth=1, linestyle=dashes, label=text)
    if histogram.beyond:
        share = 100 * histogram.beyond / total.n
        beyond = f"{share:.1f} %" if share >= 0.05 else "under 0.1 %"
        axes.plot([], [], linestyle="none", label=f"{last:,.0f} or more: {beyond}")
    # Slightly wider on the right: else the outline of the last bar is cut.
    axes.set_xlim(first, last + 0.006 * (last - first))
    axes.set_ylim(0, 1.08 * max(1, *histogram.counts))
    for axis, ticks in ((axes.xaxis, 6), (axes.yaxis, 4)):
        axis.set_major_locator(MaxNLocator(ticks, integer=True, min_n_ticks=1))
        axis.set_major_formatter("{x:,.0f}")
    axes.set_title(f"{histogram.side.title()}s (n = {total.n:,})")
    axes.legend(bbox_to_anchor=(0.5, -0.22), ncols=3)


@figure_style()
def draw_length_deciles(
    summaries: Sequence[LengthSummary], measure: str = "words", group: str = "subtask"
) -> Figure:
    """Draw deciles by subtask or emotion: a strip from 10 % to 90 %, darker inwards, and the median.

    Rows are in the order of the summaries, first on top, at most the 40 largest groups of five texts or more. The
    axis is logarithmic, and labelled so, where a row's 90 % mark is over 30 times another's median.
    """
    of_group = [s for s in summaries if s.group == group and s.measure == measure]
    large = [s for s in of_group if s.n >= _SMALLEST_GROUP]
    if not large:
        return draw_sentence(f"no {group} with {_SMALLEST_GROUP} texts")
    by_size = sorted(large, key=lambda s: (-s.n, s.name))
    largest = list(dict.fromkeys(s.name for s in by_size))[:MOST_ROWS]
    chosen = [s for s in large if s.name in largest]
    names = list(dict.fromkeys(s.name for s in chosen))
    figure, panels = new_panels(14 * len(names) + 66, columns=2)
    row_labels(panels, names, 130)
    longest = max(s.deciles[8] for s in chosen)
    shortest = max(1.0, min(s.median for s in chosen))
    logarithmic = longest > _LOG_FROM * shortest
    unit = f"{MEASURES[measure]}, log scale" if logarithmic else MEASURES[measure]
    for axes, side in zip(panels, SIDES, strict=True):
        _draw_deciles(axes, [s for s in chosen if s.side == side], names, SIDE_COLOURS[side])
        if logarithmic:
            axes.set(xscale="log", xlim=(0.8, 1.1 * longest))
        else:
            axes.set_xlim(0, 1.05 * max(1.0, longest))
            axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
        axes.grid(axis="x")
        axes.set_title(f"{side.title()}s")
        axes.set_xlabel(f"length ({unit})")
    all_names = {s.name for s in of_group}
    omitted = not_drawn(len(all_names) - len(names), f"smaller {group}")
    notes(figure, [_STRIPS_NOTE, *omitted])
    return figure


def _draw_deciles(
    axes: Axes, summaries: Sequence[LengthSummary], names: Sequence[str], colour: str
) -> None:
    import numpy as np

    rows = np.array([names.index(s.name) for s in summaries])
    medians = [s.median for s in summaries]
    deciles = np.array([s.deciles for s in summaries]).reshape(-1, 9).T
    for first, last, darkness, height in _STRIPS:
        width = deciles[last] - deciles[first]
        axes.barh(rows, width, height, deciles[first], color=tint(colour, darkness), linewidth=0)
    # Where all deciles are equal the strip has no width: the line keeps the row visible.
    axes.hlines(rows, deciles[0], deciles[8], colour, linewidth=0.8)
    axes.vlines(medians, rows - 0.42, rows + 0.42, INK, linewidth=2.4)
    axes.vlines(medians, rows - 0.38, rows + 0.38, PAPER, linewidth=1.0)


# --- Words (Fig. 4) ---------------------------------------------------------------------------------------------------

WORDS = 150
PIXELS = (1600, 900)  # 230 an inch
LARGEST_SPACED, LARGEST_UNSPACED = 120, 170  # pixels a word is high: 150 words fill the picture
SMALLEST = 22  # 7 points
MARGIN = 14  # pixels between words: two that touch look like one


@figure_style()
def draw_word_cloud(counts: Sequence[WordCount], language: Language, *, seed: int = 0) -> Figure:
    """Draw the 150 most frequent words of `count_words`, larger if more frequent, one colour for each fifth of them.

    Words that the font lacks or that do not fit are counted below. Equal counts and seed give an equal figure. Raises
    MissingExtraError where `wordcloud` or matplotlib is not installed.
    """
    font = find_font(language)
    frequent = counts[:WORDS]
    words = [count for count in frequent if font.covers.issuperset(map(ord, count.word))]
    omitted = []
    if len(words) < len(frequent):
        omitted.append(f"{counted(len(frequent) - len(words), 'word')} without glyphs")
    if not words:
        return draw_sentence(f"no words ({omitted[0]})" if omitted else "no words")
    cloud = _lay_out_words(words, font, language, seed)
    fitting = len(cloud.layout_)
    if fitting < len(words):
        omitted.append(f"{counted(len(words) - fitting, 'word')} that do not fit")
    figure, (axes,) = new_panels(WIDTH * POINTS * PIXELS[1] / PIXELS[0])
    axes.imshow(cloud.to_array())
    axes.set_axis_off()
    if omitted:
        notes(figure, [f"Not drawn: {', '.join(omitted)}; see the table."])
    return figure


def _lay_out_words(words: Sequence[WordCount], font: FontFile, language: str, seed: int) -> Any:
    """Return a `WordCloud` of words, with smaller letters until all fit or the letters would be too small."""
    try:
        from wordcloud import WordCloud
    except ImportError:
        raise MissingExtraError("a word cloud", INSTALL) from None
    spaced = find_language(language).spaced
    largest = LARGEST_SPACED if spaced else LARGEST_UNSPACED
    colours = {count.word: PALETTE[rank * 5 // len(words)] for rank, count in enumerate(words)}
    frequencies = {count.word: count.count for count in words}
    for share in (1.0, 0.7, 0.5):
        cloud = WordCloud(
            font_path=str(font.path),
            width=PIXELS[0],
            height=PIXELS[1],
            margin=MARGIN,
            max_words=len(words),
            max_font_size=round(share * largest),
            min_font_size=SMALLEST,
            relative_scaling=0.5,
            prefer_horizontal=0.9 if spaced else 1.0,  # turned Chinese is hard to read
            random_state=seed,
            background_color=PAPER,
            color_func=lambda word, **_: colours[word],
        )
        cloud.generate_from_frequencies(frequencies)
        if len(cloud.layout_) == len(words):
            break
    return cloud


# --- Verbs and nouns (Fig. 5) -----------------------------------------------------------------------------------------

VERBS = 20  # of the inner ring, as Self-Instruct draws it (Wang et al. 2023, Fig. 3)
RIM, MIDDLE, HOLE = 237.0, 123.0, 41.0  # points: of the rim, between the rings, of the hole
PAD = 3.0  # points between a label and its ring
LARGEST_LABEL = 9.0  # points a label is high
LINE_HEIGHT = 1.15  # of a label's size


@figure_style()
def draw_sunburst(groups: Sequence[VerbGroup]) -> Figure:
    """Draw the first 20 verbs of `top_verbs` and their nouns as two rings, angles proportional to counts.

    A wedge too narrow for its label has none. Such wedges and the other verbs are counted below.
    """
    if not groups:
        return draw_sentence("no verb-noun pairs found")
    verbs = groups[:VERBS]
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(verbs))]
    if len(verbs) > 1 and colours[-1] == colours[0]:  # they are neighbours
        colours[-1] = PALETTE[2]
    nouns: list[PairCount] = []
    shades: list[Any] = []
    for group, colour in zip(verbs, colours, strict=True):
        nouns += group.nouns
        shades += repeat(tint(colour, 0.24), len(group.nouns))
    verb_counts = [group.count for group in verbs]
    figure, (axes,) = new_panels(WIDTH * POINTS)
    axes.set(xlim=(-RIM, RIM), ylim=(-RIM, RIM))
    axes.set_axis_off()
    labels = _ring(axes, verb_counts, [group.verb for group in verbs], colours, HOLE, MIDDLE)
    noun_counts = [noun.count for noun in nouns]
    labels += _ring(axes, noun_counts, [noun.noun for noun in nouns], shades, MIDDLE, RIM)
    total, unit = counted(sum(verb_counts), "occurrence").split()
    write(axes, 0, 4.5, total, BODY + 1)
    write(axes, 0, -5, unit, 6, color=QUIET)
    sentences = replaced_note(labels)
    unlabelled = len(verbs) + len(nouns) - len(labels)
    if unlabelled:
        wedges = counted(unlabelled, "wedge")
        sentences.append(f"Too narrow for a label: {wedges}; see the table.")
    omitted = groups[VERBS:]
    if omitted:
        pairs = counted(sum(len(group.nouns) for group in omitted), "pair")
        sentences += not_drawn(len(omitted), "verb", f" with {pairs}")
    notes(figure, sentences)
    return figure


def _ring(
    axes: Axes,
    counts: Sequence[int],
    names: Sequence[str],
    colours: Sequence[Any],
    inner: float,
    outer: float,
) -> list[str]:
    """Draw a ring clockwise from twelve o'clock, with labels along rays; return the labels that fit."""
    middle = (inner + outer) / 2
    width = outer - inner - 2 * PAD
    wedges, texts = axes.pie(
        counts,
        radius=outer,
        colors=colours,
        startangle=90,
        counterclock=False,
        wedgeprops={"width": outer - inner, "edgecolor": PAPER, "linewidth": 0.6},
        labels=[label(name) for name in names],
        labeldistance=middle / outer,
        rotatelabels=True,
        textprops={"rotation_mode": "anchor", "va": "center_baseline"},
        frame=True,  # else pie() changes the limits of the axes
    )
    visible = []
    for wedge, text in zip(wedges, texts, strict=True):
        arc = middle * math.radians(wedge.theta2 - wedge.theta1)
        size = min(LARGEST_LABEL, arc / LINE_HEIGHT)
        name = shortened(text.get_text(), width, size)
        text.set(text=name, size=size, visible=size >= TINY, ha="center")
        text.set_color(PAPER if outer < RIM else INK)
        if size >= TINY:
            visible.append(name)
    return visible


# --- Coverage and correlations ----------------------------------------------------------------------------------------

# A correlation, and the ends of its interval.
Estimate = tuple[float | None, float | None, float | None]
_DARK = 0.8  # above this share of a cell's colour, white numbers are easier to read
_POSITIVE, _NEGATIVE = PALETTE[:2]


@figure_style()
def draw_coverage(coverage: Coverage) -> Figure:
    """Draw emotions as rows, interactions and within them complexities as columns.

    The most frequent emotion is first, at most 40 are drawn (the rest is counted below). A cell's number is its
    scenarios and its colour their square root; an empty cell is hatched.
    """
    if not coverage.emotions:
        return draw_sentence("no scenarios, so nothing is covered")
    emotions = list(coverage.emotions)[:MOST_ROWS]
    columns = list(product(INTERACTIONS, COMPLEXITIES))
    largest = max(coverage.cells.values())
    figure, (axes,) = new_panels(13 * len(emotions) + 50)
    row_labels([axes], [emotion.replace("_", " ") for emotion in emotions], 120)
    for row, emotion in enumerate(emotions):
        for column, (interaction, complexity) in enumerate(columns):
            count = coverage.cells[emotion, complexity, interaction]
            if count:
                share = 0.1 + 0.9 * math.sqrt(count / largest)
                _cell(axes, column, row, share, _POSITIVE, f"{count:,}")
            else:
                _hatched_cell(axes, column, row)
    heads = []
    borders = []
    middle = COMPLEXITIES[len(COMPLEXITIES) // 2]
    for column, (interaction, complexity) in enumerate(columns):
        above = interaction.replace("_", " ") if complexity == middle else ""
        heads.append(f"{above}\n{complexity}")
        if complexity == COMPLEXITIES[-1]:
            borders.append(column + 0.5)
    _column_heads(axes, heads, len(columns), multialignment="center")
    axes.vlines(borders, -0.5, len(emotions) - 0.5, PAPER, lw=3)
    omitted = not_drawn(len(coverage.emotions) - len(emotions), "rarer emotion")
    notes(figure, ["Hatched: no scenario.", *omitted])
    return figure


@figure_style()
def draw_correlations(cells: Mapping[tuple[str, str], Estimate], what: str) -> Figure:
    """Draw correlations as cells by (column, row): one colour for positive ones, one for negative ones.

    A value that is None is hatched, an interval without 0 gets a star; `what` they are of is such as "over models".
    """
    columns = list(dict.fromkeys(column for column, _ in cells))
    rows = list(dict.fromkeys(row for _, row in cells))
    heads = [shortened(label(name), 120, SMALL) for name in columns]
    head_room = 0.75 * max(width_of(text, SMALL) for text in heads)
    figure, (axes,) = new_panels(15 * len(rows) + head_room + 36)
    names = row_labels([axes], rows, 120)
    width = max(len(columns), 8)  # a few cells are not broader than a page
    _column_heads(axes, heads, width, rotation=45, ha="left", rotation_mode="anchor")
    for (column, row), (value, low, high) in cells.items():
        x = columns.index(column)
        y = rows.index(row)
        if value is None:
            _hatched_cell(axes, x, y)
            continue
        star = "*" if low is not None and high is not None and low * high > 0 else ""
        colour = _NEGATIVE if value < 0 else _POSITIVE
        _cell(axes, x, y, abs(value), colour, f"{value:.2f}{star}")
    caption = f"Spearman's rho {what}. * The 95 % interval does not hold 0."
    notes(figure, [caption, *replaced_note([*heads, *names])])
    return figure


def _column_heads(axes: Axes, heads: list[str], width: int, **options: Any) -> None:
    axes.set_xticks(range(len(heads)), heads, size=6.5, **options)
    axes.set_xlim(-0.5, width - 0.5)
    axes.tick_params(axis="x", length=0, pad=3, top=True, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


def _cell(axes: Axes, x: int, y: int, share: float, colour: str, text: str) -> None:
    """Draw a cell with a share of a colour and a text."""
    write(axes, x, y, text, SMALL, color=PAPER if share > _DARK else INK)
    _add_square(axes, x, y, facecolor=tint(colour, share), edgecolor=PAPER, linewidth=0.8)


def _hatched_cell(axes: Axes, x: int, y: int) -> None:
    _add_square(axes, x, y, facecolor=PAPER, edgecolor=LINE, hatch="////", linewidth=0)


def _add_square(axes: Axes, x: int, y: int, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))


# --- Differences of two splits ----------------------------------------------------------------------------------------

EACH_WAY = 15
_ALIKE = 1e-9  # closer to 0 is rounding: the shares are equal
_COLOUR_A, _COLOUR_B = PALETTE[:2]


@figure_style()
def draw_log_odds(rows: Sequence[LogOdds], name_a: str, name_b: str) -> Figure:
    """Draw the estimates of two splits as dots and their 95 % intervals as lines, the strongest towards a on top.

    Of the rows with more in a and of those with more in b, the 15 with the largest |z| are drawn. A filled dot: the row
    is `clear`, the difference is significant with all items tested at once. Counts of both splits are on the right.
    """
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    strongest = [row for row in ranked if row.log_odds > _ALIKE][:EACH_WAY]
    strongest += [row for row in ranked if row.log_odds < -_ALIKE][:EACH_WAY]
    strongest.sort(key=lambda row: (-row.log_odds, row.item))
    if not strongest:
        return draw_sentence("nothing that one split has more of")
    figure, (axes,) = new_panels(11.5 * len(strongest) + 66)
    labels = row_labels([axes], [row.item for row in strongest], 130)
    _draw_intervals(axes, strongest)
    counts_a = [f"{row.count_a:,}" for row in strongest]
    counts_b = [f"{row.count_b:,}" for row in strongest]
    step = 5 + max(width_of(count, SMALL) for count in (*counts_a, *counts_b))
    _write_column(axes, counts_b, step, _COLOUR_B)
    _write_column(axes, counts_a, 2 * step, _COLOUR_A)
    axes.margins(x=0.04)
    axes.axvline(0, color=QUIET, linewidth=0.7)
    axes.grid(axis="x")
    axes.set_xlabel("log-odds ratio (natural logarithm; 0: both alike)")
    name_a = shortened(label(name_a), 140, BODY)
    name_b = shortened(label(name_b), 140, BODY)
    axes.set_title(f"← more in {name_b}", color=_COLOUR_B)
    axes.set_title(f"more in {name_a} →", color=_COLOUR_A, loc="right")
    marks = "Line: 95 % interval. Filled: clear with all items tested at once. Right: counts in both splits."
    notes(figure, [marks, *replaced_note([*labels, name_a, name_b])])
    return figure


def _draw_intervals(axes: Axes, rows: Sequence[LogOdds]) -> None:
    """Draw an interval for each row, from the top, and its estimate as a dot, which is filled where it is clear."""
    heights = range(len(rows))
    colours = [_COLOUR_B if row.log_odds < 0 else _COLOUR_A for row in rows]
    faces = [colour if row.clear else PAPER for row, colour in zip(rows, colours, strict=True)]
    lows = [row.low for row in rows]
    highs = [row.high for row in rows]
    estimates = [row.log_odds for row in rows]
    axes.hlines(heights, lows, highs, colours, linewidth=1.1)
    axes.scatter(estimates, heights, s=16, c=faces, edgecolors=colours, linewidths=1, zorder=2)


def _write_column(axes: Axes, texts: Sequence[str], distance: float, colour: str) -> None:
    """Write a text for each row, which ends so many points right of the axes."""
    for row, text in enumerate(texts):
        axes.annotate(
            text,
            (1, row),
            (distance, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            size=SMALL,
            color=colour,
        )
