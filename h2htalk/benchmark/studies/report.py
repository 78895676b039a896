"""What a study shows: tables for the terminal and as files, figures, and a page with the replies to read first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.answering import latency
from h2htalk.benchmark.studies.charts import Series, line_chart, radar
from h2htalk.benchmark.studies.observations import NOT_ASKED, NUMBER, SCALES, Observation, by_number, select
from h2htalk.benchmark.studies.point_answers import AnsweredReply
from h2htalk.benchmark.studies.study_folder import Study
from h2htalk.benchmark.studies.study_tables import (
    NAMES,
    calibration_table,
    instruction_tables,
    memory_tables,
    radar_axes,
    sap_tables,
    title_of,
)
from h2htalk.chat.model_identity import model_name
from h2htalk.data.files import write_sealed, write_text
from h2htalk.data.responses import Response
from h2htalk.data.splits import Split
from h2htalk.errors import counted
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A scored study: its observations, and every reply of the running conversations with what is known of it.

    `failed`: calls without an answer, of the model and the judge; the same command repeats those. `incomplete`: there
    are such calls, or replies of the judge that could not be read.
    """

    study: Study
    observations: tuple[Observation, ...]
    replies: tuple[AnsweredReply, ...]
    failed: int
    judge: str

    @property
    def incomplete(self) -> bool:
        return self.failed > 0 or any(one.unread for one in self.replies)


_PAGE = files("h2htalk.benchmark.studies") / "page"
TITLES = {
    "sap": "Safety with and without SAP",
    "instructions": "Instruction following",
    "memory": "Memory over several sessions",
}
_TABLES = {"sap": sap_tables, "instructions": instruction_tables, "memory": memory_tables}
SHOWN_REPLIES = 60
LONGEST_SHOWN = 4_000  # characters of a reply


def study_tables(result: StudyResult) -> list[Table]:
    """The tables of a study, the most important first."""
    spec = result.study.spec
    tables = list(_TABLES[spec.study](result.observations, spec.arms))
    calibration = calibration_table(result.replies, spec.arms) if result.judge else None
    return [*tables[:2], *([calibration] if calibration else []), *tables[2:], _reply_table(result.study)]


def _reply_table(study: Study) -> Table:
    """The replies to all calls of each arm: those that were refused or cut, and how long a call took."""
    rows, stored = [], study.replies()
    for arm in study.spec.arms:
        own = [one for key, one in stored.items() if key.startswith(f"{arm}/") and isinstance(one, Response)]
        ends = [one.finish_reason for one in own]
        times = latency(own) or (None, None)
        rows.append((title_of(arm), len(own), ends.count("refusal"), ends.count("length"), *times))
    header = ("arm", "replies", "refused", "cut", "median s", "95th percentile s")
    return Table("Replies", header, rows, ("cut: at their limit of tokens; s: seconds of a live call",), "replies")


def study_charts(result: StudyResult) -> dict[str, str]:
    """SVG by the name of the table that it belongs to."""
    spec, rows = result.study.spec, result.observations
    if spec.study == "instructions":
        return {
            "kinds": radar(
                [(model_name(spec.ask.model), radar_axes(rows))], "Points met by kind of case (Fig. 7), percent"
            )
        }
    charts = {}
    for name in ("violation", "perception") if spec.study == "sap" else ():
        series = [Series(title_of(arm), dict(_points(select(rows, name, arm)))) for arm in spec.arms]
        least, most = SCALES.get(name, (0.0, 1.0))
        label = NAMES[name] + ("" if name in SCALES else ", percent")
        chart = line_chart(series, "turn", label, least, most, 1.0 if name in SCALES else 100.0)
        if any(one.points for one in series):
            charts[f"turns_{name}"] = chart
    return charts


def _points(rows: Sequence[Observation]) -> Iterator[tuple[int, tuple[float, float, float]]]:
    for number, found in by_number(rows).items():
        if found.value is not None:
            low = found.value if found.low is None else found.low
            yield number, (found.value, low, found.value if found.high is None else found.high)


def write_report(result: StudyResult, observations: str) -> None:
    """Write tables, figures, page and, last, the sealed summary; `observations` is the SHA-256 of their file."""
    folder, tables, charts = result.study.path, study_tables(result), study_charts(result)
    for table in tables:
        write_text(folder / "tables" / f"{table.name}.csv", table.to_csv())
        write_text(folder / "tables" / f"{table.name}.md", table.to_markdown())
    for name, chart in charts.items():
        write_text(folder / "figures" / f"{name}.svg", chart)
    write_text(folder / "report.html", render_page(_PAGE, _view(result, tables, charts)))
    write_sealed(
        folder / "summary.json",
        {
            "study": result.study.spec.study,
            "signature": result.study.signature.to_dict(),
            "judge": result.judge,
            "failed": result.failed,
            "observations_sha256": observations,
            "tables": {table.name: [table.header, *table.rows] for table in tables},
        },
    )


def study_text(result: StudyResult) -> str:
    """The tables for the terminal."""
    return "\n\n".join([*(table.to_terminal() for table in study_tables(result)), *warnings(result)])


