"""h2htalk beside lm-eval and Inspect on the same prompts, against a loopback server: CPU, wall, memory.

python tools/bench_peers.py [--rounds 3] [--count 4650] [--peers .venv-peers/bin/python] [--json FILE]

The runners take turns, so that whatever else the machine does meets all of them; each run has a server process of
its own. Runs of 10 items come first: they fill every runner's caches, then give its fixed cost. CPU seconds are
user + system of the process and the children it waited for; read the wall seconds with the column `others` beside
them. Prints Markdown. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from make_synthetic_split import write_split
from measure import Cost, measure
from report import FEW, Bench, markdown, versions
from runners import Runner, copy_tasks, runners, write_prompts

LATENCY = 0.05  # seconds, of the runs for the request span
HELP_ROUNDS = 5


class Rounds:
    """Runs runners in turn and keeps what each run cost."""

    def __init__(self, work: Path, count: int) -> None:
        self.work, self.count = work, count
        self.number = 0

    def run(self, runner: Runner, latency: float, limit: int | None = None) -> tuple[Cost, str]:
        """One run: its cost and its output. Raises RuntimeError unless the server was asked once an item."""
        self.number += 1
        out = self.work / f"out-{self.number}"
        log = self.work / f"log-{self.number}.txt"
        cost = measure(runner.command(out, limit), log, runner.environment, latency)
        print(f"  {runner.name:18} {cost.cpu:7.2f} CPU s {cost.wall:7.2f} s wall", file=sys.stderr)
        if cost.requests != (limit or self.count):
            raise RuntimeError(
                f"{runner.name}: {cost.requests} requests, {limit or self.count} expected"
            )
        return cost, log.read_text(encoding="utf-8")

    def alternate(
        self, runners: Sequence[Runner], rounds: int, latency: float, limit: int | None = None
    ) -> dict[str, list[Cost]]:
        """`rounds` times each runner in turn."""
        costs: dict[str, list[Cost]] = {runner.name: [] for runner in runners}
        for number in range(rounds):
            print(
                f"round {number + 1} of {rounds}, {limit or self.count:,} items, {latency:g} s",
                file=sys.stderr,
            )
            for runner in runners:
                costs[runner.name].append(self.run(runner, latency, limit)[0])
        return costs


def bench(python: Path, peers: Path, work: Path, count: int, rounds: int) -> Bench:
    """Every measurement, medians left to the report.

    Args:
        python: the interpreter of the environment that h2htalk is installed in.
        peers: the interpreter of the peers' environment.
        work: an empty folder.
        count: scenarios.
        rounds: runs of each runner.
    """
    write_split(work / "split", count)
    write_prompts(python, work / "split", work / "prompts.jsonl")
    copy_tasks(work)
    os.chdir(work)
    turns = Rounds(work, count)
    floor, ours, parts, *theirs = runners(python, peers, work).values()
    turns.alternate([ours, *theirs], 1, 0.0, FEW)  # fills every runner's caches
    fixed = turns.alternate([ours, *theirs], rounds, 0.0, FEW)
    busy = turns.alternate([floor, ours, *theirs], rounds, 0.0)
    timed = [json.loads(turns.run(parts, 0.0)[1].splitlines()[-1]) for _ in range(rounds)]
    slow = turns.alternate([floor, ours, theirs[0]], rounds, LATENCY)
    help_command = [str(python.with_name("h2htalk")), "--help"]
    helps = [measure(help_command, work / "help.txt", {}).cpu for _ in range(HELP_ROUNDS)]
    return Bench(count, LATENCY, fixed, busy, timed, slow, statistics.median(helps))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure h2htalk beside lm-eval and Inspect.")
    parser.add_argument("--peers", type=Path, default=Path(".venv-peers/bin/python"))
    parser.add_argument("--count", type=int, default=4650)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, help="keep logs and outputs in this new folder")
    parser.add_argument("--json", type=Path, help="write every single cost here")
    options = parser.parse_args()
    python = Path(sys.executable)
    peers = options.peers.absolute()
    if not peers.exists():
        parser.error(
            f"{options.peers}: no such file; `make bench-peers` sets the peers' environment up"
        )
    json_path = options.json.absolute() if options.json else None
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        work = options.work.absolute() if options.work else Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        result = bench(python, peers, work, options.count, options.rounds)
        machine = (
            f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
        )
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        print(markdown(result, versions(python, peers), f"{when}, {machine}"))
        os.chdir("/")
    if json_path:
        json_path.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
