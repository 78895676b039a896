"""A gate's report in each form: a table for the terminal, Markdown, a page, JUnit XML and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as xml

from h2htalk.benchmark.estimate_text import format_figure, format_interval, format_p, format_percent
from h2htalk.benchmark.gate.chinese_summary import TITLE, chinese_lines, raters_line
from h2htalk.benchmark.gate.comparison import WORSE
from h2htalk.benchmark.gate.gate import NOT_TESTED, GateReport, Verdict
from h2htalk.benchmark.gate.policy import MEASURES
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.benchmark.raters import Raters, describe_raters, describe_rule
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import PairedResult
from h2htalk.benchmark.statistics.sign_flips import NO_INTERVAL
from h2htalk.benchmark.studies.judge_agreement import LEAST_OF_LANGUAGE, LEAST_POINTS, agreement_of
from h2htalk.benchmark.studies.report.raters_tables import judge_note
from h2htalk.benchmark.studies.report.study_tables import name_of
from h2htalk.benchmark.studies.report.table_words import TIES, TRIVIAL
from h2htalk.data.languages import find_language
from h2htalk.errors import counted
from h2htalk.text.escaping import code_block, escape_markdown, printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import NONE, Table, value_text

# How the files begin.
MARKDOWN = "### Gate: "
JUNIT = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="h2htalk gate"'
HTML = "<!doctype html><!-- h2htalk gate -->"
JSON = '{\n  "report": "h2htalk gate"'

_HEADER = (
    "criterion",
    "reference",
    "run",
    "worse by",
    "p",
    "limit",
    "p of limit",
    "detects",
    "answered by",
    "passes",
)
_LIMITS = {"max": "at most", "min": "at least"}


def gate_table(report: GateReport) -> Table:
    """One row a criterion."""
    against = f" against {report.reference.label}" if report.reference else ""
    title = f"Gate: {report.run.label}{against}: {report.headline}"
    rows = [_row(verdict) for verdict in report.verdicts]
    return Table(title, _HEADER, rows, tuple(_notes(report)))


def _row(verdict: Verdict) -> tuple[str, ...]:
    unit = MEASURES.get(verdict.criterion.figure, "")
    run, reference = verdict.compared_figures or (verdict.run, verdict.reference)
    limits = [p for name, p in verdict.p.items() if name != WORSE]
    return (
        name_of(verdict.criterion.figure),
        NONE if reference is None else _figure(reference),
        _figure(run, unit),
        NONE if verdict.worse is None else _worse(verdict.worse, verdict.run.hits is not None),
        format_p(verdict.p[WORSE]) if WORSE in verdict.p else NONE,
        _limits(verdict),
        format_p(min(limits)) if limits else NONE,
        verdict.detects or NONE,
        NONE if verdict.raters is None else describe_raters(verdict.raters, named=False),
        verdict.word,
    )


def _figure(figure: Estimate, unit: str = "") -> str:
    if unit:
        return NONE if figure.value is None else f"{figure.value:.4f} {unit}"
    return (
        format_percent(figure, count=True)
        if figure.hits is not None
        else format_figure(figure, digits=3)
    )


def _worse(worse: PairedResult, is_rate: bool) -> str:
    """The worsening with its interval, in points of 100 where it is of a rate."""
    times = 100.0 if is_rate else 1.0
    interval = worse.estimate.interval
    if interval is not None and is_rate:
        interval = (max(-1.0, interval[0]), min(1.0, interval[1]))
    text = format_interval(interval, "+.3g", times, frame=" ({})")
    unit = " points" if is_rate else ""
    return f"{times * worse.mean:+.3g}{text}{unit}"


def _limits(verdict: Verdict) -> str:
    times = 1
    unit = MEASURES.get(verdict.criterion.figure, "")
    if verdict.run.hits is not None:
        times = 100
        unit = "%"
    limits = verdict.criterion.limits.items()
    return (
        ", ".join(f"{_LIMITS[name]} {times * end:g} {unit}".rstrip() for name, end in limits)
        or NONE
    )


def _notes(report: GateReport) -> Iterator[str]:
    """What a reader of the table must know: reasons first, then who answered, then how it was tested."""
    for verdict in report.verdicts:
        for text in (*verdict.reasons, *verdict.not_tested, *verdict.notes):
            yield f"{name_of(verdict.criterion.figure)}: {text}"
    yield from _judge_notes(report)
    if not any(_is_read(verdict) for verdict in report.verdicts):
        yield _nobody_read(report)
    if any(
        figure.tied
        for verdict in report.verdicts
        for figure in (*verdict.compared_figures, verdict.run)
    ):
        yield TIES
    yield (
        f"One-sided tests, Holm over all of them at {report.policy.alpha:g}: sign-flip test on clusters of "
        "items; limits of rates binomial, with the clusters' effective n. Positive is worse."
    )
    yield "p is adjusted (Holm)."
    yield _detects_note(report)
    if any(_lacks_interval(verdict.worse) for verdict in report.verdicts):
        yield NO_INTERVAL
    yield "Intervals are 95 %, two-sided and not adjusted, so that one may exclude 0 beside a p above .05."
    yield "yes: no worsening was shown, which is no proof that there is none: detects says what would have been found."
    if report.run.study in ("sap", "logs"):
        yield TRIVIAL
    yield "Run and reference are shown at the places that both scored; a limit is tested on all places of the run."
    if report.failed:
        yield f"incomplete, and no yes: {report.failed:,} calls of the runs have no answer; repeat their commands"
    elif report.incomplete:
        untested = sum(verdict.word == NOT_TESTED for verdict in report.verdicts)
        number = counted(untested, "criterion was", "criteria were")
        yield f"incomplete, and no yes: {number} not tested; the reasons stand above"


def _lacks_interval(worse: PairedResult | None) -> bool:
    """Whether runs differ on average, and the difference has no interval."""
    return worse is not None and worse.mean != 0 and worse.estimate.low is None


def _nobody_read(report: GateReport) -> str:
    """What a yes says where no answer of a judge or of people stands in any criterion."""
    judge_asked = any(
        verdict.raters is not None and verdict.raters.asks_judge for verdict in report.verdicts
    )
    if judge_asked:
        return (
            f"No answer about the replies stands in these criteria: the judge {report.run.judge} was asked and gave "
            "none that could be read, and no person read them. A yes says nothing about what the replies say."
        )
    return (
        "Nobody read the replies for these criteria, no judge and no person: they hold what is computed, and a yes "
        "says nothing about what the replies say."
    )


def _is_read(verdict: Verdict) -> bool:
    """Whether a judge or people answered any value of a criterion."""
    raters = verdict.raters
    return raters is not None and raters.judged + raters.by_people > 0


def _judge_notes(report: GateReport) -> Iterator[str]:
    """The judge of each run that answered something, or nothing where it was asked, and how it was checked."""
    run = _judge_of(report.run, [verdict.raters for verdict in report.verdicts])
    if run:
        yield run
        yield describe_rule()
    if run and report.policy.needs_calibrated:
        yield _calibration_note(report)
    if report.reference is None:
        return
    reference = _judge_of(
        report.reference, [verdict.reference_raters for verdict in report.verdicts]
    )
    if reference and reference != run:
        yield f"In the reference run: {reference}"


def _judge_of(run: ObservedRun, raters: list[Raters | None]) -> str:
    """The note of a run's judge; empty where none of the criteria asks it."""
    if not any(who is not None and who.asks_judge for who in raters):
        return ""
    checks = None
    if run.planted is not None:
        checks = tuple(check for check in run.planted if not check.arms or run.arm in check.arms)
    return judge_note(run.judge, checks)


