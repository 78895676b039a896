"""A session's records: put out where they are missing, kept from whom they are not for, given back to whom they are.

Annotators answer while this runs, and none of their answers may be lost by it. A new record carries who is spared it.
On a record that is there, somebody is spared by a request in their own name, which the server refuses where they have
said something (409); a bulk upsert would overwrite it. What is taken away again comes back with the request that
deletes it, and an answer among it is put back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.accounts import People
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import FIELD, RoundContent, RoundDataset
from h2htalk.rounds.argilla.datasets import records_of
from h2htalk.rounds.argilla.discards import AdvanceDiscards
from h2htalk.rounds.argilla.records import (
    NOTHING,
    batches,
    is_nothing,
    record_for,
    record_id,
    suggestible,
)


@dataclass(frozen=True, slots=True)
class Sparing:
    """Who is to be spared what, in one session.

    Attributes:
        annotators: item -> annotator ids (`set_aside`).
        moved: items that lie in a later assignment set as well: nobody is to meet them here any more.
        due: items that are made where they are missing; what wants nothing stays away.
    """

    annotators: Mapping[str, set[str]]
    moved: Collection[str]
    due: Collection[str]


def publish_records(
    wire: ArgillaClient,
    asked: RoundContent,
    session: RoundDataset,
    dataset: Mapping[str, Any],
    people: People,
    sparing: Sparing,
    aside: AdvanceDiscards,
) -> tuple[int, list[str]]:
    """Put out the records that are missing, spare annotators what is not for them, and give back what is for them
    again.

    Args:
        wire, asked, session, dataset: where what belongs.
        people: the annotators' accounts.
        sparing: who is to meet what.
        aside: where it is written down who was spared what.

    Returns:
        How many records were new, and lines for the manager.

    Raises:
        RoundError: the server fails, or a record there shows another text.
    """
    path = f"/api/v1/datasets/{dataset['id']}"
    fillable = suggestible(asked.questions)
    questions = wire.get(f"{path}/questions")["items"]
    ids = {one["name"]: one["id"] for one in questions if one["name"] in fillable}
    there = {record["external_id"]: record for record in records_of(wire, dataset["id"], "responses")}
    inside = people.inside[session.workspace]
    known = {(item, annotator) for name, item, annotator in aside.all() if name == session.dataset}
    turns, new, late = [], [], []
    for name in session.items:
        old = there.get(record_id(name, asked.salt))
        if old is None and name not in sparing.due:
            continue
        turn = _turn(
            name, old, sparing, people, inside, {annotator for item, annotator in known if item == name}
        )
        turns.append(turn)
        record = record_for(
            record_id(name, asked.salt), asked.items[name], session, ids,
            suggest=asked.spec.suggest, aside=[people.ids[annotator] for annotator in turn.spared],
        )  # fmt: skip
        if old is None:
            new.append(record)
        elif old["fields"].get(FIELD) != record["fields"][FIELD]:
            raise RoundError(
                f"{wire.url}: {session.dataset}: the record {record['external_id']} shows another text than the item "
                f"{name}; delete the record in Argilla, then give the same command again"
            )
        else:
            late += [(old["id"], people.keys[annotator]) for annotator in turn.spared]
    aside.drop(session.dataset, [(turn.item, annotator) for turn in turns for annotator in turn.own])
    aside.add(session.dataset, [(turn.item, annotator) for turn in turns for annotator in turn.spared])
    for batch in batches(new):
        wire.call("PUT", f"{path}/records/bulk", {"items": batch})
    for record_there, key in late:
        # 409: they have said something since we looked, or it is our own first attempt, of which no answer came.
        wire.call("POST", f"/api/v1/records/{record_there}/responses", NOTHING, allowed=(409,), key=key)
    told = [line for turn in turns for line in _give_back(wire, session, people, turn)]
    aside.drop(session.dataset, [(turn.item, annotator) for turn in turns for annotator, _ in turn.back])
    return len(new), told


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is to be done about one item.

    Attributes:
        item: its id.
        spared: annotators for whom it is discarded now.
        own: annotators who have said something where we had discarded it: what they do there is theirs from now on.
        back: annotators for whom it comes back, with our response (None: it is gone already).
    """

    item: str
    spared: Sequence[str]
    own: Sequence[str]
    back: Sequence[tuple[str, Mapping[str, Any] | None]]


def _turn(
    name: str,
    old: Mapping[str, Any] | None,
    sparing: Sparing,
    people: People,
    inside: Collection[str],
    known: Collection[str],
) -> _Turn:
    """Only silence is filled, and only what we filled is emptied.

    Args:
        name: the item.
        old: its record on the server, None where it has none.
        sparing, people: who is to meet what, and who is who.
        inside: annotators who are in the workspace.
        known: annotators for whom we discarded the item earlier.
    """
    said = {str(one["user_id"]): one for one in old["responses"]} if old else {}
    spared = sparing.annotators[name]
    if name in sparing.moved and old is not None and old["status"] != "completed":
        spared = set(people.ids)
    filled = {
        annotator: said.get(people.ids[annotator]) for annotator in sorted(people.ids) if annotator in known
    }
    own = [annotator for annotator, one in filled.items() if one is not None and not is_nothing(one)]
    return _Turn(
        name,
        [
            annotator
            for annotator in sorted(spared)
            if annotator in inside and people.ids[annotator] not in said
        ],
        own,
        [
            (annotator, one)
            for annotator, one in filled.items()
            if annotator not in spared and annotator not in own
        ],
    )


def _give_back(wire: ArgillaClient, session: RoundDataset, people: People, turn: _Turn) -> list[str]:
    """Take away what we filled, so that annotators have an item before them. Returns lines for the manager."""
    told = []
    for annotator, response in turn.back:
        if response is None:
            continue
        status, taken = wire.call("DELETE", f"/api/v1/responses/{response['id']}", allowed=(404,))
        if status == 404 or is_nothing(taken):
            continue
        # Said since we looked. 409: and said again since.
        said = {"status": taken["status"], "values": taken["values"]}
        path = f"/api/v1/records/{taken['record_id']}/responses"
        wire.call("POST", path, said, allowed=(409,), key=people.keys[annotator])
        told.append(
            f"{session.dataset}: item {turn.item} was answered while it was given back; the answer is kept"
        )
    return told
