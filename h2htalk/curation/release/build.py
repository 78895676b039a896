"""Build a release from a workspace and its closed rounds, and check one.

    read_release_spec ─► read_outcome of each round ─► accept ─► select ─► gates ─► data, card, metadata, release.json

A release is written completely or not at all, and not at all while a gate finds something.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.curation.candidates import ANSWER
from h2htalk.curation.curate import summaries
from h2htalk.curation.release.acceptance import CROWD, EXPERT, Accepted, accept, count_values, require_persona
from h2htalk.curation.release.card import write_card
from h2htalk.curation.release.content import ReleaseContent, read_content, write_data
from h2htalk.curation.release.gates import GATES, Finding, GateContext, read_allowed, run_gates, stored_allowed
from h2htalk.curation.release.invented_values import InventedValues
from h2htalk.curation.release.items import REFERENCES, ReleaseItem
from h2htalk.curation.release.selection import History, select
from h2htalk.curation.release.settings import ReleaseSpec, read_release_spec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import ErasedIds, read_erased
from h2htalk.data.files import read_json_object, read_jsonl, sha256_of, write_json, write_jsonl, writer_lock, writing
from h2htalk.data.links import add_link, follow_links, read_links
from h2htalk.data.records import as_path
from h2htalk.data.releases.hub import release_folder
from h2htalk.data.releases.release_folder import (
    DEV,
    HISTORY,
    PRIVATE_REFERENCES,
    SPEC,
    TAGS,
    TEST,
    TOMBSTONES,
    Manifest,
    canary_of,
    hash_files,
    private_folder,
    release_hash,
    work_folders,
)
from h2htalk.data.scenario import Persona, bundled_personas, read_personas
from h2htalk.data.subtasks import SUBTASKS, in_table_order
from h2htalk.errors import ConfigError, DataError, PublishError, counted, quoted, suggest
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, guideline_files
from h2htalk.text.escaping import printable
from h2htalk.version import __version__


@dataclass(frozen=True, slots=True)
class Release:
    """A release, built or checked.

    Attributes:
        path: its folder; None where it was not written.
        findings: of the gates; a release with any is not written.
        content: what it holds.
        hash: of the release; empty where it was not written.
        accepted: what people kept; None where a folder was checked.
        notes: what was left out before, for whoever builds or checks.
        unchecked: the gates that could not run over a copy, and what they need.
    """

    path: Path | None
    findings: tuple[Finding, ...]
    content: ReleaseContent
    hash: str = ""
    accepted: Accepted | None = None
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def build_release(
    spec_path: str | Path, out: str | Path, *, allow: Sequence[str] = (), dry_run: bool = False
) -> Release:
    """Build a release, unless a gate finds something.

    Args:
        spec_path: its TOML file.
        out: a new folder; `OUT.private` is made beside it for what must not be published.
        allow: `GATE:ITEM=REASON` each, what is published although a gate about the companion's turns finds it; the card
            prints the reasons.
        dry_run: choose the items, run all gates, and write nothing.

    Raises:
        ConfigError: the specification is wrong, a round is missing or open, or nothing is found that `allow` names.
        DataError, RoundError: a file is damaged or forged, or another process writes the workspace or the release.
        PublishError: the folder, or its private one, exists.
    """
    spec, out = read_release_spec(as_path(spec_path, "spec_path")), as_path(out, "out")
    for name in spec.leave_out:
        if name not in GATES:
            raise ConfigError(
                f"{spec_path}: leave_out: no gate {quoted(name)}; {suggest(name, GATES)}choose from {', '.join(GATES)}"
            )
    workspace = Workspace(Path(spec.workspace))
    workspace.require_begun()
    if dry_run:
        return _build(spec, workspace, out, allow, dry_run=True)
    # Nobody is erased while the release that may hold them is built.
    with workspace.locked(), writer_lock(out.with_name(f".{out.name}.part"), "wait for it, or name another --out"):
        _require_new(out)
        return _build(spec, workspace, out, allow, dry_run=False)


def _build(spec: ReleaseSpec, workspace: Workspace, out: Path, allow: Sequence[str], *, dry_run: bool) -> Release:
    allowed = read_allowed(allow)
    folders, notes = _round_folders(spec, workspace)
    rounds = [read_outcome(path) for path in folders]
    personas = bundled_personas() | (read_personas(Path(spec.personas)) if spec.personas else {})
    erased = workspace.erased()
    history, tombstones = _read_previous(spec, erased)
    _require_records(rounds, workspace)
    _require_known(spec.exclude, rounds, erased | history.test | history.dev)
    # An item that lost a reference and was made again without it has the id under which older versions hold the other.
    accepted = accept(spec, rounds, personas, erased | tombstones)
    cases = tuple(_read_cases(Path(spec.cases), accepted.items, personas)) if spec.cases else ()
    known = InventedValues.of_workspace(workspace, accepted.items)
    context = GateContext(spec, known, history, allowed=frozenset((*place, "") for place in allowed))
    accepted, content, findings = _choose(accepted, context, cases, personas)
    if findings:
        return Release(None, findings, content, accepted=accepted, notes=notes)
    stored = stored_allowed(allowed, content, context)
    if dry_run:
        return Release(None, (), content, accepted=accepted, notes=notes)
    facts = {**release_facts(spec, workspace, rounds, accepted, content), "allowed": stored}
    events = [event for one in rounds for event in RoundFolder(one.path).events() if event["event"] == "closed"]
    date = spec.date or max(str(event["when"])[:10] for event in events)
    # Before the text is written: an erasure after a kill finds what the build left.
    add_link(workspace.path, "release", out)
    _write(out, context, content, facts, tombstones, rounds, date)
    return Release(out, (), content, release_hash(out), accepted, notes)


def _require_new(out: Path) -> None:
    reasons = {out: "a release never changes", private_folder(out): "it may be the only copy of private references"}
    for path, reason in reasons.items():
        if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
            raise PublishError(f"{path}: exists already, and {reason}; move it away, or name a new folder with --out")


def _round_folders(spec: ReleaseSpec, workspace: Workspace) -> tuple[list[Path], tuple[str, ...]]:
    """The rounds that the specification names, or the closed crowd and expert rounds opened from the workspace.

    Also a note for each open round that is left out.
    """
    if spec.rounds:
        return [Path(path) for path in spec.rounds], ()
    linked = (RoundFolder(path) for link, path in follow_links(read_links(workspace.path)) if link.kind == "round")
    chosen = [one for one in linked if one.exists and one.spec().kind in (CROWD, EXPERT)]
    if not chosen:
        raise ConfigError(f"{workspace.path}: no crowd or expert round was opened from it; name them under `rounds`")
    left = sorted(one.path for one in chosen if one.state != "closed")
    notes = tuple(f"{path}: this round is not closed, and left out; name the rounds under `rounds`" for path in left)
    return sorted(one.path for one in chosen if one.path not in left), notes


def _read_previous(spec: ReleaseSpec, erased: Collection[str]) -> tuple[History, frozenset[str]]:
    """The history of the release before, and the ids of items that were erased from it, or that erased ids cover.

    Raises ConfigError unless it is an earlier version of the release that is specified.
    """
    if not spec.previous:
        return History(), frozenset()
    folder = release_folder(spec.previous)
    manifest, content = read_content(folder)
    old, new = ([int(part) for part in f"{one.version}.0".split(".")[:3]] for one in (manifest, spec))
    if manifest.name != spec.name or old >= new:
        raise ConfigError(
            f"previous: {manifest.name} {manifest.version} is not an earlier version of {spec.name} {spec.version}"
        )
    gone, raw = ErasedIds(frozenset(erased)), read_json_object(folder / HISTORY)
    now = {item.id for item in content.items() if gone.covers(item.scenario.to_dict())}
    history = History(*(frozenset(map(str, raw.get(split, ()))) for split in (TEST, DEV)))
    return history, frozenset(read_erased(folder / TOMBSTONES)) | now


def _require_records(rounds: Sequence[RoundOutcome], workspace: Workspace) -> None:
    """Raise ConfigError unless every round has the records of its items, from the workspace."""
    # Links are relative: they hold where workspace and rounds were moved together.
    linked = {path.resolve() for _, path in follow_links(read_links(workspace.path))}
    for one in rounds:
        if missing := sorted({item for item, _ in one.decisions} - set(one.sources)):
            raise ConfigError(
                f"{one.path}: the items of this round have no record of what they were made from ({missing[0]}); "
                "open it from a workspace's stage"
            )
        origin = RoundFolder(one.path).source_paths().get("workspace")
        of_workspace = origin is not None and Path(origin).resolve() == workspace.path.resolve()
        if not of_workspace and one.path.resolve() not in linked:
            raise ConfigError(
                f"{one.path}: this round was opened from {origin or 'no workspace'}, not from {workspace.path}, which "
                "the specification names"
            )


def _require_known(exclude: Sequence[str], rounds: Sequence[RoundOutcome], others: Collection[str]) -> None:
    """Raise ConfigError for ids that neither an item of the rounds has, nor anything else that is known."""
    records = [record for one in rounds for record in one.sources.values()]
    for name in exclude:
        if name not in others and not any(map(ErasedIds(frozenset({name})).covers, records)):
            raise ConfigError(f"exclude: no item, dialogue or person has the id {quoted(name)}")


def _choose(
    accepted: Accepted,
    context: GateContext,
    cases: tuple[Case, ...],
    personas: Mapping[str, Persona],
) -> tuple[Accepted, ReleaseContent, tuple[Finding, ...]]:
    """Select items and run gates, again and again without the items that `leave_out` gates find."""
    spec, refused = context.spec, dict(accepted.refused)
    of_each, of_all = ([gate for gate in GATES.values() if gate.each is each] for each in (True, False))
    of_items: list[Finding] = []
    read: set[str] = set()
    while True:
        items = tuple(item for item in accepted.items if item.id not in refused)
        splits = select(items, spec.quota_of(), spec.seed, context.history)
        used = {one.scenario.persona for own in splits.values() for one in own} | {case.persona for case in cases}
        content = ReleaseContent(splits, cases, {name: personas[name] for name in sorted(used)})
        # What was chosen before is not read again.
        new = {TEST: tuple(item for item in content.items() if item.id not in read)}
        of_items += run_gates(replace(content, splits=new, cases=() if read else cases), context, of_each)
        chosen = {item.id for item in content.items()}
        read |= chosen
        findings = [one for one in of_items if one.item in chosen or one.item not in read]
        if not (out := _left_out(findings, spec, chosen)):
            findings += run_gates(content, context, of_all)
            out = _left_out(findings, spec, chosen)
        if not out:
            return Accepted(items, refused), content, tuple(findings)
        refused |= out


def _left_out(findings: Sequence[Finding], spec: ReleaseSpec, chosen: Collection[str]) -> dict[str, str]:
    """The items that gates of `leave_out` find, and why they are refused."""
    found = (one for one in findings if one.item in chosen and one.gate in spec.leave_out)
    return {one.item: f"left out by the gate {one.gate}" for one in found}


def _read_cases(folder: Path, items: Sequence[ReleaseItem], personas: Mapping[str, Persona]) -> Iterator[Case]:
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ConfigError(f"cases: {folder} holds no .jsonl file")
    seen = {item.id: "a round" for item in items}
    for path in paths:
        for where, record in read_jsonl(path, unique_keys=True):
            case = Case.from_dict(record, where)
            require_persona(case.persona, personas, where)
            if case.id in seen:
                raise DataError(f"{where}: duplicate id {case.id} (first in {seen[case.id]})")
            seen[case.id] = where
            yield case


def _write(
    out: Path,
    context: GateContext,
    content: ReleaseContent,
    facts: Mapping[str, Any],
    tombstones: Collection[str],
    rounds: Sequence[RoundOutcome],
    date: str,
) -> None:
    spec = context.spec
    with writing(out), work_folders(out) as (new, private):
        new.mkdir(parents=True)
        private.mkdir(mode=0o700)
        canary = canary_of(spec.name)
        references = private / PRIVATE_REFERENCES if spec.private_references else None
        write_data(content, new, canary, references)
        now = asdict(context.history.including(content.splits))
        write_json(new / HISTORY, {split: sorted(ids) for split, ids in now.items()})
        if tombstones:
            write_jsonl(new / TOMBSTONES, ({"id": name} for name in sorted(tombstones)))
        for one in rounds:
            for path in guideline_files(one.path):
                target = new / "guidelines" / f"{one.spec.kind}-{path.name}"
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
        sha256 = sha256_of(references) if references else ""
        given = (spec.name, spec.version, spec.licence, spec.description)
        manifest = Manifest(*given, date, canary, content.configs(), {}, sha256, facts)
        write_card(new, manifest, spec.card)
        replace(manifest, files=hash_files(new)).write(new)
        place = str(private_folder(out))  # whoever moves release and workspace together moves that, too
        write_json(private / SPEC, {"place": place, **asdict(spec)})
        replace(context.surrogates, allow=spec.allow).write(private, content.items())
        # An erasure that follows a kill between the two removes the private folder that has no name yet.
        for made, target in ((new, out), (private, private_folder(out))):
            if target.is_dir():
                target.rmdir()  # empty: checked before the work began
            os.replace(made, target)


def release_lines(release: Release, most: int | None = 20) -> Iterator[str]:
    """Say what was accepted, refused and chosen, and what the gates found: of each at `most` so many, None: all."""
    accepted, content = release.accepted, release.content
    rows = {f"config {config}": counts for config, counts in content.configs().items()}
    yield from release.notes
    if accepted is not None:
        yield f"accepted: {len(accepted.items):,} of {counted(len(accepted.items) + len(accepted.refused), 'item')}"
        yield from (f"  refused: {reason}: {count:,}" for reason, count in accepted.reasons().items())
        chosen = {split: Counter(item.scenario.subtask for item in own) for split, own in content.splits.items()}
        names = in_table_order(chain(*chosen.values()))
        rows = {name: {split: own[name] for split, own in chosen.items()} for name in names} | rows
    for name, counts in rows.items():
        yield f"{name}: {', '.join(f'{split} {count:,}' for split, count in counts.items())}"
    for gate in GATES.values():
        if found := [one for one in release.findings if one.gate == gate.name]:
            yield f"gate {gate.name}: {gate.stops}: {counted(len(found), 'finding')}"
            shown = (f"{one.item}: {one.detail}" if one.item else one.detail for one in found[:most])
            yield from (f"  {printable(line)}" for line in shown)  # votes may be anybody's
            if most is not None and len(found) > most:
                yield f"  and {len(found) - most:,} more (--all lists them)"
    yield from release.unchecked


# --- Facts: what the card tells of a release, plain data without a text of an item ------------------------------------


def release_facts(
    spec: ReleaseSpec,
    workspace: Workspace,
    rounds: Sequence[RoundOutcome],
    accepted: Accepted,
    content: ReleaseContent,
) -> dict[str, Any]:
    """The facts of a release, as `release.json` holds them.

    Keys: `made_with`; `funnel` (a row a stage, then `accepted`); `refused` (reason -> items); `quotas`; `acceptance`;
    `counts` (split -> subtask -> language -> items); `tags` (tag -> value -> items); `sources` (name -> licence and
    items); `rounds` (a row each: kind, platform, annotators, annotations, items, the least and the most annotations an
    item, agreement by question); `models` (what composed and reviewed); `reference_origins` (origin -> references);
    `references` (how many items have 1 to 5); `gates` (name -> what it stops); `other_splits`.
    """
    return {
        "made_with": f"h2htalk {__version__}",
        "funnel": [
            *({"stage": one.stage, "read": one.counts.read, "kept": one.counts.kept} for one in summaries(workspace)),
            {"stage": "people", "read": len(accepted.items) + len(accepted.refused), "kept": len(accepted.items)},
            {"stage": "release", "read": len(accepted.items), "kept": sum(map(len, content.splits.values()))},
        ],
        "refused": accepted.reasons(),
        "quotas": spec.quota_of(),
        "acceptance": asdict(spec.acceptance),
        "rounds": [_round_facts(one) for one in rounds],
        "models": {name: model for name in ("compose", "review") if (model := _model_of(workspace.stage(name)))},
        "gates": {gate.name: gate.stops for gate in GATES.values()},
        "other_splits": list(spec.other_splits),
        **content_facts(content),
    }


def content_facts(content: ReleaseContent) -> dict[str, Any]:
    """The facts that follow from the content: `counts`, `tags`, `sources`, `reference_origins` and `references`."""
    items = [item.scenario for item in content.items()]
    sources: dict[str, list[str]] = defaultdict(list)
    for one in items:
        sources[str(one.provenance.get("source", "unknown"))].append(one.licence)
    origins = [str(note["origin"]) for one in items for note in one.metadata.get(REFERENCES, ())]
    return {
        "counts": {
            split: {
                subtask: count_values(languages)
                for subtask in SUBTASKS
                if (languages := [one.scenario.language for one in own if one.scenario.subtask == subtask])
            }
            for split, own in content.splits.items()
        },
        "tags": {name: count_values(getattr(one.tags, name) for one in items) for name in TAGS},
        "sources": {
            name: {"licence": ", ".join(sorted(set(licences))), "items": len(licences)}
            for name, licences in sorted(sources.items())
        },
        "reference_origins": count_values("answer" if one.startswith(ANSWER) else one for one in origins),
        "references": count_values(str(len(one.references)) for one in items),
    }


def _round_facts(outcome: RoundOutcome) -> dict[str, Any]:
    spec = outcome.spec
    # What came: a skip is no annotation, and the settings say only what was asked for.
    done = {(item, who) for item, who, question in outcome.annotations if question != SKIPPED}
    each = Counter(item for item, _ in done if item in outcome.sources)
    numbers = [each[item] for item in outcome.sources]
    return {
        "kind": spec.kind,
        "where": spec.where,
        "items": len(outcome.sources),
        "annotators": len({who for _, who in done}),
        "annotations": sum(numbers),
        "annotations_an_item": [min(numbers, default=0), max(numbers, default=0)],
        "minutes_an_item": spec.minutes,
        "agreement": dict(outcome.agreement),
    }


def _model_of(stage: StageFolder) -> str:
    """The model that a stage asked, as its settings identify it; empty where it asked none."""
    settings = read_json_object(stage.path / "stage.json", missing_ok=True).get("settings", {})
    model = settings.get("model") or settings.get("reviewer") or ""
    return str(model.get("name", "")) if isinstance(model, Mapping) else str(model)
