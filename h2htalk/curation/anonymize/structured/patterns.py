"""The rules' regular expressions and word lists, which are data: `words/patterns.toml`, a table for each module."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from h2htalk.curation.anonymize.normalization import HAN

_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of a table.

    `{name}` in an expression stands for an earlier one, of its table or of `[shared]`, `{han}` for all Han digits.
    """
    tables = tomllib.loads(resources.files(__package__).joinpath("words/patterns.toml").read_text(encoding="utf-8"))
    written = {"han": HAN}
    for name, expression in (tables["shared"] | tables[table]).items():
        written[name] = _REFERENCE.sub(lambda reference: written[reference[1]], expression)
    return {name: re.compile(written[name]) for name in tables[table]}
