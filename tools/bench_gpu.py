"""The transformers engine and the encoder path on a GPU: speed, repeatability, share of the matrix rate.

python tools/bench_gpu.py [--decoder 1b|7b] [--requests 256] [--texts 4650] [--tiny]

Needs the `local` extra and a CUDA GPU; no weights and no network: models are random, of real shapes, written to a
temporary folder. The yardstick is a large plain matrix product of the same run. `--tiny` goes through the same code
with models of a toy's size, on a CPU too: it shows that the tool works, its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from random_models import (
    CHAT_TOKENS,
    DECODERS,
    ENCODER_TOKENS,
    ENCODERS,
    Shape,
    words_for,
    write_decoder,
    write_encoder,
)

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.errors import H2HTalkError, ModelCallError
from h2htalk.text.embeddings.embedders import BGE_BATCH, open_embedder

# Tokens of `mini`'s references by SmolLM2's tokenizer: 62 in English, 139 in Chinese on average.
TEXT_TOKENS = (100.0, 60.0, 8, 512)  # mean, deviation, least, most
PROMPT_TOKENS = (1500.0, 400.0, 64, 4000)
NEW_TOKENS = 128
LARGE_BATCH = 256


class Size(NamedTuple):
    """How much is measured; `prompt_share` is of PROMPT_TOKENS."""

    decoder: str
    encoder: str
    matrix: int
    requests: int
    texts: int
    prompt_share: float = 1.0
    new_tokens: int = NEW_TOKENS


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds until the GPU has done what `work` gives it, and what `work` returns."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    start = time.perf_counter()
    result = work()
    wait()
    return time.perf_counter() - start, result


def matrix_rate(width: int, dtype: str) -> float:
    """Operations a second of a plain (width, width) product: the best of 20 rounds."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(width, width, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    with torch.inference_mode():
        a @ b  # the first call chooses a kernel
        return 2.0 * width**3 / min(seconds_of(lambda: a @ b)[0] for _ in range(20))


def draw_texts(
    count: int,
    law: tuple[float, float, int, int],
    words: Sequence[str],
    seed: int,
    share: float = 1.0,
) -> list[list[str]]:
    """Texts, as lists of words, whose lengths follow a normal law; no two are the same."""
    mean, deviation, least, most = law
    drawn = random.Random(seed)
    lengths = [
        max(least, min(most, round(share * drawn.gauss(mean, deviation)))) for _ in range(count)
    ]
    drawn = random.Random(seed + 1)
    return [drawn.choices(words, k=length) for length in lengths]


def bench_decoder(folder: Path, shape: Shape, size: Size, rate: float) -> str:
    """`hf:` on the same greedy requests twice."""
    parameters = write_decoder(folder, shape)
    words = words_for(shape.vocabulary, CHAT_TOKENS)
    sampling = Sampling(max_tokens=size.new_tokens)
    texts = draw_texts(size.requests, PROMPT_TOKENS, words, 1, size.prompt_share)
    requests = [
        Request(f"item-{n}", (Message("user", " ".join(text)),), sampling)
        for n, text in enumerate(texts)
    ]
    chat = open_chat(f"hf:{folder}", ChatOptions(concurrency=64))
    chat.complete(requests[:2])
    rounds = [seconds_of(lambda: chat.complete(requests)) for _ in range(2)]
    replies = [
        [outcome for outcome in outcomes if isinstance(outcome, Reply)] for _, outcomes in rounds
    ]
    if any(len(found) < len(requests) for found in replies):
        raise ModelCallError(
            f"{len(requests) - len(replies[0])} requests failed; nothing to measure"
        )
    same = sum(a.text == b.text for a, b in zip(*replies, strict=True))
    seconds = rounds[1][0]
    read = sum(reply.usage.input_tokens or 0 for reply in replies[1])
    written = sum(reply.usage.output_tokens or 0 for reply in replies[1])
    chat.close()
    share = 2 * parameters * (read + written) / seconds / rate
    return (
        "| model | precision | requests | read | written | s | read and written a second | written a second"
        " | of the matrix rate | same texts twice |\n|---|---|---|---|---|---|---|---|---|---|\n"
        f"| Llama, {parameters / 1e9:.3g}e9 | {chat.subject['precision']} | {len(requests)} | {read} | {written}"
        f" | {seconds:.2f} | {(read + written) / seconds:.0f} | {written / seconds:.0f} | {share:.3f}"
        f" | {same} of {len(requests)} |"
    )


