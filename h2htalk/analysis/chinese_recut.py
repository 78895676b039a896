"""The words of a Chinese text cut again where the verb-noun rules need it.

A treebank's words are not what the rules ask for, and the segmenter errs on everyday compounds: `喝水`, `发邮件` and
`披件` come as one word, `草莓园|摘` as `草莓|园摘`. Cut again is what no dictionary has, and a verb with its object.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from h2htalk.analysis import chinese_words as lists
from h2htalk.analysis.chinese_compounds import cut

# A part of the text: its characters, the parser's tag ("" where the part is no word of the parser's), and the place
# of its word in the doc.
Part = tuple[str, str, int]

_FUNCTION_CHARACTERS = frozenset("的得地把将给被、")
# Classes of names of people and makes, where jieba's dictionary lists much that is none (封信, 太冷).
_NAMES = frozenset(("nr", "nrt", "nrfg", "nz"))
_PLEASANT = frozenset("听看吃玩喝闻用")


def parts(words: list[Part]) -> list[Part]:
    """The words as parts: misplaced borders moved, verbs parted from objects; joined, they are the same text."""
    return [(part, tag, at) for text, was, at in _rejoined(_recut(words)) for part, tag in cut(text, was)]


def _recut(words: list[Part]) -> list[Part]:
    """A word that no dictionary has, and its neighbours, cut again into the fewest words that one has.

    草莓|园摘|草莓 -> 草莓园|摘|草莓. A noun that a classifier or 的 leads to stays: it is new, not wrong.
    """
    found: list[Part] = []
    skip = 0
    for at, (text, tag, token) in enumerate(words):
        if at < skip:
            continue
        kept = (
            tag in ("NOUN", "PROPN")
            and _unlisted(text)
            and (_looks_nominal(text) or (at > 0 and _leads_to_noun(words[at - 1], text)))
        )
        if kept or not _unlisted(text):
            found.append((text, "KEPT" if kept else tag, token))
            continue
        start = at - 1 if found and found[-1] is words[at - 1] and lists.is_han(words[at - 1][0]) else at
        skip = (
            at + 2
            if at + 1 < len(words) and lists.is_han(words[at + 1][0]) and not _unlisted(words[at + 1][0])
            else at + 1
        )
        stretch = words[start:skip]
        del found[len(found) - (at - start) :]
        found += _fewest_words(stretch)
    return found


def _looks_nominal(text: str) -> bool:
    """Whether neither end of an unlisted noun could be a verb or a function word stuck to it."""
    first, last = text[0], text[-1]
    return not (
        first in lists.FREE_VERBS
        or first in lists.KNOWN
        or first in _FUNCTION_CHARACTERS
        or last in lists.FREE_VERBS
        or last in lists.KNOWN - lists.CLASSIFIERS
    )


def _leads_to_noun(before: Part, text: str) -> bool:
    """Whether a noun must come after this word, so that an unlisted one there is new rather than cut wrongly."""
    if before[0] in lists.CLASSIFIERS | {"的"}:
        return True
    return (before[0] in lists.ASPECTS and len(text) > 2) or (
        before[1] == "VERB" and len(text) > 2 and text[0] not in lists.FREE_VERBS
    )


@lru_cache(65536)
def _unlisted(text: str) -> bool:
    return (
        1 < len(text) <= 6
        and all("\u4e00" <= c <= "\u9fff" for c in text)
        and (not lists.word_class(text) or (lists.word_class(text) in _NAMES and _cost(text) > 2))
        and text not in lists.KNOWN
        and not all(c in lists.NUMERAL_CHARACTERS for c in text[:-1])
        and not (text[0] in lists.FREE_VERBS and text[1:] in lists.RESULTS | lists.ENDINGS)
        and text[0] != text[1]
    )


def _fewest_words(stretch: list[Part]) -> list[Part]:
    text = "".join(part[0] for part in stretch)
    borders = {0}
    tags: dict[tuple[int, int], tuple[str, int]] = {}
    for word, tag, token in stretch:
        tags[max(borders), max(borders) + len(word)] = (tag, token)
        borders.add(max(borders) + len(word))
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(text) + 1):
        best.append(
            min(
                (
                    best[start][0]
                    + _cost(text[start:end])
                    + 0.3 * len(borders.intersection(range(start + 1, end))),
                    start,
                )
                for start in range(max(0, end - 5), end)
            )
        )
    cuts = [len(text)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    cuts.reverse()
    last = stretch[-1][2]
    tokens = [token for word, _, token in stretch for _ in word]
    return [
        (text[a:b], tags[a, b][0] if (a, b) in tags else "", min(tokens[b - 1], last))
        for a, b in pairwise(cuts)
    ]


@lru_cache(65536)
def _cost(word: str) -> float:
    if len(word) == 1:
        if (
            word in lists.FREE_VERBS
            or word in lists.KNOWN
            or word in lists.FREE_NOUNS
            or word in _FUNCTION_CHARACTERS
            or word in lists.ASPECTS
        ):
            return 0.95
        return 1.0 if lists.word_class(word)[:1] in ("a", "v", "n") else 1.3
    if lists.word_class(word) in _NAMES:
        return 2.2 if len(word) == 2 and (word[0] in lists.KNOWN or word[0] in lists.FREE_VERBS) else 1.4
    listed = (
        word in lists.KNOWN
        or word in lists.NOUNS
        or lists.word_class(word)
        or (word[0] in lists.FREE_VERBS and word[1:] in lists.RESULTS | lists.ENDINGS)
    )
    return 1.0 if listed else 1.6 * len(word)


def _rejoined(words: list[Part]) -> list[Part]:
    """Words whose borders the segmenter misplaced: 充电|器, 掉头|发, 揉面|团, 把|地|板擦, 换|换水."""
    found: list[Part] = []
    for text, tag, token in words:
        last = found[-1][0] if found else ""
        if (
            len(text) == 2
            and text[0] in "上里中后前"
            and (text[1] in lists.FREE_VERBS or text[1] in "去来")
            and _placed(found, text)
        ):
            found.append((text[0], "ADP", token))
            text, tag = text[1], "VERB"
        if (
            len(text) == 1
            and len(last) > 1
            and (last not in lists.KNOWN or (last in lists.TIMES and tag == "NOUN"))
            and _may_end_word(text, tag)
        ):
            if lists.is_noun(last + text):
                found[-1] = (last + text, "NOUN", token)
                continue
            if (
                len(last) == 2
                and last[0] != last[1]
                and last[0] in _SPLIT_BEFORE
                and lists.is_noun(last[1] + text)
            ):
                found[-1] = (last[0], "VERB" if last[0] in lists.FREE_VERBS else "ADJ", found[-1][2])
                text, tag = last[1] + text, "NOUN"
        elif text in ("口气", "一口气") and last in "喘松叹舒了":
            found += [(character, "NUM", token) for character in text[:-1]]
            text, tag = "气", "NOUN"
        elif (last == "好" and text in _PLEASANT) or last + text == "想念":
            found[-1] = (last + text, "ADJ" if last == "好" else "VERB", token)
            continue
        elif (
            len(text) == 2
            and len(last) == 1
            and tag == "NOUN"
            and found[-1][1] in ("NOUN", "PART", "PROPN")
            and lists.is_noun(last + text)
        ):
            found[-1] = (last + text, "NOUN", token)
            continue
        elif len(text) == 2 and len(last) == 1 and text[1] in lists.FREE_VERBS and len(found) > 1:
            if found[-2][0] in "把将" and lists.is_noun(last + text[0]):
                found[-1] = (last + text[0], "NOUN", token)
                text, tag = text[1], "VERB"
        elif len(text) == 2 and text[0] == last and last in lists.FREE_VERBS:
            text, tag = text[1], "NOUN"
        found.append((text, tag, token))
    return found


def _placed(before: list[Part], text: str) -> bool:
    """Whether 上 or 后 at the start of a word belongs to what stands before it: 在|操场|上弹, 下班|后去."""
    if text[0] in "后前":
        return bool(before) and text in ("后去", "后来到", "前去") and before[-1][1] in ("NOUN", "VERB")
    return (
        len(before) > 1
        and any(part[0] in ("在", "往", "从") for part in before[-4:-1])
        and before[-1][1] == "NOUN"
    )


def _may_end_word(text: str, tag: str) -> bool:
    """Whether a single character can be the end of the noun before it; 学 can when the parser calls it a suffix."""
    if (
        text in _FUNCTION_CHARACTERS
        or text in lists.ASPECTS
        or text in lists.PARTICLES
        or (text in lists.LOCALIZERS and text != "间")
    ):
        return False
    return tag == "PART" or text not in lists.KNOWN - lists.CLASSIFIERS


# First characters of a word whose second may belong to the next one.
_SPLIT_BEFORE = lists.FREE_VERBS | frozenset("老旧新大小热")
