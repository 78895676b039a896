"""Run a stage: parts through its rule, in processes, resumable, with progress and counts.

A stage is a rule for records and the settings that change its result. A rule keeps no state between parts, so parts
can be processed anywhere, in any order, and again after a kill: the same records and settings give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.outcomes import PartRule
from h2htalk.curation.stage_folder import RecordCounts, StageFolder
from h2htalk.curation.stages import find_stage, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good, remove_partial_files
from h2htalk.data.files import read_json_object, remove_file, write_json
from h2htalk.errors import ConfigError, DataError, IncompleteError
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.escaping import printable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuleFactory:
    """A function that opens a rule, and its arguments; all can be pickled, and a process calls it once."""

    function: Callable[..., PartRule]
    arguments: tuple[Hashable, ...] = ()

    def __call__(self) -> PartRule:
        return self.function(*self.arguments)


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage of one curation.

    Attributes:
        name: a key of `stages.STAGES`.
        version: raised when the rule gives other results for the same settings.
        settings: JSON values that change the result; with other values the stage must be made again.
        open_rule: opens the rule for parts of the stage before; None: `prepare` writes the parts.
        calls: the models that it calls; with any, this process works on one part after another.
        arithmetic: settings that only decide over stored answers: a change of these alone makes the stage again
            without being asked to.
        prepare: does what is needed before the parts are made, in the stage's folder.
        messages: printed on standard error when the stage runs.
        changed: why its settings are not those of a finished stage, where it knows.
    """

    name: str
    version: int
    settings: Mapping[str, Any]
    open_rule: RuleFactory | None = None
    calls: tuple[CallSettings, ...] = ()
    arithmetic: frozenset[str] = frozenset()
    prepare: Callable[[StageFolder], object] | None = None
    messages: tuple[str, ...] = ()
    changed: str = ""


def raise_incomplete(folder: StageFolder, failed: Sequence[IncompleteError]) -> None:
    """Raise Incomplete for the parts whose calls failed; without any do nothing."""
    if failed:
        reasons = "; ".join(map(str, failed[:3]))
        raise IncompleteError(f"{folder.path}: {reasons}; the same command makes these calls again")


@dataclass(frozen=True, slots=True)
class _Job:
    """A part to make, with all that a process needs for it."""

    stage: str
    open_rule: RuleFactory
    before: StageFolder
    folder: StageFolder
    part: str


def run_stage(stage: StageRun, workspace: Workspace, *, processes: int | None = None) -> RecordCounts:
    """Make the parts of a stage that are missing, and write its summary.

    Args:
        stage: its settings and its rule.
        workspace: its key must be open (`Workspace.open_key`) and its lock held.
        processes: 1 works in this process; None: the usable cores.

    Raises:
        ConfigError: the stage before is not finished, or this one was made with other settings.
        DataError: a file is damaged or cannot be written.
        IncompleteError: calls failed; finished parts are kept.
    """
    for message in stage.messages:
        print(printable(message), file=sys.stderr, flush=True)
    folder, previous = workspace.stage(stage.name), stage_before(stage.name)
    before = workspace.stage(previous) if previous else None
    claim(folder, stage, require_finished(before) if before else "raw files")
    missing = [part for part in before.parts() if not folder.done(part)] if before else []
    if stage.prepare is not None and (missing or not (folder.path / "summary.json").exists()):
        stage.prepare(folder)
    if missing and before is not None and stage.open_rule is not None:
        jobs = [_Job(stage.name, stage.open_rule, before, folder, part) for part in missing]
        failed: list[IncompleteError] = []
        total = sum(before.counts(part).written for part in missing)
        workers = 1 if stage.calls else min(len(jobs), processes or usable_cores())
        with Progress(stage.name, total) as progress, closing(_results(jobs, workers, failed)) as results:
            for counts in results:
                progress.advance(count=counts.read)
        raise_incomplete(folder, failed)
    counts = finish(folder)
    for name in find_stage(stage.name).temporary:
        remove_for_good(folder.path / name)
    return counts


def _results(
    jobs: Sequence[_Job], processes: int, failed: list[IncompleteError]
) -> Generator[RecordCounts, None, None]:
    """Make parts, and give the counts of each; a part whose calls fail is added to `failed`."""
    if processes > 1:
        yield from in_processes(_make_in_process, [(job,) for job in jobs], processes)
        return
    rule = jobs[0].open_rule()
    try:
        for job in jobs:
            try:
                yield _make(job, rule)
            except IncompleteError as error:
                failed.append(error)
    finally:
        # A model and its store are released although somebody may keep an error that refers to them.
        getattr(rule, "close", lambda: None)()


def in_processes(
    function: Callable[..., T], jobs: Sequence[tuple[object, ...]], processes: int
) -> Generator[T, None, None]:
    """Call a function with each job's arguments in processes; give the results as they come. Close it to end early.

    At most one process: the function is called in this one.
    """
    if processes <= 1:
        yield from (function(*job) for job in jobs)
        return
    with ProcessPool(processes) as pool:
        waiting = iter(jobs)
        # Submit a few ahead only: a million dialogues are thousands of parts.
        futures = {pool.submit(function, *job) for job in islice(waiting, 2 * processes)}
        while futures:
            done, futures = wait(futures, return_when=FIRST_COMPLETED)
            futures.update(pool.submit(function, *job) for job in islice(waiting, len(done)))
            for future in done:
                yield future.result()


def _make(job: _Job, rule: PartRule) -> RecordCounts:
    """Make one part."""
    records = job.before.read_kept(job.part)
    outcomes = rule(records, job.part)
    if len(outcomes) != len(records) or not all(outcomes):
        raise AssertionError(f"{job.stage}: a rule must give at least one outcome for every record")
    return job.folder.write(job.part, outcomes, job.stage)


def _make_in_process(job: _Job) -> RecordCounts:
    """Make one part in a process, which opens the rule once."""
    return _make(job, _open(job.open_rule))


@lru_cache(maxsize=1)
def _open(open_rule: RuleFactory) -> PartRule:
    return open_rule()


# --- The settings that a folder was made with ----------------------------------------------------------------------


def _identity(stage: str, version: int, settings: Mapping[str, Any], source: str) -> str:
    """The fingerprint of a stage's result: its rule, its settings, and the stage that it reads."""
    values = [stage, version, settings, source]
    return hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:16]


def adopt_parts(folder: StageFolder, source: str, sources: Mapping[str, str]) -> str:
    """Keep the parts of a stage whose input got more parts; returns its new fingerprint.

    Args:
        folder: of a stage that has begun.
        source: the fingerprint of the stage before it, or `raw files`.
        sources: the new SHA-256 of raw sources, for the stage that reads them.
    """
    made = read_json_object(folder.path / "stage.json")
    settings = made["settings"]
    if sources:
        known = [{**one, "sha256": sources.get(one["name"], one["sha256"])} for one in settings["sources"]]
        settings = {**settings, "sources": known}
    fingerprint = _identity(made["stage"], made["version"], settings, source)
    if fingerprint != made["fingerprint"]:
        remove_file(folder.path / "summary.json")
        made |= {"settings": settings, "source": source, "fingerprint": fingerprint}
        write_json(folder.path / "stage.json", made)
    return fingerprint


def claim(folder: StageFolder, stage: StageRun, source: str) -> None:
    """Make a stage's folder, or check that an existing one was made with the same settings. One writer calls this.

    Raises:
        ConfigError: it was made with other settings; names them.
    """
    if is_made(folder, stage, source):
        remove_partial_files(folder.path)
        return
    if folder.path.exists():
        folder.remove()  # left by a removal that was killed, or made with other arithmetic
        remove_partial_files(folder.path)
    write_json(folder.path / "stage.json", _made(stage, source))


def is_made(folder: StageFolder, stage: StageRun, source: str) -> bool:
    """Whether a stage has begun with these settings; False where only its arithmetic differs. Writes nothing.

    Raises:
        ConfigError: it was made with other settings; names them.
    """
    made = _made(stage, source)
    try:
        existing = read_json_object(folder.path / "stage.json")
    except FileNotFoundError:
        return False
    if existing.get("fingerprint") == made["fingerprint"]:
        return True
    if _only_arithmetic_differs(existing, made, stage.arithmetic):
        return False
    raise ConfigError(
        stage.changed
        or f"{folder.path}: was made with another {_difference(existing, made)}; make it and the stages after it "
        f"again with --from-stage {stage.name}, or name another workspace"
    )


def _made(stage: StageRun, source: str) -> dict[str, Any]:
    """The content of `stage.json`."""
    return {
        "stage": stage.name,
        "version": stage.version,
        "settings": json.loads(json.dumps(stage.settings)),
        "source": source,
        "fingerprint": _identity(stage.name, stage.version, stage.settings, source),
    }


def _only_arithmetic_differs(existing: Mapping[str, Any], made: Mapping[str, Any], names: frozenset[str]) -> bool:
    def rest(record: Mapping[str, Any]) -> object:
        settings = record.get("settings")
        others = isinstance(settings, Mapping) and {k: v for k, v in settings.items() if k not in names}
        return record.get("version"), record.get("source"), others

    return bool(names) and rest(existing) == rest(made)


def _difference(existing: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """The names of the settings that differ."""
    before, now = existing.get("settings"), made["settings"]
    if isinstance(before, Mapping) and before != now:
        differing = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        return f"setting of {', '.join(differing)}"
    if existing.get("version") != made["version"]:
        return "version of its rule"
    return "stage before it"


def require_finished(folder: StageFolder) -> str:
    """The fingerprint of a finished stage; raises ConfigError where it is not finished."""
    try:
        made = read_json_object(folder.path / "stage.json")
        read_json_object(folder.path / "summary.json")
    except FileNotFoundError:
        raise ConfigError(
            f"{folder.path}: the stage is not finished; run it first, or run all stages: curate run"
        ) from None
    return str(made.get("fingerprint"))


def finish(folder: StageFolder) -> RecordCounts:
    """Write the summary of a stage whose parts are all there.

    Raises:
        DataError: kept, rejected and earlier states do not add up to what was read.
    """
    total = folder.total()
    if total.kept + total.rejected + total.earlier != total.read:
        parts = f"{total.kept} kept, {total.rejected} rejected and {total.earlier} earlier states"
        raise DataError(f"{folder.path}: {total.read} read, but {parts}")
    write_json(folder.path / "summary.json", {**asdict(total), **folder.notes()})
    return total
