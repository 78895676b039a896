"""Word files of the Chinese recognisers with their sources, their reader, and jieba's dictionary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import log
from pathlib import Path
from sys import intern
from typing import Any

from h2htalk.text.language_data import pattern_table, read_data

_FOLDER = Path(__file__).parent


@cache
def table(name: str) -> Mapping[str, Any]:
    """A TOML file of this folder."""
    return read_data(_FOLDER / f"{name}.toml")


@cache
def sections(name: str) -> dict[str, frozenset[str]]:
    """A text file of this folder: words by the `[section]` they stand in; `#` starts a comment line. Words are parted
    by white space; in lines that hold `|` by that, so that a name may hold spaces."""
    found: dict[str, set[str]] = {"": set()}
    here = found[""]
    for line in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            here = found.setdefault(line.strip("[] "), set())
        elif not line.startswith("#"):
            here.update(
                word.strip()
                for word in (line.split("|") if "|" in line else line.split())
                if word.strip()
            )
    return {section: frozenset(words) for section, words in found.items()}


@cache
def words(name: str, section: str, key: str) -> frozenset[str]:
    """The words of one entry of a TOML file."""
    return frozenset(table(name)[section][key].split())


def patterns(module: str) -> dict[str, re.Pattern[str]]:
    """The regular expressions of a module of the Chinese rules."""
    return pattern_table(_FOLDER / "patterns.toml", module)


# --- jieba's dictionary: how often words are used, and of which class they are ---


@cache
def dictionary() -> tuple[dict[str, int], float]:
    """Occurrences of each word (0: only the start of words), and the logarithm of their sum."""
    import jieba

    jieba.setLogLevel(60)  # it greets on stderr
    jieba.initialize()
    return jieba.dt.FREQ, log(jieba.dt.total)


@cache
def tags() -> dict[str, str]:
    """jieba's word classes: n, v, a, ns, nr ..."""
    import jieba.posseg

    read: dict[str, str] = jieba.posseg.dt.word_tag_tab
    jieba.posseg.dt.word_tag_tab = {}
    # With the words of the other dictionary, and each class once: 25 MB less.
    return {word: intern(read[word]) for word in dictionary()[0] if word in read}


def usual(word: str, least: int = 400) -> bool:
    """Whether a word is one of everyday language (some ten thousand are), or as frequent as `least`."""
    return (dictionary()[0].get(word) or 0) >= least
