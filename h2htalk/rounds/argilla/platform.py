"""The platform `argilla`: a workspace for each language, a dataset for each session, annotations from the database.

Every step creates only what is missing, so that it can be interrupted at any request and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.errors import counted
from h2htalk.progress import Progress
from h2htalk.rounds.argilla.accounts import (
    add_annotators,
    annotators_by_user,
    describe_accounts,
    make_workspaces,
    users,
    visible_workspaces,
    workspaces,
)
from h2htalk.rounds.argilla.client import RETRY_SECONDS, ArgillaClient, connect, require_search_engine
from h2htalk.rounds.argilla.dataset_settings import (
    RoundContent,
    RoundDataset,
    check_guidelines,
    dataset_names,
    last_assignment_sets,
    round_content,
    round_datasets,
    workspace_name,
)
from h2htalk.rounds.argilla.datasets import (
    REPAIR,
    WorkspaceDatasets,
    datasets_in,
    describe_changes,
    describe_dead_index,
    describe_duplicates,
    describe_edited,
    describe_index,
    describe_missing,
    ensure_dataset,
    offered_items,
    records_of,
    require_free,
    require_indexed,
    require_ours,
)
from h2htalk.rounds.argilla.read_annotations import ArgillaResponse, read_responses, responses_of
from h2htalk.rounds.argilla.record_publishing import AdvanceDiscards, DiscardPlan, items_to_discard, publish_records
from h2htalk.rounds.argilla.records import record_ids
from h2htalk.rounds.assignment.remaining_annotations import remaining_requests
from h2htalk.rounds.platforms import Collected, Message
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.round_state import RoundState

# Responses discarded in advance: the server cannot tell them from an annotator's own.
DISCARDS = "argilla_discards.jsonl"
# Records in one request to delete some, the server's limit.
DELETED_AT_ONCE = 100
# Seconds of publishing without a progress line.
_SILENT = 3.0


class ArgillaPlatform:
    """An Argilla server, which hands items out to annotators."""

    assigns_items = False

    def __init__(self) -> None:
        self._client: ArgillaClient | None = None

    def _connect(self) -> ArgillaClient:
        """Return the connection of this command: one that has answered is kept through a restart of the server."""
        self._client = self._client or connect(RETRY_SECONDS)
        return self._client

    def check(self, state: RoundState) -> None:
        """Check server, key, version, guidelines, and that no other round uses the workspaces; change nothing.

        Raises:
            RoundError, MissingExtraError: one of these is not as required.
        """
        folder = state.folder
        client = self._connect()
        require_search_engine(client)
        content = round_content(folder)
        check_guidelines(folder, content)
        names = {workspace_name(content.spec, folder.name, one): one for one in content.guidelines}
        ids = workspaces(client)
        for name, language in names.items():
            datasets = datasets_in(client, ids.get(name), content.marker)
            require_free(client, datasets, name, dataset_names(folder.name, language), content.marker)
        if client.role != "owner":
            make_workspaces(client, names)

    def publish(self, state: RoundState) -> list[str]:
        """Create missing workspaces, accounts, datasets and records; return messages for the manager.

        Raises:
            RoundError: the server fails or refuses, another round's data is in the way, or annotators would not see
                what is published.
        """
        folder = state.folder
        client = self._connect()
        content = round_content(folder)
        planned_datasets = round_datasets(folder, content)
        all_ids = make_workspaces(client, [one.workspace for one in planned_datasets])
        ids = {one.workspace: all_ids[one.workspace] for one in planned_datasets}
        round_users, messages = add_annotators(client, folder, ids)
        datasets = {name: datasets_in(client, id, content.marker) for name, id in ids.items()}
        annotators, discards = folder.annotators(), AdvanceDiscards(folder.private / DISCARDS)
        annotated = {(item, annotator) for item, annotator, _ in folder.annotations()}
        needed, last = _needed(folder, content), last_assignment_sets(planned_datasets)
        created = 0
        with Progress("sessions", len(planned_datasets), silent=_SILENT) as progress:
            for planned in planned_datasets:
                existing = datasets[planned.workspace]
                moved = {name for name in planned.items if last[name] > planned.assignment_set}
                plan = DiscardPlan(
                    items_to_discard([content.items[name] for name in planned.items], annotators, annotated),
                    moved,
                    {name for name in planned.items if name in needed and name not in moved},
                )
                if plan.due or existing.find(planned):
                    dataset = ensure_dataset(client, content, planned, ids[planned.workspace], existing)
                    new, more = publish_records(client, content, planned, dataset, round_users, plan, discards)
                    created, messages = created + new, [*messages, *more]
                    require_indexed(client, planned, dataset)
                progress.advance()
        items = counted(len({name for planned in planned_datasets for name in planned.items}), "item")
        new_records = f"; {counted(created, 'new record')}" if created else ""
        messages.append(
            f"{client.url}: {items} in {counted(len(planned_datasets), 'dataset')} of the workspaces "
            f"{', '.join(sorted(ids))}{new_records}"
        )
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Return all responses, from the server's database and not from its search index.

        Raises:
            RoundError: the server does not answer, the key does not see all of the round, or a dataset is another
                round's.
        """
        folder = state.folder
        client = self._connect()
        content = round_content(folder)
        planned_datasets = round_datasets(folder, content)
        ids = visible_workspaces(client, [planned.workspace for planned in planned_datasets])
        contents = _read_datasets(client, folder, content, planned_datasets, ids)
        accounts = users(client, ids.values())
        discards = AdvanceDiscards(folder.private / DISCARDS)
        read = read_responses(
            folder.name,
            contents.responses,
            items=content.items,
            questions=content.questions,
            annotators=annotators_by_user(folder, accounts),
            names={account.id: name for name, account in accounts.items()},
            discarded=discards.all(),
        )
        discards.change(remove=read.answered)
        notes = (*contents.notes, *describe_accounts(client, folder, accounts), *read.notes)
        mistakes = (*contents.mistakes, *read.mistakes)
        return Collected(read.annotations, mistakes, notes, read.started, contents.offered)

    def close(self, state: RoundState) -> list[str]:
        """Return a message: the server keeps everything, and later responses are not read."""
        folder = state.folder
        planned = round_datasets(folder, round_content(folder))
        names = ", ".join(sorted({one.workspace for one in planned}))
        return [
            f"the datasets in {names} do not change; later responses do not count unless the round is reopened. Delete "
            "the datasets in Argilla when nobody needs them"
        ]

    def erase(self, state: RoundState, items: Collection[str]) -> list[str]:
        """Delete the records of items, with all responses, from every dataset in the round's workspaces."""
        folder = state.folder
        client, spec, name = self._connect(), folder.spec(), folder.name
        ids = record_ids(items, folder.salt())
        # Also of languages of which every item was erased, and from copies that somebody made of a dataset.
        names = {workspace_name(spec, name, language) for language in folder.manifest().get("languages", ())}
        deleted = 0
        for workspace in visible_workspaces(client, names).values():
            for dataset in client.get("/api/v1/me/datasets", workspace_id=workspace)["items"]:
                found = [one["id"] for one in records_of(client, dataset["id"]) if one["external_id"] in ids]
                for start in range(0, len(found), DELETED_AT_ONCE):
                    batch = ",".join(found[start : start + DELETED_AT_ONCE])
                    client.call("DELETE", f"/api/v1/datasets/{dataset['id']}/records", params={"ids": batch})
                deleted += len(found)
        return [
            f"{client.url}: {counted(deleted, 'record')} deleted with all responses. Its files keep the bytes: ask its "
            f"operator to compact the database (VACUUM), to make the search index again (`{REPAIR}`), and to let "
            "backups expire"
        ]


