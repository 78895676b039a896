"""Find (verb, direct object) pairs of a parsed English text by a walk of its tree.

No rule looks for an object that the parser did not find: on real chat most of what such rules add is wrong
(docs/measurements.md).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.verb_nouns.pairs import VerbNounPair
from h2htalk.errors import MissingExtraError
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Labels of Universal Dependencies and those of spaCy's official models, side by side.
_OBJECTS = _words("obj dobj")
_RECEIVERS = _words("iobj dative")
_SUBJECTS = _words("nsubj nsubj:pass nsubjpass")
_PARTICLES = _words("compound:prt prt")
_RELATIVES = _words("acl:relcl relcl")
_AUXILIARIES = _words("aux aux:pass auxpass cop")
_RELATIVE_PRONOUNS = _words("that which who whom")
# Adverbs that are particles which a parser may miss: "threw the shoes away".
_PARTICLE_ADVERBS = _words("up out off down away back on in over")
# Verbs that take no object, and nouns that are pronouns or say when: "the other one", "last night".
_OBJECTLESS = _words(
    "be become seem appear remain agree arrive belong come depend exist fall go happen look sit sleep stay"
)
_PRONOUNS = _words(
    "one other something anything nothing everything someone anyone everyone today tonight tomorrow"
)
_TIMES = _words(
    "second minute hour day night week month year morning afternoon evening weekend time"
)
_TIME_MARKS = _words("last next every each all")
# A clause after these says when, where, how or why: "the day we met".
_ADVERBIAL_HEADS = _TIMES | _words("moment way reason place fact chance")


def english_pairs(doc: Doc) -> list[VerbNounPair]:
    """Return the pairs of one parsed text, by the noun's position and then the verb's.

    The labels are those of Universal Dependencies or of spaCy's official English models. Raises MissingExtraError
    without lemminflect.
    """
    pairs: dict[tuple[int, int], VerbNounPair] = {}
    for verb in doc:
        if verb.pos_ != "VERB" and (verb.pos_ != "AUX" or verb.dep_ in _AUXILIARIES):
            continue
        lemma = verb_lemma(verb.text, verb.tag_ in ("VB", "VBP"))
        if lemma in _OBJECTLESS:
            continue
        particles = [child.text.lower() for child in verb.children if _is_particle(child)]
        name = " ".join([lemma, *particles[:1]])
        for noun in _objects(verb):
            if _is_thing(noun):
                proper = noun.pos_ == "PROPN"
                pairs[noun.i, verb.i] = VerbNounPair(name, noun_lemma(noun.text, proper))
    return [pair for _, pair in sorted(pairs.items())]


def _is_particle(child: Token) -> bool:
    if child.dep_ in _PARTICLES:
        return True
    missed = child.dep_ == "advmod" and child.text.lower() in _PARTICLE_ADVERBS
    return missed and child.i > child.head.i and not child.n_lefts and not child.n_rights


def _is_thing(noun: Token) -> bool:
    """Say whether an object is a noun that neither stands for another nor says when."""
    if noun.pos_ not in ("NOUN", "PROPN"):
        return False
    lemma = noun_lemma(noun.text).lower()
    if lemma in _TIMES:
        return not any(child.text.lower() in _TIME_MARKS for child in noun.children)
    return lemma not in _PRONOUNS


def _objects(verb: Token) -> list[Token]:
    """Return the verb's own objects; else a coordinated verb's, its relative clause's noun, or a receiver."""
    nouns = _own_objects(verb) or _shared_objects(verb) or _relative_object(verb)
    if not nouns:
        nouns = [child for child in verb.children if child.dep_ in _RECEIVERS]
    for noun in nouns:  # grows during the loop
        for child in noun.children:
            # A coordinated noun with a subject or an object is a clause.
            if child.dep_ == "conj" and not _has(child, _OBJECTS | _SUBJECTS):
                nouns.append(child)
    return nouns


