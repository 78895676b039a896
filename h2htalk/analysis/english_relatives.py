"""Nouns that are the object of their own relative clause: "the book I read", "the song that you played"."""

from __future__ import annotations

from h2htalk.analysis.english_particles import leading_particle
from h2htalk.analysis.english_tree import Tree
from h2htalk.analysis.english_words import (
    ADVERBIAL_HEADS,
    COPULAS,
    DITRANSITIVES,
    INTRANSITIVES,
    NOMINAL,
    OBJECTS,
    PASSIVE,
    RELATIVE_PRONOUNS,
    RELATIVES,
    SAYING,
    STRANDED,
    SUBJECTS,
    TELLING,
)

_OVERT = RELATIVE_PRONOUNS - {"who"}
_WH_ADVERBS = frozenset({"WRB", "WP$"})  # "the café where", "the neighbor whose"


def relative_objects(tree: Tree, verb: int, own: list[int]) -> list[int]:
    """The noun before the clause, and those joined to it, when the verb's object is missing from the clause.

    Args:
        own: the objects that the verb has inside the clause.
    """
    if own or tree.lemma(verb) in COPULAS or tree.has(verb, PASSIVE):
        return []
    clause = _clause_verb(tree, verb)
    noun = tree.head[clause] if tree.dep[clause] in RELATIVES else _noun_before_subject(tree, verb)
    if noun < 0 or noun >= verb or tree.pos[noun] not in NOMINAL:
        return []
    if clause == verb and _pronoun_is_object(tree, verb, noun):
        return [noun]
    if not _has_gap(tree, verb, clause, noun):
        return []
    return [noun]


def _clause_verb(tree: Tree, verb: int) -> int:
    """Climb from "try" to "want" in "the recipe I want to try", from "like" to "think" in "a song I think you like"."""
    while tree.dep[verb] in {"xcomp", "ccomp"} and tree.pos[tree.head[verb]] == "VERB":
        above = tree.head[verb]
        if tree.dep[verb] == "ccomp" and tree.lemma(above) not in SAYING:
            break
        if above == verb or tree.has(above, OBJECTS):
            break
        verb = above
    return verb


def _noun_before_subject(tree: Tree, verb: int) -> int:
    """The noun of "noun that somebody verbs" where the parser saw no relative clause; or -1."""
    subject = next((k for k in tree.kids[verb] if tree.dep[k] in SUBJECTS and k < verb), -1)
    if subject < 0:
        return -1
    start = min([subject, *(k for k in tree.kids[subject] if k < subject)])
    if start < 2 or tree.low[start - 1] not in _OVERT or tree.pos[start - 2] not in NOMINAL:
        return -1
    above = tree.head[start - 2]
    telling = tree.pos[above] == "VERB" and tree.lemma(above) in TELLING
    return -1 if telling else start - 2


def _pronoun_is_object(tree: Tree, verb: int, noun: int) -> bool:
    """Whether the parser sees the relative pronoun as object of the verb, with no other verb between the two."""
    for kid in tree.kids[verb]:
        bare = tree.dep[kid] in OBJECTS or tree.dep[kid] == "obl:unmarked"
        if bare and tree.low[kid] in RELATIVE_PRONOUNS and noun < kid < verb:
            return "VERB" not in tree.pos[kid:verb]
    return False


def _has_gap(tree: Tree, verb: int, clause: int, noun: int) -> bool:
    """Whether the verb lacks an object that the noun can be."""
    lemma = tree.lemma(verb)
    if lemma in INTRANSITIVES or tree.low[noun] in ADVERBIAL_HEADS or tree.noun(noun) in ADVERBIAL_HEADS:
        return False
    kids = tree.kids[clause]
    subjects = [k for k in kids if tree.dep[k] in SUBJECTS and tree.low[k] not in RELATIVE_PRONOUNS]
    if not any(noun < subject < clause for subject in subjects):
        return False
    between = range(noun + 1, min(subjects))
    if any(tree.tag[place] in _WH_ADVERBS or tree.pos[place] == "ADP" for place in between):
        return False
    if any(kid > verb and _fills_gap(tree, kid, lemma) for kid in tree.kids[verb]):
        return False
    return not _preposition_stranded(tree, verb)


def _fills_gap(tree: Tree, kid: int, lemma: str) -> bool:
    if tree.dep[kid] in {"ccomp", "xcomp"}:
        return tree.pos[kid] != "ADJ"
    return tree.dep[kid] in OBJECTS and not (lemma in DITRANSITIVES and tree.pos[kid] == "PRON")


def _preposition_stranded(tree: Tree, verb: int) -> bool:
    """Whether a preposition without a noun follows the verb ("the recipe you told me about")."""
    particle = leading_particle(tree, verb)
    for place in range(verb + 1, min(verb + 4, len(tree))):
        if tree.low[place] in STRANDED and place != particle:
            return place + 1 >= len(tree) or not (
                tree.phrase_end[place + 1] >= 0 or tree.pos[place + 1] in {"PRON", "VERB", "NUM"}
            )
        if tree.pos[place] not in {"PRON", "ADV", "ADP"}:
            return False
    return False
