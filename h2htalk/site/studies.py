"""Studies over several models: those of one kind, protocol and judge in one table and in one chart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.estimate_text import format_percent
from h2htalk.benchmark.observations import Observation, by_turn, figure_of, select, tied_in
from h2htalk.benchmark.raters import describe_raters, raters_of
from h2htalk.benchmark.report.charts import clipped
from h2htalk.benchmark.report.study_charts import line_chart, radar
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS
from h2htalk.benchmark.studies.report.instruction_tables import radar_axes
from h2htalk.benchmark.studies.report.raters_tables import answered_by
from h2htalk.benchmark.studies.report.study_result import TABLES, StudyResult
from h2htalk.benchmark.studies.report.study_tables import title_of
from h2htalk.benchmark.studies.report.table_words import NAMES, TITLES
from h2htalk.site.cells import worded_table
from h2htalk.site.context import Panel, Words, noted_panel
from h2htalk.site.runs import HEADLINES, headline
from h2htalk.site.sources import Sources
from h2htalk.text.tables import NONE, Table

# As `estimate_text.format_figure` writes ties.
_TIED = re.compile(r", (?P<number>[\d,]+) tied \((?P<low>[\d.]+) to (?P<high>[\d.]+)\)")
MODELS = 6  # of a chart: colours that are told apart, on a dark ground too
_LINK = Markup('<a href="studies/{}.html">{}</a>')


def study_list(sources: Sources, words: Words) -> Table:
    """Return the studies with the figure that each is named by, linked."""
    lines = []
    for label, (key, result) in zip(_labels(sources), sources.studies, strict=True):
        kind = result.study.spec.study
        title, arm, figure = headline(result.study, result.observations)
        done = []
        for row in result.observations:
            if row.arm == arm and row.figure.startswith("must."):
                done.append(row)
        title_parts = [_translate(part, words) for part in title.split(", ")]
        value = format_percent(figure, count=True)
        completed = format_percent(figure_of(done), count=True)
        scored = f"{figure.n:,}/{figure.total:,}"
        texts = [_translate_ties(cell, words) for cell in (value, completed)]
        line = [_LINK.format(key, label), words["kinds"][kind], clipped(result.cases, 120)]
        line += [", ".join(title_parts), *texts, scored, _raters_text(result, arm, words)]
        lines.append(line)
    notes = [_ties_note((result for _, result in sources.studies), words)]
    return replace(
        worded_table(words, "model study cases figure value done scored by", lines),
        notes=tuple(filter(None, notes)),
    )


def _raters_text(result: StudyResult, arm: str, words: Words) -> str:
    """Return who answered the figure that a study is named by, and whether its judge's answers count."""
    raters = raters_of(
        select(result.observations, HEADLINES[result.study.spec.study], arm),
        result.judge,
        result.planted,
        [arm],
    )
    text = describe_raters(raters, words["language"], named=False)
    return text if raters.is_checked else f"{text}{words['unchecked']}"


def _ties_note(results: Iterable[StudyResult], words: Words) -> str:
    """Return what ties mean, or nothing where people are tied about no value."""
    if any(tied_in(result.observations) for result in results):
        return str(words["ties_says"])
    return ""


def _translate_ties(cell: str, words: Words) -> str:
    """Return a cell of a study's table with its ties in the site's language."""
    return _TIED.sub(lambda match: words["tied"].format(**match.groupdict()), cell)


def _translate(text: str, words: Words) -> str:
    """Return a heading or an arm of a study in the site's language, with the number or name that follows it."""
    names = words["names"]
    if text in names:
        return str(names[text])
    for name, translation in names.items():
        if name.endswith(" ") and text.startswith(name):
            return f"{translation}{text[len(name) :]}"
    return text


def study_groups(sources: Sources, words: Words) -> Iterator[dict[str, Any]]:
    """Yield what the index shows of studies that may be compared; of each kind, the largest group first."""
    groups: dict[tuple[int, str, str], dict[str, StudyResult]] = {}
    for label, (_, result) in zip(_labels(sources), sources.studies, strict=True):
        position = list(TITLES).index(result.study.spec.study)
        groups.setdefault((position, result.study.signature.fingerprint, result.judge), {})[
            label
        ] = result
    ordered = sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]), group[0]))
    first_of_kind: dict[str, StudyResult] = {}
    for number, ((_, protocol, judge), members) in enumerate(ordered, 1):
        result = next(iter(members.values()))
        kind = result.study.spec.study
        first = first_of_kind.setdefault(kind, result)
        together = words["together"].format(
            models=len(members),
            judge=clipped(judge or words["nobody"], 120),
            protocol=protocol,
        )
        sentences = [together]
        keys = result.study.signature.differing(first.study.signature)
        if judge != first.judge:
            keys.append(f"{words['judge']} ({judge or NONE}, {first.judge or NONE})")
        if keys:
            sentences.append(words["apart"].format(keys=clipped(", ".join(keys), 400)))
        yield {
            "heading": words["heading"].format(
                kind=words["kinds"][kind], cases=clipped(result.cases, 120)
            ),
            "says": sentences,
            "panels": list(_panels(f"studies-{number}", kind, members, words)),
        }


