"""The place where a reference folder is made: commands in this process, fixed ports, fixed random names."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import itertools
import os
import random
import re
import secrets
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from support.command_line import h2htalk_here

PLACE = Path("/tmp/h2htalk-reference")
# Fixed, as signatures hold addresses and fingerprints hold signatures; below the ports that a system gives to outgoing
# connections.
FIRST_PORT = 21710
NOW = 1796000000.0  # what the package reads from a clock: an evening of November 2026
# Seeds and keys that the package draws: the same ones every time, so that figures that depend on them stay equal.
SIZES_OF_SECRETS = (8, 16, 32)
SLEEP = asyncio.sleep


class UnexpectedExitError(Exception):
    """A command ended with another exit code than the part expects."""


@dataclass(slots=True)
class Workplace:
    """The folder in which the parts work. Paths in commands are relative to it, so that tables wrap alike."""

    folder: Path
    part: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    def make(self, part: Part) -> None:
        """Make a part. Clock, seeds and names begin anew, so that a part made alone is the same."""
        self.part = part.name
        with fixed_secrets(), package_clock():
            part.make(self)

    def port(self, number: int) -> int:
        """The port of a server by its number."""
        return FIRST_PORT + number

    def h2htalk(self, *words: object, code: int = 0) -> str:
        """Run a command, store what it prints under `commands/`, and return its output.

        Words are split at spaces, so that options can be written as on a command line.
        Raises UnexpectedExitError where its exit code is not `code`.
        """
        line = " ".join(str(word) for word in words)
        completed = h2htalk_here(*line.split())
        if completed.returncode != code:
            text = completed.stdout + completed.stderr
            raise UnexpectedExitError(f"h2htalk {line}: exit code {completed.returncode}\n{text}")
        number = self.counts.get(self.part, 0) + 1
        self.counts[self.part] = number
        path = self.folder / "commands" / f"{self.part}-{number:02}.txt"
        path.parent.mkdir(exist_ok=True)
        sections = [
            f"$ h2htalk {line}",
            f"exit code {completed.returncode}",
            f"--- output\n{completed.stdout}",
            f"--- messages\n{completed.stderr}",
        ]
        path.write_text("\n".join(sections), encoding="utf-8")
        return completed.stdout

    def write(self, name: str, text: str) -> Path:
        """Write a file that commands read; return its path, relative to the folder."""
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@dataclass(frozen=True, slots=True)
class Part:
    """Commands that belong together; `needs` names the parts whose folders they read."""

    name: str
    make: Callable[[Workplace], None]
    needs: tuple[str, ...] = ()


@contextmanager
def fixed_secrets() -> Iterator[None]:
    """Replace random seeds and keys by fixed ones, and names of temporary files by numbered ones."""
    numbers = itertools.count(1)

    def token_bytes(size: int = 32) -> bytes:
        seed = "a fixed secret" if size in SIZES_OF_SECRETS else f"name {next(numbers)}"
        return hashlib.shake_256(seed.encode()).digest(size)

    def token_hex(size: int = 32) -> str:
        return token_bytes(size).hex()

    with ExitStack() as stack:
        stack.enter_context(patch.object(secrets, "token_bytes", token_bytes))
        stack.enter_context(patch.object(secrets, "token_hex", token_hex))
        random.seed(0)
        yield


@dataclass(slots=True)
class PackageClock:
    """The time that the package reads: it moves when the package sleeps, and at no other moment.

    So durations of calls are zero, and no mask has to hide a figure; `spread_seconds` gives one run others. Libraries
    read the real clocks: their time limits go on.
    """

    now: float = NOW

    def stand_in(self, clock: Callable[..., float]) -> Callable[..., float]:
        """A function that reads this clock for the package, and the real one for everybody else."""

        def read(*loop: object) -> float:
            return self.now if _called_by_package() else clock(*loop)

        return read

    def sleep(self, delay: float, result: object = None) -> Coroutine[Any, Any, object]:
        """Move the clock at once where the package sleeps; else sleep."""
        if _called_by_package():
            self.now += delay
            return SLEEP(0, result)
        return SLEEP(delay, result)


def _called_by_package() -> bool:
    """Whether the caller of the function that calls this one is a module of the package."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return bool(name.partition(".")[0] == "h2htalk")


@contextmanager
def package_clock() -> Iterator[None]:
    clock = PackageClock()
    clocks = [(time, "time"), (time, "monotonic"), (time, "perf_counter")]
    clocks.append((asyncio.BaseEventLoop, "time"))
    with ExitStack() as stack:
        for owner, name in clocks:
            stand_in = clock.stand_in(getattr(owner, name))
            stack.enter_context(patch.object(owner, name, stand_in))
        stack.enter_context(patch.object(asyncio, "sleep", clock.sleep))
        yield


def spread_seconds(run: Path) -> None:
    """Give the stored calls of a run durations that follow from their items, for tables of latencies."""
    path = run / "calls.jsonl"
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        seconds = f'"seconds":{zlib.crc32(line.encode()) % 9000 / 1000}'
        lines.append(re.sub(r'"seconds":[0-9.e-]+', seconds, line) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


@contextmanager
def open_workplace() -> Iterator[Workplace]:
    """Yield an empty folder as the current folder: the same path every time, as paths and ports are hashed and wrapped.

    So only one reference folder is made on a machine at a time; the others wait.
    """
    with open(f"{PLACE}.lock", "w", encoding="utf-8") as lock:
        print("waiting until no other reference folder is being made", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _emptied(PLACE), _environment(PLACE):
            yield Workplace(PLACE)


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    cache = Path(f"{folder}.cache")
    before = Path.cwd()
    for path in (folder, cache):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        for path in (folder, cache):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Terminals of 80 columns, a cache that is empty at first, and keys of no account."""
    values = {
        "COLUMNS": "80",
        "H2HTALK_CACHE": f"{folder}.cache",
        "OPENAI_API_KEY": "made-up-key-1234",
        "NO_COLOR": "1",
    }
    with patch.dict(os.environ, values):
        yield
