"""Tell a stream from a whole reply by its body: server-sent events, JSON lines, or one JSON value.

Some gateways and applications always stream. What expects the other form would fail for every item in the same way.
"""

from __future__ import annotations

import json
import re
from typing import Literal

StreamForm = Literal["sse", "lines", "json"]
# What a body is, in messages.
FORM_NAMES: dict[StreamForm, str] = {
    "sse": "a stream of server-sent events",
    "lines": "a stream of JSON lines",
    "json": "one JSON value, no stream",
}
_LINE_END = re.compile(r"\r\n|\r|\n")
_EVENT_FIELD = re.compile(r"(?:data|event|id|retry)\s*:|:")


def stream_form(body: str | bytes) -> StreamForm | None:
    """Return the form of a body; None where it is none of them. A JSON value on one line is `json`."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    text = text.removeprefix("\ufeff").strip()
    if _is_json(text):
        return "json"
    lines = [line.strip() for line in _LINE_END.split(text) if line.strip()]
    if not lines:
        return None
    has_data = any(line.startswith("data:") for line in lines)
    if has_data and _EVENT_FIELD.match(lines[0]):
        return "sse"
    # The last line may be cut, where the connection ended.
    complete = lines[:-1] or lines
    if len(lines) > 1 and all(line.startswith("{") and _is_json(line) for line in complete):
        return "lines"
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
