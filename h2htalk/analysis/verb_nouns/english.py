"""Find (verb, direct object) pairs of a parsed English text by its dependency labels.

No rule looks for an object that the parser did not find: on real chat most of what such rules add is wrong
(docs/measurements.md).
"""

from __future__ import annotations

from collections.abc import Iterator
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
_PASSIVE = _words("aux:pass auxpass nsubj:pass nsubjpass")
_PARTICLES = _words("compound:prt prt")
_RELATIVES = _words("acl:relcl relcl")
_AUXILIARIES = _words("aux aux:pass auxpass cop")
_NOUNS = _words("NOUN PROPN")

# Adverbs that are particles which a parser may miss: "threw the shoes away".
_PARTICLE_ADVERBS = _words("up out off down away back on in over")
_RELATIVE_PRONOUNS = _words("that which who whom")
_OBJECTLESS = _words(
    "be become seem appear remain agree arrive belong come cry depend exist fall go happen laugh lie listen look rely"
    " rise sit sleep stay think wait work worry"
)
# Share no object with a coordinated verb ("sit and read a book", "try and find one") and need none in a clause.
_OPENERS = _words("try stop start get hurry")
_INTRANSITIVE = _words(
    "apologize chat complain cope dance die dream jog live meditate pray relax rest retire shop smile snore succeed"
    " suffer swim talk travel walk"
)
# Pronouns that are sometimes tagged as nouns.
_PRONOUNS = _words(
    "one other something anything nothing everything someone anyone everyone somebody anybody everybody nobody none"
)
_TODAY = _words("today tonight tomorrow yesterday")
_TIMES = _words("second minute hour day night week month year morning afternoon evening weekend time")
_TIME_MARKS = _words("last next every each all")
# A clause after these says when, where, how or why: "the day we met".
_ADVERBIAL_HEADS = _words("time day night week month year moment way reason place fact chance")


def english_pairs(doc: Doc) -> list[VerbNounPair]:
    """Return the pairs of one parsed text, by the noun's position and then the verb's.

    Args:
        doc: parsed with the labels of Universal Dependencies or those of spaCy's official English models.

    Raises:
        MissingExtraError: lemminflect is not installed.
    """
    pairs = {
        (noun.i, verb.i): VerbNounPair(_verb_name(verb), _noun_name(noun))
        for verb in doc
        if _takes_objects(verb)
        for noun in _objects(verb)
        if noun.pos_ in _NOUNS and not _is_pronoun_or_time(noun)
    }
    return [pairs[place] for place in sorted(pairs)]


def _takes_objects(token: Token) -> bool:
    if token.pos_ == "AUX":
        return token.dep_ not in _AUXILIARIES and _lemma(token) not in _OBJECTLESS
    return token.pos_ == "VERB" and _lemma(token) not in _OBJECTLESS


def _lemma(verb: Token) -> str:
    return verb_lemma(verb.text, verb.tag_ in ("VB", "VBP"))


def _verb_name(verb: Token) -> str:
    for child in verb.children:
        missed = (
            child.dep_ == "advmod" and child.i > verb.i and _is_bare(child) and child.text.lower() in _PARTICLE_ADVERBS
        )
        if missed or child.dep_ in _PARTICLES:
            return f"{_lemma(verb)} {child.text.lower()}"
    return _lemma(verb)


def _noun_name(noun: Token) -> str:
    return noun_lemma(noun.text, noun.pos_ == "PROPN")


def _objects(verb: Token) -> Iterator[Token]:
    """Yield the verb's own objects; else those of a coordinated verb, its relative clause's noun, or a receiver."""
    nouns = _own_objects(verb) or _shared_objects(verb) or _relative_object(verb)
    for noun in nouns or [child for child in verb.children if child.dep_ in _RECEIVERS]:
        yield from _with_conjuncts(noun)


def _own_objects(verb: Token) -> list[Token]:
    """Return the verb's objects; of two side by side the second, the thing given."""
    objects = [child for child in verb.children if child.dep_ in _OBJECTS]
    if any(noun.text.lower() in _RELATIVE_PRONOUNS for noun in objects):
        return []
    following = [*objects[1:], None]
    return [one for one, after in zip(objects, following, strict=False) if not after or _listed(one, after)]


def _listed(noun: Token, after: Token) -> bool:
    return any(token.pos_ in ("CCONJ", "PUNCT") for token in noun.doc[noun.i + 1 : after.i])


def _with_conjuncts(noun: Token) -> list[Token]:
    """Return the noun and those coordinated with it; one with a subject or an object is a clause."""
    nouns = [noun]
    for joined in nouns:  # grows during the loop
        nouns += [child for child in joined.children if child.dep_ == "conj" and not _has(child, _OBJECTS | _SUBJECTS)]
    return nouns


