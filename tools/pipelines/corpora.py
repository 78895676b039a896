"""The shared public data as training sets: which files, how they are split, and what is left out.

Everything a model learns from is CC BY, CC BY-SA or permissive (`ATTRIBUTION.md` beside each model). The test
files of EWT and GSDSimp are read by `check` alone; of PUD, HK and CFL a file named
`test` is all there is, and it is for training.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pipelines.treebanks import Sentence, read_conllu, read_uner_words, split_blocks

# Relations keep their universal part, and these subtypes: each says something that the pairs or the tree need.
ENGLISH_SUBTYPES = """nsubj:pass csubj:pass aux:pass compound:prt nmod:poss acl:relcl obl:agent obl:unmarked
nmod:unmarked"""
CHINESE_SUBTYPES = """nsubj:pass csubj:pass aux:pass acl:relcl obl:agent obl:patient obl:tmod compound:vv compound:vo
compound:dir compound:ext mark:rel mark:prt mark:adv case:loc flat:name"""


def relation(name: str, subtypes: str) -> str:
    return name if name in subtypes.split() else name.split(":")[0]


def _english(sentence: Sentence) -> Sentence:
    words = tuple(
        replace(word, deprel=relation(word.deprel, ENGLISH_SUBTYPES)) for word in sentence.words
    )
    return replace(sentence, words=words)


def english_trees(data: Path, part: str) -> list[Sentence]:
    """UD English-EWT: `train`, `dev` or `test`."""
    return [*map(_english, read_conllu(data / f"ud/en_ewt/en_ewt-ud-{part}.conllu.gz"))]


def chinese_trees(data: Path) -> tuple[list[Sentence], list[Sentence]]:
    """Train and dev of GSDSimp (its dev file), PUD, HK and CFL, in simplified characters, without features."""
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    train: list[Sentence] = []
    dev: list[Sentence] = []
    for name, convert in (
        ("GSDSimp/zh_gsdsimp-ud-dev", str),
        ("PUD/zh_pud-ud-test", simplify),
        ("HK/zh_hk-ud-test", simplify),
        ("CFL/zh_cfl-ud-test", str),
    ):
        sentences = [_chinese(s, convert) for s in read_conllu(data / f"ud/zh/{name}.conllu")]
        first, second = split_blocks(sentences)
        train += first
        dev += second
    return train, dev


def _chinese(sentence: Sentence, convert: Callable[[str], str]) -> Sentence:
    """Without features and tags, on which the treebanks disagree; no space stands between words."""
    plain = {"feats": "", "xpos": "", "space_after": False}
    words = tuple(
        replace(
            word, form=convert(word.form), deprel=relation(word.deprel, CHINESE_SUBTYPES), **plain
        )
        for word in sentence.words
    )
    # The parser reads single sentences: the pipeline splits at full stops before it.
    return replace(sentence, words=words, starts_document=True)


def chinese_words(data: Path) -> list[list[str]]:
    """Segmented training sentences: the words of UNER GSDSIMP train, and of the treebanks' training parts."""
    train, _ = chinese_trees(data)
    named = read_uner_words(data / "ner/zh/GSDSIMP/zh_gsdsimp-ud-train.iob2")
    return [*named, *([word.form for word in sentence.words] for sentence in train)]


def english_texts(data: Path) -> Iterator[str]:
    """Conversation of free licence for silver trees: DiaSafety (Apache-2.0) and CounselChat (MIT), a turn a text."""
    for row in json.loads((data / "safety/diasafety_train.json").read_text(encoding="utf-8")):
        yield row["context"]
        yield row["response"]
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as opened:
        seen: set[str] = set()
        for record in csv.DictReader(opened):
            for text in (record["questionText"], record["answerText"]):
                if text and text not in seen:
                    seen.add(text)
                    yield from text.splitlines()
