"""Words and contexts that organisations are told by."""

from __future__ import annotations

import re
from functools import cache

from h2htalk.curation.anonymize.chinese.words import words

KINDS = ("firm", "school", "care", "worship", "club", "office")
BRANCH = re.compile(
    r"[(（][^()（）\s]{1,12}(?:店|支行|分行|分公司|分校|校区|分院|院区|门诊|厂)[)）]"
    r"|(?:(?![门那这的在]|旁边|楼下|对面)[^\W\d_]){1,5}(?:店|支行|分行|分公司|分校|校区|分院|院区|分店|门店)"
)
CUT = 4


@cache
def suffixes() -> dict[str, str]:
    return {word: kind for kind in KINDS for word in words("organizations", "suffixes", kind)}


@cache
def loose_suffixes() -> frozenset[str]:
    """Suffixes that have other uses: organisations only where the context says so."""
    return words("organizations", "suffixes", "loose")


@cache
def leading_words() -> frozenset[str]:
    return words("organizations", "generic", "leading")


@cache
def generic_words() -> frozenset[str]:
    return words("organizations", "generic", "words") | frozenset(suffixes())


@cache
def ends_name() -> frozenset[str]:
    """Words that no name begins with or holds."""
    return words("places", "stop", "words") - {
        *(
            "同学",
            "朋友",
            "老师",
            "希望",
            "未来",
            "需要",
            "存在",
            "一直",
            "大家",
            "自己",
            "常",
            "三",
            "东",
            "西",
        ),
    }


@cache
def words_before() -> frozenset[str]:
    return words("organizations", "context", "before")


@cache
def words_after() -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(sorted(words("organizations", "context", "after"))),
        tuple(sorted(words("organizations", "context", "cut"))),
    )


def context_of(text: str, start: int, end: int) -> int:
    """Whether somebody works, learns or is treated there.

    0 for nothing, 1 at the start of a clause, 2 for a word before or after, 3 for both, `CUT` for what only an
    organisation does or has.
    """
    head = text[max(0, start - 5) : start]
    if any(head.endswith(word) for word in words("organizations", "context", "sure")):
        return CUT
    before = any(head.endswith(word) for word in words_before())
    after, cut = words_after()
    if text.startswith(cut, end):
        return CUT
    found = before + text.startswith(after, end)
    return found + 1 if found else int(not head or not head[-1].isalnum())


def only_generic(core: str) -> bool:
    """Whether a name is put together from words that name a kind alone."""
    generic = generic_words()
    reach = {0}
    for at in range(len(core)):
        if at in reach:
            reach |= {end for end in range(at + 1, min(len(core), at + 5) + 1) if core[at:end] in generic}
    return len(core) in reach


@cache
def stating() -> tuple[str, ...]:
    return tuple(sorted(word for word in words("organizations", "context", "sure") if len(word) > 1))
