"""Datasets of a round on the server: find them by their marker, create and compare them, and list their records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.data.files import json_line
from h2htalk.errors import RoundError, counted, listed, quoted
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import RoundContent, RoundDataset, settings_for
from h2htalk.rounds.argilla.records import FIELD, displayed
from h2htalk.rounds.platforms import Message

# Records in one listing, the server's limit.
PAGE = 1000
# Key of the round's data in a dataset's metadata.
MARKER = "h2htalk"
# Parts of a dataset's settings -> their address on the server.
PARTS = {"fields": "fields", "questions": "questions", "metadata": "metadata-properties"}
REPAIR = "python -m argilla_server search-engine reindex"


@dataclass(frozen=True, slots=True)
class WorkspaceDatasets:
    """The datasets in a workspace.

    Attributes:
        by_name: all datasets.
        ours: assignment set and session -> dataset with this round's marker; a dataset may be renamed in Argilla.
        duplicates: names of further datasets with the marker of the same session.
    """

    by_name: Mapping[str, dict[str, Any]]
    ours: Mapping[tuple[int, int], dict[str, Any]]
    duplicates: tuple[str, ...] = ()

    def find(self, planned: RoundDataset) -> dict[str, Any] | None:
        """Return a dataset of the round, whatever its name is; None if it does not exist."""
        return self.ours.get((planned.assignment_set, planned.session))


def datasets_in(client: ArgillaClient, workspace_id: str | None, marker: str) -> WorkspaceDatasets:
    """Return the datasets in a workspace; none if it does not exist. `marker`: of the round."""
    records = client.get("/api/v1/me/datasets", workspace_id=workspace_id)["items"] if workspace_id else []
    ours: dict[tuple[int, int], dict[str, Any]] = {}
    duplicates = []
    for one in sorted(records, key=lambda one: (str(one.get("inserted_at")), one["id"])):
        data = _marker_data(one)
        if data.get("round") == marker:
            key = (data["assignment_set"], data["session"])
            if key in ours:
                duplicates.append(one["name"])
            ours.setdefault(key, one)
    return WorkspaceDatasets({one["name"]: one for one in records}, ours, tuple(duplicates))


def require_free(
    client: ArgillaClient, datasets: WorkspaceDatasets, workspace: str, names: re.Pattern[str], marker: str
) -> None:
    """Raise RoundError if a workspace contains another round's dataset, or another one with a name of ours.

    Args:
        client: of the server.
        datasets: in the workspace.
        workspace: its name.
        names: names of our datasets there.
        marker: of the round.
    """
    for name, dataset in datasets.by_name.items():
        if _marker_data(dataset).get("round", marker) != marker or names.fullmatch(name):
            require_ours(client, workspace, dataset, marker)


def ensure_dataset(
    client: ArgillaClient,
    content: RoundContent,
    planned: RoundDataset,
    workspace_id: str,
    datasets: WorkspaceDatasets,
) -> dict[str, Any]:
    """Return a published dataset of the round; create it if necessary, and replace what an interruption left.

    Raises:
        RoundError: the dataset has other settings, or its name is in use.
    """
    settings = settings_for(content, planned)
    dataset = datasets.find(planned)
    if dataset is None or dataset["status"] == "draft":
        if dataset is not None:
            client.call("DELETE", f"/api/v1/datasets/{dataset['id']}", allowed=(404,))
        return _create(client, content, planned, workspace_id, settings)
    if changed := differences(_settings_of(client, dataset), settings, _marker_data(dataset).get("texts", "")):
        raise RoundError(
            f"{client.url}: the dataset {planned.name} has other settings: {'; '.join(changed)}; restore them, or open "
            "the round under another name"
        )
    return dataset


def _create(
    client: ArgillaClient,
    content: RoundContent,
    planned: RoundDataset,
    workspace_id: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    data = {
        "round": content.marker,
        "assignment_set": planned.assignment_set,
        "session": planned.session,
        "texts": texts_fingerprint(settings),
    }
    body = {
        "name": planned.name,
        "workspace_id": workspace_id,
        "guidelines": settings["guidelines"],
        "distribution": settings["distribution"],
        "allow_extra_metadata": False,
        "metadata": {MARKER: data},
    }
    client.call("POST", "/api/v1/datasets", body, allowed=(409,))
    datasets = datasets_in(client, workspace_id, content.marker)
    created = datasets.find(planned)
    if created is None:
        if planned.name in datasets.by_name:
            require_ours(client, planned.workspace, datasets.by_name[planned.name], content.marker)
        raise RoundError(
            f"{client.url}: the dataset of another session is now called {planned.name}; rename it in Argilla, then "
            "repeat the command"
        )
    path = f"/api/v1/datasets/{created['id']}"
    for kind, address in PARTS.items():
        for part in settings[kind]:
            client.call("POST", f"{path}/{address}", part, allowed=(409,))
    # Refused if our own first attempt succeeded and its reply was lost.
    client.call("PUT", f"{path}/publish", allowed=(422,))
    return created


def _settings_of(client: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dataset's settings, as `settings_for`."""
    path = f"/api/v1/datasets/{dataset['id']}"
    return {
        "guidelines": dataset["guidelines"],
        "distribution": dataset["distribution"],
        "allow_extra_metadata": dataset["allow_extra_metadata"],
        "fields": client.get(f"{path}/fields")["items"],
        "questions": client.get(f"{path}/questions")["items"],
        "metadata": client.get(f"/api/v1/me/datasets/{dataset['id']}/metadata-properties")["items"],
    }


