"""What is said beside a name that makes it somebody's whom the speaker knows: the second vote on English names.

The classifier (`private_names`) reads all words around a candidate. A frame is one phrase beside it: "my name is",
"my wife", "me and", "hi ...,". A strong frame is enough where people talk of themselves; a weak one needs the
classifier to be nearly sure. Where a name is public as often as private (`talk = "public"`), both votes are needed.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from h2htalk.detect.personal.english.persons import (
    CAPITAL,
    COMMON,
    LOWER,
    RARE,
    UPPER,
    WORD_NAME,
    Tokens,
    hint,
    is_word,
    words,
)

_ADJECTIVES = 3  # words between "my" and the word for a person
_NAMED = 7  # words before "named" among which somebody is spoken of
# Words right before a name, by the frame that asks for them; `_before` joins them, so that most words are read no more.
_TELLING = (
    *("is", "was", "s", "name", "names", "of", "be"),
    *("named", "nicknamed", "by", "called", "him", "her", "me", "them"),
)
_PRESENTING = ("im", "its", "am", "myself", "self", "is")
_ADDRESSING = ("morning", "night", "evening", "luck", "there", "you")
_JOINS = ("and", "n", "&")
_PREPOSITIONS = ("with", "w", "to", "from", "into", "on", "over", "out", "by", "at")
_SPEAKERS = ("i", "im", "ive", "you", "youre", "youve", "we", "were", "weve")
_MODALS = ("will", "may")  # which are names too
# Those of the names that are words which "my brother" can have as its verb: modals and forms of the past.
_VERBS_OF_KIN = (*_MODALS, "can", "drew")
_PLACES = ("from", "in", "at")  # right behind a name


class Frame(IntEnum):
    """What a phrase beside a name says of it."""

    NONE = 0
    WEAK = 1
    STRONG = 2


def frame_of(tokens: Tokens, index: int, end: int) -> Frame:
    """The strongest frame of the name from the word `index` up to `end`."""
    framed = tokens.word(index - 1) in _before() or tokens.word(end) in _behind()
    if not framed or _is_no_name(tokens, index):
        return Frame.NONE
    strongest = max(
        _told(tokens, index),
        _of_kin(tokens, index),
        _titled(tokens, index),
    )
    for reads_around in (_acted_on, _greeted, _introduced, _joined_to_speaker, _placed_behind):
        if strongest == Frame.STRONG:
            break
        strongest = max(strongest, reads_around(tokens, index, end))
    return strongest


@cache
def _before() -> frozenset[str]:
    """The words right before a name with which a frame may end: without one there is none on this side."""
    listed = map(hint, ("kin", "titles", "greetings", "between_people"))
    return frozenset((*_TELLING, *_PRESENTING, *_ADDRESSING, *_JOINS, *_PREPOSITIONS)).union(
        *listed
    )


@cache
def _behind() -> frozenset[str]:
    """The words right behind a name with which a frame may begin."""
    return frozenset(("my", "our", *_PLACES, *_JOINS)).union(hint("sure_verbs"))


def _is_no_name(tokens: Tokens, index: int) -> bool:
    """Whether no frame makes a word a name: small words, months, words for people, what is capitalised for itself."""
    word = tokens.words[index]
    if (
        len(word) < 2
        or word in hint("stop")
        or word in hint("pronouns")
        or word in hint("not_after_i_am")
    ):
        return True
    return (
        word in hint("kin")
        or word in hint("unnamed")
        or tokens.word(index - 1) in hint("media_before")
    )


def _is_capital(tokens: Tokens, index: int) -> bool:
    return tokens.shapes[index] in (CAPITAL, UPPER)


def _looks_like_name(tokens: Tokens, index: int) -> bool:
    """Whether a word is written as a name, or is a given name and no English word."""
    word = tokens.words[index]
    kind = tokens.kinds[index]
    if _is_capital(tokens, index):
        return kind > 0 or not is_word(word) or not tokens.opens[index]
    return (
        kind >= RARE
        or (kind == WORD_NAME and word not in hint("verbs_and_names"))
        or not is_word(word)
    )


def _same_clause(tokens: Tokens, index: int) -> bool:
    """Whether no mark stands between a word and the one before it."""
    return (
        0 < index < len(tokens)
        and not tokens.opens[index]
        and not tokens.gap(index).strip(" *_\"'“”‘’")
    )


def _closes(tokens: Tokens, end: int) -> bool:
    """Whether a clause ends behind the word before `end`."""
    last = tokens.ends[end - 1]
    behind = tokens.text[last : last + 3].lstrip(" *_\"'”’)")[:1]
    return behind in ("", ",", ".", "!", "?", "\n", ":", ";", "-", "(", "~", "…")


def _told(tokens: Tokens, index: int) -> Frame:
    """Said to be a name: "my name is", "named", "goes by", "everyone calls me", "by the name"."""
    if not _same_clause(tokens, index):
        return Frame.NONE
    before, second, third = (tokens.word(index - step) for step in (1, 2, 3))
    if (
        before in ("name", "names")
        and tokens.words[index] in _MODALS
        and not _is_capital(tokens, index)
    ):
        return Frame.NONE  # "what the name will be"
    told = before in ("is", "was", "s") and second in ("name", "names", "nickname", "nicknamed")
    told |= before in ("name", "names") and (
        tokens.possessive[index - 1] or before == "names" or second == "the"
    )
    told |= (
        before == "name"
        and second in hint("pointers")
        and third != "file"
        and tokens.kinds[index] > 0
    )
    told |= before in ("of", "is") and second in ("name", "names", "nickname")
    told |= before == "be" and second == "will" and third in ("name", "names")
    if told:
        return (
            Frame.STRONG
            if tokens.kinds[index] > 0 or _looks_like_name(tokens, index)
            else Frame.WEAK
        )
    called = before in ("named", "nicknamed") or (
        before == "by" and second in ("go", "goes", "going", "went")
    )
    called |= before == "called" and (second in hint("somebody") or second in hint("kin"))
    called |= before in ("him", "her", "me", "them") and second in ("named", "nicknamed", "naming")
    called |= before == "me" and second in ("call", "calls", "called", "calling")
    # No verb stands behind "named": "a lady named sue".
    no_verb = before in ("named", "nicknamed") and tokens.kinds[index] > 0
    if called and (no_verb or _looks_like_name(tokens, index)):
        # "The roomba is named Dave".
        people = hint("kin") | hint("somebody") | hint("people_said")
        if before not in ("me", "by") and people.isdisjoint(
            tokens.words[max(0, index - _NAMED) : index]
        ):
            return Frame.NONE
        sure = (
            _is_capital(tokens, index)
            or tokens.kinds[index] >= RARE
            or before in ("named", "nicknamed")
        )
        return Frame.STRONG if sure else Frame.WEAK
    return Frame.NONE


def _of_kin(tokens: Tokens, index: int) -> Frame:
    """Behind a word for somebody whom the speaker knows: "my wife", "my best friend", "our baby", "this girl"."""
    before = tokens.word(index - 1)
    beside = index > 0 and not tokens.opens[index] and not tokens.gap(index).strip(" ,*_\"'“”‘’-(")
    if before not in hint("kin") or not beside:
        return Frame.NONE
    owned = _is_owned(tokens, index - 1)
    if not _looks_like_name(tokens, index):
        return _word_of_kin(tokens, index) if owned else Frame.NONE
    if not owned:
        return (
            Frame.WEAK
            if _same_clause(tokens, index) and tokens.kinds[index] >= RARE
            else Frame.NONE
        )
    if tokens.gap(index).strip(" *_\"'“”‘’-(") and not _closes(tokens, index + 1):
        return Frame.WEAK  # "my sister, hope ..."
    sure = _is_capital(tokens, index) or tokens.kinds[index] >= RARE
    return Frame.STRONG if sure else Frame.WEAK


def _word_of_kin(tokens: Tokens, index: int) -> Frame:
    """Behind "my boss" a given name that is a word too, in small letters: what neither a verb nor an object can be."""
    if tokens.kinds[index] == 0:
        return Frame.NONE
    apart = tokens.gap(index).strip(" *_\"'“”‘’")
    last = tokens.ends[index]
    if apart:
        # "my boss, will, is mean", "my boss (will)": the same mark on either side.
        closing = ")" if apart == "(" else apart
        return Frame.STRONG if tokens.text.startswith(closing, last) else Frame.NONE
    # "my sister joy", and not "make my sister happy" or "my brother will".
    begins = index - 1
    while begins > 0 and not tokens.opens[begins] and tokens.words[begins] not in hint("pointers"):
        begins -= 1
    is_subject = tokens.opens[begins] or tokens.word(begins - 1) in (*_JOINS, *_PREPOSITIONS)
    is_verb = tokens.words[index] in _VERBS_OF_KIN
    return Frame.WEAK if is_subject and not is_verb else Frame.NONE


def _is_owned(tokens: Tokens, index: int) -> bool:
    """Whether a word for a person is somebody's: my friend, her late husband, this guy, Ann's brother."""
    for back in range(index - 1, max(-1, index - 2 - _ADJECTIVES), -1):
        if tokens.opens[back + 1]:
            return False
        if tokens.words[back] in hint("pointers") - {"the"} or tokens.possessive[back]:
            return True
        if tokens.words[back] not in hint("kin_adjectives"):
            return False
    return False


def _titled(tokens: Tokens, index: int) -> Frame:
    """Behind a form of address: "mrs begum", "Dr. Alvarez", "aunt debbie"."""
    title = tokens.word(index - 1)
    if title not in hint("titles") or tokens.gap(index) not in (" ", ". ") or tokens.opens[index]:
        return Frame.NONE
    lists = words()
    word = tokens.words[index]
    written = tokens.shapes[index - 1] != LOWER or title in hint("plain_titles")
    if not written:
        return Frame.NONE
    listed = tokens.kinds[index] > 0 or word in lists.surnames
    if title not in hint("sure_titles"):  # "Sir Nibbles", "big coat"
        return Frame.WEAK if listed or _is_capital(tokens, index) else Frame.NONE
    known = listed or not is_word(word)
    if _is_capital(tokens, index):
        return Frame.STRONG if known else Frame.WEAK
    # "mr. fitzwilliam", but "aunty locks the gate" and "my sister rings".
    if title in hint("formal_titles"):
        return Frame.STRONG if known and not is_word(word) else Frame.NONE
    return Frame.STRONG if tokens.kinds[index] >= RARE and not is_word(word) else Frame.NONE


def _introduced(tokens: Tokens, index: int, end: int) -> Frame:
    """Behind "I'm", "I am", "this is", "myself": the speaker's, where a clause ends behind it."""
    before = tokens.word(index - 1)
    second = tokens.word(index - 2)
    if not _same_clause(tokens, index):
        return Frame.NONE
    shortened = before in ("im", "its")  # folded
    of_oneself = (
        before == "im" or (before == "am" and second == "i") or before in ("myself", "self")
    )
    presented = of_oneself or shortened or (before == "is" and second in ("this", "it", "here"))
    kind = tokens.kinds[index]
    ends = _closes(tokens, end) or tokens.word(end) in hint("after_introduction")
    if not presented or not ends or tokens.words[index] in hint("places"):
        return Frame.NONE
    if kind >= RARE and (of_oneself or _is_capital(tokens, index)):
        return Frame.STRONG
    return Frame.WEAK if _looks_like_name(tokens, index) else Frame.NONE


