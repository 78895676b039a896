"""English verb-noun pairs: what counts as a direct object, read off trees made by hand and off plain sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

pytest.importorskip("spacy", reason="the analysis extra is not installed")
pytest.importorskip("lemminflect", reason="the analysis extra is not installed")

from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from h2htalk.analysis.verb_nouns.english import english_pairs, noun_lemma, verb_lemma
from h2htalk.analysis.verb_nouns.pairs import iter_pairs

VOCAB = Vocab()
KINDS = {"NN": "NOUN", "NNP": "PROPN", "VB": "VERB", "PR": "PRON", "DT": "DET", "IN": "ADP", "RP": "ADP", "JJ": "ADJ"}
KINDS |= {"CC": "CCONJ", "CD": "NUM", "RB": "ADV", "TO": "PART", "MD": "AUX", "WP": "PRON", "WD": "PRON", ",": "PUNCT"}


def tree(written: str) -> Doc:
    """A tree made by hand: `word/tag/label/head`, the head as the place of a word, counted from 1; a root's is 0."""
    rows = [part.split("/") for part in written.split()]
    heads = [int(row[3]) - 1 if row[3] != "0" else place for place, row in enumerate(rows)]
    kinds = [KINDS[row[1]] if row[1] in KINDS else KINDS[row[1][:2]] for row in rows]
    words, tags, labels = ([row[column] for row in rows] for column in range(3))
    return Doc(VOCAB, words=words, tags=tags, pos=kinds, heads=heads, deps=labels)


def pairs(doc: Doc) -> list[str]:
    return [f"{pair.verb} {pair.noun}" for pair in english_pairs(doc)]


