"""Draw Fig. 6 of the paper: how long instructions and responses are; and the same by subtask or emotion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.style import (
    INK,
    MOST_ROWS,
    PAPER,
    SIDE_COLOURS,
    draw_sentence,
    figure_style,
    new_panels,
    not_drawn,
    notes,
    row_labels,
    thousands,
    tint,
)
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.scenario_texts import SIDES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.lengths import Histogram, LengthSummary

# Deciles as strips, the widest first: first and last decile, darkness, height (share of a row).
_STRIPS = ((0, 8, 0.18, 0.34), (1, 7, 0.35, 0.5), (2, 6, 0.6, 0.62), (3, 5, 1.0, 0.74))
_LOG_FROM = 30.0  # the longest 90 % mark by the shortest median: above this a linear axis would show one row
_SMALLEST_GROUP = 5  # texts that a row of deciles needs


@figure_style()
def draw_lengths(histograms: Sequence[Histogram], summaries: Sequence[LengthSummary], measure: str = "words") -> Figure:
    """Draw two histograms of one measure as in Fig. 6: instructions on the left, responses on the right.

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
    figure, panels = new_panels(150, columns=len(shown))
    for axes, histogram in zip(panels, shown, strict=True):
        _histogram(axes, histogram, totals[histogram.side])
        axes.set_xlabel(f"length ({MEASURES[measure]})")
    panels[0].set_ylabel("texts")
    return figure


def _histogram(axes: Axes, histogram: Histogram, total: LengthSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    colour, edges = SIDE_COLOURS[histogram.side], histogram.edges
    axes.stairs(histogram.counts, edges, fill=True, color=tint(colour, 0.55), linewidth=0)
    axes.stairs(histogram.counts, edges, color=colour, linewidth=0.6)
    for name, value, dashes in (("mean", total.mean, (0, (4, 2))), ("median", total.median, "solid")):
        inside = edges[0] <= value <= edges[-1]
        text = f"{name} {thousands(value)}{'' if inside else ' →'}"
        axes.axvline(value if inside else float("nan"), color=INK, linewidth=1, linestyle=dashes, label=text)
    if histogram.beyond:
        share = 100 * histogram.beyond / total.n
        shown = f"{share:.1f} %" if share >= 0.05 else "under 0.1 %"
        axes.plot([], [], linestyle="none", label=f"{edges[-1]:,.0f} or more: {shown}")
    # Slightly wider on the right: else the outline of the last bar is cut.
    axes.set(xlim=(edges[0], edges[-1] + 0.006 * (edges[-1] - edges[0])), ylim=(0, 1.08 * max(1, *histogram.counts)))
    for axis, most in ((axes.xaxis, 6), (axes.yaxis, 4)):
        axis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=1))
        axis.set_major_formatter("{x:,.0f}")
    axes.set_title(f"{histogram.side.title()}s (n = {total.n:,})", loc="left")
    axes.legend(loc="upper right", alignment="right")


@figure_style()
def draw_length_deciles(summaries: Sequence[LengthSummary], measure: str = "words", group: str = "subtask") -> Figure:
    """Draw deciles by subtask or emotion: a strip from 10 % to 90 %, darker inwards, and the median.

    Rows are in the order of the summaries, first on top, at most the 40 largest groups of five texts or more. The
    axis is logarithmic, and labelled so, where a row's 90 % mark is over 30 times another's median.
    """
    every = [s for s in summaries if s.group == group and s.measure == measure]
    largest = dict.fromkeys(s.name for s in sorted(every, key=lambda s: (-s.n, s.name)) if s.n >= _SMALLEST_GROUP)
    chosen = [s for s in every if s.n >= _SMALLEST_GROUP and s.name in list(largest)[:MOST_ROWS]]
    if not chosen:
        return draw_sentence(f"no {group} with {_SMALLEST_GROUP} texts")
    names = list(dict.fromkeys(s.name for s in chosen))
    figure, panels = new_panels(14 * len(names) + 66, columns=2)
    row_labels(panels, names, 130)
    longest = max(s.deciles[8] for s in chosen)
    logarithmic = longest > _LOG_FROM * max(1.0, min(s.median for s in chosen))
    for axes, side in zip(panels, SIDES, strict=True):
        _strips(axes, names, [s for s in chosen if s.side == side], SIDE_COLOURS[side])
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
    strips = "Strips: 10 to 90 %, 20 to 80 %, 30 to 70 %, 40 to 60 % of the texts; white tick: median."
    notes(figure, [strips, *not_drawn(len({s.name for s in every}) - len(names), f"smaller {group}")])
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
