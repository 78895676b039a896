"""Whether a round's files still fit together: somebody may have edited one, or put an old copy back."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from h2htalk.data.files import json_line, read_jsonl
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, questions_for
from h2htalk.rounds.round_folder import RoundFolder

_BACK = "put the file back as it was"


def validate_round(folder: RoundFolder) -> None:
    """Raise DataError, with file and line where it is one, unless a round can be read and its files fit together.

    Assignment sets must speak of the round's items and annotators, the items must be those that went out, and every
    line of annotations.jsonl must be an answer to a question of this round, by one of its annotators. A copy without
    `private` says nothing of annotators, so they are not compared.

    Raises:
        DataError: as said.
        RoundError, ConfigError: no round is there, or its settings cannot be read.
    """
    # Annotators are written before the assignment sets that speak of them, and assignment sets before what comes of
    # them: read the other way about, the files fit together though another process adds to them meanwhile.
    spec, events, answers = folder.spec(), folder.events(), list(folder.answer_lines())
    assignment_sets, annotators, items = folder.assignment_sets(), folder.annotators(), folder.items()
    by_id = {item.id: item for item in items}
    _refuse_twins(f"{folder.path / 'items.jsonl'}: the item", (item.id for item in items))
    listed = (folder.private / "annotators.jsonl").is_file()
    _refuse_twins(
        f"{folder.private / 'annotators.jsonl'}: the annotator", (annotator.name for annotator in annotators)
    )
    people = {annotator.id for annotator in annotators} if listed else None
    if not assignment_sets and any(event["event"] in ("opened", "closed", "reopened") for event in events):
        raise DataError(f"{folder.path / 'assignment_sets.jsonl'}: says nothing of what went out; {_BACK}")
    for number, assignment_set in enumerate(assignment_sets, 1):
        if assignment_set.number != number:
            raise DataError(
                f"{folder.path / 'assignment_sets.jsonl'}: assignment set {assignment_set.number} "
                f"stands where assignment set {number} belongs; {_BACK}"
            )
        out = {
            *assignment_set.wanted,
            *(one for group in assignment_set.groups for one in group),
            *(s.item for s in assignment_set.assignments),
        }
        if lost := sorted(out - by_id.keys()):
            raise DataError(
                f"{folder.path / 'items.jsonl'}: the item {quoted(lost[0])} went out to annotators and is not there "
                f"({len(lost)} such items); {_BACK}"
            )
        if people is not None and (
            gone := {assignment.annotator for assignment in assignment_set.assignments} - people
        ):
            raise DataError(
                f"{folder.private / 'annotators.jsonl'}: {len(gone)} annotators who were given items "
                f"are not there; {_BACK}"
            )
    # Before anything went out, opening the round once more may lay down others.
    lines = (record for _, record in read_jsonl(folder.path / "items.jsonl"))
    if assignment_sets and folder.facts().get("items_sha256") != fingerprint(lines):
        raise DataError(
            f"{folder.path / 'items.jsonl'}: these are not the items that went out to annotators: a text, a label or a "
            f"gold answer has changed; {_BACK}"
        )
    questions = {one.name: one for one in questions_for(spec.kind, [item.labels for item in items])}
    name = folder.name
    for where, answer in answers:
        if answer.round != name:
            raise DataError(f"{where}: an answer of the round {quoted(answer.round)}, not of {name}; {_BACK}")
        if people is not None and answer.annotator not in people:
            raise DataError(f"{where}: {quoted(answer.annotator)} is no annotator of this round; {_BACK}")
        if problem := _problem(answer, by_id, questions):
            raise DataError(f"{where}: {problem}; {_BACK}")


def require_names(folder: RoundFolder) -> None:
    """Raise DataError where something went out to annotators whose list is gone: nothing they send can be read then."""
    path = folder.private / "annotators.jsonl"
    if folder.assignment_sets() and not path.is_file():
        raise DataError(
            f"{path}: is gone, and without it nobody can say whose answers come in; put the round's folder `private` "
            "back as it was"
        )


def fingerprint(records: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over items as JSON holds them, in the order of their ids, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for record in sorted(records, key=lambda record: str(record["id"])):
        digest.update(json_line(record).encode())
    return digest.hexdigest()[:16]


def _problem(answer: Annotation, items: Mapping[str, Item], questions: Mapping[str, Question]) -> str:
    """What is wrong with an answer; empty where nothing is."""
    value, question = answer.value, questions.get(answer.question)
    if answer.item not in items:
        return f"{quoted(answer.item)} is no item of this round"
    if question is None and answer.question != SKIPPED:
        return f"no question of this round is called {quoted(answer.question)}"
    if value is None or (question is None and value == "yes"):
        return ""
    if question is None:
        return f"{quoted(value)} is no skip: it must be yes or null"
    try:
        read = question.read(list(value) if isinstance(value, tuple) else value)
    except RoundError as error:
        return str(error)
    # "4" is read as the rating 4; stored, some figures would count it and others not.
    same = set(read) == set(value) if isinstance(read, tuple) and isinstance(value, tuple) else read == value
    if not same or type(read) is not type(value):
        return f"{quoted(value)} is no {question.name} as it is stored; that would be {quoted(read)}"
    labels = items[answer.item].labels
    if question.name == "label" and labels and value not in labels:
        return f"{quoted(value)} is none of this item's choices: {', '.join(labels)}"
    return ""


def _refuse_twins(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{what} {quoted(twice[0])} stands there twice; {_BACK}")
