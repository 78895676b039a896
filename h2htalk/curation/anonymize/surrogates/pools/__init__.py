"""Invented names for surrogates: our own files, one for each kind and language, and Faker's lists."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.text.language_data import read_data

# Locales whose names Faker lists by gender, in letters that English writes.
_LOCALES = "en_US en_GB en_IE en_NZ es_ES es_MX fr_FR de_DE it_IT pt_BR nl_NL pl_PL sv_SE tr_TR"


@cache
def pools(name: str) -> dict[str, tuple[str, ...]]:
    """The lists of a file, in the file's order."""
    return {key: tuple(value.split()) for key, value in read_data(Path(__file__).with_name(f"{name}.toml")).items()}


@cache
def latin_names() -> dict[str, tuple[str, ...]]:
    """Faker's given names (`female`, `male`, `neutral`: both) and surnames (`surname`) that are no words, in order."""
    lists: dict[str, set[str]] = {}
    for locale in _LOCALES.split():
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        for kind in ("first_names_female", "first_names_male", "last_names"):
            lists.setdefault(kind, set()).update(n for n in getattr(provider, kind, ()) if _is_plain(n))
    female, male = lists["first_names_female"], lists["first_names_male"]
    kinds = {"female": female - male, "male": male - female, "neutral": female & male, "surname": lists["last_names"]}
    return {kind: tuple(sorted(names)) for kind, names in kinds.items()}


def _is_plain(name: str) -> bool:
    return (
        name.isascii() and name.isalpha() and name[1:].islower() and len(name) > 2 and name.lower() not in words().words
    )
