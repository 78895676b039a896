"""Workspaces and users: every annotator has an account in the workspaces of the languages that they read."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from h2htalk.data.files import json_line, read_json_object, reading
from h2htalk.errors import RoundError, counted, quoted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.argilla.datasets import workspace_name
from h2htalk.rounds.round_folder import RoundState

LOGINS, ACCOUNTS = "argilla_logins.csv", "argilla_accounts.json"
PASSWORD_BYTES = 12


def workspaces(client: ServerClient) -> dict[str, str]:
    """Return name -> id of the workspaces that the key may see. Raise RoundError."""
    return {one["name"]: one["id"] for one in client.get("/api/v1/me/workspaces")["items"]}


def make_workspaces(client: ServerClient, names: Iterable[str]) -> dict[str, str]:
    """Create missing workspaces, and return name -> id. Raise RoundError if the key may not create one."""
    ids = workspaces(client)
    missing = sorted(set(names) - ids.keys())
    for name in missing:
        client.require_owner(f"your key cannot use a workspace {name}, and only an owner can create it")
        # A conflict: our own first attempt succeeded, but its reply was lost.
        client.call("POST", "/api/v1/workspaces", {"name": name}, allowed=(409,))
    return workspaces(client) if missing else ids


def visible_workspaces(client: ServerClient, names: Iterable[str]) -> dict[str, str]:
    """Return name -> id of those of the workspaces that exist; raise RoundError if an admin's key may not see all."""
    required, ids = set(names), workspaces(client)
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
        return next(account.key for account in self.by_name.values() if account.id == self.ids[annotator])

    def annotators(self, state: RoundState) -> dict[str, Annotator]:
        """Return user id -> annotator, without owners and admins."""
        users = {**self.stored, **self.ids}
        known = {users[one.id]: one for one in state.annotators if one.id in users}
        return {user: annotator for user, annotator in known.items() if user not in self.privileged}


def read_accounts(client: ServerClient, state: RoundState, workspace_ids: Iterable[str]) -> Accounts:
    """Return the accounts of a round's annotators. Raise RoundError, DataError."""
    if client.role == "owner":
        records = client.get("/api/v1/users")["items"]
    else:
        records = [one for id in workspace_ids for one in client.get(f"/api/v1/workspaces/{id}/users")["items"]]
    by_name = {one["username"]: UserAccount(one["id"], one["role"], one["api_key"]) for one in records}
    stored, existing = read_json_object(state.folder.private / ACCOUNTS, missing_ok=True), {r["id"] for r in records}
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
    annotators, messages, private = state.annotators, list[str](), state.folder.private
    accounts = read_accounts(client, state, workspace_ids.values())
    if conflicts := [one.name for one in annotators if accounts.ids.get(one.id) in accounts.privileged]:
        raise RoundError(
            f"{client.url}: {', '.join(conflicts)} is the name of an owner or admin, who sees more than annotators; "
            "use another name for the annotator"
        )
    if existing := [one.name for one in annotators if one.id in accounts.ids.keys() - accounts.stored.keys()]:
        messages.append(f"existing accounts keep their passwords: {', '.join(existing)}")
    if missing := [one.name for one in annotators if one.active and one.id not in accounts.ids]:
        client.require_owner(
            f"no account in the round's workspaces for {', '.join(missing)}, and only an owner can create one"
        )
        # Stored before the accounts exist, and kept by an attempt after an interruption. No text contains a comma.
        with reading(private / LOGINS):
            exists = (private / LOGINS).exists()
            lines = (private / LOGINS).read_text(encoding="utf-8").splitlines()[1:] if exists else []
        passwords = {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in missing}
        passwords |= {name: password for name, _, password in (line.partition(",") for line in lines)}
        rows = "".join(f"{name},{password}\n" for name, password in passwords.items())
        state.folder.write_private(LOGINS, f"name,password\n{rows}")
        for name in missing:
            account = {"username": name, "first_name": name, "password": passwords[name], "role": "annotator"}
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
            if one.active and language in one.languages and (user := accounts.ids[one.id]) not in users:
                client.require_owner(f"{quoted(one.name)} is not in the round's workspace")
                client.call("POST", path, {"user_id": user}, allowed=(409,))
                users.add(user)
        members[name] = {annotator for annotator, user in accounts.ids.items() if user in users}
    if left := [one.name for one in annotators if not one.active]:
        messages.append(
            f"{', '.join(left)} left the round but can still sign in; remove them from the workspace to prevent that"
        )
    return replace(accounts, members=members), messages


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
