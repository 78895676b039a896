"""The Hugging Face Hub's client: with timeouts, the token of the environment, and errors in one line.

All calls of the package to the Hub for data sets are in this folder. The client's own requests have no timeout; those
of hf-xet, which downloads large files where it is installed, have timeouts of their own.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from json import JSONDecodeError
from types import FrameType
from typing import Any

import huggingface_hub
from huggingface_hub import constants, errors

from h2htalk.data.files import write_problem
from h2htalk.data.responses import masked
from h2htalk.errors import ConfigError, HubError, shorten
from h2htalk.version import __version__

TOKEN = "HF_TOKEN"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
# Seconds until a connection stands, and of silence in one: a commit of many files takes the Hub a minute.
TIMEOUTS = {"connect": 10.0, "read": 120.0, "write": 120.0, "pool": 10.0}
LONGEST_STOP = 5.0  # seconds after Ctrl-C
_AGAIN = "run the same command again"
# Of httpx or httpx2, by the client's version.
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[0]


def hub_api() -> huggingface_hub.HfApi:
    """The client, with HF_TOKEN alone: a token stored by `hf auth login` is not used. Raises ConfigError."""
    set_timeouts()
    return huggingface_hub.HfApi(token=read_token() or False, library_name="h2htalk", library_version=__version__)


@cache
def set_timeouts() -> None:
    """Give every request of the client in this process a timeout: by default it has none, some even ask for none."""
    from huggingface_hub.utils import _http

    make_client = _http._GLOBAL_CLIENT_FACTORY  # the caller may have set one, for a proxy say

    def set_timeout(request: Any) -> None:
        asked = {key: value for key, value in request.extensions.get("timeout", {}).items() if value is not None}
        request.extensions["timeout"] = TIMEOUTS | asked

    def client_with_timeouts() -> Any:
        client: Any = make_client()
        client.event_hooks = {"request": [*client.event_hooks["request"], set_timeout]}
        return client

    huggingface_hub.set_client_factory(client_with_timeouts)
    for handler in logging.getLogger("huggingface_hub").handlers:  # it logs what servers say in headers
        handler.addFilter(_mask_record)


def _mask_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked(record.getMessage(), os.environ.get(TOKEN)), ()
    return True


def read_token() -> str | None:
    """The token in HF_TOKEN; None without one. Raises ConfigError, which does not show it, where it is no token."""
    token = os.environ.get(TOKEN, "").strip()
    # The HTTP client would show the whole header in its error.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{TOKEN} holds a character that no token has; copy it again from {TOKENS_PAGE}")
    return token or None


def require_token(use: str) -> None:
    """Raise ConfigError where HF_TOKEN is not set."""
    if read_token() is None:
        raise ConfigError(f"{TOKEN} is not set: make a token {use}at {TOKENS_PAGE}, then export {TOKEN}=...")


def page_of(repo: str) -> str:
    """The address of a data set's page."""
    return f"{constants.ENDPOINT}/datasets/{repo}"


def one_line(text: object, limit: int = 300) -> str:
    """A text of others as one line, without the token and not longer than `limit`."""
    return shorten(masked(" ".join(str(text).split()), read_token()), limit)


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """End a process some seconds after Ctrl-C where the client's threads still wait for the network; no notebook's."""
    ended = threading.Timer(LONGEST_STOP, os._exit, (130,))
    ended.daemon = True

    def stop(number: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # started by an earlier one
            ended.start()
        signal.default_int_handler(number, frame)

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler and not hasattr(sys, "ps1")
    if ours := ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        ended.cancel()
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn the client's errors into a HubError that says what happened to `repo` and what to do."""
    try:
        with _stopped_by_ctrl_c():
            yield
    except (_HTTP_ERROR, OSError, ValueError, KeyError, RuntimeError) as error:
        cause: BaseException = error
        # The client wraps the error of an upload, and that of loading a file that is not in the cache.
        while isinstance(cause, RuntimeError | errors.LocalEntryNotFoundError) and cause.__cause__ is not None:
            cause = cause.__cause__
        if isinstance(cause, RuntimeError) and not isinstance(cause, OSError):
            raise  # no error of the client
        raise HubError(masked(f"{repo}: {_describe(cause, repo)}", read_token())) from error


def _describe(error: BaseException, repo: str) -> str:
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError) and constants.HF_HUB_OFFLINE:
        return "not in the cache, and HF_HUB_OFFLINE forbids to load it; unset it and run the command once"
    if isinstance(error, errors.HfHubHTTPError):
        return _describe_status(error, repo)
    text, kind = one_line(error), type(error).__name__
    if isinstance(error, JSONDecodeError | KeyError):
        return f"{constants.ENDPOINT} does not answer as the Hub does; check HF_ENDPOINT and the network"
    if isinstance(error, OSError) and error.errno is not None:  # not of a connection, whose errors the client wraps
        return write_problem(error)
    if isinstance(error, ValueError):  # refused metadata or uploads
        return text
    if "Timeout" in kind:
        return f"{constants.ENDPOINT} did not answer in time ({kind}); {_AGAIN}"
    return f"the connection to {constants.ENDPOINT} failed ({text or kind}); check the network and {_AGAIN}"


def _describe_status(error: errors.HfHubHTTPError, repo: str) -> str:
    """Describe an error that the Hub answered."""
    status = error.response.status_code
    said = one_line(error.response.headers.get("X-Error-Message") or error.server_message or "", 160)
    answer = f"{status}: {said}" if said else str(status)
    account = f"the account of {TOKEN}" if read_token() else f"a reader without {TOKEN}"
    if isinstance(error, errors.GatedRepoError):
        return (
            f"its owner asks readers for their consent, and {account} has no access; accept the conditions at "
            f"{page_of(repo)} and set {TOKEN} to a token of that account"
        )
    # To an account that it knows, the Hub answers 404.
    if isinstance(error, errors.RepositoryNotFoundError) and not (status == 401 and read_token()):
        advice = "check the name and the token" if read_token() else f"check the name, or set {TOKEN}"
        return f"there is no such repository, or it is private and {account} cannot see it ({answer}); {advice}"
    if isinstance(error, errors.EntryNotFoundError):
        name = str(error.response.url).rpartition("/resolve/")[2].partition("/")[2]
        return f"{name or 'a file'} is missing there, so it is no release ({answer})"
    if status >= 500:
        return f"the Hub has a problem ({answer}); {_AGAIN} later"
    owner = repo.partition("/")[0]
    by_status = {
        401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
        403: f"the Hub refuses; check that {TOKEN} may write to {owner}, and the storage that {owner} has left",
        409: f"it exists already, and {account} cannot use it; choose another name",
        412: f"somebody else changed it meanwhile; {_AGAIN}",
        413: f"the Hub finds it too large; check the storage that {owner} has left",
        429: f"too many requests in a short time; wait some minutes and {_AGAIN}",
    }
    return f"{by_status.get(status, 'the Hub refuses')} ({answer})"
