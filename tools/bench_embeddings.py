"""`minilm` beside sentence-transformers on the same weights: texts a CPU second, largest difference.

python tools/bench_embeddings.py [--texts 1000] [--rounds 5]

Both run on one thread, in turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

from h2htalk.text.embeddings import Vectors
from h2htalk.text.minilm import BATCH_TEXTS, MiniLM
from h2htalk.text.weights import MINILM_WEIGHTS, find_packaged

WORDS = """I you we she he they my your the a this that was is will could would remember forget feel felt told asked
morning evening night work exam office garden harbour letter mother brother friend doctor train rain coffee music
walk sleep dinner promise plan worry lonely happy tired proud angry quiet slowly again never always because although
with without about after before and but so when where why tomorrow yesterday together alone""".split()


def make_texts(count: int, seed: int = 0) -> list[str]:
    """English-looking texts of 2 to 40 words, 113 characters on average, no two the same."""
    drawn = random.Random(seed)
    texts = (
        " ".join(drawn.choices(WORDS, k=drawn.randint(2, 40))) + f", {number}." for number in range(count)
    )
    return list(texts)


def texts_a_cpu_second(encode: Callable[[list[str]], Vectors], texts: list[str]) -> float:
    start = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    folder = find_packaged(MINILM_WEIGHTS, "this measurement").parent
    peer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    encoders: dict[str, Callable[[list[str]], Vectors]] = {
        "sentence-transformers": lambda texts: np.asarray(peer.encode(texts, batch_size=BATCH_TEXTS)),
        "minilm": MiniLM(threads=1).encode,
    }
    texts = make_texts(options.texts)
    difference = np.abs(encoders["minilm"](texts) - encoders["sentence-transformers"](texts)).max()
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
        print(f"| {name} | {statistics.median(measured):.0f} | {min(measured):.0f}-{max(measured):.0f} |")
    ratio = statistics.median(rates["minilm"]) / statistics.median(rates["sentence-transformers"])
    print(f"\nratio {ratio:.2f}, largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
