"""Compare the search index, which annotators see, with the database: with a broken index no work seems to be left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import SEARCH_TIMEOUT, ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import RoundDataset
from h2htalk.rounds.platforms import Message

REPAIR = "python -m argilla_server search-engine reindex"


def _indexed(client: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the numbers of records (`total`, `completed`) in the search index; None if it does not answer."""
    path = f"/api/v1/datasets/{dataset['id']}/progress"
    try:
        status, progress = client.call(
            "GET", path, allowed=range(400, 600), attempts=1, timeout=SEARCH_TIMEOUT, retry_seconds=0.0
        )
    except RoundError:
        return None
    return progress if status == 200 else None


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
