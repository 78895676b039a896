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
from h2htalk.data.replies.finish_reasons import CUT, ERROR, FILTERED, REFUSAL, read_finish_reason
from h2htalk.data.responses import FILTERED_REPLY, Failure
from h2htalk.errors import quoted, shorten
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

# The error types of pydantic for numbers, texts and lists that are out of bounds.
_BOUNDS = frozenset(
    """
    greater_than greater_than_equal less_than less_than_equal multiple_of string_too_short
    string_too_long too_short too_long
    """.split()  # noqa: SIM905
)
_FENCE = re.compile(r"(?P<mark>```|~~~)[ \t]*(?:json)?\s*", re.IGNORECASE)  # the beginning of one
_BLANKS = " \t\r\n\f\v\xa0\u3000\ufeff"  # the byte-order mark is no white space to Python
_END_MARK = "<|im_end|>"  # which some servers leave at the end of a reply
# What of a reply is read, in the words of messages.
ACCEPTED = (
    "a reply is read where it is the JSON object alone, at most in one code fence, with "
    "no words before or after it"
)


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A named schema (up to 64 letters, digits, `_`, `-`). Replies hold the fields of the model in their order: put
    evidence before the score. A field with a default is asked for like the others, and read where a reply lacks it."""

    name: str
    model: type[BaseModel]

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema: every object closed, every property required, in field order. Do not change it."""
        return _strict_schema(self.model)

    def read(self, reply: Reply) -> BaseModel | Failure:
        """Read a reply: exactly one JSON object with every field, of its type, and no other.

        White space, one code fence and an end mark may surround it. Return the model, or a Failure: `refusal`,
        `filtered` (by the provider), `truncated` (cut at a limit), `malformed_output`, or `out_of_range` (all fields
        are there, but a number, text or list is out of bounds). A reply with an unknown finish reason is read, too.
        """
        from pydantic import ValidationError

        form = f"form {self.name}"
        finish = read_finish_reason(reply.finish_reason)
        quote = shorten(quoted(reply.text), 80) if reply.text.strip() else "the reply is empty"
        if finish == REFUSAL:
            return Failure("refusal", f"{form}: the model declined: {quote}")
        if finish == FILTERED:
            why = reply.filtered_by or quote
            return Failure(FILTERED_REPLY, f"{form}: the provider's filter declined it: {why}")
        text = _bare(reply.text)
        try:
            if not isinstance(UNIQUE_KEYS.decode(text), dict):  # neither a key twice nor NaN
                raise ValueError("not an object")  # noqa: TRY004 - the reply is wrong, not the caller
            # Strict, so that no "7" becomes 7 and no true becomes 1.
            filled = self.model.model_validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            reason, why = _wrong(error.errors(include_url=False, include_context=False))
            return Failure(reason, f"{form}: {why}: {quote}")
        except (ValueError, RecursionError) as error:
            reason = "truncated" if finish in CUT else "malformed_output"
            return Failure(reason, f"{form}: {self._broken(text, error)}: {quote}")
        if finish in CUT or finish == ERROR:
            # A reply that was cut may lack its last digit and still be closed by the server's grammar.
            why = f"the reply did not end by itself ({reply.finish_reason})"
            return Failure("truncated", f"{form}: {why}")
        return filled

    def _broken(self, text: str, error: ValueError | RecursionError) -> str:
        """Say what is wrong with a text that is no JSON object: of one that breaks off, in which field of the form."""
        if isinstance(error, RecursionError):
            return "nested too deeply"
        if not isinstance(error, JSONDecodeError):
            return str(error).partition(";")[0]
        if error.msg == "Extra data":
            return "another text follows the JSON object"
        reached = [name for name in self.model.model_fields if f'"{name}"' in text[: error.pos]]
        if reached:
            return f"{reached[-1]}: the JSON breaks off or is broken there"
        return "the reply is no JSON object"


def _bare(text: str) -> str:
    """Take off what stands around a whole reply and says nothing: blanks, a mark of its end, one code fence.

    Nothing is looked for within other words: which of several objects is meant would be a guess.
    """
    inner = text.strip(_BLANKS).removesuffix(_END_MARK).strip(_BLANKS)
    opening = _FENCE.match(inner)
    if opening is None:
        return inner
    fenced = inner[opening.end() :]
    closing = opening["mark"]
    if not fenced.endswith(closing):
        return inner
    return fenced.removesuffix(closing).strip(_BLANKS)


def _wrong(errors: Sequence[ErrorDetails]) -> tuple[str, str]:
    """Return reason and message for pydantic's errors in a reply: wrong types come before values out of bounds."""
    wrong_types = [error for error in errors if error["type"] not in _BOUNDS]
    first = (wrong_types or errors)[0]
    path = ".".join(map(str, first["loc"]))
    where = shorten(printable(path), 200) or "the object"
    reason = "malformed_output" if wrong_types else "out_of_range"
    if first["type"] == "missing":
        return reason, f"{where} is missing"
    return reason, f"{where}: {printable(first['msg'])}, not {quoted(first['input'])}"


# Of no use to a model that writes a reply, or wrong where every property must be written.
_LEFT_OUT = frozenset({"title", "default", "examples", "discriminator"})

# Formats of strings that all providers know.
STRING_FORMATS = frozenset(
    """
    date-time time date duration email hostname ipv4 ipv6 uuid
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=64)  # every call of a run asks for its schema
def _strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema()

    def close(part: dict[str, Any]) -> dict[str, Any]:
        part = {key: value for key, value in part.items() if key not in _LEFT_OUT}
        if "oneOf" in part:  # of a tagged union: strict schemas know only anyOf
            part["anyOf"] = part.pop("oneOf")
        if "$ref" in part and len(part) > 1:  # providers refuse other keys next to a reference
            _, _, name = part.pop("$ref").rpartition("/")
            part = {**_changed(raw["$defs"][name], close), **part}
        if part.get("type") == "object":
            part["required"] = list(part["properties"])
            part["additionalProperties"] = False
        return part

    return _changed(raw, close)


def _changed(
    schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
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
        moved = [f"{key}: {value}" for key, value in part.items() if unenforced(key, value)]
        if not moved:
            return part
        part = {key: value for key, value in part.items() if not unenforced(key, value)}
        texts = [part.get("description"), "{" + ", ".join(moved) + "}"]
        part["description"] = "\n\n".join(filter(None, texts))
        return part

    return _changed(schema, change)
