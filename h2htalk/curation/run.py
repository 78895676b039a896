"""Run a stage: parts through its rule, in processes, resumable, with progress and counts.

A stage is a rule for records and the settings that change its result. A rule keeps no state between parts, so parts
can be processed anywhere, in any order, and again after a kill: the same records and settings give the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.chat.store.reply_endings import ending_lines
from h2htalk.chat.store.reply_marks import stage_mark_warnings
from h2htalk.curation.prompts import fingerprint
from h2htalk.curation.stage_folder import KEPT, PartRule, RecordCounts, StageFolder
from h2htalk.curation.stage_records import StageFile, read_checked
from h2htalk.curation.stages import find_stage, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import remove_file, write_json
from h2htalk.errors import ConfigError, DataError, IncompleteError, listed
from h2htalk.parallel import in_processes, worker_count
from h2htalk.progress import Progress
from h2htalk.text.escaping import printable


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

    A change of its `arithmetic`, settings that only decide over stored answers, makes the stage again without being
    asked to; with other `settings` or another `version` it must be asked for.
    """

    name: str  # a key of `stages.STAGES`
    version: int  # raised when the rule gives other results for the same settings
    settings: Mapping[str, Any]  # JSON values that change the result
    open_rule: RuleFactory | None = (
        None  # for parts of the stage before; None: `prepare` writes the parts
    )
    calls: tuple[
        CallSettings, ...
    ] = ()  # models; with any, this process works on one part after another
    arithmetic: frozenset[str] = frozenset()
    prepare: Callable[[StageFolder], object] | None = (
        None  # called before the parts are made, with the stage's folder
    )
    messages: tuple[str, ...] = ()  # printed on standard error when the stage runs
    changed: str = ""  # why its settings are not those of a finished stage, where it knows


def say(message: str) -> None:
    """Print a message of a stage on standard error."""
    print(printable(message), file=sys.stderr, flush=True)


def raise_incomplete(folder: StageFolder, failed: Sequence[IncompleteError]) -> None:
    """Raise IncompleteError for the parts whose calls failed; without any do nothing."""
    if failed:
        reasons = "; ".join(map(str, failed[:3]))
        raise IncompleteError(f"{folder.path}: {reasons}; the same command makes these calls again")


def run_stage(
    stage: StageRun, workspace: Workspace, *, processes: int | None = None
) -> RecordCounts:
    """Make the parts of a stage that are missing, and write its summary.

    The workspace's key must be open (`Workspace.open_key`) and its lock held. `processes`: 1 works in this process;
    None: the usable cores. Raises ConfigError where the stage before is not finished, or this one was made with other
    settings; DataError; IncompleteError where calls failed: finished parts are kept.
    """
    for message in stage.messages:
        say(message)
    folder = workspace.stage(stage.name)
    previous = stage_before(stage.name)
    before = workspace.stage(previous) if previous else None
    claim(folder, stage, require_finished(before) if before else "raw files")
    missing = [part for part in before.parts() if not folder.done(part)] if before else []
    if stage.prepare is not None and (missing or not folder.finished):
        stage.prepare(folder)
    if missing and before is not None and stage.open_rule is not None:
        failed: list[IncompleteError] = []
        workers = 1 if stage.calls else min(len(missing), worker_count(processes))
        total = sum(before.counts(part).written for part in missing)
        with Progress(stage.name, total) as progress, ExitStack() as stack:
            rule = stage.open_rule if workers > 1 else stage.open_rule()
            # A model and its store are released although somebody may keep an error that refers to them.
            stack.callback(getattr(rule, "close", lambda: None))
            jobs = [(rule, before, folder, part, stage.name) for part in missing]
            for made in stack.enter_context(closing(in_processes(_make, jobs, workers))):
                if isinstance(made, IncompleteError):
                    failed.append(made)
                else:
                    progress.advance(count=made.read)
        raise_incomplete(folder, failed)
        if unseen := [
            part for part in missing if not folder.done(part)
        ]:  # a network folder may look old for a minute
            raise IncompleteError(
                f"{folder.path}: {listed(unseen)} cannot be seen yet; start the same command again"
            )
    if stage.calls and (missing or not folder.finished):
        for line in ending_lines(folder.path):
            say(f"{stage.name}: {line}")
        for warning in stage_mark_warnings(folder.path, stage.name, stage.calls):
            say(f"{stage.name}: {warning}")
    counts = folder.finish()
    for name in find_stage(stage.name).temporary:
        remove_for_good(folder.path / name)
    return counts


_open = lru_cache(maxsize=1)(RuleFactory.__call__)  # a process opens a rule once


def _make(
    rule: PartRule | RuleFactory, before: StageFolder, folder: StageFolder, part: str, stage: str
) -> RecordCounts | IncompleteError:
    opened = _open(rule) if isinstance(rule, RuleFactory) else rule
    records = list(before.part_records(part))
    written = before.counts(part).written
    if len(records) != written:
        problem = (
            f"{before.file(KEPT, part)}: has {len(records):,} records, but {written:,} were written"
        )
        raise DataError(
            f"{problem}; put the file back as it was, or make its stage again with --from-stage"
        )
    try:
        outcomes = opened(records, part)
    except IncompleteError as error:
        return error
    if len(outcomes) != len(records) or not all(outcomes):
        raise AssertionError(f"{stage}: a rule must give at least one outcome for every record")
    return folder.write(part, outcomes, stage)


def _made(stage: str, version: int, settings: Any, source: str) -> dict[str, Any]:
    """The content of `stage.json`, with a hash of what decides the stage's result."""
    made = {
        "stage": stage,
        "version": version,
        "settings": json.loads(json.dumps(settings)),
        "source": source,
    }
    return {**made, "fingerprint": fingerprint([stage, version, settings, source])}


def adopt_parts(folder: StageFolder, source: str, sources: Mapping[str, str]) -> str:
    """Keep the parts of a stage that has begun, and whose input got more parts; returns its new fingerprint.

    `source`: the fingerprint of the stage before it, or `raw files`. `sources`: the new SHA-256 of these files.
    """
    before = read_checked(StageFile, folder.path / "stage.json")
    settings = before["settings"]
    if sources:
        known = [
            {**one, "sha256": sources.get(one["name"], one["sha256"])}
            for one in settings["sources"]
        ]
        settings = {**settings, "sources": known}
    made = _made(before["stage"], before["version"], settings, source)
    if made != before:
        remove_file(folder.path / "summary.json")
        write_json(folder.path / "stage.json", made)
    return str(made["fingerprint"])


def claim(folder: StageFolder, stage: StageRun, source: str) -> None:
    """Make a stage's folder, or check, as `is_made`, that an existing one was made with the same settings."""
    if not is_made(folder, stage, source):
        if folder.path.exists():
            folder.remove()  # left by a removal that was killed, or made with other arithmetic
        write_json(
            folder.path / "stage.json", _made(stage.name, stage.version, stage.settings, source)
        )
    folder.remove_half_written()


def is_made(folder: StageFolder, stage: StageRun, source: str) -> bool:
    """Whether a stage has begun with these settings; False where only its arithmetic differs. Writes nothing.

    Raises ConfigError where it was made with other settings; names them.
    """
    before = read_checked(StageFile, folder.path / "stage.json", missing_ok=True)
    made = _made(stage.name, stage.version, stage.settings, source)
    if not before or before["fingerprint"] == made["fingerprint"]:
        return bool(before)
    old = before["settings"]
    new = made["settings"]
    settings = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    others = [what for what in ("version", "source") if before[what] != made[what]]
    if not others and stage.arithmetic.issuperset(settings):
        return False
    what = f"setting of {', '.join(settings)}" if settings else "version of its rule"
    what = what if settings or "version" in others else "stage before it"
    advice = f"make it and the stages after it again with --from-stage {stage.name}, or name another workspace"
    raise ConfigError(stage.changed or f"{folder.path}: was made with another {what}; {advice}")


def require_finished(folder: StageFolder) -> str:
    """The fingerprint of a finished stage; raises ConfigError where it is not finished."""
    if not (folder.begun and folder.finished):
        raise ConfigError(
            f"{folder.path}: the stage is not finished; run it first, or run all stages: curate run"
        )
    return str(read_checked(StageFile, folder.path / "stage.json")["fingerprint"])
