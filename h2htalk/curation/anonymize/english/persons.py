"""Names of persons in English chat: by lists of names, by what is said around them, and by how words are written.

A word is a candidate by its kind: a frequent given name ("josh"), a rarer one ("Bronwyn"), one that is an English word
or a place too ("Grace", "will"), or one that no list holds and that stands with a capital where English writes none.
The less the word says by itself, the more the words around it must say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.english.tokens import (
    CAPITAL,
    COMMON,
    INITIAL,
    LOWER,
    RARE,
    UPPER,
    WORD_NAME,
    Tokens,
    hint,
    is_word,
    words,
)
from h2htalk.curation.anonymize.spans import Span

# Announced, in a list, likely.
CUED, LISTED, LIKELY = 0.9, 0.8, 0.6
# Before an unknown word in capitals they speak of a place or a language: "my flight to Galway was late".
_BEFORE_PLACES = frozenset(["at", "from", "in", "into", "nova", "of", "to"])
_SAID_OF_ANYTHING = frozenset(["&", "also", "always", "and", "even", "just", "never", "or", "still"])
_VERBAL = ("s", "ed", "ing", "nt", "ly", "in", "er")


def find_persons(tokens: Tokens) -> list[Span]:
    """Spans of PERSON in a text's words, those that `tokens` blocks left out; in order, none overlap.

    A form of address is part of the name ("Mr Henderson", "aunt debbie"); a possessive 's is not.
    Names of animals are blocked in `tokens`.
    """
    return list(_spans(tokens, _starts(tokens)))


def _starts(tokens: Tokens) -> dict[int, float]:
    """Words that are names, with how sure that is: each judged alone, then by the others."""
    pets = _pets(tokens)
    for index, word in enumerate(tokens.words):
        tokens.blocked[index] |= word in pets
    starts = {
        index: score
        for index in range(len(tokens))
        if not tokens.blocked[index] and (score := name_score(tokens, index))
    }
    # A name that was told stays one: "Thandi" after "my name is Thandi", "will" never.
    told = {tokens.words[index] for index in starts if len(tokens.words[index]) > 2} - hint("months")
    for index, word in enumerate(tokens.words):
        if word in told and not tokens.blocked[index]:
            inside = tokens.shapes[index] == CAPITAL and not tokens.opens[index]
            if inside or not is_word(word):
                starts.setdefault(index, LIKELY)
    return starts


def _pets(tokens: Tokens) -> set[str]:
    """Names that a text gives to animals: "my dog Max", "a puppy named Bo"."""
    named = set()
    for index, word in enumerate(tokens.words):
        if word in words().hints["pets"]:
            after = index + 1
            while tokens.word(after) in ("named", "called", "is", "was", "name", "names"):
                after += 1
            if after < len(tokens) and (tokens.shapes[after] == CAPITAL or tokens.words[after] in words().given):
                named.add(tokens.words[after])
    return named - {"my", "the", "and", "i"}


def _spans(tokens: Tokens, starts: dict[int, float]) -> Iterator[Span]:
    """From each name to its last word: given names, initials, particles and surnames, with its form of address."""
    reached = 0
    for index in sorted(starts):
        if index < reached:
            continue
        reached = index + 1
        while reached < len(tokens) and (step := _goes_on(tokens, reached)):
            reached += step
        titled = index > 0 and tokens.spaced[index] and _is_title(tokens, index - 1)
        last = tokens.ends[reached - 1]
        if tokens.shapes[reached - 1] == INITIAL and tokens.text[last : last + 1] == ".":
            last += 1
        yield Span(tokens.starts[index - titled], last, "PERSON", starts[index])


def _is_title(tokens: Tokens, index: int) -> bool:
    """Whether a word is a form of address."""
    word = tokens.words[index]
    written = tokens.shapes[index] != LOWER or word in hint("plain_titles")
    return word in words().hints["titles"] and written and not tokens.blocked[index]


def _goes_on(tokens: Tokens, index: int) -> int:
    """Whether a word still belongs to the name that ends before."""
    pointed = tokens.gap(index) == ". " and tokens.shapes[index - 1] == INITIAL
    if tokens.possessive[index - 1] or tokens.blocked[index] or not (pointed or tokens.gap(index) in (" ", "-")):
        return 0
    lists = words()
    word, shape, kind = tokens.words[index], tokens.shapes[index], tokens.kinds[index]
    if tokens.shapes[index - 1] != LOWER:
        if shape == INITIAL:
            return int(word != "i")
        no_name = shape == LOWER or word in lists.never or word in hint("stop")
        return int(not no_name and (word in lists.surnames or kind > 0 or word not in lists.words))
    if shape != LOWER or is_word(word) or len(word) < 3:
        return 0
    # "jason kolvik" after a frequent given name inside a sentence, whatever the second word is.
    named = tokens.kinds[index - 1] == COMMON and len(word) > 4 and not tokens.opens[index]
    strange = named and word not in lists.never and word[-1] != word[-2] and not word.endswith(_VERBAL)
    return int(word in lists.surnames or (kind == COMMON and len(word) > 3) or strange)


# --- How sure it is that a word is a person's name, or the first word of one ---

# "Forty-one", folded.
_NUMBER = re.compile("(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:one|two|three|four|five|six|seven|eight|nine)?")


def name_score(tokens: Tokens, index: int) -> float:
    """How sure a word is a person's name or its first word; 0 for none."""
    lists = words()
    word, shape, kind = tokens.words[index], tokens.shapes[index], tokens.kinds[index]
    if (
        len(word) < 2
        or _NUMBER.fullmatch(word)
        or word in lists.never
        or word in lists.hints["kin"]
        or (word in lists.hints["titles"] and not kind)
    ):
        return 0.0
    if tokens.word(index - 1) in lists.hints["media_before"]:
        return 0.0
    if score := cue_score(tokens, index, word, shape, kind):
        return score
    if shape in (CAPITAL, UPPER) and not names_thing(tokens, index):
        return _with_capital(tokens, index, word, shape, kind)
    return _in_lower_case(tokens, index, word, kind) if shape == LOWER else 0.0


