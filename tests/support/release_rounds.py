"""Items with votes, and a workspace with candidates and closed rounds on them, for tests of the release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.release.content import (
    ReleaseContent,
    ReleaseItem,
    VoteRow,
    item_texts,
    record_passages,
)
from h2htalk.curation.release.gate_context import GateContext
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.stage_folder import Kept
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.readers.certificates import Certificate
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.passages import SpokenPassage
from h2htalk.data.readers.reads import READ_GATES, Read
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from support.certificates import certifying_figures
from support.curations import dialogue, finished
from support.releases import scenario
from support.rounds import answer, crowd, expert, people
from support.spreadsheet_rounds import rows_of, spreadsheets, workbook_path, write_rows


def context(**spec: Any) -> GateContext:
    """What gates know of a release with these settings, which asks for no item."""
    given = {"quotas": {"total": 0}, "other_splits": (), **spec}
    return GateContext(ReleaseSpec("made", "1.0.0", "CC-BY-4.0", "W", **given))


CONTEXT = context()
GOLDEN = Path(__file__).parents[1] / "curation" / "golden"


def planted(name: str, of: str = "release") -> list[dict[str, Any]]:
    """The lines of `clean` or `defects` of a set."""
    return [
        json.loads(line)
        for line in (GOLDEN / f"{of}_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


@cache
def _ordinary(language: str) -> tuple[dict[str, Any], ...]:
    lines = (line["item"] for line in planted("clean"))
    return tuple(
        one
        for one in lines
        if one["language"] == language
        and one["subtask"] == "dialogue_base"
        and one["tags"]["risk"] == "none"
    )


def different(number: int, language: str = "en", **other: Any) -> Scenario:
    """A scenario of a dialogue and a person of its own, with texts that resemble no other's."""
    one = _ordinary(language)[number]
    reply = one["references"][0]
    return scenario(
        number, language, **{"inputs": one["inputs"], "references": [reply, f"{reply}!"], **other}
    )


def vote(
    item: str, kind: str, question: str, values: Sequence[str], form: str = "label"
) -> VoteRow:
    """A row with the decision by majority, or the mean."""
    counts = Counter(values).most_common()
    decision, rule = "", "no annotations"
    if values and form == "rating":
        decision = f"{sum(map(float, values)) / len(values):g}"
        rule = "mean"
    elif counts:
        tied = len(counts) > 1 and counts[0][1] == counts[1][1]
        decision, rule = ("", "tie") if tied else (counts[0][0], "majority")
    people = tuple(f"a{n}" for n in range(len(values)))
    return VoteRow(item, kind, question, form, people, tuple(values), decision, rule)


def kept(
    one: Scenario, given: Mapping[str, Any] | None = None, licences: Sequence[str] = ()
) -> ReleaseItem:
    """An item that everybody kept, but for `given`: `crowd_keep` and so on -> label -> votes, or a list of ratings."""
    votes: dict[str, Any] = {
        "crowd_subtask": {one.subtask: 20},
        "crowd_keep": {"keep": 20},
        "expert_keep": {"keep": 3},
    }
    votes |= {
        f"expert_{name}": [4, 5, 4] for name in ("accuracy", "consistency", "domain_compliance")
    }
    rows = []
    for name, values in {**votes, **(given or {})}.items():
        kind, _, question = name.partition("_")
        listed = (
            [label for label, n in values.items() for _ in range(n)]
            if isinstance(values, dict)
            else values
        )
        form = "label" if isinstance(values, dict) else "rating"
        rows.append(vote(one.id, kind, question, [str(value) for value in listed], form))
    if licences:
        notes = [{"origin": "answer:other-1", "licence": licence} for licence in licences]
        one = replace(one, metadata={**one.metadata, "references": notes})
    return ReleaseItem(one, tuple(rows))


def items(count: int, language: str = "en", first: int = 1, **other: Any) -> list[ReleaseItem]:
    """Items of as many dialogues."""
    return [kept(scenario(number, language, **other)) for number in range(first, first + count)]


def content(
    *test: ReleaseItem, dev: Sequence[ReleaseItem] = (), cases: Sequence[Case] = ()
) -> ReleaseContent:
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


def candidate(one: Scenario, reads: Mapping[str, Read] | None = None) -> Candidate:
    """A candidate with the scenario's references, the last of them written by a model; `reads`: by the reviewer."""
    origins = ["original", *("model:scripted" for _ in one.references[1:])]
    references = tuple(
        Reference(text, origin) for text, origin in zip(one.references, origins, strict=True)
    )
    first = Scenario.from_dict({**one.to_dict(), "references": [one.references[0]]})
    review: dict[str, Any] = {"status": "accept", "rubric": {"scores": {"accuracy": 5}}}
    if reads and one.id in reads:
        review["read"] = reads[one.id].to_dict()
    return Candidate(first, references, review)


