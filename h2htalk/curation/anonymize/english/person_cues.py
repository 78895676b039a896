"""Score what stands beside a word as a cue of a person's name: titles, relatives, introductions, actions."""

from __future__ import annotations

from h2htalk.curation.anonymize.english.token_features import CAPITAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, RARE, WORD_NAME, hint, is_word, words

# Announced, in a list, likely, found by the trained model alone.
CUED, LISTED, LIKELY, MODEL_ALONE = 0.9, 0.8, 0.6, 0.5


def cue_score(tokens: Tokens, index: int, word: str, shape: int, kind: int) -> float:
    if not index or tokens.opens[index]:
        return 0.0
    lists = words()
    capital = shape in (CAPITAL, UPPER)
    before, second, third = tokens.word(index - 1), tokens.word(index - 2), tokens.word(index - 3)
    name_is = (
        (before in ("is", "was", "s") and second in ("name", "names", "nickname"))
        or (before == "be" and second == "will" and third in ("name", "names"))
        or (
            before in ("name", "names")
            and (tokens.possessive[index - 1] or before == "names")
            and second not in ("the", "of")
        )
        or (before == "named" and (capital or kind > 0))
        or (before == "called" and (second in hint("somebody") or (third in lists.hints["kin"] and kind > 0)))
        or (before == "by" and second in ("go", "goes", "going") and (capital or kind > 0))
        or (before == "me" and second in ("call", "calls", "called") and tokens.same_clause(index))
    )
    if (
        name_is
        and word not in hint("stop")
        and ((capital and before != "me") or kind or (not is_word(word) and (capital or before != "me")))
    ):
        return 0.0 if kind == 0 and not capital and third in ("file", "user", "the") else CUED
    if (
        before in lists.hints["titles"]
        and tokens.spaced[index]
        and (score := _after_title(tokens, index, kind, capital))
    ):
        return score
    if before in lists.hints["kin"] and _is_possessed(tokens, index - 1):
        return _after_kin(tokens, index, word, kind, capital)
    presented = (before in ("im", "i'm") or (before == "am" and second == "i")) or (
        before in ("its", "this", "is") and (before == "its" or second in ("this", "it") or before == "this")
    )
    if presented and before != "this" and tokens.same_clause(index):
        return _introduced(tokens, index, word, kind, capital)
    return 0.0


def _after_title(tokens: Tokens, index: int, kind: int, capital: bool) -> float:
    lists = words()
    word, title = tokens.words[index], tokens.words[index - 1]
    if capital and word not in hint("stop"):
        title_capital = tokens.shapes[index - 1] != LOWER
        if title_capital or title in hint("plain_titles"):
            return CUED if not is_word(word) or word in lists.surnames or kind else 0.0
    if title not in ("mr", "mrs", "ms", "mx") and not capital and kind < RARE and word not in lists.surnames:
        return 0.0
    married = title in ("mr", "mrs", "ms", "mx") and (word in lists.surnames or kind > 0)
    if title in hint("sure_titles") and word not in hint("stop") and (married or kind >= RARE or not is_word(word)):
        return CUED
    known = kind >= RARE or word in lists.surnames
    return LISTED if title in hint("plain_titles") and known and not is_word(word) else 0.0


def _is_possessed(tokens: Tokens, index: int) -> bool:
    """Whether a word for a person has a possessive or demonstrative before it: my friend, her husband, this guy."""
    adjectives = words().hints["kin_adjectives"]
    for back in range(index - 1, max(-1, index - 5), -1):
        word = tokens.words[back]
        if tokens.opens[back + 1]:
            return False
        if word in hint("pointers") or tokens.possessive[back]:
            return True
        if word not in adjectives and word not in words().hints["kin"]:
            return False
    return False


def _after_kin(tokens: Tokens, index: int, word: str, kind: int, capital: bool) -> float:
    lists = words()
    if word in hint("stop") or tokens.gap(index).strip(" ,'-"):
        return 0.0
    if capital:
        return CUED if kind or not is_word(word) else 0.0
    if kind >= RARE or (word in lists.surnames and not is_word(word)):
        return LISTED
    return LISTED if kind == WORD_NAME and word not in ("will", "may", "can") and acts_as_person(tokens, index) else 0.0


