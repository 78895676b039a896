"""Publish the records of a dataset: create missing ones, discard them for some annotators, restore them for others.

Annotators answer at the same time, and none of their responses may be lost. A new record is created with the responses
that are discarded in advance. On an existing record, each is a request in the annotator's name, which the server
refuses if there is a response already (409); a bulk update would overwrite it. To restore an item, its discard is
deleted; the server returns what it deleted, and a response that the annotator has just submitted is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.accounts import RoundUsers
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import FIELD, RoundContent, RoundDataset
from h2htalk.rounds.argilla.datasets import records_of
from h2htalk.rounds.argilla.discards import AdvanceDiscards
from h2htalk.rounds.argilla.records import EMPTY_DISCARD, batches, is_empty_discard, record_for, record_id, suggestible


@dataclass(frozen=True, slots=True)
class DiscardPlan:
    """Which annotators must not get which items of one dataset.

    Attributes:
        annotators: item -> annotator ids (`items_to_discard`).
        moved: items of a later assignment set: nobody is to get them in this dataset.
        due: items whose record is created if it is missing.
    """

    annotators: Mapping[str, set[str]]
    moved: Collection[str]
    due: Collection[str]


def publish_records(
    client: ArgillaClient,
    content: RoundContent,
    planned: RoundDataset,
    dataset: Mapping[str, Any],
    users: RoundUsers,
    plan: DiscardPlan,
    discards: AdvanceDiscards,
) -> tuple[int, list[str]]:
    """Create missing records, and discard and restore items for annotators.

    Args:
        client, content, planned, dataset: server, round and dataset.
        users: the annotators' accounts.
        plan: which annotators must not get which items.
        discards: file of the responses that were discarded in advance.

    Returns:
        The number of new records, and messages for the manager.

    Raises:
        RoundError: the server fails, or a record displays another text.
    """
    path = f"/api/v1/datasets/{dataset['id']}"
    names = suggestible(content.questions)
    questions = client.get(f"{path}/questions")["items"]
    question_ids = {one["name"]: one["id"] for one in questions if one["name"] in names}
    existing = {one["external_id"]: one for one in records_of(client, dataset["id"], "responses")}
    members = users.members[planned.workspace]
    discarded = {(item, annotator) for name, item, annotator in discards.all() if name == planned.name}
    changes, new, late = [], [], []
    for name in planned.items:
        id = record_id(name, content.salt)
        old = existing.get(id)
        if old is None and name not in plan.due:
            continue
        earlier = {annotator for item, annotator in discarded if item == name}
        change = _item_changes(name, old, plan, users, members, earlier)
        changes.append(change)
        record = record_for(
            id, content.items[name], planned, question_ids,
            suggest=content.spec.suggest, discarded=[users.ids[annotator] for annotator in change.to_discard],
        )  # fmt: skip
        if old is None:
            new.append(record)
        elif old["fields"].get(FIELD) != record["fields"][FIELD]:
            raise RoundError(
                f"{client.url}: {planned.name}: the record {id} displays another text than the item {name}; delete the "
                "record in Argilla, then repeat the command"
            )
        else:
            late += [(old["id"], users.keys[annotator]) for annotator in change.to_discard]
    discards.remove(planned.name, [(one.item, annotator) for one in changes for annotator in one.answered])
    discards.add(planned.name, [(one.item, annotator) for one in changes for annotator in one.to_discard])
    for batch in batches(new):
        client.call("PUT", f"{path}/records/bulk", {"items": batch})
    for id, key in late:
        # 409: the annotator has just responded, or our own first attempt succeeded and its reply was lost.
        client.call("POST", f"/api/v1/records/{id}/responses", EMPTY_DISCARD, allowed=(409,), key=key)
    messages = [line for one in changes for line in _restore(client, planned, users, one)]
    discards.remove(planned.name, [(one.item, annotator) for one in changes for annotator, _ in one.to_restore])
    return len(new), messages


@dataclass(frozen=True, slots=True)
class _ItemChanges:
    """Changes of one item.

    Attributes:
        item: its id.
        to_discard: annotators for whom it is discarded now.
        answered: annotators who responded although it was discarded for them: later responses are their own.
        to_restore: annotators for whom it is restored, with our response (None: it was deleted already).
    """

    item: str
    to_discard: Sequence[str]
    answered: Sequence[str]
    to_restore: Sequence[tuple[str, Mapping[str, Any] | None]]


def _item_changes(
    name: str,
    record: Mapping[str, Any] | None,
    plan: DiscardPlan,
    users: RoundUsers,
    members: Collection[str],
    discarded: Collection[str],
) -> _ItemChanges:
    """Return the changes of an item: only missing responses are discarded, and only our discards are deleted.

    Args:
        name: the item.
        record: its record on the server, if it has one.
        plan, users: which annotators must not get it, and all annotators.
        members: annotators in the workspace.
        discarded: annotators for whom the item was discarded earlier.
    """
    responses = {str(one["user_id"]): one for one in record["responses"]} if record else {}
    excluded = plan.annotators[name]
    if name in plan.moved and record is not None and record["status"] != "completed":
        excluded = set(users.ids)
    ours = {annotator: responses.get(users.ids[annotator]) for annotator in sorted(users.ids) if annotator in discarded}
    answered = [v for v, response in ours.items() if response is not None and not is_empty_discard(response)]
    to_discard = [v for v in sorted(excluded) if v in members and users.ids[v] not in responses]
    to_restore = [(v, one) for v, one in ours.items() if v not in excluded and v not in answered]
    return _ItemChanges(name, to_discard, answered, to_restore)


def _restore(client: ArgillaClient, planned: RoundDataset, users: RoundUsers, changes: _ItemChanges) -> list[str]:
    """Delete our discards, so that annotators get an item; return messages for the manager."""
    messages = []
    for annotator, response in changes.to_restore:
        if response is None:
            continue
        status, deleted = client.call("DELETE", f"/api/v1/responses/{response['id']}", allowed=(404,))
        if status == 404 or is_empty_discard(deleted):
            continue
        # The annotator has just responded. 409: and again since.
        body = {"status": deleted["status"], "values": deleted["values"]}
        path = f"/api/v1/records/{deleted['record_id']}/responses"
        client.call("POST", path, body, allowed=(409,), key=users.keys[annotator])
        messages.append(f"{planned.name}: item {changes.item} was answered while it was restored; the answer is kept")
    return messages
