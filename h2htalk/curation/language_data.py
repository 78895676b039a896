"""Data files of a language: words, patterns and lengths, beside the code that reads them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language, find_language
from h2htalk.errors import ConfigError


@cache
def language_data(name: str, language: Language) -> Mapping[str, Any]:
    """Read `curation/NAME_LANGUAGE.toml`, such as `dedup/lengths_en.toml`, once a process.

    Raises:
        ConfigError: the language is unknown, or it has no such file.
    """
    find_language(language)
    path = Path(__file__).parent / f"{name}_{language}.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"curation has no {name} data for language {language!r}: add {path.name}") from None


@cache
def language_patterns(name: str, language: Language) -> Mapping[str, re.Pattern[str]]:
    """Compile the regular expressions in the table `patterns` of such a file, once a process."""
    return {key: re.compile(text) for key, text in language_data(name, language)["patterns"].items()}
