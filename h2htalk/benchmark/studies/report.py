"""What a study shows: tables for the terminal and as files, figures, and a page with the replies to read first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.answering import latency
from h2htalk.benchmark.observations import (
    NOT_ASKED,
    NUMBER,
    SCALES,
    Figure,
    Observation,
    by_turn,
    select,
    write_observations,
)
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
from h2htalk.data.files import write_output, write_text
from h2htalk.data.responses import Response
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

_PAGE = files("h2htalk.benchmark.studies") / "page"
TITLES = {
    "sap": "Safety with and without SAP",
    "instructions": "Instruction following",
    "memory": "Memory over several sessions",
}
_TABLES = {"sap": sap_tables, "instructions": instruction_tables, "memory": memory_tables}
_RADAR = "Points met by kind of case (Fig. 7), percent"
SHOWN_REPLIES = 60
LONGEST_SHOWN = 4_000  # characters of a reply


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

    @property
    def model(self) -> str:
        """The model's name, without a path or an address."""
        return model_name(self.study.spec.ask.model)

    @property
    def cases(self) -> str:
        """The name and version of the cases, as pages show it."""
        split = self.study.split
        return f"{split.name} {split.version}, {counted(len(split.cases), 'case')}"

    def tables(self) -> list[Table]:
        """The tables, the most important first."""
        spec = self.study.spec
        tables = list(_TABLES[spec.study](self.observations, spec.arms))
        calibration = calibration_table(self.replies, spec.arms) if self.judge else ()
        return [*tables[:2], *calibration, *tables[2:], _reply_table(self.study)]

    def warnings(self) -> list[str]:
        """What a reader of the tables must know first."""
        return list(_warnings(self))


def _reply_table(study: Study) -> Table:
    """The replies to all calls of each arm: those that were refused or cut, and how long a call took."""
    rows = []
    for arm in study.spec.arms:
        own = [one for one in study.answers_of(arm) if isinstance(one, Response)]
        ends = [one.finish_reason for one in own]
        times = latency(own) or (None, None)
        rows.append((title_of(arm), len(own), ends.count("refusal"), ends.count("length"), *times))
    header = ("arm", "replies", "refused", "cut", "median s", "95th percentile s")
    return Table("Replies by arm", header, rows, ("cut: at the limit of tokens; s: seconds of a live call",), "replies")


def _charts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """The figures of a study by name, as SVG."""
    spec, rows = result.study.spec, result.observations
    if spec.study == "instructions":
        yield "kinds", radar([(result.model, radar_axes(rows))], _RADAR)
    for name in ("violation", "perception") if spec.study == "sap" else ():
        series = {title_of(arm): by_turn(select(rows, name, arm)) for arm in spec.arms}
        least, most = SCALES.get(name, (0.0, 1.0))
        label = NAMES[name] + ("" if name in SCALES else ", percent")
        if any(one.value is not None for points in series.values() for one in points.values()):
            chart = line_chart(series, "turn", label, least, most, 1.0 if name in SCALES else 100.0)
            yield f"turns_{name}", chart


def write_radar(found: Sequence[StudyResult], out: Path) -> str:
    """Write Fig. 7 for several models, one radar of their studies, as SVG; return what was written."""
    first = found[0]
    for one in found:
        path, pair = one.study.path, f"{one.study.path} and {first.study.path}"
        if one.study.spec.study != "instructions":
            raise ConfigError(f"{path}: is a study of {one.study.spec.study}; a radar is of instructions")
        if keys := one.study.signature.differing(first.study.signature):
            raise ConfigError(f"{pair} cannot be compared: {', '.join(keys)} differ")
        if one.judge != first.judge:
            raise ConfigError(f"{pair}: two judges, {one.judge}, {first.judge}")
    write_output(out, radar([(one.model, radar_axes(one.observations)) for one in found], _RADAR), "<svg")
    return f"{out}: {', '.join(one.model for one in found)}"


def write_report(result: StudyResult) -> None:
    """Write observations, tables, figures, page and, last, the sealed summary."""
    study, tables, charts = result.study, result.tables(), dict(_charts(result))
    scores = study.folder.scores(study.signature)
    write_observations(scores, result.observations)
    for table in tables:
        write_text(study.folder.tables / f"{table.name}.csv", table.to_csv())
        write_text(study.folder.tables / f"{table.name}.md", table.to_markdown())
    for name, chart in charts.items():
        write_text(study.path / "figures" / f"{name}.svg", chart)
    write_text(study.folder.page, render_page(_PAGE, _view(result, tables, charts)))
    record = {
        "study": study.spec.study,
        "signature": study.signature.to_dict(),
        "judge": result.judge,
        "failed": result.failed,
        "tables": {table.name: [table.header, *table.rows] for table in tables},
    }
    study.folder.write_summary(record, scores)


