"""Who speaks in a reply: in the first person, and without the persona's own name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from h2htalk.data.languages import Language
from h2htalk.text.tokens import chinese_words

# English as it is written: US is not us, and a mine is a pronoun only where a noun cannot stand. Chinese:
# 自我介绍 is about nobody yet.
_FIRST_PERSON: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:I|[Mm]e|[Mm]y|[Mm]yself|[Ww]e|[Oo]urs?|[Uu]s|[Oo]urselves|[Ll]et['’]s)\b"
        r"|(?<![^\W_] )\bMine\b"
        r"|\b(?:of|is|are|was|were|be|than|like|and|or|not|[Ii]t['’]s|[Tt]hat['’]s) mine\b"
    ),
    "zh": re.compile("(?<!自)我|自我们|咱|俺"),
}
_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」")
_THIRD_PERSON_ZH = re.compile("[他她]")
_LATIN_NAME = re.compile(r"[^\u3400-\u9fff]+")


def is_first_person(text: str, language: Language) -> bool:
    """Whether a word of the first person stands in the text.

    Chinese may leave the subject out (刚到工地), unless the text speaks of a third person.
    """
    if _FIRST_PERSON[language].search(text):
        return True
    return language == "zh" and not _THIRD_PERSON_ZH.search(text)


def find_first_person(text: str, language: Language) -> str | None:
    """The first pronoun of the first person that is not inside quotation marks, or None.

    A narrator in the third person may quote what somebody says of themselves.
    """
    match = _FIRST_PERSON[language].search(_QUOTATION.sub(" ", text))
    return None if match is None else match[0]


def find_name(text: str, names: Sequence[str]) -> str | None:
    """The first of the names that the text says, or None.

    A Latin name is found whole in any letter case, and its first part (the given name) as it is written. A
    Chinese name is found where it is a word: 苏晚 is not in 江苏晚上.
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
    """Whether an occurrence starts and ends where a word does.

    Words of jieba's dictionary alone: its model of new words would glue a name to what stands beside it
    (喜欢顾言种的花). jieba is loaded when the letters of the name are there, not before.
    """
    edges = {0, *accumulate(len(token) for token in chinese_words().cut(text, HMM=False))}
    start = text.find(name)
    while start >= 0:
        if start in edges and start + len(name) in edges:
            return True
        start = text.find(name, start + 1)
    return False
