"""What the words around a word say about its being a name: "my name is", "my friend", "Dr", "I'm", "told me"."""

from __future__ import annotations

from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, RARE, WORD_NAME, hint, is_word, words

CUED, LISTED, LIKELY, READ = (
    0.9,
    0.8,
    0.6,
    0.5,
)  # announced, in a list, likely, seen by the trained reader alone


def by_cue(found: Tokens, place: int, word: str, shape: int, kind: int) -> float:
    if not place or found.opens[place]:
        return 0.0
    lists = words()
    capital = shape in (CAPITAL, UPPER)
    before, second, third = found.word(place - 1), found.word(place - 2), found.word(place - 3)
    name_is = (
        (before in ("is", "was", "s") and second in ("name", "names", "nickname"))
        or (before == "be" and second == "will" and third in ("name", "names"))
        or (
            before in ("name", "names")
            and (found.possessive[place - 1] or before == "names")
            and second not in ("the", "of")
        )
        or (before == "named" and (capital or kind > 0))
        or (before == "called" and (second in hint("somebody") or (third in lists.hints["kin"] and kind > 0)))
        or (before == "by" and second in ("go", "goes", "going") and (capital or kind > 0))
        or (before == "me" and second in ("call", "calls", "called") and found.same_clause(place))
    )
    if (
        name_is
        and word not in hint("stop")
        and ((capital and before != "me") or kind or (not is_word(word) and (capital or before != "me")))
    ):
        return 0.0 if kind == 0 and not capital and third in ("file", "user", "the") else CUED
    if (
        before in lists.hints["titles"]
        and found.spaced[place]
        and (score := _after_title(found, place, kind, capital))
    ):
        return score
    if before in lists.hints["kin"] and _owned(found, place - 1):
        return _after_kin(found, place, word, kind, capital)
    presented = (before in ("im", "i'm") or (before == "am" and second == "i")) or (
        before in ("its", "this", "is") and (before == "its" or second in ("this", "it") or before == "this")
    )
    if presented and before != "this" and found.same_clause(place):
        return _presented(found, place, word, kind, capital)
    return 0.0


def _after_title(found: Tokens, place: int, kind: int, capital: bool) -> float:
    lists = words()
    word, title = found.words[place], found.words[place - 1]
    if capital and word not in hint("stop"):
        title_capital = found.shapes[place - 1] != LOWER
        if title_capital or title in hint("plain_titles"):
            return CUED if not is_word(word) or word in lists.surnames or kind else 0.0
    if title not in ("mr", "mrs", "ms", "mx") and not capital and kind < RARE and word not in lists.surnames:
        return 0.0
    married = title in ("mr", "mrs", "ms", "mx") and (word in lists.surnames or kind > 0)
    if (
        title in hint("sure_titles")
        and word not in hint("stop")
        and (married or kind >= RARE or not is_word(word))
    ):
        return CUED
    known = kind >= RARE or word in lists.surnames
    return LISTED if title in hint("plain_titles") and known and not is_word(word) else 0.0


def _owned(found: Tokens, place: int) -> bool:
    """Whether a word for a person has an owner or a pointer before it: my friend, her late husband, this guy."""
    adjectives = words().hints["kin_adjectives"]
    for back in range(place - 1, max(-1, place - 5), -1):
        word = found.words[back]
        if found.opens[back + 1]:
            return False
        if word in hint("pointers") or found.possessive[back]:
            return True
        if word not in adjectives and word not in words().hints["kin"]:
            return False
    return False


def _after_kin(found: Tokens, place: int, word: str, kind: int, capital: bool) -> float:
    lists = words()
    if word in hint("stop") or found.gap(place).strip(" ,'-"):
        return 0.0
    if capital:
        return CUED if kind or not is_word(word) else 0.0
    if kind >= RARE or (word in lists.surnames and not is_word(word)):
        return LISTED
    return LISTED if kind == WORD_NAME and word not in ("will", "may", "can") and does(found, place) else 0.0


