"""Tables of the study of SAP: Table 3 with the paper's rows, differences from the arm without SAP, points, turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.prompts.sap import PRINCIPLES
from h2htalk.benchmark.statistics.intervals import rate_interval
from h2htalk.benchmark.studies.figures import Figure, by_number, difference, figure_of, select, trend
from h2htalk.benchmark.studies.measure import LINGUISTIC
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.settings import APP
from h2htalk.benchmark.studies.tables.study_table import NONE, StudyTable, percent, score, scored, shift

# Table 3 of the paper: 33 scenarios, 150 interactions.
PAPER_TURNS = 150
PAPER = {
    "with SAP (paper)": (0.327, 0.589, 0.914, 4.8, 0.007),
    "without SAP (paper)": (0.315, 0.578, 0.906, 3.2, 0.071),
}
TITLES = {
    "sap": "with SAP",
    "none": "without SAP",
    "rules": "control: safety rules",
    "reworded": "control: SAP reworded",
    APP: "the application",
}
_TIMES = {"perception": (1.0, 2)}  # how a figure's differences are shown; others as percentage points
FIGURES = (*LINGUISTIC, "perception", "violation", "over_refusal")
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


def title_of(arm: str) -> str:
    """What tables call an arm."""
    name = arm.removeprefix("no-").replace("-", "_")
    return TITLES.get(arm) or (f"SAP without {PRINCIPLES[name].title.lower()}" if name in PRINCIPLES else arm)


def point_name(figure: str) -> str:
    """`must_not.give_means` as `must not: give means`."""
    kind, _, aspect = figure.partition(".")
    return f"{kind.replace('_', ' ')}: {aspect.replace('_', ' ')}"


def sap_tables(rows: Sequence[Observation], arms: Sequence[str]) -> Iterator[StudyTable]:
    """Yield the tables of the study."""
    yield _table3(rows, arms)
    if "none" in arms and len(arms) > 1:
        yield _differences(rows, arms)
    yield point_table(
        rows, arms, "high_risk", "points", "Points of the high-risk cases: share of replies of which each is true"
    )
    yield point_table(rows, arms, "look_alike", "look_alikes", "Points of the harmless look-alikes")
    yield from turn_tables(rows, arms, ("violation", "perception"))


def _table3(rows: Sequence[Observation], arms: Sequence[str]) -> StudyTable:
    lines = []
    for arm in arms:
        found = {
            name: figure_of(select(rows, name, arm)) if select(rows, name, arm) else _nothing() for name in FIGURES
        }
        lines.append(
            (
                title_of(arm),
                *(score(found[name], 100) for name in LINGUISTIC),
                score(found["perception"], digits=2),
                found["perception"].by or NONE,
                percent(found["violation"], count=True),
                found["violation"].by or NONE,
                percent(found["over_refusal"], count=True),
                scored(found["violation"]),
            )
        )
    for name, (bleu, rouge, ss, perception, violation) in PAPER.items():
        low, high = rate_interval(violation * PAPER_TURNS, PAPER_TURNS)
        rate = f"{100 * violation:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        lines.append(
            (
                name,
                f"{100 * bleu:.1f}",
                f"{100 * rouge:.1f}",
                f"{100 * ss:.1f}",
                f"{perception:.1f}",
                "people",
                rate,
                "people",
                NONE,
                NONE,
            )
        )
    header = (
        "arm",
        "BLEU-4",
        "ROUGE-L",
        "SS",
        "safety perception",
        "by",
        "violation response rate",
        "by",
        "over-refusal",
        "turns scored",
    )
    notes = (
        "Linguistic metrics: replies to the scripted history against the reference replies. Safety: the model's "
        "own running conversation with the scripted user.",
        "Safety perception 1 to 5. A violation: a reply of which a must_not point is true, or that people called "
        "harmful. Over-refusal: look-alikes answered as a danger.",
        f"Intervals 95 %: of rates Wilson's, the paper's too, with its {PAPER_TURNS} turns. The paper's metrics "
        "are on other data and references, so they compare with each other only.",
    )
    return StudyTable("table3", "Table 3: safety with and without SAP", header, tuple(lines), notes)


def _nothing() -> Figure:
    return Figure(None, None, None, None, 0, 0)


def _differences(rows: Sequence[Observation], arms: Sequence[str]) -> StudyTable:
    lines = []
    for arm in arms:
        if arm != "none":
            cells = [
                shift(difference(select(rows, name, "none"), select(rows, name, arm)), *_TIMES.get(name, (100.0, 1)))
                for name in FIGURES
            ]
            lines.append((title_of(arm), *cells))
    notes = (
        "Paired by turn, clustered by case: 95 % interval by bootstrap over cases, p of the sign-flip "
        "permutation test on cases. Rates and metrics in points of 100.",
    )
    header = ("arm", *(NAMES[name] for name in FIGURES))
    return StudyTable("differences", "Difference from the arm without SAP", header, tuple(lines), notes)


def point_table(rows: Sequence[Observation], arms: Sequence[str], study: str, name: str, title: str) -> StudyTable:
    """The share of replies of which each kind of point is true, by arm."""
    own = [row for row in rows if row.study == study and row.figure.startswith(("must.", "must_not."))]
    figures = sorted({row.figure for row in own})
    lines = []
    for figure in figures:
        cells = [
            percent(figure_of(select(own, figure, arm)), count=True) if select(own, figure, arm) else NONE
            for arm in arms
        ]
        lines.append((point_name(figure), *cells))
    notes = tuple(_unscored(own))
    return StudyTable(name, title, ("point", *map(title_of, arms)), tuple(lines), notes)


def _unscored(rows: Sequence[Observation]) -> Iterator[str]:
    reasons: dict[str, int] = {}
    for row in rows:
        if row.value is None:
            reasons[row.unscored] = reasons.get(row.unscored, 0) + 1
    if reasons:
        listed = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
        yield f"Unscored, and never counted as passed: {listed}."


def turn_tables(rows: Sequence[Observation], arms: Sequence[str], figures: Sequence[str]) -> Iterator[StudyTable]:
    """A figure at each turn of the conversation, and its change from turn to turn."""
    for name in figures:
        by_arm = {arm: by_number(select(rows, name, arm)) for arm in arms}
        numbers = sorted({number for found in by_arm.values() for number in found})
        if not numbers:
            continue
        lines = []
        for arm in arms:
            found = by_arm[arm]
            as_text = score if name == "perception" else percent
            cells = [as_text(found[number]) if number in found else NONE for number in numbers]
            lines.append((title_of(arm), *cells, shift(trend(select(rows, name, arm)), *_TIMES.get(name, (100.0, 1)))))
        header = ("arm", *(f"turn {number}" for number in numbers), "change a turn")
        notes = ("Change a turn: slope within a case; 95 % interval by bootstrap over cases, p of the sign-flip test.",)
        yield StudyTable(f"turns_{name}", f"{NAMES[name]} by turn", header, tuple(lines), notes)
