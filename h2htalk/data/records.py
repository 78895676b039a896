"""Read records strictly, and say what is wrong with file, line and field."""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    ConfigDict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    with_config,
)

from h2htalk.addresses import REFUSED, holds_password
from h2htalk.errors import ConfigError, DataError, H2HTalkError, quoted, suggest

T = TypeVar("T")
STRICT = ConfigDict(extra="forbid")
MAX_DEPTH = 64  # of nested records: far below the depth at which Python's JSON writer gives up
Word = Annotated[str, StringConstraints(pattern="^[a-z][a-z_]*$")]
Time = Annotated[str, StringConstraints(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
# What a field must be, for pydantic's types of an error, or for the pattern of its text.
_MUST_BE = {
    "text": "string_type",
    "a whole number": "int_type int_parsing int_from_float",
    "a number": "float_type float_parsing",
    "a finite number": "finite_number",
    "true or false": "bool_type",
    "a list": "tuple_type list_type",
    "an object": "dict_type mapping_type dataclass_type model_type",
    "a path": "path_type",
    "{ge:,} or more": "greater_than_equal",
    "above {gt:,}": "greater_than",
    "{le:,} or less": "less_than_equal",
    "a list of at least {min_length}": "too_short",
    "a list of at most {max_length}": "too_long",
    "one lower-case word": "^[a-z][a-z_]*$",
    "HH:MM, 00:00 to 23:59": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
}
_WANTED = {kind: wanted for wanted, kinds in _MUST_BE.items() for kind in kinds.split()}
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def strict_record(kind: type[T]) -> type[T]:
    """A frozen dataclass that `read_record` reads without fields that it does not have."""
    return with_config(STRICT)(dataclass(frozen=True, slots=True)(kind))


def require(holds: Callable[[Any], object], message: str) -> AfterValidator:
    """Make a check of a field: where the value does not hold, `message` says so, with the value for `{}`."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(message.format(quoted(value)))
        return value

    return AfterValidator(check)


def _is_id(value: str) -> bool:
    is_bare = value == value.strip() != ""
    return is_bare and value.isprintable() and unicodedata.is_normalized("NFC", value)


def _check_open(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if all(type(inner) is str for inner in value.values()):
        return value
    problems = "\n".join(_outside_json(value))
    if problems:
        raise ValueError(problems)
    return value


# By a function: a pattern refuses half a character, which a model may write.
NOT_EMPTY = require(str.strip, "must be text that is not empty, not {}")
Text = Annotated[str, NOT_EMPTY, WithJsonSchema({"type": "string", "pattern": r"\S"})]
_PRINTABLE = "must be printable text in Unicode's form NFC, not empty, without white space around it; it is {}"
Id = Annotated[str, require(_is_id, _PRINTABLE)]  # of a record: equal ids look equal
# A field whose own fields nobody names: provenance, metadata.
Open = Annotated[Mapping[str, Any], AfterValidator(_check_open)]


def read_record(
    kind: type[T],
    raw: object,
    where: str,  # file and line, which open every message; the record's id follows
    *,
    error: type[H2HTalkError] = DataError,
    advice: str = "",  # ends every message
    unknown: str = "",  # ends the message of an unknown field
    other_names: Sequence[
        str
    ] = (),  # names that an unknown field may have been meant for, beside the record's own
    coerce: bool = False,  # without a detour over JSON, and texts may become numbers
    context: Mapping[str, Any] | None = None,  # pydantic's, for validators
) -> T:
    """Read a record from JSON text, or from what a reader of JSON or TOML gave.

    Nothing is converted but lists to tuples and whole numbers to floats. Raises DataError (or `error`), with one line
    for each field that is missing, unknown or wrong.
    """
    if error is ConfigError and holds_password(texts_in(raw)):
        raise ConfigError(f"{where}: {REFUSED}")
    try:
        reader: TypeAdapter[T] = adapter(kind)  # type: ignore[arg-type]  # mypy: a class variable is not hashable
        if coerce:
            return reader.validate_python(raw, context=context)
        if isinstance(raw, str | bytes):
            text = raw
        else:
            text = json.dumps(raw, allow_nan=False, default=os.fspath)
        # As JSON, where strict tuples may be lists: `true` is not 1 and "4" is not 4.
        return reader.validate_json(text, strict=True, context=context)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        if first["type"] == "json_invalid" and not isinstance(raw, str | bytes):
            messages = list(_outside_json(raw))
            if not messages:
                messages = ["holds half a character (a lone surrogate); repair the text"]
        else:
            messages = list(messages_of(invalid, kind, unknown, other_names))
    except (TypeError, ValueError, RecursionError) as unwritable:
        messages = list(_outside_json(raw)) or [f"holds what JSON cannot: {unwritable}"]
    name = raw.get("id") if isinstance(raw, Mapping) else None
    if isinstance(name, str) and not any(message.startswith("id: ") for message in messages):
        where = f"{where}: {name}"
    raise error("\n".join(f"{where}: {message}{advice}" for message in messages))


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's reader and writer of a type."""
    return TypeAdapter(kind)


def as_json(record: Any) -> dict[str, Any]:
    """The fields of a record as JSON holds them; open ones unchanged, as pydantic would write infinity as null."""
    kind: Any = type(record)
    raw: dict[str, Any] = adapter(kind).dump_python(record, mode="json")
    for name in ("provenance", "metadata"):
        if hasattr(record, name):
            raw[name] = dict(getattr(record, name))
    return raw


def messages_of(
    invalid: ValidationError,
    kind: Any = None,
    unknown: str = "",
    other_names: Sequence[str] = (),
    field: str = "",
) -> Iterator[str]:
    """Yield a line for each wrong place in a record or a `field`; what types of a union want is joined by `or`."""
    details = invalid.errors(include_url=False)
    paths = [_field_path(detail["loc"]) for detail in details]
    lines: dict[tuple[str, ...], dict[str, None]] = {}
    for detail, path in zip(details, paths, strict=True):
        # What is wrong inside of a value says more than that the value is wrong.
        if any(len(longer) > len(path) and longer[: len(path)] == path for longer in paths):
            continue
        # A validator of ours may have several lines.
        for line in _message(detail, kind, unknown, other_names).splitlines():
            key = path if line.startswith("must be ") else (*path, line)
            lines.setdefault(key, {})[line] = None
    for key, texts in lines.items():
        *alternatives, last = texts
        line = "".join(f"{text.rpartition(', not ')[0]} or " for text in alternatives) + last
        line = line.replace(" or must be ", " or ")
        named = ".".join(part for part in (field, *key) if part and part not in texts)
        yield f"{named}: {line}" if named else line


# As pydantic calls the types of a union in the place of an error.
_TYPES_OF_UNIONS = [
    "str",
    "int",
    "float",
    "bool",
    "constrained-str",
    "constrained-int",
    "constrained-float",
]


def _field_path(location: Sequence[str | int]) -> tuple[str, ...]:
    """The names on the way to an error: items counted from 1, without what pydantic calls the types of a union."""
    names = [str(step + 1) if isinstance(step, int) else step for step in location]
    return tuple(name for name in names if name not in _TYPES_OF_UNIONS and "[" not in name)


def _message(detail: Any, kind: Any, unknown: str, other_names: Sequence[str]) -> str:
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] in _UNKNOWN:
        return _unknown_field_message(detail["loc"][-1], kind, unknown, other_names)
    limits = {}
    for key, limit in detail.get("ctx", {}).items():
        is_whole = isinstance(limit, float) and limit.is_integer()
        limits[key] = int(limit) if is_whole else limit
    if detail["type"] == "value_error":
        return str(limits["error"])
    wanted = _WANTED.get(detail["type"]) or _WANTED.get(str(limits.get("pattern")))
    if wanted:
        text = f"must be {wanted.format(**limits)}"
    else:
        text = re.sub("^(Input|String) should", "must", detail["msg"])
    return f"{text}, not {quoted(detail['input'])}"


def _unknown_field_message(key: str, kind: Any, unknown: str, other_names: Sequence[str]) -> str:
    aliases = dict(_field_aliases(kind))
    # Somebody who knows the record may write its field's name where the file has another.
    if aliases.get(key, key) != key:
        hint = f"did you mean {aliases[key]!r}? "
    else:
        hint = suggest(key, [*aliases.values(), *other_names])
    return f"no such field; {hint}{unknown}".rstrip("; ")


def _field_aliases(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of a record, and of the records in them: their names, and what files call them."""
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "model_fields", ()))
    if not names:
        for inner in get_args(kind):
            yield from _field_aliases(inner)
        return
    hints = get_type_hints(kind)
    for name in names:
        yield from _field_aliases(hints.get(name))
    annotated = get_type_hints(kind, include_extras=True)
    for name in names:
        metadata = getattr(annotated.get(name), "__metadata__", ())
        aliases = [getattr(note, "alias", None) for note in metadata]
        yield name, next(filter(None, aliases), name)


def _outside_json(value: object, path: str = "", depth: int = 0) -> Iterator[str]:
    """Describe what JSON cannot hold: what is read must be written again, and hashed, unchanged."""
    if depth > MAX_DEPTH:
        yield f"{path.partition('.')[0]}: is nested more than {MAX_DEPTH} levels deep; flatten it"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: holds the number {value}, which JSON cannot"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                yield f"{path}: holds a key that is not text"
            yield from _outside_json(inner, f"{path}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value, 1):
            yield from _outside_json(inner, f"{path}.{number}".lstrip("."), depth + 1)
    elif value is not None and not isinstance(value, bool | int | float | str):
        yield f"{path}: holds a {type(value).__name__}, which JSON cannot; write text instead"


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)
