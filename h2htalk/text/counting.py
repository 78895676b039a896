"""Count a reply's length, sentences and actions, and the share of its language (docs/reference/contracts.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.data.languages import Language, find_language

# Han: the unified ideographs with their extensions, compatibility ideographs, and the marks 々 and 〇.
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
_KANA = "\u3041-\u3096\u30a1-\u30fa"


def _word_pattern(letter: str) -> str:
    """A word: letters and digits with inner apostrophes and hyphens, or a time, decimal or grouped number."""
    return rf"{letter}+(?:['’‐\-]{letter}+|(?<=\d)[:：.,](?=\d){letter}+)*"


_WORD = re.compile(_word_pattern(r"[^\W_]"))
_ZH_UNIT = re.compile(rf"[{_HAN}]|" + _word_pattern(rf"[^\W_{_HAN}]"))
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
    """Split a text into words: runs of letters and digits with inner apostrophes and hyphens; 20:00 is one."""
    return _WORD.findall(text)


def units(text: str) -> list[str]:
    """Split a Chinese text into countable units: each Han character, each run of other letters or digits."""
    return _ZH_UNIT.findall(text)


def language_units(text: str, language: Language) -> list[str]:
    """Split a text into its language's units: words, or characters and runs of others."""
    return units(text) if find_language(language).unit == "characters" else words(text)


def count_length(text: str, language: Language) -> int:
    """Count the units of a language: English words, or Chinese characters. Punctuation is not counted."""
    return len(language_units(text, language))


def split_actions(text: str) -> tuple[str, int]:
    """Remove the parts in parentheses (half or full width, also mixed); return the rest and the number of such groups.

    Nested parentheses are one group; one that never closes is plain text.
    """
    if "(" not in text and "（" not in text:
        return text, 0
    spans = _outer_groups(text)
    spoken = []
    position = 0
    for start, end in spans:
        spoken.append(text[position:start])
        position = end
    spoken.append(text[position:])
    return " ".join(spoken), len(spans)


def _outer_groups(text: str) -> list[tuple[int, int]]:
    """Find the outermost closed groups in parentheses, in one pass."""
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
    scripts, so that "KTV" or a pet's name counts as one; up to two such words are free beside Chinese.
    """
    if find_language(language).script == "Latin":
        letters = len(_LETTER.findall(text))
        return len(_LATIN_LETTER.findall(text)) >= LANGUAGE_SHARE * letters
    foreign = len(_ZH_FOREIGN.findall(text))
    if not foreign:
        return True
    han = len(_HAN_CHARACTER.findall(text))
    return (han > 0 and foreign <= _FREE_WORDS) or han >= LANGUAGE_SHARE * (han + foreign)


_END = re.compile(r"(\.(?: \.)+|[.!?…⋯。！？．]+)([\"'”’」』）)\]》]*)")
_LIST_MARK = re.compile(r"\s*(?:\d{1,2}[.．、)）]|[-*•·])\s*(?=\D)")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LAST_TOKEN = re.compile(r"(?:^|[^A-Za-z.])([A-Za-z][A-Za-z.]{0,7})$")
_INITIALS = re.compile(r"[A-Z](?:\.[A-Z])*|[a-z](?:\.[a-z])+")  # J. Smith, P.S., e.g.
_ELLIPSIS = ".…⋯ "
_HESITATION = re.compile(r"\s*[\u3400-\u9fff]{1,2}\s*")  # 嗯……好
_FIRST_PERSON = re.compile(r"I(?:\b|['’])")

# A full stop after these never ends a sentence.
_TITLES = frozenset(
    "mr mrs ms mx dr prof rev gen lt gov st mt ft vs cf".split()  # noqa: SIM905
)
# Not before a digit either: No. 5, Sept. 17.
_BEFORE_DIGITS = frozenset("no jan feb aug sept oct nov dec".split())  # noqa: SIM905
# The end of a sentence only when a capital follows; "I" is always a capital, so it is no evidence.
_SHORT_FORMS = frozenset("a.m p.m etc u.s u.k ph.d jr sr approx inc".split())  # noqa: SIM905


def count_sentences(text: str) -> int:
    """Count the sentences of a text. Stretches without a letter or digit (an emoji, `……`) are not counted.

    A sentence ends with a run of `. ! ? … 。 ！ ？` and its closing quotes, or with the line; what follows
    the last end counts too. Not an end: the point of a decimal, an abbreviation, a list number; an ellipsis
    or a quotation's own mark after which the sentence continues.
    """
    return sum(len(split_sentences(line)) for line in text.splitlines())


def split_sentences(line: str) -> list[str]:
    """Split one line into sentences, as `count_sentences` counts them, each with the marks that end it."""
    return [sentence.strip() for sentence in _pieces(line) if _LETTER_OR_DIGIT.search(sentence)]


def _pieces(line: str) -> Iterator[str]:
    """Yield the stretches of a line between the ends of sentences, without the mark of a list before them."""
    mark = _LIST_MARK.match(line)
    start = mark.end() if mark is not None else 0
    for end in _END.finditer(line, start):
        if _ends_sentence(line, start, end):
            yield line[start : end.end()]
            start = end.end()
    yield line[start:]


def _ends_sentence(line: str, start: int, end: re.Match[str]) -> bool:
    marks, closers = end.groups()
    after = line[end.end() : end.end() + 8]
    following = after.lstrip()
    if not following:
        return True
    if marks == "." and not closers:
        return _full_stop_ends(line, end.start(), after, following)
    if closers:  # `“没事。”你说` and `"Really?" she asked` go on
        return not (following[0].islower() or (after[0] == following[0] and _is_han(after[0])))
    if marks[0] in _ELLIPSIS and not marks.strip(_ELLIPSIS):
        if following[0].islower():
            return False
        return _HESITATION.fullmatch(line, start, end.start()) is None
    return True


def _full_stop_ends(line: str, position: int, after: str, following: str) -> bool:
    if after[0] in ",;:/’'-" or (after[0].isascii() and after[0].isalnum()):
        return False
    match = _LAST_TOKEN.search(line, max(0, position - 9), position)
    token = match[1] if match else ""
    lowered = token.lower()
    if lowered in _TITLES or (lowered in _BEFORE_DIGITS and following[0].isdigit()):
        return False
    if lowered in _SHORT_FORMS:
        if following[0].islower() or following[0].isdigit():
            return False
        return _FIRST_PERSON.match(following) is None
    return token == "I" or _INITIALS.fullmatch(token) is None


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character >= "\U00020000"
