"""The shared public data as training sets: which files, how they are split, and what is left out.

Everything a model learns from is CC BY, CC BY-SA or permissive (`ATTRIBUTION.md` beside each model). The test
files of EWT, GSDSimp, UNER EWT, UNER GSDSIMP and WNUT17 are read by `check` alone; of PUD, HK and CFL a file named
`test` is all there is, and it is for training.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipelines.treebanks import (
    NamedSentence,
    Sentence,
    Word,
    read_conll,
    read_conllu,
    read_uner,
    simplified,
    split_blocks,
    without_features,
)

# Relations keep their universal part, and these subtypes: each says something that the pairs or the tree need.
ENGLISH_SUBTYPES = frozenset(
    [
        "nsubj:pass",
        "csubj:pass",
        "aux:pass",
        "compound:prt",
        "nmod:poss",
        "acl:relcl",
        "obl:agent",
        "obl:unmarked",
        "nmod:unmarked",
    ]
)
CHINESE_SUBTYPES = frozenset(
    [
        "nsubj:pass",
        "csubj:pass",
        "aux:pass",
        "acl:relcl",
        "obl:agent",
        "obl:patient",
        "obl:tmod",
        "compound:vv",
        "compound:vo",
        "compound:dir",
        "compound:ext",
        "mark:rel",
        "mark:prt",
        "mark:adv",
        "case:loc",
        "flat:name",
    ]
)
TWEETS = "abefgh"


def relation(name: str, subtypes: frozenset[str]) -> str:
    return name if name in subtypes else name.split(":")[0]


def _with_relations(sentence: Sentence, subtypes: frozenset[str]) -> Sentence:
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


def chinese_test(data: Path) -> list[Sentence]:
    return [_chinese(s, False) for s in read_conllu(data / "ud/zh/GSDSimp/zh_gsdsimp-ud-test.conllu")]


def _chinese(sentence: Sentence, traditional: bool) -> Sentence:
    plain = _with_relations(without_features(sentence), CHINESE_SUBTYPES)
    # The parser reads single sentences: the pipeline splits at full stops before it.
    plain = replace(plain, starts_document=True)
    return simplified(plain, _to_simplified()) if traditional else plain


def _to_simplified():  # type: ignore[no-untyped-def]
    from opencc import OpenCC

    return OpenCC("t2s").convert


def english_names(data: Path) -> list[list[NamedSentence]]:
    """Training sets: tweets by file, WNUT17, UNER EWT dev and PUD."""
    ner = data / "ner/en"
    sets = [list(read_conll(ner / f"BTC/{letter}.conll")) for letter in TWEETS]
    sets.append(list(read_conll(ner / "WNUT17/wnut17train.conll")))
    sets.append(list(read_uner(ner / "UNER_EWT/en_ewt-ud-dev.iob2", spaced=True)))
    sets.append(list(read_uner(ner / "UNER_PUD/en_pud-ud-test.iob2", spaced=True)))
    return sets


def english_names_test(data: Path) -> list[NamedSentence]:
    return list(read_uner(data / "ner/en/UNER_EWT/en_ewt-ud-test.iob2", spaced=True))


def tweets_names(data: Path, part: str) -> list[NamedSentence]:
    """WNUT17: `dev` or `test`."""
    file = {"dev": "emerging.dev.conll", "test": "emerging.test.annotated"}[part]
    return list(read_conll(data / f"ner/en/WNUT17/{file}"))


def chinese_names(data: Path, part: str) -> list[NamedSentence]:
    """UNER GSDSIMP: `train`, `dev` or `test`; PUD, in simplified characters, belongs to `train`."""
    ner = data / "ner/zh"
    found = list(read_uner(ner / f"GSDSIMP/zh_gsdsimp-ud-{part}.iob2", spaced=False))
    if part == "train":
        convert = _to_simplified()
        pud = read_uner(ner / "PUD/zh_pud-ud-test.iob2", spaced=False)
        found += [replace(s, words=tuple(convert(word) for word in s.words)) for s in pud]
    return found


def chinese_words(data: Path) -> list[list[str]]:
    """Segmented training sentences: the words of UNER GSDSIMP train, and of the treebanks' training parts."""
    ner = read_uner(data / "ner/zh/GSDSIMP/zh_gsdsimp-ud-train.iob2", spaced=False)
    train, _ = chinese_trees(data)
    return [list(s.words) for s in ner] + [[word.form for word in s.words] for s in train]


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