def _greeted(tokens: Tokens, index: int, end: int) -> Frame:
    """Spoken to: "hi sam,", "thank you, Ivy!", "nice to meet you jason"."""
    if not _closes(tokens, end) or index == 0:
        return Frame.NONE
    gap = tokens.gap(index).strip(" ,*_")
    before = tokens.word(index - 1)
    second = tokens.word(index - 2)
    greeting = before in hint("greetings") or before in ("morning", "night", "evening", "luck")
    greeting |= before == "there" and second in hint("greetings")
    greeting |= before == "you" and second in ("thank", "meet", "meeting", "bless")
    if gap or not greeting or not _looks_like_name(tokens, index):
        return Frame.NONE
    return Frame.STRONG if tokens.kinds[index] >= RARE else Frame.WEAK


def _joined_to_speaker(tokens: Tokens, index: int, end: int) -> Frame:
    """Side by side with the speaker: "me and jaz", "Sam and I"."""
    behind = (
        tokens.word(end) in _JOINS
        and tokens.word(end + 1) in ("i", "me")
        and _same_clause(tokens, end)
    )
    before = (
        tokens.word(index - 1) in _JOINS
        and tokens.word(index - 2) == "me"
        and _same_clause(tokens, index)
    )
    if not (behind or before) or not _looks_like_name(tokens, index):
        return Frame.NONE
    # "Frodo had sam and i have you": the speaker may begin a clause.
    sure = before and tokens.kinds[index] >= RARE and tokens.words[index] not in hint("places")
    return Frame.STRONG if sure else Frame.WEAK


