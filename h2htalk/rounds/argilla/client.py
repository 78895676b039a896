"""Connection to an annotation server: address and key, version, retries, and error messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import httpx

from h2htalk.data.bounded.bounds import REPLY
from h2htalk.data.bounded.request_time import (
    RequestTime,
    bound_request_time,
    counting,
    running_request,
)
from h2htalk.errors import RoundError, quoted, shorten
from h2htalk.masking import hold_key, hold_url, is_secret_name, mask_held, masked

KEY_HEADER = "X-Argilla-Api-Key"
# A private Space of the Hugging Face Hub requires a token of the Hub.
TOKEN, SPACES = "HF_TOKEN", ".hf.space"
# Seconds of retries while a server that has answered does not answer any more: a restart takes about three.
RETRY_SECONDS = 30.0
# The same for the first request, and its timeout for a connection, to report a dead server or a wrong address quickly.
FIRST_RETRY_SECONDS = 3.0
# Timeout of a request (seconds): 500 records with responses are read in under two.
TIMEOUT = 60.0
# Timeout of a whole request with its reply, from the first byte of its head.
LONGEST_REQUEST = 600.0
# Timeout of requests to the search engine (seconds).
SEARCH_TIMEOUT = 10.0
# Attempts after an internal error of the server (500: a locked database, a dead search engine).
ATTEMPTS = 3
_UNAVAILABLE = (502, 503, 504)
_ROLES = ("owner", "admin")


@dataclass(frozen=True, slots=True)
class ServerClient:
    """A connection to a supported server, of Argilla unless a subclass names another; its URL is without user.

    The role is that of the key's owner, `owner` or `admin`; requests are repeated for `retry_seconds`. Any patch of
    `VERSION` is supported.
    """

    NAME, URL, KEY, VERSION = "Argilla", "ARGILLA_API_URL", "ARGILLA_API_KEY", "2.8"
    VERSION_PATH = "/api/v1/version"
    KEYS = "the owner's key is on the web page under My settings"

    http: httpx.Client
    url: str
    role: str
    retry_seconds: float

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON at a path. Raise RoundError."""
        return self.call("GET", path, params=params)[1]

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        allowed: Collection[int] = (),
        key: str = "",
    ) -> tuple[int, Any]:
        """Send a request, and return the status and the JSON of the reply (None if it is empty).

        It is repeated while the server does not answer: all our requests may be sent twice. `allowed` are statuses
        above 399 that are returned. With the `key` of another account the request is sent in its name. Raise RoundError
        if the server does not answer, refuses, or fails.
        """
        headers = {KEY_HEADER: key} if key else None
        hold_key(key)
        end = time.monotonic() + self.retry_seconds
        pause = 0.2
        failures = 0
        while True:
            problem: object
            try:
                reply = self._send(method, path, json=body, params=params, headers=headers)
            except httpx.TransportError as error:
                problem = type(error).__name__
            else:
                problem = reply.status_code
                failures = failures + (reply.status_code == 500)
                if problem not in _UNAVAILABLE and (problem != 500 or failures == ATTEMPTS):
                    break
            if time.monotonic() + pause > end:
                raise RoundError(
                    f"{self.url} does not answer ({problem}); check that the {self.NAME} server runs and that "
                    f"{self.URL} is its address (http:// or https://), then repeat the command"
                )
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        if (status := reply.status_code) >= 400 and status not in allowed:
            request = f"{method} {path}"
            reason = _readable(reply.text, body)
            problem = f"{request} was refused with {status}: {reason}"
            if status == 401:
                problem = f"rejects the key in {self.KEY}; {self.KEYS}"
            elif status == 403:
                problem = f"{request}: not allowed for this key; use an owner's"
            elif status >= 500:
                problem = (
                    f"{request} failed with {status}: {reason}; check the server's search engine, Redis and disk, then "
                    "repeat the command: it keeps what is stored already"
                )
            raise RoundError(f"{self.url}: {problem}")
        return status, _read_json(reply)

    def _send(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """Send a request once. A reply that drips, which no timeout between two bytes ends, or that never ends, is one
        that does not come."""
        request = _request_time()
        content = bytearray()
        with counting(request), self.http.stream(method, path, **sent) as reply:
            for chunk in reply.iter_bytes():
                content += chunk
                if len(content) > REPLY.value:
                    raise RoundError(f"{self.url}: {method} {path}: {REPLY.message('a reply')}")
                request.left()
        kept = {
            name: value for name, value in reply.headers.items() if name.lower() == "content-type"
        }
        return httpx.Response(reply.status_code, headers=kept, content=bytes(content))

    def ask_search_engine(self, path: str) -> Any:
        """Return the JSON at a path that needs the search engine, asked once; None if the engine does not answer."""
        try:
            reply = self._send("GET", path, timeout=SEARCH_TIMEOUT)
        except httpx.TransportError:
            return None
        return _read_json(reply) if reply.status_code == 200 else None

    def require_owner(self, problem: str) -> None:
        """Raise RoundError, with what only an owner's key solves, for an admin's."""
        if self.role != "owner":
            raise RoundError(f"{self.url}: {problem}; use an owner's key")

    @classmethod
    def open(
        cls, retry_seconds: float, credentials: Callable[[str, str], Mapping[str, Any]]
    ) -> Self:
        """Connect to the server; `credentials` makes options of the HTTP client from its address and key.

        `retry_seconds`: seconds of retries after the first answer; before it at most `FIRST_RETRY_SECONDS`. Raise
        RoundError if the server does not answer, or is another program or version.
        """
        address, key = cls._read_environment()
        timeout = httpx.Timeout(TIMEOUT, connect=FIRST_RETRY_SECONDS)
        url = str(httpx.URL(address).copy_with(userinfo=b"", query=None, fragment=None))
        http = httpx.Client(base_url=address, timeout=timeout, **credentials(address, key))
        bound_request_time(http, lambda request: running_request() or _request_time())
        client = cls(http, url, "", min(retry_seconds, FIRST_RETRY_SECONDS))
        status, body = client.call("GET", cls.VERSION_PATH, allowed=range(400, 600))
        version = (body.get("version") or body.get("release")) if isinstance(body, dict) else None
        if status != 200 or not isinstance(version, str):
            raise RoundError(
                f"{url} does not run {cls.NAME} ({cls.VERSION_PATH} returns {status}); check {cls.URL}"
                + ("; it redirects: try https:// or http://" if 300 <= status < 400 else "")
                + (
                    f"; a private Space needs a token of the Hub in {TOKEN}"
                    if SPACES in url
                    else ""
                )
            )
        if not version.startswith(f"{cls.VERSION}."):
            raise RoundError(
                f"{url} runs {cls.NAME} {version[:20]}, but rounds need {cls.VERSION}.*; use a server of that version"
            )
        return replace(client, retry_seconds=retry_seconds)

    @classmethod
    def _read_environment(cls) -> tuple[str, str]:
        """Return address and key; raise RoundError if one is missing or invalid."""
        address, key = (os.environ.get(name, "").strip() for name in (cls.URL, cls.KEY))
        if missing := [name for name, value in ((cls.URL, address), (cls.KEY, key)) if not value]:
            raise RoundError(
                f"set {' and '.join(missing)}: the address of the {cls.NAME} server and an owner's key"
            )
        try:
            parts = httpx.URL(address)
            valid = (
                parts.scheme in ("http", "https")
                and bool(parts.host)
                and set("[%]").isdisjoint(parts.host)
            )
            valid = valid and (parts.port or 1) < 1 << 16
        except httpx.InvalidURL:
            valid = False
        if not valid or not address.isprintable() or " " in address:
            raise RoundError(
                f"{cls.URL} is not an address of a server; write it like http://localhost:6900 or https://HOST"
            )
        hold_key(key)
        hold_url(address)
        if not _is_token(key):
            raise RoundError(f"{cls.KEY} contains invalid characters; copy it again: {cls.KEYS}")
        return address.rstrip("/"), key


def _request_time() -> RequestTime:
    return RequestTime(seconds=LONGEST_REQUEST, error=httpx.ReadTimeout)


def connect(retry_seconds: float = RETRY_SECONDS) -> ServerClient:
    """Connect to the Argilla server in ARGILLA_API_URL with the key in ARGILLA_API_KEY, as `ServerClient.open`.

    Raise RoundError also if the key is no owner's or admin's.
    """
    client = ServerClient.open(
        retry_seconds, lambda address, key: {"headers": {KEY_HEADER: key, **hub_headers(address)}}
    )
    user = client.get("/api/v1/me")
    if user["role"] not in _ROLES:
        raise RoundError(
            f"{client.url}: {client.KEY} belongs to the annotator {quoted(user['username'])}; use the key of an owner, "
            "or of an admin of the round's workspaces"
        )
    return replace(client, role=user["role"])


def require_search_engine(client: ServerClient) -> None:
    """Raise RoundError if the server's search engine is down: annotators would not see what is published."""
    if client.ask_search_engine("/api/v1/status") is None:
        raise RoundError(
            f"{client.url}: the server's search engine does not answer, so annotators see nothing; start it, then "
            "repeat the command"
        )


class _Object(dict[str, Any]):
    """An object of a reply: a field that a server of the supported version has may be missing in another's."""

    def __missing__(self, name: str) -> Any:
        raise RoundError(
            f"the annotation server sent an object without {quoted(name)}; check its address and version, and what "
            "stands before it (a proxy, a page of sign-in)"
        )


def _read_json(reply: httpx.Response) -> Any:
    try:
        return reply.json(object_hook=_Object)
    except (ValueError, RecursionError):
        return None


def _readable(reply: str, body: Any) -> str:
    """What a server says to a request that it refuses, in ASCII, without the passwords that were sent to it."""
    sent = body.items() if isinstance(body, Mapping) else ()
    for name, value in sent:
        if is_secret_name(str(name)) and isinstance(value, str):
            reply = masked(reply, value)
    return shorten(ascii(mask_held(reply)), 300)


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def hub_headers(address: str) -> dict[str, str]:
    """Return the header with the Hub's token; only for a Space of the Hub, and only over https."""
    parts = httpx.URL(address)
    token = os.environ.get(TOKEN, "").strip()
    if not token or parts.scheme != "https" or not parts.host.endswith(SPACES):
        return {}
    hold_key(token)
    if not _is_token(token):
        raise RoundError(
            f"{TOKEN} contains invalid characters; copy it again from the Hub's settings"
        )
    return {"Authorization": f"Bearer {token}"}
