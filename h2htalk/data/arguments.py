"""Arguments of the public functions: checked, and paths made one kind, where they come in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from h2htalk.errors import ConfigError, quoted

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class _KeptAsText:
    """Pydantic's validator of `PathText`. Pydantic is imported where arguments are checked, not with this module."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: str(value) if isinstance(value, Path) else value, handler(str)
        )


# A field that takes a path, or the name of a split, as text or `Path`, and keeps it as text.
PathText = Annotated[str | Path, _KeptAsText()]


def as_path(value: str | os.PathLike[str], name: str) -> Path:
    """Return an argument as a path; raise ConfigError, with the argument's name, for what is none."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ConfigError(f"{name}: {quoted(value)} is not a path; give one as text or pathlib.Path")
    return Path(text)


def as_list(values: Iterable[T], name: str) -> list[T]:
    """Return an argument as a list. A lone text is refused: its characters are not what is meant."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ConfigError(f"{name}: {quoted(values)} is not a list; put it in brackets, even one alone")
    return list(values)


def require_kind(value: object, kind: type, name: str) -> None:
    """Raise ConfigError unless an argument is of this class."""
    if not isinstance(value, kind):
        raise ConfigError(f"{name}: {quoted(value)} is not of h2htalk.{kind.__name__}")


def typed(value: object, kind: Any, where: str) -> Any:
    """Check a value strictly: `true` is no number and `"no"` no boolean; a whole number is a float too."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(tuple(value) if isinstance(value, list) else value, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise ConfigError(f"{place}: {first['msg'].replace('tuple', 'list')}") from error


def check_fields(spec: Any) -> None:
    """Check the fields of a frozen record against their types, and keep paths as text and lists as tuples."""
    for name, kind in get_type_hints(type(spec), include_extras=True).items():
        where = f"{type(spec).__name__}: {name}"
        object.__setattr__(spec, name, typed(getattr(spec, name), kind, where))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
