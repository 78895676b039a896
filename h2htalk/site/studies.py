"""Studies over several models: those of one kind, protocol and judge in one table and in one chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.observations import Figure, by_turn, figure_of, percent, select
from h2htalk.benchmark.report.charts import clipped, line_chart, radar
from h2htalk.benchmark.studies.point_answers import TRIVIAL_ARMS
from h2htalk.benchmark.studies.report import NAMES, TABLES, TITLES, Rows, StudyResult, answered_by, radar_axes, title_of
from h2htalk.site.context import Panel, Words
from h2htalk.site.runs import headline
from h2htalk.site.sources import Sources
from h2htalk.text.tables import NONE, Table

MODELS = 6  # of a chart: colours that are told apart, on a dark ground too
_DRAWN = {"sap": (("sap", "violation"), ("none", "violation")), "instructions": ((None, "points"),)}


def study_list(sources: Sources, w: Words) -> Table:
    """The studies with the figure that each is named by, linked."""
    lines, heads = list[Sequence[str]](), ("model", "study", "cases", "figure", "value", "done", "scored", "by")
    for (key, _), (label, one) in zip(sources.studies, _labelled(sources), strict=True):
        what, arm, figure = headline(one.study, one.observations)
        link = Markup('<a href="studies/{}.html">{}</a>').format(key, label)
        scored, by = f"{figure.n:,}/{figure.total:,}", figure.by or NONE
        done = [row for row in one.observations if row.arm == arm and row.figure.startswith("must.")]
        shown = ", ".join(_said(part, w) for part in what.split(", "))
        figures = (shown, percent(figure, count=True), percent(figure_of(done), count=True))
        lines.append((link, w["kinds"][one.study.spec.study], clipped(one.cases, 120), *figures, scored, by))
    return Table("", [w[name] for name in heads], lines)


def study_groups(sources: Sources, w: Words) -> Iterator[dict[str, Any]]:
    """Yield what the index shows of studies that may be compared; of each kind, the largest group first."""
    groups, first = dict[tuple[Any, ...], dict[str, StudyResult]](), dict[str, StudyResult]()
    for label, one in _labelled(sources):
        place = [*TITLES].index(one.study.spec.study)
        groups.setdefault((place, one.study.signature.fingerprint, one.judge), {})[label] = one
    ordered = sorted(groups.items(), key=lambda pair: (pair[0][0], -len(pair[1]), pair[0]))
    for number, ((_, protocol, judge), members) in enumerate(ordered, 1):
        one = next(iter(members.values()))
        other = first.setdefault(kind := one.study.spec.study, one)
        keys = one.study.signature.differing(other.study.signature)
        keys += [f"{w['judge']} ({judge or NONE}, {other.judge or NONE})"] * (judge != other.judge)
        facts = {"models": len(members), "judge": clipped(judge or w["nobody"], 120), "protocol": protocol}
        says = [w["together"].format(**facts), *[w["apart"].format(keys=clipped(", ".join(keys), 400))] * bool(keys)]
        heading = w["heading"].format(kind=w["kinds"][kind], cases=clipped(one.cases, 120))
        yield {"heading": heading, "says": says, "panels": [*_panels(f"studies-{number}", kind, members, w)]}


def _labelled(sources: Sources) -> list[tuple[str, StudyResult]]:
    """The studies with their models' names; those of one kind and model with their keys and temperatures."""
    names = [(one.study.spec.study, clipped(one.model, 60)) for _, one in sources.studies]
    more = [f" (temperature {one.study.spec.ask.temperature:g}, {key})" for key, one in sources.studies]
    labels = [name[1] + own * (names.count(name) > 1) for name, own in zip(names, more, strict=True)]
    return [(label, one) for label, (_, one) in zip(labels, sources.studies, strict=True)]


def _panels(path: str, kind: str, members: Mapping[str, StudyResult], w: Words) -> Iterator[Panel]:
    """Yield the table with a row for each model and arm, and Fig. 7, or violations by turn, of a few models each."""
    if kind == "instructions":  # which have one arm
        arms = [_said(title_of(one.study.spec.arms[0], kind), w) for one in members.values()]
        members = {f"{label}, {arm}": one for (label, one), arm in zip(members.items(), arms, strict=True)}
    else:
        plain = _arms(kind, members, w)
        yield Panel(path, "", "", replace(plain, notes=()), plain.title, plain)
    for arm, figure in _DRAWN.get(kind, ()):
        rows = {label: select(one.observations, figure, arm) for label, one in members.items()}
        read: Callable[[Rows], dict[Any, Figure]] = by_turn if arm else radar_axes
        found: dict[str, dict[Any, Figure]] = {label: read(own) for label, own in rows.items()}
        known = [label for label, own in found.items() if any(one.value is not None for one in own.values())]
        for start in range(0, len(known), MODELS):
            drawn = {label: found[label] for label in known[start : start + MODELS]}
            note = answered_by([row for label in drawn for row in rows[label]])
            heads = dict.fromkeys(head for own in drawn.values() for head in own)
            lines = [(label, *(percent(own[k]) if k in own else NONE for k in heads)) for label, own in drawn.items()]
            header = (w["model" if arm else "arms"], *(_said(f"turn {head}" if arm else head, w) for head in heads))
            axes = [(label, {_said(str(k), w): one for k, one in own.items()}) for label, own in drawn.items()]
            chart = line_chart(drawn, _said(NAMES[figure], w), None, *note) if arm else radar(axes, *note)
            plain = Table(w["turns" if arm else "radar"].format(arm=_said(title_of(arm or ""), w)), header, lines, note)
            place, says = f"{path}-{arm or 'radar'}-{start // MODELS + 1}", w["turns_says" if arm else "radar_says"]
            yield Panel(place, chart, says, replace(plain, notes=()), plain.title, plain)


def _arms(kind: str, members: Mapping[str, StudyResult], w: Words) -> Table:
    """The study's own table of arms with the arms of all models as its arms, and trivial answers once."""
    rows = [row for row in next(iter(members.values())).observations if row.arm in TRIVIAL_ARMS]
    trivial, arms = [arm for arm in TRIVIAL_ARMS if any(row.arm == arm for row in rows)], list[str]()
    for label, one in members.items():
        own = {arm: f"{label}, {_said(title_of(arm, kind), w)}" for arm in one.study.spec.arms}
        rows += [replace(row, arm=own[row.arm]) for row in one.observations if row.arm in own]
        arms += own.values()
    table = next(TABLES[kind](rows, [*arms, *trivial]))
    header = (w["arms"], *(_said(head, w) for head in table.header[1:]))
    lines = [(arm if arm in arms else _said(arm, w), *cells) for arm, *cells in table.rows]
    return replace(table, title=w[kind], header=header, rows=lines)


def _said(text: str, w: Words) -> str:
    """A heading or an arm of a study in the site's language, with the number or name that follows it."""
    names = w["names"]
    start = text if text in names else next((one for one in names if one[-1] == " " and text.startswith(one)), "")
    return f"{names.get(start, '')}{text[len(start) :]}"
