"""The rules' regular expressions, which are data: `words/patterns.toml`, a table for each module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.curation.anonymize.normalization import HAN
from h2htalk.text.language_data import compile_patterns, read_data

_FOLDER = Path(__file__).parent / "words"


def read_table(name: str) -> Mapping[str, Any]:
    """A file of `words`."""
    return read_data(_FOLDER / f"{name}.toml")


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
    return compile_patterns(tables[table], {"han": HAN, **tables["shared"]})


@cache
def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """A list of `words/deobfuscation.toml`: expressions, which may name those of `[deobfuscation]`, and meanings."""
    parts = {"han": HAN, **read_table("patterns")["shared"]}
    parts |= {key: pattern.pattern for key, pattern in patterns("deobfuscation").items()}
    entries = read_table("deobfuscation")[name]
    return [(compile_patterns({"": one["pattern"]}, parts)[""], one["meant"]) for one in entries]
