"""Train the adapters of the second reader of dangers (`curation/safety/danger_encoder.py`), and set its thresholds.

    H2HTALK_DATA=... python tools/train_danger_encoder.py prepare FOLDER
    python tools/learn_adapters.py FOLDER        (on any machine: it needs the folder and torch)
    H2HTALK_DATA=... python tools/train_danger_encoder.py ship FOLDER

It learns what tools/train_dangers.py learns from, and dialogues by more authors (crisis/more*.jsonl). What the words
say, the turn with its answer, and the turns around it are weighed by a regression, of dialogues and authors that the
models did not see. CounselChat, the only real support in English, is not learned from: it sets limits.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from learn_adapters import HELD
from numpy.typing import NDArray
from safety.shipping import write_manifest
from train_dangers import CRISIS, MOST, NEVER, UNSURE, Corpus, Said, Talk, all_talks, author_talks, of_kind, weigh

from h2htalk.curation.safety import crisis
from h2htalk.curation.safety.crisis import DANGERS
from h2htalk.curation.safety.danger_encoder import DATA, WEIGHTS, BaseModel, Tokens, read_base, unpacked
from h2htalk.curation.safety.ngram_classifier import load_joint
from h2htalk.data.languages import LANGUAGES
from h2htalk.text.model_files import find_packaged

DRAWN = {"own": 0.4, "ordinary": 0.2, "others": 0.1}  # the share in an epoch of examples that are of no kind
SMALL, HEARD = 0.3, 0.8  # the share in small letters, in English, and with the companion's answer
# Limits in place of those of the words: bundled items are oblique on purpose, and people read them differently too. Of
# English conversations of support hardly any is about a crisis, so that the same share of false ones weighs more.
NEAR = {"crisis": 0.03, "means": 0.02, "minor": 0.03, "grooming": 0.03, "threat": 0.006}
BUNDLED = {"crisis": 0.06, "means": 0.06, "minor": 0.01, "grooming": 0.06, "threat": 0.06}
SUPPORT = {"means": 0.0035, "minor": 0.01, "grooming": 0.001, "threat": 0.008}
CRISES = {"en": 0.003, "zh": 0.009}
MEASURED = ("topical", "kdconv", "bundled", "smilechat", "counsel", "talks", "dev")


class Example(NamedTuple):
    """Tokens, whether they are of each danger, what that counts, how often an epoch holds them, and whether they are
    what the shipped reader reads of a text that measures."""

    tokens: list[int]
    wanted: list[float]
    counts: list[float]
    drawn: float
    scored: bool = False


def examples(corpus: Corpus, tokens: Tokens) -> Iterator[tuple[int, Example]]:
    """Each turn, with or without its answer, and each dialogue as one; with their folds. What is scored comes in the
    order of talks: the turns of one, and its windows."""
    of = [corpus.weights(kind) for kind in DANGERS]
    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        measured = talk.source in MEASURED
        for small, case in ((False, 1.0 - SMALL), (True, SMALL)) if corpus.language == "en" else ((False, 1.0),):
            for heard, share in ((True, HEARD), (False, 1.0 - HEARD)):
                said = [(one.text.lower() if small else one.text, one.answer if heard else None) for one in talk.said]
                turns, windows = tokens.rows(said)
                scored = measured and heard and not small
                for row, at in zip(turns, places, strict=True):
                    counts = [float(weights[at]) for _, weights in of]
                    wanted = [float(marks[at]) for marks, _ in of]
                    often = 1.0 if any(wanted) else DRAWN.get(corpus.turns[at].source, 1.0)
                    often *= case * share * any(counts)
                    if often or scored:
                        yield int(corpus.folds[at]), Example(row, wanted, counts, often, scored)
                for held, row in windows if measured and heard else ():
                    together = window_of(talk, [talk.said[at] for at in held])
                    often = together.drawn * case * (len(held) > 1)
                    yield int(corpus.folds[places[0]]), together._replace(tokens=row, drawn=often, scored=scored)


def window_of(talk: Talk, said: Sequence[Said]) -> Example:
    """An example of turns together, without its tokens; of a danger that stands elsewhere they teach nothing."""
    marks = {mark for one in said for mark in one.marks}
    wanted = [float(any(of_kind(one.marks, kind) for one in said)) for kind in DANGERS]
    written = talk.source == "talks"
    known = (
        own or (kind != talk.kind and UNSURE[kind].isdisjoint(marks)) for kind, own in zip(DANGERS, wanted, strict=True)
    )
    counts = [(2.0 if written else 1.0) * bool(one) for one in known]
    return Example([], wanted, counts, 1.0 if written or any(wanted) else DRAWN["ordinary"])


def prepare(corpora: Sequence[Corpus], folder: Path, base: BaseModel, tokens: Tokens) -> None:
    """Write the examples, and of the published model what they need."""
    folds, rows = zip(*(one for corpus in corpora for one in examples(corpus, tokens)), strict=True)
    used, flat = np.unique(np.concatenate([row.tokens for row in rows]), return_inverse=True)
    arrays: dict[str, Any] = {name: np.array([getattr(row, name) for row in rows]) for name in Example._fields[1:]}
    starts = np.cumsum([0, *(len(row.tokens) for row in rows)])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / "examples.npz", tokens=flat.astype(np.uint16), starts=starts, fold=np.array(folds), **arrays
    )
    weights = {**base.weights, "words": unpacked(base.words[used])}
    np.savez_compressed(folder / "base.npz", **{name: one.astype(np.float16) for name, one in weights.items()})
    print(len(rows), "examples,", len(flat), "tokens,", len(used), "kinds of them")


def thresholds(corpus: Corpus, read: Iterator[NDArray[np.float32]], tokens: Tokens) -> dict[str, Any]:
    """What the texts that measure say: see `train_dangers.weigh`. `read`: the scores of what is scored, in order."""
    scores = np.full((len(corpus.turns), 2, len(DANGERS)), np.nan)
    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        if talk.source in MEASURED:
            scores[places, 0] = [next(read) for _ in places]
            for held, _ in tokens.rows([(one.text, one.answer) for one in talk.said])[1]:
                scores[[places[at] for at in held], 1] = next(read)
    words = load_joint(crisis.DATA, corpus.language).manifest["dangers"]
    found = {}
    for number, kind in enumerate(DANGERS):
        support = SUPPORT.get(kind, CRISES[corpus.language])
        limits = {**MOST[kind], "near": NEAR[kind], "bundled": BUNDLED[kind], "support": support, "look_alike": 0.02}
        further = [*scores[:, :, number].T]
        found[kind] = weigh(corpus, kind, limits, further, words[kind]["combine"], (NEVER, HELD))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("prepare", "ship"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    base = read_base(find_packaged(WEIGHTS, "training"))
    corpora, tokens = list[Corpus](), Tokens(base.pieces)
    for language in LANGUAGES:
        more = (talk for path in sorted(CRISIS.glob(f"more*_{language}_*.jsonl")) for talk in author_talks(path))
        corpus = Corpus(language, [*all_talks(language, Path(os.environ["H2HTALK_DATA"])), *more])
        for talk, places in zip(corpus.talks, corpus.place, strict=True):
            if talk.group.startswith("cc:"):
                corpus.folds[places] = HELD
        corpora.append(corpus)
    if options.step == "prepare":
        prepare(corpora, options.folder, base, tokens)
        return
    scored = np.load(options.folder / "examples.npz")["scored"]
    read = iter(np.load(options.folder / "scores.npy")[scored])
    for corpus in corpora:
        found = {"dangers": thresholds(corpus, read, tokens), "texts_sha256": corpus.digest}
        write_manifest(DATA, corpus.language, found)
    assert next(read, None) is None, "other texts than these were read"
    shutil.copy(options.folder / "adapters.npz", DATA / "adapters.weights")


if __name__ == "__main__":
    main()
