"""Silver training data: free text, cut into sentences by rule and labelled by the teacher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipelines.treebanks import Sentence
from spacy.language import Language

Cut = tuple[list[str], list[bool], bool]  # words, space after each, whether a text starts here

SHORTEST, LONGEST = 2, 80


def cut_sentences(nlp: Language, texts: Iterable[str]) -> Iterator[Cut]:
    """Sentences of 2 to 80 words by spaCy's rule (. ! ?), in the tokenization of `nlp`."""
    splitter = nlp.get_pipe("sentencizer") if nlp.has_pipe("sentencizer") else nlp.add_pipe("sentencizer")
    for text in texts:
        doc = splitter(nlp.make_doc(" ".join(text.split())))
        starts = True
        for span in doc.sents:
            words = [token for token in span if not token.is_space]
            if SHORTEST <= len(words) <= LONGEST:
                yield [t.text for t in words], [bool(t.whitespace_) for t in words], starts
                starts = False


def with_borders(trees: Iterable[Sentence | None], starts: Iterable[bool]) -> Iterator[Sentence]:
    """The trees, each told whether a text begins with it (also where the sentences before it had no tree)."""
    pending = True
    for tree, first in zip(trees, starts, strict=True):
        pending = pending or first
        if tree is not None:
            yield replace(tree, starts_document=pending)
            pending = False
