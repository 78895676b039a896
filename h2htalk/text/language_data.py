"""Words, patterns and texts as data: every TOML and word file of the package, many of them of one language.

`language_data("detect/duplicates/lengths", "en")` is `h2htalk/detect/duplicates/lengths_en.toml`. Regular expressions
are compiled by `compile_patterns` alone, in which `{name}` stands for another expression.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language, find_language
from h2htalk.errors import ConfigError

PACKAGE = Path(__file__).parents[1]
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def read_data(path: Path) -> Mapping[str, Any]:
    """Read a TOML file, once a process."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file but for those that `#` starts."""
    return [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]


@cache
def language_data(name: str, language: Language) -> Mapping[str, Any]:
    """Read `h2htalk/NAME_LANGUAGE.toml`, such as `detect/duplicates/lengths_en.toml`, once a process. Raises
    ConfigError where the language is unknown, or has no such file."""
    find_language(language)
    path = PACKAGE / f"{name}_{language}.toml"
    try:
        return read_data(path)
    except FileNotFoundError:
        raise ConfigError(f"no {name} data for language {language!r}: add {path.name}") from None


@cache
def language_patterns(name: str, language: Language) -> Mapping[str, re.Pattern[str]]:
    """Compile the regular expressions in the table `patterns` of such a file, once a process."""
    return compile_patterns(language_data(name, language)["patterns"], {})


@cache
def pattern_table(path: Path, name: str) -> dict[str, re.Pattern[str]]:
    """Compile the expressions of one table of a file, once a process."""
    return compile_patterns(read_data(path)[name], {})


def compile_patterns(
    expressions: Mapping[str, str], fragments: Mapping[str, str]
) -> dict[str, re.Pattern[str]]:
    """Compile expressions in their order; `{name}` stands for a fragment or an earlier one; line ends mean nothing."""
    written = dict(fragments)
    for key, expression in expressions.items():
        written[key] = _REFERENCE.sub(
            lambda reference: written[reference[1]], expression.replace("\n", "")
        )
    return {key: re.compile(written[key]) for key in expressions}
