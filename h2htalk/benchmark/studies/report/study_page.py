"""Write what a study shows: observations, tables, charts, a page with the replies to read first, the sealed summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.observations import (
    SCALES,
    TIED,
    Observation,
    by_turn,
    select,
    tied_in,
    write_observations,
)
from h2htalk.benchmark.report.study_charts import line_chart, radar
from h2htalk.benchmark.studies.points.point_answers import AnsweredReply
from h2htalk.benchmark.studies.report.instruction_tables import radar_axes
from h2htalk.benchmark.studies.report.raters_tables import answered_by, judge_note
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.report.table_words import NAMES, TITLES, WORDS
from h2htalk.data.files import write_output, write_text
from h2htalk.data.model_names import text_without_paths
from h2htalk.errors import ConfigError, counted, shorten
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page

_PAGE = files("h2htalk.benchmark.studies") / "page"
SHOWN_REPLIES = 60  # replies of a page
LONGEST_SHOWN = 4_000  # characters of a reply


def write_report(result: StudyResult) -> None:
    """Write observations, tables, charts, page and, last, the sealed summary."""
    study = result.study
    view = study_view(result)
    scores = study.folder.scores(study.signature)
    tables = view["tables"]
    write_observations(scores, result.observations)
    for table in tables:
        write_text(study.folder.tables / f"{table.name}.csv", table.to_csv())
        write_text(study.folder.tables / f"{table.name}.md", table.to_markdown())
    for name, chart in view["charts"].items():
        write_text(study.path / "figures" / f"{name}.svg", chart)
    write_text(study.folder.page, render_page(_PAGE, view))
    summary = {
        "study": study.spec.study,
        "signature": study.signature.to_dict(),
        "judge": result.judge,
        "failed": result.failed,
        "tables": {table.name: [table.header, *table.rows] for table in tables},
    }
    study.folder.write_summary(summary, scores)


def study_text(result: StudyResult) -> str:
    """Return the tables and warnings for the terminal."""
    tables = [table.to_terminal() for table in result.tables()]
    return "\n\n".join([*tables, *result.warnings()])


def write_radar(results: Sequence[StudyResult], out: Path) -> str:
    """Write Fig. 7 for several models, one radar of their studies, as SVG; return what was written.

    Raises ConfigError unless they are studies of instructions under one protocol and judge.
    """
    first = results[0]
    for result in results:
        differing = result.study.signature.differing(first.study.signature)
        if result.judge != first.judge:
            differing.append("judge")
        if differing or result.study.spec.study != "instructions":
            what = (
                f"{', '.join(differing) or 'their studies'} differ, or they are not of instructions"
            )
            raise ConfigError(
                f"{result.study.path} and {first.study.path} cannot be compared in a radar: {what}"
            )
    chart = _radar(results)
    write_output(out, chart, chart.partition(" viewBox")[0])
    lines = [f"{out}: {', '.join(result.model for result in results)}"]
    for result in results:
        if result.judge:
            lines.append(f"{result.model}: {judge_note(result.judge, result.planted)}")
    return "\n".join(lines)


def _radar(results: Sequence[StudyResult]) -> str:
    """Return Fig. 7 of studies, with who answered."""
    points: list[Observation] = []
    series = []
    for result in results:
        points += select(result.observations, "points")
        name = result.model
        if result.is_doubted:
            name += f" ({WORDS['doubted']})"
        series.append((name, radar_axes(result.observations)))
    return radar(series, "".join(answered_by(points)))


def study_view(result: StudyResult) -> dict[str, Any]:
    """Return what the page of a study shows: its tables, and its charts by the name of the table beside them."""
    kind = result.study.spec.study
    # Their texts are escaped where they are drawn.
    charts = {name: Markup(chart) for name, chart in _charts(result)}
    return {
        "title": TITLES[kind],
        "model": printable(result.model),
        "split": printable(result.cases),
        "judge": printable(result.judge),
        "tiles": list(_tiles(result)),
        "warnings": [printable(text_without_paths(warning)) for warning in result.warnings()],
        "tables": result.tables(),
        "charts": charts,
        "replies": replies_to_read(result, SHOWN_REPLIES),
        "of": f"{len(result.replies):,}",
    }


def _charts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield the charts of a study: Fig. 7 of instructions; violations and perception by turn of safety."""
    rows = result.observations
    spec = result.study.spec
    if spec.study == "instructions":
        yield "kinds", _radar([result])
    if spec.study != "sap":
        return
    for figure in ("violation", "perception"):
        titles = result.titles.items()
        series = {title: by_turn(select(rows, figure, arm)) for arm, title in titles}
        rows_of_figure = select(rows, figure)
        rows_of_arms = [row for row in rows_of_figure if row.arm in spec.arms]
        if all(row.value is None for row in rows_of_arms):
            continue
        note = "".join(answered_by(rows_of_figure))
        ties = tied_in(rows_of_arms)
        if ties:
            note += f" Left out: {counted(ties, 'tie')} of people."
        yield f"turns_{figure}", line_chart(series, NAMES[figure], SCALES.get(figure), note)


