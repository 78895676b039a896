"""What judging costs this machine: CPU and memory of `judge run` beside the bare SDK, against a server on loopback.

    python tools/bench_judge.py [--items 4650] [--samples 5] [--concurrency 64]

Judges ITEMS x SAMPLES scripted answers (`--scope all`) through `openai:`; the server answers at once.
Then the SDK alone sends requests of the same size. Prints Markdown. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from make_synthetic_split import write_split
from measure import measure, served

from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from support.doubles.loopback import LoopbackServer
from support.doubles.providers import fill

BARE_CALLS = 2000


def answer(asked: dict[str, Any], times: int) -> str:
    """A reply that follows the schema of the request."""
    schema = asked["response_format"]["json_schema"]["schema"]
    return json.dumps(fill(schema, schema))


def serve() -> None:
    with LoopbackServer(reply=answer) as running:
        print(running.url, flush=True)
        sys.stdin.read()


def bare_sdk(url: str, run: Path, concurrency: int) -> float:
    """CPU milliseconds a call of the SDK alone, with the first stored judgements' prompts."""
    import openai

    from h2htalk.benchmark.judge.judge_run import JudgeCalls, judged_answers
    from h2htalk.benchmark.judge.judgements import read_judge
    from h2htalk.benchmark.judge.rubric import load_prompts
    from h2htalk.benchmark.run import load_run
    from h2htalk.benchmark.settings import JudgeSpec
    from h2htalk.chat.engines import parse_model

    spec = JudgeSpec(run=str(run), judges=("openai:gpt-4o",), scope="all")
    judge = read_judge(run, next((run / "judgements").glob("?" * 16 + ".json")).stem)
    calls = JudgeCalls(judge, spec, "openai:gpt-4o", load_run(run), load_prompts())
    answers = judged_answers(calls.run, "all")[:BARE_CALLS]
    engine, name = parse_model("openai:gpt-4o")
    wire = engine.open_wire(name)
    bodies = [wire.body(call, False) for call in wire.calls(list(calls.requests(answers, b"x")))]

    async def send_all() -> None:
        gate = asyncio.Semaphore(concurrency)
        async with openai.AsyncOpenAI(api_key="sk-none", base_url=url, max_retries=0) as client:

            async def send(body: Any) -> None:
                async with gate:
                    await client.chat.completions.create(**body)

            await asyncio.gather(*map(send, bodies))

    start = time.process_time()
    asyncio.run(send_all())
    return (time.process_time() - start) / len(bodies) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure judging against a server on loopback.")
    parser.add_argument("--items", type=int, default=4650)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    command = [sys.executable, "-m", "h2htalk"]
    with (
        tempfile.TemporaryDirectory(prefix="bench-judge-") as folder,
        served([sys.executable, __file__, "--serve"]) as (url, _),
    ):
        work = Path(folder)
        write_split(work / "split", options.items)
        scenarios = load_split(str(work / "split")).scenarios
        lines = [(s.id, k, f"{s.reference} {k}") for s in scenarios for k in range(options.samples)]
        write_jsonl(
            work / "answers.jsonl", ({"id": i, "sample": k, "text": text} for i, k, text in lines)
        )
        run = work / "run"
        environment = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-none-at-all"}
        words = [
            "evaluate",
            f"scripted:{work / 'answers.jsonl'}",
            "--split",
            str(work / "split"),
            "--out",
            str(run),
        ]
        words += [
            "--samples",
            str(options.samples),
            "--temperature",
            "1",
            "--embedder",
            "none",
            "--no-baselines",
        ]
        subprocess.run([*command, *words], check=True, capture_output=True)
        judge = [*command, "judge", "run", str(run), "--judge", "openai:gpt-4o", "--scope", "all"]
        cost = measure(
            [*judge, "--concurrency", str(options.concurrency)], work / "judge.txt", environment
        )
        again = measure(
            judge, work / "again.txt", environment
        )  # nothing is missing: reading, scoring, tables
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))["judging"]
        if summary["scored"] != len(lines):
            raise RuntimeError(
                f"{summary['scored']} of {len(lines)} answers are judged: {summary['unscored']}"
            )
        bare = bare_sdk(url, run, options.concurrency)
    each = cost.cpu / len(lines) * 1000
    print(
        "| judgements | CPU ms a call | SDK alone | beyond it | CPU s | peak RSS MiB | again: CPU s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    figures = f"{each:.2f} | {bare:.2f} | {each - bare:.2f} | {cost.cpu:.1f} | {cost.rss:.0f} | {again.cpu:.1f}"
    print(f"| {len(lines):,} | {figures} |")


if __name__ == "__main__":
    main()
