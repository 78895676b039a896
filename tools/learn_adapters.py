"""Learn adapters from what `train_danger_encoder.py prepare` wrote: torch and transformers alone are needed.

    python learn_adapters.py FOLDER

It writes `adapters.npz`. Fold HELD is not learned from. On an H100 this takes minutes, on two cores hours.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear
from transformers import BertConfig, BertModel

HELD, NEVER = 0, -1
STEPS, RANK, RATE, RISE, MOST_ROWS = 3800, 16, 1e-3, 200, 240
BATCH = 5400  # tokens
DROPOUT = 0.05
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Adapted(nn.Module):
    """A matrix that stays, and what is added to it (Hu et al. 2021, arXiv:2106.09685)."""

    def __init__(self, fixed: nn.Linear) -> None:
        super().__init__()
        self.fixed = fixed
        self.down = nn.Parameter(
            torch.randn(RANK, fixed.in_features) / math.sqrt(fixed.in_features)
        )
        self.up = nn.Parameter(torch.zeros(fixed.out_features, RANK))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.fixed(x) + 2.0 * linear(linear(x, self.down), self.up)
        return added


class Learner(nn.Module):
    """The encoder with adapters and a row of weights for each danger."""

    def __init__(self, base: Mapping[str, NDArray[Any]], dangers: int) -> None:
        super().__init__()
        weights = {name: torch.tensor(base[name]).float() for name in base if name != "words"}
        inner, width = weights["encoder.layer.0.intermediate.dense.weight"].shape
        layers = sum(name.endswith("intermediate.dense.bias") for name in weights)
        shape: dict[str, Any] = {
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
        }
        config = BertConfig(
            vocab_size=1, **shape, hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=0
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        missing = self.bert.load_state_dict(weights, strict=False)
        assert missing.missing_keys == ["embeddings.word_embeddings.weight"], missing
        self.bert.requires_grad_(False)
        self.adapted = dict(self._adapt())
        self.words = torch.tensor(base["words"]).float().to(DEVICE)
        self.head = nn.Linear(width, dangers)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.constant_(self.head.bias, -3.0)

    def _adapt(self) -> Iterator[tuple[str, Adapted]]:
        for name, module in [*self.bert.named_modules()]:
            if isinstance(module, nn.Linear):
                parent, _, last = name.rpartition(".")
                adapted = Adapted(module)
                setattr(self.bert.get_submodule(parent), last, adapted)
                yield name, adapted

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(
            inputs_embeds=self.words[tokens], attention_mask=mask
        ).last_hidden_state.float()
        scores: torch.Tensor = self.head(
            (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        )
        return scores


class Rows:
    """The examples: `tokens` of row n stand from `starts[n]` to `starts[n + 1]`."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tokens, self.starts = arrays["tokens"], arrays["starts"]
        self.lengths = np.diff(self.starts)
        self.fold, self.drawn = arrays["fold"], arrays["drawn"]
        self.wanted, self.counts = (
            torch.tensor(arrays[name]).float() for name in ("wanted", "counts")
        )

    def batches(
        self, rows: NDArray[np.int64], most: int, random: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """Rows of about the same length together, `most` tokens with their padding; in no order."""
        groups = list[list[int]]()
        for row in rows[np.argsort(self.lengths[rows] + 4 * random.random(len(rows)))]:
            if (
                not groups
                or len(groups[-1]) * self.lengths[row] > most
                or len(groups[-1]) >= MOST_ROWS
            ):
                groups.append([])
            groups[-1].append(row)
        return [np.array(groups[at]) for at in random.permutation(len(groups))]

    def padded(self, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and mask: (rows, longest)."""
        places = np.arange(self.lengths[rows].max())
        mask = places < self.lengths[rows, None]
        tokens = np.where(
            mask, self.tokens[np.minimum(self.starts[rows, None] + places, len(self.tokens) - 1)], 0
        )
        return torch.tensor(tokens.astype(np.int64)).to(DEVICE), torch.tensor(
            mask.astype(np.int64)
        ).to(DEVICE)


def learn(rows: Rows, base: Mapping[str, NDArray[Any]]) -> Learner:
    """STEPS batches of the rows; the rate rises and falls to nothing."""
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    model = Learner(base, rows.wanted.shape[1]).train().to(DEVICE)
    own = [parameter for module in model.adapted.values() for parameter in (module.down, module.up)]
    groups = [{"params": own, "lr": RATE}, {"params": model.head.parameters(), "lr": 4 * RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    losses = list[torch.Tensor]()
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / RISE, max(0.02, 1 - n / STEPS))
    )
    inside = (rows.fold != HELD) & (rows.fold != NEVER)
    while len(losses) < STEPS:
        drawn = np.flatnonzero(inside & (random.random(len(inside)) < rows.drawn))
        for batch in rows.batches(drawn, BATCH, random)[: STEPS - len(losses)]:
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                scores = model(*rows.padded(batch))
            wanted = rows.wanted[batch].to(DEVICE)
            counts = rows.counts[batch].to(DEVICE)
            loss = (
                binary_cross_entropy_with_logits(scores, wanted, reduction="none") * counts
            ).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(own, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
            if len(losses) % 100 == 0:
                print(len(losses), round(float(torch.stack(losses[-100:]).mean()), 4), flush=True)
    return model.eval()


def adapters(model: Learner) -> dict[str, NDArray[np.float16]]:
    """What is added to each matrix, as `up @ down`, and the head."""
    arrays = {"head.weight": model.head.weight, "head.bias": model.head.bias}
    for name, module in model.adapted.items():
        arrays |= {f"{name}.up": 2.0 * module.up, f"{name}.down": module.down}
    return {name: one.detach().cpu().numpy().astype(np.float16) for name, one in arrays.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    rows = Rows(np.load(folder / "examples.npz"))
    base = dict(np.load(folder / "base.npz"))
    np.savez_compressed(folder / "adapters.npz", **adapters(learn(rows, base)))


if __name__ == "__main__":
    main()
