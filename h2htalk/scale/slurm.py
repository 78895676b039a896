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
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path

from jinja2 import StrictUndefined, Template

from h2htalk.data.files import json_line, reading, write_text, writing
from h2htalk.errors import ConfigError, IncompleteError, counted, quoted, shorten
from h2htalk.scale.suite import Say, SuiteRun, read_suite, runs_of
from h2htalk.text.tables import Table

ARRAY_SIZE = 1000  # the highest index of an array where a site left Slurm's MaxArraySize as it is
LONGEST_ANSWER = 300  # seconds that a command of Slurm may take
SCRIPT = Path(__file__).with_name("task.sh.j2")


class Launch:
    """The jobs of a suite, known by their name: those submitted by hand as well. Raises as `read_suite`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.suite = read_suite(path)
        self.runs = runs_of(self.suite)
        self.folder = Path(self.suite.out).absolute() / "launch"
        self.tasks: list[tuple[SuiteRun, int]] = []
        for run in self.runs:
            self.tasks += product([run], range(1, run.shards + 1))
        self.name = f"h2htalk-{hashlib.sha256(str(self.folder).encode()).hexdigest()[:10]}"

    def lines(self, tasks: Path) -> list[str]:
        """The lines of `tasks.txt`. Raises ConfigError where the indices of earlier jobs would now mean other tasks."""
        lines = [f"{run.name}\t{number}/{run.shards}\n" for run, number in self.tasks]
        earlier = []
        with reading(tasks):
            if tasks.exists():
                earlier = tasks.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[: len(earlier)] != earlier:
            raise ConfigError(
                f"{self.folder}: was made for other runs or shards: put new runs last, or "
                f"`h2htalk launch stop {self.path}` and remove the folder"
            )
        return lines

    def write(self) -> None:
        """Write the scripts. Raises as `lines`."""
        tasks = self.folder / "tasks.txt"
        lines = self.lines(tasks)
        with reading(self.path):
            suite = self.path.read_text(encoding="utf-8")
        paths = {"tasks": tasks, "suite": self.folder / "suite.toml", "folder": Path.cwd()}
        values = {name: shlex.quote(str(path)) for name, path in paths.items()}
        values |= {"setup": self.suite.slurm.setup, "command": self.suite.slurm.command}
        script = Template(
            SCRIPT.read_text(encoding="utf-8"), trim_blocks=True, undefined=StrictUndefined
        )
        for name in ("task", "merge"):
            write_text(
                self.folder / f"{name}.sh", script.render(values, merges=name == "merge") + "\n"
            )
        write_text(paths["suite"], suite)
        write_text(tasks, lines)
        with writing(self.folder):
            (self.folder / "logs").mkdir(exist_ok=True)

    def missing(self) -> list[int]:
        """The indices of the tasks whose shard is not finished."""
        unfinished = {run.name: run.missing().unfinished for run in self.runs}
        return [
            index
            for index, (run, number) in enumerate(self.tasks)
            if number in unfinished[run.name]
        ]

    def queued(self) -> tuple[dict[int, str], list[str]]:
        """Ask Slurm for what has not ended: indices of tasks, with the jobs that hold them, and jobs that merge."""
        text = _slurm("squeue", "--me", "--noheader", "--array", "--format=%F %K %j")
        tasks: dict[int, str] = {}
        merges: list[str] = []
        prefix = f"{self.name}-"
        pattern = re.compile(rf"\s*(\d{{1,18}}) (\S+) {prefix}(merge|\d{{1,9}})\s*", re.ASCII)
        for line in text.splitlines():
            if prefix not in line:
                continue
            match = pattern.fullmatch(line)
            if match is None or (
                match[3] != "merge" and not re.fullmatch(r"\d{1,9}", match[2], re.ASCII)
            ):
                raise ConfigError(
                    f"squeue shows a job of this suite in a line that cannot be read: {quoted(line)}; "
                    "look at it, and cancel that job or wait for its end"
                )
            job, index, purpose = match.groups()
            if purpose == "merge":
                merges.append(job)
            else:
                tasks[int(index) + int(purpose)] = job
        return tasks, merges

    def arrays(self, indices: Iterable[int]) -> list[list[str]]:
        """The commands that submit tasks: an array for those that need the same, cut at the site's limit."""
        slurm = self.suite.slurm
        size = slurm.array_limit or _site_array_size()
        groups: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for index in indices:
            run, _ = self.tasks[index]
            options = []
            if run.gpus:
                options = shlex.split(slurm.gpus.replace("{gpus}", str(run.gpus)))
            # What is paid is not asked again without a look.
            options.append("--no-requeue" if run.paid else "--requeue")
            place_in_array = index % size
            groups.setdefault((index - place_in_array, tuple(options)), []).append(place_in_array)
        commands = []
        for (offset, options_of_group), places_in_array in groups.items():
            array = f"--array={array_expression(places_in_array)}"
            if slurm.tasks_at_once:
                array += f"%{slurm.tasks_at_once}"
            first = [array]
            if offset:
                first.append(f"--export=ALL,H2HTALK_OFFSET={offset}")
            commands.append(self._sbatch("task.sh", first, options_of_group, str(offset), "%A_%a"))
        return commands

    def merge(self, after: Sequence[str]) -> list[str]:
        """The command that submits the merge, after jobs; two merges of a suite never run at once."""
        # `afterok` would wait for ever where a task failed, also once it was submitted again.
        when = f"afterany:{':'.join(after)},singleton" if after else "singleton"
        return self._sbatch(
            "merge.sh", [f"--dependency={when}"], self.suite.slurm.merge, "merge", "%j"
        )

    def _sbatch(
        self, script: str, first: Sequence[str], last: Sequence[str], purpose: str, log: str
    ) -> list[str]:
        slurm = self.suite.slurm
        logs = str(self.folder / "logs").replace("%", "%%")
        site = {
            "partition": slurm.partition,
            "account": slurm.account,
            "qos": slurm.qos,
            "time": slurm.time,
            "mem": slurm.memory,
            "cpus-per-task": str(slurm.cpus),
        }
        options = [f"--{name}={value}" for name, value in site.items() if value]
        names = [f"--job-name={self.name}-{purpose}", f"--output={logs}/{log}.out"]
        options = [*first, *options, *slurm.options, *last]
        return ["sbatch", *options, *names, str(self.folder / script)]

    def submit(self, command: Sequence[str]) -> str:
        """Submit a job and record it; returns its id."""
        printed = _slurm(command[0], "--parsable", *command[1:])
        job = printed.strip().partition(";")[0]
        if not re.fullmatch(r"\d{1,18}", job, re.ASCII):
            raise ConfigError(
                f"{command[0]} printed no id of a job ({quoted(printed)}); look with squeue whether the job was "
                "submitted, before you submit it again"
            )
        jobs = self.folder / "jobs.jsonl"
        purpose = Path(command[-1]).stem
        with writing(jobs), jobs.open("a", encoding="utf-8") as file:
            file.write(json_line({"job": job, "purpose": purpose, "command": list(command)}))
        return job


def launch_slurm(path: Path, submit: bool, say: Say) -> int:
    """Write the jobs of a suite, and submit or print those of shards that are not finished; returns the exit code."""
    if submit:
        for program in ("squeue", "sbatch"):
            _require_program(program)
    launch = Launch(path)
    queued: dict[int, str] = {}
    merges: list[str] = []
    launch.write()
    with nullcontext() if submit else suppress(ConfigError):
        queued, merges = launch.queued()
    missing = launch.missing()
    summary = f"{'' if submit else '# '}{counted(len(missing), 'shard')} missing"
    busy = len(queued.keys() & missing)
    if busy:
        summary += f", {busy:,} queued or running already"
    say(summary)
    jobs: list[str] = []
    for command in launch.arrays(index for index in missing if index not in queued):
        text = shlex.join(command[1:])
        if submit:
            job = launch.submit(command)
            say(f"job {job}: sbatch {text}")
            jobs.append(job)
        else:
            variable = f"job{len(jobs) + 1}"
            say(f"{variable}=$(sbatch --parsable {text})")
            jobs.append(f"${variable}")
    if jobs or not (merges or all(map(_is_merged, launch.runs))):
        command = launch.merge([*dict.fromkeys(queued.values()), *jobs])
        text = f"{command[0]} {command[1]} {shlex.join(command[2:])}"
        if submit:
            text = f"job {launch.submit(command)}: {text}"
        say(text)
    return 0


def launch_status(path: Path, say: Say) -> int:
    """Show what is finished, and how to submit what is missing; returns the exit code, 3 where a run is not merged."""
    launch = Launch(path)
    rows = []
    for run in launch.runs:
        state = run.missing()
        unfinished = len(state.unfinished)
        finished = f"{run.shards - unfinished} of {run.shards}"
        rows.append((run.name, finished, len(state.failed), unfinished, _is_merged(run)))
    header = ("run", "shards finished", "with failed calls", "missing", "merged")
    say(Table("", header, rows).to_terminal())
    missing = launch.missing()
    if missing and (launch.folder / "task.sh").is_file():
        launch.lines(launch.folder / "tasks.txt")
        commands = [shlex.join(command) for command in launch.arrays(missing)]
        say("\n".join(["missing, or still in squeue:", *commands]))
    if missing or not all(map(_is_merged, launch.runs)):
        return IncompleteError.exit_code
    return 0


def launch_stop(path: Path, say: Say) -> int:
    """Cancel all jobs of a suite, merges first: they would start once what they wait for is cancelled."""
    for program in ("squeue", "scancel"):
        _require_program(program)
    queued, merges = Launch(path).queued()
    for kind, jobs in (("merge", merges), ("array", [*dict.fromkeys(queued.values())])):
        if jobs:
            _slurm("scancel", "--quiet", *jobs)  # one that has just ended is no error
        say(f"cancelled {counted(len(jobs), kind)} {' '.join(jobs)}".rstrip())
    return 0


def array_expression(indices: Sequence[int]) -> str:
    """Format ascending indices as `--array` takes them: `0-3,5`."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and index == ranges[-1][-1] + 1:
            ranges[-1].append(index)
        else:
            ranges.append([index])
    return ",".join(f"{row[0]}-{row[-1]}" if len(row) > 1 else str(row[0]) for row in ranges)


def _is_merged(run: SuiteRun) -> bool:
    return all((run.spec.out_path / name).is_file() for name in ("run.json", "summary.json"))


def _site_array_size() -> int:
    with suppress(ConfigError):  # Slurm is not here, or does not answer
        config = _slurm("scontrol", "show", "config")
        match = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.MULTILINE)
        if match:
            return max(int(match[1]) - 1, 1)
    return ARRAY_SIZE


def _require_program(name: str) -> None:
    """Raise ConfigError where a command of Slurm is not installed."""
    if shutil.which(name) is None:
        raise _not_installed(name)


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        f"{name} is not installed here: submit from a machine that has it (Debian: slurm-client); "
        "without --submit the commands are printed"
    )


def _slurm(*words: str) -> str:
    """Run a command of Slurm, and return what it prints. Raises ConfigError with what it says."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=LONGEST_ANSWER,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"{words[0]} gave no answer in {LONGEST_ANSWER} seconds; try again later"
        ) from error
    except FileNotFoundError as error:
        raise _not_installed(words[0]) from error
    if done.returncode:
        message = shorten(" ".join(done.stderr.split()), 300)
        raise ConfigError(f"{words[0]}: {message or f'exit code {done.returncode}'}")
    return done.stdout
