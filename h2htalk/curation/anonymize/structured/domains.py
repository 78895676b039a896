"""Domains as people write them: which endings there are, and where a host ends."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

_LABEL = re.compile(r"[a-z0-9-]+")
# Endings that people mean where the next word is glued to one: comthanks.
_GLUED = re.compile("com|net|org|cn|edu")


@cache
def words(name: str) -> frozenset[str]:
    """A list of `words/internet.toml`: `strong`, `weak`, `mail`, `files`."""
    raw = tomllib.loads(resources.files(__package__).joinpath("words/internet.toml").read_text(encoding="utf-8"))
    return frozenset(raw[name])


def is_ending(label: str) -> bool:
    """Whether a label is a top-level domain that we know."""
    label = label.replace("0", "o")
    return label in words("strong") or label in words("weak")


def host_end(text: str, start: int, end: int) -> int:
    """Where the host of an e-mail address ends in a row of labels: at its last ending. 0: there is none.

    Behind an `@` an ending that we do not know is one too.
    """
    labels = list(_LABEL.finditer(text, start, end))
    known = [label.end() for label in labels[1:] if is_ending(label.group())]
    if known:
        return known[-1]
    last = labels[-1]
    glued = _GLUED.match(last.group())
    if glued:
        return last.start() + glued.end()
    return last.end() if last.group().isalpha() and 2 <= len(last.group()) <= 12 else 0
