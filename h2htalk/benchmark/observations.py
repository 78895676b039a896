"""One row for each value that a study or an evaluation measured, and the figures that are made of such rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark.statistics.averages import SampleMean, design_effect, mean_of, rate_interval
from h2htalk.benchmark.statistics.estimates import Estimate, without_value
from h2htalk.benchmark.statistics.paired_tests import MIN_CLUSTERS, PairedResult, clustered_slope
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.errors import DataError

BUNDLED = "bundled"  # who answered for trivial answers and references: raters, when the cases were written
NOT_ASKED = "no judge and no people"
TIED = "people are tied"


@dataclass(frozen=True, slots=True)
class Observation:
    """A value of one figure, at one place of a case, in one arm."""

    arm: str  # of the study; of an evaluation ""
    figure: str  # such as `violation`, `must.recognise` or `ss`
    item: str  # the case or scenario
    cluster: str  # shared by items that are not independent: a case, a family of cases
    value: float | None  # 0 or 1, a score in [0, 1], a rating of 1 to 5, or a count; None: unscored
    place: str = ""  # the turn in the case, `turn` its number over all sessions
    turn: int = 0
    session: int = 0
    language: str = ""
    study: str = ""  # of the case, as are kind and degree
    kind: str = ""
    degree: int = 0
    by: str = ""  # who answered: code, judge, people, or `BUNDLED`; of SS and S an embedder
    unscored: str = ""  # why there is no value

    @property
    def key(self) -> tuple[str, str]:
        """What pairs it with the same place in another arm or run."""
        return self.item, self.place


def scored(rows: Sequence[Observation]) -> list[Observation]:
    """The observations of a figure that a rate or mean is made of: those with a value."""
    return [row for row in rows if row.value is not None]


def write_observations(path: Path, rows: Iterable[Observation]) -> None:
    """Write one Parquet row each, in a fixed order."""
    import pyarrow as pa

    kinds = {"str": pa.string(), "int": pa.int32(), "float | None": pa.float64()}
    schema = pa.schema([(field.name, kinds[str(field.type)]) for field in fields(Observation)])
    ordered = sorted(rows, key=lambda row: (row.arm, row.figure, row.item, row.turn, row.place))
    write_parquet(path, (asdict(row) for row in ordered), schema=schema)


def read_observations(path: Path) -> list[Observation]:
    """Read what `write_observations` wrote. Raises DataError where the file is of another version."""
    try:
        return [Observation(**row) for _, row in read_parquet(path)]
    except TypeError as error:
        raise DataError(
            f"{path}: of another version ({error}); run `h2htalk study score` again"
        ) from error


# The lowest and highest value of figures that are no rates or scores in [0, 1].
SCALES = {"perception": (1.0, 5.0)}
LOGGED = (
    "chat",
    "possible_crisis",
    "rejected",
    "unchecked",
)  # kinds of chats that an application had
HINT = 2  # the lowest degree that is a hint
COUNTS = ("tokens",)  # figures without an upper end
RATES = (
    "violation",
    "over_refusal",
    "need_met",
    "type_named",
    "refused",
    "cut",
)  # of 0 and 1, as is every point


def is_rate(figure: str) -> bool:
    """Whether the values of a figure are 0 or 1; scores in [0, 1] can happen to be."""
    return figure in RATES or figure.startswith(("must.", "must_not."))


def is_answered(figure: str) -> bool:
    """Whether a judge, people or code say what the value of a figure is; the others are computed."""
    return figure in (
        "perception",
        "violation",
        "over_refusal",
        "points",
        "need_met",
    ) or figure.startswith("must")


def figure_of(rows: Sequence[Observation]) -> Estimate:
    """Sum up observations of one figure."""
    valued = scored(rows)
    values = [row.value or 0.0 for row in valued]
    raters = sorted(Counter(row.by for row in valued).items())
    answered_by = ", ".join(
        f"{name} {number:,}" if len(raters) > 1 else name for name, number in raters
    )
    effect = 1.0  # turns of a script are asked on purpose
    if valued and valued[0].kind in LOGGED:
        effect = effect_of(valued)
    tied = tied_in(rows)
    if not values or is_rate(rows[0].figure):
        return replace(rate_of(values, len(rows), answered_by, effect), tied=tied)
    estimate = Estimate(fmean(values), None, None, len(values), len(rows), answered_by, tied=tied)
    least, most = SCALES.get(rows[0].figure, (0.0, 1.0))
    scaled = mean_of([(value - least) / (most - least) for value in values])
    if scaled is not None and effect > 1:
        chats = len({row.cluster for row in valued})
        scaled = SampleMean(
            value=scaled.value,
            variance=effect * scaled.variance,
            df=chats - 1,
            n=round(scaled.n / effect),
        )
    if scaled is None or scaled.df <= 0 or rows[0].figure in COUNTS:
        return estimate
    low, high = (least + end * (most - least) for end in scaled.interval())
    return replace(estimate, low=low, high=high)


def tied_in(rows: Sequence[Observation]) -> int:
    """How many values of a rate or a share are missing because people are tied; a rating has no ties."""
    return sum(row.unscored == TIED for row in rows if row.figure not in SCALES)


def effect_of(valued: Sequence[Observation]) -> float:
    """The `design_effect` of observations by cluster.

    Replies of one chat that was had are alike: where fewer than six chats hold another value than the usual one, how
    alike cannot be valued, and a chat counts for at most one.
    """
    values = [row.value or 0.0 for row in valued]
    clusters = [row.cluster for row in valued]
    effect = design_effect(values, clusters)
    usual, _ = Counter(values).most_common(1)[0]
    unusual = {row.cluster for row in valued if row.value != usual}
    if valued[0].kind in LOGGED and len(unusual) < MIN_CLUSTERS:
        return max(effect, len(values) / len(set(clusters)))
    return effect


def rate_of(
    values: Sequence[float], total: int, answered_by: str = "", effect: float = 1.0
) -> Estimate:
    """A rate of 0 and 1, with Wilson's interval of n divided by a design effect; without values an empty figure."""
    if not values:
        return without_value(0, total)
    hits = sum(values)
    n = len(values)
    low, high = rate_interval(hits / effect, n / effect)
    return Estimate(hits / n, low, high, n, total, answered_by, hits=int(hits))


