"""The words of a Chinese text cut again where the verb-noun rules need it.

A treebank's words are not what the rules ask for, and the segmenter errs on everyday compounds: `喝水`, `发邮件` and
`披件` come as one word, `草莓园|摘` as `草莓|园摘`. Cut again is what no dictionary has, and a verb with its object.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from h2htalk.analysis import chinese_words as lists
from h2htalk.analysis.chinese_borders import FUNCTION_CHARACTERS, Part, rejoined
from h2htalk.analysis.chinese_compounds import cut

# Classes of names of people and makes, where jieba's dictionary lists much that is none (封信, 太冷).
_NAMES = frozenset(("nr", "nrt", "nrfg", "nz"))


def parts(words: list[Part]) -> list[Part]:
    """The words as parts: misplaced borders moved, verbs parted from objects; joined, they are the same text."""
    return [(part, tag, at) for text, was, at in rejoined(_recut(words)) for part, tag in cut(text, was)]


def _recut(words: list[Part]) -> list[Part]:
    """A word that no dictionary has, and its neighbours, cut again into the fewest words that one has.

    草莓|园摘|草莓 -> 草莓园|摘|草莓. A noun that a classifier or 的 leads to stays: it is new, not wrong.
    """
    found: list[Part] = []
    skip = 0
    for at, (text, tag, token) in enumerate(words):
        if at < skip:
            continue
        kept = (text[0] == "阿" and len(text) < 4) or (
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
        or first in FUNCTION_CHARACTERS
        or last in lists.FREE_VERBS
        or last in lists.FUNCTIONAL
    )


def _leads_to_noun(before: Part, text: str) -> bool:
    """Whether a noun must come after this word, so that an unlisted one there is new rather than cut wrongly."""
    if before[0] == "的" or before[0] in lists.CLASSIFIERS:
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
        and not (text[0] in lists.FREE_VERBS and text[1:] in lists.AFTER_VERB)
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
            or word in FUNCTION_CHARACTERS
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
        or (word[0] in lists.FREE_VERBS and word[1:] in lists.AFTER_VERB)
    )
    return 1.0 if listed else 1.6 * len(word)
