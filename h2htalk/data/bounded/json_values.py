"""How many values a JSON text holds, before Python makes an object of each: 33 MB of `[],[],` become 889 MB."""

from __future__ import annotations

import re

from h2htalk.data.bounded.bounds import VALUES, Bound

_SMALLEST = 2  # bytes of a value, with its comma or its bracket
# A string as a whole, with or without its end, or what a value follows.
_STRING_OR_VALUE = re.compile(rb'"[^"]*"?|[\[{,]')


class TooManyValues(ValueError):
    """A JSON text of more values than a bound allows."""


def require_few_values(text: str | bytes, bound: Bound = VALUES) -> None:
    """Raise TooManyValues for a JSON text of more values than a bound allows; a text too short for them is not
    counted."""
    most = bound.value
    if len(text) <= _SMALLEST * most:
        return
    encoded = text.encode(errors="replace") if isinstance(text, str) else text
    # Without escapes, so that a quotation mark is the begin or the end of a string.
    plain = encoded.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = 0
    for match in _STRING_OR_VALUE.finditer(plain):
        # Strings are read over: a comma within one begins no value.
        if match.end() == match.start() + 1:
            count += 1
        if count > most:
            raise TooManyValues(bound.message("JSON"))
