"""Arguments of the public functions: checked, and paths made one kind, where they come in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import AfterValidator, ValidationError
from pydantic.fields import FieldInfo

from h2htalk.data.records import adapter, messages_of
from h2htalk.errors import ConfigError, quoted, suggest

T = TypeVar("T")
type_hints = cache(partial(get_type_hints, include_extras=True))  # by class: equal `Annotated` are not the same
# A field that takes a path, or the name of a split, as text or `Path`, and keeps it as text.
PathText = Annotated[str | Path, AfterValidator(str)]


def as_path(value: str | os.PathLike[str], name: str) -> Path:
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
    """Check the fields of a frozen record of settings, and keep paths as text and lists as tuples.

    Raises ConfigError, with a line for each wrong field, which names its option.
    """
    errors: list[str] = []
    for name, kind in type_hints(spec.__class__).items():
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

    Raises:
        ConfigError: a line for each key that is unknown, missing or wrong; each starts with `where`, if there is one.
    """
    own = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    known = ", ".join(own)
    errors = [f"unknown key {key}; {suggest(key, own)}choose from {known}" for key in sorted(set(raw) - set(own))]
    for name, one in own.items():
        if name not in raw and one.default is MISSING and one.default_factory is MISSING:
            errors.append(f"{name} is missing; give it on the command line or in the specification")
    try:
        if not errors:
            return kind(**raw)
    except ConfigError as error:
        errors = str(error).splitlines()
    raise ConfigError("\n".join(f"{where}: {one}" if where else one for one in errors))
