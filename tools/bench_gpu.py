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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_models import (
    CHAT_TOKENS,
    DECODERS,
    ENCODER_TOKENS,
    ENCODERS,
    DecoderShape,
    EncoderShape,
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


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    decoder: str
    encoder: str
    matrix: int
    requests: int
    texts: int
    prompt_share: float = 1.0  # of PROMPT_TOKENS
    new_tokens: int = NEW_TOKENS


def synchronise() -> None:
    """Wait until the GPU has done what it was given."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    synchronise()
    start = time.perf_counter()
    result = work()
    synchronise()
    return time.perf_counter() - start, result


def matrix_rate(width: int, dtype: str, rounds: int = 20) -> float:
    """Operations a second of a plain (width, width) product: the best of `rounds`."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(width, width, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    with torch.inference_mode():
        a @ b  # the first call chooses a kernel
        return 2.0 * width**3 / min(seconds_of(lambda: a @ b)[0] for _ in range(rounds))


def draw_lengths(count: int, law: tuple[float, float, int, int], seed: int, share: float = 1.0) -> list[int]:
    mean, deviation, least, most = law
    drawn = random.Random(seed)
    return [max(least, min(most, round(share * drawn.gauss(mean, deviation)))) for _ in range(count)]


def draw_texts(lengths: Sequence[int], words: Sequence[str], seed: int) -> list[str]:
    """A text of that many words for each length, no two the same."""
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(words, k=length)) for length in lengths]


def bench_decoder(folder: Path, shape: DecoderShape, size: Size, rate: float) -> str:
    """`hf:` on the same greedy requests twice."""
    parameters = write_decoder(folder, shape)
    words = words_for(shape.vocabulary, CHAT_TOKENS)
    lengths = draw_lengths(size.requests, PROMPT_TOKENS, 1, size.prompt_share)
    sampling = Sampling(max_tokens=size.new_tokens)
    requests = [
        Request(f"item-{number}", (Message("user", text),), sampling)
        for number, text in enumerate(draw_texts(lengths, words, 2))
    ]
    chat = open_chat(f"hf:{folder}", ChatOptions(concurrency=64))
    chat.complete(requests[:2])
    rounds = [seconds_of(lambda: chat.complete(requests)) for _ in range(2)]
    replies = [[outcome for outcome in outcomes if isinstance(outcome, Reply)] for _, outcomes in rounds]
    if any(len(found) < len(requests) for found in replies):
        raise ModelCallError(f"{len(requests) - len(replies[0])} requests failed; nothing to measure")
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


def encoder_operations(shape: EncoderShape, lengths: Sequence[int]) -> float:
    """Multiplications and additions for texts of these lengths, padding left out: weights, and attention."""
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    return 2.0 * shape.layer_parameters * tokens + 4.0 * shape.layers * shape.width * squares


def text_share(lengths: Sequence[int], batch: int) -> float:
    """The share of what FlagEmbedding computes that is text: batches of like length, longest first, are padded.

    It computes the first batch twice, to see whether it fits the memory.
    """
    longest_first = sorted(lengths, reverse=True)
    batches = [longest_first[start : start + batch] for start in range(0, len(longest_first), batch)]
    return sum(lengths) / sum(found[0] * len(found) for found in [batches[0], *batches])


def bench_encoder(folder: Path, shape: EncoderShape, size: Size, rates: dict[str, float]) -> tuple[str, list[str]]:
    """`bge-m3` as it is, then FlagEmbedding in both precisions and two batch sizes; and what was left out."""
    import torch

    write_encoder(folder, shape)
    words = words_for(shape.vocabulary, ENCODER_TOKENS)
    lengths = draw_lengths(size.texts, TEXT_TOKENS, 3)
    texts = draw_texts(lengths, words, 4)
    tokens = [length + 2 for length in lengths]  # <s> and </s>
    ours = open_embedder(f"bge-m3:{folder}")
    runs: list[tuple[str, str, int, Callable[[list[str]], Any]]] = [
        ("h2htalk, bge-m3", "float32", BGE_BATCH, ours.encode)
    ]
    missing = []
    for dtype in ("float32", "bfloat16"):
        if dtype == "bfloat16" and not torch.cuda.is_available():
            missing.append("the encoder in bfloat16: FlagEmbedding computes in float32 on a CPU")
            continue
        for batch in (BGE_BATCH, LARGE_BATCH):
            runs.append(("FlagEmbedding", dtype, batch, open_flag(folder, dtype, batch)))
    lines = [
        "| encoder | precision | texts a batch | text in what is computed | texts a second | tokens a second"
        " | of the matrix rate |\n|---|---|---|---|---|---|---|"
    ]
    for name, dtype, batch, encode in runs:
        encode(texts[:batch])
        seconds, _ = seconds_of(lambda encode=encode: encode(texts))  # type: ignore[misc]
        share = encoder_operations(shape, tokens) / seconds / rates[dtype]
        lines.append(
            f"| {name} | {dtype} | {batch} | {text_share(tokens, batch):.3f} | {len(texts) / seconds:.0f}"
            f" | {sum(tokens) / seconds:.0f} | {share:.3f} |"
        )
    return "\n".join(lines), missing


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
    """All tables, each as soon as it is there, and what was not measured: a part that fails costs no other."""
    import torch

    on_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name(0) if on_gpu else "CPU"
    rates = {dtype: matrix_rate(size.matrix, dtype) for dtype in ("float32", "bfloat16")}
    yield f"{device}, torch {torch.__version__}"
    yield (
        f"| plain product, {size.matrix} wide | TFLOP/s |\n|---|---|\n"
        + "\n".join(f"| {dtype} | {rate / 1e12:.3g} |" for dtype, rate in rates.items())
    )
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        precision = "bfloat16" if on_gpu else "float32"  # `hf:` computes in float32 on a CPU
        shape = DECODERS[size.decoder]
        try:
            yield bench_decoder(Path(folder) / "decoder", shape, size, rates[precision])
        except (H2HTalkError, torch.OutOfMemoryError) as error:
            missing.append(f"hf: {error}")
        try:
            table, left_out = bench_encoder(Path(folder) / "encoder", ENCODERS[size.encoder], size, rates)
            yield table
            missing += left_out
        except (H2HTalkError, torch.OutOfMemoryError) as error:
            missing.append(f"the encoder: {error}")
    if not on_gpu:
        missing.insert(0, "anything on a GPU: torch sees none here")
    if "tiny" in (size.decoder, size.encoder):
        missing.append("models of real size: these are toys, and their figures mean nothing")
    yield "\n\n".join(f"NOT MEASURED: {what}." for what in missing)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
