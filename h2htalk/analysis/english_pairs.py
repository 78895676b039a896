"""Rules that read (verb, direct object) pairs off a parsed English text.

A small parser finds verbs and noun phrases well and ties them together less well. So each verb's object is looked
for twice, in the tree and in the words right behind the verb; where both answer, the nearer verb keeps the noun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2htalk.analysis.english_lemmas import is_base_form, never_noun
from h2htalk.analysis.english_mending import MENDED
from h2htalk.analysis.english_particles import leading_particle, particle
from h2htalk.analysis.english_relatives import relative_objects
from h2htalk.analysis.english_tree import Tree, acts, read_tree
from h2htalk.analysis.english_words import (
    ACTIVITY_VERBS,
    ATTRIBUTES,
    BARE_INFINITIVE_VERBS,
    CLAUSE_VERBS,
    COPULAS,
    DEICTIC_TIMES,
    DITRANSITIVES,
    HEADLESS,
    INTRANSITIVES,
    MOVEMENT,
    NOMINAL,
    NOUNLIKE_INFINITIVES,
    OBJECTLESS,
    OBJECTS,
    OPENERS,
    PARTICLES,
    PASSIVE,
    PERSONS,
    POSSESSIVES,
    PRONOUN_NOUNS,
    RECEIVERS,
    SUBJECTS,
    TIME_MARKS,
    TIME_NOUNS,
    TIME_TAKERS,
    TIME_UNITS,
    UNIT_TAKERS,
    WANT_VERBS,
)
from h2htalk.analysis.verb_nouns import Pair

if TYPE_CHECKING:
    from spacy.tokens import Doc

_PRONOUN_OBJECTS = frozenset({"me", "you", "him", "her", "us", "them", "it", "u", "myself", "yourself"})
_QUESTION_WORDS = frozenset({"what", "which", "whatever", "whichever", "whose", "how"})
_FINITE = frozenset({"nsubj", "aux"})
_LINKS = frozenset({"CCONJ", "PUNCT", "ADV", "ADP", "PART"})


def english_pairs(doc: Doc) -> list[Pair]:
    """The pairs of one parsed text, by the noun's place and then the verb's.

    Args:
        doc: parsed with the labels of Universal Dependencies or those of spaCy's official English models.

    Raises:
        MissingExtraError: lemminflect is not installed.
    """
    tree = read_tree(doc)
    verbs = [place for place in range(len(tree)) if acts(tree, place)]
    near = {verb: _object_behind(tree, verb) for verb in verbs}
    taken = {noun: verb for verb, noun in near.items() if noun >= 0}
    objects = {verb: _objects(tree, verb, near[verb], taken) for verb in verbs}
    _share(tree, verbs, objects)
    for verb in verbs:
        objects[verb] += [
            noun
            for noun in relative_objects(tree, verb, objects[verb])
            if tree.noun(noun).lower() not in PRONOUN_NOUNS and not _is_headless(tree, noun)
        ]
    found = {(noun, verb) for verb in verbs for noun in objects[verb]}
    return [Pair(_name(tree, verb, noun), tree.noun(noun)) for noun, verb in sorted(found)]


def _name(tree: Tree, verb: int, noun: int) -> str:
    with_it = particle(tree, verb, noun)
    return f"{tree.lemma(verb)} {with_it}" if with_it else tree.lemma(verb)


def _objects(tree: Tree, verb: int, near: int, taken: dict[int, int]) -> list[int]:
    """The object nouns of a verb: those of the tree that no nearer verb has, and the one right behind the verb."""
    kids = [kid for kid in tree.kids[verb] if taken.get(kid, verb) == verb]
    heads = [kid for kid in kids if tree.dep[kid] in OBJECTS and not _verb_between(tree, verb, kid)]
    heads = [head for head in heads if not _behind_preposition(tree, verb, head)]
    if not any(tree.dep[kid] in OBJECTS for kid in tree.kids[verb]):
        heads += [kid for kid in kids if tree.dep[kid] in RECEIVERS]
    if near >= 0:
        heads = [head for head in heads if head > near and _listed(tree, head)] + [near]
    nouns = {noun for head in heads for noun in _coordinated(tree, head)}
    nouns |= set(_stray_conjuncts(tree, verb, heads))
    nouns = {noun for noun in nouns if taken.get(noun, verb) == verb}
    return [noun for noun in sorted(nouns) if _counts(tree, verb, noun)]


def _verb_between(tree: Tree, verb: int, noun: int) -> bool:
    """Whether another verb stands before the noun: nearer, so an object is its own or shared."""
    return any(acts(tree, place) for place in range(verb + 1, noun))


def _behind_preposition(tree: Tree, verb: int, noun: int) -> bool:
    """Whether a preposition leads to what the parser calls an object ("read twenty minutes before bed")."""
    cases = (kid for kid in tree.kids[noun] if verb < kid < noun and tree.dep[kid] == "case")
    return any(tree.low[kid] not in PARTICLES for kid in cases)


def _listed(tree: Tree, noun: int) -> bool:
    """Whether a comma or conjunction stands before the noun's phrase: one more object, not a second role."""
    start = min([noun, *tree.kids[noun]])
    return (start > 0 and tree.pos[start - 1] in {"CCONJ", "PUNCT"}) or tree.pos[start] == "CCONJ"


