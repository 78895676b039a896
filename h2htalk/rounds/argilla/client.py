"""The wire to an Argilla server: address and key, versions, patience while it restarts, and errors as advice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from h2htalk.errors import MissingExtraError, RoundError, quoted, shorten

if TYPE_CHECKING:
    import httpx

URL, KEY = "ARGILLA_API_URL", "ARGILLA_API_KEY"
# A private Space of the Hugging Face Hub lets nobody in without a token of the Hub, before Argilla sees the request.
TOKEN, SPACES = "HF_TOKEN", ".hf.space"
# The server this was written against and is tested with; patches of it are welcome.
VERSION = "2.8"
# Seconds for which a server may be away before a command gives up: a restart takes some three.
PATIENCE = 30.0
# The same before anything was done: a wrong address should not take half a minute to find out.
FIRST_PATIENCE = 3.0
# Of one request (seconds): 500 records with their answers are read in under two.
TIMEOUT = 60.0
# Of a look at the search engine (seconds): one that hangs is as good as dead.
LOOK = 10.0
# How often a server's own failure (500: a locked database, a dead search engine) is asked again.
FAILURES = 3
WRITTEN = "write it like http://localhost:6900 or https://argilla.example.org"
_AWAY = (502, 503, 504)
_ROLES = ("owner", "admin")


@dataclass
class ArgillaClient:
    """A server that was found to be the right one, and who we are on it.

    Attributes:
        client: the SDK's client.
        url: of the server, as messages may show it (no user, no password).
        role: `owner` or `admin`.
        patience: seconds for which the server may be away.
    """

    client: Any
    url: str
    role: str = "owner"
    patience: float = PATIENCE

    def get(self, path: str, **params: Any) -> Any:
        """What stands at a path, as JSON. Raises RoundError."""
        return self.call("GET", path, params=params)[1]

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        allowed: Collection[int] = (),
        failures: int = FAILURES,
        timeout: float = TIMEOUT,
        patience: float | None = None,
        key: str = "",
    ) -> tuple[int, Any]:
        """One request, repeated while the server is away: every request of ours may be sent twice.

        Args:
            method, path: such as "PUT", "/api/v1/...".
            body: what JSON can hold.
            params: of the address.
            allowed: statuses above 399 that the caller wants to see.
            failures: how often a 500 is asked in all.
            timeout: of one attempt, in seconds.
            patience: seconds for which the server may be away; None: the wire's.
            key: of the account in whose name it is asked; empty: ours.

        Returns:
            The status and what came as JSON (None for nothing).

        Raises:
            RoundError: the server stays away, refuses, or fails.
        """

        other = {"X-Argilla-Api-Key": key} if key else None

        def send() -> httpx.Response:
            found = self.client.http_client.request(
                method, path, json=body, params=params, timeout=timeout, headers=other
            )
            return cast("httpx.Response", found)

        patience = self.patience if patience is None else patience
        reply = patient(send, patience, self.url)
        for attempt in range(1, failures):
            if reply.status_code != 500:
                break
            time.sleep(0.4 * 2**attempt)
            reply = patient(send, patience, self.url)
        if reply.status_code >= 400 and reply.status_code not in allowed:
            raise RoundError(refusal(self.url, f"{method} {path}", reply))
        return reply.status_code, read_json(reply) if reply.content else None


def connect(patience: float = PATIENCE) -> ArgillaClient:
    """Find the server that ARGILLA_API_URL names and sign in with ARGILLA_API_KEY.

    Raises:
        MissingExtraError: the SDK is not installed.
        RoundError: nothing answers there, it is another program or version, or the key is not an owner's or admin's.
    """
    try:
        import argilla
        import httpx
    except ImportError as error:
        raise MissingExtraError("an Argilla round", 'pip install "h2htalk[rounds]"') from error
    address, key = _address()
    shown, headers = _shown(address), headers_for(address)
    try:
        plain = httpx.Client(base_url=address, timeout=TIMEOUT, headers=headers)
    except httpx.InvalidURL as error:
        raise RoundError(f"{URL} is no address of a server; {WRITTEN}") from error
    with plain:
        version = patient(lambda: plain.get("/api/v1/version"), patience, shown)
        _require_version(version, shown, argilla.__version__)
        signed = {"X-Argilla-Api-Key": key}
        me = patient(lambda: plain.get("/api/v1/me", headers=signed), patience, shown)
    role = _role(me, shown)
    try:
        # Signs in once more; its own words for a failure hold nothing that helps.
        client = argilla.Argilla(api_url=address, api_key=key, retries=0, headers=headers)
    except httpx.HTTPError as error:
        raise RoundError(away(shown, error)) from error
    return ArgillaClient(client, shown, role, patience)


def require_search(wire: ArgillaClient) -> None:
    """Raise RoundError where the server's search engine is down: what is put out now, annotators would not see."""
    try:
        status, _ = wire.call(
            "GET", "/api/v1/status", allowed=range(400, 600), failures=1, timeout=LOOK, patience=0.0
        )
    except RoundError:
        # The server itself was there a moment ago: it waits for its search engine.
        status = 504
    if status >= 400:
        raise RoundError(
            f"{wire.url}: the server answers, its search engine does not, and without it annotators see nothing; "
            "start it, then give the same command again"
        )


