"""How long `h2htalk release publish` lives after Ctrl-C at random moments of an upload that hangs, and its exit codes.

    python tools/bench_ctrl_c.py --moments 100

The real command line publishes a small release to a double of the Hub on this machine, which answers everything but the
uploads. Half of the moments are drawn from the start of the process to the first upload, half from there to 3 s later.
Moments before the command line begins are counted apart: there Python starts, and ends on SIGINT by itself.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.doubles.hub_double import HubDouble
from support.interrupts import Ending, Moment, interrupt_upload, seconds_to_upload


def interrupt_once(folder: Path, moment: Moment) -> Ending:
    """Send one Ctrl-C in a new folder, to a Hub of its own."""
    folder.mkdir()
    with HubDouble() as hub:
        return interrupt_upload(folder, moment, hub)


def measure_start(folder: Path) -> float:
    """Measure the seconds from the start of a process to its first upload, while others start, too."""
    folder.mkdir()
    with HubDouble() as hub:
        return seconds_to_upload(folder, hub)


def format_endings(name: str, endings: Sequence[Ending]) -> str:
    """Format a row: how many, how long they lived, and the exit codes with their counts."""
    if not endings:
        return f"| {name} | 0 | | | |"
    lived = [ending.lived for ending in endings]
    codes = Counter(ending.code for ending in endings)
    counts = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    median = statistics.median(lived)
    return f"| {name} | {len(endings)} | {median:.2f} s | {max(lived):.2f} s | {counts} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=100, help="How many commands are started.")
    parser.add_argument("--at-once", type=int, default=4, help="How many of them run at a time.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the moments.")
    parser.add_argument("--show", type=float, help="Print what commands said that lived longer.")
    settings = parser.parse_args()
    draw = random.Random(settings.seed)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(settings.at_once) as threads:
        folder = Path(name)
        measured = list(
            threads.map(measure_start, [folder / f"start-{n}" for n in range(settings.at_once)])
        )
        start = statistics.median(measured)
        moments = [Moment.draw(draw, start) for _ in range(settings.moments)]
        folders = [folder / str(number) for number in range(settings.moments)]
        endings = []
        for ending in threads.map(interrupt_once, folders, moments):
            endings.append(ending)
            print(f"{len(endings)}: {ending.lived:.2f} s", file=sys.stderr)
    starting = [ending for ending in endings if not ending.began]
    working = [ending for ending in endings if ending.began and not ending.hung]
    hanging = [ending for ending in endings if ending.began and ending.hung]
    print(f"the first upload hangs {start:.2f} s after the start of the process")
    print("| Ctrl-C came | commands | median | max | exit codes |")
    print("| --- | ---: | ---: | ---: | --- |")
    print(format_endings("before the command line began", starting))
    print(format_endings("before the first upload", working))
    print(format_endings("while uploads hung", hanging))
    for ending in endings:
        unexpected = ending.began and ending.code != 130
        slow = settings.show is not None and ending.lived > settings.show
        if unexpected or slow:
            print(f"\n{ending.moment}: {ending.lived:.2f} s, exit code {ending.code}")
            print(ending.stderr)


if __name__ == "__main__":
    main()
