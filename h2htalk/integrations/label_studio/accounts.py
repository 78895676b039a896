"""Accounts on Label Studio: one an annotator and opening, named by the annotator's hash.

An account that was removed from the organization can open no project, and cannot be let in again: a round that is
reopened gives its annotators new accounts, `HASH.2@annotators.invalid`, and knows the answers of the old ones.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx

from h2htalk.data.files import json_line, read_json_object
from h2htalk.errors import RoundError, counted
from h2htalk.integrations.label_studio.client import LabelStudioClient
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.client import TIMEOUT
from h2htalk.rounds.round_folder import RoundState

LOGINS = "label_studio_logins.csv"
ACCOUNTS = "label_studio_accounts.json"
# The end of accounts' addresses, no real domain.
DOMAIN = "@annotators.invalid"
# Statuses of a removal: removed, nobody there any more; not allowed for this key.
GONE = (404,)
NOT_ALLOWED = (403, 405)
# Addresses that are tried for an annotator whose earlier accounts were removed by hand.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a round's annotators.

    Attributes:
        users: annotator id -> ids of all accounts that they ever had, the latest last.
        current: annotator id -> the address with which they sign in.
        ids: address -> user id of every account of the server that is not removed.
    """

    users: Mapping[str, tuple[int, ...]]
    current: Mapping[str, str]
    ids: Mapping[str, int]


def address_of(annotator: str, number: int = 1) -> str:
    """Return the address of an annotator's first, second, ... account."""
    return f"{annotator}{DOMAIN}" if number == 1 else f"{annotator}.{number}{DOMAIN}"


def read_accounts(client: LabelStudioClient, state: RoundState) -> Accounts:
    """Return the accounts of a round's annotators. Raise RoundError, DataError."""
    ids = {str(user["email"]): int(user["id"]) for user in client.get("/api/users/")}
    stored = read_json_object(state.folder.private / ACCOUNTS, missing_ok=True)
    users_of: dict[str, tuple[int, ...]] = {}
    current: dict[str, str] = {}
    for annotator in state.annotators:
        name = annotator.id
        pattern = re.compile(rf"{re.escape(name)}(?:\.([0-9]+))?{re.escape(DOMAIN)}")
        numbered = {}
        for address in ids:
            match = pattern.fullmatch(address)
            if match:
                numbered[int(match[1] or 1)] = address
        users = [int(user) for user in stored.get(name, ())]
        users += [ids[numbered[number]] for number in sorted(numbered)]
        if users:
            users_of[name] = tuple(dict.fromkeys(users))
        if numbered:
            current[name] = numbered[max(numbered)]
    return Accounts(users=users_of, current=current, ids=ids)


def store_accounts(state: RoundState, accounts: Accounts) -> None:
    """Store the accounts of annotators: the server does not tell the address of a removed one. Raise DataError."""
    state.folder.write_private(ACCOUNTS, json_line(accounts.users))


def add_accounts(client: LabelStudioClient, state: RoundState) -> tuple[Accounts, list[str]]:
    """Create missing accounts of active annotators; return all, and messages for the manager. Raise RoundError."""
    accounts = read_accounts(client, state)
    active = [annotator for annotator in state.annotators if annotator.active]
    missing = [annotator.id for annotator in active if annotator.id not in accounts.current]
    messages = []
    if missing:
        addresses = dict(accounts.current)
        signup = f"/user/signup/?token={client.get('/api/invite')['token']}"
        for annotator in missing:
            first = len(accounts.users.get(annotator, ())) + 1
            for number in range(first, first + _ATTEMPTS):
                address = address_of(annotator, number)
                addresses[annotator] = address
                # Stored before the account exists; an attempt after an interruption makes the same password.
                _write_logins(state, active, addresses)
                if _sign_up(client, signup, address, password_of(state, address)):
                    break
        accounts = read_accounts(client, state)
        if not set(missing) <= accounts.current.keys():
            raise RoundError(
                f"{client.url}: it refuses to create accounts; check that people may sign up there by an invitation"
            )
        created = counted(len(missing), "account")
        logins = state.folder.private / LOGINS
        messages.append(f"{created} created; send annotators theirs: {logins}")
    store_accounts(state, accounts)
    return accounts, messages


