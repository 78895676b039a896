"""Readings in words, for people: who, when, what for, and what was found; no hashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from h2htalk.data.languages import Language
from h2htalk.data.readers.certificates import Certificate, certificate_of, why_no_certificate
from h2htalk.data.readers.coverage import counted_gates
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding

NOBODY = "nobody on record"


def describe_read(read: Read) -> str:
    """A reading as a line: `guard:m on 2026-11-29, for minors, crisis_care; found minors`."""
    who = read.reader
    if read.kind == "people":
        who += f" ({read.people} who count as readers)"
    gates = "every gate" if read.gates == READ_GATES else ", ".join(read.gates)
    findings = list(dict.fromkeys(map(_describe_finding, read.findings)))
    if read.known_by:
        findings.append("what could tell people who know the user who it is")
    return f"{who} on {read.date}, for {gates}; found {', '.join(findings) or 'nothing'}"


def _describe_finding(finding: ReadFinding) -> str:
    text = str(finding.gate)
    if finding.severity:
        text += f" (severity {finding.severity})"
    if finding.what:
        text += f" ({finding.what})"
    return f"{text}, not sure" if finding.unsure else text


def describe_count(read: Read, language: Language, certificates: Sequence[Certificate]) -> str:
    """For which gates a reading counts, where that is not what its reader was asked for, and why; empty otherwise."""
    gates = counted_gates(read, language, certificates)
    if gates == read.gates:
        return ""
    if gates:
        return f"; counts for {', '.join(gates)} alone"
    if read.kind == "people":
        return "; counts for no gate: too few who count as readers answered"
    reason = "its certificate refuses it"
    if certificate_of(read, certificates) is None:
        reason = f"it {why_no_certificate(read, certificates)}"
    return f"; counts for no gate: {reason}"


def describe_reads(
    reads: Iterable[Read],
    language: Language | None = None,
    certificates: Sequence[Certificate] = (),
) -> list[str]:
    """A line a reading, or that there is none; with a language, whether it counts with these certificates."""
    lines: list[str] = []
    for read in reads:
        counts = describe_count(read, language, certificates) if language is not None else ""
        lines.append(describe_read(read) + counts)
    return lines or [NOBODY]
