"""Tags that a small tagger gets wrong where the words leave no doubt, set right before the pair rules read them.

Only what holds in general: a verb form that opens a clause before a determiner is a verb, a base form modifies
nothing, a word that the dictionary knows as a noun alone is one. The lists are changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2htalk.analysis.english_lemmas import (
    is_base_form,
    may_be_adjective,
    may_be_noun,
    may_be_verb,
    only_noun,
)
from h2htalk.analysis.english_words import (
    ATTRIBUTES,
    NOMINAL,
    OBJECTS,
    PARTICLES,
    PLAN_VERBS,
    POSSESSIVES,
    RECEIVERS,
    RELATIVE_PRONOUNS,
    RELATIVES,
    TIME_NOUNS,
    words,
)

if TYPE_CHECKING:
    from h2htalk.analysis.english_tree import Tree

MENDED = "mended"  # the label of a token whose old one went with the wrong tag
_OPENERS = words("and or then please to let's lets not n't just also maybe")
_OBJECT_PRONOUNS = frozenset({"me", "him", "us", "them"})
_CLAUSAL = frozenset({"obj", "dobj", "nsubj", "aux", "mark"})
_OPEN_TAGS = frozenset({"NOUN", "ADJ", "PROPN", "CCONJ", "SCONJ", "INTJ", "X"})
# Words of grammar that are verbs too, but not where they open a clause before "the".
_GRAMMAR = words("like down near but so no out well even then still back right while can will may might")
_NOUN_PLACES = OBJECTS | RECEIVERS | {"conj", "obl:unmarked", "xcomp"}


def mend(tree: Tree) -> None:
    """Set tags and labels right: nouns first, then verbs from the right, for what follows tells what a word is."""
    for place, pos in enumerate(tree.pos):
        if pos in {"ADJ", "ADV", "VERB", "X", "INTJ"}:
            _mend_noun(tree, place)
    for place in reversed(range(len(tree))):
        pos = tree.pos[place]
        if pos == "VERB":
            _mend_attribute(tree, place)
        elif pos in _OPEN_TAGS and _opens_clause(tree, place):
            _mend_opening_verb(tree, place)
        if tree.pos[place] in NOMINAL and place + 1 < len(tree):
            _mend_inner_verb(tree, place)


def _opens_clause(tree: Tree, place: int) -> bool:
    if place == 0:
        return True
    before = tree.pos[place - 1]
    return (
        before in {"PUNCT", "SPACE", "SYM"} or tree.low[place - 1] in _OPENERS or _is_clock(tree, place - 1)
    )


def _is_clock(tree: Tree, place: int) -> bool:
    word = tree.low[place]
    return word in {"am", "pm", "a.m.", "p.m."} or (word[:1].isdigit() and ":" in word)


def _mend_opening_verb(tree: Tree, place: int) -> None:
    """A verb form that opens a clause, with a noun phrase right behind it, is a verb: imperatives, diary lines.

    Two nouns without determiner are a compound ("book club") unless the first is a verb of plans or no noun at all.
    """
    after, word, low = place + 1, tree.words[place], tree.low[place]
    if after >= len(tree) or not low.isalpha() or low in _GRAMMAR:
        return
    gerund = low.endswith("ing") and may_be_verb(word)
    if not gerund and not is_base_form(word):
        return
    following = tree.low[after]
    if following in POSSESSIVES or following in _OBJECT_PRONOUNS or tree.pos[after] == "DET":
        mended = following not in {"that", "which", "what"}
    elif following in PARTICLES and after + 1 < len(tree):
        mended = tree.pos[after + 1] == "DET" or tree.low[after + 1] in POSSESSIVES
    elif following in {",", "and", "or"} and after + 1 < len(tree):  # "peel, chop and roast the carrots"
        mended = low in PLAN_VERBS and tree.pos[after + 1] == "VERB" and is_base_form(tree.words[after + 1])
    elif tree.pos[after] in {"NOUN", "PROPN", "ADJ", "NUM"} and tree.pos[place] in {"NOUN", "PROPN", "ADJ"}:
        mended = _bare_object_follows(tree, place, gerund)
    else:
        return
    if mended:
        _make_verb(tree, place, "VBG" if gerund else "VB")


def _bare_object_follows(tree: Tree, place: int, gerund: bool) -> bool:
    after, word = place + 1, tree.words[place]
    if gerund:
        return not may_be_adjective(word) and _is_gerund_clause(tree, after)
    if _verb_behind(tree, after) is not None:
        return False
    plan = place > 0 and (_is_clock(tree, place - 1) or _is_clock(tree, max(place - 2, 0)))
    if tree.pos[place] == "ADJ" and not plan and may_be_adjective(word):
        return False
    return tree.low[place] in PLAN_VERBS or not may_be_noun(word)


def _verb_behind(tree: Tree, place: int) -> int | None:
    """The place of a verb right behind the nouns that start here: "Hiking boots cost a lot"."""
    while place < len(tree) and tree.pos[place] in {"NUM", "ADJ", "NOUN", "PROPN"}:
        place += 1
    return place if place < len(tree) and tree.pos[place] in {"VERB", "AUX"} else None


def _is_gerund_clause(tree: Tree, noun: int) -> bool:
    """Whether -ing and a bare noun are a clause: "learning Spanish has changed me", not "growing children need it"."""
    verb = _verb_behind(tree, noun)
    if verb is None:
        return True
    return tree.tag[verb - 1] not in {"NNS", "NNPS"} or tree.tag[verb] == "VBZ"


def _mend_attribute(tree: Tree, place: int) -> None:
    """A verb that the parser made an attribute of the noun behind it, where it cannot be one."""
    if tree.dep[place] not in ATTRIBUTES:
        return
    word, tag, before = tree.words[place], tree.tag[place], place - 1
    if tag in {"VB", "VBP", "VBZ"}:
        tree.dep[place] = MENDED
    elif tag == "VBG" and place + 1 < len(tree) and tree.pos[place + 1] in NOMINAL:
        after_preposition = tree.dep[place] == "compound" and place and tree.pos[before] in {"ADP", "SCONJ"}
        first = (
            not place
            or tree.low[before] in {".", "!", "?", ",", ";", ":", "-"}
            or tree.pos[before] == "SPACE"
        )
        if after_preposition or (first and not may_be_adjective(word) and _is_gerund_clause(tree, place + 1)):
            tree.dep[place] = MENDED
    elif tag in {"VBN", "VBD"} and place and tree.low[before] in {"'ve", "’ve", "have", "has", "had"}:
        tree.dep[place] = MENDED  # "I 've packed sandwiches": the perfect, not packed ones
        tree.pos[before], tree.dep[before] = "AUX", "aux"


def _mend_noun(tree: Tree, place: int) -> None:
    """What stands in an object's place and is nothing but a noun in the dictionary is one ("cook pasta").

    So is what the two taggers disagree about, unless it modifies another word.
    """
    tag, verbal = tree.tag[place], tree.pos[place] == "VERB"
    if tag.startswith("NN") and not verbal and tree.dep[place] not in ATTRIBUTES:
        tree.pos[place] = "PROPN" if tag.startswith("NNP") else "NOUN"
    if verbal and tag == "VBZ" and _follows_verb(tree, place) and may_be_noun(tree.words[place]):
        tree.pos[place], tree.tag[place], tree.dep[place] = "NOUN", "NNS", MENDED
    if tree.dep[place] not in _NOUN_PLACES or tree.has(place, _CLAUSAL):
        return
    if tag == "VBG" and place and (tree.tag[place - 1] == "POS" or tree.low[place - 1] in POSSESSIVES):
        tree.pos[place], tree.tag[place] = "NOUN", "NN"  # "my mother's cooking"
    if verbal and tree.dep[place] not in OBJECTS | RECEIVERS:
        return
    word = tree.words[place]
    if only_noun(word) or (verbal and tree.low[place].endswith("s") and may_be_noun(word)):
        tree.pos[place], tree.tag[place] = "NOUN", "NNS" if tree.tag[place] == "VBZ" else "NN"


def _follows_verb(tree: Tree, place: int) -> bool:
    """Whether a verb stands right before and nothing that belongs to a verb behind ("we flew kites on the hill")."""
    after = place + 1
    ends = after == len(tree) or tree.pos[after] in {"ADP", "PUNCT", "CCONJ", "SPACE"}
    return ends and place > 0 and tree.pos[place - 1] == "VERB"


def _mend_inner_verb(tree: Tree, place: int) -> None:
    """A noun that stands where a verb does: right before an object, behind what can be its subject.

    Before an object pronoun ("running calms me"); before a determiner if the other tagger ("saw a fox cross the
    road") or the parser ("the app that tracks my mood") agrees.
    """
    tag, following = tree.tag[place], tree.low[place + 1]
    if not may_be_verb(tree.words[place]) or tree.low[place] in TIME_NOUNS:
        return
    if following in _OBJECT_PRONOUNS:
        mended = place > 0
    elif tree.pos[place + 1] != "DET" and following not in POSSESSIVES:
        return
    else:
        mended = tag in {"VB", "VBD", "VBP", "VBZ"} or _stands_as_verb(tree, place)
    if mended:
        _make_verb(tree, place, "VBZ" if tag == "NNS" else tag if tag.startswith("VB") else "VBD")


def _stands_as_verb(tree: Tree, place: int) -> bool:
    if not place:
        return False
    before = tree.pos[place - 1]
    if tree.dep[place] in RELATIVES and tree.low[place - 1] in RELATIVE_PRONOUNS:
        return True
    if before == "CCONJ":
        return tree.tag[place] == "NNS" and tree.dep[place] == "conj"
    follows = before in NOMINAL or tree.tag[place - 1] == "PRP"
    return follows and tree.has(place, OBJECTS)


def _make_verb(tree: Tree, place: int, tag: str) -> None:
    tree.pos[place], tree.tag[place] = "VERB", tag
    if tree.dep[place] in ATTRIBUTES | OBJECTS:
        tree.dep[place] = MENDED
