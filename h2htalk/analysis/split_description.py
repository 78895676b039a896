"""Describe a split in a screen of text: what `split info` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from h2htalk.data.scenario import TAGS
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.tables import Table


def describe_split(split: Split) -> str:
    """Describe a split: name, licence, fingerprint, tags, lengths, and counts by subtask (beside Table 1's) or kind."""
    number = (
        counted(len(split.cases), "case") if split.cases else f"{len(split.scenarios):,} scenarios"
    )
    head = [
        f"{split.name} {split.version}: {number}, {split.licence}",
        *filter(None, [split.description]),
    ]
    head.append(f"fingerprint {split.fingerprint}; personas {', '.join(split.personas)}")
    if split.source:
        head.append(f"from {split.source}" + (f", commit {split.commit}" if split.commit else ""))
    body = _cases(split) if split.cases else _scenarios(split)
    return "\n\n".join(["\n".join(head), *filter(None, body), _lengths(split)]) + "\n"


def _cases(split: Split) -> Iterator[str]:
    """Count cases and turns by kind and language, then every field that has several values."""
    cases, columns = split.cases, {}
    for language in sorted({case.language for case in cases}):
        own = [case for case in cases if case.language == language]
        columns[language] = Counter(case.kind for case in own)
        columns[f"{language} turns"] = Counter(case.kind for case in own for _ in case.turns())
    yield _table("kind", columns, sorted({case.kind for case in cases}))
    for name in ("study", "state", "degree", "request_type", "persona"):
        values = Counter(str(getattr(case, name)) for case in cases if getattr(case, name) != "")
        if len(values) > 1:
            yield _counts(name, values)
    yield _counts("points", Counter(point.aspect for case in cases for point in case.points))
    yield _counts("facts", Counter(fact.kind for case in cases for fact in case.facts))


def _scenarios(split: Split) -> Iterator[str]:
    """Count scenarios by subtask and language, references that are several or private, and each tag."""
    scenarios = split.scenarios
    languages = sorted({s.language for s in scenarios})
    columns = {one: Counter(s.subtask for s in scenarios if s.language == one) for one in languages}
    yield _table(
        "subtask", columns | {"Table 1": {s.name: s.count for s in SUBTASKS.values()}}, SUBTASKS
    )
    several = sum(len(s.references) > 1 for s in scenarios)
    private = sum(not s.references for s in scenarios)
    if several or private:
        yield f"references: {several:,} of the scenarios have several, {private:,} have none (private)"
    if split.references_sha256:
        yield f"the file of the private references has the SHA-256 {split.references_sha256}"
    for tag in TAGS:
        yield _counts(tag, Counter(str(getattr(s.tags, tag)) for s in scenarios))


def _table(head: str, columns: Mapping[str, Mapping[str, int]], names: Iterable[str]) -> str:
    """A row a name with its counts, then the sums."""
    rows = [(name, *(counts.get(name, 0) for counts in columns.values())) for name in names]
    total = ("total", *(sum(counts.values()) for counts in columns.values()))
    return Table("", (head, *columns), (*rows, total)).to_terminal()


def _counts(name: str, values: Counter[str]) -> str:
    shown = ", ".join(
        f"{value} {n:,}" for value, n in sorted(values.items(), key=lambda p: (-p[1], p[0]))
    )
    return f"{name}: {shown}" if values else ""


def _lengths(split: Split) -> str:
    """Characters of references and messages of histories, by language: median and range."""
    rows = []
    for language in sorted({s.language for s in split.scenarios}):
        own = [s for s in split.scenarios if s.language == language]
        characters = [len(text) for s in own for text in s.references]
        messages = [len(s.turns) for s in own if s.turns]
        for what, lengths in (
            ("characters of a reference", characters),
            ("messages of a history", messages),
        ):
            if lengths:
                rows.append(
                    (f"{language}: {what}", f"{median(lengths):,g}", min(lengths), max(lengths))
                )
    return (
        Table("", ("lengths", "median", "shortest", "longest"), rows).to_terminal() if rows else ""
    )