def _calibration_note(report: GateReport) -> str:
    """How the run's judge agrees with people, which its policy asks about."""
    agreements = []
    for language, pairs in report.run.calibration.items():
        agreements.append(f"{find_language(language).name}: {agreement_of(pairs).text}")
    text = "; ".join(agreements) or "people answered no point that the judge answered too"
    return (
        f"Judge and people, fault or no fault: {text}. The policy needs {LEAST_POINTS} points, {LEAST_OF_LANGUAGE} in "
        f"each language, and a kappa of {report.policy.agreement:g}."
    )


def _detects_note(report: GateReport) -> str:
    """What the column `detects` means, with the first rates that stand there."""
    text = "Detects: the smallest worsening that as many items find four times in five"
    example = next(
        (verdict.detects for verdict in report.verdicts if " % to " in verdict.detects), ""
    )
    if not example:
        return f"{text}; smaller ones are found less often."
    start, end = example.split(" to ")
    return (
        f"{text}. {example} means: where the reference run's true rate is {start} (half a value more than was counted, "
        f"since none among so many is not none), a run whose true rate is {end} gets a no four times in five, and one "
        "in between less often."
    )


def to_markdown(report: GateReport) -> str:
    """The table, and the transcripts behind each no."""
    sections = [gate_table(report).to_markdown()]
    for verdict in report.verdicts:
        if verdict.transcripts:
            sections.append(f"#### {name_of(verdict.criterion.figure)}: what is behind the no\n")
            for title, text in verdict.transcripts:
                sections.append(f"{escape_markdown(title)}\n\n{code_block(text)}\n")
    lines = "\n".join(f"* {escape_markdown(line)}" for line in chinese_lines(report))
    sections.append(f"#### {TITLE}\n\n{lines}\n")
    return "\n".join(sections)


def to_html(report: GateReport) -> str:
    """A page: the verdict, the table, and the transcripts behind each no."""
    words = Counter(verdict.word for verdict in report.verdicts)
    total = f"of {counted(len(report.verdicts), 'criterion', 'criteria')}"
    labels = {"NO": "Say no", NOT_TESTED: "Not tested", "yes": "No worsening shown"}
    tiles = [
        {"label": label, "value": words[word], "note": total} for word, label in labels.items()
    ]
    view = {
        "report": report,
        "table": gate_table(report),
        "tiles": tiles,
        "name": name_of,
        "chinese": list(chinese_lines(report)),
        "clean": printable_lines,
    }
    return render_page(files("h2htalk.benchmark.gate") / "page", view)


