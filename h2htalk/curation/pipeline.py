"""Running a stage: parts through its rule, in processes, resumable, with progress and counts.

A stage is a rule of one record and the settings that change what it gives. It keeps no state between parts, so that
parts can be worked on anywhere, in any order, again after a kill: the same records and settings give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from h2htalk.curation.outcomes import PartRule, each
from h2htalk.curation.stage_folder import Counts, StageFolder
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_json_object, write_json
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opener:
    """How a rule is made, once a process: a module's function and its arguments, all of which can be pickled."""

    function: Callable[..., PartRule]
    arguments: tuple[Hashable, ...] = ()

    def __call__(self) -> PartRule:
        return self.function(*self.arguments)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: what it is called, what changes its results, and how a process opens its rule.

    Attributes:
        name: a key of `workspace.STAGES`.
        version: raised when the rule gives other results for the same settings.
        settings: JSON values that change the results; a stage made with others must be made again.
        open_rule: makes the rule, once a process; called once where the stage is `alone`.
        alone: work in this process, part after part (a rule that asks models and holds a ledger).
        arithmetic: names of settings that only decide over answers that are stored; where nothing else was changed
            the stage is made again without being told to, as it asks nobody.
    """

    name: str
    version: int
    settings: Mapping[str, Any]
    open_rule: Opener
    alone: bool = False
    arithmetic: frozenset[str] = frozenset()


class Incomplete(H2HTalkError):
    """Some calls of a part failed; the part is not written, and a restart asks for them again. Exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class _Job:
    """A part to make: by a process that knows nothing else."""

    stage: Stage
    before: StageFolder
    folder: StageFolder
    part: str


def run_stage(stage: Stage, workspace: Workspace, *, processes: int | None = None) -> Counts:
    """Make what a stage still lacks, and write its summary.

    Args:
        stage: what to do with each record that the stage before it kept.
        workspace: where; its key must be open (`Workspace.open_key`) and its lock held.
        processes: 1 works in this process; None: the usable cores.

    Raises:
        ConfigError: the stage before is not finished, or this one was made with other settings.
        DataError: a file is damaged or cannot be written.
        Incomplete: calls failed; what was made is kept.
    """
    names = list(STAGES)
    before = workspace.stage(names[names.index(stage.name) - 1])
    folder = workspace.stage(stage.name)
    source = require_finished(before)
    claim(folder, stage, source)
    parts = before.parts()
    missing = [part for part in parts if not folder.done(part)]
    jobs = [_Job(stage, before, folder, part) for part in missing]
    total = sum(before.counts(part).written for part in missing)
    failed: list[Incomplete] = []
    with Progress(stage.name, total) as progress:
        workers = 1 if stage.alone else min(len(jobs), processes or usable_cores())
        with closing(_results(jobs, workers, failed)) as results:
            for counts in results:
                for _ in range(counts.read):
                    progress.advance()
    if failed:
        raise Incomplete(f"{folder.path}: {'; '.join(map(str, failed[:3]))}; the same command asks again")
    return finish(folder)


def _results(jobs: Sequence[_Job], processes: int, failed: list[Incomplete]) -> Generator[Counts, None, None]:
    """The counts of each part as it is made; parts whose calls failed are gathered, the others still made."""
    if processes < 2:
        with _opened(jobs) as rule:
            for job in jobs:
                try:
                    yield _make(job, rule)
                except Incomplete as error:
                    failed.append(error)
        return
    yield from in_processes(_make_there, [(job,) for job in jobs], processes)


def in_processes(
    function: Callable[..., T], jobs: Sequence[tuple[object, ...]], processes: int
) -> Generator[T, None, None]:
    """What a function gives for the arguments of each job, as they are done; close it to end the processes.

    Raises:
        ConfigError: a process ended before its work was done.
    """
    with ProcessPool(processes) as pool:
        waiting = iter(jobs)
        # A few ahead: a million dialogues are thousands of parts.
        futures = {pool.submit(function, *job) for job in islice(waiting, 2 * processes)}
        while futures:
            done, futures = wait(futures, return_when=FIRST_COMPLETED)
            futures.update(pool.submit(function, *job) for job in islice(waiting, len(done)))
            for future in done:
                yield future.result()


