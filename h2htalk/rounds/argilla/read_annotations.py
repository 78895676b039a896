"""Convert responses from the server's database to annotations; nothing is requested here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected, Message, ServerWords
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.round_folder import RoundState

# Argilla's words.
WORDS = ServerWords(record="record", response="response")
# Responses of a user who is no annotator that a note names.
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """One user's response to one record.

    Attributes:
        dataset: the name that the round gave it.
        item: id of the item.
        user: id on the server.
        status: `submitted`, `discarded` or `draft`.
        values: question -> value on the server.
        when: time of the last change, ISO 8601 in UTC.
        id: on the server.
    """

    dataset: str
    item: str
    user: str
    status: str
    values: Mapping[str, object]
    when: str
    id: str = ""


def responses_of(
    dataset: str, records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> list[ServerResponse]:
    """Return the responses to a dataset's records; `items`: record id -> item id, without which one is ignored."""
    return [
        ServerResponse(
            dataset=dataset,
            item=items[record["external_id"]],
            user=str(response["user_id"]),
            status=str(response["status"]),
            values={name: one.get("value") for name, one in (response.get("values") or {}).items()},
            # The server writes UTC without a time zone.
            when=datetime.fromisoformat(response["updated_at"])
            .replace(tzinfo=UTC)
            .isoformat(timespec="milliseconds"),
            id=str(response.get("id", "")),
        )
        for record in records
        if record.get("external_id") in items
        for response in record.get("responses") or ()
    ]


def read_responses(
    state: RoundState,
    responses: Iterable[ServerResponse],
    *,
    annotators: Mapping[str, Annotator],
    names: Mapping[str, str],
    discarded: Collection[tuple[str, str, str]],
    words: ServerWords = WORDS,
) -> tuple[Collected, set[tuple[str, str, str]]]:
    """Return the annotations and skips of annotators, and messages on responses that cannot be counted.

    If an annotator got an item in two assignment sets, the last submitted response counts. A draft counts as nothing:
    what the annotator submitted or skipped before counts until they submit or skip again. `annotators` and `names`, of
    all users, are by user id. `discarded`, (dataset, item, annotator id), were discarded in advance: they are no skips
    unless the annotator has responded. Those that were answered since are returned: a later discard is their own.
    """
    items = {item.id: item for item in state.items}
    mistakes: list[Message] = []
    left: list[Message] = []
    remarks = Counter[str]()
    started: set[tuple[str, str]] = set()
    others: dict[str, list[ServerResponse]] = {}
    answered: set[tuple[str, str, str]] = set()
    chosen: dict[tuple[str, str], tuple[bool, str, ServerResponse]] = {}
    for response in responses:
        annotator = annotators.get(response.user)
        if annotator is None:
            if response.status == "submitted":
                others.setdefault(names.get(response.user, response.user), []).append(response)
            continue
        is_draft = response.status == "draft"
        if is_draft:
            started.add((response.item, annotator.id))
        if (ours := (response.dataset, response.item, annotator.id)) in discarded:
            if response.status == "discarded" and not response.values:
                continue
            answered.add(ours)
        if is_draft:
            continue
        key = (response.item, annotator.id)
        rank = (response.status == "submitted", response.when, response)
        if key not in chosen or rank[:2] >= chosen[key][:2]:
            chosen[key] = rank
    annotations: list[Annotation] = []
    for (item, annotator_id), (_, _, response) in sorted(chosen.items()):
        try:
            values = _values(response, items[item], state.questions, remarks)
        except RoundError as error:
            name = annotators[response.user].name
            place = f"{response.dataset}: item {item}, annotator {name}"
            message = Message(place, f"{error}; have it answered again")
            # Annotators who left do not answer again, so this must not prevent closing.
            (mistakes if annotators[response.user].active else left).append(message)
            continue
        # None withdraws a stored annotation: it was discarded, a skip was answered, or a comment was deleted.
        annotations += [
            Annotation(state.name, item, annotator_id, key, value, response.when)
            for key, value in values.items()
        ]
    notes: list[str] = [*left, *_describe_changing(state, started, chosen, annotators.values())]
    notes += [_describe_other(name, theirs, words) for name, theirs in sorted(others.items())]
    notes += [
        f"{counted(count, words.response)} {remark}" for remark, count in sorted(remarks.items())
    ]
    return Collected(
        tuple(annotations), tuple(mistakes), tuple(notes), frozenset(started)
    ), answered


def _values(
    response: ServerResponse, item: Item, questions: Sequence[Question], remarks: Counter[str]
) -> dict[str, Value | None]:
    """Return question -> value, None if there is none; raise RoundError for an invalid response."""
    values: dict[str, Value | None] = dict.fromkeys((question.name for question in questions), None)
    values[SKIPPED] = "yes" if response.status == "discarded" else None
    if response.status == "discarded":
        return values
    for question in questions:
        raw = response.values.get(question.name)
        if raw is None or raw == [] or (isinstance(raw, str) and not raw.strip()):
            if question.always_required:
                raise RoundError(f"{question.name} is missing")
            continue
        value = question.read(
            raw.strip() if question.form == "text" and isinstance(raw, str) else raw
        )
        if question.name == "label" and item.labels and value not in item.labels:
            raise RoundError(
                f"{quoted(value)} is not a choice of this item: {', '.join(item.labels)}"
            )
        values[question.name] = value
    for question in questions:
        if question.after is None:
            continue
        before, label = question.after
        if question.is_asked(values) and values[question.name] is None and question.required:
            # The page cannot require the answer only in this case. An empty list is an answer, too.
            values[question.name] = ()
            remarks[
                f"without {question.name} although {before} is {label}: counted, but ask for them"
            ] += 1
        elif not question.is_asked(values) and values[question.name] is not None:
            values[question.name] = None
            remarks[
                f"with {question.name} although {before} is not {label}: counted without them"
            ] += 1
    return values


def _describe_changing(
    state: RoundState,
    started: Collection[tuple[str, str]],
    submitted: Collection[tuple[str, str]],
    annotators: Iterable[Annotator],
) -> list[Message]:
    """Return a note for each annotator who is changing an earlier answer: a draft stands on the server in its place."""
    stored = {(item, annotator) for item, annotator, _ in state.stored}
    changing = Counter(pair[1] for pair in started if pair in stored and pair not in submitted)
    names = {one.id: one.name for one in annotators}
    problem = "have a draft on the server now; the earlier annotations count until the items are submitted or skipped"
    return [
        Message(
            names[annotator], f"{counted(count, 'item')} annotated earlier {problem}", "changing"
        )
        for annotator, count in sorted(changing.items())
    ]


def _describe_other(name: str, responses: Sequence[ServerResponse], words: ServerWords) -> str:
    """Return a note on responses by a user who is no annotator; no annotator can correct them, so it is no mistake."""
    listed = [
        f"{one.dataset}: item {one.item}, {words.response} {one.id}"
        for one in responses[:_MAX_NAMED]
    ]
    if len(responses) > _MAX_NAMED:
        listed += [f"and {len(responses) - _MAX_NAMED} more"]
    return (
        f"not counted: {counted(len(responses), words.response)} by {quoted(name)}, who is not an annotator of this "
        f"round ({'; '.join(listed)}). The server counts them: an owner can delete them there. To "
        "count them here, give the user an annotator's account and add them with `h2htalk round reopen --annotators`"
    )
