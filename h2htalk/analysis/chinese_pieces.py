"""A parsed Chinese text as the verb-noun rules read it: its words, each with its kind.

Kinds come from closed classes first, then from the parser's tag, the dictionary's class and the neighbours together,
for parser and dictionary are both often wrong about everyday words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2htalk.analysis import chinese_words as lists
from h2htalk.analysis.chinese_borders import Part
from h2htalk.analysis.chinese_kinds import Kind, Next, Piece, goes_on, is_thing, open_kind, starts_object
from h2htalk.analysis.chinese_recut import parts

if TYPE_CHECKING:
    from spacy.tokens import Doc

_QUOTES = frozenset("“”‘’《》〈〉「」『』\"'")
# Verbs of one character that are no result before a noun.
_FULL_VERBS = lists.FREE_VERBS - {"到", "开", "上", "下", "掉", "起", "出"}
# What 想 comes to: 想明白了.
_THOUGHT = frozenset(("明白", "清楚", "通"))
_CLOSED = {
    "的": Kind.OF,
    "得": Kind.MANNER,
    "地": Kind.WAY,
    "把": Kind.DISPOSAL,
    "将": Kind.DISPOSAL,
    "给": Kind.GIVE,
    "被": Kind.PASSIVE,
    "、": Kind.CONJUNCTION,
}


def pieces(doc: Doc) -> list[Piece]:
    """The doc's words in order, white space and quotation marks left out, each with its kind."""
    cut = parts(_words(doc))
    found: list[Piece] = []
    for at, (text, tag, token) in enumerate(cut):
        beyond = cut[at + 2][0] if at + 2 < len(cut) else ""
        following = (*cut[at + 1][:2], beyond) if at + 1 < len(cut) else ("", "", "")
        if tag in ("VERB", "NOUN") and beyond == "的" and is_thing(following):
            tag = "ACL" if tag == "VERB" or lists.word_class(text)[:1] == "v" else tag  # 一个研究鲸鱼的女生
        found.append(Piece(text, _kind(text, tag, found, following), token))
    return found


def _words(doc: Doc) -> list[Part]:
    """Each word's text, tag and place: white space and quotation marks left out.

    Read from one array: a token object a word costs a fourth of all rules.
    """
    from spacy.attrs import DEP, IS_SPACE, ORTH, POS

    strings = doc.vocab.strings
    words: list[Part] = []
    for at, (orth, pos, dep, is_space) in enumerate(doc.to_array([ORTH, POS, DEP, IS_SPACE]).tolist()):
        text, tag = strings[orth], strings[pos]
        if not is_space and text not in _QUOTES:
            words.append((text, "ACL" if tag == "VERB" and strings[dep][:3] == "acl" else tag, at))
    return words


def _kind(text: str, tag: str, before: list[Piece], following: Next) -> str:
    last = before[-1].kind if before else Kind.STOP
    if not text[0].isalnum():
        return _CLOSED.get(text, Kind.STOP)
    if text in lists.ASPECTS:
        return Kind.VERB if text == "过" and last not in "VCN" else Kind.ASPECT
    if (
        text in lists.FREE_VERBS
        and following[0] in lists.ASPECTS
        and text not in _CLOSED
        and not (last == Kind.VERB and text in lists.RESULTS)
    ):
        return Kind.VERB
    if (
        len(before) > 1
        and text == before[-2].text
        and before[-1].text in "一了"
        and before[-2].kind == Kind.VERB
    ):
        return Kind.VERB  # 试一试
    if text in lists.BOUND_OBJECTS and text in lists.SEPARABLE.get(_verb_before(before), ""):
        return Kind.NOUN
    if (text in lists.CLASSIFIERS or (text == "地" and last == Kind.NUMERAL)) and (
        found := _kind_of_classifier(text, last, following)
    ):
        return found
    if text in _CLOSED:
        return _kind_of_function_word(text, tag, last, following)
    return _closed_kind(text, before, following) or open_kind(text, tag, before, following)


def _verb_before(before: list[Piece]) -> str:
    """The one-character verb that stands in this clause last, for what may be the rest of a separable word."""
    for piece in reversed(before[-6:]):
        if piece.kind == Kind.STOP:
            return ""
        if piece.kind == Kind.VERB:
            return piece.text[0]
    return ""


def _kind_of_classifier(text: str, last: str, following: Next) -> str | None:
    if last == Kind.NUMERAL:
        if text == "地":
            return Kind.CLASSIFIER
        return (
            Kind.TIME
            if text in lists.TIME_UNITS and not (text == "点" and lists.is_noun(following[0]))
            else Kind.CLASSIFIER
        )
    if last in Kind.VERB + Kind.ASPECT + Kind.RESULT and following[0] not in lists.ASPECTS:
        named = is_thing(following) or following[0] in lists.FREE_NOUNS  # 喝口茶, whatever the parser's tag
        if text in lists.BARE_CLASSIFIERS:
            return Kind.CLASSIFIER if named or starts_object(following) or following[1] == "ADJ" else None
        if text in lists.VESSELS and last == Kind.VERB and named:
            return Kind.CLASSIFIER
    if (
        last == Kind.NOUN
        and text not in lists.LOCALIZERS
        and text not in lists.PREPOSITIONS
        and text not in lists.FREE_VERBS
        and text not in _CLOSED
        and text not in lists.FUNCTIONAL
    ):
        return Kind.NOUN
    return None


