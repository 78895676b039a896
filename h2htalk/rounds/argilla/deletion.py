"""Delete what a round made on an Argilla server: datasets, workspaces and accounts.

What somebody else made, or another round uses, stays and is named. Each step looks at what is there, so that it can be
interrupted at any request and repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from h2htalk.errors import counted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.accounts import (
    Accounts,
    end_access,
    keep_records,
    read_accounts,
    read_created,
    read_passwords,
    visible_workspaces,
    workspaces,
    write_passwords,
)
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.argilla.datasets import (
    REPAIR,
    marker_data,
    record_ids,
    records_of,
    round_content,
    workspace_name,
)
from h2htalk.rounds.platforms import Removal
from h2htalk.rounds.round_folder import RoundState

# Statuses of a deletion that another attempt, or somebody else, has carried out before.
GONE = (404,)


def delete_round_content(client: ServerClient, state: RoundState) -> Removal:
    """Delete the round's datasets, then accounts that it created and nobody uses, then its empty workspaces."""
    names = {workspace_name(state, language) for language in state.manifest["languages"]}
    ids = {name: id for name, id in workspaces(client).items() if name in names}
    left: list[str] = []
    if client.role != "owner" and (hidden := sorted(names - ids.keys())):
        left.append(
            f"{', '.join(hidden)}: not visible to your key, if it exists; repeat the command with an owner's"
        )
    unfinished = bool(left)
    accounts = read_accounts(client, state, ids.values())
    deleted, kept = _delete_datasets(client, state, ids)
    left += kept
    if client.role != "owner":
        left.append(
            f"accounts and workspaces ({', '.join(sorted(ids))}): only an owner's key deletes them"
        )
        return Removal(_describe(client, deleted, 0, 0), tuple(left), unfinished=True)
    created = read_created(state)
    users = {one: accounts.ids[one] for one in created.annotators if one in accounts.ids}
    removed, kept = delete_accounts(client, accounts, users.values(), ids)
    left += kept
    write_passwords(
        state, {name: one for name, one in read_passwords(state).items() if name not in removed}
    )
    own = [name for name in sorted(ids) if name in created.workspaces]
    emptied, kept = _delete_workspaces(client, {name: ids[name] for name in own})
    left += kept
    staying = {
        annotator for annotator, user in users.items() if accounts.names.get(user) not in removed
    }
    keep_records(state, accounts, annotators=staying, workspaces=set(own) - set(emptied))
    left += [
        f"workspace {name}: not recorded as created by this round; delete it in Argilla if nobody needs it"
        for name in sorted(ids.keys() - own)
    ]
    return Removal(_describe(client, deleted, len(removed), len(emptied)), tuple(left), unfinished)


def _describe(client: ServerClient, deleted: int, removed: int, emptied: int) -> tuple[str, ...]:
    amounts = [
        counted(deleted, "dataset"),
        counted(removed, "account"),
        counted(emptied, "workspace"),
    ]
    messages = [f"{client.url}: {', '.join(amounts)} deleted"]
    if deleted:
        messages.append(describe_bytes())
    return tuple(messages)


def describe_bytes() -> str:
    """Return what only the server's operator can do after a deletion."""
    return (
        "the server's files keep the bytes: ask its operator to compact the database (VACUUM), to make the search "
        f"index again (`{REPAIR}`), and to let backups expire"
    )


