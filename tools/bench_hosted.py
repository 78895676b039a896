"""What paid calls cost this machine: CPU, memory and wall of `openai:` and `anthropic:`, live and as batch jobs.

python tools/bench_hosted.py [--count 4650] [--concurrency 64] [--latency 0]

Each run is the real command line against the tests' provider double in a process of its own, and fails unless its
books come to exactly what the double charged. `CPU ms a call` leaves out what a run of 10 items costs (imports,
the data). Then the call store alone: a call reserved and settled in a file. Prints Markdown. Linux only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from make_synthetic_split import write_split
from measure import Cost, measure, served

from h2htalk.chat.prices import load_prices
from h2htalk.chat.protocol import Answer, Bound, Call, Message, Reply, Request, Sampling
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.data.responses import Usage
from support.doubles.providers import ProviderServer, price_file

MODELS = ("openai:gpt-test", "anthropic:claude-test")
FEW = 10


def serve(latency: float) -> None:
    """Be the double: say the environment that leads here, then, once stdin ends, what was charged."""
    with ProviderServer(latency=latency) as server:
        names = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
        environment = server.environment()
        print(json.dumps({name: environment[name] for name in names}), flush=True)
        sys.stdin.read()
        print(json.dumps({"calls": len(server.charged()), "usd": str(server.bill())}), flush=True)


def run(work: Path, model: str, batch: bool, count: int, options: argparse.Namespace) -> Cost:
    """One run of the command line; raises RuntimeError unless its reserves are the double's."""
    out = work / f"{model.partition(':')[0]}-{'batch' if batch else 'live'}-{count}"
    command = [
        str(Path(sys.executable).with_name("h2htalk")),
        "evaluate",
        model,
        "--split",
        str(work / "split"),
    ]
    command += [
        "--out",
        str(out),
        "--embedder",
        "none",
        "--no-baselines",
        "--prices",
        str(work / "prices.toml"),
    ]
    command += ["--max-tokens", "64", "--concurrency", str(options.concurrency), "--model-sampling"]
    command += (["--batch"] if batch else []) + (
        ["--limit", str(count)] if count < options.count else []
    )
    double = [sys.executable, __file__, "--serve", "--latency", str(options.latency)]
    with served(double) as (environment, bill):
        cost = measure(command, work / f"{out.name}.txt", json.loads(environment))
    totals = json.loads((out / "summary.json").read_text(encoding="utf-8"))["costs"]["generate"]
    if bill["calls"] != count or Decimal(totals["usd_paid"]) != Decimal(bill["usd"]):
        raise RuntimeError(f"{out.name}: the double charged {bill}, the run says {totals}")
    return cost


def store_cost(work: Path, count: int) -> tuple[float, float]:
    """CPU microseconds and bytes of a call that is reserved and settled."""
    path = work / "store" / "calls.jsonl"
    usage = Usage(2000, 20)
    answer = Answer((Reply("", usage=usage, request_id="req_000000"),), usage, "req_000000")
    with CallStore(path) as store:
        prices = load_prices(work / "prices.toml")
        calls = StageCalls(store, "generate", MODELS[0], prices=prices, limit=Decimal(1_000_000))
        start = time.process_time()
        for number in range(count):
            request = Request(f"item-{number:04}", (Message("user", "Hello."),), Sampling())
            calls.settle(calls.reserve(Call((number,), (request,)), Bound(6000, 64)), answer)
        seconds = time.process_time() - start
    return seconds / count * 1e6, path.stat().st_size / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure paid calls against the provider double.")
    parser.add_argument("--count", type=int, default=4650)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each live reply")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.latency)
        return
    print("| run | CPU ms a call | CPU s | of it fixed | wall s | peak RSS MiB | others |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-hosted-") as folder:
        work = Path(folder)
        write_split(work / "split", options.count)
        (work / "prices.toml").write_text(price_file(), encoding="utf-8")
        for model in MODELS:
            for batch in (False, True):
                few = run(work, model, batch, FEW, options)
                cost = run(work, model, batch, options.count, options)
                each = (cost.cpu - few.cpu) / (options.count - FEW) * 1000
                name = f"{model.partition(':')[0]}: {'--batch' if batch else 'live'}"
                figures = f"{cost.cpu:.2f} | {few.cpu:.2f} | {cost.wall:.1f} | {cost.rss:.0f} | {cost.others:.1f}"
                print(f"| {name} | {each:.2f} | {figures} |", flush=True)
        micros, size = store_cost(work, options.count)
    print(f"\ncall store: {micros:.0f} us of CPU and {size:.0f} bytes a call")


if __name__ == "__main__":
    main()
