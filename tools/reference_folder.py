"""Make a folder of everything that the evaluation half writes, and compare two such folders.

    python tools/reference_folder.py make FOLDER [--only PART ...]
    python tools/reference_folder.py compare FOLDER FOLDER

`make` runs the commands of the package that Python imports, with scripted models and servers on this machine: runs,
judgements, studies, comparisons, gates, exports and sites. What a command prints is stored under `commands/`. `compare`
masks what two equal commits write differently (tools/reference/masks.toml), prints each difference, and ends with exit
code 1 where there is one. A change that must not alter behaviour compares the folder of its commit with that of its
parent.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

if TYPE_CHECKING:
    from reference.workplace import Part


def list_parts() -> list[Part]:
    """The parts in the order in which they are made."""
    # Imported here, as `compare` needs neither the package nor the doubles.
    from reference import judging_parts, result_parts, run_parts, site_parts, study_parts

    return [
        *run_parts.PARTS,
        *judging_parts.PARTS,
        *result_parts.PARTS,
        *study_parts.PARTS,
        *site_parts.PARTS,
    ]


def choose_parts(all_parts: Iterable[Part], names: Iterable[str]) -> list[Part]:
    """The parts with these names and those that they need; all where there are no names."""
    by_name = {part.name: part for part in all_parts}
    waiting = list(names) or list(by_name)
    chosen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in by_name:
            sys.exit(f"unknown part {name!r}; choose from {', '.join(by_name)}")
        chosen.add(name)
        waiting += by_name[name].needs
    return [part for part in by_name.values() if part.name in chosen]


def cpu_seconds() -> float:
    """CPU seconds of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def make(folder: Path, names: Iterable[str]) -> None:
    """Make a reference folder; print a line a part with its CPU and wall seconds."""
    from reference.workplace import open_workplace

    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty: name a new folder")
    chosen = choose_parts(list_parts(), names)
    with open_workplace() as work:
        for part in chosen:
            cpu_before = cpu_seconds()
            started = time.monotonic()
            work.make(part)
            seconds = time.monotonic() - started
            print(
                f"{part.name:12} {cpu_seconds() - cpu_before:6.1f} s CPU {seconds:6.1f} s",
                flush=True,
            )
        shutil.copytree(work.folder, folder, dirs_exist_ok=True, symlinks=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="make a reference folder")
    making.add_argument("folder", type=Path)
    making.add_argument("--only", action="append", default=[], metavar="PART")
    comparing = commands.add_parser("compare", help="compare two reference folders")
    comparing.add_argument("folders", type=Path, nargs=2)
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder.absolute(), options.only)
        return 0
    from reference.comparison import compare_folders

    differences = compare_folders(*options.folders)
    for difference in differences:
        print(difference.describe())
    print(f"{len(differences)} differences" if differences else "equal")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
