"""A parsed English text as plain lists, its tags mended where the surface is clear, and its noun phrases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.analysis.english_lemmas import may_be_verb, noun_lemma, verb_lemma
from h2htalk.analysis.english_mending import mend
from h2htalk.analysis.english_words import (
    ATTRIBUTES,
    DEICTIC_TIMES,
    NOMINAL,
    OBJECTS,
    POSSESSIVES,
    PREPOSITIONS,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc

_DETERMINERS = frozenset({"det", "nmod:poss", "poss", "nummod", "det:predet", "predet"})
_AUXILIARIES = frozenset({"aux", "aux:pass", "auxpass", "cop"})
_BASE_TAGS = frozenset({"VB", "VBP"})
_LEADS_NOUN = frozenset({"DET", "NUM", "NOUN", "PROPN", "ADJ"})
_PREDETERMINERS = frozenset({"all", "both", "half", "such", "what"})


@dataclass(slots=True)
class Tree:
    """n tokens: forms, tags, labels, the place of each head (a root's is its own), children, noun phrases.

    `phrase_end[i]` is the place of the head noun of the noun phrase that starts at i, or -1; `phrase_stop[i]` is
    the place behind that phrase.
    """

    words: list[str]
    low: list[str]
    pos: list[str]
    tag: list[str]
    dep: list[str]
    head: list[int]
    kids: list[list[int]]
    phrase_end: list[int]
    phrase_stop: list[int]

    def __len__(self) -> int:
        return len(self.words)

    def lemma(self, verb: int) -> str:
        """The infinitive of the verb at a place."""
        return verb_lemma(self.words[verb], self.tag[verb] in _BASE_TAGS)

    def noun(self, place: int) -> str:
        """The dictionary form of the noun at a place."""
        return noun_lemma(self.words[place], self.pos[place] == "PROPN")

    def has(self, place: int, labels: frozenset[str]) -> bool:
        """Whether a token has a child with one of the labels."""
        return any(self.dep[kid] in labels for kid in self.kids[place])


def read_tree(doc: Doc) -> Tree:
    """The lists of a parsed document, mended."""
    tokens = list(doc)
    words = [token.text for token in tokens]
    head = [token.head.i for token in tokens]
    kids: list[list[int]] = [[] for _ in tokens]
    for place, above in enumerate(head):
        if place != above:
            kids[above].append(place)
    tree = Tree(
        words,
        [word.lower() for word in words],
        [token.pos_ for token in tokens],
        [token.tag_ for token in tokens],
        [token.dep_ for token in tokens],
        head,
        kids,
        [-1] * len(tokens),
        [-1] * len(tokens),
    )
    mend(tree)
    _find_phrases(tree)
    return tree


def acts(tree: Tree, place: int) -> bool:
    """Whether a token is a verb that may have an object.

    A small tagger calls a verb a noun or an adjective; the object it still finds and the dictionary tell better.
    What has a determiner is a noun all the same.
    """
    pos = tree.pos[place]
    if pos == "VERB":
        if tree.low[place] in PREPOSITIONS or _opens_name(tree, place):
            return False
        return tree.dep[place] not in ATTRIBUTES or tree.has(place, OBJECTS)
    if pos == "AUX":
        return tree.dep[place] not in _AUXILIARIES
    if (
        pos in {"PUNCT", "PRON", "DET"}
        or tree.tag[place] in {"IN", "RP", "TO"}
        or not tree.has(place, OBJECTS)
    ):
        return False
    return may_be_verb(tree.words[place]) and not tree.has(place, _DETERMINERS)


def _opens_name(tree: Tree, place: int) -> bool:
    """Whether a verb form in the middle of a sentence is part of a name ("walks to Dock Lane")."""
    names = tree.words[place : place + 2]
    return len(names) == 2 and all(map(str.istitle, names)) and place > 0 and tree.words[place - 1].islower()


def _find_phrases(tree: Tree) -> None:
    place, length = 0, len(tree)
    while place < length:
        if not _starts_phrase(tree, place):
            place += 1
            continue
        end = _last_noun(tree, place)
        if end >= 0:
            tree.phrase_end[place] = _head_noun(tree, place, end)
            tree.phrase_stop[place] = end + 1
        place = max(end, place) + 1


def _starts_phrase(tree: Tree, place: int) -> bool:
    if tree.pos[place] in _LEADS_NOUN or tree.low[place] in POSSESSIVES:
        return True
    return tree.dep[place] == "det" or _is_participle(tree, place)


def _last_noun(tree: Tree, start: int) -> int:
    """The last noun of the run of determiners, adjectives and nouns that starts here; -1 without a noun."""
    end = -1
    for place in range(start, len(tree)):
        if place > start and _ends_phrase(tree, place, end):
            break
        if tree.pos[place] in NOMINAL:
            end = place
    return end


def _ends_phrase(tree: Tree, place: int, end: int) -> bool:
    """Whether a phrase, with its last noun so far at `end` or without one (-1), is over before this word."""
    pos, low = tree.pos[place], tree.low[place]
    if pos in NOMINAL:
        return end >= 0 and low in DEICTIC_TIMES
    if tree.tag[place] in {"POS", "HYPH"}:
        return end < 0 and tree.tag[place] == "POS"
    if pos == "DET" or low in POSSESSIVES:
        return tree.tag[place - 1] != "POS" and tree.low[place - 1] not in _PREDETERMINERS
    if pos in {"ADJ", "NUM"}:
        return end == place - 1  # "the book last night", "piano 30 min": a phrase of its own
    return not _is_participle(tree, place) and not (end < 0 and _leads_adjective(tree, place))


def _head_noun(tree: Tree, start: int, end: int) -> int:
    """The head of a phrase: its last noun, before a name that stands beside it ("my brother Leo", "the name Mia").

    Of a name of several words the word that the parser hangs the others on.
    """
    if tree.pos[end] != "PROPN":
        return end
    name = end
    while name > start and tree.pos[name - 1] == "PROPN":
        name -= 1
    definite = tree.low[start] in POSSESSIVES or tree.pos[start] == "DET"
    if definite and name > start + 1 and tree.pos[name - 1] == "NOUN":
        return name - 1
    return next((place for place in range(name, end) if not name <= tree.head[place] <= end), end)


def _leads_adjective(tree: Tree, place: int) -> bool:
    """Whether the word is the adverb of an adjective ("a really big cake")."""
    if tree.pos[place] != "ADV" or place + 1 >= len(tree):
        return False
    return tree.pos[place + 1] == "ADJ" or _is_participle(tree, place + 1)


def _is_participle(tree: Tree, place: int) -> bool:
    return tree.pos[place] == "VERB" and tree.dep[place] in ATTRIBUTES
