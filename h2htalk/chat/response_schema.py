"""Response schemas: the strict JSON schema that a provider gets, and the strict reading of the reply.

A provider's promise that a reply follows its schema is checked, not trusted: some enforce all but number ranges, and a
reply that was cut or refused follows no schema.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h2htalk.chat.protocol import Reply
from h2htalk.chat.provider_answers import clean
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError, quoted, shorten

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails


_CUT = frozenset({"length", "context"})
# A reply that ended normally, or whose server does not report how it ended.
_ENDED = frozenset({"stop", "unknown"})
# The error types of pydantic for numbers, texts and lists that are out of bounds.
_BOUNDS = frozenset({
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "string_too_short",
    "string_too_long", "too_short", "too_long",
})  # fmt: skip
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A named schema. The name has up to 64 letters, digits, `_` and `-`. Replies hold the fields in the order of the
    model: put evidence before the score."""

    name: str
    model: type[BaseModel]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"response schema {quoted(self.name)}: a name has 1 to 64 letters, digits, _ and -")

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema: every object closed, every property required, in field order.

        Raises:
            ConfigError: the model holds what no provider can promise, such as an object with free keys.
        """
        return copy.deepcopy(strict_schema(self.model, f"form {self.name}"))

    def read(self, reply: Reply) -> BaseModel | Failure:
        """Read a reply: exactly one JSON object with every field, of its type, and no other; one code fence may stand
        around the whole reply.

        Returns:
            The model, or a Failure: `refusal`, `truncated` (the reply did not end normally), `malformed_output`, or
            `out_of_range` (all fields are there, but a number, text or list is out of bounds).
        """
        from pydantic import ValidationError

        if reply.finish_reason == "refusal":
            return Failure("refusal", f"form {self.name}: the model declined: {clean(reply.text)}".rstrip(": "))
        said = shorten(quoted(reply.text), 80) if reply.text.strip() else "the reply is empty"
        text = fenced[1] if (fenced := _FENCE.fullmatch(reply.text)) else reply.text
        try:
            # One JSON object with distinct keys and finite numbers.
            value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_finite, parse_float=_finite)
            if not isinstance(value, dict):
                raise ValueError("not an object")  # noqa: TRY004 - the reply is wrong, not the caller
            # Strict, so that no "7" becomes 7 and no true becomes 1.
            filled = self.model.model_validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            return self._wrong(error.errors(include_url=False, include_context=False), said)
        except (ValueError, RecursionError) as error:
            reason = "truncated" if reply.finish_reason in _CUT else "malformed_output"
            why = "nested too deeply" if isinstance(error, RecursionError) else clean(str(error))
            return Failure(reason, f"form {self.name}: {why}: {said}")
        if missing := _missing(filled):
            return Failure("malformed_output", f"form {self.name}: {missing} is missing: {said}")
        if reply.finish_reason in _ENDED:
            return filled
        # A reply that was cut may lack its last digit and still be closed by the server's grammar.
        reason = "refusal" if reply.finish_reason == "content_filter" else "truncated"
        return Failure(reason, f"form {self.name}: the reply did not end by itself ({reply.finish_reason})")

    def _wrong(self, errors: Sequence[ErrorDetails], said: str) -> Failure:
        """Return the failure for pydantic's errors in a reply: wrong types come before values out of bounds."""
        types = [error for error in errors if error["type"] not in _BOUNDS]
        first = (types or errors)[0]
        where = clean(".".join(map(str, first["loc"]))) or "the object"
        message = f"form {self.name}: {where}: {clean(first['msg'])}, not {quoted(first['input'])}"
        if first["type"] == "missing":
            message = f"form {self.name}: {where} is missing"
        return Failure("malformed_output" if types else "out_of_range", f"{message}: {said}")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large, or none")
    return number


