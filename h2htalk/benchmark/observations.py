"""One row for each value that a study or an evaluation measured, and the figures that are made of such rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean

from h2htalk.benchmark import statistics
from h2htalk.benchmark.statistics import ClusteredResult, Mean, design_effect
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.errors import DataError
from h2htalk.text.tables import NONE

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


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate or a mean over some observations."""

    value: float | None  # None where nothing is scored
    low: float | None  # 95 %, of a rate Wilson's; None without an interval
    high: float | None
    hits: int | None  # of a rate, how many are 1; None for others
    n: int  # how many are scored, of `total`
    total: int
    by: str = ""  # who answered, with numbers: `judge 140, people 10`
    tied: int = 0  # of a rate or a share, values about which people are tied; they are not scored

    @property
    def tie_range(self) -> tuple[float, float] | None:
        """The value with all tied ones at 0, and at 1; None where nobody is tied."""
        if not self.tied:
            return None
        total = self.n + self.tied
        mass = (self.value or 0.0) * self.n
        return mass / total, (mass + self.tied) / total


def figure_of(rows: Sequence[Observation]) -> Figure:
    """Sum up observations of one figure."""
    known = scored(rows)
    values = [row.value or 0.0 for row in known]
    raters = sorted(Counter(row.by for row in known).items())
    by = ", ".join(f"{name} {number:,}" if len(raters) > 1 else name for name, number in raters)
    effect = (
        effect_of(known) if known and known[0].kind in LOGGED else 1.0
    )  # turns of a script are asked on purpose
    tied = tied_in(rows)
    if not values or is_rate(rows[0].figure):
        return replace(rate_of(values, len(rows), by, effect), tied=tied)
    least, most = SCALES.get(rows[0].figure, (0.0, 1.0))
    low = high = None
    scaled = statistics.mean_of([(one - least) / (most - least) for one in values])
    if scaled is not None and effect > 1:
        chats = len({row.cluster for row in known})
        scaled = Mean(scaled.value, effect * scaled.variance, chats - 1, round(scaled.n / effect))
    if scaled is not None and scaled.df > 0 and rows[0].figure not in COUNTS:
        low, high = (least + end * (most - least) for end in scaled.interval())
    return Figure(fmean(values), low, high, None, len(values), len(rows), by, tied)


def tied_in(rows: Sequence[Observation]) -> int:
    """How many values of a rate or a share are missing because people are tied; a rating has no ties."""
    return sum(row.unscored == TIED for row in rows if row.figure not in SCALES)


def effect_of(known: Sequence[Observation]) -> float:
    """The `design_effect` of observations by cluster.

    Replies of one chat that was had are alike: where fewer than six chats hold another value than the usual one, how
    alike cannot be known, and a chat counts for at most one.
    """
    values = [row.value or 0.0 for row in known]
    clusters = [row.cluster for row in known]
    effect = design_effect(values, clusters)
    usual = Counter(values).most_common(1)[0][0]
    odd = {row.cluster for row in known if row.value != usual}
    few = known[0].kind in LOGGED and len(odd) < LEAST_CLUSTERS
    return max(effect, len(values) / len({*clusters})) if few else effect


def rate_of(values: Sequence[float], total: int, by: str = "", effect: float = 1.0) -> Figure:
    """A rate of 0 and 1, with Wilson's interval of n divided by a design effect; without values an empty figure."""
    if not values:
        return Figure(None, None, None, None, 0, total)
    hits = sum(values)
    n = len(values)
    return Figure(
        hits / n, *statistics.rate_interval(hits / effect, n / effect), int(hits), n, total, by
    )


def trend(rows: Sequence[Observation], by: str = "turn") -> ClusteredResult | None:
    """The change of a figure from turn to turn within a case (or by another number, within a cluster)."""
    own = scored(rows)
    x = [float(getattr(row, by)) for row in own]
    return statistics.clustered_slope(
        [row.cluster for row in own], x, [row.value or 0.0 for row in own]
    )


def by_turn(rows: Sequence[Observation]) -> dict[int, Figure]:
    """The figure at each turn."""
    return {
        turn: figure_of([row for row in rows if row.turn == turn])
        for turn in sorted({row.turn for row in rows})
    }


