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
    pairs = {}
    for verb in doc:
        if verb.pos_ == "VERB" or (verb.pos_ == "AUX" and verb.dep_ not in _AUXILIARIES):
            if (lemma := verb_lemma(verb.text, verb.tag_ in ("VB", "VBP"))) in _OBJECTLESS:
                continue
            particles = [child.text.lower() for child in verb.children if _is_particle(child)]
            name = " ".join([lemma, *particles[:1]])
            for noun in _objects(verb):
                if (
                    noun.pos_ not in ("NOUN", "PROPN")
                    or (bare := noun_lemma(noun.text).lower()) in _PRONOUNS
                ):
                    continue
                if bare not in _TIMES or not any(
                    child.text.lower() in _TIME_MARKS for child in noun.children
                ):
                    pairs[noun.i, verb.i] = VerbNounPair(
                        name, noun_lemma(noun.text, noun.pos_ == "PROPN")
                    )
    return [pairs[place] for place in sorted(pairs)]


def _is_particle(child: Token) -> bool:
    missed = (
        child.dep_ == "advmod"
        and child.i > child.head.i
        and child.text.lower() in _PARTICLE_ADVERBS
    )
    return child.dep_ in _PARTICLES or (missed and not child.n_lefts and not child.n_rights)


def _objects(verb: Token) -> list[Token]:
    """Return the verb's own objects; else a coordinated verb's, its relative clause's noun, or a receiver."""
    nouns = _own_objects(verb)
    if not nouns and verb.dep_ == "conj" and verb.head.pos_ == "VERB":  # "wash the dishes and dry"
        nouns = [noun for noun in _own_objects(verb.head) if noun.i > verb.i]
    if not nouns:  # "wash and dry the dishes"
        joined = [child for child in verb.children if child.dep_ == "conj" and child.pos_ == "VERB"]
        between = [token.pos_ for one in joined[:1] for token in verb.doc[verb.i + 1 : one.i]]
        nouns = _own_objects(joined[0]) if between and set(between) <= {"CCONJ", "PUNCT"} else []
    nouns = (
        nouns
        or _relative_object(verb)
        or [child for child in verb.children if child.dep_ in _RECEIVERS]
    )
    for (
        noun
    ) in nouns:  # grows during the loop; a coordinated noun with a subject or an object is a clause
        nouns += [
            c for c in noun.children if c.dep_ == "conj" and not _has(c, _OBJECTS | _SUBJECTS)
        ]
    return nouns


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
    subject = next((child for child in clause.children if child.dep_ in _SUBJECTS), None)
    if (
        clause.dep_ not in _RELATIVES
        or subject is None
        or noun_lemma(clause.head.text) in _ADVERBIAL_HEADS
    ):
        return []
    if subject.text.lower() in _RELATIVE_PRONOUNS and not _has(clause, _OBJECTS):
        return []
    # A clause is the object, or a preposition is left over: "the recipe you told me about".
    after = [child for child in verb.children if child.i > verb.i]
    bare = any(
        c.dep_ in ("xcomp", "ccomp") or (c.tag_ == "IN" and not c.n_lefts and not c.n_rights)
        for c in after
    )
    return [] if bare else [clause.head]


def _has(token: Token, labels: frozenset[str]) -> bool:
    return any(child.dep_ in labels for child in token.children)


# --- Dictionary forms: lemminflect, with a short list of words where it errs ------------------------------------------

REMEMBERED = 65_536  # words; enough for a large split, and a bound for hostile text

_NOUNS = {
    word: word
    for word in [
        "thanks",
        "pants",
        "trousers",
        "sunglasses",
        "maths",
        "people",
        "media",
        "data",
        "dice",
    ]
}
_NOUNS |= {"leaves": "leaf", "selfies": "selfie", "hoodies": "hoodie"}  # lemminflect gives "selfy"
# Forms whose first reading in a dictionary is not the one that takes an object.
_VERBS = {
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
    if word in _NOUNS or word.endswith("ss"):  # "hostess" is no plural, known or not
        return _NOUNS.get(word, word)
    return str((_lemminflect().getLemma(word, upos="NOUN") or [word])[0])


@lru_cache(REMEMBERED)
def verb_lemma(word: str, finite_or_base: bool = False) -> str:
    """Return the infinitive of a verb form as written ("Fed", "lying"), lower case.

    `finite_or_base`: the tagger says infinitive or present (VB, VBP); then "saw" is to saw, not to see.
    """
    word = word.lower()
    if word in _VERBS:
        return _VERBS[word]
    known = _lemminflect().getAllLemmas(word, upos="VERB").get("VERB", ())
    if finite_or_base and word in known:
        return word
    return str((known or _lemminflect().getLemma(word, upos="VERB") or [word])[0])


def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise MissingExtraError("English lemmas", INSTALL) from None
    return lemminflect