def warnings(result: StudyResult) -> list[str]:
    """What a reader of the tables must know first."""
    found = []
    if result.failed:
        found.append(f"incomplete: {counted(result.failed, 'call')} without an answer; the same command repeats them")
        lost = [one.reply for one in result.replies if one.reply.message]
        found += [f"{reply.failure}: {reply.message}" for reply in {one.failure: one for one in lost[::-1]}.values()]
    open_ = sum(row.unscored == NOT_ASKED for row in result.observations)
    numbers = sum(row.by == NUMBER and row.figure.startswith("must_not.") for row in result.observations)
    if open_ and numbers:
        found.append(
            f"{counted(numbers, 'reply', 'replies')} with a number to dial that is no known help line; a rate leaves "
            "them out where nobody was asked about the others"
        )
    unread = [one.unread for one in result.replies if one.unread]
    first = {one.partition(":")[0]: one for one in reversed(unread)}
    if unread:
        number = counted(len(unread), "reply", "replies")
        found.append(f"{number} of the judge could not be read; {'; '.join(first.values())}")
    if open_ and not result.judge:
        found.append(
            f"{counted(open_, 'value')} unscored: code cannot answer those points; name a --judge, or ask people "
            "(h2htalk study open-round)"
        )
    return found


def split_name(split: Split) -> str:
    """The name and version of the cases, as pages show it."""
    return f"{split.name} {split.version}, {counted(len(split.cases), 'case')}"


def _view(result: StudyResult, tables: Sequence[Table], charts: Mapping[str, str]) -> dict[str, Any]:
    study = result.study
    chosen = first_to_read(result.replies)[:SHOWN_REPLIES]
    return {
        "title": TITLES[study.spec.study],
        "model": printable(model_name(study.spec.ask.model)),
        "split": printable(split_name(study.split)),
        "judge": printable(result.judge),
        "tiles": list(_tiles(result)),
        "warnings": list(map(printable, warnings(result))),
        "tables": tables,
        # Their texts are escaped where they are drawn.
        "charts": {name: Markup(chart) for name, chart in charts.items()},
        "replies": [reply_view(one, study.spec.study) for one in chosen],
        "of": f"{len(result.replies):,}",
    }


def _tiles(result: StudyResult) -> Iterator[dict[str, str]]:
    arms = ", ".join(title_of(arm, result.study.spec.study) for arm in result.study.spec.arms)
    yield {"label": "Cases", "value": f"{len(result.study.cases):,}", "note": arms}
    yield {"label": "Replies", "value": f"{len(result.replies):,}", "note": "of the running conversations"}
    open_ = sum(row.value is None for row in result.observations)
    yield {"label": "Unscored", "value": f"{open_:,}", "note": f"of {len(result.observations):,} values"}


def first_to_read(replies: Sequence[AnsweredReply]) -> list[AnsweredReply]:
    """The replies with something wrong: violations first, then by how many must points they miss."""
    wrong = [one for one in replies if _wrong(one) != (0, 0)]
    return sorted(wrong, key=lambda one: (-_wrong(one)[0], -_wrong(one)[1], one.reply.key))


def _wrong(one: AnsweredReply) -> tuple[int, int]:
    """The weight of must_not points that are true, and of must points that are not."""
    done = sum(a.point.severity for a in one.points if a.point.kind == "must_not" and a.true)
    missed = sum(a.point.severity for a in one.points if a.point.kind == "must" and a.true is False)
    return done + 3 * bool(one.violation), missed


def reply_view(one: AnsweredReply, study: str) -> dict[str, Any]:
    """A reply as a page or a file of transcripts shows it."""
    done, missed = _wrong(one)
    notes = [f"does what it must not (weight {done})"] * bool(done) + [f"misses points (weight {missed})"] * bool(
        missed
    )
    return {
        "arm": title_of(one.reply.arm, study),
        "case": printable(one.reply.case),
        "place": one.reply.place,
        "note": "; ".join(notes),
        "said": [(turn.role, _shown(turn.content)) for turn in one.reply.said],
        "text": _shown(one.reply.text or "") or "(empty)",
        "points": [printable(text) for text in point_lines(one)],
    }


def _shown(text: str) -> str:
    left = len(text) - LONGEST_SHOWN
    return printable_lines(text[:LONGEST_SHOWN]) + (f" [and {counted(left, 'character')} more]" if left > 0 else "")


def point_lines(one: AnsweredReply) -> Iterator[str]:
    """Each point with its answer, who gave it, and the evidence."""
    for answer in one.points:
        said = answer.unscored if answer.true is None else ("true" if answer.true else "false")
        who = f" ({answer.by}{': ' + answer.evidence if answer.evidence else ''})" if answer.by else ""
        mark = "BROKEN: " if answer.good is False else ""
        yield f"{mark}{answer.point.kind}, severity {answer.point.severity}: {answer.point.text} – {said}{who}"
    if one.perception is not None:
        yield f"safety perception {one.perception:g} ({one.perception_by})"
