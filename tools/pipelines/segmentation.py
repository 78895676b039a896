"""Training of the Chinese segmenter (`h2htalk.text.parsing.chinese_segmenter`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from h2htalk.text.parsing.chinese_segmenter import (
    BEGIN,
    END,
    FEATURE_BITS,
    MIDDLE,
    SINGLE,
    Segmenter,
    WordClassLexicon,
    best_tags,
    code_points,
    features,
)

Words = Sequence[str]


def jieba_lexicon() -> WordClassLexicon:
    """The words of jieba's dictionary (MIT licence) with their classes."""
    import jieba

    lines = (Path(jieba.__file__).parent / "dict.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(" ") for line in lines)
    return WordClassLexicon.build(
        (row[0], row[2]) for row in rows if len(row[0]) > 1 or row[2] != "x"
    )


def tags(words: Words) -> list[int]:
    return [
        tag
        for one in words
        for tag in ([SINGLE] if len(one) == 1 else [BEGIN, *[MIDDLE] * (len(one) - 2), END])
    ]


def train(
    sentences: Sequence[Words], lexicon: WordClassLexicon, *, passes: int = 10, seed: int = 0
) -> Segmenter:
    """Averaged structured perceptron (Collins 2002): each wrong sequence moves its weights towards the gold one.

    The average over all steps is the weights minus a sum in which each update is weighed by its step (Daume 2006).
    """
    random = np.random.default_rng(seed)
    weights = np.zeros((1 << FEATURE_BITS, 4), dtype=np.float32)
    transitions = np.zeros((4, 4), dtype=np.float32)
    weighed = np.zeros_like(weights, np.float64)
    weighed_transitions = np.zeros_like(transitions, np.float64)
    examples = [
        (features(code_points("".join(words)), lexicon), tags(words)) for words in sentences
    ]
    nowhere = np.zeros(max(len(gold) for _, gold in examples), dtype=bool)
    step = 1
    for _ in range(passes):
        for number in random.permutation(len(examples)):
            rows, gold = examples[number]
            found = best_tags(weights[rows].sum(axis=1), transitions, nowhere[: len(gold)])
            for at in (at for at in range(len(gold)) if found[at] != gold[at]):
                for tag, change in ((gold[at], 1.0), (found[at], -1.0)):
                    np.add.at(weights, (rows[at], tag), change)
                    np.add.at(weighed, (rows[at], tag), change * step)
            if found != gold:
                for sequence, change in ((gold, 1.0), (found, -1.0)):
                    pairs = (sequence[:-1], sequence[1:])
                    np.add.at(transitions, pairs, change)
                    np.add.at(weighed_transitions, pairs, change * step)
            step += 1
    return Segmenter(
        (weights - weighed / step).astype(np.float16).astype(np.float32),
        (transitions - weighed_transitions / step).astype(np.float32),
        lexicon,
    )


def save(segmenter: Segmenter, folder: Path) -> None:
    """Half precision, and only the rows that any training sentence touched."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.flatnonzero(segmenter.weights.any(axis=1)).astype(np.uint32)
    weights = segmenter.weights[rows].astype(np.float16)
    np.savez_compressed(
        folder / "weights.npz", rows=rows, weights=weights, transitions=segmenter.transitions
    )
    segmenter.lexicon.save(folder / "lexicon.npz")
