"""Cut a parsed Chinese text into words and verb-object compounds into their parts, each with its kind.

Closed classes decide first, then the parser's tag, the dictionary's class and the neighbours together: parser and
dictionary are both often wrong about everyday words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from h2htalk.analysis.verb_nouns import chinese_words as lists

if TYPE_CHECKING:
    from spacy.tokens import Doc

LONGEST_CLAUSE = 200  # tokens; the rules look back and forth, so a longer clause is cut
_QUOTES = frozenset("“”‘’《》〈〉「」『』\"'")
# The characters of a word or of a part of it, the parser's tag or "", the index of the word in the doc.
WordPart = tuple[str, str, int]


class Kind:
    """The kind of a token: one character each, so that a clause is a string."""

    VERB, NOUN, PRONOUN, NUMERAL, CLASSIFIER, ADJECTIVE, ADVERB = "VNRMQAB"
    OF, ASPECT, RESULT, LOCALIZER, TIME, CONJUNCTION, PREPOSITION = "ULCFTKP"
    DISPOSAL, GIVE, PASSIVE, MANNER, PARTICLE, STOP, AUXILIARY = "HGJOSWX"


@dataclass(frozen=True, slots=True)
class ChineseToken:
    """A word or part of one; `kind` is one of Kind, `token` the index of its word in the doc."""

    text: str
    kind: str
    token: int


_CLOSED = dict(zip("的得地把将给被、", "USSHHGJK", strict=True))
# A word in two classes belongs to the last.
_KIND_OF = dict.fromkeys(lists.MODALS, Kind.VERB) | dict.fromkeys(lists.PREPOSITIONS, Kind.PREPOSITION)
_KIND_OF |= dict.fromkeys(lists.CONJUNCTIONS, Kind.CONJUNCTION) | dict.fromkeys(lists.PARTICLES, Kind.PARTICLE)
_KIND_OF |= dict.fromkeys(lists.ADVERBS, Kind.ADVERB) | dict.fromkeys(lists.TIMES, Kind.TIME)
_KIND_OF |= dict.fromkeys(lists.NUMERALS, Kind.NUMERAL) | dict.fromkeys(lists.PRONOUNS, Kind.PRONOUN)
_KIND_OF |= dict.fromkeys(lists.AUXILIARIES, Kind.AUXILIARY)


def chinese_tokens(doc: Doc) -> list[ChineseToken]:
    """The words of a parsed text in order, without white space and quotation marks, each with its kind."""
    words = [(t.text, t.pos_, t.i) for t in doc if not t.is_space and t.text not in _QUOTES]
    parts = [(part, tag, at) for text, was, at in _joined(words) for part, tag in cut(text, was)]
    tokens: list[ChineseToken] = []
    for (text, tag, at), after in zip(parts, [*parts[1:], ("", "", 0)], strict=False):
        tokens.append(ChineseToken(text, _kind(text, tag, tokens, after), at))
    return tokens


def _joined(words: list[WordPart]) -> list[WordPart]:
    """Move word borders: 充电|器 and 掌控|感 become one word, 看场|电影 a verb, a measure and a noun."""
    joined: list[WordPart] = []
    for (text, tag, at), (after, _, _) in zip(words, [*words[1:], ("", "", 0)], strict=False):
        before, was, _ = joined[-1] if joined else ("", "", 0)
        first, verbal, _ = joined[-2] if len(joined) > 1 else ("", "", 0)
        suffix = text in lists.SUFFIXES and tag in ("NOUN", "PART") and was in ("NOUN", "VERB", "ADJ")
        end = len(text) == 1 < len(before) and (tag == "PART" or text not in lists.FUNCTIONAL)
        result = verbal == "VERB" and before in ("不", "得") and text in lists.AFTER_VERB
        measured = text not in lists.KNOWN and text[0] in lists.FREE_VERBS and text[1:] in lists.MEASURES
        if suffix or (end and lists.is_noun(before + text)):
            joined[-1] = (before + text, "NOUN", at)
        elif before == "一" and first == text and text in lists.FREE_VERBS:
            joined[-2:] = [(first + before + text, "VERB", at)]  # 看一看
        elif result or (before and before + text in lists.SPLIT):
            joined[-1] = (before + text, "VERB", at)  # 作|为, 找|不|到
        elif measured and lists.is_noun(after):
            joined += [(text[0], "VERB", at), (text[1], "", at)]
        else:
            joined.append((text, tag, at))
    return joined


@lru_cache(65536)
def cut(text: str, tag: str) -> tuple[tuple[str, str], ...]:
    """Cut a word into the parts that the rules need apart, each with its tag ("" where unknown)."""
    whole = ((text, tag),)
    if len(text) < 2 or text in lists.KNOWN | lists.NOUNS | lists.PEOPLE or not lists.is_han(text):
        return whole
    first, rest = text[0], text[1:]
    stuck = first == "太" or (first in lists.STUCK and (rest in lists.FREE_VERBS or rest in "去来"))
    if stuck and text not in lists.ADVERBIAL_WORDS:
        return ((first, "ADV" if first not in lists.MODALS else "VERB"), (rest, "VERB"))
    counted = rest == "钱" or (rest in lists.FREE_NOUNS and not lists.is_listed(text))
    if first in lists.CLASSIFIERS and counted:
        return ((first, ""), (rest, "NOUN"))  # 首歌
    if rest in lists.COMPOUNDS.get(first, ""):
        return whole if text in lists.NOUNS_LIKE_COMPOUNDS else ((first, "VERB"), (rest, "NOUN"))
    if first in lists.FREE_VERBS and rest[0] in lists.AFTER_VERB and _is_object(rest[1:]):
        return ((text[:2], "VERB"), (rest[1:], "NOUN"))  # 关上门
    if lists.is_listed(text):
        return whole
    noun = _is_object(rest)
    if first in lists.FREE_VERBS and noun:
        return ((first, "VERB"), (rest, "NOUN"))
    if first in lists.BEFORE_VERB and (_is_verb(rest) or rest in lists.KNOWN):
        return ((first, "ADV"), (rest, "VERB"))
    stuck = first in lists.ENDINGS or first in lists.CLASSIFIERS or first in "新旧老小大热冷脏"
    return ((first, "ADJ"), (rest, "NOUN")) if stuck and noun else whole


def _is_object(word: str) -> bool:
    return lists.word_class(word)[:1] == "n" if len(word) > 1 else word in lists.FREE_NOUNS


def _is_verb(word: str) -> bool:
    return word in lists.FREE_VERBS or (len(word) > 1 and lists.word_class(word)[:1] == "v")


def _starts_object(part: WordPart) -> bool:
    text, tag, _ = part
    completed = text[:1] in lists.FREE_VERBS and text[1:] in lists.AFTER_VERB
    return not completed and (tag in ("NOUN", "PROPN", "NUM", "DET") or text in lists.NUMERALS)


def _kind(text: str, tag: str, before: list[ChineseToken], after: WordPart) -> str:
    last = before[-1].kind if before else Kind.STOP
    if not text[0].isalnum():
        return _CLOSED.get(text, Kind.STOP)
    if text in lists.ASPECTS and not (text == "过" and last in "XWRT"):
        return Kind.ASPECT
    acts = _is_verb(text) or (text[0] in lists.FREE_VERBS and text[1:] in lists.AFTER_VERB)
    if acts and after[0] in lists.ASPECTS and last not in Kind.VERB + Kind.OF + Kind.CLASSIFIER:
        return Kind.VERB
    named = last in "UQ" or (last in "NKA" and not after[0][:1].isalnum())
    if tag == "NOUN" and named and len(text) > 1 and text in lists.MODALS | lists.GOING and text != "开始":
        return Kind.NOUN  # 行动计划
    if text == "等" and any(token.text == "、" for token in before[-LONGEST_CLAUSE:]):
        return Kind.PARTICLE
    if text in lists.CLASSIFIERS or text == "下":
        if last == Kind.NUMERAL:
            return Kind.TIME if text in lists.TIME_UNITS else Kind.CLASSIFIER
        bare = text in lists.MEASURES and last in Kind.VERB + Kind.ASPECT + Kind.RESULT and after[1] != "NUM"
        if bare and (_starts_object(after) or after[0] in lists.FREE_NOUNS or after[1] == "ADJ"):
            return Kind.CLASSIFIER
    if text in _CLOSED and not (text == "地" and last == Kind.VERB):  # 扫地
        return _CLOSED[text]
    return _closed_kind(text, before, after) or _open_kind(text, tag, before, after)


def _closed_kind(text: str, before: list[ChineseToken], after: WordPart) -> str | None:
    last = before[-1].kind if before else Kind.STOP
    if text in lists.NOUNS or (text in lists.PEOPLE and len(text) > 1):
        return Kind.NOUN
    if text in lists.GOING and len(text) > 1 and last not in Kind.OF + Kind.CLASSIFIER:
        return Kind.VERB
    if text in lists.AFTER_VERB and last == Kind.VERB and before[-1].text not in lists.MODALS:
        return Kind.RESULT
    if text in lists.LOCALIZERS and last in "NTRUQFLV":
        return Kind.LOCALIZER
    if text in ("没", "没有", "有没有"):
        return Kind.VERB if _starts_object(after) or after[0] in ("什么", "啥") else Kind.ADVERB
    counted = text[1:] in lists.CLASSIFIERS or lists.NUMERAL_CHARACTERS.issuperset(text)
    kind = _KIND_OF.get(text)
    if text[0] in lists.NUMERAL_CHARACTERS and counted and kind != Kind.ADVERB:
        return Kind.NUMERAL
    acts = text in lists.FREE_VERBS and _starts_object(after)
    return None if acts and kind in (Kind.ADVERB, Kind.PARTICLE, Kind.NUMERAL) else kind


def _open_kind(text: str, tag: str, before: list[ChineseToken], after: WordPart) -> str:
    """Verb, noun, adjective or adverb, where parser and dictionary may disagree."""
    last = before[-1].kind if before else Kind.STOP
    listed = "n" if text in lists.NOUNS else lists.word_class(text)[:1]
    modified = last in Kind.OF + Kind.CLASSIFIER + Kind.DISPOSAL
    verbal = tag in ("VERB", "AUX", "") or (len(text) == 1 and tag == "ADP")
    if not lists.is_han(text):
        return Kind.NOUN if text[0].isalpha() else Kind.NUMERAL
    kinds = "".join(token.kind for token in before[-LONGEST_CLAUSE:])
    moved = max(map(kinds.rfind, Kind.VERB + Kind.STOP)) < kinds.rfind(Kind.DISPOSAL) < len(kinds) - 1
    if moved and (listed == "v" or tag == "VERB" or text in lists.FREE_VERBS):  # behind 把 and its noun
        return Kind.VERB
    if text in lists.FREE_VERBS:
        takes = after[1] == "NUM" or (last in "TNK" and after[1] in ("NOUN", "PROPN"))
        return Kind.VERB if takes or (not modified and (verbal or last in "BXWR")) else Kind.NOUN
    if text[0] == text[1:] and (tag != "NOUN" or text[0] in lists.FREE_VERBS):
        return Kind.VERB if text[0] in lists.FREE_VERBS or text in lists.DOUBLED else Kind.ADVERB
    if not verbal and not (tag == "ADV" and text[0] in lists.FREE_VERBS and text[1:] in lists.AFTER_VERB):
        return _nominal(tag, last, listed, after)
    ends = not after[0][:1].isalnum()
    if listed == "a":
        return Kind.NOUN if ends and last == Kind.CLASSIFIER else Kind.ADJECTIVE
    verb = next((token for token in reversed(before) if token.kind not in Kind.ASPECT + Kind.NUMERAL), None)
    deed = ends and verb is not None and verb.kind == Kind.VERB and verb.text in lists.WITH_DEEDS  # 有帮助
    named = listed == "n" and (modified or (last in "LMVN" and not _starts_object(after)))
    return Kind.NOUN if deed or named or (last == Kind.OF and len(text) > 1) else Kind.VERB


def _nominal(tag: str, last: str, listed: str, after: WordPart) -> str:
    """The kind of a longer word that the parser calls anything but a verb."""
    if tag in ("NOUN", "PROPN") or (tag == "PART" and last == Kind.NOUN):
        return Kind.NOUN
    if tag == "ADJ":
        verb = Kind.VERB if listed == "v" and last in "BXR" and after[1] == "PRON" else Kind.ADJECTIVE
        return Kind.NOUN if (listed == "n" or last in "UAQ") and after[0] != "的" else verb
    adverbial = tag in ("ADV", "CCONJ", "SCONJ")
    return Kind.ADVERB if adverbial else {"n": Kind.NOUN, "v": Kind.VERB, "a": Kind.ADJECTIVE}.get(listed, Kind.ADVERB)
