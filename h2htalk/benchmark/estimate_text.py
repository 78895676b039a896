"""Write estimates as text: a value, its 95 % interval, its items, ties between people, and p values.

`format_interval` is the only place that writes an interval.
"""

from __future__ import annotations

from h2htalk.benchmark.observations import BUNDLED
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import MIN_CLUSTERS, PairedResult
from h2htalk.distributions import Interval
from h2htalk.text.tables import NONE

# The longer side of an interval to the shorter one, beyond which (and a unit of the last digit) its ends are shown.
SKEWED = 1.2
LEAST_WHOLE = 9.95  # from this half width on, decimals say nothing
PERCENT = "{:.0f} %"


def format_interval(
    interval: Interval | None,
    form: str = ".2f",
    factor: float = 1.0,
    separator: str = " to ",
    frame: str = "{}",
) -> str:
    """Format `30.10 to 35.20`; without an interval the text is empty.

    Args:
        form: the format of both ends.
        factor: what both ends are multiplied by, such as 100 for percentages.
        separator: what stands between them.
        frame: what stands around them, such as ` ({})`.
    """
    if interval is None:
        return ""
    low, high = (f"{factor * end:{form}}" for end in interval)
    return frame.format(f"{low}{separator}{high}")


def value_text(estimate: Estimate | None, none: str = "-", form: str = "{:.2f}") -> str:
    """Format the value with two decimals, as in the paper's tables, or in another form."""
    return none if estimate is None or estimate.value is None else form.format(estimate.value)


def half_width_text(
    estimate: Estimate | None, as_ends: bool = False, separator: str = " to "
) -> str:
    """Format the interval as `±1.0`, or without decimals from ±10 on; without an interval the text is empty.

    A skewed interval is written as `(3.1 to 9.0)`, and with `as_ends` every interval as `(3.10 to 9.00)`.
    """
    if estimate is None or estimate.value is None or estimate.interval is None:
        return ""
    low, high = estimate.interval
    below = estimate.value - low
    above = high - estimate.value
    half_width = (high - low) / 2
    digits = 1 if half_width < LEAST_WHOLE else 0
    if as_ends:
        digits = 2
    if as_ends or max(below, above) > SKEWED * min(below, above) + 10**-digits:
        return format_interval(estimate.interval, f".{digits}f", separator=separator, frame="({})")
    return f"±{half_width:.{digits}f}"


def format_with_interval(estimate: Estimate | None, as_ends: bool = False) -> str:
    """Format `40.00 ±1.0`, `4.28 (3.1 to 9.0)`, or the value alone; `as_ends` as in `half_width_text`."""
    return f"{value_text(estimate)} {half_width_text(estimate, as_ends)}".rstrip()


def items_text(estimate: Estimate | None) -> str:
    """Format the items scored and the items in all: `1,880/1,882`."""
    return "-" if estimate is None else f"{estimate.n:,}/{estimate.total:,}"


def format_figure(
    estimate: Estimate, factor: float = 1.0, digits: int = 1, unit: str = "", counts: str = ""
) -> str:
    """Format `32.7 (30.1 to 35.2)`, with ties `32.7 (30.1 to 35.2), 4 tied (30.2 to 33.9)`.

    Trivial answers are no sample of a model's replies, and have no interval. With ties the figure stands with all of
    them at 0, and at 1. `counts` stands before them.
    """
    text = NONE
    form = f".{digits}f"
    if estimate.value is not None:
        text = f"{factor * estimate.value:{form}}{unit}"
        if estimate.answered_by != BUNDLED:
            text += format_interval(estimate.interval, form, factor, frame=" ({})")
    ties = f", {estimate.tied:,} tied ({{}})"
    return text + counts + format_interval(estimate.tie_range, form, factor, frame=ties)


def format_percent(estimate: Estimate, count: bool = False) -> str:
    """Format `6.7 % (3.7 to 11.8)`; with `count` also `10 of 150`; then ties, as `format_figure`."""
    counts = ""
    if count and estimate.hits is not None and estimate.answered_by != BUNDLED:
        counts = f", {estimate.hits:,} of {estimate.n:,}"
    return format_figure(estimate, factor=100.0, unit=" %", counts=counts)


def format_p(p: float) -> str:
    """Format a p value with three decimals."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def format_difference(
    result: PairedResult, p: float, factor: float = 100.0, digits: int = 1
) -> str:
    """Format `-5.9 (-9.6 to -2.4), p .001` of a difference with an adjusted p.

    There is no interval of few clusters, or of equal differences.
    """
    form = f"+.{digits}f"
    interval = ""
    if result.clusters >= MIN_CLUSTERS:
        interval = format_interval(result.estimate.interval, form, factor, frame=" ({})")
    return f"{factor * result.mean:{form}}{interval}, p {format_p(p)}"
