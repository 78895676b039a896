"""A workspace with candidates, and closed rounds on them, for tests of the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from curation_made import finished
from release_items import different
from rounds_made import answer, crowd, expert, people
from spreadsheet_rounds import rows_of, spreadsheets, workbook_path, write_rows

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.workspace import Workspace
from h2htalk.data.scenario import Scenario
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec

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