def _shared_objects(verb: Token) -> list[Token]:
    """Return the object of a coordinated verb, behind both: "wash and dry the dishes"."""
    if _lemma(verb) in _INTRANSITIVE | _OPENERS:
        return []
    if verb.dep_ == "conj" and verb.head.pos_ == "VERB":
        return [noun for noun in _own_objects(verb.head) if noun.i > verb.i]
    for child in verb.children:
        if child.dep_ == "conj" and child.pos_ == "VERB" and child.i > verb.i + 1:
            between = [token.pos_ for token in verb.doc[verb.i + 1 : child.i]]
            if between[0] != "ADV" and set(between) <= {"CCONJ", "PUNCT", "ADV"}:
                return _own_objects(child) or _shared_objects(child)
    return []


def _relative_object(verb: Token) -> list[Token]:
    """Return the noun before a clause that lacks an object: "the book I read", "the song you asked me to play"."""
    clause = verb
    for head in verb.ancestors:  # a root is its own head, whatever its label
        if clause.dep_ not in ("xcomp", "ccomp") or head.pos_ != "VERB" or _has(head, _OBJECTS):
            break
        clause = head
    noun = clause.head
    if clause.dep_ not in _RELATIVES or _has(verb, _PASSIVE) or _lemma(verb) in _INTRANSITIVE:
        return []
    if _noun_name(noun) in _ADVERBIAL_HEADS or any(child.tag_ in ("WRB", "WP$") for child in clause.children):
        return []
    subject = next((child for child in clause.children if child.dep_ in _SUBJECTS), None)
    if subject is None or (subject.text.lower() in _RELATIVE_PRONOUNS and not _has(clause, _OBJECTS)):
        return []
    # A clause is the object, or a preposition is left over: "the recipe you told me about".
    after = [child for child in verb.children if child.i > verb.i]
    if any(child.dep_ in ("xcomp", "ccomp") or (child.tag_ == "IN" and _is_bare(child)) for child in after):
        return []
    return [noun]


def _is_bare(token: Token) -> bool:
    return not token.n_lefts and not token.n_rights


def _has(token: Token, labels: frozenset[str]) -> bool:
    return any(child.dep_ in labels for child in token.children)


def _is_pronoun_or_time(noun: Token) -> bool:
    """Whether a noun replaces another ("the other one") or says when ("tonight", "every day")."""
    name = _noun_name(noun).lower()
    if name in _PRONOUNS | _TODAY:
        return True
    return name in _TIMES and any(child.text.lower() in _TIME_MARKS for child in noun.children)


# --- Dictionary forms: lemminflect, with a short list of words where it errs ------------------------------------------

REMEMBERED = 65_536  # words; enough for a large split, and a bound for hostile text

_PLURALS = _words("thanks pants trousers leggings sweatpants sunglasses tights maths people media data dice")
_IN_IE = _words("selfies hoodies veggies besties foodies newbies onesies")  # lemminflect gives "selfy"
# Forms whose first reading in a dictionary is not the one that takes an object.
_VERBS = {"lay": "lay", "n't": "not", "'ve": "have", "'d": "have", "'s": "be", "wanna": "want", "gotta": "get"}
_PREFIXES = ("re", "un", "over", "out", "mis", "pre", "under", "up")
_VOWELS = frozenset("aeiou")


def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise MissingExtraError("English lemmas", INSTALL) from None
    return lemminflect


@lru_cache(REMEMBERED)
def noun_lemma(word: str, proper: bool = False) -> str:
    """Return the singular of a noun, lower case; a proper noun is unchanged. Raises MissingExtraError."""
    if proper:
        return word
    word = word.lower()
    if word in _PLURALS or word.endswith("ss"):  # "hostess" is no plural, known or not
        return word
    if word in _IN_IE or word == "leaves":
        return "leaf" if word == "leaves" else word[:-1]
    lemmas = _lemminflect().getLemma(word, upos="NOUN")
    return str(lemmas[0]) if lemmas else word


@lru_cache(REMEMBERED)
def verb_lemma(word: str, finite_or_base: bool = False) -> str:
    """Return the infinitive of a verb form, lower case.

    Args:
        word: the form as written ("Fed", "lying").
        finite_or_base: the tagger says infinitive or present (VB, VBP): then "saw" is to saw, not to see.
    """
    word = word.lower()
    if word in _VERBS:
        return _VERBS[word]
    known = _known(word)
    if not known:
        return _unknown_verb(word)
    return word if finite_or_base and word in known else known[0]


def _known(word: str) -> tuple[str, ...]:
    lemmas: tuple[str, ...] = _lemminflect().getAllLemmas(word, upos="VERB").get("VERB", ())
    return lemmas


def _unknown_verb(word: str) -> str:
    """Lemmatise an unlisted verb: a known verb after a prefix ("re|potted"), else by the rules of spelling."""
    for prefix in _PREFIXES:
        rest = word.removeprefix(prefix).lstrip("-")
        if rest != word and len(rest) > 2 and (known := _known(rest)):
            return word[: len(word) - len(rest)] + known[0]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in _VOWELS | {"l", "s", "z"}:
            return stem[:-1]
    lemmas = _lemminflect().getLemma(word, upos="VERB")
    return str(lemmas[0]) if lemmas else word
