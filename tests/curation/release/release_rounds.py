"""Items with votes, and a workspace with candidates and closed rounds on them, for tests of the release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from curation_made import finished
from releases_made import scenario
from rounds_made import answer, crowd, expert, people
from spreadsheet_rounds import rows_of, spreadsheets, workbook_path, write_rows

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.release.content import ReleaseContent, ReleaseItem, VoteRow
from h2htalk.curation.release.gates import GateContext
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec


def context(**spec: Any) -> GateContext:
    """What gates know of a release with these settings, which asks for no item."""
    given = {"quotas": {"total": 0}, "other_splits": (), **spec}
    return GateContext(ReleaseSpec("made", "1.0.0", "CC-BY-4.0", "W", **given))


CONTEXT = context()
GOLDEN = Path(__file__).parents[1] / "golden"


def planted(name: str, of: str = "release") -> list[dict[str, Any]]:
    """The lines of `clean` or `defects` of a set."""
    return [json.loads(line) for line in (GOLDEN / f"{of}_{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def _ordinary(language: str) -> tuple[dict[str, Any], ...]:
    lines = (line["item"] for line in planted("clean"))
    return tuple(
        one
        for one in lines
        if one["language"] == language and one["subtask"] == "dialogue_base" and one["tags"]["risk"] == "none"
    )


def different(number: int, language: str = "en", **other: Any) -> Scenario:
    """A scenario of a dialogue and a person of its own, with texts that resemble no other's."""
    one = _ordinary(language)[number]
    reply = one["references"][0]
    return scenario(number, language, **{"inputs": one["inputs"], "references": [reply, f"{reply}!"], **other})


def vote(item: str, kind: str, question: str, values: Sequence[str], form: str = "label") -> VoteRow:
    """A row with the decision by majority, or the mean."""
    counts = Counter(values).most_common()
    decision, rule = "", "no annotations"
    if values and form == "rating":
        decision, rule = f"{sum(map(float, values)) / len(values):g}", "mean"
    elif counts:
        tied = len(counts) > 1 and counts[0][1] == counts[1][1]
        decision, rule = ("", "tie") if tied else (counts[0][0], "majority")
    people = tuple(f"a{n}" for n in range(len(values)))
    return VoteRow(item, kind, question, form, people, tuple(values), decision, rule)


def kept(one: Scenario, given: Mapping[str, Any] | None = None, licences: Sequence[str] = ()) -> ReleaseItem:
    """An item that everybody kept, but for `given`: `crowd_keep` and so on -> label -> votes, or a list of ratings."""
    votes: dict[str, Any] = {"crowd_subtask": {one.subtask: 20}, "crowd_keep": {"keep": 20}, "expert_keep": {"keep": 3}}
    votes |= {f"expert_{name}": [4, 5, 4] for name in ("accuracy", "consistency", "domain_compliance")}
    rows = []
    for name, values in {**votes, **(given or {})}.items():
        kind, _, question = name.partition("_")
        listed = [label for label, n in values.items() for _ in range(n)] if isinstance(values, dict) else values
        form = "label" if isinstance(values, dict) else "rating"
        rows.append(vote(one.id, kind, question, [str(value) for value in listed], form))
    if licences:
        notes = [{"origin": "answer:other-1", "licence": licence} for licence in licences]
        one = replace(one, metadata={**one.metadata, "references": notes})
    return ReleaseItem(one, tuple(rows))


def items(count: int, language: str = "en", first: int = 1, **other: Any) -> list[ReleaseItem]:
    """Items of as many dialogues."""
    return [kept(scenario(number, language, **other)) for number in range(first, first + count)]


def content(*test: ReleaseItem, dev: Sequence[ReleaseItem] = (), cases: Sequence[Case] = ()) -> ReleaseContent:
    """A release of these items."""
    splits = {"test": tuple(test)} | ({"dev": tuple(dev)} if dev else {})
    return ReleaseContent(splits, tuple(cases), bundled_personas())


NAMES = ("annalena", "bogumil", "chiara")
# Item -> the answers of an annotator.
Answers = Callable[[str], Mapping[str, str]]
SPEC = """
name = "made"
version = "{version}"
licence = "CC-BY-4.0"
description = "Made for tests."
workspace = "W"
other_splits = []
{settings}
[quotas]
total = 0
dialogue_base = {quota}
"""


def candidate(one: Scenario) -> Candidate:
    """A candidate with the scenario's references, the last of them written by a model."""
    origins = ["original", *("model:scripted" for _ in one.references[1:])]
    references = tuple(Reference(text, origin) for text, origin in zip(one.references, origins, strict=True))
    first = Scenario.from_dict({**one.to_dict(), "references": [one.references[0]]})
    return Candidate(first, references, {"status": "accept", "rubric": {"scores": {"accuracy": 5}}})


def voted(
    folder: Path,
    scenarios: Sequence[Scenario] | None = None,
    *,
    crowd_says: Answers = lambda item: crowd(),
    experts_say: Answers = lambda item: expert(),
) -> Workspace:
    """A workspace `W` with a crowd round and an expert round, both closed, of three annotators each."""
    chosen = scenarios or [*(different(n) for n in range(1, 5)), *(different(n, "zh") for n in range(21, 25))]
    workspace = finished(folder / "W", "compose", [candidate(one).to_dict() for one in chosen])
    annotators = people(folder / "people.csv", *NAMES)
    annotators.write_text(annotators.read_text().replace(",en,", ",en zh,"))
    options = {"annotators": str(annotators), "overlap": 3}
    open_round(make_spec("crowd", str(workspace.path), options), folder / "crowd")
    close(folder / "crowd", crowd_says)
    open_round(make_spec("expert", str(folder / "crowd"), options), folder / "experts")
    close(folder / "experts", experts_say)
    return workspace


def close(path: Path, says: Answers) -> None:
    """Answer everything and close the round."""
    answer(path, lambda item, annotator: says(item), NAMES)
    close_round(path)


def write_spec(folder: Path, settings: str = "", *, quota: int = 4, version: str = "1.0.0") -> Path:
    path = folder / f"release-{version}.toml"
    path.write_text(SPEC.format(settings=settings, quota=quota, version=version), encoding="utf-8")
    return path


def change_answer(path: Path, item: str, column: str, value: str, annotators: Sequence[str] = NAMES) -> None:
    """Change one cell in the spreadsheets of some annotators."""
    for spreadsheet in spreadsheets(RoundFolder(path)):
        if spreadsheet.annotator.name in annotators:
            file = workbook_path(RoundFolder(path), spreadsheet.stem)
            rows = rows_of(file)
            for row, assignment in zip(rows, spreadsheet.assignments, strict=True):
                if assignment.item == item:
                    row[column] = value
            write_rows(file, rows)