def _kind_of_function_word(text: str, tag: str, last: str, following: Next) -> str:
    if text == "得" and last not in "VAC":
        return Kind.AUXILIARY if following[0] not in lists.ASPECTS else Kind.VERB
    if text == "地" and following[1] != "VERB" and (last in "VC" or following[0] in lists.ASPECTS):
        return Kind.NOUN
    if text == "将" and tag == "ADV":
        return Kind.ADVERB
    return _CLOSED[text]


def _closed_kind(text: str, before: list[Piece], following: Next) -> str | None:
    """The kind of a word of a closed class, or None."""
    last = before[-1].kind if before else Kind.STOP
    if text in lists.NOUNS or (text in lists.PEOPLE and len(text) > 1):
        return Kind.NOUN
    if text in lists.SURE_VERBS and last not in Kind.OF + Kind.CLASSIFIER:
        return Kind.VERB
    if (
        last == Kind.VERB
        and (before[-1].text not in lists.MODALS or (text in _THOUGHT and following[0] in lists.ASPECTS))
        and text in lists.AFTER_VERB
        and _ends_action(text, following)
    ):
        return Kind.RESULT
    if text in lists.LOCALIZERS and (found := _kind_of_localizer(text, last, following)):
        return found
    if (
        text in lists.AFTER_VERB
        and len(before) > 1
        and before[-1].text in ("不", "得")
        and before[-2].kind == Kind.VERB
    ):
        return Kind.RESULT
    if text == "整" and last == Kind.NUMERAL:
        return Kind.ADJECTIVE
    if text == "会" and last == Kind.CLASSIFIER:
        return Kind.NOUN
    if text in ("没", "没有", "有没有"):
        return Kind.VERB if starts_object(following) else Kind.ADVERB
    if text in lists.AUXILIARIES:
        return Kind.AUXILIARY
    if text in lists.PRONOUNS:
        return Kind.PRONOUN
    if text in lists.FREE_VERBS and text in lists.NUMERALS and last not in "VLCMA" and is_thing(following):
        return Kind.VERB
    if (
        text in lists.DETERMINERS
        or text in lists.NUMERALS
        or lists.NUMERAL_CHARACTERS.issuperset(text)
        or (
            text[0] in lists.NUMERAL_CHARACTERS and text[1:] in lists.COUNTED and text not in lists.ADVERBS
        )  # 半包
    ):
        return Kind.NUMERAL
    if text == "家" and before and before[-1].text in ("想", "爱", "顾", "离开"):
        return Kind.NOUN
    if text in lists.TIMES or text in lists.PLACES:
        return Kind.TIME
    if text in lists.ADVERBS:
        return _kind_of_adverb(text, following)
    if text in lists.PARTICLES:
        return Kind.PARTICLE
    if text in lists.CONJUNCTIONS:
        return Kind.CONJUNCTION
    if text in lists.PREPOSITIONS:
        return Kind.PREPOSITION
    return Kind.VERB if text in lists.MODALS else None


def _ends_action(text: str, following: Next) -> bool:
    """Whether a word that can be a result is one here, and no verb or adjective of its own."""
    if text in ("去", "来", "想", "哭", "赢", "输", "死", "会", "给"):
        return text in "来死" and (following[0] in lists.ASPECTS or following[0] in lists.NUMERALS)
    return not (text in _FULL_VERBS and is_thing(following))


def _kind_of_adverb(text: str, following: Next) -> str | None:
    if text == "好" and following[0] in ("几", "多", "些"):
        return Kind.NUMERAL
    if following[0] in lists.ASPECTS and len(text) > 1 and goes_on(following):
        return Kind.VERB
    if text in lists.FREE_VERBS and (starts_object(following) or following[0] in lists.ASPECTS):
        return None
    return Kind.ADJECTIVE if text in "老好" and is_thing(following) else Kind.ADVERB


def _kind_of_localizer(text: str, last: str, following: Next) -> str | None:
    if text in "上下" and (following[0] in ("课", "班") or following[0][:1] == "第"):
        return Kind.VERB
    if (
        text in lists.FREE_VERBS
        and following[0] in lists.MEASURES
        and following[2] in lists.COMPOUNDS.get(text, ())
    ):
        return Kind.VERB  # 下盘棋
    if last in "VC" and is_thing(following):
        return None
    if last == Kind.NUMERAL and text in "上下":
        return Kind.CLASSIFIER
    if last == Kind.STOP or (last in "BXP" and len(text) == 1):
        return None
    return Kind.LOCALIZER if last in "NTRUQFLV" or len(text) > 1 else None
