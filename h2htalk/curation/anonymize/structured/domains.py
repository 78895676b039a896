"""Domains as people write them: which endings there are, and the many ways around a dot."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

# A dot that nobody takes for the end of a sentence: in brackets, spelt between marks.
HIDDEN_DOT = r"(?:\s?[(\[{<]\s?(?:dot|d0t|\.|点|。|point)\s?[)\]}>]\s?|[-_\"*|/]\s?(?:dot|d0t)\s?[-_\"*|/])"
# A dot that might be something else: a word, a full stop, a dot between spaces.
LOOSE_DOT = r"(?:\s{1,2}(?:dot|d0t)\s{1,2}|\s?。\s?|\s?点\s?|\s?·\s?|\s{1,2}\.\s{0,2}|\.\s{1,2})"
# A label, in which `-dot-` is no part.
LABEL = r"[a-z0-9]+(?:-+(?!dot-)[a-z0-9]+)*"
ANY_DOT = rf"(?:\.(?!\s)|{HIDDEN_DOT}|{LOOSE_DOT})"

LABELS = re.compile(rf"(?:d[o0]t-)?({LABEL})")


@cache
def words(name: str) -> frozenset[str]:
    """A list of `words/internet.toml`: `strong`, `weak`, `mail`, `files`."""
    raw = tomllib.loads(resources.files(__package__).joinpath("words/internet.toml").read_text(encoding="utf-8"))
    return frozenset(raw[name])


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in words("strong") or label in words("weak")


def cut_ending(label: str) -> int:
    """How many characters of a last label are a top-level domain that was glued to what follows; 0 for none.

    `comthanks` -> 3. Only for the endings that people mean: `com`, `net`, `org`, `cn`, `edu`.
    """
    for ending in ("com", "net", "org", "cn", "edu"):
        if label.startswith(ending):
            return len(ending)
    return 0
