"""Draw Fig. 6 of the paper: how long instructions and responses are; and the same by subtask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from h2htalk.analysis.figures.labels import row_labels
from h2htalk.analysis.figures.style import (
    DOUBLE_COLUMN,
    INK,
    MOST_ROWS,
    PAPER,
    QUIET,
    SIDE_COLOURS,
    SINGLE_COLUMN,
    SMALL,
    draw_sentence,
    figure_style,
    new_panels,
    not_drawn,
    notes,
    thousands,
    tint,
)
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.scenario_texts import SIDES, Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.lengths import Histogram, LengthSummary

# Deciles as strips, the widest first: first and last decile, darkness, height (share of a row).
_STRIPS = ((0, 8, 0.18, 0.34), (1, 7, 0.35, 0.5), (2, 6, 0.6, 0.62), (3, 5, 1.0, 0.74))
_LOG_FROM = 30.0  # the longest 90 % mark by the shortest median: above this a linear axis would show one row


@figure_style()
def draw_lengths(histograms: Sequence[Histogram], summaries: Sequence[LengthSummary], measure: str = "words") -> Figure:
    """Draw two histograms of one measure as in Fig. 6: instructions above, responses below (3.35 in wide).

    Args:
        histograms: of any measures; those of `measure` are drawn, a panel a side.
        summaries: mean, median and n are read from those of group `all`.
        measure: one of `lengths.MEASURES`; the paper's figure counts `pieces`.

    Returns:
        The figure; a sentence where there is nothing of this measure.
    """
    totals = {s.side: s for s in summaries if s.group == "all" and s.measure == measure}
    shown = [h for side in SIDES for h in histograms if h.side == side and h.measure == measure and side in totals]
    if not shown:
        return draw_sentence(f"no lengths in {MEASURES[measure]}")
    figure, panels = new_panels(SINGLE_COLUMN, 116 * len(shown) + 12, rows=len(shown))
    for axes, histogram in zip(panels, shown, strict=True):
        _histogram(axes, histogram, totals[histogram.side])
    panels[-1].set_xlabel(f"length ({MEASURES[measure]})")
    return figure


def _histogram(axes: Axes, histogram: Histogram, total: LengthSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    colour = SIDE_COLOURS[histogram.side]
    # Lengths are whole numbers: a bin from 2 to below 3 is centred on 2, where mean and median are read.
    edges = [edge - 0.5 for edge in histogram.edges]
    axes.stairs(histogram.counts, edges, fill=True, color=tint(colour, 0.55), linewidth=0)
    axes.stairs(histogram.counts, edges, color=colour, linewidth=0.6)
    for name, value, dashes in (("mean", total.mean, (0, (4, 2))), ("median", total.median, "solid")):
        inside = edges[0] <= value <= edges[-1]
        text = f"{name} {thousands(value)}{'' if inside else ' →'}"
        axes.axvline(value if inside else float("nan"), color=INK, linewidth=1, linestyle=dashes, label=text)
    # Slightly wider on the right: else the outline of the last bar is cut.
    axes.set_xlim(edges[0], edges[-1] + 0.006 * (edges[-1] - edges[0]))
    axes.set_ylim(0, 1.08 * max(1, *histogram.counts))
    # One tick is enough where all texts are empty: two would be 0 and 0.5.
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("texts")
    axes.set_title(f"{histogram.side.title()}s (n = {total.n:,})", loc="left", pad=15)
    if histogram.beyond:
        share = 100 * histogram.beyond / total.n
        shown = f"{share:.1f} %" if share >= 0.05 else "under 0.1 %"
        axes.set_title(f"{histogram.edges[-1]:,.0f} or more: {shown}", size=SMALL, loc="right", pad=15.5, color=QUIET)
    # Above the panel, where no bar can cross the words.
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.99), ncols=2, handlelength=1.5, borderaxespad=0, borderpad=0.1)


@figure_style()
def draw_length_deciles(
    summaries: Sequence[LengthSummary],
    measure: str = "words",
    group: Literal["subtask", "language", "emotion"] = "subtask",
) -> Figure:
    """Draw deciles by subtask (or language, or emotion): a strip from 10 % to 90 %, darker inwards, and the median.

    Rows are in the order of the summaries, first on top, at most the 100 largest groups; 6.9 in wide. The
    axis is logarithmic, and labelled so, where a row's 90 % mark is over 30 times another's median.
    """
    chosen = [s for s in summaries if s.group == group and s.measure == measure and s.n]
    if not chosen:
        return draw_sentence(f"no lengths in {MEASURES[measure]} by {group}")
    every = list(dict.fromkeys(s.name for s in chosen))
    largest = dict.fromkeys(s.name for s in sorted(chosen, key=lambda s: (-s.n, s.name)))
    names = [name for name in every if name in list(largest)[:MOST_ROWS]]
    chosen = [s for s in chosen if s.name in names]
    figure, panels = new_panels(DOUBLE_COLUMN, 14 * len(names) + 66, columns=2)
    row_labels(panels, names, 130)
    longest = max(s.deciles[8] for s in chosen)
    logarithmic = longest > _LOG_FROM * max(1.0, min(s.median for s in chosen))
    for axes, side in zip(panels, SIDES, strict=True):
        _strips(axes, names, [s for s in chosen if s.side == side], SIDE_COLOURS[side])
        _decile_axes(axes, measure, side, longest, logarithmic)
    strips = "Strips: 10 to 90 %, 20 to 80 %, 30 to 70 %, 40 to 60 % of the texts; white tick: median."
    notes(figure, [strips, *not_drawn(len(every) - len(names), f"smaller {group}")])
    return figure


def _strips(axes: Axes, names: Sequence[str], summaries: Sequence[LengthSummary], colour: str) -> None:
    import numpy as np

    rows, medians = [names.index(s.name) for s in summaries], [s.median for s in summaries]
    deciles = np.array([s.deciles for s in summaries]).reshape(-1, 9).T
    for first, last, share, height in _STRIPS:
        axes.barh(rows, deciles[last] - deciles[first], height, deciles[first], color=tint(colour, share), linewidth=0)
    # Where all deciles are equal the strip has no width: the line keeps the row visible.
    axes.hlines(rows, deciles[0], deciles[8], colour, linewidth=0.8)
    for reach, ink, width in ((0.42, INK, 2.4), (0.38, PAPER, 1.0)):
        axes.vlines(medians, [row - reach for row in rows], [row + reach for row in rows], ink, linewidth=width)


def _decile_axes(axes: Axes, measure: str, side: Side, longest: float, logarithmic: bool) -> None:
    from matplotlib.ticker import MaxNLocator, NullFormatter

    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(0.8, 1.1 * longest)
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, 1.05 * max(1.0, longest))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="x")
    axes.set_title(f"{side.title()}s", loc="left")
    scale = ", log scale" if logarithmic else ""
    axes.set_xlabel(f"length ({MEASURES[measure]}{scale})")
