"""Datasets of a round on the server: find them by their marker, create and compare them, and list their records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.data.files import json_line
from h2htalk.data.languages import Language
from h2htalk.errors import RoundError, counted, listed, quoted
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import (
    FIELD,
    RoundContent,
    RoundDataset,
    displayed,
    plain_name,
    settings_for,
    workspace_name,
)
from h2htalk.rounds.platforms import Message

# Records in one listing, the server's limit.
PAGE = 1000
# Key of the round's data in a dataset's metadata.
MARKER = "h2htalk"
# Parts of a dataset's settings -> their address on the server.
PARTS = {"fields": "fields", "questions": "questions", "metadata": "metadata-properties"}
REPAIR = "python -m argilla_server search-engine reindex"
_AGAIN = "`h2htalk round open` with the same options"


@dataclass(frozen=True, slots=True)
class WorkspaceDatasets:
    """The datasets in a workspace.

    Attributes:
        by_name: all datasets.
        ours: assignment set and session -> dataset with this round's marker; a dataset may be renamed in Argilla, and
            of copies the first counts.
    """

    by_name: Mapping[str, dict[str, Any]]
    ours: Mapping[tuple[int, int], dict[str, Any]]

    def find(self, planned: RoundDataset) -> dict[str, Any] | None:
        """Return a dataset of the round, whatever its name is; None if it does not exist."""
        return self.ours.get((planned.assignment_set, planned.session))


def datasets_in(client: ArgillaClient, workspace_id: str | None, marker: str) -> WorkspaceDatasets:
    """Return the datasets in a workspace; none if it does not exist. `marker`: of the round."""
    records = client.get("/api/v1/me/datasets", workspace_id=workspace_id)["items"] if workspace_id else []
    ours = {}
    for one in sorted(records, key=lambda one: (str(one.get("inserted_at")), one["id"]), reverse=True):
        data = _marker_data(one)
        if data.get("round") == marker:
            ours[data["assignment_set"], data["session"]] = one
    return WorkspaceDatasets({one["name"]: one for one in records}, ours)


def require_free(client: ArgillaClient, content: RoundContent, datasets: WorkspaceDatasets, language: Language) -> None:
    """Raise RoundError if the workspace contains another round's dataset, or another one with a name of ours."""
    names = re.compile(rf"{re.escape(plain_name(content.state.name))}-set\d+-{language}-\d+")  # `RoundDataset.name`
    for name, dataset in datasets.by_name.items():
        data = _marker_data(dataset)
        if data.get("round") != content.marker and (data.get("round") or names.fullmatch(name)):
            owner = "another round" if data else "somebody else"
            raise RoundError(
                f"{client.url}: the workspace {workspace_name(content.state, language)} contains a dataset {name} that "
                f"belongs to {owner}; rename this round's folder, or set another workspace"
            )


def ensure_dataset(
    client: ArgillaClient,
    content: RoundContent,
    planned: RoundDataset,
    workspace_id: str,
    datasets: WorkspaceDatasets,
) -> dict[str, Any]:
    """Return a published dataset of the round; create it if necessary, and replace what an interruption left.

    Raise RoundError if it has other settings, or its name is in use.
    """
    dataset = datasets.find(planned)
    if dataset is not None and dataset["status"] != "draft":
        if changed := _changed_settings(client, dataset):
            raise RoundError(
                f"{client.url}: the dataset {planned.name} has other settings: {changed}; restore them, or open the "
                "round under another name"
            )
        return dataset
    if dataset is not None:
        client.call("DELETE", f"/api/v1/datasets/{dataset['id']}", allowed=(404,))
    settings = settings_for(content, planned)
    data = {
        "round": content.marker,
        "assignment_set": planned.assignment_set,
        "session": planned.session,
        "settings": _fingerprints(settings),
    }
    body = {key: value for key, value in settings.items() if key not in PARTS}
    body |= {"name": planned.name, "workspace_id": workspace_id, "metadata": {MARKER: data}}
    client.call("POST", "/api/v1/datasets", body, allowed=(409,))
    created = datasets_in(client, workspace_id, content.marker).find(planned)
    if created is None:
        raise RoundError(
            f"{client.url}: another dataset is called {planned.name} now; rename it in Argilla, then repeat the command"
        )
    path = f"/api/v1/datasets/{created['id']}"
    for kind, address in PARTS.items():
        for part in settings[kind]:
            client.call("POST", f"{path}/{address}", part, allowed=(409,))
    # Refused if our own first attempt succeeded and its reply was lost.
    client.call("PUT", f"{path}/publish", allowed=(422,))
    return created