def names_thing(tokens: Tokens, index: int) -> bool:
    """Whether a capitalised word is part of a thing's or a place's name: Paris, Christmas Day, Rose Street."""
    hints = words().hints
    word, before, after = tokens.words[index], tokens.word(index - 1), tokens.word(index + 1)
    if before in hints["place_fronts"] or word in hints["place_fronts"]:
        return True
    if word in hints["places"] and (before in hints["place_before"] or before in ("from", "to", "of", "at", "into")):
        return True
    joined = index + 1 < len(tokens) and tokens.spaced[index + 1] and not tokens.possessive[index]
    # "told Anna street ...", "with Soo-ah Park": a given name before a word in small letters, or before a surname.
    named = tokens.kinds[index] >= RARE and joined
    named = named and (tokens.shapes[index + 1] == LOWER or (after in words().surnames and before not in hint("sites")))
    return joined and after in hints["thing_after"] and not named


def _with_capital(tokens: Tokens, index: int, word: str, shape: int, kind: int) -> float:
    hints = words().hints
    before = "" if tokens.opens[index] else tokens.word(index - 1)
    if (shape == UPPER and (len(word) < 4 or kind != COMMON)) or (kind != WORD_NAME and before in ("the", "a", "an")):
        return 0.0
    if kind == COMMON:
        return LISTED
    if kind == WORD_NAME:
        return _word_name(tokens, index, word, before)
    full = _begins_full_name(tokens, index)
    if kind == RARE:
        shown = not tokens.opens[index] or full or tokens.possessive[index] or acts_as_person(tokens, index)
        return LISTED if shown and len(word) > 2 else 0.0
    if is_word(word) or word in hints["places"] or before in hint("articles"):
        return 0.0
    told = before in hints["sure_before"] or (before == "dear" and is_greeted(tokens, index))
    acts = tokens.same_clause(index + 1) and tokens.word(index + 1) in hints["sure_verbs"]
    there = tokens.opens[index] or before in hints["place_before"] or before in _BEFORE_PLACES
    anything = tokens.word(index + 1) in _SAID_OF_ANYTHING
    acts = acts or (acts_as_person(tokens, index) and not there and not anything)
    return LIKELY if full or told or acts else 0.0


def _word_name(tokens: Tokens, index: int, word: str, before: str) -> float:
    """A word that is a name too: Grace, May, Frank, Jordan."""
    dated = tokens.after(index).lstrip()[:1].isdigit()
    if word in hint("months") and (before in hint("month_before") or dated):
        return 0.0
    if _begins_full_name(tokens, index) or is_greeted(tokens, index):
        return LISTED
    shown = acts_as_person(tokens, index)
    if before and before not in hint("articles") and word not in words().hints["places"]:
        shown = shown or before in words().hints["person_before"] or tokens.possessive[index]
    return LISTED if shown and before not in hint("articles") else 0.0


def _begins_full_name(tokens: Tokens, index: int) -> bool:
    """Two capitalised words side by side, the second a surname or a given one: Kwame Mensah, Zhang Meiling."""
    after = index + 1
    if after >= len(tokens) or not tokens.spaced[after] or tokens.shapes[after] != CAPITAL or tokens.blocked[after]:
        return False
    lists = words()
    first, second, kind = tokens.words[index], tokens.words[after], tokens.kinds[index]
    if is_word(second) and second not in lists.surnames:
        return False
    if kind < RARE and (second in lists.hints["thing_after"] or (is_word(first) and not kind)):
        return False
    known = second in lists.surnames or tokens.kinds[after] >= RARE or kind >= RARE
    strange = not is_word(first) and not is_word(second) and second not in lists.hints["places"]
    return known or (first in lists.surnames and strange)