def blindness(rows: Sequence[Observation]) -> Figure:
    """Of the needs that are met where they are commanded, the share that is missed where they are only hinted at.

    `rows` are of the figure `need_met`; each cluster is a family of cases in several degrees.
    """
    families: dict[str, dict[int, float | None]] = {}
    tied = set[tuple[str, int]]()
    for row in rows:  # of several turns that ask for it, all have to meet it
        own = families.setdefault(row.cluster, {})
        both = (own.get(row.degree, 1.0), row.value)
        own[row.degree] = 0.0 if 0.0 in both else None if None in both else 1.0
        if row.unscored == TIED:
            tied.add((row.cluster, row.degree))
    missed = list[float]()
    ties = 0
    for family, met in families.items():
        command = min(met)
        hint = max(met)
        if command < HINT <= hint and met[command] == 1:
            missing = met[hint]
            if missing is not None:
                missed.append(1 - missing)
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
    asked = set[int]().union(*degrees.values())
    equal = set[str]()
    for cluster, cases in musts.items():
        counts = {len(places) for places in cases.values()}
        if len(counts) == 1 and len(asked) > 1 and degrees[cluster] == asked:
            equal.add(cluster)
    return equal


def select(rows: Iterable[Observation], figure: str, arm: str | None = None) -> list[Observation]:
    """The observations of a figure (`must.`: of all points that are `must`), and of one arm."""
    return [
        row
        for row in rows
        if figure in (row.figure, row.figure.partition(".")[0] + ".") and arm in (None, row.arm)
    ]


def score(figure: Figure, times: float = 1.0, digits: int = 1, unit: str = "") -> str:
    """`32.7 (30.1 to 35.2)`, with ties `32.7 (30.1 to 35.2), 4 tied (30.2 to 33.9)`."""
    value = _value_text(figure, times, digits, unit)
    return value + _tie_text(figure, times, digits)


def _value_text(figure: Figure, times: float, digits: int, unit: str) -> str:
    if figure.value is None:
        return NONE
    return f"{times * figure.value:.{digits}f}{unit}{_ends(figure, times, digits)}"


def _tie_text(figure: Figure, times: float, digits: int) -> str:
    """`, 16 tied (0.0 to 9.1)`: the figure with all of them at 0, and at 1."""
    if figure.tie_range is None:
        return ""
    low, high = figure.tie_range
    return f", {figure.tied:,} tied ({times * low:.{digits}f} to {times * high:.{digits}f})"


def percent(figure: Figure, count: bool = False) -> str:
    """`6.7 % (3.7 to 11.8)`; with `count` also `10 of 150`; then ties, as `score`."""
    hits = ""
    if count and figure.hits is not None and figure.by != BUNDLED:
        hits = f", {figure.hits:,} of {figure.n:,}"
    return _value_text(figure, 100.0, 1, " %") + hits + _tie_text(figure, 100.0, 1)


def p_text(p: float) -> str:
    """A p value with three decimals."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


LEAST_CLUSTERS = 6  # of an interval: with fewer, no sign-flip test reaches p .05


def shift(
    result: ClusteredResult | None, p: float = 1.0, times: float = 100.0, digits: int = 1
) -> str:
    """`-5.9 (-9.6 to -2.4), p .001`, with an adjusted p; no interval of few clusters or equal differences."""
    if result is None:
        return NONE
    low = result.low
    high = result.high
    known = result.clusters >= LEAST_CLUSTERS and low is not None and high is not None
    ends = _ends(result, times, digits, "+") if known else ""
    return f"{times * result.value:+.{digits}f}{ends}, p {p_text(p)}"


def _ends(one: Figure | ClusteredResult, times: float, digits: int, sign: str = "") -> str:
    """The interval; trivial answers are no sample of a model's replies, and have none."""
    if one.low is None or one.high is None or getattr(one, "by", "") == BUNDLED:
        return ""
    return f" ({times * one.low:{sign}.{digits}f} to {times * one.high:{sign}.{digits}f})"
