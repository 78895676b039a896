"""The Hugging Face Hub's client: with timeouts, the token of the environment, and errors in one line.

All calls of the package to the Hub for data sets are in this folder. The client's own requests have no timeout; those
of hf-xet, which uploads large files where it is installed, have timeouts of their own.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
AGAIN = "run the same command again"
_ADVICE = {
    401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
    403: f"check that {TOKEN} may write there, and the storage that its owner has left",
    404: f"it is not there, or is private and {TOKEN} cannot see it; check the name and the token",
    409: "it exists already; choose another name",
    412: f"somebody else changed it meanwhile; {AGAIN}",
    413: "check the storage that its owner has left",
    429: f"wait some minutes and {AGAIN}",
}
# Of httpx or httpx2, by the client's version.
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[0]


def hub_api() -> huggingface_hub.HfApi:
    """The client, with HF_TOKEN alone: a token stored by `hf auth login` is not used. Raises ConfigError."""
    set_timeouts()
    return huggingface_hub.HfApi(token=read_token() or False, library_name="h2htalk", library_version=__version__)


def set_timeouts() -> None:
    """Give every request of the client's session a timeout, and mask the token in the client's log."""
    session = huggingface_hub.get_session()  # of the caller's making, where it has a factory: for a proxy, say
    hooks = session.event_hooks
    if _set_timeout not in hooks["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _set_timeout]}
    for handler in logging.getLogger("huggingface_hub").handlers:  # it logs what servers say in headers
        handler.addFilter(_mask_record)


def _set_timeout(request: Any) -> None:
    asked = {key: value for key, value in request.extensions.get("timeout", {}).items() if value is not None}
    request.extensions["timeout"] = TIMEOUTS | asked  # some requests ask for none


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
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ended.start()
        signal.default_int_handler(number, frame)

    here = threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1")
    if ours := here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
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
        raise HubError(masked(f"{repo}: {_describe(cause, repo)}", read_token())) from error


def _describe(error: BaseException, repo: str) -> str:
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError) and constants.HF_HUB_OFFLINE:
        return "not in the cache, and HF_HUB_OFFLINE forbids to load it; unset it and run the command once"
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        said = error.response.headers.get("X-Error-Message") or error.server_message
        advice = _ADVICE.get(status, f"{AGAIN} later" if status >= 500 else "the Hub refuses")
        if isinstance(error, errors.GatedRepoError):
            advice = f"accept the conditions at {page_of(repo)} and set {TOKEN} to a token of that account"
        elif status == 401 and read_token() is None:
            advice = _ADVICE[404]  # to an account that it knows, the Hub answers 404
        return f"{one_line(said or 'refused', 160)} ({status}): {advice}"
    if isinstance(error, JSONDecodeError | KeyError):
        return f"{constants.ENDPOINT} does not answer as the Hub does; check HF_ENDPOINT and the network"
    if isinstance(error, OSError) and error.errno is not None:  # not of a connection, whose errors the client wraps
        return write_problem(error)
    if isinstance(error, ValueError):  # refused metadata or uploads
        return one_line(error)
    return f"{constants.ENDPOINT} failed: {one_line(error) or type(error).__name__}; check the network and {AGAIN}"
