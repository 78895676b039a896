"""The platform `argilla`: a workspace for each language, a dataset for each session, annotations from the database.

Every step creates only what is missing, so that it can be interrupted at any request and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.errors import counted
from h2htalk.progress import Progress
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.accounts import (
    add_annotators,
    describe_accounts,
    end_access,
    make_workspaces,
    read_accounts,
    visible_workspaces,
    workspaces,
)
from h2htalk.rounds.argilla.client import (
    RETRY_SECONDS,
    ServerClient,
    connect,
    require_search_engine,
)
from h2htalk.rounds.argilla.datasets import (
    FIELD,
    REPAIR,
    RoundContent,
    RoundDataset,
    datasets_in,
    describe_changes,
    describe_edited,
    describe_index,
    describe_missing,
    displayed,
    ensure_dataset,
    read_guidelines,
    record_ids,
    records_of,
    require_free,
    require_indexed,
    round_content,
    round_datasets,
    workspace_name,
)
from h2htalk.rounds.argilla.deletion import delete_annotator, delete_round_content, describe_bytes
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses, responses_of
from h2htalk.rounds.argilla.record_publishing import AdvanceDiscards, publish_records
from h2htalk.rounds.platforms import Collected, Message, Removal
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundState

# Responses discarded in advance: the server cannot tell them from an annotator's own.
DISCARDS = "argilla_discards.jsonl"
# Records in one request to delete some, the server's limit.
DELETED_AT_ONCE = 100
# Seconds of publishing without a progress line.
_SILENT = 3.0


class ArgillaPlatform:
    """An Argilla server, which hands items out to annotators."""

    assigns_items = False

    @cached_property
    def _client(self) -> ServerClient:
        """The connection of this command: one that has answered is kept through a restart of the server."""
        return connect(RETRY_SECONDS)

    def check(self, state: RoundState) -> None:
        """Check server, key, version, guidelines, and that no other round uses the workspaces; change nothing."""
        client = self._client
        content = round_content(state)
        require_search_engine(client)
        ids = workspaces(client)
        names = []
        for language in content.languages:
            read_guidelines(content, language)
            names.append(workspace_name(state, language))
            require_free(
                client, content, datasets_in(client, ids.get(names[-1]), content.marker), language
            )
        if client.role != "owner":
            make_workspaces(client, names, state)

    def publish(self, state: RoundState) -> list[str]:
        """Create missing workspaces, accounts, datasets and records; return messages for the manager."""
        client = self._client
        content = round_content(state)
        planned_datasets = round_datasets(content)
        all_ids = make_workspaces(client, [one.workspace for one in planned_datasets], state)
        ids = {one.workspace: all_ids[one.workspace] for one in planned_datasets}
        accounts, messages = add_annotators(client, state, ids)
        datasets = {name: datasets_in(client, id, content.marker) for name, id in ids.items()}
        discards = AdvanceDiscards(state.folder.private / DISCARDS)
        needed = state.offered()
        created = 0
        with Progress("sessions", len(planned_datasets), silent=_SILENT) as progress:
            for planned in planned_datasets:
                existing = datasets[planned.workspace]
                if existing.find(planned) or not planned.current.isdisjoint(needed):
                    dataset = ensure_dataset(
                        client, content, planned, ids[planned.workspace], existing
                    )
                    new, more = publish_records(
                        client, content, planned, dataset, accounts, needed, discards
                    )
                    created = created + new
                    messages = [*messages, *more]
                    require_indexed(client, planned, dataset)
                progress.advance()
        items = counted(
            len({name for planned in planned_datasets for name in planned.items}), "item"
        )
        new_records = f"; {counted(created, 'new record')}" if created else ""
        messages.append(
            f"{client.url}: {items} in {counted(len(planned_datasets), 'dataset')} of the workspaces "
            f"{', '.join(sorted(ids))}{new_records}"
        )
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Return all responses, from the server's database and not from its search index."""
        client = self._client
        content = round_content(state)
        planned_datasets = round_datasets(content)
        ids = visible_workspaces(client, [planned.workspace for planned in planned_datasets])
        found, responses = _read_datasets(client, content, planned_datasets, ids)
        accounts = read_accounts(client, state, ids.values())
        discards = AdvanceDiscards(state.folder.private / DISCARDS)
        read, answered = read_responses(
            state,
            responses,
            annotators=accounts.annotators(state),
            names=accounts.names,
            discarded=discards.all(),
        )
        discards.change(remove=answered)
        notes = (*found.notes, *describe_accounts(client, state, accounts), *read.notes)
        return replace(
            read, notes=notes, mistakes=(*found.mistakes, *read.mistakes), offered=found.offered
        )

    def close(self, state: RoundState) -> list[str]:
        """Remove the annotators from the round's workspaces, so that they see no dataset; the server keeps all else."""
        client = self._client
        ids = visible_workspaces(client, round_workspaces(state))
        if not ids:
            return [f"{client.url}: nothing of the round is left there"]
        accounts = read_accounts(client, state, ids.values())
        ended = end_access(client, state, ids, accounts, {one.id for one in state.annotators})
        names = ", ".join(sorted(ids))
        path = state.folder.path
        left = counted(len(ended.removed), "annotator")
        messages = [
            f"{left} removed from {names}: they see none of its datasets any more, and later responses do not count; "
            f"`h2htalk round reopen {path}` lets them in again, and `h2htalk round delete {path}` deletes datasets and "
            "accounts when nobody needs them"
        ]
        if ended.others:
            messages.append(
                f"{', '.join(ended.others)} can still open {names}: no annotators of this round; remove them in Argilla"
            )
        return messages

    def delete(self, state: RoundState) -> Removal:
        """Delete the round's datasets, and the accounts and workspaces that it created, with their passwords."""
        removal = delete_round_content(self._client, state)
        remove_for_good(state.folder.private / DISCARDS)
        return removal

    def erase_annotator(self, state: RoundState, annotator: Annotator) -> Removal:
        """Delete the annotator's responses, also from copies of datasets, and the account if the round made it."""
        return delete_annotator(self._client, state, annotator)

    def erase(self, state: RoundState, items: Collection[str]) -> list[str]:
        """Delete the records of items, with all responses, from every dataset in the round's workspaces."""
        client = self._client
        ids = record_ids(items, state.folder.salt())
        deleted = 0
        # Also from copies that somebody made of a dataset.
        for workspace in visible_workspaces(client, round_workspaces(state)).values():
            for dataset in client.get("/api/v1/me/datasets", workspace_id=workspace)["items"]:
                found = [
                    one["id"]
                    for one in records_of(client, dataset["id"])
                    if one["external_id"] in ids
                ]
                for start in range(0, len(found), DELETED_AT_ONCE):
                    batch = ",".join(found[start : start + DELETED_AT_ONCE])
                    client.call(
                        "DELETE", f"/api/v1/datasets/{dataset['id']}/records", params={"ids": batch}
                    )
                deleted += len(found)
        return [
            f"{client.url}: {counted(deleted, 'record')} deleted with all responses; {describe_bytes()}"
        ]