@contextmanager
def _opened(jobs: Sequence[_Job]) -> Iterator[PartRule]:
    """The rule of these parts; what it holds is given back at the end, however long somebody keeps an error of it."""
    rule = jobs[0].stage.open_rule() if jobs else each(lambda record: [])
    try:
        yield rule
    finally:
        close = getattr(rule, "close", None)
        if close is not None:
            close()


def _make(job: _Job, rule: PartRule) -> Counts:
    """Make one part."""
    records = job.before.handed_on(job.part)
    outcomes = rule(records, job.part)
    if len(outcomes) != len(records) or not all(outcomes):
        raise AssertionError(f"{job.stage.name}: a rule must say something of every record")
    return job.folder.write(job.part, outcomes, job.stage.name)


def _make_there(job: _Job) -> Counts:
    """`_make` in a process of its own, which opens the rule at its first part."""
    return _make(job, _open(job.stage.open_rule))


@lru_cache(maxsize=1)
def _open(opener: Opener) -> PartRule:
    return opener()


# --- What a folder was made with --------------------------------------------------------------------------------


def identity(stage: Stage, source: str) -> str:
    """The fingerprint of a stage's results: its rule, its settings, and the stage that it reads."""
    made = [stage.name, stage.version, stage.settings, source]
    return hashlib.sha256(json.dumps(made, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:16]


def claim(folder: StageFolder, stage: Stage, source: str) -> None:
    """Make a stage's folder, or see that the one there was made with the same settings; its one writer calls this.

    Raises:
        ConfigError: it was made with others; names them.
    """
    path = folder.path / "stage.json"
    made = {
        "stage": stage.name,
        "version": stage.version,
        "settings": json.loads(json.dumps(stage.settings)),
        "source": source,
        "fingerprint": identity(stage, source),
    }
    try:
        there = read_json_object(path)
    except FileNotFoundError:
        if folder.path.exists():
            folder.remove()  # what a kill left of a removal: it was made with other settings
            folder.sweep()
        write_json(path, made)
        return
    if there.get("fingerprint") == made["fingerprint"]:
        folder.sweep()
        return
    if _only_arithmetic(there, made, stage.arithmetic):
        folder.remove()
        write_json(path, made)
        return
    raise ConfigError(
        f"{folder.path}: was made with another {_difference(there, made)}; make it and what follows again with "
        f"--again {stage.name}, or name another workspace"
    )


def _only_arithmetic(there: Mapping[str, Any], made: Mapping[str, Any], names: frozenset[str]) -> bool:
    """Whether a stage differs in nothing but settings of these names."""

    def rest(record: Mapping[str, Any]) -> object:
        settings = record.get("settings")
        asked = (
            {k: v for k, v in settings.items() if k not in names} if isinstance(settings, Mapping) else None
        )
        return record.get("version"), record.get("source"), asked

    return bool(names) and rest(there) == rest(made)


def _difference(there: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """The names of the settings that differ."""
    before, now = there.get("settings"), made["settings"]
    if isinstance(before, Mapping) and before != now:
        differing = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        return f"setting of {', '.join(differing)}"
    if there.get("version") != made["version"]:
        return "version of its rule"
    return "stage before it"


def require_finished(folder: StageFolder) -> str:
    """The fingerprint of a finished stage; raises ConfigError where it is not finished."""
    try:
        made = read_json_object(folder.path / "stage.json")
        read_json_object(folder.path / "summary.json")
    except FileNotFoundError:
        raise ConfigError(
            f"{folder.path}: is not finished; run that stage first, or all of them: curate run"
        ) from None
    return str(made.get("fingerprint"))


def finish(folder: StageFolder) -> Counts:
    """Write the summary of a stage whose parts are all there.

    Raises:
        DataError: kept and rejected are not all that was read.
    """
    total = folder.total()
    if total.kept + total.rejected != total.read:
        raise DataError(
            f"{folder.path}: {total.read} read, but {total.kept} kept and {total.rejected} rejected"
        )
    write_json(folder.path / "summary.json", {**total.to_dict(), **folder.remarks()})
    return total