def read(text: str) -> list[str]:
    return [f"{pair.verb} {pair.noun}" for pair in iter_pairs([text], "en")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("I/PRP/nsubj/2 fed/VBD/ROOT/0 them/PRP/obj/2", []),
        ("I/PRP/nsubj/2 fed/VBD/ROOT/0 ducks/NNS/dobj/2", ["feed duck"]),
        ("Wash/VB/ROOT/0 and/CC/cc/3 dry/VB/conj/1 dishes/NNS/obj/1", ["wash dish", "dry dish"]),
        ("Sit/VB/ROOT/0 and/CC/cc/3 read/VB/conj/1 books/NNS/obj/3", ["read book"]),
        ("Bake/VB/ROOT/0 bread/NN/obj/1 and/CC/cc/4 pies/NNS/conj/2", ["bake bread", "bake pie"]),
        ("Mom/NNP/nsubj/2 gave/VBD/ROOT/0 Ann/NNP/iobj/2 a/DT/det/5 hug/NN/obj/2", ["give hug"]),
        ("Mom/NNP/nsubj/2 gave/VBD/ROOT/0 Ann/NNP/dative/2 a/DT/det/5 hug/NN/dobj/2", ["give hug"]),
        ("Turn/VB/ROOT/0 off/RP/compound:prt/1 lights/NNS/obj/1", ["turn off light"]),
        ("Turn/VB/ROOT/0 lights/NNS/dobj/1 off/RP/prt/1", ["turn off light"]),
        ("cakes/NNS/ROOT/0 baked/VBN/acl/1 by/IN/case/4 Tom/NNP/obl/2", []),
        ("songs/NNS/ROOT/0 that/WDT/obj/4 you/PRP/nsubj/4 played/VBD/acl:relcl/1", ["play song"]),
        ("songs/NNS/ROOT/0 that/WDT/dobj/4 you/PRP/nsubj/4 played/VBD/relcl/1", ["play song"]),
        ("songs/NNS/ROOT/0 you/PRP/nsubj/3 played/VBD/acl:relcl/1", ["play song"]),
        ("songs/NNS/ROOT/0 you/PRP/nsubj/3 want/VBP/acl:relcl/1 to/TO/mark/5 play/VB/xcomp/3", ["play song"]),
        ("songs/NNS/ROOT/0 you/PRP/nsubj/3 cared/VBD/acl:relcl/1 about/IN/obl/3", []),
        ("days/NNS/ROOT/0 you/PRP/nsubj/3 played/VBD/acl:relcl/1", []),
        ("men/NNS/ROOT/0 who/WP/nsubj/3 fish/VBP/acl:relcl/1 trout/NN/obj/3", ["fish trout"]),
        ("I/PRP/nsubj/2 slept/VBD/ROOT/0 ten/CD/nummod/4 hours/NNS/obj/2", []),
        ("I/PRP/nsubj/2 wasted/VBD/ROOT/0 ten/CD/nummod/4 hours/NNS/obj/2", ["waste hour"]),
        ("She/PRP/nsubj/2 became/VBD/ROOT/0 a/DT/det/4 nurse/NN/obj/2", []),
        # Two objects in one role: the second is the thing given.
        ("I/PRP/nsubj/2 sent/VBD/ROOT/0 my/PRP$/nmod:poss/4 aunt/NN/obj/2 a/DT/det/6 card/NN/obj/2", ["send card"]),
        # A particle that the parser calls an adverb.
        ("Throw/VB/ROOT/0 shoes/NNS/obj/1 away/RB/advmod/1", ["throw away shoe"]),
        # A root that the parser calls a clause is its own head: the walk did not end.
        ("Wait/VB/xcomp/0 here/RB/advmod/1", []),
    ],
)
def test_what_a_pair_is(written: str, expected: list[str]) -> None:
    assert pairs(tree(written)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7:30 make coffee, read two chapters", ["make coffee", "read chapter"]),
        ("I’m done, don’t forget your keys", ["forget key"]),
        ("I told my friend Leo the news.", ["tell news"]),
        ("Bake two loaves and leave one for Joan.", ["bake loaf"]),
        ("", []),
    ],
)
def test_plain_text(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_texts_are_read_as_a_stream_and_no_pair_goes_over_a_line_end() -> None:
    def texts() -> Iterator[str]:
        yield "I read\nThe cat sleeps"
        for _ in range(500):
            yield "Feed the cat."
        raise AssertionError("read ahead to the end")

    first = next(iter_pairs(texts(), "en"))
    assert (first.verb, first.noun) == ("feed", "cat")


def test_a_long_list_is_read_to_its_end() -> None:
    """Each noun joined to the one before: as deep as the list is long."""
    items = " ".join(f"and/CC/cc/{place} ducks/NNS/conj/{place - 2}" for place in range(4, 2000, 2))
    assert pairs(tree(f"feed/VB/ROOT/0 ducks/NNS/obj/1 {items}")) == ["feed duck"] * 999


NOUNS = "thanks thanks, clothes clothes, dishes dish, memories memory, feet foot, photos photo, leaves leaf, Boss boss"
VERBS = "got get, Fed feed, lying lie, laid lay, practised practise, saw see, texted text, tried try"


@pytest.mark.parametrize(("form", "entries"), [(noun_lemma, NOUNS), (verb_lemma, VERBS)])
def test_lemmas(form: Callable[[str], str], entries: str) -> None:
    for word, lemma in map(str.split, entries.split(", ")):
        assert form(word) == lemma


WORDS = "water the my cat and , to that I Tom hours off happy which her give 7:30 's not made running plants"
LABELS = "obj iobj dobj nsubj conj cc det compound acl:relcl xcomp ccomp obl:unmarked amod compound:prt flat aux"
TAGS = "NN NNS NNP VB VBD VBN VBG VBZ PRP DT IN RP JJ CC CD RB TO ,"


@st.composite
def trees(draw: st.DrawFn) -> Doc:
    """Any words under any tags and labels, tied in any way that is a tree."""
    size = draw(st.integers(1, 14))
    one_of: Sequence[list[str]] = [
        draw(st.lists(st.sampled_from(choices.split()), min_size=size, max_size=size))
        for choices in (WORDS, TAGS, LABELS)
    ]
    heads = [draw(st.integers(0, place)) for place in range(size)]
    if draw(st.booleans()):
        heads = [size - 1 - head for head in reversed(heads)]
    words, tags, labels = one_of
    kinds = [KINDS[tag] if tag in KINDS else KINDS[tag[:2]] for tag in tags]
    return Doc(VOCAB, words=words, tags=tags, pos=kinds, heads=heads, deps=labels)


@given(trees())
def test_any_tree_gives_pairs_of_its_own_words(doc: Doc) -> None:
    found = english_pairs(doc)
    assert found == english_pairs(doc)
    forms = {token.text.lower() for token in doc}
    for pair in found:
        assert re.fullmatch(r"\S+( \S+)?", pair.verb)
        assert pair.verb == pair.verb.lower()
        assert pair.noun.lower() in forms | {noun_lemma(form) for form in forms}
