"""Earlier looks at datasets: one in which nothing has happened since is not read again.

The server touches a dataset's `last_activity_at` in the same transaction in which it stores, changes or deletes a
response. The stamp is compared for equality with the one listed *before* the records were read: an answer that comes
between is read once more, never missed, whatever the server's clock does. Only what an owner or admin writes in bulk in
another's name leaves no stamp: it is seen when all is read, at closing and at opening again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import write_jsonl
from h2htalk.errors import DataError
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.datasets import offers, records_of
from h2htalk.rounds.argilla.read_annotations import ArgillaResponse, responses_of
from h2htalk.rounds.round_folder import read_records


@dataclass(frozen=True, slots=True)
class DatasetSnapshot:
    """One dataset, as it was read.

    Attributes:
        dataset: its id.
        stamp: when something last happened in it, in the server's words; empty where it does not say.
        total: records in it; `done`: those of them that want no more answers.
        responses: of annotators and strangers.
        offered: item -> answers that it still asks for.
    """

    dataset: str
    stamp: str
    total: int
    done: int
    responses: tuple[ArgillaResponse, ...]
    offered: Mapping[str, int]


def read_dataset(
    wire: ArgillaClient,
    dataset: Mapping[str, Any],
    name: str,
    items: Mapping[str, str],
    known: DatasetSnapshot | None,
) -> DatasetSnapshot:
    """What a dataset holds now: from the server's database, or what is known where nothing has happened since.

    Args:
        wire: to the server.
        dataset: as the server lists it, a moment ago.
        name: of its session, whatever the dataset is called now.
        items: record id -> item id.
        known: the last look at it; None: read all of it.
    """
    last = dataset.get("last_activity_at")
    stamp = f"{last} {dataset.get('updated_at')}" if last else ""
    if known is not None and stamp and known.stamp == stamp:
        # Records that are deleted or added leave no stamp.
        total = wire.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1)["total"]
        if total == known.total:
            return known
    records = list(records_of(wire, dataset["id"], "responses"))
    return DatasetSnapshot(
        dataset["id"],
        stamp,
        len(records),
        sum(record["status"] == "completed" for record in records),
        tuple(responses_of(name, records, items)),
        offers(dataset, records, items),
    )


def read_looks(path: Path) -> dict[str, DatasetSnapshot]:
    """Dataset id -> the last look at it; empty where there was none, or its file is not what it was."""
    try:
        return (
            {look.dataset: look for _, look in read_records(path, DatasetSnapshot)} if path.exists() else {}
        )
    except DataError:
        # Nothing is lost: it is a copy of what the server holds, and is read there again.
        return {}


def write_looks(path: Path, looks: Mapping[str, DatasetSnapshot]) -> None:
    """Keep looks for the next one. Raises DataError."""
    write_jsonl(path, map(asdict, looks.values()))
