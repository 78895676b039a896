"""`minilm` beside sentence-transformers on the same weights: texts a CPU second, largest difference.

python tools/bench_embeddings.py [--texts 1500] [--characters 113] [--rounds 5]

Both run on one thread, in turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import time
from collections.abc import Callable
from functools import partial

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

from h2htalk.data.splits import load_split
from h2htalk.text.embeddings.minilm import MiniLM
from h2htalk.text.embeddings.vectors import Vectors
from h2htalk.text.model_files import MINILM_WEIGHTS, find_packaged

PEER_BATCH_TEXTS = (32, 64)  # its default, and what suits it better on short texts


def make_texts(count: int, characters: int, seed: int = 0) -> list[str]:
    """Beginnings of English texts of `mini`, `characters` long on average, no two the same."""
    scenarios = [
        scenario for scenario in load_split("mini@1").scenarios if scenario.language == "en"
    ]
    sentences = sorted(
        {s for item in scenarios for s in re.split(r"(?<=[.!?])\s+", item.reference) if s}
    )
    drawn = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < count:
        words = " ".join(drawn.sample(sentences, 6)).split()
        length = max(2, round(drawn.gauss(characters, characters / 2) / 6))
        texts[" ".join(words[:length])] = None
    return list(texts)


def texts_a_cpu_second(encode: Callable[[list[str]], Vectors], texts: list[str]) -> float:
    start = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=1500)
    parser.add_argument("--characters", type=int, default=113)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    folder = find_packaged(MINILM_WEIGHTS, "this measurement").parent
    peer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    encoders: dict[str, Callable[[list[str]], Vectors]] = {
        f"sentence-transformers, batches of {size}": partial(peer.encode, batch_size=size)
        for size in PEER_BATCH_TEXTS
    }
    peers = list(encoders)
    encoders["minilm"] = MiniLM(threads=1).encode
    texts = make_texts(options.texts, options.characters)
    difference = np.abs(encoders["minilm"](texts) - encoders[peers[0]](texts)).max()
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(options.rounds):
        for name, encode in encoders.items():
            rates[name].append(texts_a_cpu_second(encode, texts))

    mean_length = statistics.mean(map(len, texts))
    print(
        f"{len(texts)} texts of {mean_length:.0f} characters, one thread, median of {options.rounds} rounds\n"
    )
    print("| encoder | texts a CPU second | range |\n|---|---|---|")
    for name, measured in rates.items():
        print(
            f"| {name} | {statistics.median(measured):.0f} | {min(measured):.0f}-{max(measured):.0f} |"
        )
    ratio = statistics.median(rates["minilm"]) / max(
        statistics.median(rates[peer]) for peer in peers
    )
    print(
        f"\nminilm beside the faster of the two: {ratio:.2f}; largest difference {difference:.1e}"
    )


if __name__ == "__main__":
    main()