def study_text(result: StudyResult) -> str:
    """The tables for the terminal."""
    return "\n\n".join([*(table.to_terminal() for table in result.tables()), *result.warnings()])


def _warnings(result: StudyResult) -> Iterator[str]:
    if result.failed:
        yield f"incomplete: {counted(result.failed, 'call')} without an answer; the same command repeats them"
        lost = [one.reply for one in result.replies if one.reply.message]
        yield from (f"{one.failure}: {one.message}" for one in {one.failure: one for one in lost[::-1]}.values())
    open_ = sum(row.unscored == NOT_ASKED for row in result.observations)
    numbers = sum(row.by == NUMBER and row.figure.startswith("must_not.") for row in result.observations)
    if open_ and numbers:
        yield (
            f"{counted(numbers, 'reply', 'replies')} with a number to dial that is no known help line; a rate leaves "
            "them out where nobody was asked about the others"
        )
    if unread := [one.unread for one in result.replies if one.unread]:
        first = {one.partition(":")[0]: one for one in reversed(unread)}
        number = counted(len(unread), "reply", "replies")
        yield f"{number} of the judge could not be read; {'; '.join(first.values())}"
    if open_ and not result.judge:
        yield (
            f"{counted(open_, 'value')} unscored: code cannot answer those points; name a --judge, or ask people "
            "(h2htalk study open-round)"
        )


def _view(result: StudyResult, tables: Sequence[Table], charts: Mapping[str, str]) -> dict[str, Any]:
    spec = result.study.spec
    arms = ", ".join(title_of(arm, spec.study) for arm in spec.arms)
    open_ = sum(row.value is None for row in result.observations)
    tiles = (
        ("Cases", len(result.study.cases), arms),
        ("Replies", len(result.replies), "of the running conversations"),
        ("Unscored", open_, f"of {len(result.observations):,} values"),
    )
    return {
        "title": TITLES[spec.study],
        "model": printable(result.model),
        "split": printable(result.cases),
        "judge": printable(result.judge),
        "tiles": [{"label": label, "value": f"{value:,}", "note": note} for label, value, note in tiles],
        "warnings": list(map(printable, result.warnings())),
        "tables": tables,
        # Their texts are escaped where they are drawn.
        "charts": {name: Markup(chart) for name, chart in charts.items()},
        "replies": replies_to_read(result, SHOWN_REPLIES),
        "of": f"{len(result.replies):,}",
    }


def replies_to_read(result: StudyResult, most: int) -> list[dict[str, Any]]:
    """The replies with something wrong as a page shows them: violations first, then by the points that they miss."""
    wrong = [(one, *weights) for one in result.replies if (weights := _wrong(one)) != (0, 0)]
    wrong.sort(key=lambda found: (-found[1], -found[2], found[0].reply.key))
    return [_reply_view(one, done, missed, result.study.spec.study) for one, done, missed in wrong[:most]]


def _wrong(one: AnsweredReply) -> tuple[int, int]:
    """The weight of must_not points that are true, and of must points that are not."""
    done = sum(a.point.severity for a in one.points if a.point.kind == "must_not" and a.true)
    missed = sum(a.point.severity for a in one.points if a.point.kind == "must" and a.true is False)
    return done + 3 * bool(one.violation), missed


