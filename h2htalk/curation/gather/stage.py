"""Gather: raw conversations and simulated ones become dialogues with ids, provenance and a licence.

A dialogue's id is its source's name and its row there (`smile-000123`), a person's its source and the order in which
the file first names them (`bank-p0003`): no name of the raw data goes on. What is rejected is kept as id and reason
only. The audit is the private index back to the raw files, which `purge` removes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem
from h2htalk.curation.gather.simulation import SOURCE, Plan, Simulation, open_simulation
from h2htalk.curation.gather.source_files import (
    STAND_IN,
    NamedItem,
    SourcePlan,
    find_source,
    named_items,
    plan_source,
)
from h2htalk.curation.licences import find, refusal, require_allowed
from h2htalk.curation.outcomes import Kept, Outcomes, Rejected, each
from h2htalk.curation.pipeline import Incomplete, Opener, Stage, claim, finish
from h2htalk.curation.settings import CurateSpec, Source
from h2htalk.curation.stage_folder import Counts, StageFolder, part_name
from h2htalk.curation.tombstones import Tombstones, marks_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue
from h2htalk.errors import ConfigError, DataError
from h2htalk.progress import Progress
from h2htalk.text.escaping import printable

VERSION = 1
STAGE = "gather"
_MEGABYTE = 1 << 20
T = TypeVar("T")
# Reason -> what to do where a source gives no dialogue at all for it.
_ADVICE = {
    "broken": "is its form really {form!r}? docs/curation.md shows each",
    "encoding": "save it as UTF-8: iconv -f GB18030 -t UTF-8 OLD > NEW",
    "role": "rename its roles to user and companion",
    "licence": "name a source's licence for what its records say",
    "language": "each record's language must be the source's",
}


def run_gather(spec: CurateSpec, base: Path, workspace: Workspace, key: bytes) -> Counts:
    """Make what the first stage still lacks, and write its summary.

    Args:
        spec: what to gather.
        base: the folder of the specification, from which relative paths lead.
        workspace: where; its lock held.
        key: the workspace's; people who were taken out are known again by hashes that it keys.

    Raises:
        ConfigError: a licence that does not allow the release, a path whose variable is not set, a file that is not
            there, or a workspace that was made with other settings. Nothing is read then.
        DataError: a file whose items cannot be told apart, or that gives no dialogue; names file and line.
        Incomplete: calls of the simulation failed; what was made is kept.
    """
    settings = spec.gather
    require_sources(spec, base)
    plans = [plan_source(source, base, settings.stand_in) for source in settings.sources]
    simulation = open_simulation(spec, base) if settings.simulate.dialogues else None
    folder = workspace.stage(STAGE)
    finished = (folder.path / "summary.json").exists()
    if finished:
        plans = [_as_gathered(plan, workspace) for plan in plans]
    made = {
        "release": settings.licence,
        "part": spec.part,
        "sources": [plan.to_settings() for plan in plans],
        "simulate": simulation.to_settings() if simulation is not None else None,
    }
    stage = Stage(STAGE, VERSION, made, Opener(each))
    claim(folder, stage, "raw files")
    if finished:
        return finish(folder)
    parts = _Parts(folder, spec.part)
    erased = _Erased(workspace.tombstones(), workspace.erased(), key)
    size = sum(plan.size for plan in plans)
    with Progress(f"{STAGE} (MB read)", size // _MEGABYTE) as progress:
        on_read = _Megabytes(progress.advance)
        for plan in plans:
            _gather(plan, parts, erased, settings.licence, on_read)
    if simulation is not None:
        _simulate(simulation, parts, erased.ids)
    return finish(folder)


def require_sources(spec: CurateSpec, base: Path) -> None:
    """See that everything that is to come in may, and is there; nothing is read.

    Raises:
        ConfigError: a licence that does not allow the release, or a source whose name or file cannot be.
    """
    settings = spec.gather
    licences = [(source.name, source.licence) for source in settings.sources]
    if settings.simulate.dialogues:
        licences.append((SOURCE, settings.simulate.licence))
    require_allowed(licences, settings.licence)
    if any(source.name == SOURCE for source in settings.sources):
        raise ConfigError(f"a source cannot be named {SOURCE!r}: simulated dialogues are")
    for source in settings.sources:
        find_source(source, base, settings.stand_in)


def _as_gathered(plan: SourcePlan, workspace: Workspace) -> SourcePlan:
    """The plan of a gathered source, as it was gathered where somebody was erased from it since: its owner may have
    deleted the lines, which changes nothing for the others. What else changed there is left out, which is said."""
    name = plan.source.name
    sha256 = workspace.source_files().get(name, "").rpartition("/")[2]
    if sha256 in ("", plan.sha256) or not workspace.tombstones().of_source(name):
        return plan
    message = f"gather: the file of source {name!r} has changed since somebody was erased from it; what was gathered "
    message += "stays as it is; to read the file again: --again gather"
    print(printable(message), file=sys.stderr, flush=True)
    return replace(plan, sha256=sha256)


# --- From items to parts ------------------------------------------------------------------------------------------


class _Parts:
    """Work in parts of one size, numbered through all sources; a part that is whole already is passed over."""

    def __init__(self, folder: StageFolder, size: int) -> None:
        self.folder, self.size, self._number = folder, size, 0

    def write(self, items: Iterable[T], rule: Callable[[Sequence[T], str], Sequence[Outcomes]]) -> Counts:
        """Make the parts of some items; a part holds items of one call only. Returns the counts of all of them."""
        counts = []
        waiting = iter(items)
        while chunk := list(islice(waiting, self.size)):
            part = part_name(self._number)
            self._number += 1
            if not self.folder.done(part):
                self.folder.write(part, rule(chunk, part), STAGE)
            counts.append(self.folder.counts(part))
        return Counts.total(counts)


class _Megabytes:
    """Tells of every whole megabyte read."""

    def __init__(self, advance: Callable[[], object]) -> None:
        self._advance, self._rest = advance, 0

    def __call__(self, read: int) -> None:
        whole, self._rest = divmod(self._rest + read, _MEGABYTE)
        for _ in range(whole):
            self._advance()


@dataclass(frozen=True, slots=True)
class _Erased:
    """Who was erased, and the key by which an item is recognised whatever its row is now."""

    known: Tombstones
    ids: frozenset[str]
    key: bytes

    def holds(self, named: NamedItem, source: Source) -> bool:
        if {named.id, named.person} & self.ids:
            return True
        raw = named.item.found
        if not self.known.marks or not isinstance(raw, RawDialogue):
            return False
        try:
            words = [[turn.role, turn.content] for turn in clean(raw, source.language).messages]
        except RefusedItem:
            words = None
        return not marks_of(self.key, source.name, raw.raw_id, raw.person, words).isdisjoint(self.known.marks)


def _gather(
    plan: SourcePlan, parts: _Parts, erased: _Erased, release: str, on_read: Callable[[int], object]
) -> None:
    """The parts of one source."""
    left_out = 0

    def rule(chunk: Sequence[NamedItem], part: str) -> list[Outcomes]:
        nonlocal left_out
        chosen = [named for named in chunk if not erased.holds(named, plan.source)]
        left_out += len(chunk) - len(chosen)
        return [_outcome(named, plan.source, release) for named in chosen]

    counts = parts.write(named_items(plan, on_read), rule)
    if left_out:
        told = f"gather: {left_out:,} items of source {plan.source.name!r} left out: they were erased"
        print(printable(told), file=sys.stderr, flush=True)
    if not counts.kept and not left_out and not erased.known.of_source(plan.source.name):
        raise DataError(_nothing(plan, counts))


def _outcome(named: NamedItem, source: Source, release: str) -> Outcomes:
    """A dialogue, or id and reason: raw text lies nowhere else."""
    item = named.item
    index = {"raw": _raw_index(named, source)}
    try:
        if isinstance(item.found, RefusedItem):
            raise item.found
        return [_kept(named, item.found, source, release, index)]
    except RefusedItem as refused:
        return [Rejected(named.id, refused.reason, {"line": item.line, **refused.evidence}, audit=index)]


def _kept(named: NamedItem, raw: RawDialogue, source: Source, release: str, index: Mapping[str, Any]) -> Kept:
    if raw.language not in (None, source.language):
        raise RefusedItem("language")
    licence = raw.licence or source.licence
    if refusal(licence, release) is not None:
        raise RefusedItem("licence")
    known = find(licence)
    cleaned = clean(raw, source.language)
    provenance: dict[str, Any] = {"source": source.name, "row": named.item.row}
    linked = {"person": named.person, "question": named.question}
    provenance |= {key: value for key, value in linked.items() if value is not None}
    dialogue = Dialogue(
        named.id,
        source.language,
        cleaned.messages,
        provenance,
        known.id if known is not None else licence,
        cleaned.metadata,
    )
    audit = dict(index)
    if cleaned.removed:
        audit["removed"] = dict(cleaned.removed)
    tags = raw.tags + (("cleaned",) if cleaned.removed else ())
    return Kept(dialogue.to_dict(), tags, audit)


def _raw_index(named: NamedItem, source: Source) -> dict[str, Any]:
    """The way back to the raw file, of a rejected item too: `erase` must find a person by it."""
    item, raw = named.item, named.item.found
    index: dict[str, Any] = {"file": source.path, "row": item.row, "line": item.line}
    if isinstance(raw, RawDialogue):
        index |= {"id": raw.raw_id, "person": raw.person, "known_as": named.person}
        if STAND_IN in raw.tags:
            index["file"] = "generated"
    return {key: value for key, value in index.items() if value is not None}


def _nothing(plan: SourcePlan, counts: Counts) -> str:
    """Why a source gave nothing, and what to do."""
    if not counts.read:
        return f"{plan.path}: source {plan.source.name!r} holds no item"
    reasons = _listed(counts.reasons)
    advice = _ADVICE.get(next(iter(counts.reasons), ""), "see the rejected records of the stage")
    return (
        f"{plan.path}: source {plan.source.name!r} gives no dialogue: all {counts.read:,} items were rejected "
        f"({reasons}); {advice.format(form=plan.source.format)}"
    )


def _listed(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in islice(reasons.items(), 4))


# --- Simulated dialogues ------------------------------------------------------------------------------------------


def _simulate(simulation: Simulation, parts: _Parts, erased: frozenset[str]) -> None:
    """The parts of the simulation; one whose calls fail is left out, and the others are still made."""
    failed: list[Incomplete] = []
    with simulation.asking(parts.folder.path) as speakers:

        def rule(chunk: Sequence[Plan], part: str) -> list[Outcomes]:
            wanted = [plan for plan in chunk if plan.id not in erased]
            return [[outcome] for outcome in simulation.talk(wanted, speakers, part)]

        counts = []
        for start in range(0, len(simulation.plans), parts.size):
            try:
                counts.append(parts.write(simulation.plans[start : start + parts.size], rule))
            except Incomplete as error:
                failed.append(error)
    if failed:
        told = "; ".join(map(str, failed[:3]))
        raise Incomplete(f"{parts.folder.path}: {told}; the same command asks again")
    total = Counts.total(counts)
    if total.read and not total.kept:
        raise DataError(
            f"{parts.folder.path}: all {total.read:,} simulated dialogues were rejected ({_listed(total.reasons)}); "
            "try other models, and --again gather"
        )