def _object_behind(tree: Tree, verb: int) -> int:
    """The head noun of the phrase right behind a verb (and its particle), where that can only be its object; or -1."""
    lemma = tree.lemma(verb)
    if lemma in COPULAS or lemma in INTRANSITIVES or lemma in CLAUSE_VERBS:
        return -1
    if tree.has(verb, PASSIVE):
        return -1
    if tree.tag[verb] == "VBN" and tree.dep[verb] != MENDED and not tree.has(verb, _FINITE):
        return -1
    start = max(leading_particle(tree, verb), verb) + 1
    if start >= len(tree) or tree.low[start] in _QUESTION_WORDS:
        return -1
    end = tree.phrase_end[start]
    if lemma in DITRANSITIVES:
        thing = _thing_given(tree, start)
        if thing >= 0 and _counts(tree, verb, thing) and not _is_subject(tree, thing, verb):
            return thing
    if lemma in BARE_INFINITIVE_VERBS:
        end = _before_infinitive(tree, verb, start)
    if end < 0 or not _counts(tree, verb, end) or _is_subject(tree, end, verb):
        return -1
    return end


def _thing_given(tree: Tree, start: int) -> int:
    """The head of the second of two phrases that stand side by side ("gave my sister flowers"), or -1."""
    second = tree.phrase_stop[start] if tree.phrase_end[start] >= 0 else start + 1
    if tree.phrase_end[start] < 0 and tree.low[start] not in _PRONOUN_OBJECTS:
        return -1
    thing = tree.phrase_end[second] if second < len(tree) else -1
    if thing >= 0 and tree.noun(thing).lower() in TIME_NOUNS and _marked_as_time(tree, thing):
        return -1  # "make dinner tonight"
    return thing


def _before_infinitive(tree: Tree, verb: int, start: int) -> int:
    """The head of the phrase, less an infinitive that was taken for its last noun ("make my mother cry")."""
    end = tree.phrase_end[start]
    last = end - 1
    if last < start or tree.pos[last] not in NOMINAL or not is_base_form(tree.words[end]):
        return end
    parsed = tree.head[last] == verb and tree.dep[last] in OBJECTS
    return last if parsed or tree.tag[last] == "NNS" or tree.low[end] in NOUNLIKE_INFINITIVES else end


def _is_subject(tree: Tree, noun: int, verb: int) -> bool:
    """Whether the noun behind the verb is a subject: of a clause of its own, or of the verb itself ("says Mary")."""
    above = tree.head[noun]
    if tree.dep[noun] not in SUBJECTS or tree.dep[verb] == MENDED:
        return False
    if above <= noun:
        return above == verb
    if tree.low[noun + 1] == "," and all(pos in _LINKS for pos in tree.pos[noun + 2 : above]):
        return False  # a list of imperatives: "boil water, then peel potatoes"
    return not (
        tree.lemma(verb) in BARE_INFINITIVE_VERBS
        and tree.tag[above] in {"VB", "VBP"}
        and tree.dep[noun] == "nsubj"
    )


def _coordinated(tree: Tree, noun: int) -> list[int]:
    """The noun and those joined to it by commas and conjunctions; what is no noun among them only hands on."""
    found, waiting = [noun], [noun]
    for joined in waiting:  # grows while it is read
        for kid in tree.kids[joined]:
            if tree.dep[kid] == "flat":  # the rest of a name
                waiting.append(kid)
            elif tree.dep[kid] != "conj" or tree.has(kid, OBJECTS | SUBJECTS):
                continue
            elif not _verb_between(
                tree, joined, kid
            ):  # else the noun of the next phrase in a list of verb phrases
                found.append(kid)
                waiting.append(kid)
    return found


