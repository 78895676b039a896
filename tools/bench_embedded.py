"""`embedded` beside `hf:` on the same prompts: items a second, load left out.

python tools/bench_embedded.py [--items 33] [--max-tokens 48] [--sap full|none] [--checkpoint FOLDER]

Prompts are those of `mini`'s English half; with SAP they share most of their text. Both engines run the same
weights, in turns, greedily, with nothing cached from the round before. Without --checkpoint one is written to a
temporary folder (513 MB).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export_smollm2 import export

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.engines import open_chat
from h2htalk.chat.protocol import Reply, Request, Sampling
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.splits import load_split


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine's round: seconds, and tokens read and written."""

    wall: float
    cpu: float
    input_tokens: int
    output_tokens: int
    items: int


def make_requests(count: int, max_tokens: int, sap_text: str) -> list[Request]:
    """Prompts of English scenarios, all subtasks in turn."""
    prompts = PromptSet.load()
    personas = bundled_personas()
    sap = Sap.parse(sap_text)
    scenarios = [
        scenario for scenario in load_split("mini@1").scenarios if scenario.language == "en"
    ]
    step = max(1, len(scenarios) // count)
    return [
        Request(
            item.id,
            prompts.messages(item, personas[item.persona], sap),
            Sampling(max_tokens=max_tokens),
        )
        for item in scenarios[::step][:count]
    ]


def measure(model: str, requests: Sequence[Request]) -> Measured:
    """A round of a freshly opened model."""
    chat = open_chat(model)
    chat.complete(requests[:1])  # loads; one prompt of many stays in a prefix cache
    wall = time.perf_counter()
    cpu = time.process_time()
    outcomes = chat.complete(requests[1:])
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    chat.close()
    usages = [outcome.usage for outcome in outcomes if isinstance(outcome, Reply)]
    if len(usages) < len(outcomes):
        raise SystemExit(f"{model}: {len(outcomes) - len(usages)} items failed; nothing to compare")
    read = sum(usage.input_tokens or 0 for usage in usages)
    return Measured(wall, cpu, read, sum(usage.output_tokens or 0 for usage in usages), len(usages))


def compare(checkpoint: Path, requests: Sequence[Request], rounds: int) -> None:
    models = {"hf": f"hf:{checkpoint}", "embedded": "embedded"}
    measured: dict[str, list[Measured]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            measured[name].append(measure(model, requests))
    print(
        "| engine | items | tokens read | written | wall s | CPU s | items a second |\n|---|---|---|---|---|---|---|"
    )
    for name, found in measured.items():
        wall, cpu = (statistics.median(getattr(m, key) for m in found) for key in ("wall", "cpu"))
        first = found[0]
        print(
            f"| {name} | {first.items} | {first.input_tokens} | {first.output_tokens} "
            f"| {wall:.1f} | {cpu:.1f} | {first.items / wall:.2f} |"
        )
    ratios = {
        key: statistics.median(
            getattr(h, key) / getattr(e, key) for h, e in zip(*measured.values(), strict=True)
        )
        for key in ("wall", "cpu")
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"\nembedded is {ratios['wall']:.2f} times as fast ({ratios['cpu']:.2f} in CPU seconds); peak {peak} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=33)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--sap", default="full")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args()
    requests = make_requests(options.items + 1, options.max_tokens, options.sap)
    if options.checkpoint is not None:
        compare(options.checkpoint, requests, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(export(Path(folder) / "smollm2"), requests, options.rounds)


if __name__ == "__main__":
    main()