def _in_lower_case(tokens: Tokens, index: int, word: str, kind: int) -> float:
    """A frequent given name says enough by itself; a rarer one needs a verb of people or a surname at its side."""
    hints = words().hints
    before = tokens.word(index - 1)
    if kind < RARE or before in hint("before_a_type"):
        return 0.0
    shown = acts_as_person(tokens, index) or (before in hints["person_before"] and not tokens.opens[index])
    if kind == COMMON and len(word) > 3:
        return LISTED if shown or tokens.possessive[index] else LIKELY
    if kind == COMMON:
        return LIKELY if shown and before not in hint("articles") else 0.0
    told = before in hints["sure_before"] and not tokens.opens[index]
    return LIKELY if len(word) > 3 and (told or tokens.word(index + 1) in hints["sure_verbs"]) else 0.0


# --- What stands beside a word as a cue of a name: titles, relatives, introductions, actions ---


def cue_score(tokens: Tokens, index: int, word: str, shape: int, kind: int) -> float:
    """How sure the words before a word make it a name; 0 where they say nothing."""
    if not index or tokens.opens[index] or word in hint("stop"):
        return 0.0
    lists = words()
    capital = shape in (CAPITAL, UPPER)
    before = tokens.word(index - 1)
    if _is_told(tokens, index, named=capital or kind > 0):
        third = tokens.word(index - 3)
        written = capital and before != "me"
        if written or kind or (before != "me" and not is_word(word) and third not in ("file", "user", "the")):
            return CUED
    titled = before in lists.hints["titles"] and tokens.spaced[index]
    if titled and (score := _after_title(tokens, index, kind, capital)):
        return score
    if before in lists.hints["kin"] and _is_possessed(tokens, index - 1):
        return _after_kin(tokens, index, word, kind, capital)
    return 0.0


def _is_told(tokens: Tokens, index: int, named: bool) -> bool:
    """Whether a name is told: "my name is", "a guy called", "goes by", "call me"; `named`: the word looks like one."""
    before, second, third = tokens.word(index - 1), tokens.word(index - 2), tokens.word(index - 3)
    if before in ("is", "was", "s"):
        return second in ("name", "names", "nickname")
    if before == "be":
        return second == "will" and third in ("name", "names")
    if before == "called":
        return second in hint("somebody") or (third in words().hints["kin"] and named)
    if before == "me":
        return second in ("call", "calls", "called") and tokens.same_clause(index)
    return named and (before == "named" or (before == "by" and second in ("go", "goes", "going")))


def _after_title(tokens: Tokens, index: int, kind: int, capital: bool) -> float:
    lists = words()
    word, title = tokens.words[index], tokens.words[index - 1]
    known = kind >= RARE or word in lists.surnames
    if capital and (tokens.shapes[index - 1] != LOWER or title in hint("plain_titles")):
        return CUED if known or kind or not is_word(word) else 0.0
    if title in ("mr", "mrs") and len(word) > 3 and not is_word(word) and tokens.gap(index) in (" ", ". "):
        return LIKELY
    return LISTED if title in hint("plain_titles") and known and not is_word(word) else 0.0


def _is_possessed(tokens: Tokens, index: int) -> bool:
    """Whether a word for a person has a possessive or demonstrative before it: my friend, her husband, this guy."""
    between = words().hints["kin_adjectives"] | words().hints["kin"]
    for back in range(index - 1, max(-1, index - 5), -1):
        if tokens.words[back] in hint("pointers") or tokens.possessive[back]:
            return True
        if tokens.words[back] not in between:
            return False
    return False


def _after_kin(tokens: Tokens, index: int, word: str, kind: int, capital: bool) -> float:
    if tokens.gap(index).strip(" ,'-"):
        return 0.0
    if capital:
        return CUED if kind or not is_word(word) else 0.0
    if kind >= RARE or (word in words().surnames and not is_word(word)):
        return LISTED
    return LISTED if kind == WORD_NAME and word not in ("will", "may", "can") and acts_as_person(tokens, index) else 0.0


def is_greeted(tokens: Tokens, index: int) -> bool:
    """ "Hi Sunny", "hello there Frank.", "see you, Ivy!": spoken to at the end of a clause."""
    end = tokens.after(index).lstrip(" ")[:1]
    if tokens.opens[index] or end not in ("", ",", ".", "!", "?", "\n"):
        return False
    if end != "," and tokens.gap(index) == ", " and tokens.words[index] not in words().hints["places"]:
        return True
    before = tokens.word(index - 2) if tokens.word(index - 1) == "there" else tokens.word(index - 1)
    return before in hint("greetings")


def acts_as_person(tokens: Tokens, index: int) -> bool:
    """Whether what follows is said of a person: "Hope hates me", "Angel and I", "Grace's mother"."""
    after = index + 1
    if after >= len(tokens) or not tokens.same_clause(after):
        return False
    verb = tokens.words[after]
    return verb in words().hints["human_verbs"] or (verb in ("is", "was") and not tokens.opens[index])
