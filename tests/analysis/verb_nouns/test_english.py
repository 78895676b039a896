"""English verb-noun pairs: what counts as a direct object, read off trees made by hand and off plain sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from support.tables import table

pytest.importorskip("spacy", reason="the analysis extra is not installed")
pytest.importorskip("lemminflect", reason="the analysis extra is not installed")

from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from h2htalk.analysis.verb_nouns.english import english_pairs, noun_lemma, verb_lemma
from h2htalk.analysis.verb_nouns.pairs import iter_pairs

VOCAB = Vocab()
KINDS = {
    "NN": "NOUN",
    "NNP": "PROPN",
    "VB": "VERB",
    "PR": "PRON",
    "DT": "DET",
    "IN": "ADP",
    "RP": "ADP",
    "JJ": "ADJ",
}
KINDS |= {
    "CC": "CCONJ",
    "CD": "NUM",
    "RB": "ADV",
    "TO": "PART",
    "MD": "AUX",
    "WP": "PRON",
    "WD": "PRON",
    ",": "PUNCT",
}


def tree(written: str) -> Doc:
    """A tree made by hand: `word/tag/label/head`, the head as the place of a word, counted from 1; a root's is 0."""
    rows = [part.split("/") for part in written.split()]
    heads = [int(row[3]) - 1 if row[3] != "0" else index for index, row in enumerate(rows)]
    kinds = [KINDS[row[1]] if row[1] in KINDS else KINDS[row[1][:2]] for row in rows]
    words, tags, labels = ([row[column] for row in rows] for column in range(3))
    return Doc(VOCAB, words=words, tags=tags, pos=kinds, heads=heads, deps=labels)


def pairs(doc: Doc) -> list[str]:
    return [f"{pair.verb} {pair.noun}" for pair in english_pairs(doc)]


def read(text: str) -> list[str]:
    return [f"{pair.verb} {pair.noun}" for pair in iter_pairs([text], "en")]


@pytest.mark.parametrize(("written", "expected"), table("analysis", "english_trees"))
def test_what_a_pair_is(written: str, expected: list[str]) -> None:
    assert pairs(tree(written)) == expected


@pytest.mark.parametrize(("text", "expected"), table("analysis", "english_text"))
def test_plain_text(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_texts_are_a_stream_and_lists_are_read_to_their_end() -> None:
    def texts() -> Iterator[str]:
        yield "I read\nThe cat sleeps"
        for _ in range(500):
            yield "Feed the cat."
        raise AssertionError("read ahead to the end")

    first = next(iter_pairs(texts(), "en"))
    assert (first.verb, first.noun) == ("feed", "cat")
    # Each noun joined to the one before: as deep as the list is long.
    items = " ".join(f"and/CC/cc/{word} ducks/NNS/conj/{word - 2}" for word in range(4, 2000, 2))
    assert pairs(tree(f"feed/VB/ROOT/0 ducks/NNS/obj/1 {items}")) == ["feed duck"] * 999


NOUNS = "thanks thanks, clothes clothes, dishes dish, memories memory, feet foot, photos photo, leaves leaf, Boss boss"
VERBS = (
    "got get, Fed feed, lying lie, laid lay, practised practise, saw see, texted text, tried try"
)


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
    heads = [draw(st.integers(0, index)) for index in range(size)]
    if draw(st.booleans()):
        heads = [size - 1 - head for head in reversed(heads)]
    words, tags, labels = one_of
    kinds = [KINDS[tag] if tag in KINDS else KINDS[tag[:2]] for tag in tags]
    return Doc(VOCAB, words=words, tags=tags, pos=kinds, heads=heads, deps=labels)


@given(trees())
def test_any_tree_gives_pairs_of_its_own_words(doc: Doc) -> None:
    result = english_pairs(doc)
    assert result == english_pairs(doc)
    forms = {token.text.lower() for token in doc}
    for pair in result:
        assert re.fullmatch(r"\S+( \S+)?", pair.verb)
        assert pair.verb == pair.verb.lower()
        assert pair.noun.lower() in forms | {noun_lemma(form) for form in forms}
