"""The shared public data as training sets: which files, how they are split, and what is left out.

Everything a model learns from is CC BY, CC BY-SA or permissive (`ATTRIBUTION.md` beside each model). The test
files of EWT and GSDSimp are read by `check` alone; of PUD, HK and CFL a file named
`test` is all there is, and it is for training.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipelines.treebanks import Sentence, Word, read_conllu, read_uner_words, simplified, split_blocks, without_features

# Relations keep their universal part, and these subtypes: each says something that the pairs or the tree need.
ENGLISH_SUBTYPES = """nsubj:pass csubj:pass aux:pass compound:prt nmod:poss acl:relcl obl:agent obl:unmarked
nmod:unmarked"""
CHINESE_SUBTYPES = """nsubj:pass csubj:pass aux:pass acl:relcl obl:agent obl:patient obl:tmod compound:vv compound:vo
compound:dir compound:ext mark:rel mark:prt mark:adv case:loc flat:name"""


def relation(name: str, subtypes: str) -> str:
    return name if name in subtypes.split() else name.split(":")[0]


def _with_relations(sentence: Sentence, subtypes: str) -> Sentence:
    words = tuple(replace(word, deprel=relation(word.deprel, subtypes)) for word in sentence.words)
    return replace(sentence, words=words)


def english_trees(data: Path, part: str) -> list[Sentence]:
    """UD English-EWT: `train`, `dev` or `test`."""
    found = read_conllu(data / f"ud/en_ewt/en_ewt-ud-{part}.conllu.gz")
    return [_with_relations(sentence, ENGLISH_SUBTYPES) for sentence in found]


def chinese_trees(data: Path) -> tuple[list[Sentence], list[Sentence]]:
    """Train and dev of GSDSimp (its dev file), PUD, HK and CFL, in simplified characters, without features."""
    train: list[Sentence] = []
    dev: list[Sentence] = []
    for name, traditional in (
        ("GSDSimp/zh_gsdsimp-ud-dev", False),
        ("PUD/zh_pud-ud-test", True),
        ("HK/zh_hk-ud-test", True),
        ("CFL/zh_cfl-ud-test", False),
    ):
        sentences = [_chinese(s, traditional) for s in read_conllu(data / f"ud/zh/{name}.conllu")]
        first, second = split_blocks(sentences)
        train += first
        dev += second
    return train, dev


def _chinese(sentence: Sentence, traditional: bool) -> Sentence:
    plain = _with_relations(without_features(sentence), CHINESE_SUBTYPES)
    # The parser reads single sentences: the pipeline splits at full stops before it.
    plain = replace(plain, starts_document=True)
    return simplified(plain, _to_simplified()) if traditional else plain


def _to_simplified():  # type: ignore[no-untyped-def]
    from opencc import OpenCC

    return OpenCC("t2s").convert


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


def bare(word: str, space: bool) -> Word:
    """A word that nothing is known of yet."""
    return Word(word, "X", "", "", 0, "dep", space)
