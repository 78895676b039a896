"""Train the adapters of the second reader of dangers (`curation/safety/danger_encoder.py`), and set its thresholds.

    H2HTALK_DATA=... python tools/train_danger_encoder.py [--thresholds]

It learns what tools/train_dangers.py learns from, and dialogues of children by more authors (crisis/minors_*.jsonl),
but for one fold of five, which the thresholds come from: what the words say (of models that did not see that fold), the
turn, and all turns together are weighed by a regression. 1.3 million numbers are learned, in about an hour on two
cores. `--thresholds` keeps the adapters.
"""

from __future__ import annotations

import argparse
import math
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safety.shipping import write_manifest
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear
from train_dangers import CRISIS, MOST, NEVER, UNSURE, Corpus, Talk, all_talks, author_talks, of_kind, weigh
from transformers import BertConfig, BertModel

from h2htalk.curation.safety import crisis, danger_encoder
from h2htalk.curation.safety.crisis import DANGERS
from h2htalk.curation.safety.danger_encoder import DATA, INNER, LAYERS, MATRICES, WIDTH, Tokens, load_encoder, unpacked
from h2htalk.curation.safety.ngram_classifier import load_joint
from h2htalk.data.languages import LANGUAGES
from h2htalk.text.model_files import find_packaged

HELD, STEPS, RANK, TOKENS, RATE = 0, 2200, 16, 1800, 1e-3
DRAWN = {"own": 0.6, "ordinary": 0.4, "others": 0.2}  # the share in an epoch of examples that are of no kind
BUNDLED, NEAR = 0.02, 0.03  # limits beside those of the words; oblique items are read differently by people too
MEASURED = ("topical", "kdconv", "bundled", "smilechat", "counsel", "talks", "dev")


class Example(NamedTuple):
    """Tokens, whether they are of each danger, what that counts, and how often an epoch holds them."""

    tokens: list[int]
    wanted: list[float]
    counts: list[float]
    drawn: float


def examples(corpus: Corpus, tokens: Tokens) -> Iterator[Example]:
    """Each turn of the other folds, with or without its answer, and each dialogue as one."""
    of = [corpus.weights(kind) for kind in DANGERS]
    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        if corpus.fold[places[0]] in (HELD, NEVER):
            continue
        small = corpus.language == "en" and random.random() < 0.3
        said = [(one.text.lower() if small else one.text, one.answer) for one in talk.said]
        said = [(text, answer if random.random() < 0.8 else None) for text, answer in said]
        turns, whole = tokens.rows(said)
        for row, at in zip(turns, places, strict=True):
            counts = [float(weights[at]) for _, weights in of]
            wanted = [float(marks[at]) for marks, _ in of]
            if any(counts):
                yield Example(row, wanted, counts, 1.0 if any(wanted) else DRAWN.get(corpus.turns[at].source, 1.0))
        if len(places) > 1 and talk.source in MEASURED:
            yield whole_example(talk, whole)


def whole_example(talk: Talk, tokens: list[int]) -> Example:
    marks = {mark for one in talk.said for mark in one.marks}
    wanted = [float(any(of_kind(one.marks, kind) for one in talk.said)) for kind in DANGERS]
    written = talk.source == "talks"
    known = (own or UNSURE[kind].isdisjoint(marks) for kind, own in zip(DANGERS, wanted, strict=True))
    counts = [(2.0 if written else 1.0) * bool(one) for one in known]
    return Example(tokens, wanted, counts, 1.0 if written or any(wanted) else DRAWN["ordinary"])


class Adapted(nn.Module):
    """A matrix that stays, and what is added to it."""

    def __init__(self, fixed: nn.Linear) -> None:
        super().__init__()
        self.fixed = fixed
        self.down = nn.Parameter(torch.randn(RANK, fixed.in_features) / math.sqrt(fixed.in_features))
        self.up = nn.Parameter(torch.zeros(fixed.out_features, RANK))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.fixed(x) + 2.0 * linear(linear(x, self.down), self.up)
        return added


