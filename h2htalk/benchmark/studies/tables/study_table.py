"""Tables made of observations by groups and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from h2htalk.benchmark.prompts.sap import PRINCIPLES
from h2htalk.benchmark.statistics.bootstrap import ClusteredResult
from h2htalk.benchmark.studies.figures import Figure, difference, figure_of, select
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.text.tables import NONE, Table

TITLES = {
    "sap": "with SAP",
    "full": "with SAP",
    "none": "without SAP",
    "rules": "control: safety rules",
    "reworded": "control: SAP reworded",
    "window": "sliding window",
    "explicit": "explicit memory",
    "whole": "whole history",
    "app": "the application",
}
NAMES = {
    "bleu_4": "BLEU-4",
    "rouge_l": "ROUGE-L",
    "ss": "SS",
    "perception": "Safety perception",
    "violation": "Violation response rate",
    "over_refusal": "Over-refusal",
    "points": "Points met",
    "need_met": "Need met",
    "type_named": "Request type named",
    "tokens": "Tokens a reply",
}
NO_EMBEDDER = (
    "SS and S: left out, because no embedder was named; `h2htalk study score FOLDER --embedder bge-m3` computes them "
    "from the stored replies."
)
SHIFTS = {"perception": (1.0, 2)}  # times and digits of a figure's differences; of others percentage points
Rows = Sequence[Observation]
Cell = Callable[[Rows], str]
Column = tuple[str, Cell]  # its heading, and the text that it makes of a group of observations


def table_of(
    name: str,
    title: str,
    first: str,
    groups: Mapping[str, Rows],
    columns: Sequence[Column],
    notes: Iterable[str] = (),
) -> Table:
    """A line for each group of observations, a cell for each column; `first` heads the groups' names."""
    lines = tuple((group, *(cell(rows) for _, cell in columns)) for group, rows in groups.items())
    return Table(title, (first, *(heading for heading, _ in columns)), lines, tuple(notes), name)


def difference_table(rows: Rows, arms: Sequence[str], study: str, figures: Mapping[str, str], notes: str) -> Table:
    """The differences of figures (by name, with their headings) from the arm `none`, place by place."""
    base = [row for row in rows if row.arm == "none"]

    def cell(figure: str) -> Cell:
        return lambda own: shift(difference(select(base, figure), select(own, figure)), *SHIFTS.get(figure, ()))

    groups = by_arm(rows, [arm for arm in arms if arm != "none"], study)
    title = f"Difference from the arm {title_of('none', study)}"
    columns = [(heading, cell(figure)) for figure, heading in figures.items()]
    return table_of("differences", title, "arm", groups, columns, [notes])


def point_table(rows: Rows, arms: Sequence[str], study: str, name: str, title: str) -> Table:
    """The share of replies of which each kind of point is true, by arm."""
    own = [row for row in rows if row.study == study and row.figure.startswith(("must.", "must_not."))]
    groups = {name_of(figure): select(own, figure) for figure in sorted({row.figure for row in own})}
    columns = [(title_of(arm), cell_of("arm", arm, partial(percent, count=True))) for arm in arms]
    return table_of(name, title, "point", groups, columns, unscored(own))


def unscored(rows: Rows) -> list[str]:
    """A note of how many values are missing, and why."""
    reasons = Counter(row.unscored for row in rows if row.value is None)
    listed = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
    return [f"Unscored, and never counted as passed: {listed}."] if listed else []


def by_arm(rows: Rows, arms: Sequence[str], study: str = "sap") -> dict[str, Rows]:
    """The observations of each arm by its title."""
    return {title_of(arm, study): [row for row in rows if row.arm == arm] for arm in arms}


def title_of(arm: str, study: str = "sap") -> str:
    """What tables call an arm of a study."""
    name = arm.removeprefix("no-").replace("-", "_")
    if name in PRINCIPLES:
        return f"SAP without {PRINCIPLES[name].title.lower()}"
    return "without memory" if (arm, study) == ("none", "memory") else TITLES.get(arm, arm)


def name_of(figure: str) -> str:
    """What tables call a figure; `must_not.give_means` is `must not: give means`."""
    kind, dot, aspect = figure.partition(".")
    words = f"{kind}: {aspect}".replace("_", " ") if dot and kind in ("must", "must_not") else figure
    return NAMES.get(figure, words)


def cell_of(field: str, value: object, show: Callable[[Figure], str]) -> Cell:
    """The figure of the observations with a value of a field."""
    return lambda rows: show(figure_of([row for row in rows if getattr(row, field) == value]))


def share_of(figure: str, count: bool = False) -> Cell:
    """The rate of a figure, as `percent` shows it."""
    return cell_of("figure", figure, partial(percent, count=count))


def mean_of(figure: str, times: float = 1.0, digits: int = 1) -> Cell:
    """The mean of a figure, as `score` shows it."""
    return cell_of("figure", figure, partial(score, times=times, digits=digits))


def percent(figure: Figure, count: bool = False) -> str:
    """`6.7 % (3.7 to 11.8)`; with `count` also `10 of 150`."""
    if figure.value is None:
        return NONE
    hits = f", {figure.hits:,} of {figure.n:,}" if count and figure.hits is not None else ""
    return f"{100 * figure.value:.1f} %{_ends(figure, 100.0, 1)}{hits}"


def score(figure: Figure, times: float = 1.0, digits: int = 1) -> str:
    """`32.7 (30.1 to 35.2)`."""
    return NONE if figure.value is None else f"{times * figure.value:.{digits}f}{_ends(figure, times, digits)}"


def shift(result: ClusteredResult | None, times: float = 100.0, digits: int = 1) -> str:
    """`-5.9 (-9.6 to -2.4), p .001`."""
    if result is None:
        return NONE
    ends = ""
    if result.low is not None and result.high is not None:
        ends = f" ({times * result.low:+.{digits}f} to {times * result.high:+.{digits}f})"
    p = "p < .001" if result.p < 0.001 else f"p {result.p:.3f}".replace("p 0", "p ")
    return f"{times * result.value:+.{digits}f}{ends}, {p}"


def _ends(figure: Figure, times: float, digits: int) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({times * figure.low:.{digits}f} to {times * figure.high:.{digits}f})"
