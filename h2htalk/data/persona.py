"""Personas: who the companion is, in each language it speaks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from h2htalk.data.languages import LANGUAGES, Language
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
            DataError: a field is missing or no language is given.
        """
        for key in ("id", "relation"):
            if not isinstance(raw.get(key), str) or not raw[key].strip():
                raise DataError(f"{where}: {key} must be text that is not empty")
        names: dict[Language, str] = {}
        descriptions: dict[Language, str] = {}
        for language in LANGUAGES:
            if language not in raw:
                continue
            table = raw[language]
            for key, target in (("name", names), ("description", descriptions)):
                value = table.get(key) if isinstance(table, Mapping) else None
                if not isinstance(value, str) or not value.strip():
                    raise DataError(f"{where}: {language}.{key} must be text that is not empty")
                target[language] = value.strip()
        if not names:
            raise DataError(f"{where}: needs a table for at least one language: {', '.join(LANGUAGES)}")
        return cls(raw["id"], raw["relation"], names, descriptions)

    def to_dict(self) -> dict[str, Any]:
        languages = {lang: {"name": name, "description": self.descriptions[lang]} for lang, name in self.names.items()}
        return {"id": self.id, "relation": self.relation, **cast(dict[str, Any], languages)}


def read_persona(path: Path) -> Persona:
    """Read one persona from a TOML file."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a readable persona file: {error}") from error
    return Persona.from_dict(raw, str(path))


@cache
def bundled_personas() -> dict[str, Persona]:
    """Read the personas that come with the package, by id."""
    folder = Path(str(files("h2htalk.data") / "bundled" / "personas"))
    personas = [read_persona(path) for path in sorted(folder.glob("*.toml"))]
    return {persona.id: persona for persona in personas}


def personas_of(folder: Path) -> dict[str, Persona]:
    """Read the bundled personas and those beside the scenarios of a folder, by id. Raises DataError."""
    return bundled_personas() | read_personas(folder / "personas")


def read_personas(folder: Path) -> dict[str, Persona]:
    """Read the persona files of a folder, by id. Raises DataError."""
    found: dict[str, tuple[Persona, Path]] = {}
    for path in sorted(folder.glob("*.toml")):
        if not path.is_file():  # reading a pipe would block for ever
            raise DataError(f"{path}: is not a file; remove it from the split's folder")
        persona = read_persona(path)
        if persona.id in found:
            raise DataError(f"{path}: persona {persona.id!r} is in {found[persona.id][1].name} already; keep one")
        found[persona.id] = (persona, path)
    return {key: persona for key, (persona, _) in found.items()}
