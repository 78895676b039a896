"""Personas: who the companion is, in each language it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import with_config

from h2htalk.data.files import read_toml
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import STRICT, Text, read_record
from h2htalk.errors import DataError


@dataclass(frozen=True, slots=True)
class Persona:
    """A companion's name and description by language. `relation` says what it is to the user."""

    id: str
    relation: str
    names: Mapping[Language, str]
    descriptions: Mapping[Language, str]

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Persona:
        """Read the tables of a persona file: `id`, `relation`, and `[en]`, `[zh]` with name and description.

        Raises:
            DataError: a field is missing or unknown, or no language is given.
        """
        file: Any = read_record(_File, raw, where)
        tables: dict[Language, Any] = {name: table for name in LANGUAGES if (table := getattr(file, name))}
        if not tables:
            raise DataError(f"{where}: needs a table for at least one language: {', '.join(LANGUAGES)}")
        names = {name: table.name.strip() for name, table in tables.items()}
        return cls(raw["id"], raw["relation"], names, {n: table.description.strip() for n, table in tables.items()})

    def to_dict(self) -> dict[str, Any]:
        languages = {lang: {"name": name, "description": self.descriptions[lang]} for lang, name in self.names.items()}
        return {"id": self.id, "relation": self.relation, **cast(dict[str, Any], languages)}


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class _Table:
    name: Text
    description: Text


_LANGUAGES = [(language, _Table | None, field(default=None)) for language in LANGUAGES]
_File = with_config(STRICT)(make_dataclass("_File", [("id", Text), ("relation", Text), *_LANGUAGES]))


def read_persona(path: Path) -> Persona:
    """Read one persona from a TOML file."""
    return Persona.from_dict(read_toml(path, error=DataError), str(path))


@cache
def bundled_personas() -> dict[str, Persona]:
    """Read the personas that come with the package, by id."""
    return read_personas(Path(__file__).parent / "bundled" / "personas")


def personas_of(folder: Path) -> dict[str, Persona]:
    """Read the bundled personas and those beside the scenarios of a folder, by id. Raises DataError."""
    return bundled_personas() | read_personas(folder / "personas")


def read_personas(folder: Path) -> dict[str, Persona]:
    """Read the persona files of a folder, by id. Raises DataError."""
    found: dict[str, tuple[Persona, Path]] = {}
    for path in sorted(folder.glob("*.toml")):
        persona = read_persona(path)
        if persona.id in found:
            raise DataError(f"{path}: persona {persona.id!r} is in {found[persona.id][1].name} already; keep one")
        found[persona.id] = (persona, path)
    return {key: persona for key, (persona, _) in found.items()}
