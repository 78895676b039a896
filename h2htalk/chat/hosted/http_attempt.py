"""One attempt through a provider's SDK: the answer, or how the connection failed.

The SDKs supply headers, addresses and authentication. Their retries, redirects, logs and typed models are not used:
every attempt is reserved, and answers are read strictly in `openai_wire` and `anthropic_wire`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from h2htalk.chat.calls import Answer, Call, FailedCall, WireFormat
from h2htalk.chat.provider_replies import scrub
from h2htalk.chat.server.endpoint import http_parts, read_key
from h2htalk.errors import ConfigError, H2HTalkError, ModelCallError

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Provider:
    """The names of a provider: its title, its SDK, and the variables that hold key and address.

    Attributes:
        module: of the SDK, and the engine's name. client: the SDK's class; the asynchronous one begins with `Async`.
        create: the client's method that sends a call, as a path of attributes.
        example: a model of it.
        jobs: `module:Class` of its batch jobs.
        client_options: for the client's class.
    """

    title: str
    module: str
    key_variable: str
    url_variable: str
    url: str
    client: str
    create: str
    example: str
    jobs: str
    client_options: Mapping[str, Any] = field(default_factory=dict)

    def open_client(self, key: str, url: str, http_client: Any) -> Any:
        """Return the SDK's client over the given connection; asynchronous where the connection is."""
        import httpx2

        name = ("Async" if isinstance(http_client, httpx2.AsyncClient) else "") + self.client
        client_class = getattr(import_module(self.module), name)
        parts = urlsplit(url)
        return client_class(
            api_key=key,
            base_url=urlunsplit(parts._replace(query="")),
            default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            max_retries=0,  # every attempt is reserved
            http_client=http_client,
            **self.client_options,
        )

    def read_key(self) -> str:
        """Read the key from the environment. No message repeats it.

        Raises:
            ConfigError: there is none, or it cannot be one.
        """
        key = read_key(self.key_variable)
        if key is None:
            raise ConfigError(f"{self.module}: needs a key: set {self.key_variable}")
        return key

    def read_url(self) -> str:
        """Return the address that the SDK will use: that of its variable, else the provider's.

        Raises:
            ConfigError: it is no address, or may hold something secret.
        """
        import httpx2

        url = os.environ.get(self.url_variable, "").strip() or self.url
        http_parts(url, self.url_variable, self.url, f"a key belongs in {self.key_variable}")
        try:
            httpx2.URL(url)  # is stricter about what a host may be called
        except httpx2.InvalidURL:
            raise ConfigError(f"{self.url_variable} has no usable URL; give one such as {self.url}") from None
        return url


