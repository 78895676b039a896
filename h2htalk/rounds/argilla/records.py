"""Items as records: ids, data for the page, metadata, suggestions, and responses discarded in advance."""

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

# Maximum of a request (records, characters): proxies refuse larger ones.
BATCH, BATCH_SIZE = 200, 4_000_000
# A response discarded in advance. Its values are an empty object: without values, Argilla 2.8.0 stores the record and
# fails to index it (500).
EMPTY_DISCARD: Mapping[str, Any] = {"values": {}, "status": "discarded"}


def record_id(item: str, salt: bytes) -> str:
    """Return an item's id on the server, 32 hexadecimal digits: annotators can read it, and item ids reveal labels."""
    return hmac.new(salt, b"record " + item.encode(), hashlib.sha256).hexdigest()[:32]


def record_ids(items: Iterable[str], salt: bytes) -> dict[str, str]:
    """Return record id -> item id."""
    return {record_id(item, salt): item for item in items}


def displayed(item: Item) -> dict[str, str]:
    """Return the field of an item's record, which the page displays."""
    return {"data": inert_json(item_data(item, item.language))}


def record_for(
    id: str,
    item: Item,
    planned: RoundDataset,
    question_ids: Mapping[str, str],
    *,
    suggest: bool,
    discarded: Collection[str],
) -> dict[str, Any]:
    """Return a record as the server accepts it.

    Args:
        id: `record_id`.
        item: what it displays.
        planned: its dataset.
        question_ids: question name -> id on the server, of questions with choices.
        suggest: whether annotators see a model's suggestions and the proposed subtask.
        discarded: ids of users for whom the item is discarded in advance.
    """
    record: dict[str, Any] = {
        "external_id": id,
        "fields": {FIELD: displayed(item)},
        "metadata": {
            "language": item.language,
            "crisis": "yes" if item.crisis else "no",
            "assignment_set": planned.assignment_set,
            "session": planned.session,
        },
    }
    if suggest:
        record["metadata"]["subtask"] = item.subtask if item.subtask in SUBTASKS else "none"
        record["suggestions"] = [
            {"question_id": question_ids[name], "value": list(value) if isinstance(value, tuple) else value,
             "type": "model", "agent": "reviewer"}
            for name, value in item.suggested.items() if name in question_ids
        ]  # fmt: skip
    if discarded:
        record["responses"] = [{"user_id": user, **EMPTY_DISCARD} for user in sorted(discarded)]
    return record


def is_empty_discard(response: Mapping[str, Any]) -> bool:
    """Return whether a response on the server has the content of `EMPTY_DISCARD`."""
    return response["status"] == "discarded" and not response["values"]


def suggestible(questions: Sequence[Question]) -> set[str]:
    """Return the questions with choices: a model's free text is not suggested."""
    return {question.name for question in questions if question.form != "text"}


def batches(records: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Divide records into requests of limited size."""
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
