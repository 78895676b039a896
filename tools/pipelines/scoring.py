"""Scores from raw text, as the CoNLL 2018 shared task counts them (Zeman et al. 2018).

A word of the gold standard is found when the pipeline made a word of the same characters; LAS asks of it the
same head and the same relation without its subtype. Precision is over the words made, recall over the gold ones.
The teacher, which gets gold words, is counted in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.treebanks import Sentence
from spacy.language import Language
from spacy.tokens import Doc

Place = tuple[int, int]
NOWHERE = (-1, -1)  # a head that is white space: no head of the gold standard


@dataclass(slots=True)
class Tally:
    """Right, gold and found things; `f1` is their F1."""

    right: int = 0
    gold: int = 0
    found: int = 0

    def add(self, right: int, gold: int, found: int) -> None:
        self.right += right
        self.gold += gold
        self.found += found

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.gold + self.found) if self.gold + self.found else 0.0


@dataclass(slots=True)
class ParseScores:
    words: Tally = field(default_factory=Tally)
    sentences: Tally = field(default_factory=Tally)
    upos: Tally = field(default_factory=Tally)
    uas: Tally = field(default_factory=Tally)
    las: Tally = field(default_factory=Tally)
    objects: Tally = field(default_factory=Tally)  # `obj` and its head


@dataclass(frozen=True, slots=True)
class Node:
    upos: str
    head: Place | None
    relation: str


def documents(sentences: Iterable[Sentence], *, by_paragraph: bool) -> Iterator[list[Sentence]]:
    """Sentences by the source document or paragraph they stand in.

    The shared task's raw text has an empty line between paragraphs, so a paragraph is its unit. Whole documents with
    their paragraphs run together are harder: nothing but the words says where a heading ends.
    """
    waiting: list[Sentence] = []
    for sentence in sentences:
        if waiting and (sentence.starts_document or (by_paragraph and sentence.starts_paragraph)):
            yield waiting
            waiting = []
        waiting.append(sentence)
    if waiting:
        yield waiting


def raw_text(sentences: Sequence[Sentence]) -> str:
    return "".join(
        word.form + (" " if word.space_after else "")
        for sentence in sentences
        for word in sentence.words
    ).rstrip()


def score_parser(nlp: Language, texts: Iterable[list[Sentence]]) -> ParseScores:
    """The pipeline on raw text: its own words, sentences, tags and trees."""
    gold = list(texts)
    scores = ParseScores()
    for sentences, doc in zip(gold, nlp.pipe(map(raw_text, gold)), strict=True):
        _count(
            scores,
            _gold_nodes(sentences),
            _found_nodes(doc),
            _gold_sentences(sentences),
            _found_sentences(doc),
        )
    return scores


def score_trees(gold: Iterable[Sentence], found: Iterable[Sentence]) -> ParseScores:
    """Heads and relations over gold words, a sentence a text; whether they make a tree is not asked."""
    scores = ParseScores()
    for one, other in zip(gold, found, strict=True):
        _count(
            scores,
            _gold_nodes([one]),
            _gold_nodes([other]),
            _gold_sentences([one]),
            _gold_sentences([other]),
        )
    return scores


def _count(
    scores: ParseScores,
    gold: dict[Place, Node],
    found: dict[Place, Node],
    gold_sentences: set[Place],
    found_sentences: set[Place],
) -> None:
    both = [(gold[place], found[place]) for place in gold.keys() & found.keys()]
    heads = [(g, f) for g, f in both if g.head == f.head]
    labelled = [g for g, f in heads if g.relation == f.relation]
    objects = [
        sum(node.relation == "obj" for node in nodes)
        for nodes in (labelled, gold.values(), found.values())
    ]
    of_words = len(gold), len(found)
    scores.words.add(len(both), *of_words)
    scores.upos.add(sum(g.upos == f.upos for g, f in both), *of_words)
    scores.uas.add(len(heads), *of_words)
    scores.las.add(len(labelled), *of_words)
    scores.objects.add(*objects)
    scores.sentences.add(
        len(gold_sentences & found_sentences), len(gold_sentences), len(found_sentences)
    )


def _gold_places(sentences: Sequence[Sentence]) -> list[list[Place]]:
    """Each word's characters, counted without white space."""
    places: list[list[Place]] = []
    at = 0
    for sentence in sentences:
        row: list[Place] = []
        for word in sentence.words:
            row.append((at, at + len(word.form)))
            at += len(word.form)
        places.append(row)
    return places


def _gold_nodes(sentences: Sequence[Sentence]) -> dict[Place, Node]:
    nodes: dict[Place, Node] = {}
    for sentence, places in zip(sentences, _gold_places(sentences), strict=True):
        for word, place in zip(sentence.words, places, strict=True):
            head = places[word.head - 1] if word.head else None
            nodes[place] = Node(word.upos, head, word.deprel.split(":")[0].lower())
    return nodes


def _gold_sentences(sentences: Sequence[Sentence]) -> set[Place]:
    return {(row[0][0], row[-1][1]) for row in _gold_places(sentences)}


def _found_places(doc: Doc) -> list[Place | None]:
    places: list[Place | None] = []
    at = 0
    for token in doc:
        length = len("".join(token.text.split()))
        places.append((at, at + length) if length else None)
        at += length
    return places


def _found_nodes(doc: Doc) -> dict[Place, Node]:
    places = _found_places(doc)
    nodes: dict[Place, Node] = {}
    for token, place in zip(doc, places, strict=True):
        if place is not None:
            head = None if token.head.i == token.i else places[token.head.i] or NOWHERE
            nodes[place] = Node(token.pos_, head, token.dep_.split(":")[0].lower())
    return nodes


def _found_sentences(doc: Doc) -> set[Place]:
    places = _found_places(doc)
    spans = ([place for place in places[s.start : s.end] if place] for s in doc.sents)
    return {(inside[0][0], inside[-1][1]) for inside in spans if inside}
