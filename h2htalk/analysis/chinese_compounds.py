"""Verb-object compounds and verbs with a word stuck to them, cut for the verb-noun rules."""

from __future__ import annotations

from functools import lru_cache

from h2htalk.analysis import chinese_words as lists

# Verbs that begin no long noun: of three characters, 放风筝 is cut and 发电机 is not.
_PLAIN = frozenset("放数吃喝买唱穿戴送讲下看听洗煮写读")
_BEFORE_VERBS = lists.ADVERBS | lists.MODALS | lists.PREPOSITIONS | lists.TIMES


def _is_object(word: str) -> bool:
    return lists.is_noun(word) or word in lists.FREE_NOUNS


def _is_verb(word: str) -> bool:
    return word in lists.FREE_VERBS or (len(word) > 1 and lists.word_class(word)[:1] == "v")


@lru_cache(65536)
def cut(text: str, tag: str) -> tuple[tuple[str, str], ...]:
    """A word as one part, or as the parts that the rules need apart, each with its tag ("" where unknown)."""
    whole = ((text, tag),)
    if tag == "KEPT":
        return ((text, "NOUN"),)
    if len(text) < 2 or text in lists.KNOWN or text in lists.NOUNS or not "\u4e00" <= text[0] <= "\u9fff":
        return whole
    first, rest = text[0], text[1:]
    if first in lists.CLASSIFIERS and (
        rest == "钱"
        or (rest in lists.FREE_NOUNS and not lists.is_noun(text) and first not in lists.FREE_VERBS)
    ):
        return ((first, ""), (rest, "NOUN"))
    if first == "太" and len(text) == 2 and rest not in "阳太空极子平原后":
        return ((first, "ADV"), (rest, "ADJ"))
    if rest in lists.COMPOUNDS.get(first, ""):
        return (
            whole
            if tag == "NOUN" and text in lists.NOUNS_LIKE_COMPOUNDS
            else ((first, "VERB"), (rest, "NOUN"))
        )
    if rest == "得" and text not in lists.BOUND_DE and (_is_verb(first) or lists.word_class(first) == "v"):
        return ((first, "VERB"), (rest, ""))
    if first in lists.FREE_VERBS:
        if rest == "不":
            return ((first, "VERB"), (rest, "ADV"))  # 提不|起
        if (
            len(text) == 3
            and rest[0] in lists.RESULTS
            and rest[1] in lists.FREE_NOUNS
            and (rest[0] in "上下完好掉" or not lists.is_noun(rest))
        ):
            return ((text[:2], "VERB"), (rest[1], "NOUN"))  # 关上门
        if (
            len(text) == 3
            and first in _PLAIN
            and lists.word_class(rest) == "n"
            and rest[0] not in lists.COMPOUNDS.get(first, "")
        ):
            return ((first, "VERB"), (rest, "NOUN"))
        if first == rest[0] and len(text) == 3 and rest[1] not in lists.RESULTS:
            return ((text[:2], "VERB"), (rest[1], "NOUN"))  # 喷喷水
        if rest in "点件" or (len(text) == 4 and rest[0] in lists.RESULTS and lists.is_noun(rest[1:])):
            return (
                ((first, "VERB"), (rest, "")) if len(rest) == 1 else ((text[:2], "VERB"), (rest[1:], "NOUN"))
            )
        if len(text) == 3 and tag in ("VERB", "ACL") and lists.is_noun(rest):
            return ((first, "VERB"), (rest, "NOUN"))  # 发邮件
    if (
        first in "先再刚都也又就还没"
        and (rest in lists.FREE_VERBS or rest in "去来")
        and text not in lists.ADVERBIAL_WORDS
    ):
        return ((first, "ADV"), (rest, "VERB"))
    if first in "忘想爱要敢别" and rest in lists.FREE_VERBS and text not in ("想念", "想开", "要领"):
        return ((first, "VERB"), (rest, "VERB"))
    if lists.word_class(text) or (len(text) == 2 and first == rest):
        return whole
    return _cut_unknown(text) or whole


def _cut_unknown(text: str) -> tuple[tuple[str, str], ...] | None:
    """A word that no dictionary has: an adverb, a classifier, an object or a subject stuck to a verb."""
    first, rest = text[0], text[1:]
    if rest[-1] in "了着过得" and _is_verb(text[:-1]):
        return ((text[:-1], "VERB"), (rest[-1], "AUX"))
    if first in lists.FREE_VERBS and (rest in lists.CLASSIFIERS or rest in lists.PRONOUNS):
        return ((first, "VERB"), (rest, ""))
    if first in _BEFORE_VERBS and (_is_verb(rest) or rest in lists.KNOWN):
        return ((first, ""), (rest, "VERB"))
    if first in _BEFORE_VERBS and len(rest) > 1 and len(inner := cut(rest, "")) > 1:
        return ((first, ""), *inner)
    if first in lists.FREE_VERBS and rest not in lists.AFTER_VERB and _is_object(rest):
        return ((first, "VERB"), (rest, "NOUN"))
    if first in "连错坏好" and _is_object(rest):
        return ((first, ""), (rest, "NOUN"))
    if len(text) == 2 and rest in lists.FREE_VERBS and lists.is_noun(first):
        return ((first, "NOUN"), (rest, "VERB"))
    return None