def _delete_datasets(
    client: ServerClient, state: RoundState, workspace_ids: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Delete datasets with the round's marker; return their number, and messages on the others in its workspaces."""
    content = round_content(state)
    deleted = 0
    left = list[str]()
    ids = record_ids(content.items, content.salt)
    for name, workspace in sorted(workspace_ids.items()):
        for dataset in client.get("/api/v1/me/datasets", workspace_id=workspace)["items"]:
            if marker_data(dataset).get("round") == content.marker:
                client.call("DELETE", f"/api/v1/datasets/{dataset['id']}", allowed=GONE)
                deleted += 1
                continue
            held = sum(one["external_id"] in ids for one in records_of(client, dataset["id"]))
            copies = f" and holds copies of {counted(held, 'item')}" if held else ""
            left.append(
                f"dataset {dataset['name']} in {name}: was not made by this round{copies}; delete it in Argilla"
            )
    return deleted, left


def delete_annotator(client: ServerClient, state: RoundState, annotator: Annotator) -> Removal:
    """Delete an annotator's responses from every dataset in the round's workspaces, also from copies, and the account.

    The account stays, and is named, if it existed before the round or is used elsewhere. Raise RoundError.
    """
    names = {workspace_name(state, language) for language in state.manifest["languages"]}
    ids = visible_workspaces(client, names)
    accounts = read_accounts(client, state, ids.values())
    known = {accounts.stored.get(annotator.id), accounts.ids.get(annotator.id)} - {None}
    users = {str(user) for user in known} - accounts.privileged
    deleted = 0
    for workspace in ids.values():
        for dataset in client.get("/api/v1/me/datasets", workspace_id=workspace)["items"]:
            for record in records_of(client, dataset["id"], "responses"):
                for response in record.get("responses") or ():
                    if response["user_id"] in users:
                        client.call("DELETE", f"/api/v1/responses/{response['id']}", allowed=GONE)
                        deleted += 1
    end_access(client, state, ids, accounts, {annotator.id})
    removed = f"{client.url}: {counted(deleted, 'response')} deleted"
    if client.role != "owner":
        kept = f"account {annotator.name} on {client.url}: only an owner's key deletes it"
        return Removal((f"{removed}; {describe_bytes()}",), (kept,), unfinished=True)
    if annotator.id in read_created(state).annotators:
        gone, left_accounts = delete_accounts(client, accounts, users, ids)
        if gone:
            removed += f", and the account {', '.join(gone)}"
        left = tuple(left_accounts)
    else:
        named = sorted(accounts.names[user] for user in users if user in accounts.names)
        left = tuple(
            f"account {name} on {client.url}: not recorded as created by this round; delete it in Argilla if nobody "
            "needs it"
            for name in named
        )
    return Removal((f"{removed}; {describe_bytes()}",), left)


def delete_accounts(
    client: ServerClient,
    accounts: Accounts,
    users: Collection[str],
    workspace_ids: Mapping[str, str],
) -> tuple[list[str], list[str]]:
    """Delete accounts (user ids) that are used in no other workspace than the given ones (name -> id).

    Argilla deletes a user's responses with the account, those in other rounds too: an account with answers elsewhere
    stays, also where its membership was ended. Return the names of deleted accounts, and messages on those that stay.
    """
    # Owners and admins are nobody's to delete.
    candidates = {user: accounts.names[user] for user in users if user in accounts.names}
    candidates = {
        user: name for user, name in candidates.items() if user not in accounts.privileged
    }
    elsewhere = (
        _answers_elsewhere(client, candidates.values(), workspace_ids.values())
        if candidates
        else {}
    )
    deleted = list[str]()
    left = list[str]()
    for user, name in sorted(candidates.items(), key=lambda one: one[1]):
        joined = {one["name"] for one in client.get(f"/api/v1/users/{user}/workspaces")["items"]}
        used_in = sorted((joined - workspace_ids.keys()) | elsewhere.get(name, set()))
        if used_in:
            left.append(
                f"account {name}: also used in {', '.join(used_in)}; delete it in Argilla if nobody needs it"
            )
            continue
        client.call("DELETE", f"/api/v1/users/{user}", allowed=GONE)
        deleted.append(name)
    return deleted, left


def _answers_elsewhere(
    client: ServerClient, names: Iterable[str], workspace_ids: Iterable[str]
) -> dict[str, set[str]]:
    """Return user name -> names of datasets outside the workspaces in which the user has responses."""
    wanted = set(names)
    own = set(workspace_ids)
    found: dict[str, set[str]] = {}
    datasets: list[Mapping[str, Any]] = client.get("/api/v1/me/datasets")["items"]
    for dataset in (one for one in datasets if one["workspace_id"] not in own):
        for one in client.get(f"/api/v1/datasets/{dataset['id']}/users/progress")["users"]:
            if one["username"] in wanted and _has_responses(one):
                found.setdefault(one["username"], set()).add(str(dataset["name"]))
    return found


def _has_responses(progress: Mapping[str, Any]) -> bool:
    return any(
        count
        for state in ("completed", "pending")
        for count in (progress.get(state) or {}).values()
    )


def _delete_workspaces(
    client: ServerClient, workspace_ids: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Delete workspaces without datasets; return their names, and messages on the others."""
    deleted = list[str]()
    left = list[str]()
    for name, workspace in workspace_ids.items():
        if client.get("/api/v1/me/datasets", workspace_id=workspace)["items"]:
            left.append(
                f"workspace {name}: holds datasets of others; delete it in Argilla if nobody needs them"
            )
            continue
        client.call("DELETE", f"/api/v1/workspaces/{workspace}", allowed=GONE)
        deleted.append(name)
    return deleted, left
