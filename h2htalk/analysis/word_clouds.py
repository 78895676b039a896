"""Which words a split is made of (paper, section 3.3 and Fig. 4): counts first, then where a cloud puts them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from h2htalk.analysis.fonts import INSTALL_ANALYSIS, FontFile, find_font
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text import counting
from h2htalk.text.tokens import Tokenize, tokenize

LONGEST_WORD = 40  # characters; what is longer is an address or a key held down
WIDTH, HEIGHT = 1600, 900
SMALLEST = 20  # of WIDTH: 6 points in a picture that is 17 cm wide
LARGEST = 190  # else two frequent words fill the picture, and the others stand within their letters
SHADES = 5

_ENDING = re.compile(r"(?:n't|'(?:s|re|ve|ll|d|m|t))$")
_HAN = re.compile(r"[㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]")
# 八百, 十点, 八点半, 两点四十分: what 800 or 10:00 are in digits.
_NUMBER = re.compile(
    r"第?[〇零一二两三四五六七八九十百千万亿兩萬億半]+(?:[点點][鐘钟]?[零一二三四五六七八九十半]*分?)?"
)
# They end in s and are no plural of the word without it.
_NO_PLURAL = re.compile(
    "besides|christmas|clothes|customs|gas|glasses|goods|james|jeans|lens|mars|means|news|pants|series|sometimes"
    "|species|thanks|works|yes"
)


@dataclass(frozen=True, slots=True)
class WordCount:
    """A word, how often it occurs, and in how many texts."""

    word: str
    count: int
    texts: int


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word's place in a cloud, in the cloud's units, from its lower left corner.

    Attributes:
        x, y: where the word's baseline begins: text set there, turned or not, is where it belongs.
        size: of the font: an em.
        turned: a quarter turn to the left, so that it reads upwards.
        shade: 0 for the most frequent fifth of the words to 4 for the least; an index into a palette.
        box: left, bottom, width and height of the room that is the word's own.
    """

    word: str
    count: int
    x: float
    y: float
    size: float
    turned: bool
    shade: int
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Cloud:
    """A word cloud as data, to be drawn as vectors.

    Attributes:
        placed: the words, most frequent first; none where there were no words.
        left_out: words that the font cannot draw; they would have been boxes.
        crowded_out: words for which no room of a readable size was left.
    """

    language: str
    width: int
    height: int
    font: FontFile
    placed: tuple[PlacedWord, ...]
    left_out: tuple[WordCount, ...]
    crowded_out: tuple[WordCount, ...]


def stop_words(language: str) -> frozenset[str]:
    """Words that are not counted: function words only, so that the words that the paper discusses are kept.

    Raises:
        ConfigError: a language without a list.
    """
    if language not in ("en", "zh"):
        raise ConfigError(f"no stop words for language {language!r}; choose from en, zh")
    return _stop_words(language)


@cache
def _stop_words(language: str) -> frozenset[str]:
    path = files("h2htalk.analysis") / "stop_words" / f"{language}.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def count_words(texts: Sequence[str], language: str, split: Tokenize = tokenize) -> list[WordCount]:
    """The words of texts in one language, stop words left out; the most frequent first, equal ones by spelling.

    Words come from the package's tokens (`text.tokens`), lower-cased. A word begins with a letter, has a Chinese
    character or two letters, and at most 40 characters: emoji, numbers (also 八百, 十点) and single Latin letters are
    none. `partner's` counts as `partner`, `we'll` as `we`, and an English plural as its singular where that occurs
    too (`walks` as `walk`; `news` stays). `split` cuts a text of a language into tokens.

    Raises:
        ConfigError: a language without a tokenizer.
    """
    stops = stop_words(language)
    by_text = [Counter(_words(text, language, stops, split)) for text in texts]
    singulars = _singulars(set().union(*by_text)) if language == "en" else {}
    counts: Counter[str] = Counter()
    found_in: Counter[str] = Counter()
    for words in by_text:
        found_in.update({singulars.get(word, word) for word in words})
        for word, count in words.items():
            counts[singulars.get(word, word)] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [WordCount(word, count, found_in[word]) for word, count in ordered]