def _missing(filled: object) -> str | None:
    """Return the first property that was left out because it has a default; the schema requires every property."""
    from pydantic import BaseModel

    parts: Iterable[tuple[object, object]] = ()
    if isinstance(filled, BaseModel):
        left_out = [name for name in type(filled).model_fields if name not in filled.model_fields_set]
        if left_out:
            return left_out[0]
        parts = filled
    elif isinstance(filled, list | tuple):
        parts = enumerate(filled)
    return next((f"{name}.{inner}" for name, part in parts if (inner := _missing(part))), None)


# Of no use to a model that writes a reply, or wrong where every property must be written.
_LEFT_OUT = frozenset({"title", "default", "examples", "discriminator"})

# Formats of strings that all providers know.
STRING_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@lru_cache(maxsize=64)  # every call of a run asks for its schema
def strict_schema(model: type[BaseModel], where: str) -> dict[str, Any]:
    """Return the schema of a model, with its `$defs`. It is cached: copy it before changing it.

    Raises:
        ConfigError: it holds an object with free keys, a tuple, or a value of any type; starts with `where`.
    """
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        raw = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise ConfigError(f"{where}: {error.message}: give it types that JSON has") from error
    definitions = raw.get("$defs", {})
    schema = _resolved({key: value for key, value in raw.items() if key != "$defs"}, definitions)
    closed: dict[str, Any] = _close(schema, definitions, where)
    if definitions:
        closed["$defs"] = {name: _close(part, definitions, f"{where}: {name}") for name, part in definitions.items()}
    return closed


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Replace a reference that has other keys beside it (or is the root) by its target."""
    name = schema["$ref"].rpartition("/")[2] if "$ref" in schema else ""
    return {**definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}} if name else schema


def _close(schema: dict[str, Any], definitions: dict[str, Any], where: str) -> dict[str, Any]:
    schema = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "oneOf" in schema:  # of a tagged union: strict schemas know only anyOf
        schema["anyOf"] = schema.pop("oneOf")
    if "$ref" in schema and len(schema) > 1:
        return _close(_resolved(schema, definitions), definitions, where)
    if schema.get("type") == "object" and not schema.get("properties"):
        raise ConfigError(f"{where}: an object with free keys has no strict schema: name its fields")
    if "prefixItems" in schema:
        raise ConfigError(f"{where}: a tuple has no strict schema: make it a list, or an object with fields")
    if not schema.keys() & {"type", "enum", "const", "anyOf", "allOf", "$ref"}:
        raise ConfigError(f"{where}: a value of any type has no strict schema: give it a type")
    if schema.get("type") == "object":
        schema |= {"required": list(schema["properties"]), "additionalProperties": False}
    return _with_parts(schema, lambda part, name: _close(part, definitions, f"{where}: {name}"))


def _with_parts(schema: dict[str, Any], change: Callable[[dict[str, Any], str], dict[str, Any]]) -> dict[str, Any]:
    """Return the schema with `change(part, name)` in place of each direct part."""
    changed = dict(schema)
    for key in ("properties", "$defs"):
        if key in changed:
            changed[key] = {name: change(part, name) for name, part in changed[key].items()}
    for key in ("anyOf", "allOf"):
        if key in changed:
            changed[key] = [change(part, key) for part in changed[key]]
    if isinstance(changed.get("items"), dict):
        changed["items"] = change(changed["items"], "items")
    return changed


def described(schema: dict[str, Any], unenforced: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Move the keywords for which `unenforced` holds into descriptions, as `{minimum: 1, maximum: 10}`."""
    moved = {key: value for key, value in schema.items() if unenforced(key, value)}
    kept = {key: value for key, value in schema.items() if key not in moved}
    if moved:
        words = "{" + ", ".join(f"{key}: {value}" for key, value in moved.items()) + "}"
        kept["description"] = f"{kept['description']}\n\n{words}" if "description" in kept else words
    return _with_parts(kept, lambda part, _: described(part, unenforced))
