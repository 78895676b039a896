"""Score how sure it is that a word is a person's name, or the first word of one."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.english.person_cues import LIKELY, LISTED, acts_as_person, cue_score, is_greeted
from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, RARE, WORD_NAME, hint, is_word, words

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
    if kind < RARE or before in hint("before_a_type") or tokens.foreign(index):
        return 0.0
    if _is_pair(tokens, index):
        return LIKELY
    shown = acts_as_person(tokens, index) or (before in hints["person_before"] and not tokens.opens[index])
    if kind == COMMON and len(word) > 3:
        return LISTED if shown or tokens.possessive[index] else LIKELY
    if kind == COMMON:
        return LIKELY if shown and before not in hint("articles") else 0.0
    told = before in hints["sure_before"] and not tokens.opens[index]
    return LIKELY if len(word) > 3 and (told or tokens.word(index + 1) in hints["sure_verbs"]) else 0.0


def _is_pair(tokens: Tokens, index: int) -> bool:
    """A given name and a surname side by side in lower case, neither an English word: "wang fang", "priya nair"."""
    after = index + 1
    if after >= len(tokens) or not tokens.spaced[after] or tokens.shapes[after] != LOWER or tokens.blocked[after]:
        return False
    second = tokens.words[after]
    known = second in words().surnames or tokens.kinds[after] >= RARE
    return known and len(second) > 2 and len(tokens.words[index]) > 2 and not is_word(second)
