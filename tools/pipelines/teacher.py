"""A large English tagger and parser that labels text for the small pipelines to learn from.

MiniLM (the encoder of `all-MiniLM-L6-v2`, Apache-2.0) with heads for tags, a biaffine parser (Dozat and Manning 2017),
fine-tuned on the treebank. It is too large and slow to ship; what it writes on
text of free licence (silver) teaches the small pipelines more than the treebank alone can (Kim and Rush 2016).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from pipelines.treebanks import Sentence, Word
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoTokenizer

from h2htalk.text.model_files import MINILM_WEIGHTS, find_packaged

IGNORED = -100
MOST_PIECES = 256
SHAPES = 6
# What lies below learns little more from 200,000 words, and is dear to train.
FROZEN_LAYERS = 2


def shape(word: str) -> int:
    """What an uncased encoder does not see."""
    if word.islower():
        return 1
    if word.isupper():
        return 2 if len(word) > 1 else 3
    if word[:1].isupper():
        return 4
    return 5 if any(c.isupper() for c in word) else 0


@dataclass(frozen=True, slots=True)
class Labels:
    """What the heads choose from."""

    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    feats: tuple[str, ...]
    deprel: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Labels:
        words = [word for sentence in sentences for word in sentence.words]
        return cls(
            *(tuple(sorted({getattr(word, name) for word in words})) for name in cls.__slots__)
        )


class Teacher(nn.Module):
    def __init__(self, labels: Labels, width: int = 384, arc: int = 256, rel: int = 96) -> None:
        super().__init__()
        folder = find_packaged(MINILM_WEIGHTS, "the teacher").parent
        self.labels = labels
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.encoder = AutoModel.from_pretrained(folder)
        for frozen in (self.encoder.embeddings, *self.encoder.encoder.layer[:FROZEN_LAYERS]):
            frozen.requires_grad_(False)
        self.shapes = nn.Embedding(SHAPES, 32)
        self.drop = nn.Dropout(0.25)
        inner = width + 32
        self.tags = nn.ModuleList(
            nn.Linear(inner, len(c)) for c in (labels.upos, labels.xpos, labels.feats)
        )
        self.arc_head, self.arc_dep = _mlp(inner, arc), _mlp(inner, arc)
        self.rel_head, self.rel_dep = _mlp(inner, rel), _mlp(inner, rel)
        self.arc = nn.Parameter(torch.zeros(arc + 1, arc))
        self.rel = nn.Parameter(torch.zeros(len(labels.deprel), rel + 1, rel + 1))
        self.root = nn.Parameter(torch.zeros(inner))
        nn.init.normal_(self.arc, std=0.02)
        nn.init.normal_(self.rel, std=0.02)

    def states(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Word states (batch, 1 + words, width), the root first; and which of them are real."""
        coded = self.tokenizer(
            [list(words) for words in sentences],
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=MOST_PIECES,
            return_tensors="pt",
        )
        hidden = self.encoder(
            **{k: coded[k] for k in ("input_ids", "attention_mask")}
        ).last_hidden_state
        longest = max(map(len, sentences))
        places = torch.full((len(sentences), hidden.shape[1]), longest, dtype=torch.long)
        for row in range(len(sentences)):
            for at, number in enumerate(coded.word_ids(row)):
                if number is not None:
                    places[row, at] = number
        sums = hidden.new_zeros(len(sentences), longest + 1, hidden.shape[2])
        sums.scatter_add_(1, places[..., None].expand_as(hidden), hidden)
        counts = hidden.new_zeros(len(sentences), longest + 1).scatter_add_(
            1, places, torch.ones_like(places, dtype=hidden.dtype)
        )
        words = sums[:, :longest] / counts[:, :longest, None].clamp(min=1)
        shapes = torch.zeros(len(sentences), longest, dtype=torch.long)
        mask = torch.zeros(len(sentences), longest, dtype=torch.bool)
        for row, sentence in enumerate(sentences):
            shapes[row, : len(sentence)] = torch.tensor([shape(word) for word in sentence])
            mask[row, : len(sentence)] = True
        states = torch.cat((words, self.shapes(shapes)), dim=2)
        root = self.root.expand(len(sentences), 1, -1)
        return self.drop(torch.cat((root, states), dim=1)), mask

    def arcs(self, states: Tensor, mask: Tensor) -> Tensor:
        """Scores (batch, words, 1 + words) of each word's possible heads, the root first."""
        dependents = self.arc_dep(states[:, 1:])
        heads = self.arc_head(states)
        bias = torch.ones_like(dependents[..., :1])
        scores = torch.cat((dependents, bias), dim=2) @ self.arc @ heads.transpose(1, 2)
        closed = ~torch.cat((torch.ones_like(mask[:, :1]), mask), dim=1)
        return scores.float().masked_fill(closed[:, None, :], -1e4)

    def relations(self, states: Tensor, heads: Tensor) -> Tensor:
        """Scores (batch, words, relations) given each word's head."""
        dependents = self.rel_dep(states[:, 1:])
        governors = self.rel_head(states)
        chosen = governors.gather(1, heads[..., None].expand(-1, -1, governors.shape[2]))
        one = torch.ones_like(dependents[..., :1])
        left = torch.cat((dependents, one), dim=2)
        right = torch.cat((chosen, one), dim=2)
        return torch.einsum("bwi,rij,bwj->bwr", left, self.rel, right).float()