@dataclass
class _DatasetContents:
    """Responses, item -> annotators that it is still offered to, and messages, of all datasets."""

    responses: list[ArgillaResponse] = field(default_factory=list)
    offered: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    mistakes: list[Message] = field(default_factory=list)


def _read_datasets(
    client: ArgillaClient,
    folder: RoundFolder,
    content: RoundContent,
    planned_datasets: Sequence[RoundDataset],
    workspace_ids: Mapping[str, str],
) -> _DatasetContents:
    """Read every dataset, and compare it with what it should be."""
    item_ids = record_ids(content.items, content.salt)
    answered = {(i, v) for i, v, question in folder.annotations() if question != SKIPPED}
    stored, earlier = Counter(item for item, _ in answered), Counter[str]()
    needed, last = _needed(folder, content), last_assignment_sets(planned_datasets)
    datasets: dict[str, WorkspaceDatasets] = {
        name: datasets_in(client, workspace_ids.get(name), content.marker)
        for name in {one.workspace for one in planned_datasets}
    }
    contents, index_answers = _DatasetContents(), True
    for planned in planned_datasets:
        existing = datasets[planned.workspace]
        dataset = existing.find(planned)
        # An item is offered in its last assignment set. `publish` creates a missing dataset again, with the annotators
        # that stored annotations leave.
        for item in planned.items:
            contents.offered[item] = max(0, planned.annotators - max(0, stored[item] - earlier[item]))
        earlier.update(dict.fromkeys(planned.items, planned.annotators))
        if dataset is None:
            if any(last[item] == planned.assignment_set for item in planned.items):
                if same_name := existing.by_name.get(planned.name):
                    require_ours(client, planned.workspace, same_name, content.marker)
                problem = (
                    "the dataset is missing on the server; annotations collected earlier count. Create it again with "
                    "`h2htalk round open` and the same options if its items need annotators"
                )
                contents.notes.append(Message(planned.name, problem))
            continue
        records = list(records_of(client, dataset["id"], "responses"))
        offered = offered_items(dataset, records, item_ids)
        contents.responses += responses_of(planned.name, records, item_ids)
        contents.offered |= offered
        due = [item for item in planned.items if item in needed and last[item] == planned.assignment_set]
        contents.notes += describe_changes(client, content, planned, dataset)
        contents.mistakes += describe_edited(planned, content, records, item_ids)
        contents.notes += describe_missing(planned, due, offered)
        completed = sum(record["status"] == "completed" for record in records)
        messages = describe_index(client, planned, dataset, len(records), completed) if index_answers else []
        if messages is None:
            # One message for a dead search engine, not one for each dataset.
            messages, index_answers = [describe_dead_index(client)], False
        contents.notes += messages
    contents.notes += describe_duplicates(datasets)
    return contents


def _needed(folder: RoundFolder, content: RoundContent) -> dict[str, int]:
    """Return item -> further annotators that it needs by what is stored: missing records of these are created."""
    annotations, annotators = folder.annotations(), folder.annotators()
    return remaining_requests(content.spec, folder.items(), content.questions, annotations, annotators, ties=True)
