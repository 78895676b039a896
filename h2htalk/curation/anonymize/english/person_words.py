"""How sure a word of an English text is a person's name, or the first word of one."""

from __future__ import annotations

from h2htalk.curation.anonymize.english.person_scores import (
    LIKELY,
    LISTED,
    acts,
    by_cue,
    does,
    is_called_to,
    opens_a_deed,
)
from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, RARE, WORD_NAME, hint, is_word, words


def name_score(found: Tokens, place: int) -> float:
    """How sure a word is a person's name or its first word; 0 for none."""
    lists = words()
    word = found.words[place]
    if (
        len(word) < 2
        or word in lists.never
        or word in lists.hints["kin"]
        or (word in lists.hints["titles"] and not found.kinds[place])
    ):
        return 0.0
    if found.word(place - 1) in lists.hints["media_before"]:
        return 0.0
    shape = found.shapes[place]
    kind = found.kinds[place]
    if score := by_cue(found, place, word, shape, kind):
        return score
    if shape in (CAPITAL, UPPER) and not names_thing(found, place):
        return _with_capital(found, place, word, shape, kind)
    return _in_lower_case(found, place, word, kind) if shape == LOWER else 0.0


def names_thing(found: Tokens, place: int) -> bool:
    """Whether a capitalised word is part of a thing's or a place's name: Paris, Christmas Day, Rose Street."""
    hints = words().hints
    word, before = found.words[place], found.word(place - 1)
    if before in hints["place_fronts"] or word in hints["place_fronts"]:
        return True
    if word in hints["places"] and (
        before in hints["place_before"] or before in ("from", "to", "of", "at", "into")
    ):
        return True
    after = found.word(place + 1)
    if (
        after in ("park", "hill", "church", "rivers", "lake", "bridge", "street")
        and found.kinds[place] >= RARE
    ) and before not in ("in", "at", "the", "to", "near", "around", "on"):
        return False
    joined = place + 1 < len(found) and found.spaced[place + 1] and not found.opens[place + 1]
    if not joined:
        return False
    named = found.kinds[place] != WORD_NAME and found.shapes[place + 1] == LOWER
    return not found.possessive[place] and after in hints["thing_after"] and not named


def _with_capital(found: Tokens, place: int, word: str, shape: int, kind: int) -> float:
    hints = words().hints
    first = found.opens[place]
    if shape == UPPER and (len(word) < 4 or kind != COMMON):
        return 0.0
    before = "" if first else found.word(place - 1)
    if kind != WORD_NAME and before in ("the", "a", "an"):
        return 0.0
    if kind == COMMON:
        return LISTED
    if kind == WORD_NAME:
        return _word_name(found, place, word, before)
    full = _begins_full_name(found, place)
    if kind == RARE:
        shown = (
            not first or does(found, place) or full or found.possessive[place] or is_called_to(found, place)
        )
        return LISTED if shown and len(word) > 2 and not found.foreign(place) else 0.0
    if is_word(word) or word in hints["places"] or found.foreign(place) or before in hint("articles"):
        return 0.0
    if before == "dear" and is_called_to(found, place):
        return LIKELY
    verb = found.word(place + 1) if place + 1 < len(found) and found.same_clause(place + 1) else ""
    if full:
        return LIKELY
    return LIKELY if verb in hints["sure_verbs"] or before in hints["sure_before"] else 0.0


def _word_name(found: Tokens, place: int, word: str, before: str) -> float:
    """A word that is a name too: Grace, May, Frank, Jordan."""
    dated = found.after(place).lstrip()[:1].isdigit()
    if word in hint("months") and (before in hint("month_before") or dated):
        return 0.0
    if _begins_full_name(found, place) or is_called_to(found, place):
        return LISTED
    if found.opens[place]:
        return LISTED if opens_a_deed(found, place) or (does(found, place) and acts(found, place)) else 0.0
    if before in hint("articles"):
        return 0.0
    shown = does(found, place) or before in words().hints["person_before"]
    if word in words().hints["places"]:
        shown = does(found, place) and before not in ("and", "like", "about")
    return LISTED if shown or found.possessive[place] else 0.0


def _begins_full_name(found: Tokens, place: int) -> bool:
    """Two capitalised words side by side, the second a surname or a given one: Kwame Mensah, Zhang Meiling."""
    after = place + 1
    if after >= len(found) or not found.spaced[after] or found.opens[after] or found.shapes[after] != CAPITAL:
        return False
    lists = words()
    first, second = found.words[place], found.words[after]
    if found.kinds[place] < RARE and second in lists.hints["thing_after"]:
        return False
    if found.blocked[after] or (is_word(second) and second not in lists.surnames):
        return False
    if is_word(first) and not found.kinds[place]:
        return False
    known = (
        second in lists.surnames
        or found.kinds[after] >= RARE
        or (found.kinds[place] >= RARE and not is_word(second))
    )
    strange = not is_word(first) and not is_word(second) and second not in lists.hints["places"]
    return known or (first in lists.surnames and strange)


def _in_lower_case(found: Tokens, place: int, word: str, kind: int) -> float:
    """A frequent given name says enough by itself; a rarer one needs a verb of people or a surname at its side."""
    lists = words()
    if kind < RARE or found.foreign(place):
        return 0.0
    before = found.word(place - 1)
    if before in lists.hints["place_fronts"] and before not in ("new", "north", "south", "east", "west"):
        return 0.0
    if _pair(found, place):
        return LIKELY
    shown = does(found, place) or (before in lists.hints["person_before"] and not found.opens[place])
    if kind == COMMON and len(word) > 3:
        return LISTED if shown or found.possessive[place] else LIKELY
    if kind == COMMON:
        return LIKELY if shown and before not in hint("articles") else 0.0
    told = before in lists.hints["sure_before"] and not found.opens[place]
    told = told or (
        before == "and" and place > 1 and found.kinds[place - 2] >= RARE and found.same_clause(place)
    )
    return LIKELY if len(word) > 3 and (told or found.word(place + 1) in lists.hints["sure_verbs"]) else 0.0


def _pair(found: Tokens, place: int) -> bool:
    """A given name and a surname side by side in lower case, neither an English word: "wang fang", "priya nair"."""
    after = place + 1
    if after >= len(found) or not found.spaced[after] or found.shapes[after] != LOWER or found.blocked[after]:
        return False
    second = found.words[after]
    known = second in words().surnames or found.kinds[after] >= RARE
    return known and len(second) > 2 and len(found.words[place]) > 2 and not is_word(second)
