"""Tokens a second of `vllm:` beside a bare `LLM.chat`: the same prompts, sampling and engine options.

.venv-vllm/bin/python tools/bench_vllm.py CHECKPOINT [--items 77] [--max-tokens 64] [--rounds 5] [--engine-option K=V]

Both engines are started once and take turns, the one that begins changing from round to round, so that whatever
else the machine does meets both. While one works the other waits. The prefix cache of each is emptied before
each turn. A round's ratio is of the two rates of that round; the figure is the median of the rounds' ratios.
Prompts are those of `mini` in English with full SAP; every answer is computed to `--max-tokens` or its end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.local.checkpoints import describe_checkpoint, find_source
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.chat.vllm.engine import VLLMChat
from h2htalk.chat.vllm.engine_options import VLLMOptions
from h2htalk.chat.vllm.startup import engine_arguments, on_cpu
from h2htalk.data.splits import load_split
from h2htalk.errors import H2HTalkError


def prompts(items: int) -> list[tuple[Message, ...]]:
    """The first `items` conversations of `mini` in English, over and over where there are fewer."""
    split = load_split("mini@1").select("en", (), None)
    prompt_set, sap = PromptSet.load(None), Sap.parse("full")
    made = [prompt_set.messages(s, split.personas[s.persona], sap) for s in split.scenarios]
    return [made[number % len(made)] for number in range(items)]


def run_ours(chat: VLLMChat, conversations: Sequence[tuple[Message, ...]], max_tokens: int) -> float:
    """Tokens a second that were written."""
    chat._runner.run(chat._engine.reset_prefix_cache())
    requests = [
        Request(str(number), messages, Sampling(max_tokens=max_tokens)) for number, messages in enumerate(conversations)
    ]
    start = time.perf_counter()
    outcomes = chat.complete(requests)
    seconds = time.perf_counter() - start
    written = sum(o.usage.output_tokens or 0 for o in outcomes if isinstance(o, Reply))
    return written / seconds


def run_bare(llm: Any, conversations: Sequence[tuple[Message, ...]], max_tokens: int) -> float:
    """Tokens a second that were written."""
    from vllm import SamplingParams

    llm.reset_prefix_cache()
    turns = [[{"role": m.role, "content": m.content} for m in messages] for messages in conversations]
    start = time.perf_counter()
    outputs = llm.chat(turns, SamplingParams(temperature=0, max_tokens=max_tokens, seed=0), use_tqdm=False)
    seconds = time.perf_counter() - start
    return sum(len(output.outputs[0].token_ids) for output in outputs) / seconds


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    options = dict(pair.split("=", 1) for pair in arguments.engine_option)
    chat = VLLMChat(str(arguments.checkpoint), ChatOptions(engine_options=options))
    description = describe_checkpoint(find_source("vllm", str(arguments.checkpoint)))
    with chat._processes.quiet():
        from vllm import LLM

        llm = LLM(**engine_arguments(VLLMOptions.parse(options), description, None, on_cpu()))
    conversations = prompts(arguments.items)
    runs = {"ours": lambda: run_ours(chat, conversations, arguments.max_tokens)}
    runs["bare"] = lambda: run_bare(llm, conversations, arguments.max_tokens)
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    try:
        for name in ("bare", "ours"):  # warm both up
            runs[name]()
        for number in range(arguments.rounds):
            for name in ("ours", "bare") if number % 2 else ("bare", "ours"):
                rates[name].append(runs[name]())
                print(f"round {number + 1}: {name} {rates[name][-1]:.1f} tokens/s", file=sys.stderr, flush=True)
    finally:
        chat.close()
    ratios = [ours / bare for ours, bare in zip(rates["ours"], rates["bare"], strict=True)]
    return {
        "items": arguments.items,
        "rounds": arguments.rounds,
        "tokens_a_second": {name: round(statistics.median(values), 1) for name, values in rates.items()},
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--items", type=int, default=77)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine-option", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    try:
        print(json.dumps(measure(arguments), indent=1))
    except H2HTalkError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
