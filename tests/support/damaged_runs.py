"""Commands over damaged folders, each in a child of this process, with an end to its time and its memory."""

from __future__ import annotations

import os
import random
import re
import resource
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.cli import main
from support.damage import copy_folder, damage
from support.kills import begin_child

LONGEST = 60  # seconds of a command on a folder of some kilobytes
MOST_MEMORY = 6 << 30
COMMANDS = 3  # of a damage: more damages find more than more commands
CODES = frozenset({0, 2, 3, 4})  # what the command line documents; 1 is a bug
Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of folder: what `make` writes, `commands` read.

    `ROOT` in a command is the folder's copy. `repair` makes hashes fit after the damage.
    """

    name: str
    make: Callable[[Path], object]
    commands: Sequence[str]
    choose: Callable[[Path], bool] = lambda path: True
    repair: Callable[[Path], object] = lambda folder: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: its exit code, -1 after a traceback, -2 where it was stopped."""

    code: int
    output: str

    @property
    def cause(self) -> str:
        """What is wrong, with the place in the package that raised it; empty where nothing is."""
        if self.code == -2:
            return "endless"
        if self.code == -1:
            places = re.findall(
                r'File ".*?(h2htalk/[\w/]+\.py)", line (\d+), in (\w+)', self.output
            )
            last = self.output.strip().rpartition("\n")[2]
            place = ":".join(places[-1]) if places else "?"
            return f"{place} {last[:120]}"
        if self.code not in CODES:
            return f"exit code {self.code}"
        if self.code and not self.output.strip():
            return "no word"
        return ""


def run_command(words: Words, folder: Path) -> Outcome:
    """Run a command in a child; its output goes to a file in `folder`."""
    output = folder / "output.txt"
    child = os.fork()
    if not child:
        _run_and_exit(words, output)
    _, status = os.waitpid(child, 0)
    text = output.read_text(encoding="utf-8", errors="replace")
    if os.WIFSIGNALED(status):
        return Outcome(-2, f"{text}\nended by signal {os.WTERMSIG(status)}")
    code = os.WEXITSTATUS(status)
    return Outcome(-1 if code == 111 else code, text)


def _run_and_exit(words: Words, output: Path) -> None:
    code = 111
    try:
        begin_child(LONGEST)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        sys.argv = ["h2htalk", *words]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001  # the parent reads its traceback
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def words_of(command: str, root: Path) -> list[str]:
    return [word.replace("ROOT", str(root)) for word in command.split()]


@dataclass(frozen=True, slots=True)
class Finding:
    """A command that did not end as documented."""

    target: str
    seed: int
    damage: str
    command: str
    outcome: Outcome


def findings(target: Target, whole: Path, work: Path, seeds: Iterable[int]) -> Iterator[Finding]:
    """Damage a copy of a whole folder once a seed, run some of the commands over it, and yield what is wrong."""
    for seed in seeds:
        draw = random.Random(f"{target.name} {seed}")
        root = copy_folder(whole, work / "damaged")
        path, what = damage(root, draw, target.choose)
        target.repair(root)
        described = f"{path.relative_to(root)}: {what}"
        for command in draw.sample(list(target.commands), min(COMMANDS, len(target.commands))):
            # Commands that write start from the same damage.
            copy = copy_folder(root, work / "copy")
            outcome = run_command(words_of(command, copy), work)
            if outcome.cause:
                yield Finding(target.name, seed, described, command, outcome)