class Learner(nn.Module):
    """The encoder with adapters and a row of weights for each danger."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        super().__init__()
        shape: dict[str, Any] = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS}
        config = BertConfig(vocab_size=1, **shape, hidden_dropout_prob=0.05, attention_probs_dropout_prob=0.05)
        self.bert = BertModel(config, add_pooling_layer=False)
        missing = self.bert.load_state_dict({name: torch.tensor(w) for name, w in weights.items()}, strict=False)
        assert missing.missing_keys == ["embeddings.word_embeddings.weight"], missing
        self.bert.requires_grad_(False)
        self.adapted = dict(self._adapt())
        self.head = nn.Linear(WIDTH, len(DANGERS))
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.constant_(self.head.bias, -3.0)

    def _adapt(self) -> Iterator[tuple[str, Adapted]]:
        for name in (f"encoder.layer.{layer}.{name}" for layer in range(LAYERS) for name, *_ in MATRICES.values()):
            parent, _, last = name.rpartition(".")
            module = Adapted(self.bert.get_submodule(name))  # type: ignore[arg-type]
            setattr(self.bert.get_submodule(parent), last, module)
            yield name, module

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.bert(inputs_embeds=words, attention_mask=mask).last_hidden_state.float()
        scores: torch.Tensor = self.head((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
        return scores


def learn(rows: list[Example], weights: Mapping[str, NDArray[Any]], words: NDArray[Any]) -> Learner:
    """STEPS batches of about TOKENS tokens; the rate rises for sixty and falls to nothing."""
    model = Learner(weights).train()
    own = [parameter for module in model.adapted.values() for parameter in (module.down, module.up)]
    groups = [{"params": own, "lr": RATE}, {"params": model.head.parameters(), "lr": 4 * RATE}]
    optimizer, losses = torch.optim.AdamW(groups, weight_decay=0.01), list[float]()
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / 60, max(0.02, 1 - n / STEPS)))
    while len(losses) < STEPS:
        for batch in batches_of([row for row in rows if random.random() < row.drawn]):
            mask = torch.zeros(len(batch), max(len(row.tokens) for row in batch), dtype=torch.long)
            vectors = torch.zeros(*mask.shape, WIDTH)
            for at, row in enumerate(batch):
                mask[at, : len(row.tokens)] = 1
                vectors[at, : len(row.tokens)] = torch.tensor(unpacked(words[row.tokens]))
            wanted, counts = torch.tensor([row.wanted for row in batch]), torch.tensor([row.counts for row in batch])
            errors = binary_cross_entropy_with_logits(model(vectors, mask), wanted, reduction="none")
            loss = (errors * counts).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(own, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 100 == 0:
                print(len(losses), round(float(np.mean(losses[-100:])), 4), flush=True)
            if len(losses) == STEPS:
                break
    return model


def batches_of(rows: list[Example]) -> list[list[Example]]:
    batches: list[list[Example]] = [[]]
    for row in sorted(rows, key=lambda row: len(row.tokens) + 4 * random.random()):
        if len(batches[-1]) * len(row.tokens) > TOKENS or len(batches[-1]) >= 80:
            batches.append([])
        batches[-1].append(row)
    random.shuffle(batches)
    return batches


def save(model: Learner) -> None:
    head = {"head.weight": model.head.weight, "head.bias": model.head.bias}
    ups = {f"{name}.up": 2.0 * module.up for name, module in model.adapted.items()}
    downs = {f"{name}.down": module.down for name, module in model.adapted.items()}
    arrays = {name: one.detach().numpy().astype(np.float16) for name, one in {**head, **ups, **downs}.items()}
    with (DATA / "adapters.weights").open("wb") as file:
        np.savez_compressed(file, **arrays)


def thresholds(corpus: Corpus) -> dict[str, Any]:
    """What the held fold and the development set say: see `train_dangers.weigh`."""
    scores = np.full((len(corpus.turns), 2, len(DANGERS)), np.nan)
    for talk, places in zip(corpus.talks, corpus.place, strict=True):
        if corpus.fold[places[0]] in (HELD, NEVER) and talk.source in MEASURED:
            turns, whole = load_encoder().read([(one.text, one.answer) for one in talk.said], [True] * len(places))
            scores[places, 0], scores[places, 1] = turns, whole
    words = load_joint(crisis.DATA, corpus.language).manifest["dangers"]
    found = {}
    for number, kind in enumerate(DANGERS):
        limits, further = {"near": NEAR, **MOST[kind], "bundled": BUNDLED}, [*scores[:, :, number].T]
        found[kind] = weigh(corpus, kind, limits, further, words[kind]["combine"], (NEVER, HELD))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thresholds", action="store_true", help="keep the adapters, set the thresholds again")
    options = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    corpora = list[Corpus]()
    for language in LANGUAGES:
        minors = (talk for path in sorted(CRISIS.glob(f"minors_{language}_*.jsonl")) for talk in author_talks(path))
        corpora.append(Corpus(language, [*all_talks(language, Path(os.environ["H2HTALK_DATA"])), *minors]))
    if not options.thresholds:
        base = danger_encoder.read_base(find_packaged(danger_encoder.WEIGHTS, "training"))
        tokens = Tokens(base.pieces)
        rows = [row for corpus in corpora for row in examples(corpus, tokens)]
        print(len(rows), "examples", flush=True)
        save(learn(rows, base.weights, base.words))
    for corpus in corpora:
        write_manifest(DATA, corpus.language, {"dangers": {}})  # the encoder reads it
    for corpus in corpora:
        write_manifest(DATA, corpus.language, {"dangers": thresholds(corpus), "texts_sha256": corpus.digest})


if __name__ == "__main__":
    main()