def ordinary() -> list[Scenario]:
    """Four scenarios a language, which no gate but those of readers stops."""
    return [*(different(n) for n in range(1, 5)), *(different(n, "zh") for n in range(21, 25))]


def reading(reader: str, record: Scenario | Case, *texts: str, **changes: Any) -> Read:
    """A reading for every gate of the passages of a record that have these texts, and of others of the user."""
    passages = record_passages(record)
    read = [passage for passage in passages if passage.text in texts]
    read += [
        SpokenPassage("user", text)
        for text in texts
        if text not in {passage.text for passage in passages}
    ]
    fields: dict[str, Any] = {
        "item": record.id,
        "reader": reader,
        "date": "2026-11-20",
        "gates": READ_GATES,
        "passages": tuple(sorted({passage.hash for passage in read})),
        "prompt": "" if reader.startswith("people:") else "question-1",
    }
    return Read(**(fields | changes))


def certificate(reader: str, **changes: Any) -> Certificate:
    """A certificate that lets a reader count for every gate in both languages."""
    fields: dict[str, Any] = {
        "reader": reader,
        "prompt": "question-1",
        "set": check_set_fingerprint(),
        "date": "2026-11-19",
        "figures": certifying_figures(),
        "gates": {"en": READ_GATES, "zh": READ_GATES},
    }
    return Certificate(**(fields | changes))


def read_by_guard(
    workspace: Workspace, scenarios: Sequence[Scenario], reader: str = "guard:scripted:g"
) -> None:
    """The stage `safety` as a guard leaves it that read every dialogue of these scenarios and found nothing.

    Their references are taken for messages of the dialogues.
    """
    kept = []
    for number, one in enumerate(scenarios):
        name = str(one.provenance["dialogue"])
        texts = [turn.content for turn in item_texts(one)]
        read = reading(reader, one, *texts, item=name)
        kept.append(Kept({**dialogue(number, *texts), "id": name}, audit={"read": read.to_dict()}))
    finished(workspace.path, "safety", kept)


def voted(
    folder: Path,
    scenarios: Sequence[Scenario] | None = None,
    *,
    crowd_says: Answers = lambda item: crowd(),
    experts_say: Answers = lambda item: expert(),
    reviewed: Mapping[str, Read] | None = None,
    folders: tuple[str, str] = ("crowd", "experts"),
    ask: Sequence[str] = (),
) -> Workspace:
    """A workspace `W` with a crowd round and an expert round, both closed, of three annotators each.

    `reviewed`: the reviewer's readings of candidates, by id; `folders`: of the two rounds; `ask`: what both ask too.
    """
    chosen = scenarios or ordinary()
    workspace = finished(
        folder / "W", "compose", [candidate(one, reviewed).to_dict() for one in chosen]
    )
    annotators = people(folder / "people.csv", *NAMES)
    annotators.write_text(annotators.read_text().replace(",en,", ",en zh,"))
    options = {"annotators": str(annotators), "overlap": 3, "planted": False, "ask": list(ask)}
    crowd_path, expert_path = (folder / name for name in folders)
    for path in (crowd_path, expert_path):
        path.parent.mkdir(exist_ok=True)
    open_round(make_spec("crowd", str(workspace.path), options), crowd_path)
    close(crowd_path, crowd_says)
    open_round(make_spec("expert", str(crowd_path), options), expert_path)
    close(expert_path, experts_say)
    return workspace


def close(path: Path, says: Answers) -> None:
    """Answer everything and close the round."""
    answer(path, lambda item, annotator: says(item), NAMES)
    close_round(path)


def write_spec(folder: Path, settings: str = "", *, quota: int = 4, version: str = "1.0.0") -> Path:
    path = folder / f"release-{version}.toml"
    path.write_text(SPEC.format(settings=settings, quota=quota, version=version), encoding="utf-8")
    return path


# What an owner says of a release that nobody has read.
ALLOW_UNREAD = [f"{gate}:unread=made for tests" for gate in READ_GATES]


def change_answer(
    path: Path, item: str, column: str, value: str, annotators: Sequence[str] = NAMES
) -> None:
    """Change one cell in the spreadsheets of some annotators."""
    for spreadsheet in spreadsheets(RoundFolder(path)):
        if spreadsheet.annotator.name in annotators:
            file = workbook_path(RoundFolder(path), spreadsheet.stem)
            rows = rows_of(file)
            for row, assignment in zip(rows, spreadsheet.assignments, strict=True):
                if assignment.item == item:
                    row[column] = value
            write_rows(file, rows)
