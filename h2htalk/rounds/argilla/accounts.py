"""Workspaces and users: every annotator has an account in the workspaces of the languages that they read."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.data.files import json_line, read_json_object, replacing, write_problem
from h2htalk.errors import DataError, RoundError, counted, quoted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import workspace_name
from h2htalk.rounds.round_folder import RoundFolder

LOGINS = "argilla_logins.csv"
# Annotator id -> user id: user names may change, and an admin's key shows only the current members of workspaces.
ACCOUNTS = "argilla_accounts.json"
PASSWORD_BYTES = 12


def workspaces(client: ArgillaClient) -> dict[str, str]:
    """Return name -> id of the workspaces that the key may see. Raise RoundError."""
    return {one["name"]: one["id"] for one in client.get("/api/v1/me/workspaces")["items"]}


def make_workspaces(client: ArgillaClient, names: Iterable[str]) -> dict[str, str]:
    """Create missing workspaces, and return name -> id. Raise RoundError if the key may not create one."""
    ids = workspaces(client)
    for name in sorted(set(names) - ids.keys()):
        if client.role != "owner":
            raise RoundError(
                f"{client.url}: your key cannot use a workspace {name}, and only an owner can create it; use an "
                "owner's key, or ask an owner to create it with you and the annotators in it"
            )
        # A conflict: our own first attempt succeeded, but its reply was lost.
        client.call("POST", "/api/v1/workspaces", {"name": name}, allowed=(409,))
        ids = workspaces(client)
        if name not in ids:
            raise RoundError(f"{client.url}: the workspace {name} was created but not found; repeat the command")
    return ids


def visible_workspaces(client: ArgillaClient, names: Iterable[str]) -> dict[str, str]:
    """Return name -> id of those of the workspaces that exist.

    Raises:
        RoundError: an admin's key may not see all of them: annotations there would be left out silently.
    """
    required, ids = set(names), workspaces(client)
    hidden = sorted(required - ids.keys())
    if hidden and client.role != "owner":
        raise RoundError(
            f"{client.url}: your key does not see the workspaces {', '.join(hidden)} of this round, so its annotations "
            "would be incomplete; use an owner's key, or ask to be added to them"
        )
    return {name: ids[name] for name in sorted(required & ids.keys())}


@dataclass(frozen=True, slots=True)
class UserAccount:
    """An account on the server: id, role and API key."""

    id: str
    role: str
    key: str = field(repr=False)


def users(client: ArgillaClient, workspace_ids: Iterable[str]) -> dict[str, UserAccount]:
    """Return user name -> account: of the whole server for an owner, else of these workspaces."""
    if client.role == "owner":
        records = client.get("/api/v1/users")["items"]
    else:
        paths = [f"/api/v1/workspaces/{id}/users" for id in workspace_ids]
        records = [one for path in paths for one in client.get(path)["items"]]
    return {one["username"]: UserAccount(one["id"], one["role"], one["api_key"]) for one in records}


@dataclass(frozen=True, slots=True)
class RoundUsers:
    """The round's annotators on the server.

    Attributes:
        ids: annotator id -> user id, of all who have an account.
        members: workspace name -> ids of the annotators in it, who see its datasets.
        keys: annotator id -> API key of the account.
    """

    ids: Mapping[str, str]
    members: Mapping[str, Collection[str]]
    keys: Mapping[str, str] = field(repr=False)


def add_annotators(
    client: ArgillaClient, folder: RoundFolder, workspace_ids: Mapping[str, str]
) -> tuple[RoundUsers, list[str]]:
    """Give every active annotator an account, and add it to the workspaces of their languages.

    Args:
        client, folder: server and round.
        workspace_ids: workspace name -> id, of all the round's languages.

    Returns:
        The annotators on the server, and messages for the manager. Existing accounts keep their passwords; the
        passwords of new ones are written to private/argilla_logins.csv before the accounts are created.

    Raises:
        RoundError: a name belongs to an owner or admin, or the key may not create an account.
    """
    annotators, messages, known = folder.annotators(), list[str](), stored_accounts(folder)
    accounts = users(client, workspace_ids.values())
    ids = _user_ids(annotators, accounts, known)
    privileged = {one.id for one in accounts.values() if one.role != "annotator"}
    conflicts = [annotator.name for annotator in annotators if ids.get(annotator.id) in privileged]
    if conflicts:
        raise RoundError(
            f"{client.url}: {', '.join(conflicts)} is the name of an owner or admin, who sees more than annotators; "
            "use another name for the annotator"
        )
    existing = [annotator.name for annotator in annotators if annotator.id in ids and annotator.id not in known]
    if existing:
        messages.append(f"existing accounts keep their passwords: {', '.join(existing)}")
    missing = [annotator for annotator in annotators if annotator.active and annotator.id not in ids]
    if missing and client.role != "owner":
        raise RoundError(
            f"{client.url}: no account in the round's workspaces for {', '.join(v.name for v in missing)}, and only an "
            "owner can create one; use an owner's key"
        )
    if missing:
        passwords = _passwords(folder.private / LOGINS, missing)
        for annotator in missing:
            account = {
                "username": annotator.name,
                "first_name": annotator.name,
                "password": passwords[annotator.name],
                "role": "annotator",
            }
            client.call("POST", "/api/v1/users", account, allowed=(409,))
        accounts = users(client, workspace_ids.values())
        ids = _user_ids(annotators, accounts, known)
        created = f"{counted(len(missing), 'account')} created with passwords in {folder.private / LOGINS}"
        messages.append(f"{created}; send each annotator their own")
    if not ids.items() <= known.items():
        _write_private(folder.private / ACCOUNTS, json_line(known | ids))
    spec, members = folder.spec(), {}
    for language in sorted({item.language for item in folder.items()}):
        name = workspace_name(spec, folder.name, language)
        readers = [v for v in annotators if v.active and language in v.languages]
        user_ids = _add_members(client, workspace_ids[name], readers, ids)
        members[name] = {annotator for annotator, user in ids.items() if user in user_ids}
    left = [annotator.name for annotator in annotators if not annotator.active]
    if left:
        messages.append(
            f"{', '.join(left)} left the round but can still sign in; remove them from the workspace to prevent that"
        )
    keys = {one.id: one.key for one in accounts.values()}
    return RoundUsers(ids, members, {annotator: keys[user] for annotator, user in ids.items()}), messages


def annotators_by_user(folder: RoundFolder, accounts: Mapping[str, UserAccount]) -> dict[str, Annotator]:
    """Return user id -> annotator, without owners and admins, who see others' responses and can change them.

    Args:
        folder: of the round.
        accounts: as `users` returns them.
    """
    annotators, known = folder.annotators(), stored_accounts(folder)
    privileged = {one.id for one in accounts.values() if one.role != "annotator"}
    ids = known | _user_ids(annotators, accounts, known)
    by_id = {annotator.id: annotator for annotator in annotators}
    return {user: by_id[annotator] for annotator, user in ids.items() if annotator in by_id and user not in privileged}


def describe_accounts(client: ArgillaClient, folder: RoundFolder, accounts: Mapping[str, UserAccount]) -> list[str]:
    """Return a message about annotators whose account the key does not see any more. `accounts`: as of `users`."""
    known = stored_accounts(folder)
    ids = _user_ids(folder.annotators(), accounts, known)
    gone = [one for one in folder.annotators() if one.active and one.id in known and one.id not in ids]
    if not gone:
        return []
    names = ", ".join(one.name for one in gone)
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


def stored_accounts(folder: RoundFolder) -> dict[str, str]:
    """Return annotator id -> user id, of all who ever had an account. Raise DataError."""
    accounts = read_json_object(folder.private / ACCOUNTS, missing_ok=True)
    return {str(annotator): str(user) for annotator, user in accounts.items()}


def _user_ids(
    annotators: Sequence[Annotator], accounts: Mapping[str, UserAccount], known: Mapping[str, str]
) -> dict[str, str]:
    """Return annotator id -> user id: the stored account if it exists, else the one with their name."""
    existing = {one.id for one in accounts.values()}
    by_name = {one.id: accounts[one.name].id for one in annotators if one.name in accounts}
    return by_name | {one.id: known[one.id] for one in annotators if known.get(one.id) in existing}


def _add_members(
    client: ArgillaClient, workspace_id: str, annotators: Sequence[Annotator], ids: Mapping[str, str]
) -> set[str]:
    """Add annotators to a workspace, and return the user ids of all its members."""
    path = f"/api/v1/workspaces/{workspace_id}/users"
    members = {one["id"] for one in client.get(path)["items"]}
    for annotator in annotators:
        if ids[annotator.id] not in members:
            if client.role != "owner":
                raise RoundError(
                    f"{client.url}: {quoted(annotator.name)} is not in the round's workspace; use an owner's key"
                )
            client.call("POST", path, {"user_id": ids[annotator.id]}, allowed=(409,))
    return members | {ids[annotator.id] for annotator in annotators}


def _passwords(path: Path, annotators: Sequence[Annotator]) -> dict[str, str]:
    """Return passwords of new accounts, stored before the accounts exist; an interrupted attempt keeps them."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        passwords: dict[str, str] = {row["name"]: row["password"] for row in csv.DictReader(io.StringIO(text))}
        for annotator in annotators:
            passwords.setdefault(annotator.name, secrets.token_urlsafe(PASSWORD_BYTES))
        table = io.StringIO()
        # Nothing is escaped: names are plain (`annotators`), and passwords, which may start with a hyphen, are copied.
        rows: Any = csv.writer(table, lineterminator="\n")
        rows.writerow(("name", "password"))
        rows.writerows(passwords.items())
        _write_private(path, table.getvalue())
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    except (KeyError, csv.Error) as error:
        raise DataError(f"{path}: must have the columns name and password; correct it or move it away") from error
    return passwords


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    with replacing(path, private=True) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