def to_junit(report: GateReport) -> str:
    """JUnit XML: a test case a criterion, a failure with its transcripts for each no."""
    table = gate_table(report)
    words = [verdict.word for verdict in report.verdicts]
    if report.failed:
        words.append(NOT_TESTED)
    counts = {
        "tests": len(words),
        "failures": words.count("NO"),
        "errors": 0,
        "skipped": words.count(NOT_TESTED),
    }
    suite = xml.Element(
        "testsuite",
        {"name": "h2htalk gate"} | {name: str(number) for name, number in counts.items()},
    )
    for verdict, row in zip(report.verdicts, table.rows, strict=True):
        case = xml.SubElement(suite, "testcase", classname="gate", name=verdict.criterion.figure)
        if not verdict.passed:
            failure = xml.SubElement(case, "failure", message=printable("; ".join(verdict.reasons)))
            transcripts = [
                f"{printable(title)}\n{printable_lines(text)}"
                for title, text in verdict.transcripts
            ]
            failure.text = "\n\n".join(transcripts)
        elif verdict.not_tested:
            xml.SubElement(case, "skipped", message=printable("; ".join(verdict.not_tested)))
        cells = zip(table.header, map(value_text, row), strict=True)
        lines = [", ".join(f"{name} {printable(cell)}" for name, cell in cells)]
        if verdict.raters is not None:
            lines.append(f"answered by {printable(describe_raters(verdict.raters))}")
            lines.append(printable(raters_line(verdict)))
        xml.SubElement(case, "system-out").text = "\n".join(lines)
    if report.failed:
        case = xml.SubElement(suite, "testcase", classname="gate", name="calls of the runs")
        xml.SubElement(
            case,
            "skipped",
            message=f"{report.failed:,} calls have no answer; repeat their commands",
        )
    xml.indent(suite)
    return JUNIT.partition("\n")[0] + "\n" + xml.tostring(suite, encoding="unicode") + "\n"


def to_json(report: GateReport) -> str:
    """The verdicts as an object: each criterion with its figures, p, who answered it, and reasons."""
    reference = report.reference
    record = {
        "report": "h2htalk gate",
        "verdict": report.headline,
        "run": report.run.label,
        "reference": None if reference is None else reference.label,
        "alpha": report.policy.alpha,
        "calls without an answer": report.failed,
        "needs": report.policy.needs,
        "judge and people": _calibration_record(report),
        "criteria": [_criterion_record(verdict) for verdict in report.verdicts],
        "notes": list(gate_table(report).notes),
        "zh": list(chinese_lines(report)),
    }
    return json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _calibration_record(report: GateReport) -> dict[str, Any]:
    """How the run's judge agrees with people, by language, and the kappa that the policy needs."""
    languages = {
        language: asdict(agreement_of(pairs)) for language, pairs in report.run.calibration.items()
    }
    least = report.policy.agreement if report.policy.needs_calibrated else None
    return {"least kappa": least, "languages": languages}


def _criterion_record(verdict: Verdict) -> dict[str, Any]:
    run, reference = verdict.compared_figures or (verdict.run, verdict.reference)
    worse = verdict.worse
    return {
        "figure": verdict.criterion.figure,
        "name": name_of(verdict.criterion.figure),
        "verdict": verdict.word,
        "run": _figure_record(run),
        "reference": None if reference is None else _figure_record(reference),
        "run, all places": _figure_record(verdict.run),
        "worse by": None
        if worse is None
        else {"value": worse.mean, "low": worse.estimate.low, "high": worse.estimate.high},
        "p": dict(verdict.p),
        "limits": verdict.criterion.limits,
        "detects": verdict.detects,
        "answered by": _raters_record(verdict.raters),
        "reference answered by": _raters_record(verdict.reference_raters),
        "reasons": list(verdict.reasons),
        "not tested": list(verdict.not_tested),
        "notes": list(verdict.notes),
    }


def _figure_record(figure: Estimate) -> dict[str, Any]:
    return {
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "hits": figure.hits,
        "n": figure.n,
        "total": figure.total,
        "by": figure.answered_by,
        "tied": figure.tied,
        "tie_range": figure.tie_range,
    }


def _raters_record(raters: Raters | None) -> dict[str, Any] | None:
    """Who answered; None of a figure that is computed."""
    if raters is None:
        return None
    planted = None
    if raters.planted is not None:
        checks = (*raters.planted, *(raters.unanswering or ()))
        planted = [
            asdict(check) | {"unread": check.unread, "passed": check.passed} for check in checks
        ]
    return {
        "text": describe_raters(raters),
        "text_zh": describe_raters(raters, "zh"),
        "counts": dict(raters.counts),
        "total": raters.total,
        "judge": raters.judge if raters.asks_judge else "",
        "planted replies": planted,
    }


FORMS = ((to_junit, JUNIT), (to_markdown, MARKDOWN), (to_html, HTML), (to_json, JSON))
