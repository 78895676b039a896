"""Particles of English verbs: "turn off the lights", "turn the lights off"; never "look after the cat"."""

from __future__ import annotations

from h2htalk.analysis.english_tree import Tree
from h2htalk.analysis.english_words import (
    CLEAR_PARTICLES,
    MOVEMENT,
    NO_PARTICLE,
    PARTICLE_LABELS,
    PARTICLE_VERBS,
    PARTICLES,
    TIME_NOUNS,
    WEAK_PARTICLE_VERBS,
)


def leading_particle(tree: Tree, verb: int) -> int:
    """The place of a particle right behind the verb and before its object, or -1."""
    place = verb + 1
    if place >= len(tree) or tree.low[place] not in PARTICLES:
        return -1
    lemma, word = tree.lemma(verb), tree.low[place]
    if lemma in NO_PARTICLE:
        return -1
    strong = (lemma, word) in PARTICLE_VERBS and lemma not in WEAK_PARTICLE_VERBS
    if strong or (word in CLEAR_PARTICLES and lemma not in MOVEMENT):
        return place if tree.low[place + 1 : place + 2] != ["of"] else -1
    return -1


def particle(tree: Tree, verb: int, noun: int) -> str | None:
    """The particle that belongs to the verb with this object, or None."""
    lemma = tree.lemma(verb)
    if lemma in NO_PARTICLE:
        return None
    for kid in tree.kids[verb]:
        if tree.dep[kid] in PARTICLE_LABELS and tree.low[kid] in PARTICLES:
            return tree.low[kid]
    place = leading_particle(tree, verb)
    if place >= 0 and (noun > verb or not _opens_phrase(tree, place + 1)):
        return tree.low[place]
    place = noun + 1
    if not verb < noun < len(tree) - 1 or tree.low[place] not in PARTICLES:
        return None
    word = tree.low[place]
    if word not in CLEAR_PARTICLES and (lemma, word) not in PARTICLE_VERBS:
        return None
    return None if _opens_phrase(tree, place + 1) else word


def _opens_phrase(tree: Tree, place: int) -> bool:
    """Whether a noun phrase or "of" follows: then the word before is a preposition ("put it on the table")."""
    if place >= len(tree):
        return False
    end = tree.phrase_end[place]
    if end >= 0:  # "threw the shoes away years ago"
        return tree.noun(end).lower() not in TIME_NOUNS
    return tree.pos[place] == "PRON" or tree.low[place] == "of"
