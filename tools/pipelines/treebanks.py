"""Treebanks (CoNLL-U) read into spaCy's training format.

spaCy's own converter puts a space inside `don't`; this one keeps the spacing of words that were split.
Comments, empty nodes and enhanced dependencies are left out.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

# A document for the parser is one to this many sentences, so that it learns where a sentence ends.
MOST_SENTENCES = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Word:
    form: str
    upos: str
    xpos: str
    feats: str
    head: int  # 1-based within the sentence, 0 for the root
    deprel: str
    space_after: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    words: tuple[Word, ...]
    text: str
    starts_document: bool
    starts_paragraph: bool = False


def read_conllu(path: Path) -> Iterator[Sentence]:
    packed = path.suffix == ".gz"
    with (
        gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as lines
    ):
        rows: list[list[str]] = []
        text, starts, paragraph = "", True, True
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith(("# newdoc", "# newpar")):
                paragraph = True
                starts = starts or line.startswith("# newdoc")
            elif line.startswith("# text ="):
                text = line.removeprefix("# text =").strip()
            elif line and not line.startswith("#"):
                rows.append(line.split("\t"))
            elif not line and rows:
                yield Sentence(tuple(_words(rows)), text, starts, paragraph)
                rows, starts, paragraph = [], False, False
        if rows:
            yield Sentence(tuple(_words(rows)), text, starts, paragraph)


def _words(rows: list[list[str]]) -> Iterator[Word]:
    """A split word (`1-2  don't`) says what follows its last part; its inner parts touch."""
    inside: dict[int, bool] = {}
    for row in rows:
        number = row[0]
        misc = row[9]
        space = "SpaceAfter=No" not in misc
        if "-" in number:
            first, last = map(int, number.split("-"))
            inside |= dict.fromkeys(range(first, last), False) | {last: space}
        elif "." not in number:
            yield Word(
                form=row[1].replace(" ", ""),
                upos="X" if row[3] == "_" else row[3],
                xpos=row[4],
                feats="" if row[5] == "_" else row[5],
                head=int(row[6]),
                deprel=row[7],
                space_after=inside.get(int(number), space),
            )


def split_blocks(sentences: list[T]) -> tuple[list[T], list[T]]:
    """Train and dev: blocks of five sentences, every tenth block held out, so that neighbours stay together."""
    train = [sentence for at, sentence in enumerate(sentences) if (at // 5) % 10 != 9]
    dev = [sentence for at, sentence in enumerate(sentences) if (at // 5) % 10 == 9]
    return train, dev


def parsed_docs(sentences: Iterable[Sentence], vocab: Vocab) -> Iterator[Doc]:
    """Documents of one to eight neighbouring sentences; a document never spans two source documents."""
    rng = random.Random(0)
    waiting: list[Sentence] = []
    size = rng.randint(1, MOST_SENTENCES)
    for sentence in sentences:
        if waiting and (sentence.starts_document or len(waiting) >= size):
            yield _parsed_doc(waiting, vocab)
            waiting = []
            size = rng.randint(1, MOST_SENTENCES)
        waiting.append(sentence)
    if waiting:
        yield _parsed_doc(waiting, vocab)


def _parsed_doc(sentences: list[Sentence], vocab: Vocab) -> Doc:
    words = [word for sentence in sentences for word in sentence.words]
    heads: list[int] = []
    for sentence in sentences:
        offset = len(heads)
        heads += [
            offset + (word.head - 1 if word.head else at) for at, word in enumerate(sentence.words)
        ]
    return Doc(
        vocab,
        words=[word.form for word in words],
        spaces=[word.space_after for word in words],
        pos=[word.upos for word in words],
        tags=[word.xpos for word in words],
        morphs=[word.feats for word in words],
        heads=heads,
        deps=["ROOT" if word.head == 0 else word.deprel for word in words],
        sent_starts=[at == 0 for sentence in sentences for at in range(len(sentence.words))],
    )


def read_uner_words(path: Path) -> Iterator[list[str]]:
    """The words of each sentence of a Universal NER file: number, form, tag."""
    words: list[str] = []
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        columns = line.split("\t")
        if columns[0].isdigit():
            words.append(columns[1])
        elif words and not line.strip():
            yield words
            words = []


PARSED = ("ORTH", "SPACY", "POS", "TAG", "MORPH", "HEAD", "DEP", "SENT_START")


def save(docs: Iterable[Doc], path: Path, attributes: tuple[str, ...]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    DocBin(attrs=list(attributes), docs=docs).to_disk(path)
