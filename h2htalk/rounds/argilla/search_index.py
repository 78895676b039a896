"""What the search index shows annotators, against the database: a dead or empty index looks like no work left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import LOOK, ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import RoundDataset

REPAIR = "python -m argilla_server search-engine reindex"


def _progress(wire: ArgillaClient, dataset: Mapping[str, Any]) -> dict[str, int] | None:
    """Total and completed as the search index shows them, which is what annotators see; None where it does not
    answer.
    """
    path = f"/api/v1/datasets/{dataset['id']}/progress"
    try:
        status, found = wire.call(
            "GET", path, allowed=range(400, 600), failures=1, timeout=LOOK, patience=0.0
        )
    except RoundError:
        return None
    return found if status == 200 else None


def describe_index(
    wire: ArgillaClient, session: RoundDataset, dataset: Mapping[str, Any], total: int, done: int
) -> list[str] | None:
    """What annotators see against what the database holds: a line where they differ, None where nothing can be seen.

    Args:
        wire, session, dataset: what to look at.
        total: records of it in the database; `done`: those of them that want no more answers.
    """
    found = _progress(wire, dataset)
    if found is None:
        return None
    if found["total"] != total:
        return [
            f"{session.dataset}: the search index shows annotators {found['total']} of {total} items: it looks as "
            f"if no work were left; repair it on the server: `{REPAIR}`"
        ]
    # Read later than the records, the index may be ahead of them while annotators work; behind, it has lost something.
    if found["completed"] < done:
        return [
            f"{session.dataset}: the search index counts {found['completed']} items as complete, the database "
            f"{done}; if it stays so: `{REPAIR}` on the server"
        ]
    return []


def dead_index(wire: ArgillaClient) -> str:
    return (
        f"{wire.url}: the search engine does not answer: annotators see errors although their answers "
        "are stored; start "
        f"it, and if it comes back empty: `{REPAIR}` on the server"
    )


def require_shown(wire: ArgillaClient, session: RoundDataset, dataset: Mapping[str, Any]) -> None:
    """Raise RoundError where annotators would see fewer items than are there."""
    found = _progress(wire, dataset)
    total = wire.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1)["total"]
    if found is None or found["total"] != total:
        raise RoundError(
            f"{wire.url}: {session.dataset}: {total} items are stored, and annotators see "
            f"{'none' if found is None else found['total']} of them, as the search index lacks them; on the server: "
            f"`{REPAIR}`, then give the same command again"
        )
