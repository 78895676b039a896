"""Draw the figures of an analysis: each `draw_*` takes plain data and returns a matplotlib Figure.

Nothing here counts, and nothing uses pyplot or a user's `matplotlibrc`. Figures are as wide as a printed page (6.9
inches), text is 5 to 9 points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
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
    from h2htalk.analysis.verb_nouns.pairs import VerbGroup

# --- Lengths (Fig. 6 of the paper) ------------------------------------------------------------------------------------

# Deciles as strips, the widest first: first and last decile, darkness, height (share of a row).
_STRIPS = ((0, 8, 0.18, 0.34), (1, 7, 0.35, 0.5), (2, 6, 0.6, 0.62), (3, 5, 1.0, 0.74))
_LOG_FROM = 30.0  # the longest 90 % mark by the shortest median: above this a linear axis would show one row
_SMALLEST_GROUP = 5  # texts that a row of deciles needs


@figure_style()
def draw_lengths(
    histograms: Sequence[Histogram], summaries: Sequence[LengthSummary], measure: str = "words"
) -> Figure:
    """Draw two histograms of one of `lengths.MEASURES`: instructions on the left, responses on the right.

    The paper's figure counts `pieces`. Mean, median and n are those of the summaries of group `all`.
    """
    from matplotlib.ticker import MaxNLocator

    totals = {s.side: s for s in summaries if s.group == "all" and s.measure == measure}
    shown = [
        h
        for side in SIDES
        for h in histograms
        if h.side == side and h.measure == measure and side in totals
    ]
    if not shown:
        return draw_sentence(f"no lengths in {MEASURES[measure]}")
    figure, panels = new_panels(150, columns=len(shown))
    panels[0].set_ylabel("texts")
    for axes, histogram in zip(panels, shown, strict=True):
        colour = SIDE_COLOURS[histogram.side]
        edges = histogram.edges
        total = totals[histogram.side]
        axes.stairs(histogram.counts, edges, fill=True, color=tint(colour, 0.55), linewidth=0)
        axes.stairs(histogram.counts, edges, color=colour, linewidth=0.6)
        for name, value, dashes in (
            ("mean", total.mean, (0, (4, 2))),
            ("median", total.median, "solid"),
        ):
            inside = edges[0] <= value <= edges[-1]
            text = f"{name} {thousands(value)}{'' if inside else ' →'}"
            axes.axvline(
                value if inside else float("nan"),
                color=INK,
                linewidth=1,
                linestyle=dashes,
                label=text,
            )
        if histogram.beyond:
            share = 100 * histogram.beyond / total.n
            beyond = f"{share:.1f} %" if share >= 0.05 else "under 0.1 %"
            axes.plot([], [], linestyle="none", label=f"{edges[-1]:,.0f} or more: {beyond}")
        # Slightly wider on the right: else the outline of the last bar is cut.
        right = edges[-1] + 0.006 * (edges[-1] - edges[0])
        axes.set(xlim=(edges[0], right), ylim=(0, 1.08 * max(1, *histogram.counts)))
        for axis, most in ((axes.xaxis, 6), (axes.yaxis, 4)):
            axis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=1))
            axis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"{histogram.side.title()}s (n = {total.n:,})", loc="left")
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.22),
            ncols=3,
            columnspacing=1.2,
            handlelength=1.6,
        )
        axes.set_xlabel(f"length ({MEASURES[measure]})")
    return figure


@figure_style()
def draw_length_deciles(
    summaries: Sequence[LengthSummary], measure: str = "words", group: str = "subtask"
) -> Figure:
    """Draw deciles by subtask or emotion: a strip from 10 % to 90 %, darker inwards, and the median.

    Rows are in the order of the summaries, first on top, at most the 40 largest groups of five texts or more. The
    axis is logarithmic, and labelled so, where a row's 90 % mark is over 30 times another's median.
    """
    import numpy as np

    every = [s for s in summaries if s.group == group and s.measure == measure]
    largest = dict.fromkeys(
        s.name for s in sorted(every, key=lambda s: (-s.n, s.name)) if s.n >= _SMALLEST_GROUP
    )
    chosen = [s for s in every if s.n >= _SMALLEST_GROUP and s.name in list(largest)[:MOST_ROWS]]
    if not chosen:
        return draw_sentence(f"no {group} with {_SMALLEST_GROUP} texts")
    names = list(dict.fromkeys(s.name for s in chosen))
    figure, panels = new_panels(14 * len(names) + 66, columns=2)
    row_labels(panels, names, 130)
    longest = max(s.deciles[8] for s in chosen)
    logarithmic = longest > _LOG_FROM * max(1.0, min(s.median for s in chosen))
    for axes, side in zip(panels, SIDES, strict=True):
        own = [s for s in chosen if s.side == side]
        colour = SIDE_COLOURS[side]
        rows = [names.index(s.name) for s in own]
        medians = [s.median for s in own]
        deciles = np.array([s.deciles for s in own]).reshape(-1, 9).T
        for first, last, share, height in _STRIPS:
            width = deciles[last] - deciles[first]
            axes.barh(rows, width, height, deciles[first], color=tint(colour, share), linewidth=0)
        # Where all deciles are equal the strip has no width: the line keeps the row visible.
        axes.hlines(rows, deciles[0], deciles[8], colour, linewidth=0.8)
        for reach, ink, line in ((0.42, INK, 2.4), (0.38, PAPER, 1.0)):
            axes.vlines(
                medians,
                [row - reach for row in rows],
                [row + reach for row in rows],
                ink,
                linewidth=line,
            )
        if logarithmic:
            axes.set(xscale="log", xlim=(0.8, 1.1 * longest))
        else:
            axes.set_xlim(0, 1.05 * max(1.0, longest))
            axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
        axes.grid(axis="x")
        axes.set_title(f"{side.title()}s", loc="left")
        axes.set_xlabel(f"length ({MEASURES[measure]}{', log scale' if logarithmic else ''})")
    strips = (
        "Strips: 10 to 90 %, 20 to 80 %, 30 to 70 %, 40 to 60 % of the texts; white tick: median."
    )
    notes(
        figure, [strips, *not_drawn(len({s.name for s in every}) - len(names), f"smaller {group}")]
    )
    return figure


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
    try:
        from wordcloud import WordCloud
    except ImportError:
        raise MissingExtraError("a word cloud", INSTALL) from None
    font = find_font(language)
    spaced = find_language(language).spaced
    taken = counts[:WORDS]
    drawn = [count for count in taken if font.covers.issuperset(map(ord, count.word))]
    left = (
        [f"{counted(len(taken) - len(drawn), 'word')} without glyphs"]
        if len(drawn) < len(taken)
        else []
    )
    if not drawn:
        return draw_sentence(f"no words ({left[0]})" if left else "no words")
    colours = {count.word: PALETTE[rank * 5 // len(drawn)] for rank, count in enumerate(drawn)}
    for share in (1.0, 0.7, 0.5):  # until all words fit
        cloud = WordCloud(
            font_path=str(font.path),
            width=PIXELS[0],
            height=PIXELS[1],
            margin=MARGIN,
            max_words=len(drawn),
            max_font_size=round(share * (LARGEST_SPACED if spaced else LARGEST_UNSPACED)),
            min_font_size=SMALLEST,
            relative_scaling=0.5,
            prefer_horizontal=0.9 if spaced else 1.0,  # turned Chinese is hard to read
            random_state=seed,
            background_color=PAPER,
            color_func=lambda word, **_: colours[word],
        ).generate_from_frequencies({count.word: count.count for count in drawn})
        if (placed := len(cloud.layout_)) == len(drawn):
            break
    if placed < len(drawn):
        left.append(f"{counted(len(drawn) - placed, 'word')} that do not fit")
    figure, (axes,) = new_panels(WIDTH * POINTS * PIXELS[1] / PIXELS[0])
    axes.imshow(cloud.to_array(), interpolation="none")
    axes.set_axis_off()
    notes(figure, [f"Not drawn: {', '.join(left)}; see the table."] if left else [])
    return figure


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
    drawn = groups[:VERBS]
    left = groups[VERBS:]
    nouns = [noun for group in drawn for noun in group.nouns]
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(drawn))]
    if len(drawn) > 1 and colours[-1] == colours[0]:  # they are neighbours
        colours[-1] = PALETTE[2]
    shades = [
        tint(colour, 0.24)
        for colour, group in zip(colours, drawn, strict=True)
        for _ in group.nouns
    ]
    figure, (axes,) = new_panels(WIDTH * POINTS)
    axes.set(xlim=(-RIM, RIM), ylim=(-RIM, RIM))
    axes.set_axis_off()
    names = _ring(
        axes,
        [group.count for group in drawn],
        [group.verb for group in drawn],
        colours,
        HOLE,
        MIDDLE,
    )
    names += _ring(
        axes, [noun.count for noun in nouns], [noun.noun for noun in nouns], shades, MIDDLE, RIM
    )
    total, unit = counted(sum(group.count for group in drawn), "occurrence").split()
    write(axes, 0, 4.5, total, BODY + 1, ha="center", va="center_baseline")
    write(axes, 0, -5, unit, 6, ha="center", va="center_baseline", color=QUIET)
    note_lines = replaced_note(names)
    if narrow := len(drawn) + len(nouns) - len(names):
        note_lines.append(f"Too narrow for a label: {counted(narrow, 'wedge')}; see the table.")
    if left:
        pairs = sum(len(group.nouns) for group in left)
        note_lines.append(
            f"Not drawn: {counted(len(left), 'verb')} with {counted(pairs, 'pair')}; see the table."
        )
    notes(figure, note_lines)
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
        textprops={"rotation_mode": "anchor", "va": "center_baseline", "parse_math": False},
        frame=True,  # else pie() changes the limits of the axes
    )
    for wedge, text in zip(wedges, texts, strict=True):
        size = min(LARGEST_LABEL, middle * math.radians(wedge.theta2 - wedge.theta1) / LINE_HEIGHT)
        text.set(
            text=shortened(text.get_text(), width, size),
            size=size,
            visible=size >= TINY,
            ha="center",
        )
        text.set_color(PAPER if outer < RIM else INK)
    return [text.get_text() for text in texts if text.get_visible()]


# --- Coverage and correlations ----------------------------------------------------------------------------------------

Estimate = tuple[
    float | None, float | None, float | None
]  # a correlation, and the ends of its interval
_DARK = 0.8  # above this share of a cell's colour, white numbers are easier to read


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
    for (row, emotion), (column, (interaction, complexity)) in product(
        enumerate(emotions), enumerate(columns)
    ):
        count = coverage.cells[emotion, complexity, interaction]
        share = 0.1 + 0.9 * math.sqrt(count / largest) if count else None
        _cell(axes, column, row, share, PALETTE[0], f"{count:,}")
    middle = COMPLEXITIES[len(COMPLEXITIES) // 2]
    last = COMPLEXITIES[-1]
    heads = [
        f"{one.replace('_', ' ') if complexity == middle else ''}\n{complexity}"
        for one, complexity in columns
    ]
    _column_heads(axes, heads, len(columns), multialignment="center")
    axes.vlines(
        [n + 0.5 for n, (_, one) in enumerate(columns) if one == last],
        -0.5,
        len(emotions) - 0.5,
        PAPER,
        lw=3,
    )
    notes(
        figure,
        [
            "Hatched: no scenario.",
            *not_drawn(len(coverage.emotions) - len(emotions), "rarer emotion"),
        ],
    )
    return figure


@figure_style()
def draw_correlations(cells: Mapping[tuple[str, str], Estimate], what: str) -> Figure:
    """Draw correlations as cells by (column, row): one colour for positive ones, one for negative ones.

    A value that is None is hatched, an interval without 0 gets a star; `what` they are of is such as "over models".
    """
    across, rows = (list(dict.fromkeys(pair[side] for pair in cells)) for side in (0, 1))
    heads = [shortened(label(name), 120, SMALL) for name in across]
    head_room = 0.75 * max(width_of(text, SMALL) for text in heads)
    figure, (axes,) = new_panels(15 * len(rows) + head_room + 36)
    names = row_labels([axes], rows, 120)
    # A few cells are not broader than a page.
    _column_heads(
        axes,
        heads,
        max(len(across), 8),
        rotation=45,
        ha="left",
        rotation_mode="anchor",
        parse_math=False,
    )
    for (column, row), (value, low, high) in cells.items():
        mark = "*" if low is not None and high is not None and low * high > 0 else ""
        share, text = (None, "") if value is None else (abs(value), f"{value:.2f}{mark}")
        _cell(axes, across.index(column), rows.index(row), share, PALETTE[(value or 0) < 0], text)
    notes(
        figure,
        [
            f"Spearman's rho {what}. * The 95 % interval does not hold 0.",
            *replaced_note([*heads, *names]),
        ],
    )
    return figure


def _column_heads(axes: Axes, heads: list[str], width: int, **options: Any) -> None:
    axes.set_xticks(range(len(heads)), heads, size=6.5, **options)
    axes.set_xlim(-0.5, width - 0.5)
    axes.tick_params(axis="x", length=0, pad=3, top=True, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


def _cell(axes: Axes, x: int, y: int, share: float | None, colour: str, text: str) -> None:
    """Draw a cell with a share of a colour and a text; hatched where the share is None."""
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": LINE, "hatch": "////", "linewidth": 0}
    if share is not None:
        look = {"facecolor": tint(colour, share), "edgecolor": PAPER, "linewidth": 0.8}
        ink = PAPER if share > _DARK else INK
        write(axes, x, y, text, SMALL, ha="center", va="center_baseline", color=ink)
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))


# --- Differences of two splits ----------------------------------------------------------------------------------------

EACH_WAY = 15
_ALIKE = 1e-9  # closer to 0 is rounding: the shares are equal


@figure_style()
def draw_log_odds(rows: Sequence[LogOdds], name_a: str, name_b: str) -> Figure:
    """Draw the estimates of two splits as dots and their 95 % intervals as lines, the strongest towards a on top.

    Of the rows with more in a and of those with more in b, the 15 with the largest |z| are drawn. A filled dot: the row
    is `clear`, the difference is significant with all items tested at once. Counts of both splits are on the right.
    """
    ranked = sorted(rows, key=lambda row: (-abs(row.z), row.item))
    more_a = [row for row in ranked if row.log_odds > _ALIKE][:EACH_WAY]
    more_b = [row for row in ranked if row.log_odds < -_ALIKE][:EACH_WAY]
    shown = sorted([*more_a, *more_b], key=lambda row: (-row.log_odds, row.item))
    if not shown:
        return draw_sentence("nothing that one split has more of")
    figure, (axes,) = new_panels(11.5 * len(shown) + 66)
    labels = row_labels([axes], [row.item for row in shown], 130)
    places = range(len(shown))
    colours = [PALETTE[row.log_odds < 0] for row in shown]
    faces = [colour if row.clear else PAPER for row, colour in zip(shown, colours, strict=True)]
    axes.hlines(
        places, [row.low for row in shown], [row.high for row in shown], colours, linewidth=1.1
    )
    axes.scatter(
        [row.log_odds for row in shown],
        places,
        s=16,
        c=faces,
        edgecolors=colours,
        linewidths=1,
        zorder=2,
    )
    columns = [f"{row.count_b:,}" for row in shown], [f"{row.count_a:,}" for row in shown]
    step = 5 + max(width_of(count, SMALL) for column in columns for count in column)
    where: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    where |= {"ha": "right", "va": "center_baseline", "size": SMALL}
    for number, (column, colour) in enumerate(
        zip(columns, (PALETTE[1], PALETTE[0]), strict=True), 1
    ):
        for place, count in enumerate(column):
            axes.annotate(count, (1, place), (number * step, 0), color=colour, **where)
    axes.margins(x=0.04)
    axes.axvline(0, color=QUIET, linewidth=0.7)
    axes.grid(axis="x")
    axes.set_xlabel("log-odds ratio (natural logarithm; 0: both alike)")
    name_a, name_b = (shortened(label(name), 140, BODY) for name in (name_a, name_b))
    axes.set_title(f"← more in {name_b}", color=PALETTE[1], loc="left", parse_math=False)
    axes.set_title(f"more in {name_a} →", color=PALETTE[0], loc="right", parse_math=False)
    marks = "Line: 95 % interval. Filled: clear with all items tested at once. Right: counts in both splits."
    notes(figure, [marks, *replaced_note([*labels, name_a, name_b])])
    return figure
