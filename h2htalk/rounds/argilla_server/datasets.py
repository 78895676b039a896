"""A sitting's dataset and its records on the server: looked for first, then completed or made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla_server.aside import Aside
from h2htalk.rounds.argilla_server.people import People
from h2htalk.rounds.argilla_server.records import batches, record_for, record_id, suggestible
from h2htalk.rounds.argilla_server.settings import (
    FIELD,
    Asked,
    Sitting,
    differences,
    missing_parts,
    settings_for,
)
from h2htalk.rounds.argilla_server.wire import Wire

# Records of one listing; the server gives no more.
PAGE = 1000
MARK = "h2htalk"


def datasets_in(wire: Wire, place: str) -> dict[str, dict[str, Any]]:
    """Name -> dataset, of a workspace."""
    found = wire.get("/api/v1/me/datasets", workspace_id=place)["items"]
    return {one["name"]: one for one in found}


def see_to_dataset(
    wire: Wire, asked: Asked, sitting: Sitting, place: str, there: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """The dataset of a sitting, published: found, completed or made. Raises RoundError where it is another."""
    settings = settings_for(wire.client, asked, sitting).serialize()
    dataset = there.get(sitting.dataset)
    if dataset is None:
        facts = {"round": asked.mark, "wave": sitting.wave, "sitting": sitting.number}
        wire.call(
            "POST",
            "/api/v1/datasets",
            {
                "name": sitting.dataset,
                "workspace_id": place,
                "guidelines": settings["guidelines"],
                "distribution": settings["distribution"],
                "allow_extra_metadata": False,
                "metadata": {MARK: facts},
            },
            allowed=(409,),
        )
        dataset = datasets_in(wire, place)[sitting.dataset]
    require_ours(wire, sitting, dataset, asked.mark)
    path = f"/api/v1/datasets/{dataset['id']}"
    found = _settings_of(wire, dataset)
    if dataset["status"] == "draft":
        for kind, parts in missing_parts(found, settings).items():
            address = f"{path}/{'metadata-properties' if kind == 'metadata' else kind}"
            for part in parts:
                wire.call("POST", address, part, allowed=(409,))
        found = _settings_of(wire, dataset)
    told = differences(found, settings)
    if told:
        raise RoundError(
            f"{wire.url}: the dataset {sitting.dataset} is there with other settings: {'; '.join(told)}; put them "
            "back, or open the round under another name"
        )
    if dataset["status"] == "draft":
        # Refused: our own first attempt, of which no answer came, has published it.
        wire.call("PUT", f"{path}/publish", allowed=(422,))
    return dataset


def _settings_of(wire: Wire, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset's settings in the form in which the SDK serialises them."""
    path = f"/api/v1/datasets/{dataset['id']}"
    return {
        "guidelines": dataset["guidelines"],
        "distribution": dataset["distribution"],
        "allow_extra_metadata": dataset["allow_extra_metadata"],
        "fields": wire.get(f"{path}/fields")["items"],
        "questions": wire.get(f"{path}/questions")["items"],
        "metadata": wire.get(f"/api/v1/me/datasets/{dataset['id']}/metadata-properties")["items"],
    }


def require_ours(wire: Wire, sitting: Sitting, dataset: Mapping[str, Any], mark: str) -> None:
    facts = (dataset.get("metadata") or {}).get(MARK)
    if not isinstance(facts, dict) or facts.get("round") != mark:
        whose = "another round" if facts else "somebody else"
        raise RoundError(
            f"{wire.url}: the workspace {sitting.workspace} has a dataset {sitting.dataset} that belongs to {whose}; "
            "rename this round's folder, or name another workspace in its settings"
        )


def told_of_changes(asked: Asked, sitting: Sitting, dataset: Mapping[str, Any]) -> list[str]:
    """What was changed on the server since it was put out: the number of answers, the guidelines."""
    told = []
    wanted = dataset["distribution"]["min_submitted"]
    if wanted != sitting.wanted:
        told.append(f"asks for {wanted} answers an item, the round for {sitting.wanted}")
    if (dataset["guidelines"] or "").strip() != asked.guidelines[sitting.language]:
        told.append("shows other guidelines than the round's")
    return [
        f"{sitting.dataset}: was changed on the server: it {one}; put it back in the dataset's settings"
        for one in told
    ]


# --- Records --------------------------------------------------------------------------------------------------------