def _shared_objects(verb: Token) -> list[Token]:
    """Return the objects of a coordinated verb that are this one's too."""
    if verb.dep_ == "conj" and verb.head.pos_ == "VERB":  # "wash the dishes and dry"
        nouns = [noun for noun in _own_objects(verb.head) if noun.i > verb.i]
        if nouns:
            return nouns
    for child in verb.children:
        if child.dep_ == "conj" and child.pos_ == "VERB":  # "wash and dry the dishes"
            between = {token.pos_ for token in verb.doc[verb.i + 1 : child.i]}
            joined = between and between <= {"CCONJ", "PUNCT"}
            return _own_objects(child) if joined else []
    return []


def _own_objects(verb: Token) -> list[Token]:
    """Return the verb's objects; of two side by side the second, the thing given."""
    objects = [child for child in verb.children if child.dep_ in _OBJECTS]
    if any(noun.text.lower() in _RELATIVE_PRONOUNS for noun in objects):
        return []
    return objects[-1:]


def _relative_object(verb: Token) -> list[Token]:
    """Return the noun before a clause that lacks an object: "the book I read", "the song you asked me to play"."""
    clause = verb
    for head in verb.ancestors:
        if clause.dep_ not in ("xcomp", "ccomp") or head.pos_ != "VERB" or _has(head, _OBJECTS):
            break
        clause = head
    if clause.dep_ not in _RELATIVES or noun_lemma(clause.head.text) in _ADVERBIAL_HEADS:
        return []
    subject = next((child for child in clause.children if child.dep_ in _SUBJECTS), None)
    if subject is None:
        return []
    if subject.text.lower() in _RELATIVE_PRONOUNS and not _has(clause, _OBJECTS):
        return []
    # A clause is the object, or a preposition is left over: "the recipe you told me about".
    for child in verb.children:
        preposition = child.tag_ == "IN" and not child.n_lefts and not child.n_rights
        if child.i > verb.i and (preposition or child.dep_ in ("xcomp", "ccomp")):
            return []
    return [clause.head]


def _has(token: Token, labels: frozenset[str]) -> bool:
    return any(child.dep_ in labels for child in token.children)


# --- Dictionary forms: lemminflect, with a short list of words where it errs ------------------------------------------

REMEMBERED = 65_536  # words; enough for a large split, and a bound for hostile text

# Words that are no plural, and plurals of which lemminflect gives another singular ("selfy").
_NO_PLURALS = _words("thanks pants trousers sunglasses maths people media data dice")
_SINGULARS = {"leaves": "leaf", "selfies": "selfie", "hoodies": "hoodie"}
# Forms whose first reading in a dictionary is not the one that takes an object.
_INFINITIVES = {
    "lay": "lay",
    "n't": "not",
    "'ve": "have",
    "'d": "have",
    "'s": "be",
    "wanna": "want",
    "gotta": "get",
}


@lru_cache(REMEMBERED)
def noun_lemma(word: str, proper: bool = False) -> str:
    """Return the singular of a noun, lower case; a proper noun is unchanged. Raises MissingExtraError."""
    if proper:
        return word
    word = word.lower()
    if word in _NO_PLURALS or word.endswith("ss"):  # "hostess" is no plural, known or not
        return word
    if word in _SINGULARS:
        return _SINGULARS[word]
    lemmas = _lemminflect().getLemma(word, upos="NOUN")
    return str(lemmas[0]) if lemmas else word


@lru_cache(REMEMBERED)
def verb_lemma(word: str, finite_or_base: bool = False) -> str:
    """Return the infinitive of a verb form as written ("Fed", "lying"), lower case.

    `finite_or_base`: the tagger says infinitive or present (VB, VBP); then "saw" is to saw, not to see.
    """
    word = word.lower()
    if word in _INFINITIVES:
        return _INFINITIVES[word]
    lemmas = _lemminflect().getAllLemmas(word, upos="VERB").get("VERB", ())
    if finite_or_base and word in lemmas:
        return word
    lemmas = lemmas or _lemminflect().getLemma(word, upos="VERB")
    return str(lemmas[0]) if lemmas else word


def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise MissingExtraError("English lemmas", INSTALL) from None
    return lemminflect
