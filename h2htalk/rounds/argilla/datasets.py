"""A session's dataset on the server: looked for first, by its mark, then completed or made; and its records, listed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import RoundContent, RoundDataset, settings_for
from h2htalk.rounds.argilla.settings_diff import adjudications_fingerprint, differences, missing_parts

# Records of one listing; the server gives no more.
PAGE = 1000
MARK = "h2htalk"


@dataclass(frozen=True, slots=True)
class WorkspaceDatasets:
    """The datasets of a workspace.

    Attributes:
        named: by name, whosever they are.
        ours: by assignment set and session, those that carry this round's mark: in Argilla a dataset may be renamed.
        twice: names of others that carry the mark of a session that has one.
    """

    named: Mapping[str, dict[str, Any]]
    ours: Mapping[tuple[int, int], dict[str, Any]]
    twice: tuple[str, ...] = ()

    def of(self, session: RoundDataset) -> dict[str, Any] | None:
        """The dataset of a session, whatever it is called now."""
        return self.ours.get((session.assignment_set, session.number))


def datasets_in(wire: ArgillaClient, place: str | None, mark: str) -> WorkspaceDatasets:
    """What lies in a workspace; nothing where there is none. `mark`: the round's."""
    found = wire.get("/api/v1/me/datasets", workspace_id=place)["items"] if place else []
    ours: dict[tuple[int, int], dict[str, Any]] = {}
    twice = []
    for one in sorted(found, key=lambda one: (str(one.get("inserted_at")), one["id"])):
        facts = _facts(one)
        if facts.get("round") == mark:
            key = (facts["assignment_set"], facts["session"])
            if key in ours:
                twice.append(one["name"])
            ours.setdefault(key, one)
    return WorkspaceDatasets({one["name"]: one for one in found}, ours, tuple(twice))


def require_free(
    wire: ArgillaClient, there: WorkspaceDatasets, workspace: str, names: re.Pattern[str], mark: str
) -> None:
    """Raise RoundError where another round lies in a workspace, or anything under a name that is ours.

    Args:
        wire: to the server.
        there: the datasets of the workspace.
        workspace: its name.
        names: of our datasets there.
        mark: the round's.
    """
    for name, dataset in there.named.items():
        if _facts(dataset).get("round", mark) != mark or names.fullmatch(name):
            require_ours(wire, workspace, dataset, mark)


def ensure_dataset(
    wire: ArgillaClient, asked: RoundContent, session: RoundDataset, place: str, there: WorkspaceDatasets
) -> dict[str, Any]:
    """The dataset of a session, published: found, completed or made. Raises RoundError where it is another."""
    settings = settings_for(wire.client, asked, session).serialize()
    dataset = there.of(session) or _make(wire, asked, session, place, settings)
    path = f"/api/v1/datasets/{dataset['id']}"
    found = _settings_of(wire, dataset)
    if dataset["status"] == "draft":
        for kind, parts in missing_parts(found, settings).items():
            address = f"{path}/{'metadata-properties' if kind == 'metadata' else kind}"
            for part in parts:
                wire.call("POST", address, part, allowed=(409,))
        found = _settings_of(wire, dataset)
    told = differences(found, settings, _facts(dataset).get("words", ""))
    if told:
        raise RoundError(
            f"{wire.url}: the dataset {session.dataset} is there with other settings: {'; '.join(told)}; put them "
            "back, or open the round under another name"
        )
    if dataset["status"] == "draft":
        # Refused: our own first attempt, of which no answer came, has published it.
        wire.call("PUT", f"{path}/publish", allowed=(422,))
    return dataset


def _make(
    wire: ArgillaClient, asked: RoundContent, session: RoundDataset, place: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    facts = {
        "round": asked.mark,
        "assignment_set": session.assignment_set,
        "session": session.number,
        "words": adjudications_fingerprint(settings),
    }
    wire.call(
        "POST",
        "/api/v1/datasets",
        {
            "name": session.dataset,
            "workspace_id": place,
            "guidelines": settings["guidelines"],
            "distribution": settings["distribution"],
            "allow_extra_metadata": False,
            "metadata": {MARK: facts},
        },
        allowed=(409,),
    )
    there = datasets_in(wire, place, asked.mark)
    made = there.of(session)
    if made is None:
        if session.dataset in there.named:
            require_ours(wire, session.workspace, there.named[session.dataset], asked.mark)
        raise RoundError(
            f"{wire.url}: another session's dataset is called {session.dataset} now; call it otherwise in Argilla, "
            "then give the same command again"
        )
    return made


def _settings_of(wire: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, Any]:
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


def require_ours(wire: ArgillaClient, workspace: str, dataset: Mapping[str, Any], mark: str) -> None:
    """Raise RoundError where a dataset does not carry the round's mark."""
    facts = _facts(dataset)
    if facts.get("round") != mark:
        whose = "another round" if facts else "somebody else"
        raise RoundError(
            f"{wire.url}: the workspace {workspace} has a dataset {dataset['name']} that belongs to {whose}; "
            "rename this round's folder, or name another workspace in its settings"
        )


def _facts(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """What was noted on a dataset when it was made; empty on one that is not a round's."""
    facts = (dataset.get("metadata") or {}).get(MARK)
    return facts if isinstance(facts, dict) else {}


def describe_changes(
    wire: ArgillaClient, asked: RoundContent, session: RoundDataset, dataset: Mapping[str, Any]
) -> list[str]:
    """What was changed on the server since it was put out: its name, what it asks, how often, in which words."""
    told = []
    if dataset["name"] != session.dataset:
        told.append(
            f"{session.dataset}: is called {quoted(dataset['name'])} on the server now; it counts all the same"
        )
    if dataset["status"] == "draft":
        return [
            *told,
            f"{session.dataset}: was never finished; `h2htalk round open`, given as before, completes it",
        ]
    settings = settings_for(wire.client, asked, session).serialize()
    changed = differences(_settings_of(wire, dataset), settings, _facts(dataset).get("words", ""))
    if changed:
        told.append(
            f"{session.dataset}: was changed on the server: {'; '.join(changed)}; put it back in the dataset's settings"
        )
    return told


def describe_missing(session: RoundDataset, due: Sequence[str], there: Collection[str]) -> list[str]:
    """Items of a session that want answers and have no record. `there`: those that have one."""
    missing = [item for item in due if item not in there]
    if not missing:
        return []
    return [
        f"{session.dataset}: {len(missing)} of {len(due)} items that want answers are not there, the first: "
        f"{quoted(missing[0])}; deleted on the server, or never put out: `h2htalk round open`, given as before, makes "
        "them again"
    ]


def describe_duplicates(there: Mapping[str, WorkspaceDatasets]) -> list[str]:
    """Datasets beside another of the same session, by workspace: what is answered there is not read."""
    return [
        f"{workspace}: the dataset {quoted(name)} is a second one of a session that has one already; what is answered "
        "there is not counted: see what it is, and delete it in Argilla"
        for workspace, found in sorted(there.items())
        for name in found.twice
    ]


# --- Records --------------------------------------------------------------------------------------------------------


def records_of(wire: ArgillaClient, dataset: str, include: str = "") -> Iterator[dict[str, Any]]:
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