def require_ours(client: ArgillaClient, workspace: str, dataset: Mapping[str, Any], marker: str) -> None:
    """Raise RoundError if a dataset does not have the round's marker."""
    data = _marker_data(dataset)
    if data.get("round") != marker:
        owner = "another round" if data else "somebody else"
        raise RoundError(
            f"{client.url}: the workspace {workspace} contains a dataset {dataset['name']} that belongs to {owner}; "
            "rename this round's folder, or set another workspace"
        )


def _marker_data(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that a round stored in a dataset's metadata; empty for other datasets."""
    data = (dataset.get("metadata") or {}).get(MARKER)
    return data if isinstance(data, dict) else {}


def describe_changes(
    client: ArgillaClient, content: RoundContent, planned: RoundDataset, dataset: Mapping[str, Any]
) -> list[str]:
    """Return messages on changes of a dataset's name and settings since it was created."""
    messages: list[str] = []
    if dataset["name"] != planned.name:
        problem = f"renamed to {quoted(dataset['name'])} on the server; it still counts"
        messages.append(Message(planned.name, problem, "renamed"))
    if dataset["status"] == "draft":
        command = "`h2htalk round open` with the same options"
        return [*messages, Message(planned.name, f"not created completely; complete it with {command}")]
    settings = settings_for(content, planned)
    actual = _settings_of(client, dataset)
    if changed := differences(actual, settings, _marker_data(dataset).get("texts", "")):
        problem = f"changed on the server: {'; '.join(changed)}; restore its settings"
        messages.append(Message(planned.name, problem))
    return messages


def describe_missing(planned: RoundDataset, due: Sequence[str], existing: Collection[str]) -> list[str]:
    """Return a message on items that need annotators but have no record. `existing`: items with one."""
    missing = [item for item in due if item not in existing]
    if not missing:
        return []
    problem = (
        f"{len(missing)} of {len(due)} items that need annotators have no record, the first: {quoted(missing[0])}; "
        "create deleted or unpublished records with `h2htalk round open` and the same options"
    )
    return [Message(planned.name, problem, "no record")]


def describe_edited(
    planned: RoundDataset, content: RoundContent, records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> list[Message]:
    """Return a message on items whose text was edited on the server: nobody knows who read what.

    Args:
        planned, content: dataset and round.
        records: of the dataset.
        items: record id -> item id; other records are ignored.
    """
    shown = {items[one["external_id"]]: one["fields"].get(FIELD) for one in records if one["external_id"] in items}
    edited = sorted(name for name, field in shown.items() if field != displayed(content.items[name]))
    if not edited:
        return []
    problem = (
        f"the text of {counted(len(edited), 'item')} was edited on the server ({listed(edited)}), and annotations may "
        "be about the other text; restore it, or delete the records in Argilla (annotations collected so far count) "
        "and create them again with `h2htalk round open` and the same options"
    )
    return [Message(planned.name, problem, "edited")]


def describe_duplicates(datasets: Mapping[str, WorkspaceDatasets]) -> list[str]:
    """Return messages on second datasets of a session, by workspace name: their responses are not read."""
    return [
        Message(
            workspace,
            f"the dataset {quoted(name)} is a copy of a session's dataset; its responses do not count: check it, and "
            "delete it in Argilla",
            "copy",
        )
        for workspace, found in sorted(datasets.items())
        for name in found.duplicates
    ]


# --- Differences in settings ------------------------------------------------------------------------------------------


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any], texts: str = "") -> list[str]:
    """Return messages on what annotators see differently.

    Args:
        actual, expected: `settings_for`.
        texts: `texts_fingerprint` when the dataset was created. Texts that still have it are no difference: a later
            release may have other texts.
    """
    messages = []
    if (actual["guidelines"] or "").strip() != expected["guidelines"]:
        messages.append("other guidelines")
    numbers = [one["distribution"]["min_submitted"] for one in (actual, expected)]
    if numbers[0] != numbers[1]:
        messages.append(f"{numbers[0]} annotators per item, not {numbers[1]}")
    if actual["allow_extra_metadata"] != expected["allow_extra_metadata"]:
        messages.append("metadata of any name is allowed")
    same_texts = texts_fingerprint(actual) == texts
    for kind in PARTS:
        ours, theirs = ({part["name"]: part for part in one[kind]} for one in (expected, actual))
        messages += [f"{kind}: {name} is missing" for name in sorted(ours.keys() - theirs.keys())]
        messages += [f"{kind}: {name} was added" for name in sorted(theirs.keys() - ours.keys())]
        for name in sorted(ours.keys() & theirs.keys()):
            one, other = (_structure(part) | ({} if same_texts else _part_texts(part))
                          for part in (ours[name], theirs[name]))  # fmt: skip
            if changed := [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]:
                messages.append(f"{kind}: {name} has another {', '.join(changed)}")
    return messages


