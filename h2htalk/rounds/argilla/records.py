"""Items as records: ids, what the page reads, filters, suggestions, and who is not to see an item."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.argilla.dataset_settings import FIELD, RoundDataset
from h2htalk.rounds.argilla.record_page import inert_json, item_data
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.texts.interface import passage_title

# A request: items of 100,000 characters and more must not make one that a proxy refuses (records, characters).
BATCH, BATCH_SIZE = 200, 4_000_000
# What puts an item aside for an annotator: it says nothing. Nothing is an empty object: with none at all, 2.8.0
# stores the record and fails to index it (500).
NOTHING: Mapping[str, Any] = {"values": {}, "status": "discarded"}


def record_id(item: str, salt: bytes) -> str:
    """An item's id on the server, 32 hexadecimal digits: an annotator can read it there, and many an id tells the
    label.
    """
    return hmac.new(salt, b"record " + item.encode(), hashlib.sha256).hexdigest()[:32]


def record_ids(items: Iterable[str], salt: bytes) -> dict[str, str]:
    """Record id -> item id."""
    return {record_id(item, salt): item for item in items}


def record_for(
    id: str,
    item: Item,
    session: RoundDataset,
    questions: Mapping[str, str],
    *,
    suggest: bool,
    aside: Collection[str],
) -> dict[str, Any]:
    """A record as the server takes it.

    Args:
        id: `record_id`.
        item: what it shows.
        session: where it belongs.
        questions: name -> id on the server, of those that a suggestion may fill.
        suggest: whether a model's answers, and the proposed subtask, may be seen.
        aside: user ids for whom the item is discarded in advance.
    """
    titles = {name: passage_title(name, item.language) for name, _ in item.context}
    record: dict[str, Any] = {
        "external_id": id,
        "fields": {FIELD: {"data": inert_json(item_data(item, item.language, titles))}},
        "metadata": {
            "language": item.language,
            "crisis": "yes" if item.crisis else "no",
            "assignment_set": session.assignment_set,
            "session": session.number,
        },
    }
    if suggest:
        record["metadata"]["subtask"] = item.subtask if item.subtask in SUBTASKS else "none"
        record["suggestions"] = [
            {"question_id": questions[name], "value": list(value) if isinstance(value, tuple) else value,
             "type": "model", "agent": "reviewer"}
            for name, value in item.suggested.items() if name in questions
        ]  # fmt: skip
    if aside:
        record["responses"] = [{"user_id": user, **NOTHING} for user in sorted(aside)]
    return record


def is_nothing(response: Mapping[str, Any]) -> bool:
    """Whether a response, as the server lists it, says as little as what puts an item aside."""
    return response["status"] == "discarded" and not response["values"]


def suggestible(questions: Sequence[Question]) -> set[str]:
    """The questions that a suggestion may fill: those with choices. Free text of a model's is nobody's answer."""
    return {question.name for question in questions if question.form != "text"}


def batches(records: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Records in requests of a sensible size."""
    batch: list[dict[str, Any]] = []
    size = 0
    for record in records:
        length = len(record.get("fields", {}).get(FIELD, {}).get("data", ""))
        if batch and (len(batch) >= BATCH or size + length > BATCH_SIZE):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch
