"""Run a suite on Slurm: a task of an array is one shard of one run, which loads its model once.

    OUT/launch/suite.toml            a copy of the suite, which all jobs read
    OUT/launch/tasks.txt             a line a task: run and shard; its index in arrays is the number of the line, from 0
    OUT/launch/task.sh, merge.sh     the batch scripts; what tasks need of the site is on the command line of sbatch
    OUT/launch/jobs.jsonl, logs/     the jobs that were submitted, and what they print

Which shards are finished is read from their files. Slurm is asked only for what it still has to do, so that no task is
submitted twice. A merge starts when all tasks have ended, in whatever way, and merges the runs that are whole.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from itertools import groupby
from pathlib import Path

from jinja2 import StrictUndefined, Template

from h2htalk.data.files import json_line, reading, write_text, writing
from h2htalk.errors import ConfigError, IncompleteError, counted
from h2htalk.scale.suite import Say, SuiteRun, read_suite, runs_of
from h2htalk.text.tables import Table

ARRAY_SIZE = 1000  # the highest index of an array where a site left Slurm's MaxArraySize as it is
SCRIPT = Path(__file__).with_name("task.sh.j2")


class Launch:
    """The jobs of a suite, known by their name: those submitted by hand as well. Raises as `read_suite`."""

    def __init__(self, path: Path) -> None:
        self.path, self.suite = path, read_suite(path)
        self.runs, self.folder = runs_of(self.suite), Path(self.suite.out).absolute() / "launch"
        self.tasks = [(run, number) for run in self.runs for number in range(1, run.shards + 1)]
        self.name = f"h2htalk-{hashlib.sha256(str(self.folder).encode()).hexdigest()[:10]}"

    def lines(self, tasks: Path) -> list[str]:
        """The lines of `tasks.txt`. Raises ConfigError where the indices of earlier jobs would now mean other tasks."""
        lines = [f"{run.name}\t{k}/{run.shards}\n" for run, k in self.tasks]
        with reading(tasks):
            earlier = tasks.read_text(encoding="utf-8").splitlines(keepends=True) if tasks.exists() else []
        if lines[: len(earlier)] != earlier:
            advice = f"put new runs last, or `h2htalk launch stop {self.path}` and remove the folder"
            raise ConfigError(f"{self.folder}: was made for other runs or shards: {advice}")
        return lines

    def write(self) -> None:
        """Write the scripts. Raises as `lines`."""
        lines = self.lines(tasks := self.folder / "tasks.txt")
        with reading(self.path):
            suite = self.path.read_text(encoding="utf-8")
        paths = {"tasks": tasks, "suite": self.folder / "suite.toml", "folder": Path.cwd()}
        values = {name: shlex.quote(str(path)) for name, path in paths.items()}
        values |= {"setup": self.suite.slurm.setup, "command": self.suite.slurm.command}
        script = Template(SCRIPT.read_text(encoding="utf-8"), trim_blocks=True, undefined=StrictUndefined)
        for name in ("task", "merge"):
            write_text(self.folder / f"{name}.sh", script.render(values, merges=name == "merge") + "\n")
        write_text(paths["suite"], suite)
        write_text(tasks, lines)
        with writing(self.folder):
            (self.folder / "logs").mkdir(exist_ok=True)

    def missing(self) -> list[int]:
        """The indices of the tasks whose shard is not finished."""
        lacking = {run.name: run.missing()[0] for run in self.runs}
        return [index for index, (run, number) in enumerate(self.tasks) if number in lacking[run.name]]

    def queued(self) -> tuple[dict[int, str], list[str]]:
        """Ask Slurm for what has not ended: indices of tasks, with the jobs that hold them, and jobs that merge."""
        text = _slurm("squeue", "--me", "--noheader", "--array", "--format=%F %K %j")
        found = re.findall(rf"^(\d+) (\S+) {self.name}-(\w+)\s*$", text, re.MULTILINE)
        tasks = {int(index) + int(purpose): job for job, index, purpose in found if purpose != "merge"}
        return tasks, [job for job, _, purpose in found if purpose == "merge"]

    def arrays(self, indices: Iterable[int]) -> list[list[str]]:
        """The commands that submit tasks: an array for those that need the same, cut at the site's limit."""
        slurm, size = self.suite.slurm, self.suite.slurm.array_limit or _site_array_size()
        groups = defaultdict[tuple[int, tuple[str, ...]], list[int]](list)
        for index in indices:
            run = self.tasks[index][0]
            words = shlex.split(slurm.gpus.replace("{gpus}", str(run.gpus))) if run.gpus else []
            words.append("--no-requeue" if run.paid else "--requeue")  # what is paid is not asked again without a look
            groups[index // size * size, tuple(words)].append(index % size)
        commands = []
        for (offset, needs), own in groups.items():
            first = [f"--array={array_expression(own)}" + (f"%{slurm.tasks_at_once}" if slurm.tasks_at_once else "")]
            first += [f"--export=ALL,H2HTALK_OFFSET={offset}"] if offset else []
            commands.append(self._sbatch("task.sh", first, needs, str(offset), "%A_%a"))
        return commands

    def merge(self, after: Sequence[str]) -> list[str]:
        """The command that submits the merge, after jobs; two merges of a suite never run at once."""
        # `afterok` would wait for ever where a task failed, also once it was submitted again.
        when = f"afterany:{':'.join(after)},singleton" if after else "singleton"
        return self._sbatch("merge.sh", [f"--dependency={when}"], self.suite.slurm.merge, "merge", "%j")

    def _sbatch(self, script: str, first: Sequence[str], last: Sequence[str], purpose: str, log: str) -> list[str]:
        slurm, logs = self.suite.slurm, str(self.folder / "logs").replace("%", "%%")
        site = {"partition": slurm.partition, "account": slurm.account, "qos": slurm.qos, "time": slurm.time}
        site |= {"mem": slurm.memory, "cpus-per-task": str(slurm.cpus)}
        options = [*first, *(f"--{name}={value}" for name, value in site.items() if value), *slurm.options, *last]
        names = [f"--job-name={self.name}-{purpose}", f"--output={logs}/{log}.out"]
        return ["sbatch", *options, *names, str(self.folder / script)]

    def submit(self, command: Sequence[str]) -> str:
        """Submit a job and record it; returns its id."""
        job = _slurm(command[0], "--parsable", *command[1:]).strip().partition(";")[0]
        with writing(self.folder / "jobs.jsonl"), (self.folder / "jobs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json_line({"job": job, "purpose": Path(command[-1]).stem, "command": list(command)}))
        return job


def launch_slurm(path: Path, submit: bool, say: Say) -> int:
    """Write the jobs of a suite, and submit or print those of shards that are not finished; returns the exit code."""
    launch, queued, merges = Launch(path), dict[int, str](), list[str]()
    launch.write()
    with nullcontext() if submit else suppress(ConfigError):
        queued, merges = launch.queued()
    missing = launch.missing()
    busy = f", {number:,} queued or running already" if (number := len(queued.keys() & missing)) else ""
    say(f"{'' if submit else '# '}{counted(len(missing), 'shard')} missing{busy}")
    jobs: list[str] = []
    for command in launch.arrays(index for index in missing if index not in queued):
        jobs.append(launch.submit(command) if submit else f"$job{len(jobs) + 1}")
        text = shlex.join(command[1:])
        say(f"job {jobs[-1]}: sbatch {text}" if submit else f"{jobs[-1][1:]}=$(sbatch --parsable {text})")
    if jobs or not (merges or all(map(_merged, launch.runs))):
        words = launch.merge([*dict.fromkeys(queued.values()), *jobs])
        job = f"job {launch.submit(words)}: " if submit else ""
        say(job + " ".join([words[0], words[1], shlex.join(words[2:])]))
    return 0


def launch_status(path: Path, say: Say) -> int:
    """Show what is finished, and how to submit what is missing; returns the exit code, 3 where a run is not merged."""
    launch = Launch(path)
    states = {run.name: run.missing() for run in launch.runs}
    rows = []
    for run in launch.runs:
        lacking, failed = map(len, states[run.name])
        rows.append((run.name, f"{run.shards - lacking} of {run.shards}", failed, lacking, _merged(run)))
    say(Table("", ("run", "shards finished", "with failed calls", "missing", "merged"), rows).to_terminal())
    missing = [index for index, (run, number) in enumerate(launch.tasks) if number in states[run.name][0]]
    if missing and (launch.folder / "task.sh").is_file():
        launch.lines(launch.folder / "tasks.txt")
        say("\n".join(["missing, or still in squeue:", *map(shlex.join, launch.arrays(missing))]))
    return 0 if not missing and all(map(_merged, launch.runs)) else IncompleteError.exit_code


def launch_stop(path: Path, say: Say) -> int:
    """Cancel all jobs of a suite, merges first: they would start once what they wait for is cancelled."""
    queued, merges = Launch(path).queued()
    for what, jobs in (("merge", merges), ("array", [*dict.fromkeys(queued.values())])):
        if jobs:
            _slurm("scancel", "--quiet", *jobs)  # one that has just ended is no error
        say(f"cancelled {counted(len(jobs), what)} {' '.join(jobs)}".rstrip())
    return 0


def array_expression(indices: Sequence[int]) -> str:
    """Format ascending indices as `--array` takes them: `0-3,5`."""
    ranges = [[i for _, i in own] for _, own in groupby(enumerate(indices), lambda one: one[1] - one[0])]
    return ",".join(f"{own[0]}-{own[-1]}" if len(own) > 1 else str(own[0]) for own in ranges)


def _merged(run: SuiteRun) -> bool:
    return all((run.spec.out_path / name).is_file() for name in ("run.json", "summary.json"))


def _site_array_size() -> int:
    with suppress(ConfigError):  # Slurm is not here, or does not answer
        if found := re.search(r"^MaxArraySize\s*=\s*(\d+)", _slurm("scontrol", "show", "config"), re.MULTILINE):
            return max(int(found[1]) - 1, 1)
    return ARRAY_SIZE


def _slurm(*words: str) -> str:
    """Run a command of Slurm, and return what it prints. Raises ConfigError with what it says."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        advice = "submit from a machine that has it (Debian: slurm-client); without --submit the commands are printed"
        raise ConfigError(f"{words[0]} is not installed here: {advice}") from error
    if done.returncode:
        raise ConfigError(f"{words[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
