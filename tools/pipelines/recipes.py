"""How each bundled pipeline is made: its training data, spaCy's training, and the folder that ships."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import spacy
from pipelines import corpora, segmentation
from pipelines.english_tokenizer import english_tokenizer
from pipelines.shipping import ship
from pipelines.treebanks import PARSED, Sentence, parsed_docs, save
from spacy.language import Language
from spacy.vocab import Vocab

import h2htalk.text.parsing.chinese_components  # noqa: F401  makes its words and features known to spaCy
from h2htalk.text.parsing.parsing import MODELS

CONFIGS = Path(__file__).parent
Cut = tuple[list[str], list[bool], bool]  # words, space after each, whether a text starts here
SHORTEST, LONGEST = 2, 80
# Gold trees count this often beside the silver ones.
GOLD_TIMES = 2


def make_segmenter(data: Path, work: Path) -> None:
    made = segmentation.train(corpora.chinese_words(data), segmentation.jieba_lexicon())
    segmentation.save(made, MODELS / "zh_segmenter")


def make_zh_parser(data: Path, work: Path) -> None:
    train, dev = corpora.chinese_trees(data)
    vocab = spacy.blank("xx").vocab
    _save_trees(train, vocab, work / "zh_parser-train.spacy")
    _save_trees(dev, vocab, work / "zh_parser-dev.spacy")
    best = _run_training("zh_parser", work)
    # Trained on single sentences, the parser cannot split: that is done by rule before it.
    best.add_pipe("sentencizer", config={"punct_chars": list("。！？!?…～")}, before="parser")
    ship(best, "zh_parser")


def cut_sentences(nlp: Language, texts: Iterable[str]) -> Iterator[Cut]:
    """Sentences of 2 to 80 words by spaCy's rule (. ! ?), in the tokenization of `nlp`."""
    splitter = (
        nlp.get_pipe("sentencizer") if nlp.has_pipe("sentencizer") else nlp.add_pipe("sentencizer")
    )
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


def make_en_teacher(data: Path, work: Path) -> None:
    """Train the teacher and write its silver trees: about an hour on two cores.

    The teacher of the shipped parser also learned to find names, in the same hour.
    """
    import torch
    from pipelines import teacher as teaching

    trees = corpora.english_trees(data, "train")
    teacher = teaching.Teacher(teaching.Labels.of(trees))
    stored = work / "en_teacher.pt"
    if stored.exists():
        teacher.load_state_dict(torch.load(stored, weights_only=True))
    else:
        teaching.train(teacher, trees)
        torch.save(teacher.state_dict(), stored)
    nlp = _blank_english(data)
    cut = list(cut_sentences(nlp, corpora.english_texts(data)))
    read = teaching.read(teacher, [(words, spaces) for words, spaces, _ in cut])
    # A sentence whose best heads are no tree has none.
    labelled = [one if teaching.is_tree(one) else None for one in read]
    vocab = spacy.blank("en").vocab
    silver = with_borders(labelled, (starts for _, _, starts in cut))
    _save_trees(silver, vocab, work / "en_silver_trees.spacy")


def make_en_parser(data: Path, work: Path) -> None:
    vocab = spacy.blank("en").vocab
    gold = list(parsed_docs(corpora.english_trees(data, "train"), vocab))
    silver = spacy.tokens.DocBin().from_disk(work / "en_silver_trees.spacy").get_docs(vocab)
    docs = [*gold * GOLD_TIMES, *silver]
    random.Random(0).shuffle(docs)
    save(docs, work / "en_parser-train.spacy", PARSED)
    _save_trees(corpora.english_trees(data, "dev"), vocab, work / "en_parser-dev.spacy")
    best = _run_training("en_parser", work)
    best.tokenizer = english_tokenizer(best, corpora.english_trees(data, "train"))
    ship(best, "en_parser")


RECIPES: dict[str, Callable[[Path, Path], None]] = {
    "zh_segmenter": make_segmenter,
    "zh_parser": make_zh_parser,
    "en_teacher": make_en_teacher,
    "en_parser": make_en_parser,
}


def _save_trees(sentences: Iterable[Sentence], vocab: Vocab, path: Path) -> None:
    save(parsed_docs(sentences, vocab), path, PARSED)


def _blank_english(data: Path) -> Language:
    nlp = spacy.blank("en")
    nlp.tokenizer = english_tokenizer(nlp, corpora.english_trees(data, "train"))
    return nlp


def _run_training(name: str, work: Path) -> Language:
    """spaCy's training with the configuration beside this file; the best step by its dev score."""
    from spacy.cli.init_config import fill_config
    from spacy.cli.train import train

    out = work / name
    shutil.rmtree(out, ignore_errors=True)
    overrides = {
        "paths.train": str(work / f"{name}-train.spacy"),
        "paths.dev": str(work / f"{name}-dev.spacy"),
    }
    full = work / f"{name}.cfg"
    fill_config(full, CONFIGS / f"{name}.cfg", silent=True)
    train(full, out, use_gpu=-1, overrides=overrides)
    return spacy.load(out / "model-best")
