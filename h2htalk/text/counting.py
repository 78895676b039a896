"""Counting a reply: length, sentences, actions and the share of its language (docs/contracts.md)."""

from __future__ import annotations

import re

from h2htalk.data.languages import Language, find_language

# Han: the unified ideographs with their extensions, compatibility ideographs, and the marks 々 and 〇.
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
_KANA = "\u3041-\u3096\u30a1-\u30fa"

# A word: letters and digits with inner apostrophes and hyphens, or a time, decimal or grouped number.
_INNER = r"(?:['’‐\-]{0}+|(?<=\d)[:：.,](?=\d){0}+)*"
_LETTERS = r"[^\W_]"
_LETTERS_NOT_HAN = rf"[^\W_{_HAN}]"
_WORD = re.compile(_LETTERS + "+" + _INNER.format(_LETTERS))
_ZH_UNIT = re.compile(rf"[{_HAN}]|{_LETTERS_NOT_HAN}+" + _INNER.format(_LETTERS_NOT_HAN))
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_LATIN_LETTER = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024fＡ-Ｚａ-ｚ]")
_LETTER = re.compile(r"[^\W\d_]")
# For the language of a Chinese reply: kana weigh like Han characters, other scripts by the word.
_ZH_FOREIGN = re.compile(rf"[{_KANA}]|[^\W\d_{_HAN}{_KANA}]+(?:['’‐\-][^\W\d_{_HAN}{_KANA}]+)*")

_BRACKET = re.compile("[()（）]")

LANGUAGE_SHARE = 0.7
# "我的猫叫Biscuit" must pass: a Chinese reply may always hold two words of another script.
_FREE_WORDS = 2


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits with inner apostrophes and hyphens; 20:00 is one."""
    return _WORD.findall(text)


def units(text: str) -> list[str]:
    """The countable units of a Chinese text: each Han character, each run of other letters or digits."""
    return _ZH_UNIT.findall(text)


def language_units(text: str, language: Language) -> list[str]:
    """What a language counts: its words, or its characters and runs of others."""
    return units(text) if find_language(language).unit == "characters" else words(text)


def count_length(text: str, language: Language) -> int:
    """Length in the language's unit: English words, or Chinese characters. Punctuation is not counted."""
    return len(language_units(text, language))


def split_actions(text: str) -> tuple[str, int]:
    """The text without what stands in parentheses (half or full width, also mixed), and how many such
    groups there were. Nested parentheses are one group; one that never closes is plain text."""
    if "(" not in text and "（" not in text:
        return text, 0
    spans = _outer_groups(text)
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True)), len(spans)


def _outer_groups(text: str) -> list[tuple[int, int]]:
    """Where closed groups in parentheses begin and end, outermost ones only, in one pass."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in "(（":
            opened.append(bracket.start())
        elif opened:
            start = opened.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, bracket.end()))
    return spans


def is_in_language(text: str, language: Language) -> bool:
    """Whether at least 70 % of the text is in the language. Text without letters is in any language.

    English: Latin letters of all letters. Chinese: Han characters of Han characters plus words of other
    scripts, so that "KTV" or a pet's name weighs one; up to two such words are free beside Chinese.
    """
    if find_language(language).script == "Latin":
        letters = len(_LETTER.findall(text))
        return len(_LATIN_LETTER.findall(text)) >= LANGUAGE_SHARE * letters
    foreign = len(_ZH_FOREIGN.findall(text))
    if not foreign:
        return True
    han = len(_HAN_CHARACTER.findall(text))
    return (han > 0 and foreign <= _FREE_WORDS) or han >= LANGUAGE_SHARE * (han + foreign)
