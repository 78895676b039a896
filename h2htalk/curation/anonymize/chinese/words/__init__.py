"""Word files of the Chinese recognisers, each with its source in its first lines, and their reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.text.language_data import pattern_table, read_data

_FOLDER = Path(__file__).parent


def table(name: str) -> Mapping[str, Any]:
    """A TOML file of this folder."""
    return read_data(_FOLDER / f"{name}.toml")


@cache
def sections(name: str) -> dict[str, frozenset[str]]:
    """A text file of this folder: words by the `[section]` they stand in; `#` starts a comment line.

    Words are parted by white space; in lines that hold `|` by that, so that a name may hold spaces.
    """
    found: dict[str, set[str]] = {"": set()}
    here = found[""]
    for line in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            here = found.setdefault(line.strip("[] "), set())
        elif not line.startswith("#"):
            here.update(word.strip() for word in (line.split("|") if "|" in line else line.split()) if word.strip())
    return {section: frozenset(words) for section, words in found.items()}


@cache
def words(name: str, section: str, key: str) -> frozenset[str]:
    """The words of one entry of a TOML file."""
    return frozenset(table(name)[section][key].split())


def patterns(module: str) -> dict[str, re.Pattern[str]]:
    """The regular expressions of a module of the Chinese rules."""
    return pattern_table(_FOLDER / "patterns.toml", module)
