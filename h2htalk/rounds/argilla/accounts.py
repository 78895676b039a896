"""Workspaces and users: every annotator has an account in the workspaces of the languages that they read.

Membership of a workspace is the right to see its datasets: who left the round, and everybody once it is closed, loses
it, and gets it back when the round is published again.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import json_line, read_json_object, reading
from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.argilla.datasets import workspace_name
from h2htalk.rounds.round_folder import RoundState

LOGINS, ACCOUNTS = "argilla_logins.csv", "argilla_accounts.json"
# What this round created on the server; accounts and workspaces that existed before are not deleted with it.
CREATED = "argilla_created.json"
PASSWORD_BYTES = 12


def workspaces(client: ServerClient) -> dict[str, str]:
    """Return name -> id of the workspaces that the key may see. Raise RoundError."""
    return {one["name"]: one["id"] for one in client.get("/api/v1/me/workspaces")["items"]}


@dataclass(frozen=True, slots=True)
class Created:
    """What a round created: names of workspaces, and ids of annotators with an account that it made.

    Of a round of an earlier version, which recorded nothing, only the file of passwords names accounts.
    """

    workspaces: frozenset[str]
    annotators: frozenset[str]


def read_created(state: RoundState) -> Created:
    """Return what a round created on the server. Raise DataError."""
    path = state.folder.private / CREATED
    stored = read_json_object(path, missing_ok=True)
    if stored:
        return Created(frozenset(stored["workspaces"]), frozenset(stored["annotators"]))
    names = read_passwords(state)
    annotators = frozenset(one.id for one in state.annotators if one.name in names)
    return Created(frozenset(), annotators)


def add_created(
    state: RoundState, *, workspaces: Iterable[str] = (), annotators: Iterable[str] = ()
) -> None:
    """Record what a round is about to create. Raise DataError."""
    before = read_created(state)
    record = {
        "workspaces": sorted(before.workspaces.union(workspaces)),
        "annotators": sorted(before.annotators.union(annotators)),
    }
    state.folder.write_private(CREATED, json_line(record))


def keep_records(
    state: RoundState,
    accounts: Accounts,
    *,
    annotators: Collection[str],
    workspaces: Collection[str],
) -> None:
    """Keep of the round's records what still is on the server after a deletion; remove empty ones. Raise DataError.

    `annotators` (ids) have an account that the round created and another round uses, `workspaces` hold datasets of
    others: the same deletion, repeated when nobody uses them, still knows them.
    """
    users = {annotator: accounts.ids[annotator] for annotator in sorted(annotators)}
    if users:
        state.folder.write_private(ACCOUNTS, json_line(users))
    else:
        remove_for_good(state.folder.private / ACCOUNTS)
    if annotators or workspaces:
        record = {"workspaces": sorted(workspaces), "annotators": sorted(annotators)}
        state.folder.write_private(CREATED, json_line(record))
    else:
        remove_for_good(state.folder.private / CREATED)


def read_passwords(state: RoundState) -> dict[str, str]:
    """Return user name -> password of accounts that the round created, as far as the file is there. Raise DataError."""
    path = state.folder.private / LOGINS
    with reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    # No text contains a comma.
    return {name: password for name, _, password in (line.partition(",") for line in lines)}


def write_passwords(state: RoundState, passwords: Mapping[str, str]) -> None:
    """Write the file of passwords (user name -> password), or remove it if there are none. Raise DataError."""
    if not passwords:
        remove_for_good(state.folder.private / LOGINS)
        return
    rows = "".join(f"{name},{password}\n" for name, password in passwords.items())
    state.folder.write_private(LOGINS, f"name,password\n{rows}")


def make_workspaces(
    client: ServerClient, names: Iterable[str], state: RoundState
) -> dict[str, str]:
    """Create missing workspaces, and return name -> id. Raise RoundError if the key may not create one."""
    ids = workspaces(client)
    missing = sorted(set(names) - ids.keys())
    if missing and client.role == "owner":
        add_created(state, workspaces=missing)
    for name in missing:
        client.require_owner(
            f"your key cannot use a workspace {name}, and only an owner can create it"
        )
        # A conflict: our own first attempt succeeded, but its reply was lost.
        client.call("POST", "/api/v1/workspaces", {"name": name}, allowed=(409,))
    return workspaces(client) if missing else ids


def visible_workspaces(client: ServerClient, names: Iterable[str]) -> dict[str, str]:
    """Return name -> id of those of the workspaces that exist; raise RoundError if an admin's key may not see all."""
    required = set(names)
    ids = workspaces(client)
    if hidden := sorted(required - ids.keys()):
        client.require_owner(
            f"your key does not see the workspaces {', '.join(hidden)} of this round, so its annotations would be "
            "incomplete"
        )
    return {name: ids[name] for name in sorted(required & ids.keys())}


