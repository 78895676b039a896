"""Ray beside local processes: seconds, CPU and peak memory (PSS) of all processes, for dedup of short dialogues.

python tools/bench_ray.py FOLDER [--count 100000] [--executors start local ray]; `start` is a cluster alone
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from hashlib import sha256
from pathlib import Path

from bench_dedup import run_dedup, short_dialogues, write_dialogues

from h2htalk.curation.workspace import Workspace
from h2htalk.scale.ray_cluster import connect


def family(root: int) -> dict[int, int]:
    stats = dict[int, list[int]]()
    found = {root}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats[int(path.parent.name)] = [
                int(word) for word in path.read_text().rpartition(")")[2].split()[1:]
            ]
    while more := {pid for pid, fields in stats.items() if fields[0] in found} - found:
        found |= more
    return {pid: stats[pid][10] + stats[pid][11] for pid in found & stats.keys()}


def measure(command: list[str]) -> None:
    begun = time.monotonic()
    ticks = dict[int, int]()
    peak = 0
    run = subprocess.Popen(command)
    while run.poll() is None:
        ticks |= (now := family(run.pid))
        with suppress(OSError):
            texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in now]
            peak = max(peak, sum(int(text.split("\nPss:")[1].split()[0]) for text in texts if text))
        time.sleep(0.25)
    seconds = time.monotonic() - begun
    cpu = sum(ticks.values()) / os.sysconf("SC_CLK_TCK")
    print(
        f"{command[-1]}: {seconds:.1f} s, {cpu:.1f} CPU s, {peak >> 10:,} MiB at most",
        end=", ",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=lambda name: Workspace(Path(name)), metavar="FOLDER")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--executors", nargs="+", default=["start", "local", "ray"])
    parser.add_argument("--run", help="what the measured process runs")
    options = parser.parse_args()
    if options.run:
        with nullcontext() if options.run == "local" else connect():
            sys.exit(options.run != "start" and not run_dedup(options.workspace).finished)
    if not options.workspace.stage("safety").finished:
        write_dialogues(short_dialogues(options.count), options.workspace, part=500)
    for name in options.executors:
        shutil.rmtree(dedup := options.workspace.stage("dedup").path, ignore_errors=True)
        measure([sys.executable, *sys.argv, "--run", name])
        content = b"".join(path.read_bytes() for path in sorted(dedup.rglob("*.json*")))
        print(f"SHA-256 of all files {sha256(content).hexdigest()[:12]}", flush=True)