def texts_fingerprint(settings: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over the texts that annotators see."""
    texts = {kind: {part["name"]: _part_texts(part) for part in settings[kind]} for kind in PARTS}
    return hashlib.sha256(json_line(texts).encode()).hexdigest()[:16]


def _structure(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a field, question or property asks for, without its texts."""
    return {
        "type": part["settings"]["type"],
        "list of choices": [option["value"] for option in part["settings"].get("options") or ()],
        "required flag": part.get("required"),
    }


def _part_texts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a part, by where they are displayed: the labels of two values may be swapped."""
    settings = part["settings"]
    texts = {
        "title": part.get("title"),
        "description": part.get("description"),
        "page": settings.get("template"),
    }
    for option in settings.get("options") or ():
        # Ratings have no labels.
        texts[f"label of {option['value']}"] = option.get("text")
        texts[f"help of {option['value']}"] = option.get("description")
    return {key: value for key, value in texts.items() if value}


# --- Search index: annotators see it, and if it is broken no work seems to be left ------------------------------------


def _indexed(client: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the numbers of records (`total`, `completed`) in the search index; None if it does not answer."""
    progress: dict[str, int] | None = client.ask_search_engine(f"/api/v1/datasets/{dataset['id']}/progress")
    return progress


def describe_index(
    client: ArgillaClient, planned: RoundDataset, dataset: Mapping[str, Any], total: int, completed: int
) -> list[str] | None:
    """Return a message if the search index differs from the database; None if it does not answer.

    Args:
        client, planned, dataset: server and dataset.
        total: number of its records in the database.
        completed: number of those that need no more annotators.
    """
    indexed = _indexed(client, dataset)
    if indexed is None:
        return None
    if indexed["total"] != total:
        problem = f"annotators see {indexed['total']} of {total} items, because the search index is incomplete; repair "
        return [Message(planned.name, f"{problem}it on the server: `{REPAIR}`", "incomplete index")]
    # The index is read after the records, so it may be ahead while annotators work. Behind them, it has lost something.
    if indexed["completed"] < completed:
        problem = f"the search index has {indexed['completed']} completed items, the database {completed}; if this "
        return [Message(planned.name, f"{problem}does not change, repair it on the server: `{REPAIR}`", "old index")]
    return []


def describe_dead_index(client: ArgillaClient) -> str:
    return (
        f"{client.url}: the search engine does not answer: annotators see errors although their responses are stored; "
        f"start it, and if its index is empty, run `{REPAIR}` on the server"
    )


def require_indexed(client: ArgillaClient, planned: RoundDataset, dataset: Mapping[str, Any]) -> None:
    """Raise RoundError if annotators see fewer items than the dataset has."""
    indexed = _indexed(client, dataset)
    total = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1)["total"]
    if indexed is None or indexed["total"] != total:
        raise RoundError(
            f"{client.url}: {planned.name}: annotators see {0 if indexed is None else indexed['total']} of {total} "
            f"items, because the search index is incomplete; run `{REPAIR}` on the server, then repeat the command"
        )


# --- Records --------------------------------------------------------------------------------------------------------


def records_of(client: ArgillaClient, dataset_id: str, include: str = "") -> Iterator[dict[str, Any]]:
    """Yield every record once, from the database; pages may overlap while records are added."""
    seen: set[str] = set()
    offset = 0
    while True:
        params = {"include": include} if include else {}
        listing = client.get(f"/api/v1/datasets/{dataset_id}/records", offset=offset, limit=PAGE, **params)
        for record in listing["items"]:
            if record["id"] not in seen:
                seen.add(record["id"])
                yield record
        offset += PAGE
        if not listing["items"] or offset >= listing["total"]:
            return


def offered_items(
    dataset: Mapping[str, Any], records: Iterable[Mapping[str, Any]], items: Mapping[str, str]
) -> dict[str, int]:
    """Return item -> annotators that the server still offers it to; it counts the responses of others, too.

    Args:
        dataset: as the server lists it.
        records: of the dataset, with responses.
        items: record id -> item id.
    """
    requested = dataset["distribution"]["min_submitted"]
    offered = {}
    for record in records:
        if record["external_id"] in items:
            submitted = sum(one["status"] == "submitted" for one in record.get("responses") or ())
            remaining = 0 if record["status"] == "completed" else max(0, requested - submitted)
            offered[items[record["external_id"]]] = remaining
    return offered