def _labels(sources: Sources) -> list[str]:
    """Return the models' names of the studies; those of one kind and model with their temperatures and keys."""
    names = [(result.study.spec.study, clipped(result.model, 60)) for _, result in sources.studies]
    labels = []
    for name, (key, result) in zip(names, sources.studies, strict=True):
        label = name[1]
        if names.count(name) > 1:
            label += f" (temperature {result.study.spec.ask.temperature:g}, {key})"
        labels.append(label)
    return labels


def _panels(
    path: str, kind: str, members: Mapping[str, StudyResult], words: Words
) -> Iterator[Panel]:
    """Yield the table of models and arms, or Fig. 7 of studies with one arm; of safety the violations by turn too."""
    if kind == "instructions":
        yield from _radars(path, members, words)
        return
    yield noted_panel(path, "", _ties_note(members.values(), words), _arms(kind, members, words))
    if kind == "sap":
        for arm in ("sap", "none"):
            yield from _turn_charts(path, arm, members, words)


def _radars(path: str, members: Mapping[str, StudyResult], words: Words) -> Iterator[Panel]:
    """Yield Fig. 7 of a few models each."""
    rows = {}
    for label, result in members.items():
        arm = _translate(title_of(result.study.spec.arms[0], "instructions"), words)
        rows[f"{label}, {arm}"] = select(result.observations, "points")
    axes = {label: radar_axes(points) for label, points in rows.items()}
    for number, series, note in _sheets(rows, axes):
        translated = []
        for label, figures in series.items():
            by_axis = {_translate(axis, words): figure for axis, figure in figures.items()}
            translated.append((label, by_axis))
        table = _figure_table(series, words, words["arms"])
        chart = radar(translated, *note)
        says = _chart_text(words["radar_says"], series, words)
        titled = replace(table, title=words["radar"], notes=note)
        yield noted_panel(f"{path}-radar-{number}", chart, says, titled)


def _turn_charts(
    path: str, arm: str, members: Mapping[str, StudyResult], words: Words
) -> Iterator[Panel]:
    """Yield the violations by turn of an arm, of a few models each."""
    rows = {
        label: select(result.observations, "violation", arm) for label, result in members.items()
    }
    turns = {label: by_turn(violations) for label, violations in rows.items()}
    title = words["turns"].format(arm=_translate(title_of(arm), words))
    for number, series, note in _sheets(rows, turns):
        table = _figure_table(series, words, words["model"], "turn ")
        chart = line_chart(series, _translate(NAMES["violation"], words), None, *note)
        says = _chart_text(words["turns_says"], series, words)
        yield noted_panel(
            f"{path}-{arm}-{number}", chart, says, replace(table, title=title, notes=note)
        )


def _sheets(
    rows: Mapping[str, Sequence[Observation]], figures: Mapping[str, Mapping[Any, Estimate]]
) -> Iterator[tuple[int, dict[str, Mapping[Any, Estimate]], list[str]]]:
    """Yield the number of each chart, the figures of its models, and who answered them."""
    labels = []
    for label, by_key in figures.items():
        if any(figure.value is not None for figure in by_key.values()):
            labels.append(label)
    for number, start in enumerate(range(0, len(labels), MODELS), 1):
        chart_labels = labels[start : start + MODELS]
        answered = chain.from_iterable(rows[label] for label in chart_labels)
        yield number, {label: figures[label] for label in chart_labels}, answered_by(list(answered))


def _figure_table(
    series: Mapping[str, Mapping[Any, Estimate]], words: Words, first: str, prefix: str = ""
) -> Table:
    """Return a row for each model and a column for each turn or axis."""
    keys = list(dict.fromkeys(chain.from_iterable(series.values())))
    lines = []
    for label, figures in series.items():
        texts = [format_percent(figures[key]) if key in figures else NONE for key in keys]
        lines.append((label, *(_translate_ties(text, words) for text in texts)))
    headings = [_translate(f"{prefix}{key}", words) for key in keys]
    return Table("", (first, *headings), lines)


def _chart_text(text: str, series: Mapping[str, Mapping[Any, Estimate]], words: Words) -> str:
    """Return what a chart shows, and where people are tied what that means."""
    figures = chain.from_iterable(by_key.values() for by_key in series.values())
    return f"{text} {words['ties_says']}" if any(figure.tied for figure in figures) else text


def _arms(kind: str, members: Mapping[str, StudyResult], words: Words) -> Table:
    """Return the study's own table of arms with the arms of all models as its arms, and trivial answers once."""
    first = next(iter(members.values()))
    rows = [row for row in first.observations if row.arm in TRIVIAL_ARMS]
    present = {row.arm for row in rows}
    trivial = [arm for arm in TRIVIAL_ARMS if arm in present]
    arms: list[str] = []
    for label, result in members.items():
        names = {}
        for arm in result.study.spec.arms:
            names[arm] = f"{label}, {_translate(title_of(arm, kind), words)}"
        for row in result.observations:
            if row.arm in names:
                rows.append(replace(row, arm=names[row.arm]))
        arms += names.values()
    table = next(TABLES[kind](rows, [*arms, *trivial]))
    headings = [_translate(heading, words) for heading in table.header[1:]]
    lines = []
    for arm, *cells in table.rows:
        name = arm if arm in arms else _translate(arm, words)
        texts = [_translate_ties(cell, words) if isinstance(cell, str) else cell for cell in cells]
        lines.append((name, *texts))
    return replace(table, title=words[kind], header=(words["arms"], *headings), rows=lines)
