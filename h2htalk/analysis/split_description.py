"""Describe a split in a screen of text: what `split info` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from h2htalk.data.case import Case
from h2htalk.data.scenario import TAGS
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.tables import Table

CASE_FIELDS = ("study", "state", "degree", "request_type", "persona")


def describe_split(split: Split) -> str:
    """Describe a split: name, licence, fingerprint, tags, lengths, and counts by subtask (beside Table 1's) or kind."""
    if split.cases:
        number = counted(len(split.cases), "case")
        counts = _count_cases(split.cases)
    else:
        number = f"{len(split.scenarios):,} scenarios"
        counts = _count_scenarios(split)
    paragraphs = [_describe_origin(split, number)]
    paragraphs += filter(None, counts)
    paragraphs.append(_lengths(split))
    return "\n\n".join(paragraphs) + "\n"


def _describe_origin(split: Split, number: str) -> str:
    lines = [f"{split.name} {split.version}: {number}, {split.licence}"]
    if split.description:
        lines.append(split.description)
    personas = ", ".join(split.personas)
    lines.append(f"fingerprint {split.fingerprint}; personas {personas}")
    if split.source:
        commit = f", commit {split.commit}" if split.commit else ""
        lines.append(f"from {split.source}{commit}")
    return "\n".join(lines)


def _count_cases(cases: Sequence[Case]) -> Iterator[str]:
    """Count cases and turns by kind and language, then every field that has several values."""
    columns: dict[str, Counter[str]] = {}
    for language in sorted({case.language for case in cases}):
        kinds: Counter[str] = Counter()
        turns: Counter[str] = Counter()
        for case in cases:
            if case.language == language:
                kinds[case.kind] += 1
                turns[case.kind] += len(list(case.turns()))
        columns[language] = kinds
        columns[f"{language} turns"] = turns
    yield _table("kind", columns, sorted({case.kind for case in cases}))
    for name in CASE_FIELDS:
        values = [getattr(case, name) for case in cases]
        counts = Counter(str(value) for value in values if value != "")
        if len(counts) > 1:
            yield _list_counts(name, counts)
    aspects: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    for case in cases:
        aspects.update(point.aspect for point in case.points)
        facts.update(fact.kind for fact in case.facts)
    yield _list_counts("points", aspects)
    yield _list_counts("facts", facts)


def _count_scenarios(split: Split) -> Iterator[str]:
    """Count scenarios by subtask and language, references that are several or private, and each tag."""
    scenarios = split.scenarios
    columns: dict[str, Mapping[str, int]] = {}
    for language in sorted({s.language for s in scenarios}):
        columns[language] = Counter(s.subtask for s in scenarios if s.language == language)
    columns["Table 1"] = {subtask.name: subtask.count for subtask in SUBTASKS.values()}
    yield _table("subtask", columns, SUBTASKS)
    several = sum(len(s.references) > 1 for s in scenarios)
    private = sum(not s.references for s in scenarios)
    if several or private:
        yield f"references: {several:,} of the scenarios have several, {private:,} have none (private)"
    if split.references_sha256:
        yield f"the file of the private references has the SHA-256 {split.references_sha256}"
    for tag in TAGS:
        values = Counter(str(getattr(s.tags, tag)) for s in scenarios)
        yield _list_counts(tag, values)


def _table(
    first_heading: str, columns: Mapping[str, Mapping[str, int]], names: Iterable[str]
) -> str:
    """Format a row for each name with its counts, then the sums."""
    rows: list[list[str | int]] = []
    for name in names:
        counts = [column.get(name, 0) for column in columns.values()]
        rows.append([name, *counts])
    sums = [sum(column.values()) for column in columns.values()]
    rows.append(["total", *sums])
    return Table("", [first_heading, *columns], rows).to_terminal()


def _list_counts(name: str, counts: Counter[str]) -> str:
    """List values with their counts in a line, the most frequent first; an empty text where there are none."""
    if not counts:
        return ""
    in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    values = ", ".join(f"{value} {count:,}" for value, count in in_order)
    return f"{name}: {values}"


def _lengths(split: Split) -> str:
    """Characters of references and messages of histories, by language: median and range."""
    rows: list[list[str | int]] = []
    for language in sorted({s.language for s in split.scenarios}):
        characters: list[int] = []
        messages: list[int] = []
        for scenario in split.scenarios:
            if scenario.language == language:
                characters += map(len, scenario.references)
                messages.append(len(scenario.turns))
        columns = {
            "characters of a reference": characters,
            "messages of a history": [count for count in messages if count],
        }
        for name, lengths in columns.items():
            if lengths:
                middle = f"{median(lengths):,g}"
                rows.append([f"{language}: {name}", middle, min(lengths), max(lengths)])
    if not rows:
        return ""
    return Table("", ("lengths", "median", "shortest", "longest"), rows).to_terminal()
