"""Train the adapters of the second reader of dangers (`detect/encoder.py`), and set its thresholds.

    H2HTALK_DATA=... python tools/train_danger_encoder.py prepare FOLDER
    python tools/learn_adapters.py FOLDER        (on any machine: it needs the folder and torch)
    H2HTALK_DATA=... python tools/train_danger_encoder.py ship FOLDER

It learns what tools/train_dangers.py learns from. What the words say, the turn with its answer, and the turns around it
are weighed by a regression, of dialogues and authors that the models did not see. CounselChat, the only real support in
English, is not learned from: it sets limits.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from learn_adapters import HELD
from safety.shipping import write_manifest
from train_dangers import NEVER, UNSURE, Corpus, Said, Talk, all_talks, of_kind, weigh

from h2htalk.data.languages import LANGUAGES
from h2htalk.detect import encoder as danger_encoder
from h2htalk.detect.encoder import DATA, BaseModel, DangerEncoder, Tokens, unpacked
from h2htalk.detect.hashed import load_joint
from h2htalk.detect.safety import crisis
from h2htalk.detect.safety.crisis import DANGERS, READ
from h2htalk.text.model_files import find_packaged

DRAWN = {
    "own": 0.4,
    "ordinary": 0.2,
    "others": 0.1,
}  # the share in an epoch of examples that are of no kind
SMALL, HEARD = 0.3, 0.8  # the share in small letters, in English, and with the companion's answer
AROUND = (
    0.3  # the share of authors' dialogues in which ordinary words of others stand around each turn
)
# Limits as in `train_dangers.MOST`. Bundled items are oblique on purpose, and people read them differently too.
LIMITS = {
    "crisis": {
        "ordinary": 0.002,
        "bundled": 0.06,
        "support": 0.005,
        "look_alike": 0.02,
        "near": 0.03,
    },
    "means": {
        "ordinary": 0.002,
        "bundled": 0.06,
        "support": 0.0035,
        "look_alike": 0.02,
        "near": 0.02,
        "lost": 0.04,
    },
    "minor": {
        "ordinary": 0.002,
        "bundled": 0.01,
        "support": 0.01,
        "look_alike": 0.02,
        "near": 0.026,
    },
    "grooming": {
        "ordinary": 0.003,
        "bundled": 0.06,
        "support": 0.004,
        "look_alike": 0.02,
        "near": 0.03,
        "lost": 0.06,
    },
    "threat": {
        "ordinary": 0.003,
        "bundled": 0.06,
        "support": 0.008,
        "look_alike": 0.02,
        "near": 0.006,
        "lost": 0.06,
    },
}
MEASURED = ("topical", "kdconv", "bundled", "smilechat", "counsel", "talks", "dev")


class Example(NamedTuple):
    """Tokens, whether they are of each danger, what that counts, and how often an epoch holds them."""

    tokens: list[int]
    wanted: list[float]
    counts: list[float]
    drawn: float


def examples(corpus: Corpus, tokens: Tokens) -> Iterator[tuple[int, Example]]:
    """Each turn, with or without its answer, and each dialogue as one; with their folds."""
    of = [corpus.weights(kind) for kind in DANGERS]
    chat = [
        turn.text
        for turn in corpus.turns
        if turn.source == "ordinary" and len(turn.text) < READ[corpus.language]
    ]

    def around(text: str, at: int) -> str:
        before, behind = (chat[(at * factor) % len(chat)] for factor in (7919, 104_729))
        return " ".join([before, text, behind][at % 3 == 0 : 2 + (at % 3 > 0)])

    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        for small, heard, wrapped, share in ways(corpus.language == "en", talk.source == "talks"):
            texts = [
                around(one.text, at) if wrapped else one.text
                for one, at in zip(talk.said, places, strict=True)
            ]
            if any(len(text) > READ[corpus.language] for text in texts):
                texts = [
                    text
                    for text, _ in crisis.shown(
                        tuple((True, text) for text in texts), corpus.language
                    )
                ]
            texts = [text.lower() for text in texts] if small else texts
            said = [
                (text, one.answer if heard else None)
                for text, one in zip(texts, talk.said, strict=True)
            ]
            turns, windows = tokens.rows(said)
            for row, at in zip(turns, places, strict=True):
                counts = [float(weights[at]) for _, weights in of]
                wanted = [float(marks[at]) for marks, _ in of]
                often = (
                    share
                    * any(counts)
                    * (1.0 if any(wanted) else DRAWN.get(corpus.turns[at].source, 1.0))
                )
                if often:
                    yield int(corpus.folds[at]), Example(row, wanted, counts, often)
            for held, row in windows if heard and talk.source in MEASURED else ():
                together = window_of(talk, [talk.said[at] for at in held])
                often = together.drawn * share * (len(held) > 1)
                yield int(corpus.folds[places[0]]), together._replace(tokens=row, drawn=often)


def ways(english: bool, written: bool) -> Iterator[tuple[bool, bool, bool, float]]:
    """Whether a dialogue is in small letters, has its answers, has ordinary words around; and how often that is."""
    shares = (SMALL * english, HEARD, AROUND * written)
    for chosen in product((True, False), repeat=3):
        share = prod(most if one else 1 - most for one, most in zip(chosen, shares, strict=True))
        if share:
            yield *chosen, share


def window_of(talk: Talk, said: Sequence[Said]) -> Example:
    """An example of turns together, without its tokens; of a danger that stands elsewhere they teach nothing."""
    marks = {mark for one in said for mark in one.marks}
    wanted = [float(any(of_kind(one.marks, kind) for one in said)) for kind in DANGERS]
    written = talk.source == "talks"
    known = (
        own or (kind != talk.kind and UNSURE[kind].isdisjoint(marks))
        for kind, own in zip(DANGERS, wanted, strict=True)
    )
    counts = [(2.0 if written else 1.0) * bool(one) for one in known]
    return Example([], wanted, counts, 1.0 if written or any(wanted) else DRAWN["ordinary"])


def prepare(corpora: Sequence[Corpus], folder: Path, base: BaseModel, tokens: Tokens) -> None:
    """Write the examples, and of the published model what they need."""
    folds, rows = zip(*(one for corpus in corpora for one in examples(corpus, tokens)), strict=True)
    used, flat = np.unique(np.concatenate([row.tokens for row in rows]), return_inverse=True)
    arrays: dict[str, Any] = {
        name: np.array([getattr(row, name) for row in rows]) for name in Example._fields[1:]
    }
    starts = np.cumsum([0, *(len(row.tokens) for row in rows)])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / "examples.npz",
        tokens=flat.astype(np.uint16),
        starts=starts,
        fold=np.array(folds),
        **arrays,
    )
    weights = {**base.weights, "words": unpacked(base.words[used])}
    np.savez_compressed(
        folder / "base.npz", **{name: one.astype(np.float16) for name, one in weights.items()}
    )
    print(len(rows), "examples,", len(flat), "tokens,", len(used), "kinds of them")


def thresholds(corpus: Corpus, encoder: DangerEncoder) -> dict[str, Any]:
    """What the texts say that measure, and that nothing learned from, read as they will be: see
    `train_dangers.weigh`."""
    scores = np.full((len(corpus.turns), 2, len(DANGERS)), np.nan)
    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        if talk.source in MEASURED and corpus.folds[places[0]] in (NEVER, HELD):
            said = [
                turn for one in talk.said for turn in ((True, one.text), (False, one.answer or ""))
            ]
            shown = crisis.shown(tuple(said), corpus.language)
            scores[places] = encoder.read(shown, [True] * len(shown)).transpose(0, 2, 1)
    words = load_joint(crisis.DATA, corpus.language).manifest["dangers"]
    return {
        kind: weigh(
            corpus, kind, LIMITS[kind], [*scores[:, :, number].T], words[kind], (NEVER, HELD)
        )
        for number, kind in enumerate(DANGERS)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("prepare", "ship"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    base = danger_encoder.read_base(find_packaged(danger_encoder.WEIGHTS, "training"))
    corpora = list[Corpus]()
    tokens = Tokens(base.pieces)
    for language in LANGUAGES:
        corpus = Corpus(language, all_talks(language, Path(os.environ["H2HTALK_DATA"])))
        for talk, places in zip(corpus.talks, corpus.place, strict=True):
            if talk.group.startswith("cc:"):
                corpus.folds[places] = HELD
        corpora.append(corpus)
    if options.step == "prepare":
        prepare(corpora, options.folder, base, tokens)
        return
    shutil.copy(options.folder / "adapters.npz", DATA / "adapters.weights")
    for corpus in corpora:
        found = {
            "dangers": thresholds(corpus, danger_encoder.load_encoder()),
            "texts_sha256": corpus.digest,
        }
        write_manifest(DATA, corpus.language, found)


if __name__ == "__main__":
    main()