def _marker_data(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that a round stored in a dataset's metadata; empty for other datasets."""
    data = (dataset.get("metadata") or {}).get(MARKER)
    return data if isinstance(data, dict) else {}


# --- Changes on the server --------------------------------------------------------------------------------------------


def _changed_settings(client: ArgillaClient, dataset: Mapping[str, Any]) -> str:
    """Return the names of the settings that are not as they were when the dataset was created; empty for none."""
    path = f"/api/v1/datasets/{dataset['id']}"
    parts = {
        "fields": client.get(f"{path}/fields")["items"],
        "questions": client.get(f"{path}/questions")["items"],
        "metadata": client.get(f"/api/v1/me/datasets/{dataset['id']}/metadata-properties")["items"],
    }
    now, before = _fingerprints({**dataset, **parts}), _marker_data(dataset).get("settings", {})
    changes = {name: "was changed" if name in before else "was added" for name in now if now[name] != before.get(name)}
    changes |= {name: "is missing" for name in before if name not in now}
    return "; ".join(f"{name} {change}" for name, change in sorted(changes.items()))


def _fingerprints(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> hash of each setting that annotators see; `settings`: as `settings_for`."""
    shown: dict[str, object] = {
        "guidelines": (settings["guidelines"] or "").strip(),
        "annotators per item": settings["distribution"]["min_submitted"],
        "metadata of any name": settings["allow_extra_metadata"],
    }
    for kind in PARTS:
        for part in settings[kind]:
            asked = part["settings"]
            options = [
                [option["value"], option.get("text"), option.get("description")]
                for option in asked.get("options") or ()
            ]
            texts = [part.get("title"), part.get("description") or "", asked.get("template")]
            shown[f"{kind}: {part['name']}"] = [asked["type"], bool(part.get("required")), texts, options]
    return {name: hashlib.sha256(json_line(value).encode()).hexdigest()[:16] for name, value in shown.items()}


def describe_changes(client: ArgillaClient, planned: RoundDataset, dataset: Mapping[str, Any]) -> list[Message]:
    """Return a message on changes of a dataset's settings since it was created."""
    if dataset["status"] == "draft":
        return [Message(planned.name, f"not created completely; complete it with {_AGAIN}")]
    changed = _changed_settings(client, dataset)
    return [Message(planned.name, f"changed on the server: {changed}; restore its settings")] if changed else []


def describe_missing(planned: RoundDataset, due: Collection[str], existing: Collection[str]) -> list[Message]:
    """Return a message on items that need annotators (`due`) but have no record. `existing`: items with one."""
    missing = [item for item in planned.items if item in due and item not in existing]
    if not missing:
        return []
    problem = (
        f"{len(missing)} of {len(due)} items that need annotators have no record, the first: {quoted(missing[0])}; "
        f"create deleted or unpublished records with {_AGAIN}"
    )
    return [Message(planned.name, problem, "no record")]


def describe_edited(
    planned: RoundDataset, content: RoundContent, records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> list[Message]:
    """Return a message on items whose text was edited on the server; `items`: record id -> item id."""
    shown = {items[one["external_id"]]: one["fields"].get(FIELD) for one in records if one["external_id"] in items}
    edited = sorted(name for name, field in shown.items() if field != displayed(content.items[name]))
    if not edited:
        return []
    problem = (
        f"the text of {counted(len(edited), 'item')} was edited on the server ({listed(edited)}), and annotations may "
        "be about the other text; restore it, or delete the records in Argilla (annotations collected so far count) "
        f"and create them again with {_AGAIN}"
    )
    return [Message(planned.name, problem, "edited")]


# --- Search index: annotators see it, and if it is broken no work seems to be left ------------------------------------


def _indexed(client: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the numbers of records (`total`, `completed`) in the search index; None if it does not answer."""
    progress: dict[str, int] | None = client.ask_search_engine(f"/api/v1/datasets/{dataset['id']}/progress")
    return progress


def describe_index(
    client: ArgillaClient, planned: RoundDataset, dataset: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> list[Message] | None:
    """Return a message if the search index differs from the database (`records`); None if it does not answer."""
    indexed, completed = _indexed(client, dataset), sum(record["status"] == "completed" for record in records)
    if indexed is None:
        return None
    if indexed["total"] != len(records):
        problem = f"annotators see {indexed['total']} of {len(records)} items, because the search index is incomplete"
        return [Message(planned.name, f"{problem}; repair it on the server: `{REPAIR}`", "incomplete index")]
    # The index is read after the records, so it may be ahead while annotators work. Behind them, it has lost something.
    if indexed["completed"] < completed:
        problem = f"the search index has {indexed['completed']} completed items, the database {completed}; if this "
        return [Message(planned.name, f"{problem}does not change, repair it on the server: `{REPAIR}`", "old index")]
    return []


def require_indexed(client: ArgillaClient, planned: RoundDataset, dataset: Mapping[str, Any]) -> None:
    """Raise RoundError if annotators see fewer items than the dataset has."""
    indexed = (_indexed(client, dataset) or {"total": 0})["total"]
    total = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1)["total"]
    if indexed != total:
        raise RoundError(
            f"{client.url}: {planned.name}: annotators see {indexed} of {total} items, because the search index is "
            f"incomplete; run `{REPAIR}` on the server, then repeat the command"
        )


# --- Records ----------------------------------------------------------------------------------------------------------


def records_of(client: ArgillaClient, dataset_id: str, include: str = "") -> Iterator[dict[str, Any]]:
    """Yield every record once, from the database; pages may overlap while records are added."""
    seen: set[str] = set()
    offset, params = 0, {"include": include} if include else {}
    while True:
        listing = client.get(f"/api/v1/datasets/{dataset_id}/records", offset=offset, limit=PAGE, **params)
        for record in listing["items"]:
            if record["id"] not in seen:
                seen.add(record["id"])
                yield record
        offset += PAGE
        if not listing["items"] or offset >= listing["total"]:
            return