def trend(rows: Sequence[Observation], by: str = "turn") -> PairedResult | None:
    """The change of a figure from turn to turn within a case (or by another number, within a cluster)."""
    valued = scored(rows)
    x = [float(getattr(row, by)) for row in valued]
    y = [row.value or 0.0 for row in valued]
    return clustered_slope([row.cluster for row in valued], x, y)


def by_turn(rows: Sequence[Observation]) -> dict[int, Estimate]:
    """The figure at each turn."""
    figures = {}
    for turn in sorted({row.turn for row in rows}):
        figures[turn] = figure_of([row for row in rows if row.turn == turn])
    return figures


def blindness(rows: Sequence[Observation]) -> Estimate:
    """Of the needs that are met where they are commanded, the share that is missed where they are only hinted at.

    `rows` are of the figure `need_met`; each cluster is a family of cases in several degrees.
    """
    families: dict[str, dict[int, float | None]] = {}
    tied = set[tuple[str, int]]()
    for row in rows:
        met = families.setdefault(row.cluster, {})
        values = (met.get(row.degree, 1.0), row.value)
        met[row.degree] = None if None in values else 1.0
        if 0.0 in values:  # of several turns that ask for it, all have to meet it
            met[row.degree] = 0.0
        if row.unscored == TIED:
            tied.add((row.cluster, row.degree))
    missed = list[float]()
    ties = 0
    for family, met in families.items():
        command = min(met)
        hint = max(met)
        if command < HINT <= hint and met[command] == 1:
            at_hint = met[hint]
            if at_hint is not None:
                missed.append(1 - at_hint)
            elif (family, hint) in tied:
                ties += 1
    return replace(rate_of(missed, len(families)), tied=ties)


def equally_demanding(rows: Iterable[Observation]) -> set[str]:
    """The clusters that have a case of every degree, each checked for the same number of must points.

    Where the number differs, a change over degrees mixes how plainly a need is told with how much is asked. A cluster
    that lacks a degree compares other clusters with each other, and where all cases are of one degree none is compared.
    """
    musts: dict[str, dict[str, set[str]]] = {}
    degrees: dict[str, set[int]] = {}
    for row in rows:
        if row.figure.startswith("must."):
            cases = musts.setdefault(row.cluster, {})
            cases.setdefault(row.item, set()).add(row.place)
            degrees.setdefault(row.cluster, set()).add(row.degree)
    all_degrees = set[int]().union(*degrees.values())
    equal = set[str]()
    for cluster, cases in musts.items():
        counts = {len(places) for places in cases.values()}
        if len(counts) == 1 and len(all_degrees) > 1 and degrees[cluster] == all_degrees:
            equal.add(cluster)
    return equal


def select(rows: Iterable[Observation], figure: str, arm: str | None = None) -> list[Observation]:
    """The observations of a figure (`must.`: of all points that are `must`), and of one arm."""
    return [
        row
        for row in rows
        if figure in (row.figure, row.figure.partition(".")[0] + ".") and arm in (None, row.arm)
    ]
