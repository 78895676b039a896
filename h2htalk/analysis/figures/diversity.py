"""Draw how varied the texts are: distinct-n as lines; self-BLEU and embedding spread as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.labels import label, replaced_note, row_labels
from h2htalk.analysis.figures.style import (
    INK,
    PAPER,
    SIDE_COLOURS,
    SMALL,
    draw_sentence,
    figure_style,
    new_panels,
    notes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.diversity import Diversity

    Series = tuple[Diversity, str, dict[str, Any]]  # a row, its name, and how it is drawn

ORDERS = (1, 2, 3, 4)
# By side too: in grey print the two colours look alike.
_MARKERS = {("en", "instruction"): "o", ("en", "response"): "^", ("zh", "instruction"): "s", ("zh", "response"): "v"}


def _series(rows: Sequence[Diversity], split: str, **style: Any) -> list[Series]:
    series = []
    for row in rows:
        if row.texts:
            marker = _MARKERS.get((row.language, row.side), "D")
            marks = {"color": SIDE_COLOURS[row.side], "marker": marker, "markersize": 4.2, "linewidth": 0.9, **style}
            series.append((row, f"{row.side}s, {row.language}{', ' if split else ''}{split}", marks))
    return series


@figure_style()
def draw_diversity(
    rows: Sequence[Diversity],
    compare_with: Sequence[Diversity] = (),
    name: str = "",
    compare_with_name: str = "",
) -> Figure:
    """Draw distinct-1 to -4 on the left, self-BLEU and, where measured, spread on the right.

    Args:
        rows, compare_with: of one split and, hollow and dashed, of the split that it is compared with.
        name, compare_with_name: the names of the splits, where there are two.

    Distinct-n is the value over a sample of tokens (`distinct_sampled`), where there is one, so that rows can be
    compared. Missing values are labelled "not measured".
    """
    series = _series(rows, name if compare_with else "")
    series += _series(compare_with, compare_with_name, markerfacecolor=PAPER, linestyle=(0, (3, 2)))
    if not series:
        return draw_sentence("no texts, so no diversity")
    titles = {"self_bleu": "self-BLEU"}
    if any(row.spread is not None for row, _, _ in series):
        titles["spread"] = "embedding spread"
    figure, (lines, *points) = new_panels(max(96, 15 * len(series)) + 66, columns=1 + len(titles))
    for row, _, marks in series:
        heights = [float("nan") if value is None else value for value in row.distinct_sampled or row.distinct]
        lines.plot(ORDERS[: len(heights)], heights, clip_on=False, **marks)
    lines.set(xlim=(0.8, 4.2), ylim=(0, 1), xticks=ORDERS, xlabel="n", ylabel="share of n-grams")
    lines.set_title("distinct-n", loc="left")
    lines.grid(axis="y")
    row_labels(points, [series_name for _, series_name, _ in series], 110)
    for axes, (measure, title) in zip(points, titles.items(), strict=True):
        _points(axes, series, [getattr(row, measure) for row, _, _ in series], title)
    sentence = "Distinct-n: different n-grams by n-grams, on samples of at most 20,000 tokens. Low self-BLEU: varied."
    notes(figure, [sentence, *replaced_note(label(series_name) for _, series_name, _ in series)])
    return figure


def _points(axes: Axes, series: Sequence[Series], values: Sequence[float | None], title: str) -> None:
    right = 1.0 if max([value for value in values if value is not None], default=0) <= 1 else 2.0  # the spread's bound
    bars = axes.barh(range(len(series)), [value or 0 for value in values], 0.5)
    for bar, (_, _, marks) in zip(bars, series, strict=True):
        hollow = marks.get("markerfacecolor")
        bar.set(facecolor=hollow or marks["color"], edgecolor=marks["color"])
    labels = ["not measured" if value is None else f"{value:.3f}" for value in values]
    axes.bar_label(bars, labels, padding=3, size=SMALL, color=INK)
    axes.set(xlim=(0, right), xticks=[0, right / 2, right])
    axes.set_title(title, loc="left")
