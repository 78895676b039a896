"""Two forms of a text for the lexical metrics: without what nobody sees in it, and without its typography as well.

`seen_text` is what every lexical value is computed on: line ends, kinds of space, invisible characters and decomposed
letters are no difference that a reader could notice. `folded_text` also writes quotes, dashes, dots and the width of
punctuation in one way: a reader sees these, and the authors' metric counts them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from h2htalk.data.languages import find_language

# Control characters that are no white space, and Unicode's Default_Ignorable_Code_Point: soft hyphens, zero-width
# spaces, marks of direction, byte order marks, fillers, variation selectors, tags. The joiner U+200D is apart.
_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e"
    "\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
# Between two emoji the joiner makes another one of them, which a reader sees.
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_JOINER = re.compile(f"(?<![{_EMOJI}])\u200d+|\u200d+(?![{_EMOJI}])")
# `\r\r\n` is a line end that was converted twice. (The look-behind keeps a long run of `\r` linear.)
_LINE_END = re.compile("(?<!\r)\r*\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Tabs, no-break, thin and ideographic spaces, and Braille's blank too.
_SPACES = re.compile(r"(?:[^\S\n]|\u2800)+")
_LINE_SPACES = re.compile(r" +\n")
_SAME_HYPHENS = str.maketrans("\u2010\u2011", "--")  # the hyphen of its own and the no-break hyphen
# What one of the steps of `seen_text` would change, composition apart: most texts have none of it.
_CHANGED = re.compile(f"[{_UNSEEN}\u200d\u2010\u2011\u2800]|[^\\S\n ]|  | \n|\\A\\s|\\s\\Z")


def seen_text(text: str) -> str:
    """Return a text without differences that nobody sees.

    Letters are composed (NFC), every line end is `\\n`, each run of white space within a line one space, with none at
    the line's end, and there are no invisible characters.
    """
    if _CHANGED.search(text) is None and unicodedata.is_normalized("NFC", text):
        return text
    visible = _JOINER.sub("", _INVISIBLE.sub("", text))
    composed = unicodedata.normalize("NFC", visible).translate(_SAME_HYPHENS)
    lines = _LINE_END.sub("\n", composed)
    return _LINE_SPACES.sub("\n", _SPACES.sub(" ", lines)).strip()


# Full-width forms of ASCII, and typographic ligatures, as the letters that they show.
_FORMS: Mapping[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{
        code: unicodedata.normalize("NFKC", chr(code))
        for code in (*range(0xFB00, 0xFB07), *range(0xFF61, 0xFF66))
    },
    0xFFE5: "\u00a5",
}
_SINGLE_QUOTES = (
    "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u00b4\u02b9\u02bb\u02bc\u02c8`『』﹃﹄"
)
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u02ba〝〞〟「」﹁﹂"
_QUOTES = {
    **dict.fromkeys(map(ord, _SINGLE_QUOTES), "'"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
}
_MIDDLE_DOTS = dict.fromkeys(map(ord, "•‧∙⋅・･"), "·")
_TILDES = dict.fromkeys(map(ord, "〜∼˜"), "~")
_ANY_LANGUAGE = str.maketrans({**_FORMS, **_QUOTES, **_MIDDLE_DOTS, **_TILDES})

_ELLIPSIS = re.compile(r"[…⋯‥]+|(?:\. ?){2,}\.|\.{2,}|。{2,}")
_RANGE = re.compile(r"(?<=[0-9]) ?[‒–—−] ?(?=[0-9])")
_DASH = re.compile(r" *(?:[‒–—―─━−﹘]+|--+) *")
_SPACED_HYPHEN = re.compile(r" +- +")
_ENGLISH_UNCHANGED = re.compile(r"(?!.*(?:\.\.|\. \.|--|`))[\x00-\x7f]*", re.DOTALL)
_TO_ENGLISH = str.maketrans("，。、；：！？（）【】〔〕〖〗《》〈〉", ",.,;:!?()[][][]<><>")


def _fold_english(text: str) -> str:
    """ASCII punctuation; a dash between words has a space on both sides."""
    if _ENGLISH_UNCHANGED.fullmatch(text):
        return text
    ascii_marks = text.translate(_ANY_LANGUAGE).translate(_TO_ENGLISH)
    dots = _ELLIPSIS.sub("...", ascii_marks)
    return _DASH.sub(" - ", _RANGE.sub("-", dots)).strip()


_TO_CHINESE = str.maketrans(",、;:!?()[]〔〕〖〗<>〈〉~", "，，；：！？（）【】【】【】《》《》～")
_FULL_STOP = re.compile(r"(?<![A-Za-z0-9])\.|\.(?![A-Za-z0-9])")
_CHINESE_SPACES = re.compile(r"(?<![A-Za-z0-9\n]) +| +(?![A-Za-z0-9])")


def _fold_chinese(text: str) -> str:
    """Full-width punctuation, and spaces between Latin words or numbers alone.

    Half-width marks have a space after them, and some write one between Chinese and Latin letters.
    """
    full_width = text.translate(_ANY_LANGUAGE).translate(_TO_CHINESE)
    dots = _FULL_STOP.sub("。", _ELLIPSIS.sub("……", full_width))
    dashes = _SPACED_HYPHEN.sub("——", _DASH.sub("——", _RANGE.sub("-", dots)))
    return _CHINESE_SPACES.sub("", dashes).strip()


_MOST_FOLDS = 4  # more were never needed
# By whether a language separates its words by spaces.
_FOLDS: Mapping[bool, Callable[[str], str]] = {True: _fold_english, False: _fold_chinese}


def folded_text(seen: str, language: str) -> str:
    """Return a `seen_text` with one form of quotes, dashes, dots and widths.

    Raises ConfigError for an unknown language.
    """
    fold = _FOLDS[find_language(language).spaced]
    folded = fold(seen)
    # Marks that were folded apart may now stand beside each other: `….` became four full stops, which are dots again.
    for _ in range(_MOST_FOLDS):
        refolded = fold(seen_text(folded))
        if refolded == folded:
            break
        folded = refolded
    return folded
