"""jieba's dictionary: how often Chinese words are used, and of which class they are."""

from __future__ import annotations

from functools import cache
from math import log


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

    dictionary()
    found: dict[str, str] = jieba.posseg.dt.word_tag_tab
    return found


def usual(word: str, least: int = 400) -> bool:
    """Whether a word is one of everyday language (some ten thousand are), or as frequent as `least`."""
    return (dictionary()[0].get(word) or 0) >= least
