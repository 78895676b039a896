"""CPU time of `curate run` to `dedup` without a guard, of this version beside another one, in turns.

    git worktree add /tmp/before 259c8a50
    python tools/bench_curate.py /tmp/before DIALOGUES.jsonl --language zh --lines 300

DIALOGUES.jsonl holds a conversation a line (the format `messages`). Each run is a process of its own in a new
workspace, with one worker; the CPU time is user and system time of the process and its children. One run of each
version, which compiles its modules, comes before those that count.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = """
workspace = "workspace"
processes = 1

[[gather.sources]]
name = "made"
path = "raw.jsonl"
format = "messages"
language = "{language}"
licence = "CC0-1.0"
"""


def cpu_seconds(root: Path, spec: Path, place: Path) -> float:
    """Curate into a new workspace with the version at `root`; return the CPU seconds."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTHONPYCACHEPREFIX": str(spec.parent / f"compiled-{root.name}"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [
        sys.executable,
        "-m",
        "h2htalk",
        "curate",
        "run",
        str(spec),
        "--workspace",
        str(place),
    ]
    done = subprocess.run(
        program, cwd=spec.parent, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{root}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("dialogues", type=Path, help="conversations, one a line")
    parser.add_argument("--language", default="en")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    versions = (options.other.resolve(), ROOT)
    times: dict[Path, list[float]] = {root: [] for root in versions}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "curate.toml"
        spec.write_text(SPEC.format(language=options.language), encoding="utf-8")
        with options.dialogues.open(encoding="utf-8") as source:
            (folder / "raw.jsonl").write_text(
                "".join(islice(source, options.lines)), encoding="utf-8"
            )
        for turn in range(options.turns + 1):
            for number, root in enumerate(versions):
                seconds = cpu_seconds(root, spec, folder / f"work-{turn}-{number}")
                if turn:
                    times[root].append(seconds)
    before, now = (statistics.median(times[root]) for root in versions)
    ratios = [new / old for old, new in zip(*times.values(), strict=True)]
    print(
        f"before {before:.2f} CPU s, now {now:.2f} CPU s: {now / before:.3f} times (medians of {options.turns})"
    )
    print(
        f"of each turn: {', '.join(f'{ratio:.2f}' for ratio in ratios)}; median {statistics.median(ratios):.3f}"
    )


if __name__ == "__main__":
    main()