def _presented(found: Tokens, place: int, word: str, kind: int, capital: bool) -> float:
    """After "I'm", "this is", "it's": a name, if it is written as one and is no people, faith or star sign."""
    lists = words()
    if word in hint("not_after_i_am") or word in lists.hints["places"]:
        return 0.0
    ends = found.after(place).lstrip(" ")[:1] in ("", ",", ".", "!", "\n", ":", "(", "-", "?", ";")
    follow = found.word(place + 1) in (
        "and",
        "from",
        "again",
        "by",
        "here",
        "btw",
        "im",
        "i",
        "your",
        "nice",
        "we",
    )
    if capital and (kind >= RARE or (kind == WORD_NAME and (ends or follow))):
        return CUED
    if kind == COMMON or (kind == RARE and len(word) > 4 and (ends or follow)):
        return LISTED
    told = (
        found.word(place - 1) == "im" and not is_word(word) and not word.endswith(("ish", "ese", "ian", "ic"))
    )
    return LIKELY if capital and told and ends else 0.0


def is_called_to(found: Tokens, place: int) -> bool:
    """ "Hi Sunny", "goodbye, Frank.", "thank you, Ivy!", "Sunny, you said it": spoken to, or signed."""
    before = found.word(place - 1)
    after = found.after(place).lstrip(" ")[:1]
    closed = after in ("", ",", ".", "!", "?", "\n")
    if len(found) == 1:
        return found.words[place] not in hint("months") | hint("feelings") | hint("alone")
    if found.opens[place]:
        signs = (
            place == len(found) - 1
            and place > 0
            and found.gap(place).strip(" ")[-1:] in ("-", "—", "–", "~", "\n")
        )
        return signs or (
            after == "," and found.word(place + 1) in ("you", "im", "your", "please", "thank", "its", "youre")
        )
    if before in hint("greetings") or (before == "there" and found.word(place - 2) in hint("greetings")):
        return closed
    return (closed and found.gap(place).strip() == "," and after != "," and place + 1 >= len(found)) or (
        closed and found.gap(place).strip() == "," and after in ("!", ".", "?")
    )


def does(found: Tokens, place: int) -> bool:
    """Whether what follows is said of a person: "Hope hates me", "Angel and I", "Grace's mother"."""
    after = place + 1
    if after < len(found) and found.same_clause(after):
        return found.words[after] in words().hints["human_verbs"] or (
            found.words[after] in ("is", "was") and not found.opens[place]
        )
    return False


def opens_a_deed(found: Tokens, place: int) -> bool:
    """Whether a sentence begins with what a person alone does: "Rose came over", "Chase picked me up", "Dawn from HR".

    Of a word that is a time or a feeling as well, more must be told: "June brought her kids", not "June brought rain".
    """
    after = place + 1
    if after >= len(found) or not found.same_clause(after):
        return False
    verb, then, last = found.words[after], found.word(place + 2), found.word(place + 3)
    if verb in hint("visits") and (
        (then in ("over", "round", "by", "in") and last not in ("the", "me", "us", "a", "my"))
        or (then == "around" and last in ("", "again", "to", "with", "yesterday", "today", "for"))
    ):
        return True
    if verb == "from":
        return then in hint("circles")
    if verb == "used" and then == "to":
        return last in hint("deeds_once")
    if verb not in hint("deeds"):
        return False
    vague = hint("months") | hint("feelings") | hint("vague_names")
    return found.words[place] not in vague or then in hint("deeds_to")


def acts(found: Tokens, place: int) -> bool:
    """At a sentence's start more is asked of a word that is a name too: "Will and I", not "Hope and joy"."""
    after = found.word(place + 1)
    if found.words[place] == "bill" and after in (
        "came",
        "comes",
        "arrived",
        "went",
        "is",
        "was",
        "got",
        "passed",
    ):
        return False
    if after in ("takes", "took") and found.word(place + 2) in (
        "work",
        "time",
        "over",
        "practice",
        "effort",
        "courage",
    ):
        return False
    if after in ("and", "&", "or"):
        follower = found.word(place + 2)
        return follower in ("i", "me") or (place + 2 < len(found) and found.shapes[place + 2] == CAPITAL)
    if found.words[place] in hint("months") | hint("feelings"):
        return after in words().hints["sure_verbs"] - {
            "came",
            "left",
            "died",
            "called",
            "calls",
            "knows",
            "moved",
            "gave",
        }
    if after in ("will", "wont", "would", "wouldnt", "said", "says", "told", "texted", "hates", "thinks"):
        return True
    return after not in (
        "just",
        "still",
        "even",
        "also",
        "always",
        "used",
        "made",
        "makes",
        "has",
        "had",
        "works",
        "helps",
    )


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
