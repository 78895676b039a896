"""A gate's report as text, Markdown and JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree import ElementTree as xml

from h2htalk.benchmark.gate.gate import GateReport, Verdict
from h2htalk.benchmark.gate.policy import COST
from h2htalk.benchmark.studies.figures import Figure
from h2htalk.benchmark.studies.tables.study_table import name_of, percent, score
from h2htalk.text.escaping import printable, printable_lines
from h2htalk.text.markdown import code_block, escape_markdown
from h2htalk.text.tables import NONE, Table, value_text

PASSED, FAILED, NOT_TESTED = "yes", "NO", "not tested"
# How the files begin.
MARKDOWN, JUNIT = "### Gate: ", '<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="h2htalk gate"'


def gate_table(report: GateReport) -> Table:
    """One row a criterion."""
    rows = []
    for one in report.verdicts:
        rows.append(
            (
                name_of(one.criterion.figure),
                _figure(one.reference) if one.reference else NONE,
                _figure(one.run, one.criterion.figure == COST),
                _worse(one),
                _p(one.p.get("worse")),
                _limit(one),
                _p(min((value for name, value in one.p.items() if name != "worse"), default=None)),
                one.detects or NONE,
                FAILED if not one.passed else NOT_TESTED if one.not_tested else PASSED,
            )
        )
    header = ("criterion", "reference", "run", "worse by", "p", "limit", "p of limit", "detects", "passes")
    return Table(_title(report), header, tuple(rows), tuple(_notes(report)))


def _title(report: GateReport) -> str:
    against = f" against {report.reference.label}" if report.reference else ""
    tested = NOT_TESTED if any(one.not_tested for one in report.verdicts) else "passed"
    return f"Gate: {report.run.label}{against}: {tested if report.passed else 'not passed'}"


def _notes(report: GateReport) -> Iterator[str]:
    for one in report.verdicts:
        for text in (*one.reasons, *filter(None, [one.not_tested]), *one.notes):
            yield f"{name_of(one.criterion.figure)}: {text}"
    yield (
        f"One-sided tests, Holm over all of them at {report.policy.alpha:g}: sign-flip test on clusters of "
        "items; limits of rates binomial, with the clusters' effective n. Positive is worse."
    )
    yield "p is adjusted (Holm). Detects: the smallest worsening that as many items find four times in five."
    if report.incomplete:
        missing = sum(one.failed for one in (report.run, report.reference) if one is not None)
        failed = f"{missing:,} calls of the runs have no answer; repeat their commands" * bool(missing)
        few = "a criterion was not tested on all items, has too few, or more than 5 % of its values unscored"
        yield f"incomplete, so a yes says little: {failed or few}"


def _figure(one: Figure, dollars: bool = False) -> str:
    if dollars:
        return NONE if one.value is None else f"{one.value:.4f} US dollars"
    return percent(one, count=True) if one.hits is not None else score(one, digits=3)


def _worse(one: Verdict) -> str:
    if one.worse is None:
        return NONE
    rate = one.run.hits is not None
    times, unit = (100.0, " points") if rate else (1.0, "")
    ends = ""
    if one.worse.low is not None and one.worse.high is not None:
        most = 1.0 if rate else math.inf
        ends = f" ({times * max(-most, one.worse.low):+.3g} to {times * min(most, one.worse.high):+.3g})"
    return f"{times * one.worse.value:+.3g}{ends}{unit}"


def _p(value: float | None) -> str:
    return NONE if value is None else "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def _limit(one: Verdict) -> str:
    ends = (("at most", one.criterion.max), ("at least", one.criterion.min))
    return ", ".join(f"{word} {end:g}" for word, end in ends if end is not None) or NONE


def to_markdown(report: GateReport) -> str:
    """The table, and the transcripts behind each no."""
    parts = [gate_table(report).to_markdown()]
    for one in report.verdicts:
        if one.transcripts:
            parts.append(f"#### {name_of(one.criterion.figure)}: what is behind the no\n")
            for title, text in one.transcripts:
                parts.append(f"{escape_markdown(title)}\n\n{code_block(text)}\n")
    return "\n".join(parts)


def to_junit(report: GateReport) -> str:
    """JUnit XML: a test case a criterion, a failure with its transcripts for each no."""
    failures = sum(not one.passed for one in report.verdicts)
    skipped = sum(one.passed and bool(one.not_tested) for one in report.verdicts)
    counts = {"tests": len(report.verdicts), "failures": failures, "errors": 0, "skipped": skipped}
    suite = xml.Element("testsuite", {"name": "h2htalk gate"} | {name: str(number) for name, number in counts.items()})
    table = gate_table(report)
    for one, row in zip(report.verdicts, table.rows, strict=True):
        case = xml.SubElement(suite, "testcase", classname="gate", name=one.criterion.figure)
        if not one.passed:
            failure = xml.SubElement(case, "failure", message=printable("; ".join(one.reasons)))
            failure.text = "\n\n".join(f"{printable(t)}\n{printable_lines(text)}" for t, text in one.transcripts)
        elif one.not_tested:
            xml.SubElement(case, "skipped", message=one.not_tested)
        xml.SubElement(case, "system-out").text = ", ".join(
            f"{name} {printable(value_text(cell))}" for name, cell in zip(table.header, row, strict=True)
        )
    xml.indent(suite)
    return JUNIT.partition("\n")[0] + "\n" + xml.tostring(suite, encoding="unicode") + "\n"