def _words(text: str, language: str, stops: Collection[str], split: Tokenize) -> list[str]:
    """The words of a text that count, in order, repeated as they are."""
    composed = unicodedata.normalize("NFC", text).replace("’", "'")
    found = []
    for token in split(composed, language):
        # 13a leaves curly quotes and dashes at words.
        for word in map(str.lower, counting.words(token)):
            if word not in stops and (bare := _ENDING.sub("", word)) not in stops and _is_word(bare):
                found.append(bare)
    return found


def _is_word(word: str) -> bool:
    if not word or not word[0].isalpha() or len(word) > LONGEST_WORD or _NUMBER.fullmatch(word):
        return False
    return bool(_HAN.search(word)) or sum(map(str.isalpha, word)) > 1


def _singulars(words: Collection[str]) -> Mapping[str, str]:
    """Those English words that are the plural of another, and which."""
    return {word: singular for word in words if (singular := _singular(word, words)) is not None}


def _singular(word: str, words: Collection[str]) -> str | None:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or _NO_PLURAL.fullmatch(word):
        return None
    candidates = [word[:-1]]
    if word.endswith("ies"):
        candidates.append(word[:-3] + "y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        candidates.append(word[:-2])
    return next((c for c in candidates if len(c) > 1 and c in words), None)


def cloud_layout(
    counts: Sequence[WordCount],
    language: str,
    *,
    seed: int = 0,
    words: int = 150,
    font: FontFile | None = None,
) -> Cloud:
    """Where a cloud of the most frequent words puts each; the same for the same counts, font and seed.

    Args:
        counts: in any order.
        words: how many to take, before those that the font cannot draw are left out.
        font: None: `find_font(language)`.

    Raises:
        ConfigError: a language without a font.
        MissingExtraError: `wordcloud` or matplotlib is not installed.
    """
    font = font or find_font(language)
    taken = sorted(counts, key=lambda c: (-c.count, c.word))[:words]
    left_out = tuple(c for c in taken if font.missing(c.word))
    drawn = [c for c in taken if not font.missing(c.word)]
    placed = _place(drawn, language, font.path, seed) if drawn else ()
    inside = {word.word for word in placed}
    crowded = tuple(c for c in drawn if c.word not in inside)
    return Cloud(language, WIDTH, HEIGHT, font, placed, left_out, crowded)


def _place(counts: Sequence[WordCount], language: str, font: Path, seed: int) -> tuple[PlacedWord, ...]:
    try:
        from PIL import ImageFont
        from wordcloud import WordCloud
    except ImportError:
        raise MissingExtraError("a word cloud", INSTALL_ANALYSIS) from None
    layout = WordCloud(
        font_path=str(font),
        width=WIDTH,
        height=HEIGHT,
        margin=6,
        max_words=len(counts),
        max_font_size=LARGEST,
        min_font_size=SMALLEST,
        relative_scaling=0.5,
        # Turned Chinese is hard to read: its characters are.
        prefer_horizontal=1.0 if language == "zh" else 0.9,
        random_state=seed,
        color_func=lambda *_, **__: "black",
    ).generate_from_frequencies({c.word: c.count for c in counts})
    placed = []
    for rank, ((word, _), size, (top, left), orientation, _) in enumerate(layout.layout_):
        shade, turned = rank * SHADES // len(counts), orientation is not None
        ink = ImageFont.truetype(str(font), size).getbbox(word, anchor="ls")
        corner = (float(left), float(top))
        placed.append(_placed(counts[rank], ink, corner, float(size), turned, shade))
    return tuple(placed)


def _placed(
    count: WordCount,
    ink: tuple[float, float, float, float],
    corner: tuple[float, float],
    size: float,
    turned: bool,
    shade: int,
) -> PlacedWord:
    """From Pillow's terms (y downwards) to ours. `ink`: around the baseline's start; `corner`: its upper left one."""
    start, above, end, below = ink
    left, top = corner
    if turned:
        width, height = below - above, end - start
        x, y = left + width - below, HEIGHT - top - height - start
    else:
        width, height = end - start, below - above
        x, y = left - start, HEIGHT - top - height + below
    box = (left, HEIGHT - top - height, width, height)
    return PlacedWord(count.word, count.count, x, y, size, turned, shade, box)
