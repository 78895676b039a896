"""What kind of word stands in a Chinese clause, where parser and dictionary may disagree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from h2htalk.analysis import chinese_words as lists


class Kind:
    """What a piece is, one character a kind, so that a clause is a string."""

    VERB, NOUN, PRONOUN, NUMERAL, CLASSIFIER, ADJECTIVE, ADVERB = "VNRMQAB"
    OF, ASPECT, RESULT, LOCALIZER, TIME, CONJUNCTION, PREPOSITION = "ULCFTKP"
    DISPOSAL, GIVE, PASSIVE, MANNER, WAY, PARTICLE, STOP = "HGJOISW"
    AUXILIARY = "X"


# Words without a mark between them; the rules look back and forth, so what nobody writes is cut here.
LONGEST_CLAUSE = 200

Next = tuple[str, str, str]  # text and tag of the next part, text of the one after it

_PLAIN_VERBS = lists.FREE_VERBS - lists.MODALS - lists.CLAUSAL
# Verbs that are nouns as often.
_NOUNS_TOO = frozenset("花画包锁刷盖铲扣夹生数点面线种背编奖报钉锯磨签印")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word or part of one; `kind` is one of Kind, `token` the place of its word in the doc."""

    text: str
    kind: str
    token: int


def is_thing(part: Next) -> bool:
    return part[1] in ("NOUN", "PROPN")


def starts_object(part: Next) -> bool:
    text, tag, _ = part
    if (
        text in lists.MODALS
        or text in lists.ADVERBS
        or (text[:1] in lists.FREE_VERBS and text[1:] in lists.RESULTS)
    ):
        return False
    return tag in ("NOUN", "PROPN", "NUM", "DET") or text in lists.NUMERALS or text in ("什么", "人", "任何")


def open_kind(text: str, tag: str, before: list[Piece], following: Next) -> str:
    """Verb, noun, adjective or adverb, where parser and dictionary may disagree."""
    last = before[-1].kind if before else Kind.STOP
    listed = "n" if text in lists.NOUNS else lists.word_class(text)[:1]
    if len(text) == 1 and (found := _short_kind(text, tag, before, following)):
        return found
    modified = last in (Kind.OF, Kind.CLASSIFIER, Kind.DISPOSAL) and tag != "ACL"
    if len(text) == 2 and text[0] == text[1] and tag != "NOUN":
        return Kind.VERB if text[0] in lists.FREE_VERBS and last != Kind.NUMERAL else Kind.ADVERB
    if len(text) == 2 and text[0] == text[1] in lists.FREE_VERBS and lists.word_class(text)[:1] != "n":
        return Kind.VERB
    if _awaited(before) and (text in lists.FREE_VERBS or listed == "v"):
        return Kind.VERB
    if (
        len(text) == 2
        and following[0] in ("", "。", "，", "！", "？", "～")
        and before
        and before[-1].text in lists.WITH_DEEDS
    ):
        return Kind.NOUN  # 有帮助
    if (len(text) == 2 and text[0] in lists.FREE_VERBS and text[1] in lists.AFTER_VERB and not modified) and (
        listed != "n" or text[1] in "进到给在成" or last in "BX" or _awaited(before)
    ):
        return Kind.VERB
    if (
        following[0] in lists.ASPECTS
        and last != Kind.VERB
        and len(text) > 1
        and listed in ("v", "n", "d", "a")
        and goes_on(following)
    ):
        return Kind.VERB
    if not lists.is_han(text):
        return Kind.NOUN
    if tag in ("VERB", "AUX", "ACL", ""):
        return _verbal(text, tag, before, listed, modified, following)
    return _nominal(text, tag, before, listed, modified, following)


def _short_kind(text: str, tag: str, before: list[Piece], following: Next) -> str | None:
    """The kind of a one-character word that can be a verb or the object of one; None for others."""
    last = before[-1].kind if before else Kind.STOP
    modified = last in (Kind.OF, Kind.CLASSIFIER, Kind.DISPOSAL) and tag != "ACL"
    if text in lists.FREE_NOUNS:
        if last == Kind.ADJECTIVE and following[0] not in lists.ASPECTS:
            return Kind.NOUN
        if tag == "" and last in Kind.VERB + Kind.RESULT + Kind.ASPECT + Kind.NUMERAL + Kind.CLASSIFIER:
            return Kind.NOUN
    if text not in lists.FREE_VERBS:
        return None
    if _awaited(before):
        return Kind.VERB
    if (
        (modified or (last == Kind.ADJECTIVE and tag != "VERB"))
        and following[0] not in lists.ASPECTS
        and following[0] not in lists.PRONOUNS
    ):
        return Kind.NOUN
    taking = (
        following[0] in lists.ASPECTS
        or following[0] in lists.NUMERALS
        or following[0] in lists.RESULTS
        or following[0] in lists.PRONOUNS
    )
    if last in Kind.TIME + Kind.NOUN + Kind.CONJUNCTION and is_thing(following) and text not in _NOUNS_TOO:
        return Kind.VERB
    return Kind.VERB if tag in ("VERB", "AUX", "ADP", "ACL", "") or taking or last in "BXWR" else Kind.NOUN