# --- How ----------------------------------------------------------------------------------------------------------


def patient(send: Callable[[], httpx.Response], patience: float, shown: str) -> httpx.Response:
    """Send until the server answers, for so many seconds. Raises RoundError after them."""
    import httpx

    end, pause = time.monotonic() + patience, 0.2
    while True:
        problem: object
        try:
            reply = send()
            if reply.status_code not in _AWAY:
                return reply
            problem = reply.status_code
        except httpx.TransportError as error:
            problem = error
        if time.monotonic() + pause > end:
            raise RoundError(away(shown, problem))
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def away(shown: str, problem: object) -> str:
    kind = problem if isinstance(problem, int) else type(problem).__name__
    return (
        f"{shown} does not answer ({kind}); see whether the Argilla server runs and whether {URL} is its address, "
        "with the right one of http:// and https://, then give the same command again"
    )


def refusal(shown: str, what: str, reply: httpx.Response) -> str:
    """A refused request in words: who refused what, why, and what to do."""
    why = shorten(ascii(reply.text), 300)
    if reply.status_code == 401:
        return f"{shown} refuses the key in {KEY}; it may have been changed: set the new one"
    if reply.status_code == 403:
        return f"{shown}: {what}: not allowed for this key; use an owner's"
    if reply.status_code >= 500:
        return (
            f"{shown}: {what} failed with {reply.status_code}: {why}; see whether the server's search engine, Redis "
            "and disk are well, then give the same command again: what is stored already is found and kept"
        )
    return f"{shown}: {what} was refused with {reply.status_code}: {why}"


def read_json(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        return None


def _address() -> tuple[str, str]:
    address, key = (os.environ.get(name, "").strip() for name in (URL, KEY))
    missing = [name for name, value in ((URL, address), (KEY, key)) if not value]
    if missing:
        raise RoundError(
            f"set {' and '.join(missing)}: the address of the Argilla server (http://localhost:6900) and an owner's key"
        )
    if any(sign.isspace() or not sign.isprintable() for sign in address):
        raise RoundError(f"{URL} holds a space or a sign that cannot be seen; type it anew: {WRITTEN}")
    try:
        parts = urlsplit(address)
        proper = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        proper = False
    if not proper:
        raise RoundError(f"{URL} is no address of a server; {WRITTEN}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise RoundError(f"{KEY} holds signs that no key has; copy it again from the web page, My settings")
    return address.rstrip("/"), key


def _shown(address: str) -> str:
    """An address without the user and password that may stand in it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def headers_for(address: str) -> dict[str, str]:
    """What every request carries beside Argilla's key: on a Space, and by https alone, the Hub's token."""
    parts = urlsplit(address)
    token = os.environ.get(TOKEN, "").strip()
    on_space = parts.scheme == "https" and (parts.hostname or "").endswith(SPACES)
    if not (token and on_space):
        return {}
    if not token.isascii() or not token.isprintable() or " " in token:
        raise RoundError(f"{TOKEN} holds signs that no token has; copy it again from the Hub's settings")
    return {"Authorization": f"Bearer {token}"}


def _role(me: httpx.Response, shown: str) -> str:
    """The role of the key's owner; raises RoundError for nobody's key and for one that may only answer."""
    if me.status_code == 401:
        raise RoundError(
            f"{shown} refuses the key in {KEY}; the owner finds theirs in the web page under My settings"
        )
    if me.status_code != 200:
        raise RoundError(refusal(shown, "GET /api/v1/me", me))
    found = read_json(me)
    if found.get("role") not in _ROLES:
        raise RoundError(
            f"{shown}: {KEY} belongs to {quoted(found.get('username'))}, who may only answer; "
            "use the key of an owner, or of an admin of the round's workspaces"
        )
    return str(found["role"])


def _require_version(reply: httpx.Response, shown: str, sdk: str) -> None:
    found = read_json(reply)
    version = found.get("version") if isinstance(found, dict) else None
    if reply.status_code != 200 or not isinstance(version, str):
        raise RoundError(
            f"{shown} answers, but is no Argilla server (/api/v1/version gives {reply.status_code}); see {URL}"
            + ("; it points elsewhere: try https:// or http://" if 300 <= reply.status_code < 400 else "")
            + (f"; a private Space needs a token of the Hub in {TOKEN}" if SPACES in shown else "")
        )
    if not version.startswith(f"{VERSION}."):
        raise RoundError(
            f"{shown} runs Argilla {version[:20]}; rounds need {VERSION}.* (the SDK here is {sdk}): use a server of "
            "that version"
        )
