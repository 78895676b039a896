"""Workspaces and users: every annotator has an account, and is in the workspaces of the languages they read."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.data.files import json_line, read_json_object, write_problem
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.client import ArgillaClient
from h2htalk.rounds.argilla.dataset_settings import workspace_name
from h2htalk.rounds.round_folder import RoundFolder

LOGINS = "argilla_logins.csv"
# Who is who on the server: names there may change, and an admin sees only who is in a workspace now.
ACCOUNTS = "argilla_accounts.json"
PASSWORD_BYTES = 12


def workspaces(wire: ArgillaClient) -> dict[str, str]:
    """Name -> id of the workspaces that we see. Raises RoundError."""
    return {one["name"]: one["id"] for one in wire.get("/api/v1/me/workspaces")["items"]}


def make_workspaces(wire: ArgillaClient, names: Iterable[str]) -> dict[str, str]:
    """Name -> id, the missing made. Raises RoundError where we may not make one."""
    there = workspaces(wire)
    for name in sorted(set(names) - there.keys()):
        if wire.role != "owner":
            raise RoundError(
                f"{wire.url}: there is no workspace {name} that your key may use, and only an owner makes one; use an "
                "owner's key, or have it made with you and the annotators in it"
            )
        # A conflict is our own first attempt, of which no answer came.
        wire.call("POST", "/api/v1/workspaces", {"name": name}, allowed=(409,))
        there = workspaces(wire)
        if name not in there:
            raise RoundError(
                f"{wire.url}: the workspace {name} was made and is not there; give the command again"
            )
    return there


def seen_places(wire: ArgillaClient, names: Iterable[str]) -> dict[str, str]:
    """Name -> id of those of these workspaces that are there. Raises RoundError where an admin's key may not see all:
    what was answered in the others would be left out, and nobody would know."""
    wanted, there = set(names), workspaces(wire)
    unseen = sorted(wanted - there.keys())
    if unseen and wire.role != "owner":
        raise RoundError(
            f"{wire.url}: your key does not see the workspaces {', '.join(unseen)} of this round, and its answers are "
            "counted all or not at all; use an owner's key, or be put into them"
        )
    return {name: there[name] for name in sorted(wanted & there.keys())}


@dataclass(frozen=True, slots=True)
class UserAccount:
    """An account on the server: its id, its role, and the key by which the server knows who asks."""

    id: str
    role: str
    key: str = field(repr=False)


def users(wire: ArgillaClient, places: Iterable[str]) -> dict[str, UserAccount]:
    """User name -> account: all of the server for an owner, else those of the workspaces with these ids."""
    if wire.role == "owner":
        found = wire.get("/api/v1/users")["items"]
    else:
        found = [one for place in places for one in wire.get(f"/api/v1/workspaces/{place}/users")["items"]]
    return {one["username"]: UserAccount(one["id"], one["role"], one["api_key"]) for one in found}


@dataclass(frozen=True, slots=True)
class People:
    """The round's annotators on the server.

    Attributes:
        ids: annotator id -> user id, of all who have an account.
        inside: workspace name -> ids of the annotators who are in it, and so meet what lies there.
        keys: annotator id -> key of the account.
    """

    ids: Mapping[str, str]
    inside: Mapping[str, Collection[str]]
    keys: Mapping[str, str] = field(repr=False)


def add_annotators(
    wire: ArgillaClient, folder: RoundFolder, places: Mapping[str, str]
) -> tuple[People, list[str]]:
    """See to it that every annotator who is there has an account and is in the workspaces of their languages.

    Args:
        wire, folder: which server, which round.
        places: workspace name -> id, of all the round's languages.

    Returns:
        Who is who, and lines for the manager. An account that was there keeps its password; a new one's is written
        to private/argilla_logins.csv before it is made.

    Raises:
        RoundError: a name belongs to an owner or admin, or we may not make an account.
    """
    annotators, told, known = folder.annotators(), [], accounts(folder)
    there = users(wire, places.values())
    ids = _ids(annotators, there, known)
    higher = {one.id for one in there.values() if one.role != "annotator"}
    strangers = [annotator.name for annotator in annotators if ids.get(annotator.id) in higher]
    if strangers:
        raise RoundError(
            f"{wire.url}: {', '.join(strangers)} is the name of an owner or admin, who sees more than "
            "an annotator; name "
            "the annotator otherwise"
        )
    met = [annotator.name for annotator in annotators if annotator.id in ids and annotator.id not in known]
    if met:
        told.append(f"{', '.join(met)} had an account already and keep their passwords")
    missing = [annotator for annotator in annotators if annotator.here and annotator.id not in ids]
    if missing and wire.role != "owner":
        raise RoundError(
            f"{wire.url}: {', '.join(v.name for v in missing)} has no account in the round's workspaces, and only an "
            "owner makes one; use an owner's key"
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
            wire.call("POST", "/api/v1/users", account, allowed=(409,))
        there = users(wire, places.values())
        ids = _ids(annotators, there, known)
        told.append(
            f"{len(missing)} accounts made; their passwords stand in {folder.private / LOGINS}: give each "
            "annotator their own"
        )
    if not ids.items() <= known.items():
        _write_privately(folder.private / ACCOUNTS, json_line(known | ids))
    spec, inside = folder.spec(), {}
    for language in sorted({item.language for item in folder.items()}):
        name = workspace_name(spec, folder.name, language)
        readers = [
            annotator for annotator in annotators if annotator.here and language in annotator.languages
        ]
        within = _let_in(wire, places[name], readers, ids)
        inside[name] = {annotator for annotator, user in ids.items() if user in within}
    gone = [annotator.name for annotator in annotators if not annotator.here]
    if gone:
        told.append(
            f"{', '.join(gone)} left the round and can still sign in; take them out of the workspace if they should not"
        )
    keys = {one.id: one.key for one in there.values()}
    return People(ids, inside, {annotator: keys[user] for annotator, user in ids.items()}), told


def annotators(folder: RoundFolder, there: Mapping[str, UserAccount]) -> dict[str, Annotator]:
    """User id -> annotator, of those whose answers count: an owner or admin sees what others said, and may say it for
    them.

    Args:
        folder: of the round.
        there: user name -> account, as `users` found them.
    """
    annotators, known = folder.annotators(), accounts(folder)
    higher = {one.id for one in there.values() if one.role != "annotator"}
    ids = known | _ids(annotators, there, known)
    by_id = {annotator.id: annotator for annotator in annotators}
    return {
        user: by_id[annotator] for annotator, user in ids.items() if annotator in by_id and user not in higher
    }


def describe_accounts(
    wire: ArgillaClient, folder: RoundFolder, there: Mapping[str, UserAccount], submitted: Collection[str]
) -> list[str]:
    """Annotators who had an account and have none, as far as the key shows: an admin's shows the workspaces' alone.

    Args:
        wire, folder: which server, which round.
        there: user name -> account, as `users` found them.
        submitted: user ids with an answer on the server.
    """
    known = accounts(folder)
    ids = _ids(folder.annotators(), there, known)
    gone = [
        annotator for annotator in folder.annotators() if annotator.id in known and annotator.id not in ids
    ]
    unseen = [
        annotator.name for annotator in gone if known[annotator.id] in submitted and wire.role != "owner"
    ]
    lost = [annotator.name for annotator in gone if annotator.here and annotator.name not in unseen]
    told = []
    if unseen:
        told.append(
            f"{', '.join(unseen)}: no longer in the workspaces that your key sees, so it cannot tell whether they are "
            "annotators still; their answers count: look once more with an owner's key"
        )
    if lost and wire.role == "owner":
        told.append(
            f"{', '.join(lost)}: without an account on the server, and Argilla deletes a user's answers with the "
            "account; what earlier looks brought counts. `h2htalk round open`, given as before, makes the account "
            "again, `h2htalk round reopen --without NAME` asks others"
        )
    elif lost:
        told.append(
            f"{', '.join(lost)}: not in the round's workspaces, so they cannot answer; whether they have an account "
            "still, only an owner's key shows: `h2htalk round open`, given as before with one, puts them back"
        )
    return told


def accounts(folder: RoundFolder) -> dict[str, str]:
    """Annotator id -> user id, of all who ever had an account. Raises DataError."""
    try:
        return {
            str(annotator): str(user)
            for annotator, user in read_json_object(folder.private / ACCOUNTS).items()
        }
    except FileNotFoundError:
        return {}


def _ids(
    annotators: Sequence[Annotator], there: Mapping[str, UserAccount], known: Mapping[str, str]
) -> dict[str, str]:
    """Annotator id -> user id: the account that was theirs before, under whatever name, else the one of their name."""
    present = {one.id for one in there.values()}
    kept = {
        annotator.id: known[annotator.id] for annotator in annotators if known.get(annotator.id) in present
    }
    return {
        annotator.id: there[annotator.name].id for annotator in annotators if annotator.name in there
    } | kept


def _let_in(
    wire: ArgillaClient, place: str, annotators: Sequence[Annotator], ids: Mapping[str, str]
) -> set[str]:
    """Everybody who is in a workspace, these annotators among them, as user ids."""
    inside = {one["id"] for one in wire.get(f"/api/v1/workspaces/{place}/users")["items"]}
    for annotator in annotators:
        if ids[annotator.id] not in inside:
            if wire.role != "owner":
                raise RoundError(
                    f"{wire.url}: {quoted(annotator.name)} is not in the round's workspace; use an owner's key"
                )
            wire.call(
                "POST", f"/api/v1/workspaces/{place}/users", {"user_id": ids[annotator.id]}, allowed=(409,)
            )
    return inside | {ids[annotator.id] for annotator in annotators}


def _passwords(path: Path, annotators: Sequence[Annotator]) -> dict[str, str]:
    """Passwords of new accounts: those written down at an interrupted attempt, else new ones, written down first."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        known: dict[str, str] = {row["name"]: row["password"] for row in csv.DictReader(io.StringIO(text))}
        for annotator in annotators:
            known.setdefault(annotator.name, secrets.token_urlsafe(PASSWORD_BYTES))
        table = io.StringIO()
        # Names are plain (`annotators`), passwords may start with a hyphen: neither is escaped, as who copies one
        # needs it as it is.
        rows: Any = csv.writer(table, lineterminator="\n")
        rows.writerow(("name", "password"))
        rows.writerows(known.items())
        _write_privately(path, table.getvalue())
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    except (KeyError, csv.Error) as error:
        raise DataError(f"{path}: must be a table of name and password; mend it or move it away") from error
    return known


def _write_privately(path: Path, text: str) -> None:
    """A file that its owner alone may read: from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
