"""Response schemas: the strict JSON schema that a provider gets, and the strict reading of the reply.

A provider's promise is checked, not trusted: some enforce all but number ranges, and a cut reply follows no schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from h2htalk.chat.protocol import Reply
from h2htalk.data.files import UNIQUE_KEYS
from h2htalk.data.responses import Failure
from h2htalk.errors import quoted, shorten
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

# The error types of pydantic for numbers, texts and lists that are out of bounds.
_BOUNDS = frozenset({
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "string_too_short",
    "string_too_long", "too_short", "too_long",
})  # fmt: skip
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A named schema (up to 64 letters, digits, `_`, `-`). Replies hold the fields of the model, none of which has a
    default, in their order: put evidence before the score."""

    name: str
    model: type[BaseModel]

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema: every object closed, every property required, in field order. Do not change it."""
        return _strict_schema(self.model)

    def read(self, reply: Reply) -> BaseModel | Failure:
        """Read a reply: exactly one JSON object with every field, of its type, and no other; one code fence may stand
        around the whole reply. Returns the model, or a Failure: `refusal`, `truncated` (it did not end normally),
        `malformed_output`, or `out_of_range` (all fields are there, but a number, text or list is out of bounds)."""
        from pydantic import ValidationError

        finish = reply.finish_reason
        said = shorten(quoted(reply.text), 80) if reply.text.strip() else "the reply is empty"
        if finish == "refusal":
            return Failure("refusal", f"form {self.name}: the model declined: {said}")
        text = fenced[1] if (fenced := _FENCE.fullmatch(reply.text)) else reply.text
        try:
            if not isinstance(UNIQUE_KEYS.decode(text), dict):  # neither a key twice nor NaN
                raise ValueError("not an object")  # noqa: TRY004 - the reply is wrong, not the caller
            # Strict, so that no "7" becomes 7 and no true becomes 1.
            filled = self.model.model_validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            reason, why = _wrong(error.errors(include_url=False, include_context=False))
            return Failure(reason, f"form {self.name}: {why}: {said}")
        except (ValueError, RecursionError) as error:
            reason = "truncated" if finish in ("length", "context") else "malformed_output"
            return Failure(reason, f"form {self.name}: {self._broken(text, error)}: {said}")
        if finish in ("stop", "unknown"):  # or the server does not report how it ended
            return filled
        # A reply that was cut may lack its last digit and still be closed by the server's grammar.
        reason = "refusal" if finish == "content_filter" else "truncated"
        return Failure(reason, f"form {self.name}: the reply did not end by itself ({finish})")

    def _broken(self, text: str, error: ValueError | RecursionError) -> str:
        """Say what is wrong with a text that is no JSON object: of one that breaks off, in which field of the form."""
        if not isinstance(error, JSONDecodeError):
            return "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
        if error.msg == "Extra data":
            return "another text follows the JSON object"
        reached = [name for name in self.model.model_fields if f'"{name}"' in text[: error.pos]]
        return f"{reached[-1]}: the JSON breaks off or is broken there" if reached else "the reply is no JSON object"


def _wrong(errors: Sequence[ErrorDetails]) -> tuple[str, str]:
    """Return reason and message for pydantic's errors in a reply: wrong types come before values out of bounds."""
    types = [error for error in errors if error["type"] not in _BOUNDS]
    first = (types or errors)[0]
    where = shorten(printable(".".join(map(str, first["loc"]))), 200) or "the object"
    missing = first["type"] == "missing"
    message = f"{where} is missing" if missing else f"{where}: {printable(first['msg'])}, not {quoted(first['input'])}"
    return "malformed_output" if types else "out_of_range", message


# Of no use to a model that writes a reply, or wrong where every property must be written.
_LEFT_OUT = frozenset({"title", "default", "examples", "discriminator"})

# Formats of strings that all providers know.
STRING_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@lru_cache(maxsize=64)  # every call of a run asks for its schema
def _strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema()

    def close(part: dict[str, Any]) -> dict[str, Any]:
        part = {key: value for key, value in part.items() if key not in _LEFT_OUT}
        if "oneOf" in part:  # of a tagged union: strict schemas know only anyOf
            part["anyOf"] = part.pop("oneOf")
        if "$ref" in part and len(part) > 1:  # a reference with words beside it is none
            part = {**_changed(raw["$defs"][part.pop("$ref").rpartition("/")[2]], close), **part}
        if part.get("type") == "object":
            part |= {"required": list(part["properties"]), "additionalProperties": False}
        return part

    return _changed(raw, close)


def _changed(schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Change each part of a schema, the innermost first."""
    parts = dict(schema)
    for key in {"properties", "$defs"} & schema.keys():
        parts[key] = {name: _changed(part, change) for name, part in schema[key].items()}
    for key in {"anyOf", "oneOf"} & schema.keys():
        parts[key] = [_changed(part, change) for part in schema[key]]
    if "items" in schema:
        parts["items"] = _changed(schema["items"], change)
    return change(parts)


def described(schema: dict[str, Any], unenforced: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Move the keywords for which `unenforced` holds into descriptions, as `{minimum: 1, maximum: 10}`."""

    def change(part: dict[str, Any]) -> dict[str, Any]:
        if moved := {key: value for key, value in part.items() if unenforced(key, value)}:
            words = "{" + ", ".join(f"{key}: {value}" for key, value in moved.items()) + "}"
            part = {key: value for key, value in part.items() if key not in moved}
            part["description"] = "\n\n".join(filter(None, (part.get("description"), words)))
        return part

    return _changed(schema, change)