@dataclass(frozen=True, slots=True)
class UserAccount:
    """An account on the server: id, role and API key."""

    id: str
    role: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a round's annotators.

    Attributes:
        by_name: user name -> account, of the whole server for an owner's key, else of the round's workspaces.
        stored: annotator id -> user id, of all who ever had an account: user names may change, and an admin's key
            shows only the current members of workspaces.
        ids: annotator id -> user id: the stored account if it exists, else the one with their name.
        members: workspace name -> ids of the annotators in it, who see its datasets; empty unless they were added.
    """

    by_name: Mapping[str, UserAccount]
    stored: Mapping[str, str]
    ids: Mapping[str, str]
    members: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """User id -> user name."""
        return {account.id: name for name, account in self.by_name.items()}

    @property
    def privileged(self) -> set[str]:
        """User ids of owners and admins, who see others' responses and can change them."""
        return {account.id for account in self.by_name.values() if account.role != "annotator"}

    def key(self, annotator: str) -> str:
        """Return the API key of an annotator's account."""
        return next(
            account.key for account in self.by_name.values() if account.id == self.ids[annotator]
        )

    def annotators(self, state: RoundState) -> dict[str, Annotator]:
        """Return user id -> annotator, without owners and admins."""
        users = {**self.stored, **self.ids}
        known = {users[one.id]: one for one in state.annotators if one.id in users}
        return {user: annotator for user, annotator in known.items() if user not in self.privileged}


def read_accounts(
    client: ServerClient, state: RoundState, workspace_ids: Iterable[str]
) -> Accounts:
    """Return the accounts of a round's annotators. Raise RoundError, DataError."""
    if client.role == "owner":
        records = client.get("/api/v1/users")["items"]
    else:
        records = [
            one
            for id in workspace_ids
            for one in client.get(f"/api/v1/workspaces/{id}/users")["items"]
        ]
    by_name = {
        one["username"]: UserAccount(one["id"], one["role"], one["api_key"]) for one in records
    }
    stored = read_json_object(state.folder.private / ACCOUNTS, missing_ok=True)
    existing = {r["id"] for r in records}
    ids = {one.id: by_name[one.name].id for one in state.annotators if one.name in by_name}
    ids |= {one.id: stored[one.id] for one in state.annotators if stored.get(one.id) in existing}
    return Accounts(by_name, stored, ids)


