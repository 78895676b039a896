"""Records and settings: read strictly, and checked with messages that name file, line and field."""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
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
from pydantic.fields import FieldInfo

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


def must(holds: Callable[[Any], object], message: str) -> AfterValidator:
    """A check of a field: where the value does not hold, `message` says so, with the value for `{}`."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(message.format(quoted(value)))
        return value

    return AfterValidator(check)


def _is_id(value: str) -> bool:
    return value == value.strip() != "" and value.isprintable() and unicodedata.is_normalized("NFC", value)


def _check_open(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if not {*map(type, value.values())} <= {str} and (problems := "\n".join(_outside_json(value))):
        raise ValueError(problems)
    return value


# By a function: a pattern refuses half a character, which a model may write.
NOT_EMPTY = must(str.strip, "must be text that is not empty, not {}")
Text = Annotated[str, NOT_EMPTY, WithJsonSchema({"type": "string", "pattern": r"\S"})]
_PRINTABLE = "must be printable text in Unicode's form NFC, not empty, without white space around it; it is {}"
Id = Annotated[str, must(_is_id, _PRINTABLE)]  # of a record: equal ids look equal
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
    known: Sequence[str] = (),  # names that it may have been meant for beside the record's own
    as_python: bool = False,  # without a detour over JSON: every field is text, or texts may become numbers
    context: Mapping[str, Any] | None = None,  # pydantic's, for validators
) -> T:
    """Read a record from JSON text, or from what a reader of JSON or TOML gave.

    Nothing is converted but lists to tuples and whole numbers to floats. Raises DataError (or `error`), with one line
    for each field that is missing, unknown or wrong.
    """
    try:
        reader: TypeAdapter[T] = adapter(kind)  # type: ignore[arg-type]  # mypy: a class variable is not hashable
        if as_python:
            return reader.validate_python(raw, context=context)
        text = raw if isinstance(raw, str | bytes) else json.dumps(raw, allow_nan=False, default=os.fspath)
        # As JSON, where strict tuples may be lists: `true` is not 1 and "4" is not 4.
        return reader.validate_json(text, strict=True, context=context)
    except ValidationError as invalid:
        messages = list(messages_of(invalid, kind, unknown, known))
        if invalid.errors(include_url=False)[0]["type"] == "json_invalid" and not isinstance(raw, str | bytes):
            messages = list(_outside_json(raw)) or ["holds half a character (a lone surrogate); repair the text"]
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
    own = {name: dict(getattr(record, name)) for name in ("provenance", "metadata") if hasattr(record, name)}
    return adapter(type(record)).dump_python(record, mode="json") | own  # type: ignore[no-any-return,arg-type]


def messages_of(
    invalid: ValidationError, kind: Any = None, unknown: str = "", known: Sequence[str] = (), field: str = ""
) -> Iterator[str]:
    """One line for each wrong place in a record or a `field`; what the members of a union want is one `or`."""
    errors = [(_place(one["loc"]), one) for one in invalid.errors(include_url=False)]
    lines: dict[tuple[str, ...], dict[str, None]] = {}
    for place, one in errors:
        if not any(len(other) > len(place) and other[: len(place)] == place for other, _ in errors):
            for line in _message(one, kind, unknown, known).splitlines():  # a validator of ours may have several
                lines.setdefault(place if line.startswith("must be ") else (*place, line), {})[line] = None
    for place, texts in lines.items():
        *first, last = texts
        line = "".join(f"{text.rpartition(', not ')[0]} or " for text in first) + last
        named = ".".join(part for part in (field, *place) if part and part not in texts)
        yield f"{named}: {line.replace(' or must be ', ' or ')}" if named else line


def _place(loc: Sequence[str | int]) -> tuple[str, ...]:
    """The place of an error, with items from 1 on and without the names that pydantic gives to the types of a union."""
    names = [str(one + 1) if isinstance(one, int) else one for one in loc]
    return tuple(n for n in names if n not in ("str", "int", "float", "bool", "constrained-str") and "[" not in n)


def _message(one: Any, kind: Any, unknown: str, known: Sequence[str]) -> str:
    if one["type"] == "missing":
        return "is missing"
    if one["type"] in _UNKNOWN:
        return f"no such field; {suggest(one['loc'][-1], [*_names(kind), *known])}{unknown}".rstrip("; ")
    limits = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in one.get("ctx", {}).items()}
    if one["type"] == "value_error":
        return str(limits["error"])
    wanted = _WANTED.get(one["type"]) or _WANTED.get(str(limits.get("pattern")))
    text = f"must be {wanted.format(**limits)}" if wanted else re.sub("^(Input|String) should", "must", one["msg"])
    return f"{text}, not {quoted(one['input'])}"


def _names(kind: Any) -> Iterator[str]:
    """The fields of a record, and of the records in them."""
    own = getattr(kind, "__dataclass_fields__", getattr(kind, "model_fields", ()))
    for hint in map(get_type_hints(kind).get, own) if own else get_args(kind):
        yield from _names(hint)
    yield from own


def _outside_json(value: object, place: str = "", depth: int = 0) -> Iterator[str]:
    """Describe what JSON cannot hold: what is read must be written again, and hashed, unchanged."""
    if depth > MAX_DEPTH:
        yield f"{place.partition('.')[0]}: is nested more than {MAX_DEPTH} levels deep; flatten it"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: holds the number {value}, which JSON cannot"
    elif isinstance(value, Mapping | list | tuple):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value, 1):
            if isinstance(value, Mapping) and not isinstance(key, str):
                yield f"{place}: holds a key that is not text"
            yield from _outside_json(inner, f"{place}.{key}".lstrip("."), depth + 1)
    elif value is not None and not isinstance(value, bool | int | float | str):
        yield f"{place}: holds a {type(value).__name__}, which JSON cannot; write text instead"


AnyPath = str | os.PathLike[str]  # an argument that takes a path
PathText = Annotated[str | Path, AfterValidator(str)]  # a field that takes a path, or a split's name, and keeps text


def as_path(value: AnyPath, name: str) -> Path:
    """Return an argument as a path; raise ConfigError, with the argument's name, for what is none."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ConfigError(f"{name}: {quoted(value)} is not a path; give one as text or pathlib.Path")
    return Path(text)


