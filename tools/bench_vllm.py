"""CPU and tokens a second of `vllm:` beside a bare `LLM.chat`: the same prompts, sampling and engine options.

.venv-vllm/bin/python tools/bench_vllm.py CHECKPOINT [--items 200] [--distinct 77] [--max-tokens 8] [--rounds 5]

Both engines are started once and take turns, the one that begins changing from round to round, so that whatever
else the machine does meets both. While one works the other waits. The prefix cache of each is emptied before
each turn. CPU is that of this process and of all its descendants. A round's ratio is of the two figures of that round;
the result is the median of the rounds' ratios. Prompts are those of `mini` in English, without SAP unless asked; every
answer is computed to `--max-tokens` or its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.local.checkpoints import describe_checkpoint
from h2htalk.chat.protocol import HttpAnswer, Message, Reply, Request, Sampling
from h2htalk.chat.server import exchange
from h2htalk.chat.vllm.engine import URL, VLLMChat, VLLMOptions, serve_arguments
from h2htalk.chat.vllm.supervisor import children
from h2htalk.data.splits import load_split

TICKS = os.sysconf("SC_CLK_TCK")
SERVER_ONLY = ("enable_scale_out", "disable_uvicorn_access_log", "served_model_name")


def prompts(items: int, distinct: int, sap: str) -> list[tuple[Message, ...]]:
    """The first `distinct` conversations of `mini` in English, over and over: `items` in all."""
    split = load_split("mini@1").select("en", (), None)
    prompt_set = PromptSet.load(None)
    principles = Sap.parse(sap)
    made = [
        prompt_set.messages(s, split.personas[s.persona], principles)
        for s in split.scenarios[:distinct]
    ]
    return [made[number % len(made)] for number in range(items)]


def cpu_seconds(pid: int) -> float:
    """CPU of a process and of all its living descendants."""
    own = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11:13]
    return sum(map(int, own)) / TICKS + sum(map(cpu_seconds, children(pid)))


def measured(work: Callable[[], int]) -> dict[str, float]:
    """CPU and wall seconds of `work`, which returns the tokens that were written."""
    cpu = cpu_seconds(os.getpid())
    start = time.perf_counter()
    tokens = work()
    wall = time.perf_counter() - start
    return {"cpu": cpu_seconds(os.getpid()) - cpu, "wall": wall, "tokens": tokens}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    options = dict(pair.split("=", 1) for pair in arguments.engine_option)
    os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # has a route that empties the prefix cache
    chat = VLLMChat(str(arguments.checkpoint), ChatOptions(engine_options=options))
    server = chat._server
    assert server is not None
    from vllm import LLM, SamplingParams

    description = describe_checkpoint("vllm", str(arguments.checkpoint))
    given = serve_arguments(VLLMOptions.parse(options), description, None)
    llm = LLM(**{key: value for key, value in given.items() if key not in SERVER_ONLY})
    conversations = prompts(arguments.items, arguments.distinct, arguments.sap)
    sampling = Sampling(max_tokens=arguments.max_tokens)
    requests = [
        Request(str(number), messages, sampling) for number, messages in enumerate(conversations)
    ]
    turns = [
        [{"role": m.role, "content": m.content} for m in messages] for messages in conversations
    ]
    bare_sampling = SamplingParams(temperature=0, max_tokens=arguments.max_tokens, seed=0)

    async def empty_cache() -> None:
        async with server.connect() as session:
            done = await exchange(session, "POST", f"{URL}/reset_prefix_cache", 60.0)
            assert isinstance(done, HttpAnswer), done
            assert done.status == 200, done

    def run_ours() -> int:
        return sum(
            o.usage.output_tokens or 0 for o in chat.complete(requests) if isinstance(o, Reply)
        )

    def run_bare() -> int:
        return sum(
            len(output.outputs[0].token_ids)
            for output in llm.chat(turns, bare_sampling, use_tqdm=False)
        )

    def run(name: str) -> dict[str, float]:
        if name == "ours":
            asyncio.run(empty_cache())
            return measured(run_ours)
        llm.reset_prefix_cache()
        return measured(run_bare)

    figures: dict[str, list[dict[str, float]]] = {"ours": [], "bare": []}
    try:
        for name in ("bare", "ours"):  # warm both up
            run(name)
        for number in range(arguments.rounds):
            for name in ("ours", "bare") if number % 2 else ("bare", "ours"):
                figures[name].append(run(name))
                shown = ", ".join(f"{key} {value:.1f}" for key, value in figures[name][-1].items())
                print(f"round {number + 1}: {name} {shown}", file=sys.stderr, flush=True)
    finally:
        chat.close()
    result: dict[str, Any] = {"items": arguments.items, "rounds": arguments.rounds}
    for key in ("cpu", "wall"):
        ratios = [
            ours[key] / bare[key]
            for ours, bare in zip(figures["ours"], figures["bare"], strict=True)
        ]
        medians = {
            name: round(statistics.median(run[key] for run in runs), 1)
            for name, runs in figures.items()
        }
        result |= {f"{key}_seconds": medians, f"{key}_ratio": round(statistics.median(ratios), 3)}
        result[f"{key}_ratios"] = [round(value, 3) for value in ratios]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    for name, default in {"items": 200, "distinct": 77, "max-tokens": 8, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sap", default="none")
    parser.add_argument("--engine-option", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments), indent=1))


if __name__ == "__main__":
    main()
