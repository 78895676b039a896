"""Regular expressions that are kept as data, in TOML files beside the rules that use them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def pattern_table(path: Path, name: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of one table of a file; `{name}` in one stands for an earlier one of its table."""
    return compile_patterns(tomllib.loads(path.read_text(encoding="utf-8"))[name], {})


def compile_patterns(expressions: dict[str, str], parts: dict[str, str]) -> dict[str, re.Pattern[str]]:
    """Compile expressions in their order; `{name}` stands for a part or an earlier one, and line ends mean nothing."""
    written = dict(parts)
    for key, expression in expressions.items():
        written[key] = _REFERENCE.sub(lambda found: written[found[1]], expression.replace("\n", ""))
    return {key: re.compile(written[key]) for key in expressions}