def _stray_conjuncts(tree: Tree, verb: int, heads: list[int]) -> list[int]:
    """Nouns that the parser joined to the verb instead of to its object ("I miss you and our talks")."""
    if not heads:
        return []
    strays = [
        k for k in tree.kids[verb] if tree.dep[k] == "conj" and k > max(heads) and tree.pos[k] in NOMINAL
    ]
    return [noun for noun in strays if not tree.has(noun, OBJECTS | SUBJECTS | {"cop"})]


def _share(tree: Tree, verbs: list[int], objects: dict[int, list[int]]) -> None:
    """Give a verb without object that of the verb it is joined to: "wash and dry the dishes", "chop, fry and eat"."""
    shared: set[int] = set()
    for first, verb in zip(reversed(verbs[:-1]), reversed(verbs[1:]), strict=True):
        kept = any(tree.dep[kid] in OBJECTS and kid not in objects[verb] for kid in tree.kids[first])
        if objects[first] or not objects[verb] or kept:
            continue
        between = range(first + 1, verb)
        if not between or any(tree.pos[place] not in _LINKS for place in between):
            continue
        if _stands_alone(tree, first, verb):
            continue
        joined = any(tree.pos[place] == "CCONJ" for place in between)
        if (joined or verb in shared) and tree.lemma(first) not in INTRANSITIVES | OPENERS:
            objects[first] = [noun for noun in objects[verb] if noun > verb]
            shared.add(first)


def _stands_alone(tree: Tree, first: int, verb: int) -> bool:
    """Whether the first of two verbs is a clause of its own: "cooks badly and wants a break", "has not answered, and
    changes her mind".
    """
    finite, other = tree.tag[first], tree.tag[verb]
    if finite in {"VBZ", "VBD", "VBP"} and tree.pos[first + 1] == "ADV":
        return True
    return other == "VBZ" and finite in {"VBN", "VBD"}


def _counts(tree: Tree, verb: int, noun: int) -> bool:
    """Whether a phrase in an object's place is one: a noun, no time or measure, no subject of an infinitive."""
    if tree.pos[noun] not in NOMINAL or (tree.pos[noun] == "NOUN" and never_noun(tree.words[noun])):
        return False
    lemma = tree.lemma(verb)
    if lemma in COPULAS or lemma in OBJECTLESS or _homeward(tree, verb, noun):
        return False
    word = tree.noun(noun).lower()
    if word in PRONOUN_NOUNS or _is_headless(tree, noun):
        return False
    if word in TIME_NOUNS and _is_adverbial(tree, lemma, noun):
        return False
    if lemma in WANT_VERBS and _infinitive_follows(tree, noun):
        return lemma == "need" and word not in PERSONS and tree.pos[noun] != "PROPN"
    bare_gerund = word.endswith("ing") and not tree.kids[noun] and verb == noun - 1
    return not (bare_gerund and lemma in ACTIVITY_VERBS)


def _homeward(tree: Tree, verb: int, noun: int) -> bool:
    """Whether "home" says where to: "drove her home"."""
    return tree.low[noun] == "home" and (verb == noun - 1 or not tree.kids[noun])


def _is_headless(tree: Tree, noun: int) -> bool:
    """Whether a word of number or choice stands for a noun left out; "the bigger half" is a noun of its own."""
    if tree.low[noun] == "second":
        return noun > 0 and tree.low[noun - 1] == "the"
    return tree.low[noun] in HEADLESS and not tree.has(noun, ATTRIBUTES)


def _is_adverbial(tree: Tree, lemma: str, noun: int) -> bool:
    if lemma in TIME_TAKERS:
        return False
    article = tree.low[noun - 1] in {"a", "an"} and tree.noun(noun).lower() in TIME_UNITS
    lasts = article and lemma not in UNIT_TAKERS  # "cooked an hour"
    return lasts or lemma in INTRANSITIVES or lemma in MOVEMENT or _marked_as_time(tree, noun)


def _marked_as_time(tree: Tree, noun: int) -> bool:
    """Whether a noun of time says when or how long: "today", "last night", "two hours"."""
    if tree.low[noun] in DEICTIC_TIMES:
        return True
    before, marked = noun - 1, False
    while before >= 0 and tree.pos[before] in {"ADJ", "DET", "NUM", "ADV"}:
        if tree.low[before] in TIME_MARKS or tree.pos[before] == "NUM":
            marked = True
        before -= 1
    # "ate my whole morning" acts on it, "worked the whole morning" does not.
    return marked and not (before >= 0 and tree.low[before] in POSSESSIVES)


def _infinitive_follows(tree: Tree, noun: int) -> bool:
    return tree.low[noun + 1 : noun + 2] == ["to"] and noun + 2 < len(tree) and tree.tag[noun + 2] == "VB"