def _introduced(tokens: Tokens, index: int, word: str, kind: int, capital: bool) -> float:
    """After "I'm", "this is", "it's": a name, if it is written as one and is no people, faith or star sign."""
    lists = words()
    if word in hint("not_after_i_am"):
        return 0.0
    of_oneself = tokens.word(index - 1) in ("im", "i'm", "am") and len(word) > 2
    if of_oneself and kind and _is_surname(tokens, index + 1):
        return LISTED
    if word in lists.hints["places"]:
        return 0.0
    ends = tokens.after(index).lstrip(" ")[:1] in ("", ",", ".", "!", "\n", ":", "(", "-", "?", ";")
    follow = tokens.word(index + 1) in (
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
    if kind == COMMON or (kind and of_oneself and not is_word(word)):
        return LISTED
    if kind == RARE and len(word) > 4 and (ends or follow):
        return LISTED
    told = tokens.word(index - 1) == "im" and not is_word(word) and not word.endswith(("ish", "ese", "ian", "ic"))
    return LIKELY if capital and told and ends else 0.0


def _is_surname(tokens: Tokens, index: int) -> bool:
    """Whether a word that belongs to the one before it is a surname and no word."""
    inside = index < len(tokens) and tokens.spaced[index] and not tokens.opens[index]
    return inside and tokens.words[index] in words().surnames and not is_word(tokens.words[index])


def is_addressed(tokens: Tokens, index: int) -> bool:
    """ "Hi Sunny", "goodbye, Frank.", "thank you, Ivy!", "Sunny, you said it": spoken to, or signed."""
    before = tokens.word(index - 1)
    after = tokens.after(index).lstrip(" ")[:1]
    closed = after in ("", ",", ".", "!", "?", "\n")
    if len(tokens) == 1:
        return tokens.words[index] not in hint("months") | hint("feelings") | hint("alone")
    if tokens.opens[index]:
        signs = (
            index == len(tokens) - 1 and index > 0 and tokens.gap(index).strip(" ")[-1:] in ("-", "—", "–", "~", "\n")
        )
        return signs or (
            after == "," and tokens.word(index + 1) in ("you", "im", "your", "please", "thank", "its", "youre")
        )
    if before in hint("greetings") or (before == "there" and tokens.word(index - 2) in hint("greetings")):
        return closed
    return (closed and tokens.gap(index).strip() == "," and after != "," and index + 1 >= len(tokens)) or (
        closed and tokens.gap(index).strip() == "," and after in ("!", ".", "?")
    )


def acts_as_person(tokens: Tokens, index: int) -> bool:
    """Whether what follows is said of a person: "Hope hates me", "Angel and I", "Grace's mother"."""
    after = index + 1
    if after < len(tokens) and tokens.same_clause(after):
        return tokens.words[after] in words().hints["human_verbs"] or (
            tokens.words[after] in ("is", "was") and not tokens.opens[index]
        )
    return False


def starts_personal_action(tokens: Tokens, index: int) -> bool:
    """Whether a sentence begins with what a person alone does: "Rose came over", "Chase picked me up", "Dawn from HR".

    Of a word that is a time or a feeling as well, more must be told: "June brought her kids", not "June brought rain".
    """
    after = index + 1
    if after >= len(tokens) or not tokens.same_clause(after):
        return False
    verb, then, last = tokens.words[after], tokens.word(index + 2), tokens.word(index + 3)
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
    return tokens.words[index] not in vague or then in hint("deeds_to")


def opens_with_person(tokens: Tokens, index: int) -> bool:
    """At a sentence's start more is asked of a word that is a name too: "Will and I", not "Hope and joy"."""
    after = tokens.word(index + 1)
    if tokens.words[index] == "bill" and after in (
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
    if after in ("takes", "took") and tokens.word(index + 2) in (
        "work",
        "time",
        "over",
        "practice",
        "effort",
        "courage",
    ):
        return False
    if after in ("and", "&", "or"):
        follower = tokens.word(index + 2)
        return follower in ("i", "me") or (index + 2 < len(tokens) and tokens.shapes[index + 2] == CAPITAL)
    if tokens.words[index] in hint("months") | hint("feelings"):
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