def records_of(wire: Wire, dataset: str, include: str = "") -> Iterator[dict[str, Any]]:
    """Every record once, from the database. Pages may overlap or slip while records are added: ids tell."""
    seen: set[str] = set()
    offset = 0
    while True:
        more = {"include": include} if include else {}
        found = wire.get(f"/api/v1/datasets/{dataset}/records", offset=offset, limit=PAGE, **more)
        for record in found["items"]:
            if record["id"] not in seen:
                seen.add(record["id"])
                yield record
        offset += PAGE
        if not found["items"] or offset >= found["total"]:
            return


def offers(
    dataset: Mapping[str, Any], records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> dict[str, int]:
    """Item -> answers that the server still asks for, by its own count, in which a stranger's is one.

    Args:
        dataset: as the server lists it.
        records: of it, with responses.
        items: record id -> item id.
    """
    wanted = dataset["distribution"]["min_submitted"]
    found = {}
    for record in records:
        if record["external_id"] in items:
            said = sum(one["status"] == "submitted" for one in record.get("responses") or ())
            found[items[record["external_id"]]] = (
                0 if record["status"] == "completed" else max(0, wanted - said)
            )
    return found


@dataclass(frozen=True, slots=True)
class Sparing:
    """Who is to be spared what, in one sitting.

    Attributes:
        voters: item -> voter ids (`set_aside`).
        moved: items that lie in a later wave as well: nobody is to meet them here any more.
        due: items that are made where they are missing; what wants nothing stays away.
    """

    voters: Mapping[str, set[str]]
    moved: Collection[str]
    due: Collection[str]


def see_to_records(
    wire: Wire,
    asked: Asked,
    sitting: Sitting,
    dataset: Mapping[str, Any],
    people: People,
    sparing: Sparing,
    aside: Aside,
) -> int:
    """Put out the records that are missing, spare voters what is not for them, and give back what is for them again.

    Args:
        wire, asked, sitting, dataset: where what belongs.
        people: the voters' accounts.
        sparing: who is to meet what.
        aside: where it is written down who was spared what.

    Returns:
        How many records were new.

    Raises:
        RoundError: the server fails, or a record there shows another text.
    """
    path = f"/api/v1/datasets/{dataset['id']}"
    fillable = suggestible(asked.questions)
    ids = {
        one["name"]: one["id"] for one in wire.get(f"{path}/questions")["items"] if one["name"] in fillable
    }
    there = {record["external_id"]: record for record in records_of(wire, dataset["id"], "responses")}
    inside = people.inside[sitting.workspace]
    known = {(item, voter) for name, item, voter in aside.all() if name == sitting.dataset}
    new, late, pairs, back = [], [], [], []
    for name in sitting.items:
        id = record_id(name, asked.salt)
        old = there.get(id)
        if old is None and name not in sparing.due:
            continue
        said = {str(one["user_id"]): one for one in old["responses"]} if old else {}
        spared = sparing.voters[name]
        if name in sparing.moved and old is not None and old["status"] != "completed":
            spared = set(people.ids)
        # Whoever has said something keeps it: only silence is filled, and only what we filled is emptied.
        voters = [v for v in sorted(spared) if v in inside and people.ids[v] not in said]
        for voter in sorted(people.ids.keys() - spared):
            if (name, voter) in known:
                back.append(((name, voter), said.get(people.ids[voter])))
        record = record_for(
            id, asked.items[name], sitting, ids,
            suggest=asked.spec.suggest, aside=[people.ids[v] for v in voters],
        )  # fmt: skip
        pairs += [(name, voter) for voter in voters]
        if old is None:
            new.append(record)
        elif old["fields"].get(FIELD) != record["fields"][FIELD]:
            raise RoundError(
                f"{wire.url}: {sitting.dataset}: the record {record['external_id']} shows another text than the item "
                f"{name}; delete the record in Argilla, then give the same command again"
            )
        elif voters:
            late.append({key: record[key] for key in ("external_id", "responses")})
    aside.add(sitting.dataset, pairs)
    for batch in (*batches(new), *batches(late)):
        wire.call("PUT", f"{path}/records/bulk", {"items": batch})
    for _, response in back:
        if response is not None and response["status"] == "discarded" and not response["values"]:
            wire.call("DELETE", f"/api/v1/responses/{response['id']}", allowed=(404,))
    aside.drop(sitting.dataset, [pair for pair, _ in back])
    return len(new)
