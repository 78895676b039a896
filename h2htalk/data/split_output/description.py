"""Describe a split: counts by subtask or kind, language and tags, and lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from h2htalk.data.case import Case
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT
from h2htalk.errors import counted

_TAGS = ("emotion", "complexity", "interaction", "risk")
_CASE_FIELDS = ("study", "state", "degree", "request_type", "persona")


def describe_split(split: Split) -> str:
    """Describe a split: name, licence, fingerprint, counts, tags and lengths.

    Scenarios are counted by subtask beside Table 1's numbers, cases and their user turns by kind.
    """
    number = counted(len(split.cases), "case") if split.cases else f"{len(split.scenarios):,} scenarios"
    lines = [
        f"{split.name} {split.version}: {number}, {split.licence}",
        *([split.description] if split.description else []),
        f"fingerprint {split.fingerprint}; personas {', '.join(split.personas)}",
        *([f"from {split.source}" + (f", commit {split.commit}" if split.commit else "")] if split.source else []),
        "",
        *(_describe_cases(split.cases) if split.cases else _describe_scenarios(split)),
        *_describe_lengths(split.scenarios),
    ]
    return "\n".join(lines) + "\n"


def _describe_cases(cases: Sequence[Case]) -> Iterator[str]:
    languages = sorted({case.language for case in cases})
    yield f"{'kind':<28}" + "".join(f"{language:>7}{'turns':>7}" for language in languages)
    for kind in (*sorted({case.kind for case in cases}), "total"):
        own = [case for case in cases if kind in (case.kind, "total")]
        counts = [[sum(1 for _ in case.turns()) for case in own if case.language == language] for language in languages]
        yield f"{kind:<28}" + "".join(f"{len(turns):>7,}{sum(turns):>7,}" for turns in counts)
    for name in _CASE_FIELDS:
        values = Counter(str(getattr(case, name)) for case in cases if getattr(case, name) != "")
        if len(values) > 1:
            yield from _counts(name, values)
    yield from _counts("points", Counter(point.aspect for case in cases for point in case.points))
    yield from _counts("facts", Counter(fact.kind for case in cases for fact in case.facts))


def _describe_scenarios(split: Split) -> Iterator[str]:
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    languages = sorted({s.language for s in split.scenarios})
    yield f"{'subtask':<28}" + "".join(f"{language:>7}" for language in languages) + f"{'Table 1':>10}"
    for subtask in SUBTASKS.values():
        row = "".join(f"{counts[subtask.name, language]:>7,}" for language in languages)
        yield f"{subtask.name:<28}{row}{subtask.count:>10,}"
    totals = Counter(s.language for s in split.scenarios)
    row = "".join(f"{totals[language]:>7,}" for language in languages)
    yield f"{'total':<28}{row}{TOTAL_COUNT:>10,}"
    several = sum(len(s.references) > 1 for s in split.scenarios)
    private = sum(not s.references for s in split.scenarios)
    if several or private:
        yield from ("", f"references: {several:,} of the scenarios have several, {private:,} have none (private)")
    if split.references_sha256:
        yield f"the file of the private references has the SHA-256 {split.references_sha256}"
    for tag in _TAGS:
        yield from _counts(tag, Counter(str(getattr(s.tags, tag)) for s in split.scenarios))


def _counts(name: str, values: Counter[str]) -> Iterator[str]:
    if values:
        shown = ", ".join(f"{value} {n:,}" for value, n in sorted(values.items(), key=lambda p: (-p[1], p[0])))
        yield from ("", f"{name}: {shown}")


def _describe_lengths(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Characters of references and messages of histories, by language: median and range."""
    for language in sorted({s.language for s in scenarios}):
        own = [s for s in scenarios if s.language == language]
        references = _range(len(text) for s in own for text in s.references)
        histories = _range(len(s.turns) for s in own if s.turns)
        yield from ("", f"lengths, {language}: references {references} characters; histories {histories} messages")


def _range(values: Iterable[int]) -> str:
    numbers = sorted(values)
    return f"{median(numbers):g} ({numbers[0]:,} to {numbers[-1]:,})" if numbers else "-"
