"""A sitting's dataset and its records on the server: looked for first, then completed or made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla_aside import Aside
from h2htalk.rounds.argilla_records import batches, record_for, record_id, suggestible
from h2htalk.rounds.argilla_settings import FIELD, Asked, Sitting, differences, missing_parts, settings_for
from h2htalk.rounds.argilla_wire import Wire

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


def see_to_records(
    wire: Wire,
    asked: Asked,
    sitting: Sitting,
    dataset: Mapping[str, Any],
    people: Mapping[str, str],
    spared: Mapping[str, set[str]],
    aside: Aside,
) -> int:
    """Put out the records that are missing, and spare voters what is not for them.

    Args:
        wire, asked, sitting, dataset: where what belongs.
        people: voter id -> user id.
        spared: item -> voter ids (`set_aside`).
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
    new, late, pairs = [], [], []
    for name in sitting.items:
        old = there.get(record_id(name))
        # Whoever has said something keeps it: only silence is filled.
        spoken = {str(response["user_id"]) for response in old["responses"]} if old else set()
        voters = [v for v in spared.get(name, ()) if v in people and people[v] not in spoken]
        record = record_for(
            asked.items[name], sitting, ids, suggest=asked.spec.suggest, aside=[people[v] for v in voters]
        )
        pairs += [(name, voter) for voter in voters]
        if old is None:
            new.append(record)
        elif old["fields"].get(FIELD) != record["fields"][FIELD]:
            raise RoundError(
                f"{wire.url}: {sitting.dataset}: the record {record['external_id']} shows another text than the item; "
                "delete the record in Argilla, then give the same command again"
            )
        elif voters:
            late.append({key: record[key] for key in ("external_id", "responses")})
    aside.add(sitting.dataset, pairs)
    for batch in (*batches(new), *batches(late)):
        wire.call("PUT", f"{path}/records/bulk", {"items": batch})
    return len(new)
