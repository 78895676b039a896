"""What a full run of 4,650 scenarios costs in GPU hours, computed from assumptions that can be changed.

python tools/estimate_gpu_hours.py [--sap full|none] [--thinking 0] [--tokenizer FOLDER] [--matrix-share 0.35]
    [--bandwidth-share 0.6] [--sequences 1024] [--start-minutes 5] [--model NAME,PARAMETERS,LAYERS,KV_HEADS,WIDTH,GPUS]

Nothing is measured but the lengths of the prompts. With P parameters of b bytes, G GPUs of matrix rate F and memory
bandwidth W, reached to the shares f and w, a batch of B sequences, K bytes of KV cache a token, c tokens in a
sequence half-way through its answer, and e the share that is left beside what the GPUs of one model tell each other:

    reading   2 P (tokens read) / (G F f e)                        prompts; a shared prefix is read once
    writing   (tokens written / B) max((b P + B c K) / (G W w e), 2 P B / (G F f e))
    GPU hours G (start + reading + writing)

Attention's own arithmetic is left out (below 5 % of reading at these lengths).
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

MESSAGE_TOKENS = 5  # what a chat template writes around a message
ELEMENT_BYTES = 2  # of weights and of the KV cache, bfloat16
# One H800 SXM by its data sheet: dense bfloat16 operations a second, bytes a second, bytes.
MATRIX_RATE, BANDWIDTH, MEMORY = 989e12, 3.35e12, 80e9
MEMORY_SHARE = 0.9
PARALLEL_SHARE = 0.85  # where one model lies on several GPUs


class ModelShape(NamedTuple):
    """A dense decoder and how many GPUs hold one copy of it."""

    name: str
    parameters: float
    layers: int
    kv_heads: int
    head_width: int
    gpus: int


# The shapes of Qwen2.5, one of the paper's families, from its published configurations.
SHAPES = (
    ModelShape("7B", 7.62e9, 28, 4, 128, 1),
    ModelShape("14B", 14.8e9, 48, 8, 128, 1),
    ModelShape("32B", 32.8e9, 64, 8, 128, 2),
    ModelShape("72B", 72.7e9, 80, 8, 128, 4),
)


class Workload(NamedTuple):
    """Means an item, in tokens: the prompt, the part of it that a persona shares, and the most it may write."""

    items: int
    prompt: float
    shared: float
    output: float


def estimate(
    shape: ModelShape, work: Workload, assumed: argparse.Namespace
) -> tuple[float, float, int]:
    """Hours of reading and of writing by the formulas above, and the batch that the memory allows.

    Raises:
        SystemExit: the weights and one sequence do not fit the GPUs.
    """
    efficiency = shape.gpus * (PARALLEL_SHARE if shape.gpus > 1 else 1.0)
    rate = MATRIX_RATE * assumed.matrix_share * efficiency
    bandwidth = BANDWIDTH * assumed.bandwidth_share * efficiency
    weight_bytes = ELEMENT_BYTES * shape.parameters
    kv_bytes = (
        2 * shape.layers * shape.kv_heads * shape.head_width * ELEMENT_BYTES
    )  # of a token, keys and values
    free = shape.gpus * MEMORY * MEMORY_SHARE - weight_bytes
    sequence_bytes = (work.prompt - work.shared + work.output) * kv_bytes
    batch = min(assumed.sequences, work.items, int(free // sequence_bytes))
    if batch < 1:
        raise SystemExit(
            f"{shape.name}: its weights and one sequence do not fit {shape.gpus} GPUs: name more"
        )
    reading = 2 * shape.parameters * work.items * (work.prompt - work.shared) / rate
    length = work.prompt + work.output / 2
    moved = (weight_bytes + batch * length * kv_bytes) / bandwidth
    writing = work.items * work.output / batch * max(moved, 2 * shape.parameters * batch / rate)
    return reading / 3600, writing / 3600, batch


def measure_workload(count: Callable[[str], int], sap: str, thinking: int) -> Workload:
    """Table 1's 4,650 items with the prompt lengths of `mini`, both languages alike, and each subtask's budget.

    Args:
        count: a text -> its tokens.
        thinking: tokens of reasoning that every answer may have before it.
    """
    prompts = PromptSet.load()
    personas = bundled_personas()
    chosen = Sap.parse(sap)
    lengths: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for scenario in load_split("mini@1").scenarios:
        messages = prompts.messages(scenario, personas[scenario.persona], chosen)
        total = sum(count(message.content) + MESSAGE_TOKENS for message in messages)
        lengths[scenario.subtask].append((total, count(messages[0].content[: messages[0].shared])))
    items = sum(subtask.count for subtask in SUBTASKS.values())

    def mean(value: Callable[[str], float]) -> float:
        return sum(subtask.count * value(name) for name, subtask in SUBTASKS.items()) / items

    return Workload(
        items,
        mean(lambda name: statistics.mean(total for total, _ in lengths[name])),
        mean(lambda name: statistics.mean(shared for _, shared in lengths[name])),
        mean(lambda name: SUBTASKS[name].max_tokens) + thinking,
    )


def open_tokenizer(folder: Path | None) -> Callable[[str], int]:
    """RunCounts tokens as the tokenizer of that folder does; None: as SmolLM2's, which is packaged."""
    from transformers import AutoTokenizer

    if folder is not None:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    else:
        from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged

        path = find_packaged(SMOLLM2_GGUF, "counting tokens")
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def table(shapes: Sequence[ModelShape], work: Workload, assumed: argparse.Namespace) -> str:
    """Markdown, a line a model."""
    lines = [
        f"{work.items:,} items; means an item: {work.prompt:,.0f} tokens of prompt, {work.shared:,.0f} of them"
        f" shared; at most {work.output:,.0f} written\n",
        "| model | GPUs a copy | sequences | reading min | writing min | on the clock min | GPU hours"
        " | without prefix caching |",
        "|---|---|---|---|---|---|---|---|",
    ]
    start = assumed.start_minutes / 60
    for shape in shapes:
        reading, writing, batch = estimate(shape, work, assumed)
        bare = estimate(shape, work._replace(shared=0.0), assumed)
        minutes = " | ".join(
            f"{60 * hours:.1f}" for hours in (reading, writing, start + reading + writing)
        )
        hours = " | ".join(
            f"{shape.gpus * (start + r + w):.2f}" for r, w, _ in ((reading, writing, batch), bare)
        )
        lines.append(f"| {shape.name} | {shape.gpus} | {batch} | {minutes} | {hours} |")
    return "\n".join(lines)


def parse_shape(text: str) -> ModelShape:
    """`NAME,PARAMETERS,LAYERS,KV_HEADS,WIDTH,GPUS`, such as `8B,8.03e9,32,8,128,1`."""
    try:
        name, parameters, *counts = text.split(",")
        layers, kv_heads, width, gpus = map(int, counts)
        return ModelShape(name, float(parameters), layers, kv_heads, width, gpus)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write NAME,PARAMETERS,LAYERS,KV_HEADS,WIDTH,GPUS, such as 8B,8.03e9,32,8,128,1"
        ) from None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sap", default="full")
    parser.add_argument("--thinking", type=int, default=0)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--model", type=parse_shape, action="append")
    for name, default in {"matrix": 0.35, "bandwidth": 0.6}.items():
        parser.add_argument(
            f"--{name}-share", type=float, default=default, help="of the data sheet, 0 to 1"
        )
    parser.add_argument("--sequences", type=int, default=1024)
    parser.add_argument("--start-minutes", type=float, default=5.0)
    options = parser.parse_args(arguments)
    work = measure_workload(open_tokenizer(options.tokenizer), options.sap, options.thinking)
    print(table(options.model or SHAPES, work, options))


if __name__ == "__main__":
    main()
