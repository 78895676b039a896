"""The TOML file that says how to talk to a companion application over HTTP (docs/how-to/test-an-app.md).

In `path` and `json` of a call the placeholders `NAMES` are replaced; `[headers]` may name variables of the environment
as `$NAME`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record
from h2htalk.data.responses import masked
from h2htalk.errors import ConfigError, quoted

NAMES = ("session", "text", "days", "case", "language", "history")
SHORTEST_SECRET = 8
_PLACE = re.compile(r"\{(\w+)\}")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
_FRAMING = ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")


class Call(BaseModel):
    """One HTTP call of the adapter."""

    model_config = _STRICT

    path: str = Field(pattern="^/")
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    body: Any = Field(None, alias="json")
    ok: list[int] = []

    def uses(self, name: str) -> bool:
        """Whether a placeholder stands in the call."""
        return f"{{{name}}}" in self.path + json.dumps(self.body, ensure_ascii=False)


class Start(Call):
    """`session`: the place of the session's id in the reply, such as `data.id`."""

    session: str = Field(min_length=1)


class Send(Call):
    """`reply`: the place of the text in the reply, or in each piece of a stream."""

    reply: str = Field(min_length=1)
    stream: Literal["sse", "lines"] | None = None


class Adapter(BaseModel):
    """The whole file."""

    model_config = _STRICT

    send: Send
    start: Start | None = None
    pause: Call | None = None
    reset: Call | None = None
    headers: dict[str, str] = {}

    def read_headers(self) -> dict[str, str]:
        """The headers with the environment's values. Raises ConfigError where a variable is not set."""
        return {name: _VARIABLE.sub(lambda found: _secret(found[1]), text) for name, text in self.headers.items()}

    def masked(self, text: str) -> str:
        """A text without what the environment gives for the headers, whole and in words (`Bearer KEY`)."""
        values = [_secret(name) for header in self.headers.values() for name in _VARIABLE.findall(header)]
        for key in (*values, *(word for value in values for word in value.split() if len(word) >= SHORTEST_SECRET)):
            text = masked(text, key)
        return text


def _secret(name: str) -> str:
    if not (found := os.environ.get(name, "")):
        raise ConfigError(f"the adapter's headers need the environment variable {name}; set it")
    if len(found) < SHORTEST_SECRET:
        raise ConfigError(
            f"the environment variable {name} has fewer than {SHORTEST_SECRET} characters: replies could hold it by "
            "chance, and it is masked in them; use a longer key"
        )
    if not found.isprintable():
        raise ConfigError(f"the environment variable {name} holds a line end or another control character; remove it")
    return found


def read_adapter(path: Path) -> Adapter:
    """Read an adapter. Raises ConfigError: not readable, an unknown key or placeholder, or no session to send to."""
    adapter = read_record(Adapter, read_toml(path), str(path), error=ConfigError)
    for name, text in adapter.headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _FRAMING or not text.isprintable():
            raise ConfigError(f"{path}: headers: {quoted(name)}: give a header that you may set, in one line")
        if "$" in _VARIABLE.sub("", text):
            raise ConfigError(f"{path}: headers: {name}: write $NAME for a variable of the environment, and no other $")
    for name in ("start", "send", "pause", "reset"):
        call: Call | None = getattr(adapter, name)
        if call is None:
            continue
        try:
            text = call.path + json.dumps(call.body, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: {name}: json holds what JSON cannot (a date, nan, inf): {error}") from error
        for found in _PLACE.findall(text):
            if found not in NAMES:
                raise ConfigError(f"{path}: {name}: no value {{{found}}}; choose from {', '.join(NAMES)}")
        if call.uses("session") and adapter.start is None:
            raise ConfigError(f"{path}: {name} needs {{session}}, and there is no [start] that gives one")
    if not adapter.send.uses("text"):
        raise ConfigError(f"{path}: send: {{text}} stands nowhere, so no message would be sent")
    return adapter


def filled_path(path: str, values: Mapping[str, Any]) -> str:
    """A path with the values of its placeholders, quoted."""
    return _PLACE.sub(lambda match: quote(str(values.get(match[1], "")), safe="", errors="replace"), path)


def filled(body: Any, values: Mapping[str, Any]) -> Any:
    """A JSON value with its placeholders filled; one that is a whole text becomes the value itself."""
    if isinstance(body, dict):
        return {key: filled(value, values) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, values) for value in body]
    if not isinstance(body, str):
        return body
    if (whole := _PLACE.fullmatch(body)) is not None:
        return values.get(whole[1], "")
    return _PLACE.sub(lambda match: str(values.get(match[1], "")), body)


def at_place(record: Any, place: str) -> Any:
    """The value at a place such as `choices.0.message.content`; None where there is none."""
    for part in place.split("."):
        if isinstance(record, list) and part.isdecimal() and len(part) < 10 and int(part) < len(record):
            record = record[int(part)]
        elif isinstance(record, dict) and part in record:
            record = record[part]
        else:
            return None
    return record
