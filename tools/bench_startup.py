"""CPU time of commands of this version beside another one, in turns: what a user waits for.

    git worktree add /tmp/before 8d7dc9cc
    python tools/bench_startup.py /tmp/before

Each command runs in a process of its own, first with the other version, then with this one; the CPU time is user and
system time of the process and its children. Python's compiled modules are written to a folder of their own before the
first measured turn. The runs are baselines on `mini`, made by the version that reads them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINES = ("constant", "copy-last-turn", "random-reference")
COMMANDS = (
    "--version",
    "--help",
    "evaluate --help",
    "curate --help",
    "show constant",
    "compare constant copy-last-turn",
    "leaderboard constant copy-last-turn random-reference",
    "gate constant --reference-run copy-last-turn",
    "site constant copy-last-turn random-reference --out site",
    "round status round",
)


class Version:
    """A checkout of the package, and a folder with its runs."""

    def __init__(self, root: Path, place: Path) -> None:
        self.place = place
        place.mkdir()
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "PYTHONPYCACHEPREFIX": str(place / "compiled"),
            "H2HTALK_DATA": "",
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(self, command: str) -> float:
        """Run a command; return its CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        program = [sys.executable, "-m", "h2htalk", *command.split()]
        done = subprocess.run(
            program,
            cwd=self.place,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 3, 4):  # an incomplete run, a gate that did not pass
            raise SystemExit(
                f"h2htalk {command}: exit code {done.returncode}\n{done.stderr[-2000:]}"
            )
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def prepare(self) -> None:
        """Make the runs and the round that the commands read."""
        for name in BASELINES:
            self.run(f"evaluate baseline:{name} --split mini --embedder none --out {name}")
        annotators = "".join(f"annotator-{number},en zh,yes\n" for number in range(1, 26))
        (self.place / "annotators.csv").write_text(
            f"name,languages,crisis\n{annotators}", encoding="utf-8"
        )
        self.run("round open crowd mini@1 --overlap 1 --annotators annotators.csv --out round")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="A checkout of the version to compare with.")
    parser.add_argument("--turns", type=int, default=7, help="How often each command runs.")
    parser.add_argument("--command", action="append", help="Only commands that begin like this.")
    asked = parser.parse_args()
    commands = [text for text in COMMANDS if text.startswith(tuple(asked.command or ("",)))]
    with tempfile.TemporaryDirectory() as folder:
        before = Version(asked.other.resolve(), Path(folder) / "before")
        now = Version(ROOT, Path(folder) / "now")
        before.prepare()
        now.prepare()
        print("| command | before | now | ratio |\n| --- | ---: | ---: | ---: |")
        for command in commands:
            times: dict[Version, list[float]] = {before: [], now: []}
            for turn in range(asked.turns + 1):
                for version in (before, now):
                    seconds = version.run(command)
                    if turn:  # the first one compiles modules
                        times[version].append(seconds)
            old = statistics.median(times[before])
            new = statistics.median(times[now])
            print(f"| `{command}` | {old:.2f} s | {new:.2f} s | {new / old:.2f} |", flush=True)


if __name__ == "__main__":
    main()
