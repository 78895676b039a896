"""The rules' regular expressions, which are data: `words/patterns.toml`, a table for each module."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from h2htalk.curation.anonymize.normalization import HAN

_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def read_table(name: str) -> dict[str, Any]:
    """A file of `words`."""
    return tomllib.loads(resources.files(__package__).joinpath(f"words/{name}.toml").read_text(encoding="utf-8"))


@cache
def internet_words(name: str) -> frozenset[str]:
    """A list of `words/internet.toml`: `strong`, `weak`, `files`, ..."""
    return frozenset(read_table("internet")[name])


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of a table.

    `{name}` in an expression stands for an earlier one, of its table or of `[shared]`; `{han}` for all Han digits.
    """
    tables = read_table("patterns")
    written = {"han": HAN}
    for name, expression in (tables["shared"] | tables[table]).items():
        written[name] = _expanded(expression, written)
    return {name: re.compile(written[name]) for name in tables[table]}


@cache
def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """A list of `words/deobfuscation.toml`: expressions, which may name those of `[deobfuscation]`, and meanings."""
    written = {"han": HAN} | read_table("patterns")["shared"]
    written |= {key: pattern.pattern for key, pattern in patterns("deobfuscation").items()}
    entries = read_table("deobfuscation")[name]
    return [(re.compile(_expanded(entry["pattern"], written)), entry["meant"]) for entry in entries]


def _expanded(expression: str, written: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda reference: written[reference[1]], expression)
