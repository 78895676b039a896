"""What a study shows: tables for the terminal and as files, figures, and a page with the replies to read first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from operator import itemgetter
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
from h2htalk.chat.engines import model_name
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
        spec, replies = self.study.spec, []
        tables = list(_TABLES[spec.study](self.observations, spec.arms))
        calibration = calibration_table(self.replies, spec.arms) if self.judge else ()
        for arm in spec.arms:
            own = [one for one in self.study.answers_of(arm) if isinstance(one, Response)]
            ends, times = [one.finish_reason for one in own], latency(own) or (None, None)
            counts = (len(own), ends.count("refusal"), ends.count("length"))
            replies.append((title_of(arm, spec.study), *counts, *times))
        header = ("arm", "replies", "refused", "cut", "median s", "95th percentile s")
        notes = ("cut: at the limit of tokens; s: seconds of a live call",)
        return [*tables[:2], *calibration, *tables[2:], Table("Replies by arm", header, replies, notes, "replies")]

    def warnings(self) -> list[str]:
        """What a reader of the tables must know first."""
        warnings = []
        if self.failed:
            calls = counted(self.failed, "call")
            warnings.append(f"incomplete: {calls} without an answer; the same command repeats them")
            lost = {one.reply.failure: one.reply.message for one in reversed(self.replies) if one.reply.message}
            warnings += [f"{failure}: {message}" for failure, message in lost.items()]
        open_ = sum(row.unscored == NOT_ASKED for row in self.observations)
        numbers = sum(row.by == NUMBER and row.figure.startswith("must_not.") for row in self.observations)
        if open_ and numbers:
            replies = f"{counted(numbers, 'reply', 'replies')} with a number to dial that is no known help line"
            warnings.append(f"{replies}; a rate leaves them out where nobody was asked about the others")
        if unread := [one.unread for one in self.replies if one.unread]:
            first = {one.partition(":")[0]: one for one in reversed(unread)}
            number = counted(len(unread), "reply", "replies")
            warnings.append(f"{number} of the judge could not be read; {'; '.join(first.values())}")
        if open_ and not self.judge:
            advice = "name a --judge, or ask people (h2htalk study open-round)"
            warnings.append(f"{counted(open_, 'value')} unscored: code cannot answer those points; {advice}")
        return warnings


def _charts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """The figures of a study by name, as SVG."""
    spec, rows = result.study.spec, result.observations
    if spec.study == "instructions":
        yield "kinds", radar([(result.model, radar_axes(rows))])
    for name in ("violation", "perception") if spec.study == "sap" else ():
        series = {title_of(arm): by_turn(select(rows, name, arm)) for arm in spec.arms}
        if any(one.value is not None for points in series.values() for one in points.values()):
            yield f"turns_{name}", line_chart(series, NAMES[name], SCALES.get(name))


def write_radar(found: Sequence[StudyResult], out: Path) -> str:
    """Write Fig. 7 for several models, one radar of their studies, as SVG; return what was written.

    Raises ConfigError unless they are studies of instructions under one protocol and judge.
    """
    first = found[0]
    for one in found:
        keys = one.study.signature.differing(first.study.signature) + ["judge"] * (one.judge != first.judge)
        if keys or one.study.spec.study != "instructions":
            what = f"{', '.join(keys) or 'their studies'} differ, or they are not of instructions"
            raise ConfigError(f"{one.study.path} and {first.study.path} cannot be compared in a radar: {what}")
    write_output(out, radar([(one.model, radar_axes(one.observations)) for one in found]), "<svg")
    return f"{out}: {', '.join(one.model for one in found)}"


def write_report(result: StudyResult) -> None:
    """Write observations, tables, figures, page and, last, the sealed summary."""
    study, spec, tables = result.study, result.study.spec, result.tables()
    charts, scores, warnings = dict(_charts(result)), study.folder.scores(study.signature), result.warnings()
    write_observations(scores, result.observations)
    for table in tables:
        write_text(study.folder.tables / f"{table.name}.csv", table.to_csv())
        write_text(study.folder.tables / f"{table.name}.md", table.to_markdown())
    for name, chart in charts.items():
        write_text(study.path / "figures" / f"{name}.svg", chart)
    arms = ", ".join(title_of(arm, spec.study) for arm in spec.arms)
    open_ = sum(row.value is None for row in result.observations)
    tiles = (
        ("Cases", len(study.cases), arms),
        ("Replies", len(result.replies), "of the running conversations"),
        ("Unscored", open_, f"of {len(result.observations):,} values"),
    )
    view = {
        "title": TITLES[spec.study],
        "model": printable(result.model),
        "split": printable(result.cases),
        "judge": printable(result.judge),
        "tiles": [{"label": label, "value": f"{value:,}", "note": note} for label, value, note in tiles],
        "warnings": list(map(printable, warnings)),
        "tables": tables,
        # Their texts are escaped where they are drawn.
        "charts": {name: Markup(chart) for name, chart in charts.items()},
        "replies": replies_to_read(result, SHOWN_REPLIES),
        "of": f"{len(result.replies):,}",
    }
    write_text(study.folder.page, render_page(_PAGE, view))
    facts = {"study": spec.study, "signature": study.signature.to_dict(), "judge": result.judge}
    rows = {table.name: [table.header, *table.rows] for table in tables}
    study.folder.write_summary({**facts, "failed": result.failed, "tables": rows}, scores)


def study_text(result: StudyResult) -> str:
    """The tables for the terminal."""
    return "\n\n".join([*(table.to_terminal() for table in result.tables()), *result.warnings()])


def replies_to_read(result: StudyResult, most: int) -> list[dict[str, Any]]:
    """The replies with something wrong as a page shows them: violations first, then by the points that they miss."""

    def shown(text: str) -> str:
        left = len(text) - LONGEST_SHOWN
        more = f" [and {counted(left, 'character')} more]" if left > 0 else ""
        return printable_lines(text[:LONGEST_SHOWN]) + more

    found = []
    for one in result.replies:
        done = sum(a.point.severity for a in one.points if a.point.kind == "must_not" and a.true)
        done += 3 * bool(one.violation)
        missed = sum(a.point.severity for a in one.points if a.point.kind == "must" and a.true is False)
        weights = {"does what it must not": done, "misses points": missed}
        view = {
            "arm": title_of(one.reply.arm, result.study.spec.study),
            "case": printable(one.reply.case),
            "place": one.reply.place,
            "note": "; ".join(f"{what} (weight {weight})" for what, weight in weights.items() if weight),
            "said": [(turn.role, shown(turn.content)) for turn in one.reply.said],
            "text": shown(one.reply.text or "") or "(empty)",
            "points": [printable(text) for text in point_lines(one)],
        }
        found += [(-done, -missed, one.reply.key, view)] if done or missed else []
    return [view for *_, view in sorted(found, key=itemgetter(0, 1, 2))[:most]]


def point_lines(one: AnsweredReply) -> Iterator[str]:
    """Each point with its answer, who gave it, and the evidence."""
    for answer in one.points:
        said = answer.unscored if answer.true is None else "true" if answer.true else "false"
        who = f" ({answer.by}{': ' + answer.evidence if answer.evidence else ''})" if answer.by else ""
        mark = "BROKEN: " if answer.good is False else ""
        yield f"{mark}{answer.point.kind}, severity {answer.point.severity}: {answer.point.text} – {said}{who}"
    if one.perception is not None:
        yield f"safety perception {one.perception:g} ({one.perception_by})"


# --- Charts as SVG text -----------------------------------------------------------------------------------------

# Okabe and Ito's colours, which people with colour blindness tell apart; dashes, so that prints in grey are readable.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_DASHES = ("none", "7 4", "2 3", "9 3 2 3", "4 4", "1 4", "12 3", "6 2 2 2")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LINE = 760, 340, 64, 20, 48, 20
Place = tuple[float, float]


def line_chart(series: Mapping[str, Mapping[int, Figure]], y: str, scale: tuple[float, float] | None) -> str:
    """Draw named lines by turn, with 95 % intervals; without a scale they are rates, in percent."""
    numbers = sorted({k for points in series.values() for k, one in points.items() if one.value is not None})
    right, floor = _WIDTH - _TOP, _HEIGHT - _BOTTOM
    (least, most), times, label = (scale, 1, y) if scale else ((0.0, 1.0), 100, f"{y}, percent")

    def at(number: float, value: float, aside: float = 0.0) -> Place:
        across = 0.5 if len(numbers) == 1 else (number - numbers[0]) / (numbers[-1] - numbers[0])
        up = (min(most, max(least, value)) - least) / (most - least)
        return _LEFT + 14 + across * (right - _LEFT - 28) + aside, floor - up * (floor - _TOP)

    turned = f' transform="rotate(-90 16 {(_TOP + floor) / 2:.1f})"'
    parts = [_text((_LEFT + right) / 2, _HEIGHT - 8, "turn"), _text(16, (_TOP + floor) / 2, label, more=turned)]
    for value in (least + k * (most - least) / 4 for k in range(5)):
        _, height = at(numbers[0], value)
        parts += [_line([(_LEFT, height), (right, height)]), _text(_LEFT - 8, height + 4, f"{times * value:g}", "end")]
    parts += [_text(at(number, least)[0], floor + 18, str(number)) for number in numbers]
    for k, points in enumerate(series.values()):
        colour, aside = COLOURS[k % len(COLOURS)], 5 * (k - (len(series) - 1) / 2)
        known = [(number, one, one.value) for number, one in sorted(points.items()) if one.value is not None]
        for number, one, value in known:
            ends = [at(number, value if end is None else end, aside) for end in (one.low, one.high)]
            parts.append(_line(ends, colour, ' stroke-opacity=".45" stroke-width="1.5"'))
            across, up = at(number, value, aside)
            parts.append(f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3.5" fill="{colour}"/>')
        parts.append(_series([at(number, value, aside) for number, _, value in known], k))
    return _svg(parts, f"{label} by turn", list(series))


def radar(series: Sequence[tuple[str, Mapping[str, float | None]]]) -> str:
    """Draw values of 0 to 1 on axes around a centre; a series with a missing value is left out of the drawing."""
    axes, names = list(series[0][1]), []
    centre, middle, radius = _WIDTH / 2, _HEIGHT / 2, _HEIGHT / 2 - 44

    def at(k: int, value: float) -> Place:
        angle = 2 * math.pi * k / len(axes) - math.pi / 2
        return centre + radius * value * math.cos(angle), middle + radius * value * math.sin(angle)

    parts = [_text(_LEFT, 16, _RADAR, "start")]
    for value in (0.25, 0.5, 0.75, 1.0):
        parts.append(_line([at(k, value) for k in range(len(axes) + 1)]))
        parts.append(_text(centre + 4, middle - radius * value - 2, f"{100 * value:g}", "start"))
    for k, name in enumerate(axes):
        x, y = at(k, 1.14)
        anchor = "middle" if abs(x - centre) < 20 else "start" if x > centre else "end"
        parts += [_line([(centre, middle), at(k, 1.0)]), _text(x, y + (12 if y > middle + 20 else 0), name, anchor)]
    for k, (name, values) in enumerate(series):
        known = [at(place, value) for place, value in enumerate(values.values()) if value is not None]
        whole = len(known) == len(axes)
        parts += [_series([*known, known[0]], k)] if whole else []
        names.append(name if whole else f"{name} (not drawn: an axis has no value)")
    return _svg(parts, _RADAR, names)


def _line(places: Iterable[Place], colour: str = "#cccccc", more: str = "") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}"{more}/>'


def _series(places: Iterable[Place], k: int) -> str:
    more = f' stroke-width="2" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"'
    return _line(places, COLOURS[k % len(COLOURS)], more)


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(printable(text))}</text>'


def _svg(parts: Iterable[str], title: str, names: Sequence[str]) -> str:
    """A chart with its names below, where long ones have room."""
    heights = [_HEIGHT + 14 + _LINE * k for k in range(len(names))]
    keys = [_series([(_LEFT, y - 4), (_LEFT + 30, y - 4)], k) for k, y in enumerate(heights)]
    texts = [_text(_LEFT + 38, y, name, "start") for y, name in zip(heights, names, strict=True)]
    width, height = _WIDTH, _HEIGHT + 10 + _LINE * len(names)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="#222222"><title>{escape(printable(title))}</title>'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{"".join([*parts, *keys, *texts])}</svg>\n'
    )
