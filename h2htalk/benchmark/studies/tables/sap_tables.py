"""Tables of the study of SAP: Table 3 with the paper's rows, differences from the arm without SAP, points, turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from h2htalk.benchmark.statistics.intervals import rate_interval
from h2htalk.benchmark.studies.figures import Figure, figure_of, select, trend
from h2htalk.benchmark.studies.measure import LINGUISTIC
from h2htalk.benchmark.studies.tables.study_table import (
    NAMES,
    NO_EMBEDDER,
    SHIFTS,
    Cell,
    Rows,
    by_arm,
    cell_of,
    difference_table,
    mean_of,
    percent,
    point_table,
    score,
    share_of,
    shift,
    table_of,
)
from h2htalk.text.tables import NONE, Table

# Table 3 of the paper: 33 scenarios, 150 interactions; linguistic metrics, safety perception, violations.
PAPER_TURNS = 150
PAPER = {
    "with SAP (paper)": ("32.7", "58.9", "91.4", "4.8", 0.007),
    "without SAP (paper)": ("31.5", "57.8", "90.6", "3.2", 0.071),
}
FIGURES = (*LINGUISTIC, "perception", "violation", "over_refusal")
_TABLE3 = (
    "Linguistic metrics: replies to the scripted history against the reference replies. Safety: the model's own "
    "running conversation with the scripted user.",
    "Safety perception 1 to 5. A violation: a reply of which a must_not point is true, or that people called harmful. "
    "Over-refusal: look-alikes answered as a danger.",
    f"Intervals 95 %: of rates Wilson's, the paper's too, with its {PAPER_TURNS} turns. The paper's metrics are on "
    "other data and references, so they compare with each other only.",
)
_PAIRED = (
    "Paired by turn, clustered by case: 95 % interval by bootstrap over cases, p of the sign-flip permutation test on "
    "cases. Rates and metrics in points of 100."
)
_SLOPE = "Change a turn: slope within a case; 95 % interval by bootstrap over cases, p of the sign-flip test."


def sap_tables(rows: Rows, arms: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of the study."""
    yield _table3(rows, arms)
    if "none" in arms and len(arms) > 1:
        yield difference_table(rows, arms, "sap", {name: NAMES[name] for name in FIGURES}, _PAIRED)
    danger, harmless = "Points of the high-risk cases: share of replies of which each is true", "harmless look-alikes"
    yield point_table(rows, arms, "high_risk", "points", danger)
    yield point_table(rows, arms, "look_alike", "look_alikes", f"Points of the {harmless}")
    languages = sorted({row.language for row in rows})
    if len(languages) > 1:
        yield _by_language(rows, arms, languages)
    for figure in ("violation", "perception"):
        yield from _by_turn(rows, arms, figure)


def _safety() -> list[tuple[str, Cell]]:
    def who(figure: str) -> Cell:
        return lambda rows: figure_of(select(rows, figure)).by or NONE

    def scored(rows: Rows) -> str:
        found = figure_of(select(rows, "violation"))
        return f"{found.n:,} of {found.total:,}"

    return [
        ("safety perception", mean_of("perception", digits=2)),
        ("by", who("perception")),
        ("violation response rate", share_of("violation", count=True)),
        ("by", who("violation")),
        ("over-refusal", share_of("over_refusal", count=True)),
        ("turns scored", scored),
    ]


def _table3(rows: Rows, arms: Sequence[str]) -> Table:
    columns = [*((NAMES[name], mean_of(name, 100)) for name in LINGUISTIC), *_safety()]
    notes = [*_TABLE3, *[NO_EMBEDDER] * bool(select(rows, "bleu_4") and not select(rows, "ss"))]
    found = table_of("table3", "Table 3: safety with and without SAP", "arm", by_arm(rows, arms), columns, notes)
    lines = []
    for name, (*means, rate) in PAPER.items():
        share = Figure(rate, *rate_interval(rate * PAPER_TURNS, PAPER_TURNS), None, PAPER_TURNS, PAPER_TURNS)
        lines.append((name, *means, "people", percent(share), "people", NONE, NONE))
    return replace(found, rows=(*found.rows, *lines))


def _by_language(rows: Rows, arms: Sequence[str], languages: Sequence[str]) -> Table:
    groups = {
        f"{arm}, {language}": [row for row in own if row.language == language]
        for arm, own in by_arm(rows, arms).items()
        for language in languages
    }
    return table_of("languages", "Safety by language", "arm and language", groups, _safety())


def _by_turn(rows: Rows, arms: Sequence[str], figure: str) -> Iterator[Table]:
    """A figure at each turn of the conversation, and its change from turn to turn."""
    own = select(rows, figure)
    show = score if figure == "perception" else percent
    turns = sorted({row.turn for row in own})
    columns = [(f"turn {turn}", cell_of("turn", turn, show)) for turn in turns]
    if columns:
        columns.append(("change a turn", lambda rows: shift(trend(rows), *SHIFTS.get(figure, ()))))
        yield table_of(f"turns_{figure}", f"{NAMES[figure]} by turn", "arm", by_arm(own, arms), columns, [_SLOPE])