def _tiles(result: StudyResult) -> Iterator[dict[str, str]]:
    """Yield the numbers at the head of the page."""
    rows = result.observations
    read_rows = [row for row in rows if row.by == "people" or row.unscored == TIED]
    read_replies = {(row.arm, row.item, row.turn) for row in read_rows}
    readers = "replies"
    if not read_replies:
        readers = "nobody: a judge alone" if result.judge else "nobody: code alone"
    yield _tile("Cases", len(result.study.cases), ", ".join(result.titles.values()))
    yield _tile("Replies", len(result.replies), "of the running conversations")
    yield _tile("Read by people", len(read_replies), readers)
    unscored = sum(row.value is None for row in rows)
    yield _tile("Unscored", unscored, f"of {len(rows):,} values")


def _tile(label: str, number: int, note: str) -> dict[str, str]:
    return {"label": label, "value": f"{number:,}", "note": note}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyToRead:
    """A reply with something wrong, as a page shows it."""

    arm: str
    case: str
    turn_id: str  # such as `s2.t1`
    note: str
    conversation: Sequence[tuple[str, str]]  # the role and the text of each turn before it
    text: str
    points: Sequence[str]


def replies_to_read(result: StudyResult, most: int, public: bool = False) -> list[ReplyToRead]:
    """Return the replies with something wrong, the worst first; `public`: none that may name a method."""
    hidden = _conversations_with_methods(result.replies) if public else set()
    ranked = []
    for answered in result.replies:
        reply = answered.reply
        if (reply.arm, reply.case) in hidden:
            continue
        wrong = 3 if answered.violation else 0
        missed = 0
        for answer in answered.points:
            point = answer.point
            if point.kind == "must_not" and answer.true:
                wrong += point.severity
            elif point.kind == "must" and answer.true is False:
                missed += point.severity
        if wrong or missed:
            rank = (-wrong, -missed, reply.key)
            ranked.append((rank, answered))
    ranked.sort(key=lambda ranked_reply: ranked_reply[0])
    return [
        _reply_to_read(result, answered, wrong=-rank[0], missed=-rank[1])
        for rank, answered in ranked[:most]
    ]


def _conversations_with_methods(replies: Sequence[AnsweredReply]) -> set[tuple[str, str]]:
    """Return arm and case of conversations in which a reply may name a method: later replies quote it."""
    conversations = set()
    for answered in replies:
        for answer in answered.points:
            if answer.point.aspect == "give_means" and answer.true is not False:
                conversations.add((answered.reply.arm, answered.reply.case))
    return conversations


def _reply_to_read(
    result: StudyResult, answered: AnsweredReply, wrong: int, missed: int
) -> ReplyToRead:
    """Return a reply as a page shows it; `wrong` and `missed`: the weights of its points."""
    reply = answered.reply
    notes = []
    if wrong:
        notes.append(f"does what it must not (weight {wrong})")
    if missed:
        notes.append(f"misses points (weight {missed})")
    conversation = [(turn.role, _shortened(turn.content)) for turn in reply.said]
    points = [printable(line) for line in answered.lines()]
    return ReplyToRead(
        arm=result.titles[reply.arm],
        case=printable(reply.case),
        turn_id=reply.place,
        note="; ".join(notes),
        conversation=conversation,
        text=_shortened(reply.text or "") or "(empty)",
        points=points,
    )


def _shortened(text: str) -> str:
    return printable_lines(shorten(text, LONGEST_SHOWN))