def add_annotators(
    client: ServerClient, state: RoundState, workspace_ids: Mapping[str, str]
) -> tuple[Accounts, list[str]]:
    """Give every active annotator an account, and add it to the workspaces (name -> id) of their languages.

    Existing accounts keep their passwords; those of new ones are written to private/argilla_logins.csv. Return also
    messages for the manager; raise RoundError if a name belongs to an owner or admin, or the key may not create an
    account.
    """
    annotators = state.annotators
    messages = list[str]()
    private = state.folder.private
    accounts = read_accounts(client, state, workspace_ids.values())
    if conflicts := [
        one.name for one in annotators if accounts.ids.get(one.id) in accounts.privileged
    ]:
        raise RoundError(
            f"{client.url}: {', '.join(conflicts)} is the name of an owner or admin, who sees more than annotators; "
            "use another name for the annotator"
        )
    if existing := [
        one.name for one in annotators if one.id in accounts.ids.keys() - accounts.stored.keys()
    ]:
        messages.append(f"existing accounts keep their passwords: {', '.join(existing)}")
    if missing := [one.name for one in annotators if one.active and one.id not in accounts.ids]:
        client.require_owner(
            f"no account in the round's workspaces for {', '.join(missing)}, and only an owner can create one"
        )
        # Stored before the accounts exist, and kept by an attempt after an interruption.
        add_created(state, annotators=[one.id for one in annotators if one.name in missing])
        passwords = {
            name: secrets.token_urlsafe(PASSWORD_BYTES) for name in missing
        } | read_passwords(state)
        write_passwords(state, passwords)
        for name in missing:
            account = {
                "username": name,
                "first_name": name,
                "password": passwords[name],
                "role": "annotator",
            }
            client.call("POST", "/api/v1/users", account, allowed=(409,))
        accounts = read_accounts(client, state, workspace_ids.values())
        created = f"{counted(len(missing), 'account')} created with passwords in {private / LOGINS}"
        messages.append(f"{created}; send each annotator their own")
    if not accounts.ids.items() <= accounts.stored.items():
        state.folder.write_private(ACCOUNTS, json_line({**accounts.stored, **accounts.ids}))
    members: dict[str, set[str]] = {}
    for language in sorted({item.language for item in state.items}):
        name = workspace_name(state, language)
        path = f"/api/v1/workspaces/{workspace_ids[name]}/users"
        users = {one["id"] for one in client.get(path)["items"]}
        for one in annotators:
            if (
                one.active
                and language in one.languages
                and (user := accounts.ids[one.id]) not in users
            ):
                client.require_owner(f"{quoted(one.name)} is not in the round's workspace")
                client.call("POST", path, {"user_id": user}, allowed=(409,))
                users.add(user)
        members[name] = {annotator for annotator, user in accounts.ids.items() if user in users}
    left = {one.id for one in annotators if not one.active}
    if removed := end_access(client, state, workspace_ids, accounts, left).removed:
        messages.append(
            f"{', '.join(removed)} left the round and cannot open its datasets any more"
        )
        gone = {one.id for one in annotators if one.name in removed}
        members = {name: theirs - gone for name, theirs in members.items()}
    return replace(accounts, members=members), messages


@dataclass(frozen=True, slots=True)
class EndedAccess:
    """Whose membership of a round's workspaces was ended, by name; `others` are users whom the round did not add."""

    removed: tuple[str, ...]
    others: tuple[str, ...]


def end_access(
    client: ServerClient,
    state: RoundState,
    workspace_ids: Mapping[str, str],
    accounts: Accounts,
    annotators: Collection[str],
) -> EndedAccess:
    """Remove annotators (ids) from the workspaces (name -> id), so that they see no dataset; responses stay.

    An admin's key can do this in the workspaces that it sees. Owners and admins stay. Raise RoundError.
    """
    known = accounts.annotators(state)
    removed = set[str]()
    others = set[str]()
    for workspace in workspace_ids.values():
        path = f"/api/v1/workspaces/{workspace}/users"
        for user in client.get(path)["items"]:
            annotator = known.get(user["id"])
            if annotator is not None and annotator.id in annotators:
                # 404: our own first attempt succeeded, but its reply was lost.
                client.call("DELETE", f"{path}/{user['id']}", allowed=(404,))
                removed.add(annotator.name)
            elif annotator is None and user["role"] == "annotator":
                others.add(str(user["username"]))
    return EndedAccess(removed=tuple(sorted(removed)), others=tuple(sorted(others)))


def describe_accounts(client: ServerClient, state: RoundState, accounts: Accounts) -> list[str]:
    """Return a message about annotators whose account the key does not see any more."""
    lost = accounts.stored.keys() - accounts.ids.keys()
    names = ", ".join(one.name for one in state.annotators if one.active and one.id in lost)
    if not names:
        return []
    if client.role != "owner":
        return [
            f"{names}: not in the workspaces that your key sees, so they may be unable to answer, and it cannot tell "
            "whether they are still annotators; their annotations count: check with an owner's key, and add them again "
            "with `h2htalk round open` and the same options"
        ]
    return [
        f"{names}: the account was deleted, and Argilla deletes a user's responses with it; annotations collected "
        "earlier count. Create the account again with `h2htalk round open` and the same options, or assign the "
        "items to others with `h2htalk round reopen --without NAME`"
    ]
