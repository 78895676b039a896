"""Responses, as the server's database holds them, become answers: pure reading, nothing is asked here."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.round_folder import now

# Responses of one stranger that are named one by one.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class ArgillaResponse:
    """What one user said of one record.

    Attributes:
        dataset: the name that we gave it.
        item: the item's id.
        user: id on the server.
        status: `submitted`, `discarded` or `draft`.
        values: by question, as the server holds them.
        when: of the last change, ISO 8601 in UTC.
        id: on the server.
    """

    dataset: str
    item: str
    user: str
    status: str
    values: Mapping[str, object]
    when: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """Answers and what stands beside them, as `platforms.Collected`.

    Attributes:
        touched: of what was discarded in advance, where the annotator has said something since, as (dataset, item,
            annotator id): a discard there is their own from now on.
    """

    answers: tuple[Annotation, ...]
    mistakes: tuple[str, ...]
    notes: tuple[str, ...]
    started: Mapping[str, int]
    touched: frozenset[tuple[str, str, str]] = frozenset()


def responses_of(
    dataset: str, records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> list[ArgillaResponse]:
    """The responses on a dataset's records.

    Args:
        dataset: the name that we gave it.
        records: as the server lists them, with responses.
        items: record id -> item id; records of nobody's are left out.
    """
    return [
        ArgillaResponse(
            dataset=dataset,
            item=items[record["external_id"]],
            user=str(response["user_id"]),
            status=str(response["status"]),
            values={name: one.get("value") for name, one in (response.get("values") or {}).items()},
            when=_utc(response.get("updated_at")),
            id=str(response.get("id", "")),
        )
        for record in records
        if record.get("external_id") in items
        for response in record.get("responses") or ()
    ]


def read_responses(
    round: str,
    responses: Iterable[ArgillaResponse],
    *,
    items: Mapping[str, Item],
    questions: Sequence[Question],
    annotators: Mapping[str, Annotator],
    names: Mapping[str, str],
    aside: Collection[tuple[str, str, str]],
) -> Read:
    """Answers of the round's annotators, skips, and every response that cannot be counted.

    Where two assignment sets put an item before one annotator, what they submitted last counts.

    Args:
        round: its name.
        responses: of all its datasets.
        items: by id.
        questions: of the round.
        annotators: user id -> annotator; of annotators alone.
        names: user id -> user name, of everybody on the server.
        aside: (dataset, item, annotator id) that were discarded in advance: no skips of theirs while they say nothing.
    """
    mistakes: list[str] = []
    notes: dict[str, int] = {}
    started: dict[str, int] = {}
    strangers: dict[str, list[ArgillaResponse]] = {}
    touched: set[tuple[str, str, str]] = set()
    chosen: dict[tuple[str, str], tuple[bool, str, ArgillaResponse]] = {}
    for response in responses:
        annotator = annotators.get(response.user)
        if annotator is None:
            if response.status == "submitted":
                strangers.setdefault(names.get(response.user, response.user), []).append(response)
            continue
        if response.status == "draft":
            started[annotator.name] = started.get(annotator.name, 0) + 1
        if (ours := (response.dataset, response.item, annotator.id)) in aside:
            if response.status == "discarded" and not response.values:
                continue
            touched.add(ours)
        key = (response.item, annotator.id)
        rank = (response.status == "submitted", response.when, response)
        if key not in chosen or rank[:2] >= chosen[key][:2]:
            chosen[key] = rank
    answers: list[Annotation] = []
    for (item, annotator_id), (_, _, response) in sorted(chosen.items()):
        name = annotators[response.user].name
        try:
            values = _values(response, items[item], questions, notes)
        except RoundError as error:
            mistakes.append(
                f"{response.dataset}: item {item}, annotator {name}: {error}; have them answer it again"
            )
            continue
        # What is not said now was taken back: an answer discarded later, a skip answered later, a cleared comment.
        answers += [
            Annotation(round, item, annotator_id, key, value, response.when) for key, value in values.items()
        ]
    told = (*_of_strangers(strangers), *_told(notes))
    return Read(tuple(answers), tuple(mistakes), told, started, frozenset(touched))


def _values(
    response: ArgillaResponse, item: Item, questions: Sequence[Question], notes: dict[str, int]
) -> dict[str, Value | None]:
    """By question what counts; None where nothing does. Raises RoundError for what is no answer."""
    values: dict[str, Value | None] = dict.fromkeys((question.name for question in questions), None)
    values[SKIPPED] = "yes" if response.status == "discarded" else None
    if response.status != "submitted":
        return values
    for question in questions:
        raw = response.values.get(question.name)
        if raw is None or raw == [] or (isinstance(raw, str) and not raw.strip()):
            if question.always:
                raise RoundError(f"{question.name} is missing")
            continue
        value = question.read(raw.strip() if question.form == "text" and isinstance(raw, str) else raw)
        if question.name == "label" and item.labels and value not in item.labels:
            raise RoundError(f"{quoted(value)} is none of this item's choices: {', '.join(item.labels)}")
        values[question.name] = value
    for question in questions:
        if question.after is None:
            continue
        before, label = question.after
        if values[before] == label and values[question.name] is None and question.required:
            # The page cannot ask for it only then. What was said counts; that nothing was named is an answer too.
            values[question.name] = ()
            told = f"name no {question.name} although {before} is {label}; they count without: ask for them"
        elif values[before] != label and values[question.name] is not None:
            values[question.name] = None
            told = f"name {question.name} although the question before it rules that out; the rest of them counts"
        else:
            continue
        notes[told] = notes.get(told, 0) + 1
    return values


def _of_strangers(strangers: Mapping[str, Sequence[ArgillaResponse]]) -> list[str]:
    """A line a stranger: no mistake of anybody's that could be corrected, so none that keeps a round open."""
    told = []
    for who, theirs in sorted(strangers.items()):
        where = [f"{one.dataset}: item {one.item}, response {one.id}" for one in theirs[:SHOWN]]
        where += [f"and {len(theirs) - SHOWN} more"] if len(theirs) > SHOWN else []
        told.append(
            f"answers by {quoted(who)}, who is no annotator of this round or no annotator, are not "
            f"counted: {len(theirs)} "
            f"({'; '.join(where)}); the server takes them for votes: an owner deletes one with "
            "DELETE /api/v1/responses/ID; who is to vote has an annotator's account and a line in "
            "`h2htalk round reopen --annotators`"
        )
    return told


def _told(notes: Mapping[str, int]) -> list[str]:
    return [f"{count} answers {told}" for told, count in sorted(notes.items())]


def _utc(text: object) -> str:
    """The server writes UTC without saying so."""
    try:
        when = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return now()
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    return when.astimezone(datetime.UTC).isoformat(timespec="milliseconds")