def _mlp(width: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, out), nn.GELU(), nn.Dropout(0.25))


def train(teacher: Teacher, parsed: Sequence[Sentence]) -> None:
    torch.manual_seed(0)
    rng = random.Random(0)
    jobs_each = [_batches(parsed, 32, rng) for _ in range(2)]
    total = sum(map(len, jobs_each))
    encoder = [p for p in teacher.encoder.parameters() if p.requires_grad]
    others = [p for n, p in teacher.named_parameters() if not n.startswith("encoder.")]
    optimizer = torch.optim.AdamW(
        [{"params": encoder, "lr": 1.5e-4}, {"params": others, "lr": 2e-3}], weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 150) * max(0.02, 1 - step / total)
    )
    teacher.train()
    done = 0
    for jobs in jobs_each:
        rng.shuffle(jobs)
        for job in jobs:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = _parse_loss(teacher, job)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(teacher.parameters(), 2.0)
            optimizer.step()
            schedule.step()
            done += 1
            if done % 100 == 0:
                print(f"teacher: step {done} of {total}, loss {loss.item():.3f}", flush=True)


def _batches(sentences: Sequence[Sentence], size: int, rng: random.Random) -> list[list[Sentence]]:
    """Sentences of like length together, in buckets of chance."""
    order = sorted(sentences, key=lambda s: len(s.words) + rng.random() * 4)
    return [order[at : at + size] for at in range(0, len(order), size)]


def _parse_loss(teacher: Teacher, sentences: Sequence[Sentence]) -> Tensor:
    states, mask = teacher.states([[w.form for w in s.words] for s in sentences])
    labels = teacher.labels
    loss = states.new_zeros(())
    for head, names, column in zip(
        teacher.tags,
        (labels.upos, labels.xpos, labels.feats),
        ("upos", "xpos", "feats"),
        strict=True,
    ):
        gold = _gold(sentences, mask, {name: at for at, name in enumerate(names)}, column)
        loss = loss + 0.5 * cross_entropy(
            head(states[:, 1:]).float().flatten(0, 1), gold.flatten(), ignore_index=IGNORED
        )
    heads = torch.full(mask.shape, IGNORED)
    for row, sentence in enumerate(sentences):
        heads[row, : len(sentence.words)] = torch.tensor([w.head for w in sentence.words])
    loss = loss + cross_entropy(
        teacher.arcs(states, mask).flatten(0, 1), heads.flatten(), ignore_index=IGNORED
    )
    relations = _gold(
        sentences, mask, {name: at for at, name in enumerate(labels.deprel)}, "deprel"
    )
    scores = teacher.relations(states, heads.clamp(min=0))
    return loss + cross_entropy(scores.flatten(0, 1), relations.flatten(), ignore_index=IGNORED)


def _gold(
    sentences: Sequence[Sentence], mask: Tensor, number: dict[str, int], column: str
) -> Tensor:
    gold = torch.full(mask.shape, IGNORED)
    for row, sentence in enumerate(sentences):
        values = [number.get(getattr(word, column), IGNORED) for word in sentence.words]
        gold[row, : len(values)] = torch.tensor(values)
    return gold


Given = tuple[Sequence[str], Sequence[bool]]  # a sentence's words, and whether a space follows each


@torch.inference_mode()
def read(teacher: Teacher, sentences: Sequence[Given], batch: int = 48) -> Iterator[Sentence]:
    """Of each sentence, in order: the best tags, head and relation of each word."""
    teacher.eval()
    labels = teacher.labels
    order = sorted(range(len(sentences)), key=lambda at: len(sentences[at][0]))
    found: dict[int, Sentence] = {}
    for start in range(0, len(order), batch):
        numbers = order[start : start + batch]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states, mask = teacher.states([sentences[at][0] for at in numbers])
            heads = teacher.arcs(states, mask).argmax(dim=2)
            relations = teacher.relations(states, heads).argmax(dim=2).tolist()
            tags = [head(states[:, 1:]).argmax(dim=2).tolist() for head in teacher.tags]
        for row, at in enumerate(numbers):
            upos, xpos, feats = (tag[row] for tag in tags)
            of = relations[row]
            own = heads[row].tolist()
            words = (
                Word(
                    form,
                    labels.upos[upos[n]],
                    labels.xpos[xpos[n]],
                    labels.feats[feats[n]],
                    own[n],
                    labels.deprel[of[n]] if own[n] else "root",
                    space,
                )
                for n, (form, space) in enumerate(zip(*sentences[at], strict=True))
            )
            found[at] = Sentence(tuple(words), "", starts_document=False)
    for at in range(len(sentences)):
        yield found[at]


def is_tree(sentence: Sentence) -> bool:
    """Whether the heads have one root that every word leads to."""
    heads = [word.head for word in sentence.words]
    return heads.count(0) == 1 and all(_reaches_root(at, heads) for at in range(len(heads)))


def _reaches_root(at: int, heads: Sequence[int]) -> bool:
    for _ in range(len(heads) + 1):
        if heads[at] == 0:
            return True
        at = heads[at] - 1
    return False
