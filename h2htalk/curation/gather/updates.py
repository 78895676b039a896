"""What of the sources a run reads: the files that were gathered, and in an update what is new in them.

`sources.json` of the stage holds what was gathered: the files of each source and the first part of each update. An
update writes it before it reads anything. One that was interrupted goes on with the next run; where its files have
changed since, the next update gives it up and begins again, which changes no id that another stage has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.curation.export_programs import EXPORT_PROGRAMS
from h2htalk.curation.gather.gathered_items import (
    Comparison,
    GatheredItems,
    collect,
    new_items,
    say_similar,
    write_known_items,
)
from h2htalk.curation.gather.source_files import (
    ChangedSourceError,
    GatheredBefore,
    SourceFile,
    SourcePlan,
    file_fields,
    plan_source,
)
from h2htalk.curation.run import require_finished, say
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder, part_name
from h2htalk.curation.stage_records import SOURCES, GatheredFiles, combined_hash, read_checked
from h2htalk.curation.stages import (
    FIRST_STAGE,
    AnonymizeSettings,
    CurateSpec,
    GatherSettings,
    Source,
)
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, counted

_Sources = Mapping[str, Sequence[Mapping[str, Any]]]  # name -> files, as the stage stores them


@dataclass(frozen=True, slots=True)
class GatherPlans:
    """What a run reads of each source.

    Attributes:
        plans: in the order of the settings.
        messages: what has changed without a consequence for what was gathered.
        changed: why the stage cannot go on with these files; empty where it can.
    """

    plans: tuple[SourcePlan, ...]
    messages: tuple[str, ...]
    changed: str


@dataclass(frozen=True, slots=True)
class SourceUpdate:
    """What an update has found: whether anything is new, and the SHA-256 of the files of each source."""

    is_new: bool
    hashes: Mapping[str, str]


def read_gathered(folder: StageFolder) -> dict[str, Any]:
    """The content of `sources.json`; empty before anything was gathered. Raises DataError."""
    return read_checked(GatheredFiles, folder.path / SOURCES, missing_ok=True)


def files_of(plans: Iterable[SourcePlan]) -> dict[str, list[dict[str, Any]]]:
    """The files of each source, as the stage stores them."""
    return {plan.source.name: [file_fields(file) for file in plan.files] for plan in plans}


def plan_sources(spec: CurateSpec, workspace: Workspace) -> GatherPlans:
    """Plan what a run reads that is no update. Raises ConfigError for a missing file and another format."""
    folder = workspace.stage(FIRST_STAGE)
    known = read_gathered(folder)
    plans: list[SourcePlan] = []
    messages: list[str] = []
    changed: list[str] = []
    for source in spec.section(GatherSettings).sources:
        files = known.get("sources", {}).get(source.name, ())
        before = GatheredBefore(files, workspace.erased_from(source.name)) if files else None
        try:
            plan = plan_source(source, spec.folder, before)
        except ChangedSourceError as error:
            is_read = folder.finished or _is_read(files, known.get("first_parts", ()))
            if error.gathered and not folder.finished:
                # What was gathered is as it was: the stage goes on, and an update reads the rest.
                plan = SourcePlan(source, source.path, error.gathered)
                messages.append(f"{error}, when this run is finished")
            elif is_read and workspace.erased_from(source.name):
                # Its owner may have deleted the lines of the erased, which changes nothing for the others.
                plan = SourcePlan(
                    source, source.path, tuple(SourceFile(Path(), **file) for file in files)
                )
                messages.append(_erased_message(source))
            else:
                plan = plan_source(source, spec.folder)
                changed.append(str(error))
        plans.append(replace(plan, name_keys=spec.section(AnonymizeSettings).name_keys))
    return GatherPlans(tuple(plans), tuple(messages), "; ".join(changed))


def _is_read(files: Sequence[Mapping[str, Any]], first_parts: Sequence[int]) -> bool:
    """Whether an update that has begun, and is not finished, reads other sources."""
    update = len(first_parts) - 1
    return update > 0 and all(file.get("update", 0) != update for file in files)


def _erased_message(source: Source) -> str:
    message = (
        f"gather: the file of source {source.name!r} has changed since somebody was erased from it"
    )
    advice = "what is new in it is read with --update; to read the file again: --from-stage gather"
    return f"{message}; the gathered dialogues stay as they are; {advice}"


def begin_update(spec: CurateSpec, workspace: Workspace, key: bytes) -> SourceUpdate:
    """Write down what is new in the sources, which the next run reads. `key`: the workspace's erasure key.

    Raises ConfigError for an unfinished stage, and for a changed file in which gathered items are missing although
    nobody was erased.
    """
    folder = workspace.stage(FIRST_STAGE)
    known = read_gathered(folder)
    sources: _Sources = known.get("sources", {})
    first_parts = list(known.get("first_parts", ()))
    plans = _plan_update(spec, workspace, sources, len(first_parts))
    settings = spec.section(GatherSettings).sources
    # Another set of sources is another setting, which the run refuses.
    if files_of(plans) == sources or (
        sources and {source.name for source in settings} != set(sources)
    ):
        return SourceUpdate(False, _hashes(plans))
    is_given_up = not folder.finished and len(first_parts) > 1
    abandoned = {name: list(states) for name, states in known.get("abandoned", {}).items()}
    if is_given_up:
        first = first_parts.pop()
        sources = _give_up(folder, sources, len(first_parts), first, abandoned)
        plans = _plan_update(spec, workspace, sources, len(first_parts))
    else:
        require_finished(folder)
        first = 1 + max(int(part.rpartition("-")[2]) for part in folder.parts())
    plans = _compare(folder, workspace, plans, sources, len(first_parts), first, key)
    is_new = any(plan.files_of(len(first_parts)) for plan in plans)
    if is_new:
        first_parts.append(first)
    content: dict[str, Any] = {"sources": files_of(plans), "first_parts": first_parts}
    if abandoned:
        content["abandoned"] = abandoned
    if is_new or is_given_up:
        content["is_adopted"] = False
    write_json(folder.path / SOURCES, content)
    return SourceUpdate(is_new or is_given_up, _hashes(plans))


def interrupted_update(workspace: Workspace) -> SourceUpdate | None:
    """The update that a kill interrupted before the stages knew of it, or None. Raises DataError."""
    known = read_gathered(workspace.stage(FIRST_STAGE))
    if known.get("is_adopted", True):
        return None
    hashes = {
        name: combined_hash([file["sha256"] for file in files if not file.get("nothing_new")])
        for name, files in known["sources"].items()
    }
    return SourceUpdate(True, hashes)


def _hashes(plans: Iterable[SourcePlan]) -> dict[str, str]:
    return {plan.source.name: plan.sha256 for plan in plans}


def _plan_update(
    spec: CurateSpec, workspace: Workspace, sources: _Sources, update: int
) -> list[SourcePlan]:
    """The plans of all sources with what is new in them. Raises ConfigError."""
    plans: list[SourcePlan] = []
    changed: list[str] = []
    for source in spec.section(GatherSettings).sources:
        files = sources.get(source.name, ())
        before = GatheredBefore(files, workspace.erased_from(source.name)) if files else None
        try:
            plan = plan_source(source, spec.folder, before, update)
        except ChangedSourceError as error:
            changed.append(str(error))
            continue
        plans.append(replace(plan, name_keys=spec.section(AnonymizeSettings).name_keys))
    if changed:
        raise ConfigError("; ".join(changed))
    return plans


def _give_up(
    folder: StageFolder, sources: _Sources, update: int, first: int, abandoned: dict[str, list[str]]
) -> dict[str, list[Mapping[str, Any]]]:
    """Remove what an unfinished update has gathered, which no other stage has read; returns the files before it."""
    for part in folder.parts():
        if int(part.rpartition("-")[2]) >= first:
            folder.mark(part).unlink()
    for path in (
        file
        for kind in (KEPT, REJECTED, AUDIT)
        for file in sorted((folder.path / kind).glob("*.jsonl"))
    ):
        if int(path.stem.rpartition("-")[2]) >= first:
            remove_for_good(path)
    earlier: dict[str, list[Mapping[str, Any]]] = {}
    for name, files in sources.items():
        before = [
            file for file in files if file.get("update", 0) < update or file.get("nothing_new")
        ]
        if len(before) < len(files):
            # Who was erased since stays erased by the ids of that time.
            hashes = [file["sha256"] for file in files if not file.get("nothing_new")]
            abandoned.setdefault(name, []).append(combined_hash(hashes))
        earlier[name] = before
    return earlier


def _compare(
    folder: StageFolder,
    workspace: Workspace,
    plans: Sequence[SourcePlan],
    sources: _Sources,
    update: int,
    first: int,
    key: bytes,
) -> list[SourcePlan]:
    """Read the files that are read by content, and write down what was gathered before; returns the plans, in which
    files without anything new are marked. Raises ConfigError, DataError."""
    if not any(file.by_content for plan in plans for file in plan.files_of(update)):
        return list(plans)
    parts = [part for part in folder.parts() if part < part_name(first)]
    known = collect(workspace, parts, key)
    compared: list[SourcePlan] = []
    for plan in plans:
        name = plan.source.name
        if not any(file.by_content for file in plan.files_of(update)):
            compared.append(plan)
            continue
        gathered = known.get(name, GatheredItems())
        comparison = Comparison()
        for _ in new_items(plan, gathered, key, update, lambda size: None, comparison):
            pass
        missing = (gathered.items - comparison.known).total()
        is_export = plan.source.format in EXPORT_PROGRAMS
        if missing and not is_export and not workspace.erased_from(name):
            items = f"{counted(missing, 'item')} that {'was' if missing == 1 else 'were'} gathered"
            problem = (
                f"gather: source {name!r}: {plan.place} has changed: {items} cannot be found in it"
            )
            raise ConfigError(
                f"{problem}; to read all files again, with other ids: --from-stage gather"
            )
        _say(name, comparison)
        compared.append(plan if comparison.new else _without_news(plan, update))
    write_known_items(folder, known)
    return compared


def _without_news(plan: SourcePlan, update: int) -> SourcePlan:
    """The plan of a source whose files were compared, and have nothing new."""
    marked = [
        replace(file, nothing_new=True) if file.update == update else file for file in plan.files
    ]
    latest = {file.name: number for number, file in enumerate(marked) if file.nothing_new}
    # One note a file is enough.
    files = [
        file
        for number, file in enumerate(marked)
        if not file.nothing_new or latest[file.name] == number
    ]
    return replace(plan, files=tuple(files))


def _say(name: str, comparison: Comparison) -> None:
    known = comparison.known.total()
    parts = [f"{counted(known, 'item')} {'was' if known == 1 else 'were'} gathered before"]
    parts.append(f"{comparison.new:,} {'is' if comparison.new == 1 else 'are'} new")
    if comparison.erased:
        parts.append(
            f"{comparison.erased:,} {'is' if comparison.erased == 1 else 'are'} erased, and left out"
        )
    if comparison.continued:
        what = "begins" if comparison.continued == 1 else "begin"
        parts.append(f"{comparison.continued:,} of them {what} where a gathered dialogue ended")
    if comparison.waiting:
        waiting = f"after {counted(comparison.waiting, 'gathered dialogue')} one speaker alone has written"
        parts.append(f"{waiting}, which is read when the other has answered")
    say(f"gather: source {name!r}: {'; '.join(parts)}")
    say_similar(name, comparison.similar)
