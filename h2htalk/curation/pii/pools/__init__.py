"""Invented names that stand in for real ones: sections of words, one file a kind and language."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def pools(name: str) -> dict[str, tuple[str, ...]]:
    """The words of a file by the `[section]` they stand in, in the file's order, each once; `#` starts a comment line.

    White space parts them; in lines that hold `|`, that does, so that a name may hold spaces.
    """
    found: dict[str, dict[str, None]] = {}
    here: dict[str, None] = {}
    text = resources.files("h2htalk.curation.pii.pools").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            here = found.setdefault(line.strip("[] "), {})
        elif not line.startswith("#"):
            words = line.split("|") if "|" in line else line.split()
            here.update(dict.fromkeys(word.strip() for word in words if word.strip()))
    return {section: tuple(words) for section, words in found.items()}