def _acted_on(tokens: Tokens, index: int, end: int) -> Frame:
    """What only people who know each other do: "i blocked dmitri", "broke up with Ty", "ran into penny"."""
    if not _same_clause(tokens, index) or not _looks_like_name(tokens, index):
        return Frame.NONE
    before, second, third = (tokens.word(index - step) for step in (1, 2, 3))
    verb = before if before in hint("between_people") else ""
    if before in _PREPOSITIONS:
        pair = f"{second}_{before}"
        verb = pair if pair in hint("between_people") else f"{third}_{second}_{before}"
        verb = verb if verb in hint("between_people") else ""
    if not verb:
        return Frame.NONE
    # "you live with Tom", and not "I miss John Elway": whom one knows is called by the given name.
    begins = index - len(verb.split("_"))
    given_alone = tokens.kinds[index] == COMMON and end == index + 1
    of_speaker = tokens.word(begins - 1) in _SPEAKERS and _same_clause(tokens, begins)
    sure = given_alone and of_speaker and _is_capital(tokens, index)
    return Frame.STRONG if sure else Frame.WEAK


def _placed_behind(tokens: Tokens, index: int, end: int) -> Frame:
    """What stands behind it: "Sara my wife", "kowalczyk in payroll", "mr fitz, my old teacher", "tobi from work"."""
    if end >= len(tokens) or not _looks_like_name(tokens, index):
        return Frame.NONE
    word = tokens.word(end)
    following = tokens.word(end + 1)
    apart = tokens.gap(end).strip(" ")
    written = _is_capital(tokens, index) or tokens.kinds[index] >= RARE
    if word in ("my", "our") and not apart.strip(",(-–—") and (written or not apart):
        at = end + 1
        while tokens.word(at) in hint("kin_adjectives") and at - end <= _ADJECTIVES:
            at += 1
        if tokens.word(at) in hint("kin"):
            return (
                Frame.STRONG
                if tokens.kinds[index] >= RARE or not is_word(tokens.words[index])
                else Frame.WEAK
            )
    if word in _PLACES and following in hint("circles") and _same_clause(tokens, end):
        return Frame.WEAK
    if (
        word in hint("sure_verbs")
        and following in ("me", "us", "my", "i")
        and _same_clause(tokens, end)
    ):
        return Frame.WEAK
    return Frame.NONE