def round_workspaces(state: RoundState) -> set[str]:
    """Return the names of a round's workspaces, also of languages of which every item was erased."""
    return {workspace_name(state, language) for language in state.manifest["languages"]}


def _read_datasets(
    client: ServerClient,
    content: RoundContent,
    planned_datasets: Sequence[RoundDataset],
    workspace_ids: Mapping[str, str],
) -> tuple[Collected, list[ServerResponse]]:
    """Read every dataset, and compare it with what it should be: messages, item -> offers, and all responses."""
    state = content.state
    items = record_ids(content.items, content.salt)
    needed = state.offered()
    answered = {(i, v) for i, v, question in state.annotations if question != SKIPPED}
    stored = Counter(item for item, _ in answered)
    earlier = Counter[str]()
    datasets = {
        name: datasets_in(client, workspace_ids.get(name), content.marker)
        for name in {one.workspace for one in planned_datasets}
    }
    offered: dict[str, int] = {}
    responses: list[ServerResponse] = []
    mistakes = list[str]()
    notes = list[str]()
    index_answers = True
    shown = {item.id: displayed(item) for item in state.items}
    for planned in planned_datasets:
        dataset = datasets[planned.workspace].find(planned)
        # An item is offered in its last assignment set. `publish` creates a missing dataset again, with the annotators
        # that stored annotations leave.
        offered |= {
            one: max(0, planned.annotators - max(0, stored[one] - earlier[one]))
            for one in planned.items
        }
        earlier.update(dict.fromkeys(planned.items, planned.annotators))
        if dataset is None:
            problem = (
                "the dataset is missing on the server; annotations collected earlier count. Create it again with "
                "`h2htalk round open` and the same options if its items need annotators"
            )
            if planned.current:
                notes.append(Message(planned.name, problem))
            continue
        records = list(records_of(client, dataset["id"], "responses"))
        responses += responses_of(planned.name, records, items)
        existing = set[str]()
        for record in records:
            if name := items.get(record["external_id"]):
                # The server counts the responses of others, too.
                given = sum(one["status"] == "submitted" for one in record.get("responses") or ())
                left = max(0, dataset["distribution"]["min_submitted"] - given)
                offered[name] = 0 if record["status"] == "completed" else left
                existing.add(name)
        fields = {
            items[one["external_id"]]: one["fields"].get(FIELD)
            for one in records
            if one["external_id"] in items
        }
        mistakes += describe_edited(planned, fields, shown)
        notes += describe_changes(client, planned, dataset)
        notes += describe_missing(planned, planned.current & needed, existing)
        messages = describe_index(client, planned, dataset, records) if index_answers else []
        if messages is None:
            index_answers = (
                False  # one message, and one request that a hanging engine does not answer
            )
            notes.append(
                f"{client.url}: the search engine does not answer: annotators see errors although their responses are "
                f"stored; start it, and if its index is empty, run `{REPAIR}` on the server"
            )
        notes += messages or []
    return Collected(mistakes=tuple(mistakes), notes=tuple(notes), offered=offered), responses
