"""Score what stands beside a word as a cue of a person's name: titles, relatives, introductions, actions."""

from __future__ import annotations

from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, RARE, WORD_NAME, hint, is_word, words

# Announced, in a list, likely, found by the trained model alone.
CUED, LISTED, LIKELY, MODEL_ALONE = 0.9, 0.8, 0.6, 0.5


def cue_score(tokens: Tokens, index: int, word: str, shape: int, kind: int) -> float:
    """How sure the words before a word make it a name; 0 where they say nothing."""
    if not index or tokens.opens[index] or word in hint("stop"):
        return 0.0
    lists = words()
    capital = shape in (CAPITAL, UPPER)
    before, second = tokens.word(index - 1), tokens.word(index - 2)
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
    presented = (
        before in ("im", "its") or (before == "am" and second == "i") or (before == "is" and second in ("this", "it"))
    )
    return _introduced(tokens, index, word, kind, capital) if presented and tokens.same_clause(index) else 0.0


def _is_told(tokens: Tokens, index: int, named: bool) -> bool:
    """Whether a name is told: "my name is", "a guy called", "goes by", "call me"; `named`: the word looks like one."""
    before, second, third = tokens.word(index - 1), tokens.word(index - 2), tokens.word(index - 3)
    if before in ("is", "was", "s"):
        return second in ("name", "names", "nickname")
    if before == "be":
        return second == "will" and third in ("name", "names")
    if before in ("name", "names"):
        return (tokens.possessive[index - 1] or before == "names") and second not in ("the", "of")
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
    married = title in ("mr", "mrs", "ms", "mx") and (word in lists.surnames or kind > 0)
    if title in hint("sure_titles") and (married or kind >= RARE):
        return CUED
    if title in ("mr", "mrs") and len(word) > 3 and not is_word(word) and tokens.gap(index) in (" ", ". "):
        return LIKELY
    return LISTED if title in hint("plain_titles") and known and not is_word(word) else 0.0


def _is_possessed(tokens: Tokens, index: int) -> bool:
    """Whether a word for a person has a possessive or demonstrative before it: my friend, her husband, this guy."""
    between = words().hints["kin_adjectives"] | words().hints["kin"]
    for back in range(index - 1, max(-1, index - 5), -1):
        if tokens.opens[back + 1]:
            return False
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


def _introduced(tokens: Tokens, index: int, word: str, kind: int, capital: bool) -> float:
    """After "I'm", "this is", "it's": a name, if it is written as one and is no people, faith or star sign."""
    if word in hint("not_after_i_am"):
        return 0.0
    of_oneself = tokens.word(index - 1) in ("im", "am") and len(word) > 2
    after = index + 1
    inside = after < len(tokens) and tokens.spaced[after] and not tokens.opens[after]
    if of_oneself and kind and inside and tokens.words[after] in words().surnames and not is_word(tokens.words[after]):
        return LISTED
    if word in words().hints["places"]:
        return 0.0
    ends = tokens.after(index).lstrip(" ")[:1] in ("", ",", ".", "!", "\n", ":", "(", "-", "?", ";")
    ends = ends or tokens.word(after) in hint("after_introduction")
    if capital and (kind >= RARE or (kind == WORD_NAME and ends)):
        return CUED
    if kind == COMMON or (kind and of_oneself and not is_word(word)) or (kind == RARE and len(word) > 4 and ends):
        return LISTED
    strange = tokens.word(index - 1) == "im" and not is_word(word) and not word.endswith(("ish", "ese", "ian", "ic"))
    return LIKELY if capital and strange and ends else 0.0


def is_greeted(tokens: Tokens, index: int) -> bool:
    """ "Hi Sunny", "hello there Frank.", "thank you, Ivy!": spoken to at the end of a clause."""
    closed = tokens.after(index).lstrip(" ")[:1] in ("", ",", ".", "!", "?", "\n")
    if tokens.opens[index] or not closed:
        return False
    before = tokens.word(index - 2) if tokens.word(index - 1) == "there" else tokens.word(index - 1)
    return before in hint("greetings")


def acts_as_person(tokens: Tokens, index: int) -> bool:
    """Whether what follows is said of a person: "Hope hates me", "Angel and I", "Grace's mother"."""
    after = index + 1
    if after >= len(tokens) or not tokens.same_clause(after):
        return False
    verb = tokens.words[after]
    return verb in words().hints["human_verbs"] or (verb in ("is", "was") and not tokens.opens[index])
