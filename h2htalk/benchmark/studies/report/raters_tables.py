"""Who answered, as the tables of a study say it: a note below each table, and tables over all figures and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from h2htalk.benchmark.observations import Observation, is_answered
from h2htalk.benchmark.raters import PlantedCheck, describe_check, describe_rule, raters_of
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS
from h2htalk.benchmark.studies.report.table_words import worded_table
from h2htalk.data.languages import find_language
from h2htalk.text.tables import NONE, Table

_ANSWERED = "Replies of models answered by: "


def answered_by(rows: Sequence[Observation]) -> list[str]:
    """A note of who answered, with shares; trivial answers are left out, whose raters the cards name."""
    once = {id(row): row for row in _answered_rows(rows)}  # a row may be in two groups
    raters = Counter(row.by or "nobody" for row in once.values())
    total = raters.total()
    if not total:
        return []
    shares = [f"{name} {100 * number / total:.1f} %" for name, number in sorted(raters.items())]
    return [f"{_ANSWERED}{', '.join(shares)} (n {total:,})."]


def _answered_rows(rows: Sequence[Observation]) -> list[Observation]:
    """Return the values of models' replies that somebody has to answer."""
    return [row for row in rows if is_answered(row.figure) and row.arm not in TRIVIAL_ARMS]


def judge_note(judge: str, planted: Sequence[PlantedCheck] | None) -> str:
    """The judge of a study, and how it was checked."""
    return f"Judge {judge}: {describe_check(planted)}."


def planted_table(
    planted: Sequence[PlantedCheck] | None, arms: Mapping[str, str]
) -> Iterator[Table]:
    """Yield how the judge did on planted replies; `arms`: their titles by name."""
    lines = []
    for check in planted or ():
        language = find_language(check.language).name
        titles = ", ".join(arms.get(arm, arm) for arm in check.arms)
        bad = f"{check.bad_wrong} of {check.bad - check.bad_unread}"
        good = f"{check.good_wrong} of {check.good - check.good_unread}"
        counts = "count" if check.passed else "do not count"
        places = NONE if check.at_turns is None else f"{check.at_turns} of {check.good + check.bad}"
        lines.append((language, titles, places, bad, good, check.unread, check.unanswered, counts))
    if lines:
        yield worded_table("planted", lines, notes=[describe_rule()])


def with_judge(table: Table, judge: str, planted: Sequence[PlantedCheck] | None) -> Table:
    """Name the judge, and how it was checked, in a table that says who answered."""
    names_raters = any(note.startswith(_ANSWERED) for note in table.notes)
    if not names_raters or not judge:
        return table
    return replace(table, notes=(*table.notes, judge_note(judge, planted)))


def raters_table(
    rows: Sequence[Observation],
    judge: str,
    planted: Sequence[PlantedCheck] | None,
    name_of: Callable[[str], str],
) -> Iterator[Table]:
    """Yield who answered each figure in the study's own arms; `name_of`: what tables call a figure."""
    rows_by_figure: dict[str, list[Observation]] = {}
    for row in _answered_rows(rows):
        rows_by_figure.setdefault(row.figure, []).append(row)
    lines = []
    for figure, rows_of_figure in sorted(rows_by_figure.items()):
        raters = raters_of(rows_of_figure, judge, planted)
        line = (
            name_of(figure),
            raters.total,
            raters.by_code,
            raters.judged,
            raters.by_people,
            raters.total - raters.answered,
        )
        lines.append(line)
    note = judge_note(judge, planted) if judge else "The study has no judge."
    if lines:
        yield worded_table("answered_by", lines, judge=note)
