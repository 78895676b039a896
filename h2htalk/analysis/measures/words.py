"""Count the words of a split (paper, section 3.3 and Fig. 4)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.data.languages import find_language
from h2htalk.text import counting
from h2htalk.text.language_data import read_lines
from h2htalk.text.tokens import Tokenize, tokenize

LONGEST_WORD = 40  # characters; a longer one is an address or a repeated key

_ENDING = re.compile(r"(?:n't|'(?:s|re|ve|ll|d|m|t))$")
_HAN = re.compile(r"[㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]")
# Numbers and times in words: 八百, 十点, 八点半, 两点四十分.
_NUMBER = re.compile(
    r"第?[〇零一二两三四五六七八九十百千万亿兩萬億半]+(?:[点點][鐘钟]?[零一二三四五六七八九十半]*分?)?"
)
# A number and its measure word: 三罐, 几步, 一趟.
_COUNTED = re.compile(
    "[一二两兩三四五六七八九十百几幾数數半]+"
    "[个個只隻张張份段句位名条條件群羣阵陣遍番次箱部台臺趟罐口家批圈步盒顿頓枝支瓶杯碗盘盤把本双雙颗顆棵朵根片封篇首辆輛间間"
    "套场場滴堆排声聲架株]"
)
# Words in -s that are not the plural of the word without it.
_NO_PLURAL = re.compile(
    "besides|christmas|clothes|customs|gas|glasses|goods|james|jeans|lens|mars|means|news|pants|series|sometimes"
    "|species|thanks|works|yes"
)
_NO_PLURAL_ENDINGS = ("ss", "us", "is")
_PLURAL_ES = ("ses", "xes", "zes", "ches", "shes", "oes")


@dataclass(frozen=True, slots=True)
class WordCount:
    """A word, its number of occurrences, and of texts that hold it."""

    word: str
    count: int
    texts: int


@cache
def stop_words(language: str) -> frozenset[str]:
    """Read the words that are not counted: function words only, so that the words that the paper discusses are kept."""
    find_language(language)
    lines = read_lines(Path(__file__).parent / "stop_words" / f"{language}.txt")
    return frozenset(" ".join(lines).split())


def count_words(texts: Sequence[str], language: str, split: Tokenize = tokenize) -> list[WordCount]:
    """Count the words of texts in one language without stop words; the most frequent first, equal ones by spelling.

    Words come from the package's tokens (`text.tokens`), lower-cased. A word begins with a letter, has a Chinese
    character or two letters, and at most 40 characters: emoji, numbers (also 八百, 十点, 三罐) and single Latin letters
    are not words. `partner's` counts as `partner`, `we'll` as `we`, and an English plural as its singular where that
    occurs too (`walks` as `walk`; `news` stays). `split` cuts a text of a language into tokens. Raise ConfigError for
    a language without a tokenizer.
    """
    stops = stop_words(language)
    by_text = [Counter(_words(text, language, stops, split)) for text in texts]
    singulars = _singulars(set().union(*by_text), language)
    counts: Counter[str] = Counter()
    found_in: Counter[str] = Counter()
    for words in by_text:
        found_in.update({singulars.get(word, word) for word in words})
        for word, count in words.items():
            counts[singulars.get(word, word)] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [WordCount(word, count, found_in[word]) for word, count in ordered]


def comparable_counts(
    a: Sequence[WordCount], b: Sequence[WordCount], language: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counts of two splits by word, with a plural under its singular if either split has that.

    Each split alone knows only its own words: `hands 25` and `hand 7` would be two words of one split each.
    """
    singulars = _singulars({count.word for count in (*a, *b)}, language)
    return _join_plurals(a, singulars), _join_plurals(b, singulars)


def _join_plurals(counts: Iterable[WordCount], singulars: Mapping[str, str]) -> dict[str, int]:
    by_word: dict[str, int] = {}
    for count in counts:
        word = singulars.get(count.word, count.word)
        by_word[word] = by_word.get(word, 0) + count.count
    return by_word


def _words(text: str, language: str, stops: frozenset[str], split: Tokenize) -> list[str]:
    """List the counted words of a text, in order, with repetitions."""
    composed = unicodedata.normalize("NFC", text).replace("’", "'")
    words = []
    for token in split(composed, language):
        # 13a leaves curly quotes and dashes attached to words.
        for word in map(str.lower, counting.words(token)):
            bare = _ENDING.sub("", word)
            if stops.isdisjoint((word, bare)) and _is_word(bare):
                words.append(bare)
    return words


def _is_word(word: str) -> bool:
    if not word or not word[0].isalpha() or len(word) > LONGEST_WORD:
        return False
    if _NUMBER.fullmatch(word) or _COUNTED.fullmatch(word):
        return False
    letters = sum(map(str.isalpha, word))
    return letters > 1 or _HAN.search(word) is not None


def _singulars(words: Collection[str], language: str) -> Mapping[str, str]:
    """Map each plural among the words to its singular, in a language whose plurals end in -s."""
    if not find_language(language).plural_s:
        return {}
    singulars: dict[str, str] = {}
    for word in words:
        for candidate in _singular_forms(word):
            if len(candidate) > 1 and candidate in words:
                singulars[word] = candidate
                break
    return singulars


def _singular_forms(word: str) -> list[str]:
    """List what may be the singular of an English word, the likelier first; none for what is no plural."""
    if not word.endswith("s") or word.endswith(_NO_PLURAL_ENDINGS) or _NO_PLURAL.fullmatch(word):
        return []
    forms = [word[:-1]]
    if word.endswith("ies"):
        forms.append(word[:-3] + "y")
    elif word.endswith(_PLURAL_ES):
        forms.append(word[:-2])
    return forms
