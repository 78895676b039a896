"""Settings of commands, from options or a TOML file: checked, with messages that name the option."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, ValidationError
from pydantic.fields import FieldInfo

from h2htalk.addresses import REFUSED, holds_password
from h2htalk.data.records import T, adapter, messages_of, texts_in
from h2htalk.errors import ConfigError, quoted, suggest

AnyPath = str | os.PathLike[str]  # an argument that takes a path
# A field that takes a path, or a split's name, and keeps text.
PathText = Annotated[str | Path, AfterValidator(str)]
# JSON Schemas of settings files and of records, which `tools/make_schemas.py` writes; readers check more than they say.
_SCHEMAS = Path(__file__).parent / "bundled/schemas"


def as_path(value: AnyPath, name: str) -> Path:
    """Return an argument as a path; raise ConfigError, with the argument's name, for what is none."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ConfigError(
            f"{name}: {quoted(value)} is not a path; give one as text or pathlib.Path"
        )
    return Path(text)


def validate(value: object, kind: Any, where: str) -> Any:
    """Check a value strictly: `true` is no number and `"no"` no boolean; a whole number is a float too."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        return adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise ConfigError("\n".join(messages_of(error, field=where))) from error


def check_fields(spec: Any) -> None:
    """Check the fields of frozen settings, and keep paths as text and lists as tuples. Raises ConfigError by option."""
    errors: list[str] = []
    for name, kind in get_type_hints(type(spec), include_extras=True).items():
        option = option_of(field_info(kind).title or name)
        value = getattr(spec, name)
        try:
            if isinstance(value, str) and "\0" in value:
                raise ConfigError(
                    f"{option} holds the character NUL, which no name can: {quoted(value)}"
                )
            # A model's own check says where its key belongs.
            if name != "model" and holds_password(texts_in(value)):
                raise ConfigError(f"{option}: {REFUSED}")
            object.__setattr__(spec, name, validate(value, kind, option))
        except ConfigError as error:
            errors.append(str(error))
    if errors:
        raise ConfigError("\n".join(errors))


def field_info(kind: Any) -> FieldInfo:
    """What the type of a setting says of its option: `description` its help, `title` its name if it is another."""
    for note in getattr(kind, "__metadata__", ()):
        if isinstance(note, FieldInfo):
            return note
    return FieldInfo()


def option_of(name: str) -> str:
    """Return the command line's name of a setting."""
    return "MODEL" if name == "model" else f"--{name.replace('_', '-')}"


def read_settings(kind: type[T], raw: Mapping[str, Any], where: str) -> T:
    """Make a record of settings from a table.

    Raises ConfigError, with a line for each key that is unknown, missing or wrong, which starts with `where`.
    """
    needed: dict[str, bool] = {}
    for setting in fields(kind):  # type: ignore[arg-type]
        needed[setting.name] = setting.default is setting.default_factory is MISSING
    errors = []
    for key in sorted(set(raw) - set(needed)):
        errors.append(f"unknown key {key}; {suggest(key, needed)}choose from {', '.join(needed)}")
    for name, is_needed in needed.items():
        if is_needed and name not in raw:
            errors.append(f"{name} is missing; give it on the command line or in the specification")
    try:
        if not errors:
            return kind(**raw)
    except ConfigError as error:
        errors = str(error).splitlines()
    raise ConfigError("\n".join(f"{where}: {line}" if where else line for line in errors))


def schema_names() -> list[str]:
    """The names of the JSON Schemas, in alphabetical order."""
    return sorted(path.stem for path in _SCHEMAS.glob("*.json"))


def read_schema(name: str) -> str:
    """Read the JSON Schema (draft 2020-12) of a settings file or a record. Raises ConfigError for an unknown name."""
    names = schema_names()
    if name not in names:
        advice = f"{suggest(name, names)}choose from {', '.join(names)}"
        raise ConfigError(f"no schema {quoted(name)}; {advice}")
    return (_SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
