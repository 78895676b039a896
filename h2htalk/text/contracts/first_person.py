"""Find the first person and the persona's own name in a reply."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate

from h2htalk.data.languages import Language
from h2htalk.text.tokens import chinese_words

_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」")
_LATIN_NAME = re.compile(r"[^\u3400-\u9fff]+")


@cache
def patterns(language: Language) -> Mapping[str, re.Pattern[str]]:
    """Read the regular expressions of a language's contracts, `patterns/CODE.toml`; each list is one alternation."""
    text = (files(__package__) / "patterns" / f"{language}.toml").read_text(encoding="utf-8")
    return {name: re.compile("|".join(parts)) for name, parts in tomllib.loads(text).items()}


def is_first_person(text: str, language: Language) -> bool:
    """Whether a word of the first person stands in the text.

    A language that may leave the subject out (刚到工地) needs none, unless the text speaks of a third person.
    """
    if patterns(language)["first_person"].search(text):
        return True
    third_person = patterns(language).get("third_person")
    return third_person is not None and not third_person.search(text)


def find_first_person(text: str, language: Language) -> str | None:
    """Find the first pronoun of the first person outside quotation marks, or None.

    A narrator in the third person may quote the first person.
    """
    match = patterns(language)["first_person"].search(_QUOTATION.sub(" ", text))
    return None if match is None else match[0]


def find_name(text: str, names: Sequence[str]) -> str | None:
    """Find the first of the names in the text, or None.

    A Latin name is matched whole in any letter case, and its first part (the given name) as it is written. A
    Chinese name is matched where it is a word: 苏晚 is not in 江苏晚上.
    """
    for name in filter(None, names):
        if _LATIN_NAME.fullmatch(name):
            match = _latin_pattern(name).search(text)
            if match is not None:
                return match[0]
        elif name in text and _is_word_in(name, text):
            return name
    return None


@lru_cache(maxsize=64)
def _latin_pattern(name: str) -> re.Pattern[str]:
    parts = name.split()
    whole = r"\s+".join(map(re.escape, parts))
    given = re.escape(parts[0]) if parts else whole
    return re.compile(rf"(?<![^\W_])(?:(?i:{whole})|{given})(?![^\W_])")


def _is_word_in(name: str, text: str) -> bool:
    """Whether an occurrence starts and ends at word borders.

    Only jieba's dictionary is used: its model of new words would join a name to its neighbours
    (喜欢顾言种的花). jieba is loaded only when the characters of the name occur.
    """
    edges = {0, *accumulate(len(token) for token in chinese_words().cut(text, HMM=False))}
    start = text.find(name)
    while start >= 0:
        if start in edges and start + len(name) in edges:
            return True
        start = text.find(name, start + 1)
    return False