@dataclass(frozen=True, slots=True)
class Arrived:
    """A complete answer of any status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


# Sends one body; the second argument is the seconds that it may take in all.
Send = Callable[[Mapping[str, Any], float], Awaitable[Arrived | FailedCall]]


@dataclass(frozen=True, slots=True)
class ApiConnection:
    """A connection to a provider: its address, its wire format, and how to open it (in the event loop)."""

    provider: Provider
    url: str
    wire: WireFormat
    connect: Callable[[], AbstractAsyncContextManager[Send]]

    def read(self, arrived: Arrived, call: Call) -> Answer | FailedCall:
        """Read an answer that arrived."""
        status, headers = arrived.status, arrived.headers
        if 300 <= status < 400:
            variable = self.provider.url_variable
            advice = f"{self.place} redirects (HTTP {status}): set {variable} to the final address"
            return FailedCall(f"http_{status}", f"HTTP {status}", "free", fatal=advice)
        try:
            body: object = json.loads(arrived.content)
        except (ValueError, RecursionError):
            body = arrived.content
        if status >= 300:
            return self.wire.read_error(status, body, headers)
        return self.wire.read(body, call, headers.get("x-request-id") or headers.get("request-id"))

    def end_of_all(self, found: FailedCall, answered: bool) -> H2HTalkError | None:
        """Return the error for a failure that ends the run; `answered`: an earlier call was answered."""
        if found.fatal is not None:
            return (ModelCallError if found.reason == "no_credit" else ConfigError)(found.fatal)
        if found.reason == "connection" and found.billing == "free" and not answered:
            where = f"check the connection and its proxy, or {self.provider.url_variable}"
            return ModelCallError(f"{self.place} does not answer ({found.message}): {where}")
        return None

    def not_the_api(self, why: str) -> ConfigError:
        """Return the error for an address that is not the provider's API."""
        return ConfigError(f"{self.place} is no {self.provider.title} API ({why}): check {self.provider.url_variable}")

    @property
    def place(self) -> str:
        """The host without the path, which may hold something secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def check_name(name: str, provider: Provider) -> str:
    """Return the name of a model. Raises ConfigError for a name that cannot be one."""
    if not name or not name.isprintable() or any(c.isspace() for c in name):
        engine = provider.module
        raise ConfigError(f"{engine}: needs the name of a model, such as {engine}:{provider.example}")
    return name


def silence_sdks() -> None:
    """Silence the logs and warnings of the SDKs and their transport, which may quote whole prompts."""
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # The SDK warns of models that will be switched off.
    warnings.filterwarnings("ignore", r"The model .* is deprecated", DeprecationWarning)


# The SDKs put more than the key into headers: OPENAI_ORG_ID, OPENAI_PROJECT_ID, ..._CUSTOM_HEADERS. What such a
# variable holds may be secret, so it is not quoted.
_UNSENT = FailedCall(
    "connection",
    "nothing was sent: the address, or a header from the environment, holds characters that none may",
    "free",
)


async def exchange(
    post: Callable[[Any], Awaitable[Any]], seconds: float, sdk: ModuleType, key: str
) -> Arrived | FailedCall:
    """Make one attempt, the reading of its answer included, in `seconds`: a slow answer is cut off then.

    Args:
        post: sends, given the transport's timeouts, and returns the SDK's raw response.
        sdk: the SDK's module, for its errors.
    """
    import httpx2

    # The transport's own limits only distinguish a failed connection from a missing answer.
    timeouts = httpx2.Timeout(seconds + 1, connect=min(CONNECT_TIMEOUT, seconds / 2))
    try:
        async with asyncio.timeout(seconds):
            raw = await post(timeouts)
        return _arrived(raw.http_response)
    except TimeoutError:
        return FailedCall("timeout", f"no complete answer within {seconds:.3g} s", "possibly_paid", retry=True)
    except (UnicodeEncodeError, httpx2.InvalidURL):
        return _UNSENT
    except sdk.APIStatusError as error:
        return _arrived(error.response)
    except sdk.APIConnectionError as error:
        return _broken(error.__cause__ or error, key)


def _arrived(response: httpx2.Response) -> Arrived:
    return Arrived(response.status_code, response.headers, response.content)


def _broken(error: BaseException, key: str) -> FailedCall:
    """Return the failed call of a broken connection: free before anything was sent, else possibly paid."""
    import httpx2

    from h2htalk.chat.reply_size_limit import ReplyTooLarge

    said = scrub(str(error), key) or type(error).__name__
    if isinstance(error, ReplyTooLarge):
        return FailedCall("malformed_reply", said, "paid")
    lost = FailedCall("connection", f"the connection broke: {said}", "possibly_paid", retry=True)
    if isinstance(error, httpx2.ConnectTimeout):
        return replace(lost, message="no connection: nothing answers", billing="free")
    if isinstance(error, httpx2.ConnectError | httpx2.PoolTimeout | httpx2.ProxyError):
        return replace(lost, message=f"no connection: {said}", billing="free")
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return _UNSENT
    if isinstance(error, httpx2.DecodingError):
        return FailedCall("malformed_reply", f"the answer cannot be decompressed: {said}", "paid")
    if isinstance(error, httpx2.TimeoutException):
        return replace(lost, reason="timeout", message="the connection was idle for too long")
    return lost