def typed(value: object, kind: Any, where: str) -> Any:
    """Check a value strictly: `true` is no number and `"no"` no boolean; a whole number is a float too."""
    try:
        return adapter(kind).validate_python(tuple(value) if isinstance(value, list) else value, strict=True)
    except ValidationError as error:
        raise ConfigError("\n".join(messages_of(error, field=where))) from error


def check_fields(spec: Any) -> None:
    """Check the fields of frozen settings, and keep paths as text and lists as tuples. Raises ConfigError by option."""
    errors: list[str] = []
    for name, kind in get_type_hints(type(spec), include_extras=True).items():
        value, option = getattr(spec, name), option_of(field_info(kind).title or name)
        try:
            if isinstance(value, str) and "\0" in value:
                raise ConfigError(f"{option} holds the character NUL, which no name can: {quoted(value)}")
            object.__setattr__(spec, name, typed(value, kind, option))
        except ConfigError as error:
            errors.append(str(error))
    if errors:
        raise ConfigError("\n".join(errors))


def field_info(kind: Any) -> FieldInfo:
    """What the type of a setting says of its option: `description` its help, `title` its name if it is another."""
    return next((one for one in getattr(kind, "__metadata__", ()) if isinstance(one, FieldInfo)), FieldInfo())


def option_of(name: str) -> str:
    """Return the command line's name of a setting."""
    return "MODEL" if name == "model" else f"--{name.replace('_', '-')}"


def read_settings(kind: type[T], raw: Mapping[str, Any], where: str) -> T:
    """Make a record of settings from a table.

    Raises ConfigError, with a line for each key that is unknown, missing or wrong, which starts with `where`.
    """
    own = {one.name: one.default is one.default_factory is MISSING for one in fields(kind)}  # type: ignore[arg-type]
    errors = [f"unknown key {one}; {suggest(one, own)}choose from {', '.join(own)}" for one in sorted({*raw} - {*own})]
    missing = (name for name, needed in own.items() if needed and name not in raw)
    errors += [f"{name} is missing; give it on the command line or in the specification" for name in missing]
    try:
        if not errors:
            return kind(**raw)
    except ConfigError as error:
        errors = str(error).splitlines()
    raise ConfigError("\n".join(f"{where}: {one}" if where else one for one in errors))
