"""The URL, key and proxy of an OpenAI-compatible server."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from h2htalk.chat.provider_answers import clean
from h2htalk.errors import ConfigError

EXAMPLE = "server:qwen2.5@http://127.0.0.1:8000/v1"
KEY_VARIABLE = "H2HTALK_SERVER_KEY"

_ROUTE = "/chat/completions"
VERSION = r"(api-version=[A-Za-z0-9.-]{1,40})?"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model and the URL that its requests go to (the whole chat completions URL)."""

    model: str
    url: str


def parse_endpoint(name: str) -> Endpoint:
    """Split `MODEL@URL` at the last `@http://` or `@https://`; a model name may hold `/`, `:` and `@`.

    Raises:
        ConfigError: a part is missing, or the URL carries a user, a password or a key. A model's name is written to
            every run, so nothing secret can be part of it; no message repeats it.
    """
    at = max(name.rfind("@http://"), name.rfind("@https://"))
    model, url = name[:at], name[at + 1 :]
    if at <= 0 or not model.strip() or not model.isprintable():
        raise ConfigError(f"server needs a model and a URL, such as {EXAMPLE}")
    parts = http_parts(url, f"server:{clean(model)}", EXAMPLE, f"a key belongs in {KEY_VARIABLE}")
    path = parts.path.rstrip("/")
    path = path if path.endswith(_ROUTE) else path + _ROUTE
    return Endpoint(model, urlunsplit(parts._replace(path=path)))


def http_parts(url: str, what: str, example: str, advice: str, query: str = VERSION) -> SplitResult:
    """Split the URL of `what`, which will be stored with what it answers.

    Raises:
        ConfigError: HTTP cannot use it, or it holds a user, a password, a fragment, or a query that is not of the
            pattern `query`. No message repeats it.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and (URL(url).host or "").encode("idna")
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise ConfigError(f"{what} has no usable URL; give one such as {example}")
    if "@" in parts.netloc or parts.fragment or not re.fullmatch(query, parts.query):
        held = f"the URL of {what} holds a user, a password, a fragment or a query"
        raise ConfigError(f"{held}, which would be stored; take it out ({advice})")
    return parts


def base_url(url: str) -> str:
    """Return which server a URL asks: scheme, host and path, without query and route."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix(_ROUTE)
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


def is_loopback(url: str) -> bool:
    """Whether a URL is on this machine, which is reached without a proxy."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def read_key(variable: str = KEY_VARIABLE) -> str | None:
    """Read a key from the environment, None where there is none. No message repeats it.

    Raises:
        ConfigError: it holds characters that no header can carry.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not all(c.isprintable() and c != " " for c in key):
        raise ConfigError(f"{variable} holds characters that no key has; set it again")
    return key or None


def read_proxy(endpoint: Endpoint) -> str | None:
    """The proxy that the environment names for this URL; never one for this machine itself."""
    parts = urlsplit(endpoint.url)
    if is_loopback(endpoint.url) or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"{parts.scheme}_proxy is not an HTTP proxy: unset it, or name the host in no_proxy")
    return proxy or None