def _nominal(text: str, tag: str, before: list[Piece], listed: str, modified: bool, following: Next) -> str:
    """The kind of a longer word that the parser calls anything but a verb."""
    last = before[-1].kind if before else Kind.STOP
    taking = following[0] in lists.ASPECTS or (starts_object(following) and last in "BXR")
    if listed == "v" and not modified and (taking or (before and before[-1].text in lists.MODALS)):
        return Kind.VERB
    if tag in ("NOUN", "PROPN") or (tag == "PART" and last == Kind.NOUN):
        return Kind.ADJECTIVE if before and before[-1].text in lists.DEGREES else Kind.NOUN
    if last == Kind.DISPOSAL:
        return Kind.NOUN
    if tag == "ADJ":
        if (
            (listed == "n" or last in (Kind.OF, Kind.ADJECTIVE, Kind.CLASSIFIER))
            and not is_thing(following)
            and following[0] != "的"
            and last not in "BX"
        ):
            return Kind.NOUN
        return Kind.VERB if listed == "v" and last in "BX" else Kind.ADJECTIVE
    if tag in ("ADV", "CCONJ", "SCONJ"):
        return Kind.ADVERB
    return {"n": Kind.NOUN, "v": Kind.VERB, "a": Kind.ADJECTIVE}.get(listed, Kind.ADVERB)


def goes_on(following: Next) -> bool:
    """Whether something stands behind the next word that an aspect's verb may act on."""
    beyond = following[2]
    return bool(beyond) and beyond[0].isalnum() and beyond not in lists.PARTICLES and beyond not in "的吗"


def _awaited(before: list[Piece]) -> bool:
    """Whether 把 or 将 and its noun stand before, and no verb yet."""
    for piece in islice(reversed(before), LONGEST_CLAUSE):
        if piece.kind in (Kind.VERB, Kind.STOP):
            return False
        if piece.kind == Kind.DISPOSAL:
            return before[-1] is not piece
    return False


def _only_noun(text: str, before: list[Piece], listed: str, following: Next) -> bool:
    """Whether a word that the parser calls a verb is the noun that a plain verb before it acts on: 炖玉米排骨汤."""
    if len(text) != 2 or listed != "n" or following[0] in lists.ASPECTS or not before:
        return False
    verb = before[-1]
    return verb.kind == Kind.VERB and verb.text in _PLAIN_VERBS


def _verbal(text: str, tag: str, before: list[Piece], listed: str, modified: bool, following: Next) -> str:
    """The kind of a longer word that the parser calls a verb."""
    last = before[-1].kind if before else Kind.STOP
    if _only_noun(text, before, listed, following):
        return Kind.NOUN
    if (
        listed == "a"
        and last in (Kind.ADJECTIVE, Kind.CLASSIFIER)
        and not is_thing(following)
        and following[0] != "的"
    ):
        return Kind.NOUN
    if listed == "a" and following[0] not in lists.ASPECTS:
        return Kind.ADJECTIVE
    ends = not following[0] or not following[0][0].isalnum() or following[0] in lists.PARTICLES
    if ends and len(text) == 2 and before and before[-1].kind == Kind.VERB:
        verb = before[-1].text
        if verb in lists.FREE_VERBS and verb not in lists.MODALS:
            return Kind.NOUN  # 考驾照
    if last == Kind.PREPOSITION and listed != "v":
        return Kind.NOUN
    if (
        last == Kind.OF
        and tag != "ACL"
        and following[0] not in lists.ASPECTS
        and following[0] != "的"
        and len(text) > 1
    ):
        return Kind.NOUN
    if (
        ends
        and last == Kind.NOUN
        and len(before) > 1
        and before[-2].kind == Kind.OF
        and len(text) > 1
        and listed != "a"
    ):
        return Kind.NOUN
    if (
        listed == ""
        and last in (Kind.VERB, Kind.ASPECT, Kind.NOUN)
        and ends
        and len(text) == 2
        and text[0] not in lists.FREE_VERBS
    ):
        return Kind.NOUN
    if (listed == "n" or (modified and listed != "v")) and (
        modified
        or tag == ""
        or (last in (Kind.ASPECT, Kind.NUMERAL, Kind.VERB, Kind.NOUN) and not starts_object(following))
    ):
        return Kind.NOUN
    return Kind.VERB
