"""JSON schemas as providers take them: closed objects, every property required, nothing that only people read.

A schema comes from a pydantic model. What a provider does not enforce is moved into a description, where the model
that writes the reply may still read it; the reply is checked in any case (`structured`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel

# Of no use to a model that writes a reply, or wrong where every property must be written.
_LEFT_OUT = frozenset({"title", "default", "examples", "discriminator"})

# Formats of strings that all providers know.
STRING_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


@lru_cache(maxsize=64)  # every call of a run asks for its form's
def strict_schema(model: type[BaseModel], where: str) -> dict[str, Any]:
    """The schema of a model, with its `$defs`. It is remembered: whoever changes it takes a copy.

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
        closed["$defs"] = {
            name: _close(part, definitions, f"{where}: {name}") for name, part in definitions.items()
        }
    return closed


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema with a reference that has words beside it (or is the root) replaced by what it names."""
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


def _with_parts(
    schema: dict[str, Any], change: Callable[[dict[str, Any], str], dict[str, Any]]
) -> dict[str, Any]:
    """The schema with its direct parts changed; `change` gets each and what it is called."""
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
    """The schema with the keywords of which `unenforced(keyword, value)` is true moved into descriptions, as in
    `{minimum: 1, maximum: 10}`."""
    told = {key: value for key, value in schema.items() if unenforced(key, value)}
    kept = {key: value for key, value in schema.items() if key not in told}
    if told:
        words = "{" + ", ".join(f"{key}: {value}" for key, value in told.items()) + "}"
        kept["description"] = f"{kept['description']}\n\n{words}" if "description" in kept else words
    return _with_parts(kept, lambda part, _: described(part, unenforced))
