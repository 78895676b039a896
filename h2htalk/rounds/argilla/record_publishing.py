"""Publish the records of a dataset: create missing ones, discard them for some annotators, restore them for others.

Annotators answer at the same time, and none of their responses may be lost. A new record is created with the responses
that are discarded in advance. On an existing record, each is a request in the annotator's name, which the server
refuses if there is a response already (409); a bulk update would overwrite it. To restore an item, its discard is
deleted; the server returns what it deleted, and a response that the annotator has just submitted is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.accounts import Accounts
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.argilla.datasets import (
    FIELD,
    RoundContent,
    RoundDataset,
    displayed,
    record_id,
    records_of,
)
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.items import Item

# Maximum of a request (records, characters): proxies refuse larger ones.
BATCH, BATCH_SIZE = 200, 4_000_000
# A response discarded in advance. Its values are an empty object: without values, Argilla 2.8.0 stores the record and
# fails to index it (500).
EMPTY_DISCARD: Mapping[str, Any] = {"values": {}, "status": "discarded"}


@dataclass(frozen=True, slots=True)
class AdvanceDiscards:
    """The file of (dataset, item, annotator id) that were discarded in advance; its methods raise DataError."""

    path: Path

    def all(self) -> set[tuple[str, str, str]]:
        if not self.path.exists():
            return set()
        return {(one["dataset"], one["item"], one["annotator"]) for _, one in read_jsonl(self.path)}

    def change(
        self,
        *,
        add: Collection[tuple[str, str, str]] = (),
        remove: Collection[tuple[str, str, str]] = (),
    ) -> None:
        """Add rows before they are sent to the server, and remove those that were deleted there or answered."""
        known = self.all()
        rows = (known - set(remove)) | set(add)
        if rows != known:
            write_jsonl(
                self.path,
                ({"dataset": d, "item": item, "annotator": v} for d, item, v in sorted(rows)),
            )


def publish_records(
    client: ServerClient,
    content: RoundContent,
    planned: RoundDataset,
    dataset: Mapping[str, Any],
    accounts: Accounts,
    needed: Collection[str],
    discards: AdvanceDiscards,
) -> tuple[int, list[str]]:
    """Create missing records of items in `needed`, and discard and restore items for annotators.

    Return the number of new records, and messages for the manager; raise RoundError if the server fails, or a record
    displays another text.
    """
    state = content.state
    path = f"/api/v1/datasets/{dataset['id']}"
    # A model's free text is not suggested.
    names = {question.name for question in state.questions if question.form != "text"}
    questions = client.get(f"{path}/questions")["items"]
    question_ids = {one["name"]: one["id"] for one in questions if one["name"] in names}
    existing = {one["external_id"]: one for one in records_of(client, dataset["id"], "responses")}
    discarded = {
        (item, annotator) for name, item, annotator in discards.all() if name == planned.name
    }
    members = accounts.members[planned.workspace]
    annotated = {(item, annotator) for item, annotator, _ in state.annotations}
    new, late = [], []
    # (dataset, item, annotator) that were discarded in advance and answered since, are discarded now, are restored.
    answered, added, restored = [], [], {}
    for name in planned.items:
        id = record_id(name, content.salt)
        old = existing.get(id)
        if old is None and not (name in needed and name in planned.current):
            continue
        item = content.items[name]
        responses = {one["user_id"]: one for one in (old or {}).get("responses") or ()}
        excluded = {
            one.id
            for one in state.annotators
            if not is_eligible(one, item) or (name, one.id) in annotated
        }
        if name not in planned.current and old is not None and old["status"] != "completed":
            excluded = set(accounts.ids)  # it is offered in a later assignment set
        # Only missing responses are discarded, and only our discards are deleted.
        for one, user in sorted(accounts.ids.items()):
            response = responses.get(user)
            if (name, one) in discarded and response is not None and not is_empty_discard(response):
                answered.append((planned.name, name, one))  # later responses are their own
            elif (name, one) in discarded and one not in excluded:
                restored[planned.name, name, one] = response
        to_discard = [
            one for one in sorted(excluded) if one in members and accounts.ids[one] not in responses
        ]
        added += [(planned.name, name, one) for one in to_discard]
        record = record_for(
            id, item, planned, question_ids,
            suggest=state.spec.suggest, discarded=[accounts.ids[annotator] for annotator in to_discard],
        )  # fmt: skip
        if old is None:
            new.append(record)
        elif old["fields"].get(FIELD) != record["fields"][FIELD]:
            raise RoundError(
                f"{client.url}: {planned.name}: the record {id} displays another text than the item {name}; delete the "
                "record in Argilla, then repeat the command"
            )
        else:
            late += [(old["id"], accounts.key(annotator)) for annotator in to_discard]
    discards.change(remove=answered, add=added)
    for batch in batches(new):
        client.call("PUT", f"{path}/records/bulk", {"items": batch})
    for id, key in late:
        # 409: the annotator has just responded, or our own first attempt succeeded and its reply was lost.
        client.call(
            "POST", f"/api/v1/records/{id}/responses", EMPTY_DISCARD, allowed=(409,), key=key
        )
    messages = []
    for (_, item_id, annotator), response in restored.items():
        # None: it was deleted already.
        if response is not None and _restore(client, response, accounts.key(annotator)):
            messages.append(
                f"{planned.name}: item {item_id} was answered while it was restored; the answer is kept"
            )
    discards.change(remove=restored)
    return len(new), messages


def _restore(client: ServerClient, response: Mapping[str, Any], key: str) -> bool:
    """Delete a discard of ours; return whether the annotator answered meanwhile, whose answer is sent again."""
    status, deleted = client.call("DELETE", f"/api/v1/responses/{response['id']}", allowed=(404,))
    if status == 404 or is_empty_discard(deleted):
        return False
    body = {"status": deleted["status"], "values": deleted["values"]}
    # 409: they answered again since.
    client.call(
        "POST", f"/api/v1/records/{deleted['record_id']}/responses", body, allowed=(409,), key=key
    )
    return True


def record_for(
    id: str,
    item: Item,
    planned: RoundDataset,
    question_ids: Mapping[str, str],
    *,
    suggest: bool,
    discarded: Collection[str],
) -> dict[str, Any]:
    """Return a record as the server accepts it, discarded in advance for the ids of users in `discarded`.

    With `suggest`, annotators see the proposed subtask, and a model's suggestions for the questions in `question_ids`.
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
