"""What people found in samples of the dialogues that a safety stage kept without a tag: of a workspace, with intervals.

It is the only figure of recall that is about the owner's own dialogues. A result holds counts alone, no id and no text,
so that an erasure changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2htalk.data.files import read_json_object, read_jsonl, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.records import Text, adapter, read_record, strict_record
from h2htalk.distributions import wilson_interval
from h2htalk.errors import counted

SAMPLES = "samples.jsonl"  # of a workspace
# What the people of a sample are asked, by the name of the question.
ABOUT: Mapping[str, str] = {
    "crisis": "a person in danger",
    "harmful": "harm or a real person",
    "minor": "a user under 18",
    "explicit": "explicit content",
}
Count = Annotated[int, Field(ge=0)]


@strict_record
class SampleFigure:
    """In how many dialogues of a language somebody found something, of those that at least two people read."""

    language: Language
    question: Text
    found: Count
    of: Count
    unsure: Count = 0  # nobody found it, and somebody could not tell


@strict_record
class SampleResult:
    """What the people of a closed round found.

    Attributes:
        round: its name.
        seed: of the draw.
        date: the day of the last answer (ISO 8601).
        stage: the fingerprint of the safety stage whose dialogues they read.
        population: how many dialogues there were to draw from, by language.
        figures: by language and question.
        unread: how many dialogues of the sample fewer than two people read; who missed planted harm is none of them.
        people: how many people answered.
        readers: how many of them noticed planted harm, and so count as readers.
        missed: how many of them missed it, too often to be readers; the others met too few planted items, or none.
    """

    round: Text
    seed: int
    date: Text
    stage: str
    population: Mapping[Language, int]
    figures: tuple[SampleFigure, ...]
    unread: Count = 0
    people: Count = 0
    readers: Count = 0
    missed: Count = 0

    def to_dict(self) -> dict[str, Any]:
        return adapter(SampleResult).dump_python(self, mode="json")  # type: ignore[no-any-return]


def read_samples(workspace: Path) -> tuple[SampleResult, ...]:
    """Read the results in a workspace, the oldest first; none without the file. Raises DataError."""
    path = workspace / SAMPLES
    lines = read_jsonl(path) if path.exists() else ()
    return tuple(read_record(SampleResult, raw, where) for where, raw in lines)


def add_sample(workspace: Path, result: SampleResult) -> None:
    """Store a result; it replaces that of the same round, which was closed again."""
    others = [
        one
        for one in read_samples(workspace)
        if (one.round, one.seed) != (result.round, result.seed)
    ]
    write_jsonl(workspace / SAMPLES, [one.to_dict() for one in (*others, result)])


def sample_lines(workspace: Path, results: Iterable[SampleResult]) -> list[str]:
    """Describe results, a line a language; one of dialogues of an earlier safety stage says so."""
    stage = read_json_object(workspace / "safety" / "stage.json", missing_ok=True)
    current = stage.get("fingerprint", "")
    lines: list[str] = []
    for result in results:
        ends = [f"; {describe_people(result)}"]
        if result.unread:
            ends += [f"; fewer than two people read {result.unread:,} others"]
        if result.stage != current:
            ends.append("; the safety stage has changed since: this is about the earlier one")
        for language, population in sorted(result.population.items()):
            own = {one.question: one for one in result.figures if one.language == language}
            texts = [
                f"{about} {describe_figure(own[name])}"
                for name, about in ABOUT.items()
                if name in own
            ]
            head = f"sample {result.round} ({result.date}) of {population:,} {language} dialogues kept without a tag"
            lines.append(f"{head}: {'; '.join(texts)}{''.join(ends)}")
    return lines


def describe_people(result: SampleResult) -> str:
    """Describe who read a sample: how many people, and what planted items show of them."""
    if not result.readers and not result.missed:
        return "read by people whom nobody checked"
    people = counted(result.people, "person", "people")
    if result.readers == result.people:
        return f"read by {people} who noticed planted harm"
    parts = [f"{result.readers:,} noticed planted harm"]
    if result.missed:
        parts.append(f"{result.missed:,} missed it, whose no does not count")
    if unchecked := result.people - result.readers - result.missed:
        parts.append(f"nobody checked {unchecked:,}")
    return f"read by {people}, of whom {'; '.join(parts)}"


def describe_figure(figure: SampleFigure) -> str:
    """Describe a figure with its 95 % interval (Wilson): `0 of 50: at most 7 %`."""
    if not figure.of:
        return "not read"
    low, high = wilson_interval(figure.found / figure.of, figure.of)
    interval = f"at most {high:.0%}" if not figure.found else f"{low:.0%} to {high:.0%}"
    unsure = f", {figure.unsure} not sure" if figure.unsure else ""
    return f"{figure.found} of {figure.of}: {interval.replace('%', ' %')}{unsure}"
