"""Register with spaCy what the Chinese pipelines need beside their weights: the segmenter and word features.

Importing this module registers both under the names in the pipelines' configurations.
"""

from __future__ import annotations

from collections.abc import Callable

import spacy
from spacy.attrs import PREFIX, SHAPE, SUFFIX
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import DummyTokenizer
from spacy.vocab import Vocab

from h2htalk.text.parsing.chinese_segmenter import bundled_segmenter


class SegmenterTokenizer(DummyTokenizer):  # type: ignore[misc]
    """spaCy's tokenizer protocol over the bundled segmenter. It has no state to store."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self._segmenter = bundled_segmenter()

    def __call__(self, text: str) -> Doc:
        words: list[str] = []
        spaces: list[bool] = []
        for word in self._segmenter.cut(text):
            if word == " " and words and not spaces[-1]:
                spaces[-1] = True
            else:
                words.append(word)
                spaces.append(False)
        return Doc(self.vocab, words=words, spaces=spaces)


@spacy.registry.tokenizers("h2htalk_segmenter.v1")  # type: ignore[untyped-decorator]
def segmenter_tokenizer() -> Callable[[Language], SegmenterTokenizer]:
    return lambda nlp: SegmenterTokenizer(nlp.vocab)


@spacy.registry.callbacks("h2htalk_word_features.v1")  # type: ignore[untyped-decorator]
def chinese_word_features() -> Callable[[Language], Language]:
    """Use a word's first and last character and its class where English has prefix, suffix and shape."""

    def set_features(nlp: Language) -> Language:
        getters = nlp.vocab.lex_attr_getters
        getters[PREFIX] = lambda word: word[:1]
        getters[SUFFIX] = lambda word: word[-1:]
        getters[SHAPE] = word_class
        return nlp

    return set_features


def word_class(word: str) -> str:
    """Return the lexicon's class of a word and its length up to four: `v2`; for unlisted words the script: `?han3`."""
    name = bundled_segmenter().lexicon.class_of(word)
    if name is None:
        name = f"?{_script(word)}"
    return f"{name}{min(len(word), 4)}"


def _script(word: str) -> str:
    if any("\u4e00" <= character <= "\u9fff" for character in word):
        return "han"
    if word[:1].isdigit():
        return "number"
    return "latin" if word[:1].isalpha() else "mark"