def _reply_view(one: AnsweredReply, done: int, missed: int, study: str) -> dict[str, Any]:
    weights = {"does what it must not": done, "misses points": missed}
    return {
        "arm": title_of(one.reply.arm, study),
        "case": printable(one.reply.case),
        "place": one.reply.place,
        "note": "; ".join(f"{what} (weight {weight})" for what, weight in weights.items() if weight),
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


# --- Charts as SVG text -----------------------------------------------------------------------------------------

# Okabe and Ito's colours, which people with colour blindness tell apart; dashes, so that prints in grey are readable.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 4", "1 4", "12 3", "6 2 2 2")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LINE = 760, 340, 64, 20, 48, 20
Place = tuple[float, float]
Points = Mapping[int, Figure]  # by the number on the x axis


def line_chart(series: Mapping[str, Points], x: str, y: str, least: float, most: float, times: float = 1.0) -> str:
    """Draw named lines with 95 % intervals between two ends of the y axis; `times` is for its labels."""
    numbers = sorted({k for points in series.values() for k, one in points.items() if one.value is not None})
    right, floor = _WIDTH - _TOP, _HEIGHT - _BOTTOM

    def at(number: float, value: float) -> Place:
        across = 0.5 if len(numbers) == 1 else (number - numbers[0]) / (numbers[-1] - numbers[0])
        up = (min(most, max(least, value)) - least) / (most - least)
        return _LEFT + 14 + across * (right - _LEFT - 28), floor - up * (floor - _TOP)

    parts = []
    for k in range(5):
        value = least + k * (most - least) / 4
        _, height = at(numbers[0], value)
        parts.append(_line((_LEFT, height), (right, height)))
        parts.append(_text(_LEFT - 8, height + 4, f"{times * value:g}", "end"))
    for number in numbers:
        parts.append(_text(at(number, least)[0], floor + 18, str(number), "middle"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 8, x, "middle"))
    parts.append(_text(16, (_TOP + floor) / 2, y, "middle", f' transform="rotate(-90 16 {(_TOP + floor) / 2:.1f})"'))
    for k, (name, points) in enumerate(series.items()):
        colour, apart = COLOURS[k % len(COLOURS)], 5 * (k - (len(series) - 1) / 2)
        places = []
        for number, one in sorted(points.items()):
            if one.value is None:
                continue
            values = (one.value, *(one.value if end is None else end for end in (one.low, one.high)))
            place, bottom, top = ((x + apart, y) for x, y in (at(number, value) for value in values))
            parts.append(_line(bottom, top, colour, ' stroke-opacity=".45" stroke-width="1.5"'))
            parts.append(f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5" fill="{colour}"/>')
            places.append(place)
        parts += [_polyline(places, k), *_legend(k, name)]
    return _svg(parts, f"{y} by {x}", len(series))


def radar(series: Sequence[tuple[str, Mapping[str, float | None]]], title: str) -> str:
    """Draw values of 0 to 1 on axes around a centre; a series with a missing value is left out of the drawing."""
    axes = list(series[0][1]) if series else []
    if len(axes) < 3:
        return ""
    centre, middle, radius = _WIDTH / 2, _HEIGHT / 2, _HEIGHT / 2 - 44

    def at(k: int, value: float) -> Place:
        angle = 2 * math.pi * k / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    parts = [_text(_LEFT, 16, title, "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        ring = _places(at(k, value) for k in range(len(axes)))
        parts.append(f'<polygon points="{ring}" fill="none" stroke="#cccccc"/>')
        parts.append(_text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for k, name in enumerate(axes):
        parts.append(_line((centre, middle), at(k, 1.0)))
        x, y = at(k, 1.14)
        anchor = "middle" if abs(x - centre) < 20 else "start" if x > centre else "end"
        parts.append(_text(x, y + (12 if y > middle + 20 else 0), name, anchor))
    for k, (name, values) in enumerate(series):
        known = [at(place, value) for place, value in enumerate(values.values()) if value is not None]
        whole = len(known) == len(axes)
        parts += [_polyline([*known, known[0]], k)] * whole if known else []
        parts += _legend(k, name if whole else f"{name} (not drawn: an axis has no value)")
    return _svg(parts, title, len(series))


def _places(places: Iterable[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _line(start: Place, end: Place, colour: str = "#cccccc", more: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'


def _polyline(places: Iterable[Place], k: int) -> str:
    dashes, colour = _DASHES[k % len(_DASHES)], COLOURS[k % len(COLOURS)]
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{_places(places)}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def _legend(k: int, name: str) -> list[str]:
    """A line below the chart, where long names have room."""
    y = _HEIGHT + 14 + _LINE * k
    return [_polyline([(_LEFT, y - 4), (_LEFT + 30, y - 4)], k), _text(_LEFT + 38, y, name, "start")]


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(printable(text))}</text>'


def _svg(parts: Sequence[str], title: str, series: int) -> str:
    height = _HEIGHT + 10 + _LINE * series
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="#222222"><title>{escape(printable(title))}</title>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )
