"""Invented names for surrogates: our own files, one for each kind and language, and Faker's lists."""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

# Locales whose names Faker lists by gender, in letters that English writes.
_LOCALES = "en_US en_GB en_IE en_NZ es_ES es_MX fr_FR de_DE it_IT pt_BR nl_NL pl_PL sv_SE tr_TR"


@cache
def pools(name: str) -> dict[str, tuple[str, ...]]:
    """The words of a file by the `[section]` they stand in, in the file's order, each once; `#` starts a comment line.

    White space parts them; in lines that hold `|`, that does, so that a name may hold spaces.
    """
    found: dict[str, dict[str, None]] = {}
    here: dict[str, None] = {}
    text = (
        resources.files("h2htalk.curation.anonymize.surrogates.pools")
        .joinpath(f"{name}.txt")
        .read_text(encoding="utf-8")
    )
    for line in text.splitlines():
        if line.startswith("["):
            here = found.setdefault(line.strip("[] "), {})
        elif not line.startswith("#"):
            words = line.split("|") if "|" in line else line.split()
            here.update(dict.fromkeys(word.strip() for word in words if word.strip()))
    return {section: tuple(words) for section, words in found.items()}


@cache
def latin_names() -> dict[str, tuple[str, ...]]:
    """Faker's given names (`female`, `male`, `neutral`: both) and surnames (`surname`) in plain letters, in order."""
    lists: dict[str, set[str]] = {}
    for locale in _LOCALES.split():
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        for kind in ("first_names_female", "first_names_male", "last_names"):
            lists.setdefault(kind, set()).update(n for n in getattr(provider, kind, ()) if _plain(n))
    female, male = lists["first_names_female"], lists["first_names_male"]
    kinds = {"female": female - male, "male": male - female, "neutral": female & male}
    return {kind: tuple(sorted(names)) for kind, names in (kinds | {"surname": lists["last_names"]}).items()}


def _plain(name: str) -> bool:
    return name.isascii() and name.isalpha() and name[1:].islower() and len(name) > 2