def password_of(state: RoundState, address: str) -> str:
    """Return the password of an account that the round creates."""
    message = b"login" + address.removesuffix(DOMAIN).encode()
    return hmac.new(state.folder.salt(), message, "sha256").hexdigest()[:20]


def _write_logins(
    state: RoundState, active: Iterable[Annotator], addresses: Mapping[str, str]
) -> None:
    rows = ["name,email,password"]
    for annotator in active:
        address = addresses.get(annotator.id)
        if address is not None:
            rows.append(f"{annotator.name},{address},{password_of(state, address)}")
    state.folder.write_private(LOGINS, "\n".join([*rows, ""]))


def _sign_up(client: LabelStudioClient, path: str, address: str, password: str) -> bool:
    """Create an account as its owner would; return whether the server redirects to the page of somebody signed in."""
    try:
        with httpx.Client(base_url=client.http.base_url, timeout=TIMEOUT) as page:
            token = page.get(path).cookies.get("csrftoken", "")
            form = {"email": address, "password": password, "csrfmiddlewaretoken": token}
            return page.post(path, data=form, headers={"Referer": client.url}).is_redirect
    except httpx.TransportError as error:
        raise RoundError(f"{client.url} does not answer ({error}); repeat the command") from error


def end_access(
    client: LabelStudioClient, state: RoundState, annotators: Collection[str], why: str
) -> list[str]:
    """Remove accounts of annotators (ids) from the organization, so that they can open no project; answers stay.

    Return messages on those that were removed, for the reason `why`, and on those that the key may not remove. Raise
    RoundError.
    """
    accounts = read_accounts(client, state)
    addresses = [accounts.current[name] for name in accounts.current if name in annotators]
    if not addresses:
        return []
    store_accounts(state, accounts)
    organization: Any = client.get("/api/current-user/whoami")["active_organization"]
    refused = []
    for address in addresses:
        path = f"/api/organizations/{organization}/memberships/{accounts.ids[address]}/"
        status, _ = client.call("DELETE", path, allowed=(*GONE, *NOT_ALLOWED))
        if status in NOT_ALLOWED:
            refused.append(address)
    messages = []
    ended = len(addresses) - len(refused)
    if ended:
        messages.append(f"{counted(ended, 'account')} removed from the organization: {why}")
    if refused:
        messages.append(
            f"{client.url}: {counted(len(refused), 'account')} can still open the projects, because only the key of "
            f"the organization's owner removes accounts: {', '.join(refused)}"
        )
    return messages


@dataclass(frozen=True, slots=True)
class Deletion:
    """How many entries of the server were deleted, and how many the key may not delete."""

    deleted: int
    refused: int


def delete_accounts(
    client: LabelStudioClient, accounts: Accounts, annotators: Iterable[str]
) -> Deletion:
    """Delete all accounts of annotators (ids), also those that were removed from the organization.

    Raise RoundError.
    """
    users = chain.from_iterable(accounts.users.get(annotator, ()) for annotator in annotators)
    return delete_each(client, [f"/api/users/{user}/" for user in users])


def delete_each(client: LabelStudioClient, paths: Iterable[str]) -> Deletion:
    """Delete what has these paths on the server; what is not there any more counts as neither. Raise RoundError."""
    deleted = refused = 0
    for path in paths:
        status, _ = client.call("DELETE", path, allowed=(*GONE, *NOT_ALLOWED))
        if status in NOT_ALLOWED:
            refused += 1
        elif status not in GONE:
            deleted += 1
    return Deletion(deleted=deleted, refused=refused)