def encoder_operations(shape: Shape, lengths: Sequence[int]) -> float:
    """Multiplications and additions for texts of these lengths, padding left out: weights, and attention."""
    tokens = sum(lengths)
    squares = sum(length**2 for length in lengths)
    return 2.0 * shape.layer_parameters * tokens + 4.0 * shape.layers * shape.width * squares


def bench_encoder(folder: Path, shape: Shape, size: Size, rates: dict[str, float]) -> str:
    """`bge-m3` as it is, then FlagEmbedding in two batch sizes and in both precisions, on a CPU in float32 alone."""
    import torch

    write_encoder(folder, shape)
    words = words_for(shape.vocabulary, ENCODER_TOKENS)
    drawn = draw_texts(size.texts, TEXT_TOKENS, words, 3)
    texts = [" ".join(text) for text in drawn]
    tokens = [len(text) + 2 for text in drawn]  # <s> and </s>
    ours = open_embedder(f"bge-m3:{folder}")
    runs: list[tuple[str, str, int, Callable[[list[str]], Any]]] = [
        ("h2htalk, bge-m3", "float32", BGE_BATCH, ours.encode)
    ]
    for dtype in ("float32", "bfloat16") if torch.cuda.is_available() else ("float32",):
        for batch in (BGE_BATCH, LARGE_BATCH):
            runs.append(("FlagEmbedding", dtype, batch, open_flag(folder, dtype, batch)))
    lines = [
        "| encoder | precision | texts a batch | texts a second | tokens a second | of the matrix rate |",
        "|---|---|---|---|---|---|",
    ]
    for name, dtype, batch, encode in runs:
        encode(texts[:batch])
        seconds, _ = seconds_of(lambda encode=encode: encode(texts))  # type: ignore[misc]
        share = encoder_operations(shape, tokens) / seconds / rates[dtype]
        rate = f"{len(texts) / seconds:.0f} | {sum(tokens) / seconds:.0f}"
        lines.append(f"| {name} | {dtype} | {batch} | {rate} | {share:.3f} |")
    return "\n".join(lines)


def open_flag(folder: Path, dtype: str, batch: int) -> Callable[[list[str]], Any]:
    """FlagEmbedding itself: our loader knows float32 alone, as other precisions give other vectors."""
    import torch
    from FlagEmbedding import BGEM3FlagModel

    model = BGEM3FlagModel(
        str(folder),
        use_fp16=False,
        use_bf16=dtype == "bfloat16",
        devices="cuda:0" if torch.cuda.is_available() else "cpu",
        return_sparse=False,
        return_colbert_vecs=False,
    )
    return lambda texts: model.encode(texts, batch_size=batch, max_length=512 + 2)["dense_vecs"]


def run(size: Size) -> Iterator[str]:
    """All tables, each as soon as it is there: a part that fails costs no other."""
    import torch

    on_gpu = torch.cuda.is_available()
    rates = {dtype: matrix_rate(size.matrix, dtype) for dtype in ("float32", "bfloat16")}
    yield f"{torch.cuda.get_device_name(0) if on_gpu else 'CPU'}, torch {torch.__version__}"
    listed = "\n".join(f"| {dtype} | {rate / 1e12:.3g} |" for dtype, rate in rates.items())
    yield f"| plain product, {size.matrix} wide | TFLOP/s |\n|---|---|\n{listed}"
    rate = rates["bfloat16" if on_gpu else "float32"]  # `hf:` computes in float32 on a CPU
    with tempfile.TemporaryDirectory() as folder:
        for part in (
            lambda: bench_decoder(Path(folder) / "decoder", DECODERS[size.decoder], size, rate),
            lambda: bench_encoder(Path(folder) / "encoder", ENCODERS[size.encoder], size, rates),
        ):
            try:
                yield part()
            except (H2HTalkError, torch.OutOfMemoryError) as error:
                yield f"NOT MEASURED: {error}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decoder", choices=["1b", "7b"], default="1b")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--texts", type=int, default=4650)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TQDM_DISABLE", "1")  # the tables are all there is to read
    import torch

    if options.tiny:
        size = Size("tiny", "tiny", 256, requests=6, texts=40, prompt_share=0.03, new_tokens=8)
    elif not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here; --tiny shows on a CPU that the tool works")
    else:
        size = Size(options.decoder, "bge-m3", 8192, options.requests, options.texts)
    for part in run(size):
        print(part, flush=True, end="\n\n")


if __name__ == "__main__":
    main()
